"""Averaged tracking as Algorithms 1 and 2 write it: a full Gram matrix, the averages as they are.

Nothing is kept up to date here: f, the dual and the sums of C_i are computed afresh at every use.
The draws are those of the compiled code, in Python's integers, and so is the order of the members:
a leaver's place is taken by the last one.
"""

from __future__ import annotations

import numpy as np

WORD = 2**64 - 1


class SlowDraws:
    """xorshift64 from a given word."""

    def __init__(self, word):
        self.word = int(word)

    def below(self, n):
        return int(self.uniform() * n)

    def uniform(self):
        self.word ^= self.word << 13 & WORD
        self.word ^= self.word >> 7
        self.word ^= self.word << 17 & WORD
        return (self.word >> 11) / 2**53


def drop(members, i):
    """Let i leave the members: the last one takes its place."""
    members[members.index(i)] = members[-1]
    members.pop()


class SlowTracking:
    """Given the whole Gram matrix, float64; examples are named by their index in it."""

    def __init__(
        self, gram, y, cost, word, K, process=True, keep_zeros=True, tau=0.0, window=0, reservoir=0
    ):
        self.gram, self.y, self.cost, self.K, self.tau = gram, y, cost, K, tau
        self.process, self.keep_zeros = process, keep_zeros
        self.window, self.reservoir = window, reservoir
        self.draws = SlowDraws(word)
        self.a, self.average = np.zeros(len(y)), np.zeros(len(y))
        self.members: list[int] = []
        # Whose coefficient may have changed since the last example, in the order of the changes.
        self._order: list[int] = []
        self.arrival: dict[int, int] = {}
        self.n_offered = self.n_seen = self.n_null = 0
        self.process_gain = self.lost = self.skipped = 0.0
        self.mean_gain = self.scaled_gain = self.width = self.r2 = 0.0
        self.looks = None  # a SlowLooks, if its sums are wanted, too
        self.largest, self.equal = 0.0, True  # of all C_i so far

    def f(self, k, a=None):
        return self.gram[k] @ (self.y * (self.a if a is None else a))

    @property
    def dual(self):
        signed = self.y * self.a
        return self.a.sum() - 0.5 * signed @ self.gram @ signed

    def increase(self, i):
        """Return the exact step on i, g_i and what the step adds to the dual."""
        g = 1.0 - self.y[i] * self.f(i)
        step = max(-self.a[i], min(self.cost[i] - self.a[i], g / self.gram[i, i]))
        return step, g, step * (g - 0.5 * step * self.gram[i, i])

    def _leave(self, i):
        before = self.dual
        self.a[i] = 0.0
        self.lost += before - self.dual
        drop(self.members, i)

    def _slide(self, k):
        for i in list(self.members):
            if self.window and self.arrival[i] <= self.n_offered - self.window and i != k:
                self._leave(i)

    def _make_room(self):
        if not self.reservoir or len(self.members) < self.reservoir:
            return True
        place = self.draws.below(self.n_offered)
        if place < len(self.members):
            self._leave(self.members[place])
            return True
        return False

    def learn(self, k):
        """Learn example k; return its margin from before."""
        margin = self.f(k, self.average)
        if self.cost[k] <= 0.0:
            return margin
        if not self.keep_zeros:
            for i in [i for i in self._order if self.a[i] == 0.0 and i in self.members]:
                self._leave(i)
        self._order = []
        self.n_offered += 1
        self._slide(k)
        if k not in self.members and self._make_room():
            self.members.append(k)
            self.r2 = max(self.r2, self.gram[k, k])
            self.equal &= self.largest in (0.0, self.cost[k])
            self.largest = max(self.largest, self.cost[k])
        if k in self.members:
            self.arrival[k] = self.n_offered
            self._touch(k)
            if self.process:
                step, _, gain = self.increase(k)
                self.a[k] = self._moved(k, step)
                self.process_gain += gain
        self.n_seen += 1
        if self.members:
            self._steps()
        return margin

    def _touch(self, i):
        if i not in self._order:
            self._order.append(i)

    def _moved(self, i, step):
        return self.cost[i] if step == self.cost[i] - self.a[i] else self.a[i] + step

    def _steps(self):
        total = 0.0
        average = np.zeros(len(self.y))
        for k in range(1, self.K + 1):
            i = self.members[self.draws.below(len(self.members))]
            if self.looks is not None and self.equal and k > 1:
                self._look_at(i)
            step, g, gain = self.increase(i)
            if step == 0.0 or abs(g) <= self.tau:
                self.n_null += 1
                self.skipped += gain
            else:
                self.a[i] = self._moved(i, step)
                self._touch(i)
            total += gain
            average = (k - 1) / k * average + 1 / k * self.a
            if self.looks is not None and (k == self.K or not self.equal):
                self._look_at(self.looks.heavy(self.members, self.cost, self.largest))
        self.average = average
        cost = self.cost[self.members]
        self.mean_gain += total / self.K
        self.scaled_gain += total / self.K / cost.mean()
        self.width += self.r2 * (cost**2).mean() / cost.mean() ** 2

    def _look_at(self, i):
        g, share = 1.0 - self.y[i] * self.f(i), self.a[i] / self.cost[i]
        signed = self.y * self.a
        bound = 1.0 + np.sqrt(self.r2 * max(0.0, signed @ self.gram @ signed))
        self.looks.record(max((1.0 - share) * g, -share * g), bound, 1.0 / self.K)
