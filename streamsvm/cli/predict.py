"""`streamsvm predict`: predict the rows of a file with a saved model, or evaluate it on them."""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamsvm import ConformalSets, Selective
from streamsvm.cli.evaluate import Errors, check_fit, error_in_words, margins, why_none
from streamsvm.cli.outputs import check_distinct, check_ending, check_file, write_tables
from streamsvm.cli.parser import Parser, add_table, path
from streamsvm.cli.sentences import (
    columns_of,
    columns_of_records,
    new_score,
    of_sentences,
    open_records,
    open_sentences,
    said,
    tables_of,
    test_score,
)
from streamsvm.cli.sources import FILES, PARSE_NUMBERS, open_source
from streamsvm.errors import ParameterError
from streamsvm.model_files.container import load
from streamsvm.run.parts import parts_of, unwrapped

_OPTIONS: dict[str, Any] = {
    "-o --output OUT": "a file that ends in .parquet, .csv or .jsonl; needed without --target",
    "--target COLUMN": "column of the true label: print the share of wrong predictions",
    "--positive LABEL": "of a model that learnt this label against all others",
    "--columns A,B,...": "features; default: all columns that the model knows",
    **PARSE_NUMBERS,
    "--keep A,B,...": "columns that the output has, too, such as a key",
    "--probabilities": dict(
        action="store_true",
        help="write the probability of each label: columns named 'probability of LABEL'",
    ),
    "--allow-mismatch": dict(
        action="store_true",
        help="predict even if most of the model's columns are missing, or of another kind",
    ),
}


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Writes one row for each row read: file, row, the columns of --keep, prediction, "
        "decision_function, probability (of the predicted label); set, a list of labels, if the "
        "model was learnt with --coverage, and answer, a label or null, if with --error. A row "
        "that cannot be predicted has nulls. Of sentences: file, row and prediction, a list of "
        "labels, or a meaning and symbols, a list. With --target COLUMN it evaluates the model, "
        "and needs no --output."
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", type=path, help="file written by --save")
    parser.add_argument("file", type=path, help=FILES)
    add_table(parser, _OPTIONS)


def run(options: argparse.Namespace) -> int:
    """Predict and write; return the exit code."""
    model = load(options.model)
    is_of_sentences = of_sentences(options, model)
    _check_output(options)
    if is_of_sentences:
        return _label(options, model)
    _, learner = parts_of(unwrapped(model))
    if learner is None:
        raise ParameterError(f"{options.model} holds no learner that predicts")
    if options.positive is not None and options.target is None:
        raise ParameterError("--positive needs --target COLUMN")
    keep = options.keep.split(",") if options.keep else []
    own = ["file", "row", "prediction", "decision_function", "probability", "set", "answer"]
    own += [f"probability of {y}" for y in learner.classes]
    if taken := [name for name in keep if name in own or keep.count(name) > 1]:
        raise ParameterError(f"--keep {taken[0]}: the output has a column of that name already")
    columns = _columns_of(options, learner, keep)
    parsed = [name for name in options.parse_numbers or () if columns is None or name in columns]
    source = open_source(
        options.file, options.target, columns=columns, keep=keep, parse_numbers=parsed
    )
    errors = None if options.target is None else Errors(learner, options.positive)
    if options.output is not None:
        tables = _tables(model, learner, source, errors, options.probabilities)
        rows, unusable = write_tables(Path(options.output), tables, source.name)
        note = f", {unusable:,} of them without a prediction" if unusable else ""
        note += why_none(learner) if unusable else ""
        print(f"{rows:,} rows{note} -> {options.output}", file=sys.stderr)
    elif errors is not None:
        for part in margins(model, source):
            errors.add(*part)
    if errors is not None:
        print(f"test error  {error_in_words(*errors.result(source.name), options.file)[0]}")
    return 0


def _check_output(options: argparse.Namespace) -> None:
    """Refuse an output that cannot be written, and options that need one if there is none."""
    if options.output is not None:
        check_distinct(options)
        check_file("--output", options.output)
        check_ending(options.output)
    elif options.target is None:
        raise ParameterError("name --output OUT for the predictions, or --target to evaluate")
    elif options.keep or options.probabilities:
        raise ParameterError("--keep and --probabilities are columns of a file: name --output OUT")


def _label(options: argparse.Namespace, model: Any) -> int:
    """Write the labels of sentences, or evaluate the model on them; return the exit code."""
    score = None if options.target is None else new_score(model)
    if (columns := columns_of_records(options, model)) is not None:
        opened: Any = open_records(options.file, columns, options.target)
    else:
        opened = open_sentences(options.file, options.target, columns_of(options, model))
    with opened as source:
        if options.output is None:
            score = test_score(model, source)
        else:
            tables = tables_of(model, source, score)
            rows, unusable = write_tables(Path(options.output), tables, source.name)
            note = f", {unusable:,} of them without a prediction" if unusable else ""
            print(f"{rows:,} sentences{note} -> {options.output}", file=sys.stderr)
    if score is not None:
        print(f"test error  {said(score, options.file)}")
    return 0


def _tables(
    model: Any, learner: Any, source: Any, errors: Errors | None, probabilities: bool
) -> Iterator[pa.Table]:
    """Yield tables with a row for each row of a source."""
    column = _said_by(model)
    for batch, usable, values in margins(model, source):
        if errors is not None:
            errors.add(batch, usable, values)
        yield _table(batch, usable, values, learner, probabilities, column)


def _said_by(model: Any) -> tuple[str, Callable[[Any], Any]] | None:
    """Return the column of a wrapper, and what it says of {label: probability}; None: none."""
    if isinstance(model, ConformalSets):
        return "set", lambda p: list(model.sets.of(p))
    if isinstance(model, Selective):
        return "answer", lambda p: model.answering.answer(p).label
    return None


def _columns_of(options: argparse.Namespace, learner: Any, keep: list[str]) -> list[str] | None:
    """Return the columns to read; refuse a file that is not of the model's kind."""
    asked = options.columns.split(",") if options.columns else None
    names = {str(name) for name in learner.feature_names}
    known = names | {name.partition("=")[0] for name in names}
    others = [name for name in keep if name not in known]  # of any type
    kinds = open_source(options.file, options.target, columns=asked, keep=others).kinds
    if options.parse_numbers is True:
        options.parse_numbers = [n for n in kinds if n in names and kinds[n] == "text"]
    # A name that the file lacks is refused when it is opened.
    kinds |= {n: "number" for n in options.parse_numbers or () if kinds.get(n, "text") == "text"}
    # The one-hot features of a text column are named column=value.
    numbers = {name for name in names if "=" not in name or name in kinds}
    texts = {name.partition("=")[0] for name in names - numbers}
    # Features of list columns are not named after their columns, and hashed ones have no names.
    if not names or None in kinds.values():
        return asked
    check_fit(
        options.file,
        kinds,
        numbers,
        texts,
        options.allow_mismatch,
        are_all=asked is None,
        hint="; --allow-mismatch predicts as if they were missing",
    )
    return asked or [name for name in kinds if name in numbers | texts]


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
