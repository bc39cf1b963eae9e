"""The state of the stochastic batch perceptron: the rows kept, and their responses.

The last iterate is w = scale sum_s alpha_s x_s: a projection onto the unit ball changes the scale
only. The mean of the iterates, each with its weight omega_t, needs no second pass over the
coefficients either: see `support.averages`, with A_t, the sum of omega times scale over the first t
iterates. In the same way f_s and late_f_s stand for <w, x_s>, of the iterate and of the mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_leaf
from streamsvm.support import active_set, stores
from streamsvm.support.active_set import ACTIVE, ActiveSet
from streamsvm.support.declaration import (
    BOX,
    DRAWS,
    NOT_NEGATIVE,
    SIGN,
    Range,
    Record,
    field,
)
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import FreshBlock, values_of_slot
from streamsvm.support.kernel_rows.kernel_values import expansion
from streamsvm.support.kernel_rows.row_cache import RowCache
from streamsvm.support.states import BLOCK_SCRATCH, CACHE, STORE, declare
from streamsvm.support.stores import Store

INFO = np.dtype(
    [
        ("t", np.int64),  # the number of the last iteration, which the step size depends on
        ("n_steps", np.int64),  # iterations
        ("n_null", np.int64),  # drawn examples that were not taken
        ("n_values", np.int64),  # kernel values computed for fresh examples and for blocks
        ("last_number", np.int64),  # largest number of an example so far
        ("scale", np.float64),  # of the last iterate
        ("square", np.float64),  # |w|^2 of the last iterate, at most 1 but for rounding
        ("sum_scale", np.float64),  # A
        ("sum_weight", np.float64),  # sum of omega
        ("r2", np.float64),  # largest k(x, x) of the rows kept
        ("cost_positive", np.float64),  # sum of the weights of the positive rows kept
        ("cost_negative", np.float64),  # the same of the negative ones
        ("cost_most", np.float64),  # largest weight of the rows kept
        ("ready", np.int64),  # n or -n: the scratch has the kernel values of rows with n slots
    ]
)

LAST, MEAN = 0, 1
"""Rows of `levels`: those of the last iterate, and of the mean."""

BAND = 2
"""Column of `levels`, after one for the positive and one for the negative rows: see `water`."""

_SMALLEST_SCALE, _LARGEST_WEIGHT = 1e-2, 1e100
"""Beyond these sums are written anew: A alpha - late would lose digits, or overflow."""


class SBPState(NamedTuple):
    """The arrays of the learner; a slot is a position in arrays of length `capacity`."""

    store: Store = STORE
    cache: RowCache = CACHE
    active: ActiveSet = ACTIVE
    block: FreshBlock = BLOCK_SCRATCH
    alpha: np.ndarray = field("slots")  # signed coefficients of the last iterate, before the scale
    late: np.ndarray = field("slots")  # sum of (change of alpha) A
    f: np.ndarray = field("slots")  # sum_t alpha_t k(x_t, x_s)
    late_f: np.ndarray = field("slots")  # sum_t late_t k(x_t, x_s)
    cost: np.ndarray = field("slots", range=BOX)  # both weights, multiplied; 0 in free slots
    y: np.ndarray = field("slots", range=SIGN)
    diagonal: np.ndarray = field("slots", dtype=np.float32, range=NOT_NEGATIVE)  # k(x_s, x_s)
    heights: np.ndarray = field("slots", scratch=True)  # responses y_s <w, x_s>
    levels: np.ndarray = field(2, 3)  # water levels of both classes, and the band around them
    tops: np.ndarray = field(2, 2, scratch=True)  # see `water.find_levels`
    draws: np.ndarray = DRAWS  # state of the random generator, see `support.draws`
    info: Any = Record(
        INFO,
        initial={"scale": 1.0},
        ranges={
            "scale": Range(_SMALLEST_SCALE * 1e-6, 1.0),
            "square": Range(0.0, 1.1),
            "sum_weight": NOT_NEGATIVE,
            "r2": NOT_NEGATIVE,
        },
        reset=("ready",),
    )


def _check(state: SBPState, sizes: dict[str, int]) -> None:
    """Refuse rows without a weight, and free slots with one; measure wrong sums anew."""
    members = state.active.members[: state.active.counts[0].n_members]
    is_member = np.zeros(len(state.cost), bool)
    is_member[members] = True
    if ((state.cost > 0.0) != is_member).any() or (np.abs(state.y[members]) != 1.0).any():
        raise ValueError("weights or signs do not fit the rows kept")
    kept, info = state.cost[members], state.info[0]
    positive, negative = (kept[state.y[members] == sign].sum() for sign in (1.0, -1.0))
    most, r2 = kept.max(initial=0.0), float(state.diagonal[members].max(initial=0.0))
    wanted = {"cost_positive": positive, "cost_negative": negative, "cost_most": most, "r2": r2}
    for name, value in wanted.items():
        # Else not one bit is changed: sums in another order would be others.
        if not abs(info[name] - value) <= 1e-6 * value:
            info[name] = value


declare(SBPState, _check)


@compiled_leaf
def add_row(f, late_f, row, amount, late_amount, n):
    """Add multiples of a kernel row to the responses of the iterate and of the sum."""
    for s in range(n):
        k = np.float64(row[s])
        f[s] += amount * k
        late_f[s] += late_amount * k


@compiled_leaf
def write_heights(heights, y, f, late_f, factor, late_factor, n):
    """Write y_s (factor f_s + late_factor late_f_s), the responses."""
    for s in range(n):
        heights[s] = y[s] * (factor * f[s] + late_factor * late_f[s])


@compiled_inner
def _write_anew(values, late, sum_scale, total, scale, n):
    for s in range(n):
        late[s] = (late[s] - sum_scale * values[s]) / total
        values[s] *= scale


@compiled_inner
def write_sums_anew(state):
    """Set the scale to 1, A to 0 and the sum of weights to 1, without changing iterate and mean."""
    info, n = state.info[0], state.active.counts[0].n
    total = max(info.sum_weight, 1e-300)
    _write_anew(state.alpha, state.late, info.sum_scale, total, info.scale, n)
    _write_anew(state.f, state.late_f, info.sum_scale, total, info.scale, n)
    info.scale, info.sum_scale = 1.0, 0.0
    info.sum_weight = min(1.0, info.sum_weight)


@compiled_inner
def project(state):
    """Scale w back to |w| = 1 if it is longer, and keep the numbers within their ranges."""
    info = state.info[0]
    info.square = max(info.square, 0.0)
    if info.square > 1.0:
        info.scale /= np.sqrt(info.square)
        info.square = 1.0
    if info.scale < _SMALLEST_SCALE or info.sum_weight > _LARGEST_WEIGHT:
        write_sums_anew(state)


@compiled_leaf
def _measure(cost, y, diagonal, n):
    """Return the sums of the weights of both classes, the largest weight, and the largest k(x, x).

    They are computed anew when a row leaves: with a heavy one a running sum would lose the others,
    and one row of a large k(x, x) would make all steps after it short.
    """
    positive, negative, most, r2 = 0.0, 0.0, 0.0, np.float32(0.0)
    for s in range(n):
        b = cost[s]
        positive += b if y[s] > 0.0 else 0.0
        negative += b if y[s] < 0.0 else 0.0
        most = max(most, b)
        r2 = max(r2, diagonal[s] if b > 0.0 else np.float32(0.0))
    return positive, negative, most, np.float64(r2)


@compiled_inner
def remove(state, kernel, s, d):
    """Remove the row in a slot, and its part in iterate and mean."""
    info, n = state.info[0], state.active.counts[0].n
    if state.alpha[s] != 0.0 or state.late[s] != 0.0:
        line = row_cache.kernel_row(state.cache, kernel, state.store, s, n, d)
        a = info.scale * state.alpha[s]
        info.square += a * a * np.float64(state.diagonal[s]) - 2.0 * a * info.scale * state.f[s]
        row = state.cache.values[line]
        add_row(state.f, state.late_f, row, -state.alpha[s], -state.late[s], n)
        project(state)
    state.alpha[s] = state.late[s] = 0.0
    state.cost[s] = 0.0
    info.cost_positive, info.cost_negative, info.cost_most, info.r2 = _measure(
        state.cost, state.y, state.diagonal, n
    )
    active_set.leave(state.active, s)
    stores.release(state.store, s)
    state.store.entered[s] = 0
    row_cache.free(state.cache, s)


@compiled_inner
def enter(state, x, y, cost, weight, number, diagonal, row):
    """Put a row into a slot, with coefficient 0; return the slot. `row` gets its own value."""
    info, n_before = state.info[0], state.active.counts[0].n
    s = active_set.enter(state.active, state.active.counts[0].n_offered)
    n = state.active.counts[0].n
    stores.put(state.store, s, x)
    state.store.entered[s], state.store.weight[s] = number, weight
    state.y[s], state.cost[s], state.diagonal[s] = y, cost, diagonal
    row[s] = diagonal
    if s < n_before:
        # The slot was used before: cached kernel values of its old example are invalid.
        row_cache.set_column(state.cache, s, row)
    state.f[s] = expansion(state.alpha, row, n)
    state.late_f[s] = expansion(state.late, row, n)
    info.cost_most = max(info.cost_most, cost)
    if y > 0.0:
        info.cost_positive += cost
    else:
        info.cost_negative += cost
    info.r2 = max(info.r2, np.float64(diagonal))
    info.last_number = max(info.last_number, number)
    return s


@compiled
def rebuild(state, kernel, d):
    """Recompute responses, diagonal and |w| after a change of the kernel."""
    state, kernel = borrowed((state, kernel))
    n, info = state.active.counts[0].n, state.info[0]
    square, info.r2 = 0.0, 0.0
    row_cache.clear(state.cache, n)
    for s in range(n):
        if state.cost[s] == 0.0:
            continue
        row = values_of_slot(state, kernel, s, n, d)
        state.diagonal[s] = row[s]
        info.r2 = max(info.r2, np.float64(row[s]))
        state.f[s] = expansion(state.alpha, row, n)
        state.late_f[s] = expansion(state.late, row, n)
        square += state.alpha[s] * state.f[s]
    info.square = info.scale * info.scale * square
    project(state)
