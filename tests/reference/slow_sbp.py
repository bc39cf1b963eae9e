"""The stochastic batch perceptron in plain NumPy: every response and every mean computed afresh.

Weights are whole numbers here, and mean copies of a row. The water levels are found by sorting all
responses, as the paper's section 3.2 and the last lines of its Algorithm 3 describe them.
"""

from __future__ import annotations

import numpy as np

from tests.reference.slow_tracking import SlowDraws, drop

TIE = 1e-12


def _top(h, k):
    """Return the highest of the k lowest heights, and which part of those as high is of the k."""
    is_top = np.abs(h - h[k - 1]) <= TIE
    return h[k - 1], is_top[:k].sum() / is_top.sum()


def slow_water(c, y, copies, volume, bias):
    """Return the levels of the positive and of the negative class, and the `_top` of each."""
    if not bias:
        h = np.sort(np.repeat(c, copies))
        for k in range(1, len(h) + 1):
            level = (volume + h[:k].sum()) / k
            if k == len(h) or level < h[k] - TIE:
                return (level, level), (_top(h, k), _top(h, k))
    p, q = (np.sort(np.repeat(c[y == sign], copies[y == sign])) for sign in (1.0, -1.0))
    most = min(len(p), len(q))
    for k in range(1, most + 1):
        total = (volume + p[:k].sum() + q[:k].sum()) / k
        if k == most or total < p[k] + q[k] - TIE:
            break
    tops = _top(p, k), _top(q, k)
    p, q = np.append(p, np.inf), np.append(q, np.inf)
    rise = max(0.0, total - p[k - 1] - q[k - 1])
    up_p, up_q = min(rise, p[k] - p[k - 1]), min(rise, q[k] - q[k - 1])
    return (p[k - 1] + (rise + up_p - up_q) / 2, q[k - 1] + (rise + up_q - up_p) / 2), tops


class SlowSBP:
    """Given the whole Gram matrix, float64; examples are named by their index in it."""

    def __init__(
        self,
        gram,
        y,
        copies,
        word,
        nu=0.1,
        bias=True,
        steps=1,
        averaged=True,
        window=0,
        reservoir=0,
    ):
        self.gram, self.y, self.copies, self.nu, self.bias = gram, y, copies, nu, bias
        self.steps, self.averaged = steps, averaged
        self.window, self.reservoir = window, reservoir
        self.draws = SlowDraws(word)
        self.w, self.mean = np.zeros(len(y)), np.zeros(len(y))  # signed coefficients
        self.weights = 0.0  # the sum of those of the iterates
        self.members: list[int] = []
        self.slots: list[int] = []  # the example in each slot
        self.t = self.n_offered = 0

    def water(self, w):
        m = np.array(self.members)
        volume = self.nu * self.copies[m].sum()
        c = self.y[m] * (self.gram[m] @ w)
        return slow_water(c, self.y[m], self.copies[m], volume, self.bias)

    @property
    def can_step(self):
        return len({self.y[m] for m in self.members}) > int(self.bias)

    def margin(self, k):
        if not self.can_step:
            return float(np.sign(sum(self.y[m] for m in self.members)))
        if self.weights == 0.0:
            return 0.0
        w = self.mean if self.averaged else self.w
        p, q = self.water(w)[0]
        level = (p + q) / 2
        return (self.gram[k] @ w + (q - p) / 2) / (level if level > 1e-12 else 1.0)

    def project(self):
        self.w = self.w / max(1.0, np.sqrt(max(0.0, self.w @ self.gram @ self.w)))

    def leave(self, k):
        self.free = self.slots.index(k)
        drop(self.members, k)
        self.w[k] = self.mean[k] = 0.0
        self.project()

    def enter(self, k):
        self.n_offered += 1
        if self.window and self.n_offered > self.window:
            self.leave(k - self.window)
        if self.reservoir and len(self.members) == self.reservoir:
            place = self.draws.below(self.n_offered)
            if place >= self.reservoir:
                return
            self.leave(self.members[place])
        self.members.append(k)
        if len(self.members) > len(self.slots):
            self.slots.append(k)
        else:
            self.slots[self.free] = k

    def covered(self):
        """Return the covered copies of each member, by its index."""
        tops = self.water(self.w)[1]
        c, found = self.y * (self.gram @ self.w), np.zeros(len(self.y))
        for m in self.members:
            top, part = tops[0 if self.y[m] > 0 else 1]
            if c[m] <= top + TIE:
                found[m] = self.copies[m] * (part if c[m] >= top - TIE else 1.0)
        return found

    def draw(self):
        covered, most = self.covered(), self.copies[self.members].max()
        for _ in range(4 * len(self.members)):
            u = self.draws.uniform() * len(self.members)
            m = self.members[int(u)]
            if (u - int(u)) * most < covered[m]:
                return m
        sums = np.cumsum(covered[self.slots])
        place = np.searchsorted(sums, self.draws.uniform() * sums[-1], side="right")
        return self.slots[place]

    def iterate(self, n):
        for _ in range(n):
            m = self.draw()
            self.t += 1
            r2 = np.diag(self.gram)[self.members].max()
            self.w[m] += self.y[m] / np.sqrt(r2 * self.t)
            self.project()
            share = 2.0 / (self.t + 1)
            weight = 1.0 if self.weights == 0.0 else self.weights * share / (1.0 - share)
            self.weights += weight
            self.mean = self.mean + (self.w - self.mean) * weight / self.weights

    def learn(self, k):
        """Return the margin of example k, then learn it."""
        margin = self.margin(k)
        if k not in self.members:
            self.enter(k)
        for _ in range(self.steps if self.can_step else 0):
            if self.window or self.reservoir:
                self.t = min(self.t, self.steps * (self.window or self.reservoir))
            self.iterate(1)
        return margin
