"""Seconds to the first progress: ``python -m tests.benchmarks.first_run``.

Replays the shipped file twice in fresh processes, first with an empty cache of compiled code, and
prints when the first word and the first figures were shown.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_FILE = Path(__file__).resolve().parents[2] / "examples" / "data" / "bananas.parquet"


def seconds_to_progress(cache: str) -> tuple[float, float, float]:
    """Return seconds to the first line, to the first figures, and to the end."""
    command = [sys.executable, "-m", "streamsvm", "replay", str(_FILE), "--target", "label"]
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
    )
    assert process.stderr is not None
    first = figures = 0.0
    for line in process.stderr:
        now = time.perf_counter() - start
        first = first or now
        if "rows/s" in line and not figures:
            figures = now
    process.wait()
    return first, figures, time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as cache:
        for name in ("first run", "second run"):
            first, figures, end = seconds_to_progress(cache)
            print(f"{name}: first line {first:.1f} s, figures {figures:.1f} s, end {end:.1f} s")


if __name__ == "__main__":
    main()
