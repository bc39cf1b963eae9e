"""LaRank as Algorithms 17 to 21 write it: a full Gram matrix, nothing kept up to date.

The draws are those of the compiled code, and so is the order of the support patterns: a leaver's
place is taken by the last one. Also here: the batch optimum of the multiclass SVM, for small sets.
"""

from __future__ import annotations

import numpy as np

from tests.reference.slow_tracking import SlowDraws, drop
from tests.reference.slow_window import SlowWindow

SPARES, EQUAL = 16, 1e-3


class SlowLaRank:
    """Given the whole Gram matrix, float64; examples are named by their index in it."""

    def __init__(self, gram, y, cost, word, candidates=1, tau=1e-3, window=0, limit=None):
        self.gram, self.y, self.cost, self.tau = gram, np.asarray(y), cost, tau
        self.candidates = candidates
        self.window, self.limit = SlowWindow(window), limit
        self.draws = SlowDraws(word)
        self.beta = np.zeros((len(y), int(max(y)) + 1))
        self.patterns: list[int] = []
        self.n_classes = 0

    def at(self, beta, patterns, word):
        """Go to a state: coefficients, the order of the patterns, the next draw."""
        self.beta, self.patterns, self.draws.word = beta, patterns, int(word)

    def gradient(self, i):
        """Return the gradients of an example, of the classes seen so far (equation 5.4)."""
        k = self.n_classes
        return (np.arange(k) == self.y[i]) - self.gram[i] @ self.beta[:, :k]

    @property
    def dual(self):
        own = self.beta[np.arange(len(self.y)), self.y].sum()
        return own - 0.5 * np.einsum("ic,ij,jc->", self.beta, self.gram, self.beta)

    def room(self, i, c):
        return (self.cost[i] if c == self.y[i] else 0.0) - self.beta[i, c]

    def step(self, i, rising, falling):
        """SMOSTEP (Algorithm 17)."""
        g = self.gradient(i)
        slope, room = g[rising] - g[falling], self.room(i, rising)
        if rising == falling or slope <= self.tau or room <= 0.0:
            return
        length = min(slope / (2.0 * self.gram[i, i]), room)
        at_bound = length == room
        self.beta[i, rising] = self.beta[i, rising] + (room if at_bound else length)
        self.beta[i, falling] -= length
        if not self.beta[i].any():
            drop(self.patterns, i)

    def extremes(self, i, classes):
        g = self.gradient(i)
        rising = [c for c in classes if self.room(i, c) > 0.0]
        if not rising:
            return None
        return max(rising, key=lambda c: g[c]), min(classes, key=lambda c: g[c])

    def gain(self, i, pair):
        g, k = self.gradient(i), self.gram[i, i]
        slope = g[pair[0]] - g[pair[1]]
        length = min(slope / (2.0 * k), self.room(i, pair[0]))
        return length * (slope - length * k) if slope > 0.0 else 0.0

    def process_new(self, i):
        """PROCESSNEW (Algorithm 18)."""
        g = self.gradient(i)
        others = [c for c in range(self.n_classes) if c != self.y[i]]
        if not others:
            return
        falling = min(others, key=lambda c: g[c])
        violation = g[self.y[i]] - g[falling]
        if violation > self.tau:
            self.patterns.append(i)
            self.step(i, self.y[i], falling)
        elif violation >= -self.tau and len(self.spares()) < SPARES:
            self.patterns.append(i)

    def spares(self):
        return [i for i in self.patterns if not self.beta[i].any()]

    def learn_spares(self):
        """Make a step on those that violate optimality now; those that bound nothing leave."""
        # As patterns change their places when one leaves.
        at = 0
        while at < len(self.patterns):
            i, at = self.patterns[at], at + 1
            if self.beta[i].any():
                continue
            g = self.gradient(i)
            falling = min((c for c in range(self.n_classes) if c != self.y[i]), key=lambda c: g[c])
            if g[self.y[i]] - g[falling] < -self.tau:
                drop(self.patterns, i)
                at -= 1
            else:
                self.step(i, self.y[i], falling)

    def pick(self):
        return self.patterns[self.draws.below(len(self.patterns))]

    def process_old(self):
        """PROCESSOLD (Algorithm 19); return what a step was tried on, if on anything."""
        i = self.pick()
        pair = self.extremes(i, range(self.n_classes))
        if not pair:
            return None
        self.step(i, *pair)
        return i, *pair

    def optimize(self):
        """OPTIMIZE (Algorithm 20) on the best of some patterns; return as above."""
        best, chosen = 0.0, None
        for _ in range(self.candidates):
            i = self.pick()
            pair = self.extremes(i, np.flatnonzero(self.beta[i]).tolist())
            if pair and self.gain(i, pair) > best:
                best, chosen = self.gain(i, pair), (i, *pair)
        if chosen:
            self.step(*chosen)
        return chosen

    def stay_within(self, newest):
        self.window.note(self.y[newest], newest, self.n_classes)
        for i in list(self.patterns) if self.window.window else ():
            if not self.window.holds(self.y[i], i, newest):
                self.beta[i] = 0.0
                drop(self.patterns, i)
        while self.limit and len(self.patterns) > self.limit:
            old = [i for i in self.patterns if i != newest or not self.beta[i].any()]
            least = min(old, key=lambda i: (self.beta[i] ** 2).sum() * self.gram[i, i])
            near = [i for i in self.patterns if i != least and self.y[i] == self.y[least]]
            own = self.beta[least].copy()
            self.beta[least] = 0.0
            drop(self.patterns, least)
            heir = max(near, key=lambda i: self.gram[least, i], default=None)
            if near and (own.any() or 2.0 - 2.0 * self.gram[least, heir] <= EQUAL):
                self.beta[heir] += min(1.0, self.gram[least, heir] / self.gram[heir, heir]) * own
                self.cost[heir] += self.cost[least]

    def learn(self, i):
        """Learn example i by PROCESSNEW alone; return its scores from before."""
        self.n_classes = max(self.n_classes, int(self.y[i]) + 1)
        scores = self.gram[i] @ self.beta[:, : self.n_classes]
        self.process_new(i)
        self.stay_within(i)
        self.learn_spares()
        return scores


def batch_optimum(gram, y, cost, n_classes, sweeps=1000):
    """Return beta at the optimum of the dual, by exact block steps (Crammer and Singer, 2001).

    The block of example i: min k/2 |b - b_i - g/k|^2 with sum_c b_c = 0 and b_c <= C [c = y_i],
    which is v - theta clipped at the bounds, theta found by bisection.
    """
    n = len(y)
    beta, target = np.zeros((n, n_classes)), np.eye(n_classes)[y]
    bounds = target * np.asarray(cost)[:, None]
    for _ in range(sweeps):
        moved = 0.0
        for i in range(n):
            g = target[i] - gram[i] @ beta
            v = beta[i] + g / gram[i, i]
            low, high = v.min() - bounds[i].max() - 1.0, v.max() + 1.0
            for _ in range(60):
                theta = 0.5 * (low + high)
                if np.minimum(v - theta, bounds[i]).sum() > 0.0:
                    low = theta
                else:
                    high = theta
            new = np.minimum(v - 0.5 * (low + high), bounds[i])
            moved = max(moved, np.abs(new - beta[i]).max())
            beta[i] = new
        if moved < 1e-10:
            break
    return beta


def dual_of(gram, y, beta):
    return beta[np.arange(len(y)), y].sum() - 0.5 * np.einsum("ic,ij,jc->", beta, gram, beta)
