"""`streamsvm predict`: predict the rows of a file with a saved model, into a Parquet file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamsvm.cli import label
from streamsvm.cli.evaluate import margins
from streamsvm.cli.outputs import check_distinct, check_file
from streamsvm.cli.parser import Parser
from streamsvm.cli.sources import FILES, open_source
from streamsvm.cli.values import path
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.sequence.sequence_learner import SequenceLearner
from streamsvm.model_files.container import load, steps_of
from streamsvm.model_files.replacing import naming, replacement
from streamsvm.run.parts import parts_of


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Writes one row for each row read: file, row, prediction, decision_function "
        "and probability (of the predicted label). A row that cannot be predicted has nulls."
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", type=path, help="file written by --save")
    parser.add_argument("file", type=path, help=FILES)
    parser.add_argument("-o", "--output", type=path, required=True, metavar="OUT.parquet")
    parser.add_argument(
        "--columns", metavar="A,B,...", help="features; default: all columns that the model knows"
    )
    parser.add_argument(
        "--tokens",
        metavar="A,B,...",
        help="of a model that labels sentences: the columns with the lists of tokens; the output "
        "is that of `streamsvm label`",
    )
    parser.add_argument(
        "--allow-mismatch",
        action="store_true",
        help="predict even if most of the model's columns are missing, or of another kind",
    )


def run(options: argparse.Namespace) -> int:
    """Predict and write; return the exit code."""
    model = load(options.model)
    _, learner = parts_of(model)
    if isinstance(steps_of(model)[-1], SequenceLearner):
        if options.columns is not None or options.allow_mismatch:
            raise ParameterError(
                f"{options.model} labels sentences: --columns and --allow-mismatch are for models "
                "of single rows; name the columns of its tokens by --tokens"
            )
        return label.label_file(options, model)
    if options.tokens is not None:
        raise ParameterError("--tokens is for models that `streamsvm label` saved")
    if learner is None:
        raise ParameterError(f"{options.model} holds no learner that predicts")
    output = Path(options.output)
    check_distinct(options)
    check_file("--output", options.output)
    source = open_source(options.file, None, columns=_columns_of(options, learner))
    rows, unusable = _write(output, model, learner, source)
    note = f", {unusable:,} of them without a prediction" if unusable else ""
    note += " (not finite, or not UTF-8)" if unusable else ""
    print(f"{rows:,} rows{note} -> {output}", file=sys.stderr)
    return 0


def _write(output: Path, model: Any, learner: Any, source: Any) -> tuple[int, int]:
    """Write a row for each row of a source; return their number, and that of those without one."""
    rows = unusable = 0
    writer = None
    # An interrupted run leaves no incomplete output.
    with naming(output), replacement(output) as file:
        for batch, usable, values in margins(model, source):
            table = _table(batch, usable, values, learner)
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
            rows += len(table)
            unusable += table.column("prediction").null_count
        if writer is None:
            raise ParameterError(f"{source.name} has no rows")
        writer.close()
    return rows, unusable


def _columns_of(options: argparse.Namespace, learner: Any) -> list[str] | None:
    """Return the columns to read; refuse a file that is not of the model's kind."""
    asked = options.columns.split(",") if options.columns else None
    kinds = open_source(options.file, None, columns=asked).kinds
    names = {str(name) for name in learner.feature_names}
    # The one-hot features of a text column are named column=value.
    numbers = {name for name in names if "=" not in name or name in kinds}
    texts = {name.partition("=")[0] for name in names - numbers}
    wanted = numbers | texts
    # Features of list columns are not named after their columns, and hashed ones have no names.
    if not wanted or None in kinds.values():
        return asked
    missing = sorted(wanted - set(kinds))
    of_other_kind = [
        f"`{name}` is {_words(kind)} there, {_words('text' if name in texts else 'number')} to the "
        "model"
        for name, kind in kinds.items()
        if name in wanted and name not in (texts if kind == "text" else numbers) and kind != "null"
    ]
    if len(missing) == len(wanted):
        known = ", ".join(sorted(wanted)[:10])
        raise ParameterError(f"{options.file} has none of the model's features: {known}")
    if of_other_kind and not options.allow_mismatch:
        raise ParameterError(
            f"{options.file} does not fit the model: column {of_other_kind[0]}; convert it, or go "
            "on with --allow-mismatch, which predicts as if it were missing"
        )
    if asked is None and 2 * len(missing) > len(wanted) and not options.allow_mismatch:
        raise ParameterError(
            f"{options.file} lacks {len(missing)} of the {len(wanted)} columns that the model "
            f"knows: {', '.join(missing[:10])}; --allow-mismatch predicts with 0 in their place"
        )
    if missing:
        print(f"not in {options.file}, so 0 everywhere: {', '.join(missing)}", file=sys.stderr)
    return asked or [name for name in kinds if name in wanted]


def _words(kind: str | None) -> str:
    return "text" if kind == "text" else "a number"


def _table(batch: Any, usable: np.ndarray, values: np.ndarray, learner: Any) -> pa.Table:
    rows = values.tolist()
    predicted = [learner.label_of(m) if u else None for m, u in zip(rows, usable, strict=True)]
    own, score, k = np.zeros(len(rows)), np.zeros(len(rows)), len(learner.classes)
    for i in np.flatnonzero(usable).tolist():
        own[i] = learner.probabilities_of(rows[i]).get(predicted[i], 0.0)
        # With several classes: the score of the predicted class.
        score[i] = max(rows[i][:k], default=0.0) if values.ndim > 1 else rows[i]
    table = pa.table(
        {
            "file": pa.array([batch.file] * len(batch), pa.string()),
            "row": pa.array(batch.rows),
            "prediction": pa.array(predicted, pa.array(learner.classes).type),
            "decision_function": pa.array(score, mask=~usable),
            "probability": pa.array(own, mask=~usable),
        }
    )
    if not batch.rejects:
        return table
    # Rows that are no events have no prediction; they keep their place.
    names = [pa.array([r.position.file for r in batch.rejects], pa.string())]
    numbers = [pa.array([r.position.row for r in batch.rejects], table.schema.field("row").type)]
    empty = [pa.nulls(len(batch.rejects), type_) for type_ in table.schema.types[2:]]
    others = pa.table(names + numbers + empty, schema=table.schema)
    return pa.concat_tables([table, others]).sort_by("row")
