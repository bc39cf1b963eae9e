"""The tables that `streamsvm predict` writes, and the source of the rows that they are about."""

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.types import is_null

from connectors import Batch, TabularSource
from streamsvm import ConformalSets, Selective
from streamsvm.cli.evaluate import Errors, check_fit, margins
from streamsvm.cli.parser import split
from streamsvm.errors import ParameterError
from streamsvm.run.parts import MappedScaler, parts_of, unwrapped

Opener = Callable[..., TabularSource]
"""Opens the rows to predict: called with the target, and with options of `TabularSource`."""


def check_keep(options: argparse.Namespace, learner: Any) -> None:
    """Refuse columns of --keep that the output has already."""
    keep = split(options.keep)
    own = ["file", "row", "prediction", "decision_function", "probability", "set", "answer"]
    own += [f"probability of {y}" for y in learner.classes]
    if taken := [name for name in keep if name in own or keep.count(name) > 1]:
        raise ParameterError(f"--keep {taken[0]}: the output has a column of that name already")


def open_rows(options: argparse.Namespace, model: Any, opener: Opener) -> TabularSource:
    """Open rows as the model takes them; refuse those that are not of its kind."""
    keep, parsed = split(options.keep), options.parse_numbers
    columns, parsed = _columns_of(options, model, keep, opener)
    parsed = [name for name in parsed if columns is None or name in columns]
    return opener(options.target, columns=columns, keep=keep, parse_numbers=parsed)


def _columns_of(
    options: argparse.Namespace, model: Any, keep: list[str], opener: Opener
) -> tuple[list[str] | None, list[str]]:
    """Return the columns to read, and those to read as numbers; refuse rows of another kind."""
    asked = split(options.columns) or None
    scaler, _ = parts_of(unwrapped(model))
    mapped = scaler if isinstance(scaler, MappedScaler) else None
    names = _known_names(model)
    known = names | {name.partition("=")[0] for name in names}
    others = [name for name in keep if name not in known]  # of any type
    kinds = opener(options.target, columns=asked, keep=others).kinds
    parsed = options.parse_numbers or []
    if parsed is True and not names:
        raise ParameterError("--parse-numbers: name the columns, as the model has no list of them")
    if parsed is True:
        parsed = [n for n in kinds if n in names and kinds[n] == "text"]
    # A name that the file lacks is refused when it is opened.
    kinds |= {n: "number" for n in parsed if kinds.get(n, "text") == "text"}
    # The one-hot features of a text column are named column=value.
    numbers = {name for name in names if "=" not in name or name in kinds}
    texts = {name.partition("=")[0] for name in names - numbers}
    # Features of list columns are not named after their columns.
    if None in kinds.values():
        return asked, parsed
    # Of hashed features, and of random ones, the model has no list.
    unseen = [] if asked else [n for n in kinds if n not in known]
    unseen = [n for n in unseen if (mapped.takes_unseen(n, kinds[n]) if mapped else not names)]
    if unseen:
        print(
            f"features of {options.file} of which the model has no list: "
            f"{', '.join(unseen[:10])}; --columns names others",
            file=sys.stderr,
        )
    if not names:
        return asked, parsed
    check_fit(
        options.file,
        {name: kind for name, kind in kinds.items() if name not in unseen},
        numbers,
        texts,
        options.allow_mismatch,
        are_all=asked is None,
        hint="; --allow-mismatch predicts as if they were missing",
    )
    return asked or [name for name in kinds if name in {*numbers, *texts, *unseen}], parsed


def _known_names(model: Any) -> set[str]:
    """Return the names of the features that come into a model."""
    scaler, learner = parts_of(unwrapped(model))
    # A feature map's components are numbered: columns are compared with what comes into it.
    first: Any = scaler if isinstance(scaler, MappedScaler) else learner
    return {str(name) for name in first.feature_names}


def with_known_kinds(model: Any, schema: pa.Schema) -> pa.Schema:
    """Return a schema in which columns without a value are of the kind that a model knows."""
    names = _known_names(model)
    texts = {name.partition("=")[0] for name in names if "=" in name}
    kinds = dict.fromkeys(names, pa.float64()) | dict.fromkeys(texts - names, pa.string())
    fields = [f.with_type(kinds.get(f.name, f.type)) if is_null(f.type) else f for f in schema]
    return pa.schema(fields)


