"""The folder of a report: report.json, history.parquet and, with matplotlib, PNG plots."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamsvm.run_report import Progress, RunReport

_PLOTS = (
    ("accuracy", ("accuracy", "balanced_accuracy"), "progressive accuracy"),
    ("support_vectors", ("n_support_vectors",), "support vectors"),
    ("delta", ("delta",), "delta (uncertainty of the bias)"),
)


def write(folder: str, report: RunReport, result: dict[str, Any]) -> list[str]:
    """Write the files and return what was written, with the pip line for what was not."""
    path = Path(folder)
    path.mkdir(exist_ok=True)
    (path / "report.json").write_text(json.dumps(result, indent=2) + "\n")
    rows = [asdict(moment) for moment in report.history]
    pq.write_table(pa.Table.from_pylist(rows, schema=_schema()), path / "history.parquet")
    written = [str(path / "report.json"), str(path / "history.parquet")]
    try:
        import matplotlib
    except ImportError:
        return [*written, "no plots (pip install 'streamsvm[plots]')"]
    matplotlib.use("Agg")
    return written + [str(_plot(path, report.history, *plot)) for plot in _PLOTS]


def _schema() -> pa.Schema:
    types = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}
    fields = Progress.__dataclass_fields__.values()
    return pa.schema([(field.name, types[str(field.type)]) for field in fields])


def _plot(
    folder: Path, moments: list[Progress], name: str, columns: tuple[str, ...], title: str
) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    rows = [moment.rows for moment in moments]
    for column in columns:
        axes.plot(rows, [getattr(moment, column) for moment in moments], label=column)
    axes.set(xlabel="rows", ylabel=title)
    axes.grid(alpha=0.3)
    if len(columns) > 1:
        axes.legend()
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=120)
    return path
