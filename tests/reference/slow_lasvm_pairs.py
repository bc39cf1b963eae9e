"""LASVM for several classes as a LASVM of its own for each two classes, which share nothing."""

from __future__ import annotations

import numpy as np

from tests.reference.slow_lasvm import SlowLASVM


class SlowPairs:
    """Given the whole Gram matrix, float64; examples are named by their index in it."""

    def __init__(self, gram, y, box, tau, second_order=False):
        k = int(y.max()) + 1
        self.K, self.y, self.n_classes = gram, y, k
        self.pairs = {
            (a, b): SlowLASVM(gram, np.where(y == a, 1.0, -1.0), box, tau, second_order)
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

    def stay_within(self, limit, even):
        """Remove the oldest example, or the one whose removal costs the duals least."""
        while len(self.kept) > limit:
            cost = dict.fromkeys(self.kept, 0.0)
            for own in self.pairs.values():
                for s in own.S:
                    violation, a = own.y[s] * (own.g[s] - own.bias), abs(own.alpha[s])
                    cost[s] += a * violation + 0.5 * a * a * self.K[s, s]
            leaves = min(self.kept) if even else min(cost, key=cost.get)
            for own in self.pairs.values():
                if leaves in own.S:
                    own.leave(leaves)

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
