"""The folder of a report: index.html, report.json, tables, and plots if matplotlib is installed."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from streamsvm import TrackingMonitor
from streamsvm.model_files.replacing import naming
from streamsvm.monitor import plots
from streamsvm.monitor.series import charts
from streamsvm.page import skeleton
from streamsvm.run.report import RunReport

_OF_SOME_RUNS = ("monitor.parquet", *(f"{name}.png" for name in plots.NAMES))
"""Files that not each report has."""


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
    _remove_older(path)
    records = [] if monitor is None else monitor.history.records
    histories = monitor, records, report.history.records
    title = f"{result['target']} of {result['data']}"
    made = f"{datetime.now():%Y-%m-%d %H:%M}, streamsvm {result['version']}"
    page = skeleton.report(
        title, made, rows, result["advice"], charts(*histories), report.confusion
    )
    files: dict[str, Callable[[Path], Any]] = {
        "report.json": lambda file: file.write_text(json.dumps(result, indent=2) + "\n"),
        "history.parquet": report.history.write_parquet,
    }
    if monitor is not None:
        files["monitor.parquet"] = monitor.history.write_parquet
    files["index.html"] = lambda file: file.write_text(page, encoding="utf-8")
    for name, make in files.items():
        with naming(path / name):
            make(path / name)
    written = [str(path / name) for name in ("index.html", *files)][:-1]
    try:
        with naming(path):
            drawn = plots.write(charts(*histories, most=report.history.most), path)
    except ImportError:
        return [*written, "no PNG files: pip install matplotlib"]
    return written + [str(file) for file in drawn]


def _remove_older(folder: Path) -> None:
    """Remove what only an older report in a folder may have: it would be taken for this one's."""
    if (folder / "report.json").exists():
        for name in _OF_SOME_RUNS:
            (folder / name).unlink(missing_ok=True)
