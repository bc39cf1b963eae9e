"""The folder of a report: report.json, history.parquet and, if matplotlib is installed, plots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm import TrackingMonitor
from streamsvm.run.report import RunReport

_PLOTS = (
    ("accuracy", ("accuracy", "balanced_accuracy"), "progressive accuracy"),
    ("support_vectors", ("n_support_vectors",), "support vectors"),
    ("delta", ("delta",), "delta (uncertainty of the bias)"),
)


def write(
    folder: str, report: RunReport, result: dict[str, Any], monitor: TrackingMonitor | None
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

    Returns
    -------
    list[str]
        The files written, and the pip line for plots that could not be made.

    """
    path = Path(folder)
    path.mkdir(exist_ok=True)
    (path / "report.json").write_text(json.dumps(result, indent=2) + "\n")
    report.history.write_parquet(path / "history.parquet")
    written = [path / "report.json", path / "history.parquet"]
    if monitor is not None:
        monitor.history.write_parquet(path / "monitor.parquet")
        written.append(path / "monitor.parquet")
    try:
        import matplotlib
    except ImportError:
        return [*map(str, written), "no plots (pip install 'streamsvm[plots]')"]
    matplotlib.use("Agg")
    if monitor is not None:
        written += monitor.plot(path)
    for name, columns, title in _PLOTS:
        if not np.isnan(report.history.column(columns[0])).all():
            written.append(_plot(path, report, name, columns, title))
    return [str(file) for file in dict.fromkeys(written)]


def _plot(folder: Path, report: RunReport, name: str, columns: tuple[str, ...], title: str) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for column in columns:
        axes.plot(report.history.column("rows"), report.history.column(column), label=column)
    axes.set(xlabel="rows", ylabel=title)
    axes.grid(alpha=0.3)
    if len(columns) > 1:
        axes.legend()
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=120)
    return path