def empty_table(
    model: Any, learner: Any, kept: pa.Schema, file: str, probabilities: bool
) -> pa.Table:
    """Return the table of a file without rows; `kept` are the columns of --keep."""
    nothing = pa.record_batch({})
    rows = np.zeros(0, np.int64)
    kept_rows = pa.RecordBatch.from_pylist([], schema=kept) if len(kept) else None
    batch = Batch(nothing, pa.nulls(0), rows, file, kept=kept_rows)
    values, usable = learner.targets.zeros(0), np.zeros(0, bool)
    return _table(batch, usable, values, learner, probabilities, _said_by(model))


def tables_of_rows(
    model: Any, learner: Any, source: Any, errors: Errors | None, probabilities: bool, file: str
) -> Iterator[pa.Table]:
    """Yield tables with a row for each row of a source, which is called `file` in what is said."""
    column = _said_by(model)
    for batch, usable, values in margins(model, source, file):
        if errors is not None:
            errors.add(batch, usable, values)
        yield _table(batch, usable, values, learner, probabilities, column)


def _said_by(model: Any) -> tuple[str, Callable[[Any], Any]] | None:
    """Return the column of a wrapper, and what it says of {label: probability}; None: none."""
    if isinstance(model, ConformalSets):
        sets = model.sets.at_rest()
        return "set", lambda p: list(sets.of(p))
    if isinstance(model, Selective):
        return "answer", lambda p: model.answering.answer(p).label
    return None


def _table(
    batch: Any,
    usable: np.ndarray,
    values: np.ndarray,
    learner: Any,
    probabilities: bool,
    more: tuple[str, Callable[[Any], Any]] | None,
) -> pa.Table:
    """Return predictions of the rows of a batch; `more` is from `_said_by`."""
    rows = values.tolist()
    label_of = learner.targets.label_of
    predicted = [label_of(m) if u else None for m, u in zip(rows, usable, strict=True)]
    own, score, k = np.zeros(len(rows)), np.zeros(len(rows)), len(learner.classes)
    of_class = {y: np.zeros(len(rows)) for y in learner.classes}
    chosen: list[Any] = [None] * len(rows)
    for i in np.flatnonzero(usable).tolist():
        found = learner.probabilities_of(rows[i])
        own[i] = found.get(predicted[i], 0.0)
        chosen[i] = None if more is None else more[1](found)
        for y, column in of_class.items():
            column[i] = found.get(y, 0.0)
        # With several classes: the score of the predicted class.
        score[i] = max(rows[i][:k], default=0.0) if values.ndim > 1 else rows[i]
    columns = {
        "file": pa.array([batch.file] * len(batch), pa.string()),
        "row": pa.array(batch.rows),
    }
    if batch.kept is not None:
        columns |= dict(zip(batch.kept.schema.names, batch.kept.columns, strict=True))
    columns |= {
        "prediction": pa.array(predicted, pa.array(learner.classes).type),
        "decision_function": pa.array(score, mask=~usable),
        "probability": pa.array(own, mask=~usable),
    }
    if more is not None:
        kind = columns["prediction"].type
        columns[more[0]] = pa.array(chosen, pa.list_(kind) if more[0] == "set" else kind)
    if probabilities:
        for y, column in of_class.items():
            columns[f"probability of {y}"] = pa.array(column, mask=~usable)
    table = pa.table(columns)
    if not batch.rejects:
        return table
    # Rows that are no events have no prediction; they keep their place.
    names = [pa.array([r.position.file for r in batch.rejects], pa.string())]
    numbers = [pa.array([r.position.row for r in batch.rejects], table.schema.field("row").type)]
    empty = [pa.nulls(len(batch.rejects), type_) for type_ in table.schema.types[2:]]
    others = pa.table(names + numbers + empty, schema=table.schema)
    return pa.concat_tables([table, others]).sort_by("row")
