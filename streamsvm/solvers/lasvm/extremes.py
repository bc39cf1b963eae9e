"""The two passes over all gradients: to update them, and to choose the partner of a pair.

All arrays are read up to the next multiple of 16. Unused slots have A = B = alpha = 0, so that they
are never chosen.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.solvers.lasvm.extreme_lanes import LANES, gain_lanes, update_lanes


@compiled_inner
def _slot_of(values, groups, sign):
    """Return the slot of the largest sign * value, given the values and groups of 16 lanes."""
    lane = 0
    for other in range(1, LANES):
        if sign * values[other] > sign * values[lane]:
            lane = other
    return groups[lane] * LANES + lane


@compiled_inner
def update_gradient(state, row_i, row_j, step, n):  # type: ignore
    """Set g_s -= step (k(x_i, x_s) - k(x_j, x_s)) for s < n, and find i, j, g_max and g_min.

    Rows are finite, float32 (>= n rounded up to 16,); alpha is up to date.
    """
    info, values, groups = state.info[0], state.lanes, state.groups
    update_lanes(
        state.alpha, state.lower, state.upper, state.gradient, row_i, row_j, step, n, values, groups
    )
    info.i = _slot_of(values[0], groups[0], 1.0)
    info.j = _slot_of(values[1], groups[1], -1.0)
    info.g_max, info.g_min = values[0, info.i % LANES], values[1, info.j % LANES]
    if info.g_max == -np.inf:
        info.i = -1
    if info.g_min == np.inf:
        info.j = -1


@compiled_inner
def best_partner(state, row, g_fixed, k_fixed, rising, n):
    """Return the slot whose unclipped pair step with a fixed example gains most, or -1.

    The gain is (g_i - g_j)^2 / (k_ii + k_jj - 2 k_ij), the second-order choice of Fan, Chen and Lin
    (2005). Of the fixed example, whose coefficient rises (it is i) or falls (it is j), `row`,
    float32 (>= n rounded up to 16,), is the kernel row, g_fixed the gradient, float64, and k_fixed
    k(x, x), float32.
    """
    sign = 1.0 if rising else -1.0
    bound = state.lower if rising else state.upper
    values, groups = state.lanes, state.groups
    gain_lanes(
        state.alpha, bound, state.gradient, row, state.diagonal, g_fixed, k_fixed, sign, n,
        values, groups,
    )  # fmt: skip
    slot = _slot_of(values[0], groups[0], 1.0)
    return slot if values[0, slot % LANES] > 0.0 else np.int64(-1)
