"""The tables that `streamsvm predict` writes, and the source of the rows that they are about."""

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.types import is_null

from connectors import Batch, Source, TabularSource
from streamsvm.cli.evaluate import Errors, check_fit, margins
from streamsvm.cli.parser import say, split
from streamsvm.cli.sources import texts_from
from streamsvm.errors import ModelFileError, ParameterError
from streamsvm.learners.bases.learner import Learner
from streamsvm.monitor.watched import Model
from streamsvm.run.adapters import adapter_of, unwrapped
from streamsvm.run.parts import MappedScaler, parts_of
from streamsvm.run.rows import further_of, probabilities_of

Opener = Callable[..., TabularSource]
"""Opens the rows to predict: called with the target, and with options of `TabularSource`."""


def learner_of(model: Model, file: str) -> Learner:
    """Return the learner in a model; ModelFileError: what its file holds predicts no rows."""
    _, learner = parts_of(unwrapped(model))
    if learner is None:
        raise ModelFileError(f"{file} holds no learner that predicts rows")
    return learner


def check_keep(options: argparse.Namespace, learner: Learner) -> None:
    """Refuse columns of --keep that the output has already."""
    keep = split(options.keep)
    own = ["file", "row", "prediction", "decision_function", "probability", "set", "answer"]
    own += [f"probability of {y}" for y in learner.classes]
    if taken := [name for name in keep if name in own or keep.count(name) > 1]:
        raise ParameterError(f"--keep {taken[0]}: the output has a column of that name already")


def open_rows(options: argparse.Namespace, model: Model, opener: Opener) -> TabularSource:
    """Open rows as the model takes them; refuse those that are not of its kind."""
    keep, reading = split(options.keep), texts_from(options)
    columns, parsed, texts = _columns_of(options, model, keep, partial(opener, **reading))
    reading["parse_numbers"] = [n for n in parsed if columns is None or n in columns]
    reading["as_text"] = texts
    reading["label_kind"] = label_kind_of(model) if options.positive is None else None
    return opener(options.target, columns=columns, keep=keep, **reading)


def label_kind_of(model: Model) -> str | None:
    """Return whether the labels of a model are all texts, or all numbers; None: neither."""
    _, learner = parts_of(unwrapped(model))
    types = {type(label) for label in getattr(learner, "classes", ())}
    if types and types <= {int, float}:
        return "number"
    return "text" if types == {str} else None


def features_of(model: Model, kinds: Collection[str]) -> tuple[set[str], set[str]]:
    """Return the columns that are numbers to a model, and those that are texts.

    `kinds` are columns of a file: the one-hot features of a text column are named column=value.
    """
    names = _known_names(model)
    numbers = {name for name in names if "=" not in name or name in kinds}
    return numbers, {name.partition("=")[0] for name in names - numbers}


