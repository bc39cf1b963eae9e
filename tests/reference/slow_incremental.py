"""The exact incremental SVM in plain NumPy, and another solver of the problem, for comparison.

The path is as the paper writes it: each step solves the margin set's equations afresh. It is for
data in general position: no two slots reach the end of a step at once, none depends on the margin
set.
"""

from __future__ import annotations

import numpy as np


class SlowExact:
    """Examples by their index in a whole Gram matrix, float64; coefficients of others are 0."""

    def __init__(self, gram, target, low, high):
        self.gram, self.target = gram, target
        self.low, self.high = low.copy(), high.copy()
        self.beta, self.b = np.zeros(len(target)), 0.0
        self.here: list[int] = []
        self.margin: list[int] = []

    @property
    def h(self):
        return self.target - self.gram @ self.beta - self.b

    def step_of(self, c):
        """Return the changes of b, of the margin set and of all gradients, for one of beta_c."""
        m = len(self.margin)
        Q = np.zeros((m + 1, m + 1))
        Q[0, 1:] = Q[1:, 0] = 1.0
        Q[1:, 1:] = self.gram[np.ix_(self.margin, self.margin)]
        v = -np.linalg.solve(Q, np.concatenate([[1.0], self.gram[self.margin, c]]))
        gamma = self.gram[:, c] + v[0] + self.gram[:, self.margin] @ v[1:]
        return v[0], v[1:], -gamma

    def limits(self, c, sign, rates, gradients):
        """Yield how far it is until a slot other than c changes sides, and which one."""
        h = self.h
        for s, rate in zip(self.margin, sign * rates, strict=True):
            bound = self.high[s] if rate > 0.0 else self.low[s]
            if rate != 0.0:
                yield (bound - self.beta[s]) / rate, s
        for s in self.here:
            if s == c or s in self.margin:
                continue
            is_high = self.beta[s] == self.high[s]
            rate = sign * gradients[s]
            if (rate < 0.0 and is_high) or (rate > 0.0 and not is_high):
                yield abs(h[s] / rate), s

    def follow(self, c, target=None):
        """Move beta_c to `target`, or until c is optimal."""
        while True:
            h = self.h[c]
            if target is None:
                sign, end = (1.0, self.high[c]) if h > 0.0 else (-1.0, self.low[c])
            else:
                sign, end = float(np.sign(target - self.beta[c])), target
            if sign == 0.0 or self.beta[c] == end:
                return
            if self.margin:
                db, rates, gradients = self.step_of(c)
                own = abs(end - self.beta[c])
                found = list(self.limits(c, sign, rates, gradients))
                if target is None:
                    found.append((abs(h / gradients[c]), c))
            else:
                # Only the bias changes.
                db, rates, gradients = 1.0, np.zeros(0), -np.ones(len(self.beta))
                own = np.inf
                found = list(self.limits(c, sign, rates, gradients))
                if target is None:
                    found.append((abs(h), c))
            length, s = min(found, default=(np.inf, -1))
            had_margin = bool(self.margin)
            length = min(length, own)
            self.b += sign * length * db
            if had_margin:
                self.beta[self.margin] += sign * length * rates
                self.beta[c] += sign * length
            if length == own:
                self.beta[c] = end
            elif s == c:
                if self.low[c] < self.beta[c] < self.high[c]:
                    self.margin.append(c)
                return
            elif s in self.margin:
                self.margin.remove(s)
                near_high = self.high[s] - self.beta[s] < self.beta[s] - self.low[s]
                self.beta[s] = self.high[s] if near_high else self.low[s]
            else:
                self.margin.append(s)

    def add(self, c):
        self.here.append(c)
        self.follow(c)

    def remove(self, c):
        if c in self.margin:
            self.margin.remove(c)
        self.follow(c, 0.0)
        self.here.remove(c)

    @property
    def dual(self):
        return self.target @ self.beta - 0.5 * self.beta @ self.gram @ self.beta


def solved(gram, target, low, high, eps=1e-10, most=200_000):
    """Return coefficients that are optimal up to `eps`, by pairs of second order (SMO).

    After each `len(target)` pairs the gradients are computed anew. Beyond `most` pairs it gives up.
    """
    n, diagonal = len(target), np.diag(gram)
    beta, h = np.zeros(n), target.astype(float).copy()
    for t in range(most):
        if t % max(n, 50) == 0:
            h = target - gram @ beta
        up, down = beta < high, beta > low
        if not up.any() or not down.any():
            return beta
        i = int(np.where(up, h, -np.inf).argmax())
        gain = h[i] - h
        if gain[down].max() < eps:
            return beta
        curve = np.maximum(diagonal[i] + diagonal - 2.0 * gram[i], 1e-14)
        j = int(np.where(down & (gain > 0.0), gain**2 / curve, -1.0).argmax())
        room_i, room_j = high[i] - beta[i], beta[j] - low[j]
        step = min(gain[j] / curve[j], room_i, room_j)
        beta[i] = high[i] if step == room_i else beta[i] + step
        beta[j] = low[j] if step == room_j else beta[j] - step
        h -= step * (gram[i] - gram[j])
    raise ArithmeticError(f"not optimal after {most} pairs: {gain[down].max():.1e}")


def dual_of(gram, target, beta):
    """Return the dual objective."""
    return float(target @ beta - 0.5 * beta @ gram @ beta)
