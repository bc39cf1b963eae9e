"""`streamsvm predict`: predict the rows of a file with a saved model, into a Parquet file."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamsvm.cli.evaluate import margins
from streamsvm.cli.outputs import check_file
from streamsvm.cli.parser import Parser
from streamsvm.cli.sources import open_source
from streamsvm.cli.values import path
from streamsvm.errors import ParameterError
from streamsvm.model_files.container import load
from streamsvm.run.parts import parts_of


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Writes one row for each row read: file, row, prediction, decision_function "
        "and probability (of the predicted label). A row that cannot be predicted has nulls."
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", type=path, help="file written by --save")
    parser.add_argument("file", type=path, help="Parquet file or folder, or .arrow/.feather file")
    parser.add_argument("-o", "--output", type=path, required=True, metavar="OUT.parquet")
    parser.add_argument(
        "--columns", metavar="A,B,...", help="features; default: all columns that the model knows"
    )


def run(options: argparse.Namespace) -> int:
    """Predict and write; return the exit code."""
    model = load(options.model)
    _, learner = parts_of(model)
    if learner is None:
        raise ParameterError(f"{options.model} holds no learner that predicts")
    output = Path(options.output)
    check_file("--output", options.output)
    columns = (
        options.columns.split(",") if options.columns else _columns_of_model(options.file, learner)
    )
    source = open_source(options.file, None, columns=columns)
    # Renamed at the end: an interrupted run leaves no incomplete output.
    partial = output.with_name(f".{output.name}.partial")
    rows = unusable = 0
    try:
        writer = None
        for batch, usable, values in margins(model, source):
            table = _table(batch, usable, values, learner)
            writer = writer or pq.ParquetWriter(partial, table.schema)
            writer.write_table(table)
            rows += len(batch)
            unusable += int((~usable).sum())
        if writer is None:
            raise ParameterError(f"{options.file} has no rows")
        writer.close()
        os.replace(partial, output)
    finally:
        partial.unlink(missing_ok=True)
    note = f", {unusable:,} of them without a prediction (not finite)" if unusable else ""
    print(f"{rows:,} rows{note} -> {output}", file=sys.stderr)
    return 0


def _columns_of_model(path: str, learner: Any) -> list[str] | None:
    """Return the columns of the file that are features of the model."""
    names = open_source(path, None).features
    wanted = {str(name) for name in learner.feature_names}
    # The one-hot features of a text column are named column=value.
    wanted |= {name.partition("=")[0] for name in wanted if "=" in name}
    wanted -= {name for name in wanted if "=" in name}
    missing = sorted(wanted - set(names))
    if wanted and len(missing) == len(wanted):
        known = ", ".join(sorted(wanted)[:10])
        raise ParameterError(f"{path} has none of the model's features: {known}")
    if missing:
        print(f"not in {path}, so 0 everywhere: {', '.join(missing)}", file=sys.stderr)
    return [name for name in names if name in wanted] or None


def _table(batch: Any, usable: np.ndarray, values: np.ndarray, learner: Any) -> pa.Table:
    rows = values.tolist()
    predicted = [learner.label_of(m) if u else None for m, u in zip(rows, usable, strict=True)]
    own, score, k = np.zeros(len(rows)), np.zeros(len(rows)), len(learner.classes)
    for i in np.flatnonzero(usable).tolist():
        own[i] = learner.probabilities_of(rows[i]).get(predicted[i], 0.0)
        # With several classes: the score of the predicted class.
        score[i] = max(rows[i][:k], default=0.0) if values.ndim > 1 else rows[i]
    return pa.table(
        {
            "file": pa.array([batch.file] * len(batch), pa.string()),
            "row": pa.array(batch.rows),
            "prediction": pa.array(predicted, pa.array(learner.classes).type),
            "decision_function": pa.array(score, mask=~usable),
            "probability": pa.array(own, mask=~usable),
        }
    )
