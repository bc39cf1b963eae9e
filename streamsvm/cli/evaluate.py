"""The evaluation of a trained model on a file: predictions without learning."""

import argparse
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from connectors import Batch, Source
from streamsvm.cli import sentences
from streamsvm.cli.parser import say
from streamsvm.confidence.sequence import share_interval
from streamsvm.errors import StreamSVMError
from streamsvm.labels.class_labels import shown
from streamsvm.learners.bases.learner import Learner
from streamsvm.monitor.watched import Model
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.adapters import unwrapped
from streamsvm.run.parts import MappedScaler, parts_of
from streamsvm.run.rows import labels_of, margins_of, true_labels
from streamsvm.run.sentence_feeder import are_sentences


def margins(
    model: Model, source: Source, file: str | None = None
) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Yield the margins of each batch of a source; then say what in it is of no use to the model.

    Those are columns that held nothing, and texts that were never learnt. `file` is what the source
    is called there, if not by its name.

    The batch, and what `rows.margins_of` returns for it. The model is one that `parts_of` finds a
    learner in.
    """
    scaler, learner = parts_of(unwrapped(model))
    assert learner is not None
    unlearnt = _Unlearnt(scaler, learner)
    n_rows, first = 0, None
    for batch in source.batches():
        n_rows += len(batch)
        first = first or next(iter(batch.rejects), None)
        if not len(batch):  # of a topic: nothing came, or nothing that can be read
            yield batch, np.zeros(0, bool), learner.targets.outputs.zeros(0)
            continue
        unlearnt.add(batch.features)
        yield batch, *margins_of(scaler, learner, batch)
    file = file or source.name
    if first is not None:
        say(f"the first row that cannot be read: {first.position}: {first.reason}")
    if n_rows and (empty := source.empty_columns):
        say(f"without any value in {file}: {', '.join(empty)}")
    if unlearnt.rows:
        say(f"texts in {file} that the model never learnt, and does not use: {unlearnt}")


class _Unlearnt:
    """Counts the rows whose text in a column is none that a model has learnt: `rows`, by column.

    Models that hash names, or draw random features for them, use texts that they never learnt.
    """

    def __init__(self, scaler: StandardScaler | MappedScaler | None, learner: Learner) -> None:
        self._mapped = scaler if isinstance(scaler, MappedScaler) else None
        self._known = {*(learner if self._mapped is None else self._mapped).feature_names}
        self.rows, self._examples = Counter[str](), dict[str, str]()

    def add(self, features: pa.RecordBatch) -> None:
        """Count the rows of a batch with one-hot features that the model lacks."""
        for field, column in zip(features.schema, features.columns, strict=True):
            name = (field.metadata or {}).get(b"one_hot", b"").decode()
            if not name or not self._known or field.name in self._known:
                continue
            if self._mapped is None or not self._mapped.takes_unseen(field.name, "text"):
                self.rows[name] += int(np.count_nonzero(column.to_numpy(zero_copy_only=False)))
                self._examples.setdefault(name, field.name.removeprefix(f"{name}="))

    def __str__(self) -> str:
        """Return the columns, their rows and an example of each."""
        some = [
            f"`{name}` in {n:,} rows ({shown(self._examples[name])})"
            for name, n in self.rows.most_common(10)
        ]
        return ", ".join(some)


class Errors:
    """Counts wrong predictions of a learner.

    `positive` is a label, as text: it counts as True, all others as False. `truth` is a column that
    batches keep, with which predictions are compared where it has a value.
    """

    def __init__(self, learner: Learner, positive: str | None, truth: str | None = None) -> None:
        self._learner, self._positive, self._truth = learner, positive, truth
        self._known, self._unknown = set(learner.classes), Counter[Any]()
        self._wrong = self._rows = self._refused = 0

    def add(self, batch: Batch, usable: np.ndarray, values: np.ndarray) -> None:
        """Count the rows of a batch that have a label: see `margins`."""
        n_rejects = len(batch.rejects)
        self._wrong += n_rejects
        self._rows += n_rejects
        self._refused += n_rejects
        targets = self._learner.targets
        labels = labels_of(self._learner, batch)
        labels = true_labels(labels, batch, self._truth, np.arange(len(batch)))
        for y, is_usable, margin in zip(labels, usable, values.tolist(), strict=True):
            if y is None:
                continue
            truth = y if self._positive is None else str(y) == self._positive
            guess = targets.label_of(margin) if is_usable else None
            if isinstance(y, frozenset):
                truth = guess if guess in y else targets.members_of(y)[0]
            self._rows += 1
            self._refused += not is_usable
            if truth not in self._known:
                self._unknown[truth] += 1
            # A row that cannot be predicted counts as wrong.
            self._wrong += not is_usable or guess != truth

    def result(self, name: str) -> tuple[float, int]:
        """Return the share of errors (NaN without labelled rows) and the number of rows.

        Rows of the source `name` that could not be right are said on standard error.
        """
        if self._refused:
            lines = f"{self._refused:,} examples of {name} have no prediction"
            say(f"{lines}{why_none(self._learner)}: they count as wrong")
        if self._unknown:
            named = ", ".join(shown(y) for y, _ in self._unknown.most_common(5))
            say(
                f"{self._unknown.total():,} rows of {name} have labels that the model never learnt "
                f"({named}): they count as wrong"
            )
        return (self._wrong / self._rows if self._rows else float("nan")), self._rows


def test_result(
    model: Model, source: Source, options: argparse.Namespace
) -> tuple[str, dict[str, Any]]:
    """Return the errors on the file of ``--test``, in words and as values of the report."""
    if are_sentences(model):
        score = sentences.test_score(model, source, options.truth)
        return sentences.score_text(score, options.test), sentences.tested(score)
    truth = options.truth if options.truth in source.keep else None
    _, learner = parts_of(unwrapped(model))
    assert learner is not None
    errors = Errors(learner, options.positive, truth)
    for part in margins(model, source):
        errors.add(*part)
    wrong, n = errors.result(source.name)
    said, (low, high) = error_in_words(wrong, n, options.test)
    ends = {"test_error_low": low, "test_error_high": high}
    return said, {"test_error": wrong, "test_rows": n} | ends


def error_in_words(wrong: float, n: int, file: str) -> tuple[str, tuple[float, float]]:
    """Return a share of errors of n rows of a file in words, and its interval."""
    text = f"{wrong:.2%} of {n:,} examples of {file}"
    if not n:
        return text, (0.0, 1.0)
    low, high = share_interval(round(wrong * n), n)
    return f"{text}  ({in_percent(low, high)}, 95%)", (low, high)


def in_percent(low: float, high: float) -> str:
    """Return an interval of a share in words.

    >>> from streamsvm.cli.evaluate import in_percent
    >>> in_percent(0.8823, 0.9057)
    '88.2 to 90.6%'
    """
    return f"{100 * low:.1f} to {high:.1%}"


def why_none(learner: Learner) -> str:
    """Return, in parentheses, why a learner may refuse to predict a row."""
    rejects = getattr(learner, "missing", "mean") == "reject"
    more = ", or missing, which this model rejects" if rejects else ""
    return f" (a value is not finite, or not readable{more})"


class FitError(StreamSVMError):
    """Data whose columns are not those that a model knows: no fault of the command line."""


def check_fit(
    file: str,
    kinds: Mapping[str, str | None],
    numbers: set[str],
    texts: set[str],
    allow_mismatch: bool = False,
    are_all: bool = True,
    hint: str = "",
) -> None:
    """Refuse a file whose columns are not those of a model; name those that either lacks.

    It has none of the columns; or one is of another kind, or more than half lack, unless
    `allow_mismatch`. `kinds` are of its feature columns, `numbers` and `texts` those that the model
    knows. Unless `are_all`, those that lack were not asked for. `hint`: how to go on nevertheless.
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
        raise FitError(f"{file} has none of the model's features: {known}")
    if of_other_kind and not allow_mismatch:
        raise FitError(
            f"{file} does not fit the model: column {of_other_kind[0]}; convert it{hint}"
        )
    if are_all and 2 * len(missing) > len(wanted) and not allow_mismatch:
        raise FitError(
            f"{file} lacks {len(missing)} of the {len(wanted)} columns that the model knows: "
            f"{', '.join(missing[:10])}{hint}"
        )
    say_misfit(file, kinds, wanted, are_all)


def say_misfit(file: str, kinds: Collection[str], wanted: set[str], are_all: bool = True) -> None:
    """Say which columns a file or a model lacks, if there are any: as `check_fit`."""
    missing = sorted(wanted - set(kinds))
    said = [f"not in {file}, so missing everywhere: {_some(missing)}"] if missing else []
    if are_all and (others := [name for name in kinds if name not in wanted]):
        said.append(f"in {'it' if said else file}, but unknown to the model: {_some(others)}")
    if said:
        say("; ".join(said))


def _some(names: list[str]) -> str:
    """Return up to ten names, and how many more there are."""
    more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more


def _words(kind: str | None) -> str:
    return "text" if kind == "text" else "a number"
