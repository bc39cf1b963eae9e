"""The duality gap of LASVM, on the examples kept: measured, and looked at.

With a bias b (sum_s alpha_s = 0)::

    gap(b) = sum_s [ C_s max(0, y_s (g_s - b)) - alpha_s (g_s - b) ]

at the b by which the model predicts. Some other b may be better, but it is not the model's. It is
measured now and then: NumPy is fast enough, and takes no seconds to compile.

A look (see `support.looks`) is at one of the examples kept, at the present b. Its part of the gap,
divided by C_s, is at most the larger of g_max - b and b - g_min: a coefficient at 0 with y_s g_s
below that of b has no part, and neither has one at C_s with y_s g_s above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.lasvm.state import bias
from streamsvm.support import looks
from streamsvm.support.draws import uniform


def lasvm_gap(state: Any, b: float) -> KeptGap:
    """Return the gap of a model with the bias b."""
    n = int(state.info[0].n)
    cost, g, y = state.upper[:n] - state.lower[:n], state.gradient[:n] - b, state.y[:n]
    return KeptGap(float(cost @ np.maximum(0.0, y * g) - state.alpha[:n] @ g), float(cost.sum()))


@compiled_inner
def _heavy_slot(state):
    """Return a live slot, drawn with probabilities in proportion to C_s; -1 if all are dead."""
    info, draws = state.info[0], state.look_draws
    tries = max(looks.TRIES, info.n >> 3) if info.cost_most > 0.0 else 0
    for _ in range(tries):
        s = np.int64(uniform(draws) * info.n)
        cost = state.upper[s] - state.lower[s]
        if cost >= info.cost_most or uniform(draws) * info.cost_most < cost:
            return s
    # One example outweighs all others, or the largest C_s is not known.
    total = 0.0
    for t in range(info.n):
        total += state.upper[t] - state.lower[t]
    left = uniform(draws) * total
    for t in range(info.n):
        left -= state.upper[t] - state.lower[t]
        if left < 0.0:
            return np.int64(t)
    return np.int64(-1)


@compiled_inner
def look(state):
    """Look at one of the examples kept, if there are any."""
    info = state.info[0]
    if info.n == info.n_dead:
        return
    s = _heavy_slot(state)
    if s < 0:
        return
    b, most = bias(state), 0.0
    if info.i >= 0 and info.j >= 0:
        # Below 0 where b may be anything in an interval: then all parts are 0.
        most = max(most, info.g_max - b, b - info.g_min)
    g, cost = state.gradient[s] - b, state.upper[s] - state.lower[s]
    # Not above the bound by rounding.
    z = min(most, max(0.0, max(0.0, state.y[s] * g) - state.alpha[s] / cost * g))
    looks.record(info, z, most, 1.0)
    info.n_looked += 1
