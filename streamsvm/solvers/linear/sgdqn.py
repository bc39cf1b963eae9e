"""SGD-QN: stochastic gradients with a diagonal rescaling (thesis 2010, 3.2, Algorithm 8).

Problem and symbols are those of `sgd`. Kept besides: B, one positive number a weight, between
1 / (100 lambda) and its first value 1 / lambda. One step an example::

    w <- w - (t + t0)^-1 c_i l'(y_i f(x_i)) y_i B x_i                                   (line 4)

every `skip` examples w <- w - skip (t + t0)^-1 lambda B w (line 13), and with the example after
that B moves towards the ratios of the secant equation (3.6), a share 2 / r of the way (lines 6 to
9)::

    [w' - w]_j / [g(w') - g(w)]_j = 1 / (lambda + (l'(s') - l'(s)) c_i / (a B_j)),   a = step

which is 1 / lambda where x_ij is 0 or the step was (3.2.2, by continuity).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import chosen_by, compiled_inner, compiled_leaf, compiled_within
from streamsvm.losses import derivative
from streamsvm.solvers.linear.state import (
    BIAS,
    COUNT,
    N_UPDATES,
    UPDATE,
    R,
    T,
    capped_rate,
    count_values,
    dot,
    nonzero,
    rate,
    skip_of,
    step_size,
)
from streamsvm.support.rows import SparseRows

_LEAST = 1e-2
"""B never falls below this times 1 / lambda (line 8)."""


@compiled_leaf
def _add_dense(w, b, x, r, amount):
    for c in range(x.shape[1]):
        w[c] += amount * b[c] * np.float64(x[r, c])


@compiled_within
def _add_sparse(w, b, x, r, amount):
    for t in range(x.start[r], x.start[r + 1]):
        c, value = nonzero(x, t)
        w[c] += amount * b[c] * value


@compiled_leaf
def _square_dense(b, x, r):
    total = 0.0
    for c in range(x.shape[1]):
        total += b[c] * np.float64(x[r, c]) * np.float64(x[r, c])
    return total


@compiled_within
def _square_sparse(b, x, r):
    total = 0.0
    for t in range(x.start[r], x.start[r + 1]):
        c, value = nonzero(x, t)
        total += b[c] * value * value
    return total


_square: Any = chosen_by(1, {np.ndarray: _square_dense, SparseRows: _square_sparse})
_add: Any = chosen_by(2, {np.ndarray: _add_dense, SparseRows: _add_sparse})


@compiled_leaf
def _shrink(w, b, amount):
    """Take amount B w from w (line 13); nothing changes its sign."""
    for c in range(w.size):
        w[c] *= max(0.0, 1.0 - amount * b[c])


@compiled_inner
def _moved(b, curvature, lam, share):
    """Return a B that has moved towards 1 / (lambda + curvature) (lines 7 and 8)."""
    return max(b + share * (1.0 / (lam + curvature) - b), _LEAST / lam)


@compiled_inner
def _estimate_dense(b, x, r, change, lam, share):
    for c in range(x.shape[1]):
        curvature = change / b[c] if x[r, c] != 0.0 else 0.0
        b[c] = _moved(b[c], curvature, lam, share)


@compiled_within
def _estimate_sparse(b, x, r, change, lam, share):
    t, stop = x.start[r], x.start[r + 1]
    for c in range(x.d):
        curvature = 0.0
        if t < stop and x.columns[t] == c:
            curvature = change / b[c]
            t += 1
        b[c] = _moved(b[c], curvature, lam, share)


_estimate: Any = chosen_by(1, {np.ndarray: _estimate_dense, SparseRows: _estimate_sparse})


@compiled_within
def learn_row(state, x, r, o, y, weight, schedule):
    """Learn row r for one output; return its margin from before; see `sgd.learn_row`."""
    info, w, b = state.info[o], state.weights[o, 0], state.weights[o, 1]
    f = dot(w, x, r) + info[BIAS]
    if weight == 0.0:
        return f
    lam, eta = schedule.lam, rate(schedule, info[T])
    s = y * f
    slope = weight * derivative(schedule.loss, s)
    count_values(schedule, info, x, r)
    step = 0.0
    if slope != 0.0:
        updates = info[UPDATE] > 0.0
        norm = _square(b, x, r)
        step = step_size(schedule, slope, s, capped_rate(schedule, eta, norm), norm)
        _add(w, b, x, r, y * step)
        info[BIAS] += schedule.bias_rate * y * step / lam
        info[N_UPDATES] += 1.0
        if updates:
            after = s + step * (norm + schedule.bias_rate / lam)
            slope = weight * derivative(schedule.loss, after) - slope
    if info[UPDATE] > 0.0:
        # How much the slope changed, over the step: 0 where there was none.
        change = slope / step if step > 0.0 else 0.0
        _estimate(b, x, r, change, lam, min(1.0, 2.0 / info[R]))
        info[R] += 1.0
        info[UPDATE] = 0.0
    info[T] += 1.0
    info[COUNT] -= 1.0
    if info[COUNT] <= 0.0:
        skip = skip_of(schedule, info)
        if info[R] == 0.0:
            info[R] = max(1.0, schedule.t0 / skip)
        _shrink(w, b, skip * eta * lam)
        info[COUNT], info[UPDATE] = skip, 1.0
    return f
