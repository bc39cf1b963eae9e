"""The evaluation of a trained model on a file: predictions without learning."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from connectors import Source
from streamsvm.errors import ParameterError
from streamsvm.features import frames
from streamsvm.features.matrices import Matrix, SparseMatrix, are_usable, take
from streamsvm.labels.class_labels import plain
from streamsvm.run.parts import margins_of_taken, parts_of
from streamsvm.support.rows import LARGEST


def margins(model: Any, source: Source) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Yield the margins of each batch of a source.

    Parameters
    ----------
    model
        A model that `parts_of` finds a learner in.
    source
        The rows.

    Yields
    ------
    tuple[Batch, np.ndarray, np.ndarray]
        The batch; bool, which of its rows the model takes (all values finite, none missing that
        must not be); and their margins, NaN in the other rows.

    """
    scaler, learner = parts_of(model)
    assert learner is not None
    for batch in source.batches():
        matrix = learner.matrix_of(batch.features)
        if not matrix.names and not isinstance(matrix, SparseMatrix):
            matrix = Matrix([], np.zeros((len(batch), 0)), None)
        usable = are_usable(matrix, LARGEST)
        kept = np.flatnonzero(usable)
        if len(kept) < len(usable):
            matrix = take(matrix, kept)
        if scaler is not None:
            matrix = scaler.transform_matrix(matrix)
        known, taken = margins_of_taken(learner, matrix, kept)
        usable[:] = False
        usable[taken] = True
        values = np.full((len(usable), *known.shape[1:]), np.nan)
        values[taken] = known
        yield batch, usable, values


def test_error(model: Any, source: Source, positive: str | None) -> tuple[float, int]:
    """Return the share of wrong predictions and the number of rows with a label.

    Parameters
    ----------
    model
        A model that `parts_of` finds a learner in.
    source
        The rows.
    positive
        A label, as text: it counts as True, all others as False.

    Returns
    -------
    tuple[float, int]
        The share (NaN without labelled rows) and the number of rows.

    """
    _, learner = parts_of(model)
    assert learner is not None
    wrong = rows = refused = 0
    known, unknown = set(learner.classes), Counter[Any]()
    for batch, usable, values in margins(model, source):
        rows += len(batch.rejects)
        wrong += len(batch.rejects)
        refused += len(batch.rejects)
        labels = frames.labels_of(batch.labels, len(batch))
        for y, is_usable, margin in zip(labels, usable, values.tolist(), strict=True):
            if y is None:
                continue
            truth = y if positive is None else str(y) == positive
            rows += 1
            refused += not is_usable
            if truth not in known:
                unknown[truth] += 1
            # A row that cannot be predicted counts as wrong.
            wrong += not is_usable or learner.label_of(margin) != truth
    if refused:
        lines = f"{refused:,} examples of {source.name} have no prediction{why_none(learner)}"
        print(f"{lines}: they count as wrong", file=sys.stderr)
    if unknown:
        named = ", ".join(repr(plain(y)) for y, _ in unknown.most_common(5))
        print(
            f"{unknown.total():,} rows of {source.name} have labels that the model never learnt "
            f"({named}): they count as wrong",
            file=sys.stderr,
        )
    return (wrong / rows if rows else float("nan")), rows


def why_none(learner: Any) -> str:
    """Return, in parentheses, why a learner may refuse to predict a row."""
    rejects = getattr(learner, "missing", "mean") == "reject"
    more = ", or missing, which this model rejects" if rejects else ""
    return f" (a value is not finite, or not readable{more})"


def check_fit(
    file: str,
    kinds: Mapping[str, str | None],
    numbers: set[str],
    texts: set[str],
    allow_mismatch: bool = False,
    are_all: bool = True,
    hint: str = "",
) -> None:
    """Refuse a file whose columns are not those of a model, and name those that it lacks.

    Parameters
    ----------
    file
        The file, for messages.
    kinds
        The kind of each of its feature columns.
    numbers, texts
        The columns that the model knows.
    allow_mismatch
        Refuse only a file that has none of them.
    are_all
        Whether `kinds` are of all columns; False: those that lack were not asked for.
    hint
        How to go on nevertheless.

    Raises
    ------
    ParameterError
        The file has none of the columns; or one is of another kind, or more than half lack.

    """
    wanted = numbers | texts
    missing = sorted(wanted - set(kinds))
    of_other_kind = [
        f"`{name}` is {_words(kind)} there, {_words('text' if name in texts else 'number')} to the "
        "model"
        for name, kind in kinds.items()
        if name in wanted and name not in (texts if kind == "text" else numbers) and kind != "null"
    ]
    if wanted and len(missing) == len(wanted):
        known = ", ".join(sorted(wanted)[:10])
        raise ParameterError(f"{file} has none of the model's features: {known}")
    if of_other_kind and not allow_mismatch:
        raise ParameterError(
            f"{file} does not fit the model: column {of_other_kind[0]}; convert it{hint}"
        )
    if are_all and 2 * len(missing) > len(wanted) and not allow_mismatch:
        raise ParameterError(
            f"{file} lacks {len(missing)} of the {len(wanted)} columns that the model knows: "
            f"{', '.join(missing[:10])}{hint}"
        )
    if missing:
        text = f"not in {file}, so missing everywhere: {', '.join(missing)}"
        if are_all and (others := [name for name in kinds if name not in wanted]):
            text += f"; in it, but unknown to the model: {', '.join(others[:10])}"
        print(text, file=sys.stderr)


def _words(kind: str | None) -> str:
    return "text" if kind == "text" else "a number"
