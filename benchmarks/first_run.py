"""Seconds to the first progress: ``python -m benchmarks.first_run [LEARNER ...]``.

Replays the shipped file twice in fresh processes, first with an empty cache of compiled code, and
prints when the first word and the first figures were shown, the processor's seconds, and how many
functions were compiled: what the command expects of a first run (`streamsvm.cli.screen`).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_FILE = Path(__file__).resolve().parents[1] / "examples" / "data" / "bananas.parquet"


def seconds_to_progress(cache: str, learner: str) -> tuple[float, float, float]:
    """Return seconds to the first line, to the first figures, and to the end."""
    command = [sys.executable, "-m", "streamsvm", "replay", str(_FILE), "--target", "label"]
    command += ["--learner", learner]
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
        if "examples/s" in line and not figures:
            figures = now
    process.wait()
    return first, figures, time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    for learner in sys.argv[1:] or ["lasvm"]:
        with tempfile.TemporaryDirectory() as cache:
            for name in ("first run", "second run"):
                before = _processor_seconds()
                first, figures, end = seconds_to_progress(cache, learner)
                print(
                    f"{learner}, {name}: first line {first:.1f} s, figures {figures:.1f} s, end "
                    f"{end:.1f} s, processor {_processor_seconds() - before:.1f} s, "
                    f"{len(list(Path(cache).rglob('*.nbc')))} functions in the cache",
                    flush=True,
                )


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
