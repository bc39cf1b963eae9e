"""The Huller in plain NumPy: the two points are vectors, which every update computes afresh.

For linear kernels, so that a point is a vector of the feature space; no scalar is kept.
"""

from __future__ import annotations

import numpy as np

from tests.reference.slow_tracking import SlowDraws, drop

SEEDS = 5


class SlowHuller:
    """`members` lists the support vectors in the order in which the compiled code draws them."""

    def __init__(self, x, y, word, reprocess=1):
        self.x, self.y, self.reprocess = x, y, reprocess
        self.draws = SlowDraws(word)
        self.a = np.zeros(len(y))
        self.members = []
        self.seen = {1.0: 0, -1.0: 0}

    def point(self, sign):
        return self.a[self.y == sign] @ self.x[self.y == sign]

    def margin(self, x):
        if not (self.seen[1.0] and self.seen[-1.0]):
            return float(np.sign(self.seen[1.0] - self.seen[-1.0]))
        p, n = self.point(1.0), self.point(-1.0)
        return 2.0 * ((p - n) @ x + (n @ n - p @ p) / 2.0) / ((p - n) @ (p - n))

    def move(self, k, step):
        own = self.y == self.y[k]
        self.a[own] *= 1.0 - step
        self.a[k] += step
        if self.a[k] <= 1e-15:
            self.a[k] = 0.0
        for i in reversed(list(self.members)):
            if self.a[i] == 0.0:
                drop(self.members, i)

    def best(self, k):
        """Return the best step on the line, found by the nearest point of a segment."""
        own, other = self.point(self.y[k]), self.point(-self.y[k])
        along = self.x[k] - own
        if along @ along < 1e-12 or self.a[k] >= 1.0:
            return 0.0
        low = -self.a[k] / (1.0 - self.a[k])
        return min(1.0, max(low, along @ (other - own) / (along @ along)))

    def learn(self, k):
        """Return the margin of example k, then learn it."""
        margin, sign = self.margin(self.x[k]), self.y[k]
        n = self.seen[sign]
        self.seen[sign] += 1
        both = self.seen[1.0] > 0 and self.seen[-1.0] > 0
        if k not in self.members:
            step = 1.0 / (n + 1)
            if n >= SEEDS:
                step = self.best(k) if both else 0.0
            if step > 0.0:
                self.members.append(k)
                self.move(k, step)
        for _ in range(self.reprocess if both else 0):
            r = self.members[self.draws.below(len(self.members))]
            step = self.best(r)
            if step != 0.0:
                self.move(r, step)
        return margin
