"""Linear SVMs by stochastic gradients as the papers write them: w itself, no tricks.

Algorithm 7 (SGD and SVMSGD2), averaged SGD with all iterates added up, and Algorithm 8 (SGD-QN).
"""

from __future__ import annotations

import numpy as np

H = 0.5


def loss(name, s):
    if name == "hinge":
        return max(0.0, 1.0 - s)
    if name == "squared_hinge":
        return 0.5 * max(0.0, 1.0 - s) ** 2
    if name == "log":
        return float(np.logaddexp(0.0, -s))
    if abs(1.0 - s) <= H:
        return (1.0 + H - s) ** 2 / (4.0 * H)
    return max(0.0, 1.0 - s)


def slope(name, s):
    if name == "hinge":
        return -1.0 if s < 1.0 else 0.0
    if name == "squared_hinge":
        return -max(0.0, 1.0 - s)
    if name == "log":
        return -1.0 / (1.0 + np.exp(min(s, 700.0)))
    if abs(1.0 - s) <= H:
        return -(1.0 + H - s) / (2.0 * H)
    return -1.0 if s < 1.0 else 0.0


def best_step(cost, n, last):
    """Return the step whose pass over n examples costs least, among those that are tried."""
    steps = range(-12, 4)

    def least(some):
        return min((k for k in some if k in steps), key=lambda k: (cost(k), k))

    if n < 8:
        return 0
    if n <= 256:
        middle = least(steps[::2])
        return least([middle - 1, middle, middle + 1])
    middle = min(max(last, steps[0]), steps[-1])
    for side in (-1, 1):
        best = middle
        while least([best, best + side]) != best:
            best += side
        if best != middle:
            return best
    return middle


class SlowLinear:
    """One output; rows are NumPy vectors."""

    def __init__(self, d, name, lam, t0, power=1.0, skip=1, bias_rate=0.01):
        self.name, self.lam, self.t0, self.power = name, lam, t0, power
        self.skip, self.bias_rate = skip, bias_rate
        self.w, self.b, self.t = np.zeros(d), 0.0, 0
        self.count = 0
        self.average, self.average_b = np.zeros(d), 0.0
        # SGD-QN
        self.B, self.r, self.update = np.full(d, 1.0 / lam), 0.0, False

    def margin(self, x):
        return self.w @ x + self.b

    def rate(self):
        return (self.t0 / (self.t0 + self.t)) ** self.power / (self.lam * self.t0)

    def step(self, s, weight, eta, square):
        # An outlier does not move its own margin by more than this.
        most = 1000.0 * max(1.0, 1.0 / (self.lam * self.t0))
        if eta * square > most:
            eta = most / square
        step = -eta * weight * slope(self.name, s)
        if self.name == "squared_hinge" and 0.0 < 1.0 - s < step * square:
            step = (1.0 - s) / square
        return step

    def sgd(self, x, y, weight=1.0):
        """Lines 3 to 9 of Algorithm 7; the regularisation first, as it is of the same w_t."""
        f = self.margin(x)
        if weight == 0.0:
            return f
        eta = self.rate()
        step = self.step(y * f, weight, eta, x @ x)
        self.count -= 1
        if self.count <= 0:
            self.w = max(0.0, 1.0 - self.skip * eta * self.lam) * self.w
            self.count = self.skip
        self.w = self.w + step * y * x
        self.b += self.bias_rate * step * y
        self.t += 1
        share = min(1.0, 3.0 / (self.t + 2.0))
        self.average = (1.0 - share) * self.average + share * self.w
        self.average_b = (1.0 - share) * self.average_b + share * self.b
        return f

    def sgdqn(self, x, y, weight=1.0):
        """Lines 4 to 16 of Algorithm 8."""
        f = self.margin(x)
        if weight == 0.0:
            return f
        lam, eta, w, b = self.lam, self.rate() * self.lam, self.w, self.b
        step = self.step(y * f, weight, eta, x @ (self.B * x))
        moved = step * y * self.B * x
        self.w = w + moved
        self.b = b + self.bias_rate * step * y / lam
        if self.update:
            self._estimate(x, y, weight, moved, f)
        self.count -= 1
        if self.count <= 0:
            if self.r == 0.0:
                self.r = max(1.0, self.t0 / self.skip)
            self.w = np.maximum(0.0, 1.0 - self.skip * eta * lam * self.B) * self.w
            self.count, self.update = self.skip, True
        self.t += 1
        return f

    def _estimate(self, x, y, weight, moved, f):
        # g(w + moved) - g(w), term by term: as a difference of gradients it would lose digits.
        slopes = slope(self.name, y * self.margin(x)) - slope(self.name, y * f)
        change = self.lam * moved + weight * slopes * y * x
        ratio = np.full(len(x), 1.0 / self.lam)
        same = moved == 0.0
        ratio[~same] = moved[~same] / change[~same]
        share = min(1.0, 2.0 / self.r)
        self.B = self.B + share * (ratio - self.B)
        self.B = np.maximum(self.B, 1e-2 / self.lam)
        self.r, self.update = self.r + 1.0, False
