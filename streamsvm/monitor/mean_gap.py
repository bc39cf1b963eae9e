"""Mean gaps of a stream, estimated and bounded from the looks of a learner."""

from __future__ import annotations

import math
from typing import Any

from streamsvm.monitor.certificate import Looks

SEEN = ("seen_gap", "kept_certificate", "seen_gap_recent", "kept_certificate_recent")


class SeenGap:
    """Estimates and bounds of the mean gap since the start, and of late, from a learner's looks.

    "Of late" is since one of the marks that are set every `horizon` examples: between one and two
    horizons. Each mark starts a bound of its own; the j-th one, counted from 1, has the share 6 /
    (pi j)^2 of the probability to fail, so that all of them hold at once, with probability
    `confidence`. `looks` are those of the learner at the start.
    """

    def __init__(self, looks: Looks, horizon: int, confidence: float) -> None:
        self.horizon, self.confidence = horizon, confidence
        self.start = looks
        self.marks = [looks, looks]
        self.n_marks = 1  # the number of the older one
        self.marked_at = 0

    @property
    def due(self) -> int:
        """The number of examples at which the next mark is due."""
        return self.marked_at + self.horizon

    def advance(self, looks: Looks, n: int) -> None:
        """Set a mark if a horizon has passed: `n` examples since the start, `looks` now."""
        if n >= self.due:
            # The first two marks are the start.
            self.n_marks += self.marked_at > 0
            self.marks = [self.marks[1], looks]
            self.marked_at = n

    def values(self, looks: Looks) -> dict[str, float | None]:
        """Return the values of `SEEN`, by the looks now; None before the first look."""
        ever, recent = looks.since(self.start), looks.since(self.marks[0])
        share = 6.0 / (math.pi * self.n_marks) ** 2
        bounds = ever.bound(self.confidence), recent.bound(1.0 - (1.0 - self.confidence) * share)
        return dict(zip(SEEN, (ever.mean, bounds[0], recent.mean, bounds[1]), strict=True))

    def state(self) -> list[Any]:
        """Return the marks as JSON values."""
        return [self.start, *self.marks, self.n_marks, self.marked_at]

    def restore(self, state: list[Any]) -> None:
        """Restore the marks from the return value of `state`."""
        start, older, newer, self.n_marks, self.marked_at = state
        self.start, self.marks = Looks(*start), [Looks(*older), Looks(*newer)]
