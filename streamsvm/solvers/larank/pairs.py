"""The pair of classes that OPTIMIZE (Algorithm 20) chooses for a support pattern."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_within


@compiled_within
def own_pair(state, i):
    """Return the best c+ and c- of slot i among its classes in `own`, and the step's gain."""
    rising, falling = np.int64(-1), np.int64(-1)
    most, least, y = -np.inf, np.inf, state.y[i]
    for j in range(state.n_own[i]):
        c = np.int64(state.own[i, j])
        g = state.gradient[c, i]
        if g < least:
            falling, least = c, g
        # The coefficient of a class other than y is below its bound 0.
        if g > most and (c != y or state.coefficient[c, state.place[c, i]] < state.cost[i]):
            rising, most = c, g
    if rising < 0 or most <= least:
        return rising, falling, 0.0
    return rising, falling, _gain(state, i, rising, most - least)


@compiled_within
def pair_of_two(state, i):
    """Return the same as `own_pair` for exactly two classes, the usual case, without branches."""
    a, b = np.int64(state.own[i, 0]), np.int64(state.own[i, 1])
    slope = state.gradient[a, i] - state.gradient[b, i]
    rising, falling = (a, b) if slope > 0.0 else (b, a)
    return rising, falling, _gain(state, i, rising, abs(slope))


@compiled_within
def _gain(state, i, rising, slope):
    """Return the gain of a step of slot i, whose coefficient for the class `rising` is not 0."""
    bound = state.cost[i] if rising == state.y[i] else 0.0
    k = max(np.float64(state.diagonal[i]), 1e-12)
    step = min(slope / (2.0 * k), bound - state.coefficient[rising, state.place[rising, i]])
    return step * (slope - step * k)
