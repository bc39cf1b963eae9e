"""The loops over all gradients: one pass to update them, one to choose the partner of a pair.

A maximum over floats does not vectorise as written, so each lane of 16 keeps its own, in memory;
the slot is then looked for in the winning lane only. All arrays are read up to the next multiple of
16: unused slots have A = B = alpha = 0 and are never chosen.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled, compiled_leaf

LANES = 16
_TINY = np.float32(1e-12)


@compiled_leaf
def _update_lanes(alpha, lower, upper, g, row_i, row_j, step, n, high, low):  # type: ignore[no-untyped-def]
    for lane in range(LANES):
        high[lane] = -np.inf
        low[lane] = np.inf
    for chunk in range((n + LANES - 1) // LANES):
        for lane in range(LANES):
            s = chunk * LANES + lane
            v = g[s] - step * (np.float64(row_i[s]) - np.float64(row_j[s]))
            g[s] = v
            up = v if alpha[s] < upper[s] else -np.inf
            down = v if alpha[s] > lower[s] else np.inf
            high[lane] = up if up > high[lane] else high[lane]
            low[lane] = down if down < low[lane] else low[lane]


@compiled
def update_gradient(state, row_i, row_j, step, n):  # type: ignore
    """Take g_s -= step (k(x_i, x_s) - k(x_j, x_s)) for s < n; find i, j, g_max and g_min anew.

    Parameters
    ----------
    state
        The state; alpha is up to date.
    row_i, row_j
        float32 (>= n rounded up to 16,): kernel rows, finite.
    step
        lambda.
    n
        How many slots take part.

    """
    high, low = state.lanes[0], state.lanes[1]
    info = state.info[0]
    _update_lanes(
        state.alpha, state.lower, state.upper, state.gradient, row_i, row_j, step, n, high, low
    )
    i = np.argmax(high)
    j = np.argmin(low)
    info.g_max, info.g_min = high[i], low[j]
    if high[i] == -np.inf:
        info.i = -1
    else:
        while not (state.gradient[i] == high[i % LANES] and state.alpha[i] < state.upper[i]):
            i += LANES
        info.i = i
    if low[j] == np.inf:
        info.j = -1
    else:
        while not (state.gradient[j] == low[j % LANES] and state.alpha[j] > state.lower[j]):
            j += LANES
        info.j = j


@compiled_leaf
def _gain_lanes(alpha, bound, g, row, diagonal, g_fixed, k_fixed, sign, n, best):  # type: ignore[no-untyped-def]
    for lane in range(LANES):
        best[lane] = 0.0
    for chunk in range((n + LANES - 1) // LANES):
        for lane in range(LANES):
            s = chunk * LANES + lane
            gap = np.float32(sign * (g_fixed - g[s]))
            eta = k_fixed + diagonal[s] - np.float32(2.0) * row[s]
            eta = eta if eta > _TINY else _TINY
            possible = (gap > np.float32(0.0)) & (sign * (alpha[s] - bound[s]) > 0.0)
            gain = np.float64(gap * gap / eta) if possible else np.float64(0.0)
            best[lane] = gain if gain > best[lane] else best[lane]


@compiled_leaf
def _gain_of(g, row, diagonal, g_fixed, k_fixed, sign, s):  # type: ignore[no-untyped-def]
    gap = np.float32(sign * (g_fixed - g[s]))
    eta = k_fixed + diagonal[s] - np.float32(2.0) * row[s]
    eta = eta if eta > _TINY else _TINY
    return np.float64(gap * gap / eta)


@compiled
def best_partner(state, row, g_fixed, k_fixed, rising, n):  # type: ignore[no-untyped-def]
    """Return the slot that gains most in an unclipped pair step with a fixed example, or -1.

    The gain is (g_i - g_j)^2 / (k_ii + k_jj - 2 k_ij), the second-order choice of Fan, Chen and
    Lin (2005).

    Parameters
    ----------
    state
        The state.
    row
        float32 (>= n rounded up to 16,): kernel row of the fixed example.
    g_fixed, k_fixed
        Its gradient, float64, and its k(x, x), float32.
    rising
        Whether the coefficient of the fixed example rises (it is i) or falls (it is j).
    n
        How many slots take part.

    """
    sign = 1.0 if rising else -1.0
    bound = state.lower if rising else state.upper
    best = state.lanes[0]
    _gain_lanes(
        state.alpha, bound, state.gradient, row, state.diagonal, g_fixed, k_fixed, sign, n, best
    )
    lane = np.argmax(best)
    if best[lane] <= 0.0:
        return -1
    s, found, most = np.int64(lane), np.int64(-1), -1.0
    while s < n:
        if sign * (g_fixed - state.gradient[s]) > 0.0 and sign * (state.alpha[s] - bound[s]) > 0.0:
            gain = _gain_of(state.gradient, row, state.diagonal, g_fixed, k_fixed, sign, s)
            if gain > most:
                found, most = s, gain
        s += LANES
    return found
