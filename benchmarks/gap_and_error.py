"""What a gap costs in errors: ``python -m benchmarks.gap_and_error``.

Models learn 3,000 rows in one pass, and copies of them go on to their optimum (`finish`). Printed
are the gap as a share of the objective, the error on 2,000 other rows, and that of the copy; then,
by the share, how much larger the error was (docs/monitor.md).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.common import rows_of
from streamsvm import LASVMClassifier, TrackingMonitor, TrackingSVMClassifier

SETS = ("banana", "adult_train", "elec2", "usps_train", "chessboard", "covtype_first20k")
N, N_LEARNT = 5000, 3000
EDGES = (0.0, 0.1, 0.3, 1.0)


def models() -> Iterator[tuple[str, Any]]:
    """Yield learners that end one pass at different distances from their optimum."""
    for C in (1.0, 10.0, 100.0):
        yield f"lasvm, C {C:g}", LASVMClassifier(C=C, seed=0)
    for C in (1.0, 10.0):
        for K in (1, 10):
            yield f"tracking, C {C:g}, K {K}", TrackingSVMClassifier(C=C, K=K, seed=0)


def problem(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in a random order, each feature scaled, and which are of the largest class."""
    x, y = rows_of(name)
    order = np.random.default_rng(0).permutation(len(y))[:N]
    x, y = x[order], y[order]
    labels, counts = np.unique(y, return_counts=True)
    x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-6)
    return x.astype(np.float32), y == labels[counts.argmax()]


def error_of(model: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows predicted wrong, in %."""
    return 100.0 * float(np.mean(np.array(model.predict_many(x)) != y))


def main() -> None:
    """Print each run, and the means by the share of the gap."""
    found = []
    for name in SETS:
        x, y = problem(name)
        for said, model in models():
            monitor = TrackingMonitor(model)
            monitor.learn_many(x[:N_LEARNT], y[:N_LEARNT].tolist())
            share = monitor.get()["gap_share"]
            model.observer = None
            finished = copy.deepcopy(model)
            finished.finish()
            errors = [error_of(m, x[N_LEARNT:], y[N_LEARNT:]) for m in (model, finished)]
            print(
                f"{name:17} {said:22} {share:6.1%}  {errors[0]:5.2f} %, finished {errors[1]:5.2f} %"
            )
            found.append((share, errors[0] - errors[1]))
    print("\n| share of the objective | runs | mean | largest |\n|---|---|---|---|")
    for low, high in itertools.pairwise(EDGES):
        more = [points for share, points in found if low <= share < high]
        print(f"| {low:g} to {high:g} | {len(more)} | {np.mean(more):.1f} | {max(more):.1f} |")


if __name__ == "__main__":
    main()
