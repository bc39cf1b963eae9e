"""Measurements that concern ourselves: replay, cold starts."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.golden.problems import FOLDER
from benchmarks.peers.workloads import AbsentError


def adult_file() -> Path:
    """Adult as a Parquet file."""
    path = FOLDER / "adult_train.parquet"
    if not path.exists():
        raise AbsentError(f"no {path}")
    return path


def replay(path: Path) -> dict[str, Any]:
    """Replay a file into a bounded LASVM, with its monitor."""
    from connectors import ParquetSource
    from streamsvm import LASVMClassifier, TrackingMonitor, kernels
    from streamsvm.run.runner import Run

    for limit in (500, None):
        model = LASVMClassifier(kernels.RBF(gamma=0.005), max_support_vectors=500)
        with ParquetSource(path, "label") as source:
            wall, cpu = time.perf_counter(), time.process_time()
            report = Run(source, TrackingMonitor(model), limit=limit).execute()
            seconds, own = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "seconds": seconds / report.rows,
        "cpu_seconds": own / report.rows,
        "error": 100.0 * (1.0 - report.accuracy),
        "n_support_vectors": report.n_support_vectors,
        "rows_a_second": report.rows / seconds,
    }


_IMPORT = "import time; a = time.perf_counter(); import streamsvm; b = time.perf_counter();"
_EVENT = """
from streamsvm import LASVMClassifier
model = LASVMClassifier()
c = time.perf_counter()
model.learn_one({"a": 1.0, "b": 2.0}, True)
d = time.perf_counter()
"""


def _in_a_process(code: str) -> dict[str, Any]:
    # The first run may compile; the second is a later process.
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        done.check_returncode()
    return {"seconds": float(done.stdout)}


def import_time(_: None) -> dict[str, Any]:
    """Import the package."""
    return _in_a_process(_IMPORT + "print(b - a)")


def first_event(_: None) -> dict[str, Any]:
    """Learn one event with code that an earlier process compiled."""
    return _in_a_process(_IMPORT + _EVENT + "print(d - c)")
