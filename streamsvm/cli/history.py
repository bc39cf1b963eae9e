"""The folder of a report: index.html, report.json, tables, and plots if matplotlib is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from streamsvm import TrackingMonitor
from streamsvm.cli import html_report
from streamsvm.model_files.replacing import naming
from streamsvm.monitor.plots import draw_lines
from streamsvm.run.report import RunReport


def write(
    folder: str,
    report: RunReport,
    result: dict[str, Any],
    monitor: TrackingMonitor | None,
    rows: list[tuple[str, str]],
) -> list[str]:
    """Write the files of a report into a folder, which is made; return their names.

    `result` is the content of report.json, `rows` are names and values of the figures. Last, what
    to install for plots that could not be made.
    """
    path = Path(folder)
    path.mkdir(exist_ok=True)
    files: dict[str, Callable[[Path], Any]] = {
        "report.json": lambda file: file.write_text(json.dumps(result, indent=2) + "\n"),
        "history.parquet": report.history.write_parquet,
    }
    if monitor is not None:
        files["monitor.parquet"] = monitor.history.write_parquet
    for name, make in files.items():
        with naming(path / name):
            make(path / name)
    with naming(path):
        plots = _plots(path, report, monitor)
    page = path / "index.html"
    title = f"{result['target']} of {result['data']}"
    made = f"{datetime.now():%Y-%m-%d %H:%M}, streamsvm {result['version']}"
    with naming(page):
        confusion = [(y, p, n) for y, p, n in report.confusion]
        html_report.write(page, title, made, rows, result["advice"], plots, confusion)
    written = [str(file) for file in [page, *(path / name for name in files), *plots]]
    return written if plots else [*written, "no plots: pip install matplotlib"]


def _plots(folder: Path, report: RunReport, monitor: TrackingMonitor | None) -> list[Path]:
    """Write the plots and return their files; none without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    files = [] if monitor is None else monitor.plot(folder)
    made = {file.stem for file in files}
    of_run = [name for name in ("accuracy", "support_vectors", "delta") if name not in made]
    return files + draw_lines(report.history, "rows", folder, of_run)