def read_as(
    source: TabularSource, numbers: Collection[str], texts: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return the columns to read as numbers, and as texts, as a model or a first file has them.

    Only such columns whose type is known by their values only: codes may all be digits.
    """
    kinds = {name: source.kinds[name] for name in source.told_by_values & source.kinds.keys()}
    as_numbers = [n for n, kind in kinds.items() if kind == "text" and n in numbers]
    return as_numbers, [n for n, kind in kinds.items() if kind != "text" and n in texts]


def _columns_of(
    options: argparse.Namespace, model: Model, keep: list[str], opener: Opener
) -> tuple[list[str] | None, list[str], list[str]]:
    """Return the columns to read, those that are numbers, and texts; refuse rows of another kind.

    None: all.
    """
    asked = split(options.columns) or None
    scaler, _ = parts_of(unwrapped(model))
    mapped = scaler if isinstance(scaler, MappedScaler) else None
    names = _known_names(model)
    known = names | {name.partition("=")[0] for name in names}
    others = [name for name in keep if name not in known]  # of any type
    source = opener(options.target, columns=asked, keep=others)
    kinds = dict(source.kinds)
    parsed = options.parse_numbers or []
    if parsed is True and not names:
        raise ParameterError("--parse-numbers: name the columns, as the model has no list of them")
    if parsed is True:
        parsed = [n for n in kinds if n in names and kinds[n] == "text"]
    numbers, texts = features_of(model, kinds)
    as_numbers, as_texts = read_as(source, numbers - texts, texts - {*parsed})
    parsed = list(dict.fromkeys([*parsed, *as_numbers]))
    # A name that the file lacks is refused when it is opened.
    kinds |= {n: "number" for n in parsed if kinds.get(n, "text") == "text"}
    kinds |= dict.fromkeys(as_texts, "text")
    # Features of list columns are not named after their columns.
    if None in kinds.values():
        return asked, parsed, []
    # Of hashed features, and of random ones, the model has no list.
    unseen = [] if asked else [n for n in kinds if n not in known]
    unseen = [n for n in unseen if (mapped.takes_unseen(n, kinds[n]) if mapped else not names)]
    if unseen:
        say(
            f"features of {options.file} of which the model has no list: "
            f"{', '.join(unseen[:10])}; --columns names others"
        )
    if not names:
        return asked, parsed, []
    left_out = set(unseen)
    check_fit(
        options.file,
        {name: kind for name, kind in kinds.items() if name not in left_out},
        numbers,
        texts,
        options.allow_mismatch,
        are_all=asked is None,
        hint="; --allow-mismatch predicts as if they were missing",
    )
    wanted = {*numbers, *texts, *unseen}
    return asked or [name for name in kinds if name in wanted], parsed, as_texts


def _known_names(model: Model) -> set[str]:
    """Return the names of the features that come into a model."""
    scaler, learner = parts_of(unwrapped(model))
    if learner is None:
        return set()
    # A feature map's components are numbered: columns are compared with what comes into it.
    first = scaler if isinstance(scaler, MappedScaler) else learner
    return {str(name) for name in first.feature_names}


def with_known_kinds(model: Model, schema: pa.Schema) -> pa.Schema:
    """Return a schema in which columns without a value are of the kind that a model knows."""
    names = _known_names(model)
    texts = {name.partition("=")[0] for name in names if "=" in name}
    kinds = dict.fromkeys(names, pa.float64()) | dict.fromkeys(texts - names, pa.string())
    fields = [f.with_type(kinds.get(f.name, f.type)) if is_null(f.type) else f for f in schema]
    return pa.schema(fields)


def empty_table(
    model: Model, learner: Learner, kept: pa.Schema, file: str, probabilities: bool
) -> pa.Table:
    """Return the table of a file without rows; `kept` are the columns of --keep."""
    nothing = pa.record_batch({})
    rows = np.zeros(0, np.int64)
    kept_rows = pa.RecordBatch.from_pylist([], schema=kept) if len(kept) else None
    batch = Batch(nothing, pa.nulls(0), rows, file, kept=kept_rows)
    values, usable = learner.targets.outputs.zeros(0), np.zeros(0, bool)
    return _table(batch, usable, values, learner, probabilities, adapter_of(model).column())


def tables_of_rows(
    model: Model,
    learner: Learner,
    source: Source,
    errors: Errors | None,
    probabilities: bool,
    file: str,
) -> Iterator[pa.Table]:
    """Yield tables with a row for each row of a source, which is called `file` in what is said."""
    column = adapter_of(model).column()
    for batch, usable, values in margins(model, source, file):
        if errors is not None:
            errors.add(batch, usable, values)
        yield _table(batch, usable, values, learner, probabilities, column)


def _label_array(labels: list[Any], classes: list[Any]) -> pa.Array:
    """Return labels as a column; as texts, if the classes are of no type of Arrow together."""
    kinds = {type(label) for label in classes}
    try:
        if len(kinds) < 2:
            return pa.array(labels, pa.array(classes).type)
    except (pa.ArrowException, OverflowError):
        pass
    return pa.array([None if y is None else str(y) for y in labels], pa.string())


def _table(
    batch: Batch,
    usable: np.ndarray,
    values: np.ndarray,
    learner: Learner,
    probabilities: bool,
    more: tuple[str, Callable[[Any], Any]] | None,
) -> pa.Table:
    """Return predictions of the rows of a batch; `more` is the column of a wrapper."""
    rows = values.tolist()
    label_of, decision = learner.targets.label_of, learner.targets.decision
    predicted = [label_of(m) if u else None for m, u in zip(rows, usable, strict=True)]
    of_rows = probabilities_of(learner, values, usable)
    found = [p or {} for p in of_rows]

    def floats(numbers: Iterable[float]) -> pa.Array:
        return pa.array(np.array([*numbers], np.float64), mask=~usable)

    # With several classes: the score of the predicted class.
    k = len(learner.classes)
    score = (max(m[:k], default=0.0) if values.ndim > 1 else decision(m) for m in rows)
    columns = {
        "file": pa.array([batch.file] * len(batch), pa.string()),
        "row": pa.array(batch.rows),
    }
    if batch.kept is not None:
        columns |= dict(zip(batch.kept.schema.names, batch.kept.columns, strict=True))
    columns |= {
        "prediction": _label_array(predicted, learner.classes),
        "decision_function": floats(score),
        "probability": floats(p.get(y, 0.0) for p, y in zip(found, predicted, strict=True)),
    }
    if more is not None:
        chosen = further_of(of_rows, False, more)[more[0]]
        if more[0] == "set":
            kind = columns["prediction"].type
            as_text = pa.types.is_string(kind)
            sets = [s if s is None else [str(y) for y in s] if as_text else s for s in chosen]
            columns["set"] = pa.array(sets, pa.list_(kind))
        else:
            columns[more[0]] = _label_array(chosen, learner.classes)
    for y in learner.classes if probabilities else ():
        columns[f"probability of {y}"] = floats(p.get(y, 0.0) for p in found)
    table = pa.table(columns)
    if not batch.rejects:
        return table
    # Rows that are no events have no prediction; they keep their place, and what is to be kept.
    others = [
        {"file": r.position.file, "row": r.position.row, **(r.kept or {})} for r in batch.rejects
    ]
    return pa.concat_tables([table, pa.Table.from_pylist(others, table.schema)]).sort_by("row")
