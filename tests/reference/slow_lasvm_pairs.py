"""LASVM for several classes as a LASVM of its own for each two classes, which share nothing."""

from __future__ import annotations

import numpy as np

from tests.reference.slow_lasvm import SlowLASVM


class SlowPairs:
    """Given the whole Gram matrix, float64; examples are named by their index in it."""

    def __init__(self, gram, y, cost, tau, second_order=False):
        k = int(y.max()) + 1
        self.K, self.y, self.n_classes, self.age = gram, y, k, np.arange(1, len(y) + 1)
        self.pairs = {
            (a, b): SlowLASVM(gram, np.where(y == a, 1.0, -1.0), cost, tau, second_order)
            for b in range(k)
            for a in range(b)
        }

    def learn(self, i):
        for pair, own in self.pairs.items():
            if self.y[i] in pair:
                own.learn(i)

    @property
    def kept(self):
        return sorted({s for own in self.pairs.values() for s in own.S})

    def make_room(self, x, gamma, draw):
        """Merge two of one class; z gets the place of the second. Of equal ones, the oldest."""
        kept, each = self.kept, self.pairs.values()
        weight = {s: np.sqrt(sum(own.alpha[s] ** 2 for own in each)) for s in kept}
        first = min(kept, key=lambda s: (weight[s], self.age[s]))
        drawn = [min(kept, key=lambda s, c=c: self._drawn(s, draw * 4 + c)) for c in range(1, 5)]
        pairs = [(i, self._nearest(i)) for i in (first, *drawn)]
        pairs = [(i, j) for i, j in pairs if j is not None]
        if weight[first] == 0.0:
            # Its equal gets its boxes.
            pairs = [(i, j) for i, j in pairs[:1] if i == first]
            pairs = [(i, j) for i, j in pairs if 2.0 - 2.0 * self.K[i, j] <= 1e-3]
        if not pairs:
            self._leave(first)
            return
        i, j = min(pairs, key=lambda p: self._cost(weight, *p))
        h = np.linspace(0.5, 1.0, 100_001) - (0.0 if weight[i] >= weight[j] else 0.5)
        log = np.log(self.K[i, j])
        lost = weight[i] * np.exp(log * (1 - h) ** 2) + weight[j] * np.exp(log * h**2)
        self._merge(i, j, h[lost.argmax()], x, gamma)

    def _leave(self, s):
        for own in self.pairs.values():
            if s in own.S:
                own.leave(s)

    def _drawn(self, s, seed):
        return (self.age[s] + seed * 16807) % 2147483647 * 48271 % 2147483647

    def _nearest(self, i):
        others = [s for s in self.kept if s != i and self.y[s] == self.y[i] and self.K[i, s] > 0.0]
        return max(others, key=lambda s: (self.K[i, s], -self.age[s]), default=None)

    def _cost(self, weight, i, j):
        return min(weight[i], weight[j]) ** 2 * (1.0 - self.K[i, j] ** 2)

    def _merge(self, i, j, h, x, gamma):
        x[j] = h * x[i] + (1.0 - h) * x[j]
        self.K[j] = self.K[:, j] = np.exp(-gamma * ((x - x[j]) ** 2).sum(axis=1))
        self.age[j] = max(self.age[i], self.age[j])
        for own in self.pairs.values():
            if i in own.S:
                for values in (own.alpha, own.A, own.B):
                    values[j] = values[i] + (values[j] if j in own.S else 0.0)
                own.alpha[i] = 0.0
                own.S = [j if s == i else s for s in own.S if s != i or j not in own.S]
            own.g[own.S] = own.y[own.S] - self.K[np.ix_(own.S, own.S)] @ own.alpha[own.S]

    def finish(self, reserve=()):
        for pair, own in self.pairs.items():
            own.finish([i for i in reserve if self.y[i] in pair])

    @property
    def dual(self):
        return sum(own.dual for own in self.pairs.values())

    def margins(self, pair):
        """Return f(x) of all examples, with b."""
        own = self.pairs[pair]
        return self.K[:, own.S] @ own.alpha[own.S] + own.bias

    def scores(self):
        """Return votes, and clipped margins between classes of equally many votes."""
        k = self.n_classes
        scores = np.zeros((len(self.y), k))
        for a, b in self.pairs:
            f = self.margins((a, b))
            near = np.clip(f, -1.0, 1.0) / (2 * k)
            scores[:, a] += (f > 0.0) + near
            scores[:, b] += (f < 0.0) - near
        return scores
