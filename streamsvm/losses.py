"""Loss functions of the margin s = y f(x) for linear learners: values and derivatives.

hinge           max(0, 1 - s)
squared hinge   max(0, 1 - s)^2 / 2
log             log(1 + exp(-s))
huber           the hinge, but (1 + h - s)^2 / 4h for 1 - h <= s <= 1 + h, with h = 1/2

All derivatives are at most 0. At s = 1, where the hinge has none, 0 is used (thesis, 3.2.3).
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_within

HINGE, SQUARED_HINGE, LOG, HUBER = 0.0, 1.0, 2.0, 3.0

LOSSES = {"hinge": HINGE, "squared_hinge": SQUARED_HINGE, "log": LOG, "huber": HUBER}
"""The loss functions by public name, as the numbers that compiled code knows them by."""

_H = 0.5


@compiled_within
def value(loss, s):
    """Return the loss (float64) at the margin s, float64; `loss` is a number of `LOSSES`."""
    if loss == LOG:
        return np.log1p(np.exp(-s)) if s > -30.0 else -s
    if loss == HUBER and abs(1.0 - s) <= _H:
        return (1.0 + _H - s) ** 2 / (4.0 * _H)
    short = max(0.0, 1.0 - s)
    return 0.5 * short * short if loss == SQUARED_HINGE else short


@compiled_within
def derivative(loss, s):
    """Return the derivative of the loss at the margin s; arguments and result as in `value`."""
    if loss == LOG:
        return -1.0 / (1.0 + np.exp(min(s, 700.0)))
    if loss == HUBER and abs(1.0 - s) <= _H:
        return (s - 1.0 - _H) / (2.0 * _H)
    if s >= 1.0:
        return 0.0
    return s - 1.0 if loss == SQUARED_HINGE else -1.0
