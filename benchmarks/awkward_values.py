"""Values that features have by habit, not by nature: ``python -m benchmarks.awkward_values``.

Printed: the percentage of 4,000 events that the adaptive learner predicts right before it learns
them, where -999 stands for missing values, or these are left out; and where positive features span
orders of magnitude, or their logarithms are taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common import error_of
from streamsvm import AdaptiveSVMClassifier

N, SENTINEL = 4000, -999.0


def accuracy(events: list[dict[str, Any]], y: list[bool]) -> float:
    """Return the percentage of events predicted right before they were learnt."""
    return 100.0 - error_of(AdaptiveSVMClassifier(seed=1), zip(events, y, strict=True))


def main() -> None:
    """Print both."""
    random = np.random.default_rng(9)
    whole = random.normal(size=(N, 8))
    y = (whole[:, 0] * whole[:, 1] + whole[:, 2] > 0).tolist()
    chance = random.random(whole.shape)
    for share in (0.01, 0.018, 0.03):
        x = np.where(chance < share, SENTINEL, whole)
        events = [dict(enumerate(row)) for row in x.tolist()]
        without = [{k: v for k, v in event.items() if v != SENTINEL} for event in events]
        print(f"{share:.1%} are {SENTINEL:g}: {accuracy(events, y):.1f}, ", end="")
        print(f"left out {accuracy(without, y):.1f}")
    for sigma in (1, 2):
        z = sigma * np.random.default_rng(9).normal(size=(N, 10))
        y = ((z[:, 0] > 0.3 * sigma) ^ (z[:, 1] > 0.3 * sigma)).tolist()
        of = [[dict(enumerate(row)) for row in rows.tolist()] for rows in (np.exp(z), z)]
        print(f"exp({sigma} z): {accuracy(of[0], y):.1f}, logarithms {accuracy(of[1], y):.1f}")


if __name__ == "__main__":
    main()
