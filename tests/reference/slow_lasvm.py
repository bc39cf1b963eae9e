"""LASVM as Algorithms 11-13 of the thesis write it: a full Gram matrix, a list S, plain NumPy."""

from __future__ import annotations

import numpy as np

SEEDS, SPARES = 5, 16


class SlowLASVM:
    """Given the whole Gram matrix, float64; examples are named by their index in it."""

    def __init__(self, gram, y, cost, tau, second_order=False):
        self.K, self.y, self.tau, self.second_order = gram, y, tau, second_order
        self.A, self.B = np.minimum(0, cost * y), np.maximum(0, cost * y)
        self.alpha, self.g = np.zeros(len(y)), np.zeros(len(y))
        self.S: list[int] = []
        # Set when a choice hung on rounding: two candidates as good as equal
        # (gains are compared in single precision).
        self.ambiguous = False

    def _choose(self, candidates, worth):
        ranked = sorted(candidates, key=worth, reverse=True)
        if len(ranked) > 1:
            first, second = worth(ranked[0]), worth(ranked[1])
            self.ambiguous |= abs(first - second) <= 1e-5 * (1.0 + abs(first))
        return ranked[0] if ranked else None

    def _extremes(self):
        rising = [s for s in self.S if self.alpha[s] < self.B[s]]
        falling = [s for s in self.S if self.alpha[s] > self.A[s]]
        return (
            self._choose(rising, lambda s: self.g[s]),
            self._choose(falling, lambda s: -self.g[s]),
        )

    def _gain(self, i, j):
        eta = self.K[i, i] + self.K[j, j] - 2 * self.K[i, j]
        return (self.g[i] - self.g[j]) ** 2 / max(eta, 1e-12)

    def _step(self, i, j):
        eta = self.K[i, i] + self.K[j, j] - 2 * self.K[i, j]
        room_i, room_j = self.B[i] - self.alpha[i], self.alpha[j] - self.A[j]
        free = (self.g[i] - self.g[j]) / eta if eta > 1e-12 else np.inf
        step = min(free, room_i, room_j)
        old = self.alpha[[i, j]].copy()
        self.alpha[i] = self.B[i] if step == room_i else self.alpha[i] + step
        self.alpha[j] = self.A[j] if step == room_j else self.alpha[j] - step
        self.g[self.S] -= step * (self.K[i, self.S] - self.K[j, self.S])
        return (self.alpha[[i, j]] != old).any()

    def process(self, k):
        if k in self.S:
            return
        i, j = self._extremes()
        partner = j if self.y[k] > 0 else i
        if partner is None and len(self.S) >= SEEDS:
            return
        self.g[k] = self.y[k] - self.K[k, self.S] @ self.alpha[self.S]
        if partner is None:
            self.S.append(k)
            return
        violation = self.g[k] - self.g[partner] if self.y[k] > 0 else self.g[partner] - self.g[k]
        if violation <= self.tau:
            # Kept for an example still to come, if b is an interval that this one narrows.
            if i is not None and j is not None and self.g[i] <= self.g[j]:
                if self.g[k] > self.g[i] if self.y[k] > 0 else self.g[k] < self.g[j]:
                    self.S.append(k)
            if k not in self.S and len(self._zeros()) < SPARES and self._bounds_bias(k, i, j):
                self.S.append(k)
            return
        if self.second_order:
            partner = self._best(k)
        self.S.append(k)
        self._step(*((k, partner) if self.y[k] > 0 else (partner, k)))

    def _zeros(self):
        return [s for s in self.S if self.alpha[s] == 0]

    def _bounds_bias(self, k, i, j):
        """Tell whether k, with coefficient 0, is one of those that b is computed from."""
        if i is None or j is None or self.g[i] - self.g[j] > self.tau:
            return False
        rises = self.y[k] > 0
        return self.g[k] >= self.g[i] - self.tau if rises else self.g[k] <= self.g[j] + self.tau

    def _best(self, k):
        if self.y[k] > 0:
            others = [s for s in self.S if self.alpha[s] > self.A[s] and self.g[s] < self.g[k]]
            return self._choose(others, lambda s: self._gain(k, s))
        others = [s for s in self.S if self.alpha[s] < self.B[s] and self.g[s] > self.g[k]]
        return self._choose(others, lambda s: self._gain(s, k))

    def reprocess(self):
        i, j = self._extremes()
        if i is None or j is None or self.g[i] - self.g[j] <= self.tau:
            return False
        if self.second_order:
            others = [s for s in self.S if self.alpha[s] > self.A[s] and self.g[s] < self.g[i]]
            j = self._choose(others, lambda s: self._gain(i, s))
        return self._step(i, j)

    def remove(self):
        i, j = self._extremes()
        if i is None or j is None:
            return
        for s in self._zeros():
            few = len(self._zeros()) <= SPARES or s in (i, j)
            if self._bounds_bias(s, i, j) and few:
                continue
            if self.g[s] <= self.g[j] if self.y[s] > 0 else self.g[s] >= self.g[i]:
                self.S.remove(s)

    def learn(self, k):
        self.process(k)
        if self.reprocess():
            self.remove()

    def finish(self, reserve=()):
        """REPROCESS to the end, and again after PROCESS of those in reserve that violate."""
        while True:
            while self.reprocess():
                pass
            self.remove()
            before = len(self.S)
            for k in reserve:
                self.process(k)
            if len(self.S) == before:
                return

    def leave(self, k):
        """Remove k; the best partners get its coefficient."""
        self.S.remove(k)
        while self.alpha[k] != 0.0:
            i, j = self._extremes()
            rises = self.alpha[k] > 0.0
            p = i if rises else j
            room = 0.0 if p is None else self.B[p] - self.alpha[p]
            if p is not None and not rises:
                room = self.alpha[p] - self.A[p]
            step = abs(self.alpha[k]) if p is None else min(abs(self.alpha[k]), room)
            step = step if rises else -step
            self.alpha[k] -= step
            self.g[self.S] += step * self.K[k, self.S]
            if p is not None:
                self.alpha[p] += step
                self.g[self.S] -= step * self.K[p, self.S]

    @property
    def bias(self):
        i, j = self._extremes()
        known = [self.g[s] for s in (i, j) if s is not None]
        return float(np.mean(known)) if known else 0.0

    @property
    def delta(self):
        i, j = self._extremes()
        return 0.0 if i is None or j is None else self.g[i] - self.g[j]

    @property
    def dual(self):
        S = self.S
        a = self.alpha[S]
        return a @ self.y[S] - 0.5 * a @ self.K[np.ix_(S, S)] @ a
