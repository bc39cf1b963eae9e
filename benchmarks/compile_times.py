"""What is compiled, and how long it takes: ``python -m benchmarks.compile_times``.

For each kernel learner and kind of rows, in a fresh process with an empty cache: how many functions
its first events compile, and the seconds of processor time that they take. With names
(``lasvm-dense larank-sparse``) only those. Last, the README's first command with an empty cache:
seconds of wall time until its report, which a machine with 2 idle cores must show within 25.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from numba.core import event

from benchmarks.first_run import seconds_to_progress
from streamsvm import LaRankClassifier, LASVMClassifier, TrackingSVMClassifier, kernels

ROOT = Path(__file__).resolve().parents[1]
LEARNERS = {
    "lasvm": LASVMClassifier,
    "larank": LaRankClassifier,
    "tracking": TrackingSVMClassifier,
}
CASES = [f"{learner}-{store}" for learner in LEARNERS for store in ("dense", "sparse")]


class Count(event.Listener):
    """Counts functions that are compiled."""

    n = 0

    def on_start(self, event: event.Event) -> None:
        """Count one."""
        self.n += 1

    def on_end(self, event: event.Event) -> None:
        """Nothing."""


def first_events(case: str) -> None:
    """Learn and predict four events; print what that compiled."""
    learner, store = case.split("-")
    model = LEARNERS[learner](kernel=kernels.RBF(gamma=0.5), sparse=store == "sparse")
    count = Count()
    event.register("numba:compile", count)
    start = time.process_time()
    for x, y in ((1.0, True), (-1.0, False), (0.5, True), (-0.5, False)):
        model.predict_one({"x": x, "z": 1.0})
        model.learn_one({"x": x, "z": 1.0}, y)
    print(f"{case:16s} {count.n:4d} functions {time.process_time() - start:6.1f} s CPU")


def main() -> None:
    """Measure what is named, or everything, each in a process of its own."""
    cases = sys.argv[1:] or CASES
    for case in cases:
        with tempfile.TemporaryDirectory() as cache:
            program = f"from benchmarks.compile_times import first_events; first_events({case!r})"
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
            subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    if len(sys.argv) == 1:
        with tempfile.TemporaryDirectory() as cache:
            seconds = seconds_to_progress(cache)[2]
            print(f"README's first command, empty cache: {seconds:.1f} s")


if __name__ == "__main__":
    main()
