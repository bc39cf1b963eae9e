"""The folder of a report: index.html, report.json, tables, and plots if matplotlib is installed."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm import TrackingMonitor
from streamsvm.cli import html_report
from streamsvm.model_files.replacing import naming
from streamsvm.run.report import RunReport

_PLOTS = (
    (
        "accuracy",
        {"accuracy": "since the start", "balanced_accuracy": "balanced: the mean over the labels"},
        "share of right predictions",
    ),
    ("support_vectors", {"n_support_vectors": ""}, "number of support vectors"),
    ("delta", {"delta": ""}, "delta: distance from the optimum"),
)
"""Name of the file, {column: its name in the legend}, and label of the axis of each plot."""


def write(
    folder: str,
    report: RunReport,
    result: dict[str, Any],
    monitor: TrackingMonitor | None,
    rows: list[tuple[str, str]],
) -> list[str]:
    """Write the files of a report.

    Parameters
    ----------
    folder
        Where to; it is made if it does not exist.
    report
        The run's report.
    result
        The content of report.json.
    monitor
        The run's monitor, if there is one.
    rows
        Name and value of each figure of the report.

    Returns
    -------
    list[str]
        The files written, and what to install for plots that could not be made.

    """
    path = Path(folder)
    path.mkdir(exist_ok=True)
    written = []
    for name, make in (
        ("report.json", lambda file: file.write_text(json.dumps(result, indent=2) + "\n")),
        ("history.parquet", report.history.write_parquet),
        ("monitor.parquet", None if monitor is None else monitor.history.write_parquet),
    ):
        if make is not None:
            written.append(path / name)
            with naming(path / name):
                make(path / name)
    plots = _plots(path, report, monitor)
    page = path / "index.html"
    title = f"{result['target']} of {result['data']}"
    made = f"{datetime.now():%Y-%m-%d %H:%M}, streamsvm {result['version']}"
    with naming(page):
        confusion = [(y, p, n) for y, p, n in report.confusion]
        html_report.write(page, title, made, rows, result["advice"], plots, confusion)
    files = [str(file) for file in [page, *written, *plots]]
    return files if plots else [*files, "no plots: pip install matplotlib"]


def _plots(folder: Path, report: RunReport, monitor: TrackingMonitor | None) -> list[Path]:
    """Write the plots and return their files; none without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    files = [] if monitor is None else monitor.plot(folder)
    made = {file.stem for file in files}
    for name, columns, label in _PLOTS:
        if name not in made and not np.isnan(report.history.column(next(iter(columns)))).all():
            files.append(_plot(folder, report, name, columns, label))
    return files


def _plot(folder: Path, report: RunReport, name: str, columns: dict[str, str], label: str) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for column, shown in columns.items():
        axes.plot(report.history.column("rows"), report.history.column(column), label=shown)
    axes.set(xlabel="examples", ylabel=label)
    axes.grid(alpha=0.3)
    if len(columns) > 1:
        axes.legend()
    path = folder / f"{name}.png"
    with naming(path):
        figure.savefig(path, dpi=120)
    return path
