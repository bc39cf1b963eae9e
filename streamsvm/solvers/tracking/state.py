"""The state of averaged tracking: its arrays, and the bookkeeping of the certificate."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.support import active_set, looks, stores
from streamsvm.support.active_set import ACTIVE, ActiveSet
from streamsvm.support.declaration import (
    BOX,
    DRAWS,
    FLAG,
    NOT_NEGATIVE,
    SIGN,
    Record,
    count_of,
    field,
    index_of,
)
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import FreshBlock, values_of_slot
from streamsvm.support.kernel_rows.kernel_values import add_scaled
from streamsvm.support.kernel_rows.row_cache import RowCache
from streamsvm.support.states import BLOCK_SCRATCH, CACHE, STORE, declare
from streamsvm.support.stores import Store

INFO = np.dtype(
    [
        ("n_seen", np.int64),  # T: examples after which steps were made
        ("n_steps", np.int64),  # uniform steps, null ones included
        ("n_null", np.int64),  # uniform steps that changed nothing
        ("n_values", np.int64),  # kernel values computed for fresh examples
        ("n_touched", np.int64),  # entries of `touched`
        ("last_number", np.int64),  # largest number of an example so far
        ("dual", np.float64),  # D_T, summed change by change
        ("process_gain", np.float64),  # delta_T: what PROCESS added to the dual
        ("lost", np.float64),  # rho_T: by how much removals, merges and rebuilds lowered the dual
        ("skipped", np.float64),  # by how much the skipped steps below tau would have raised it
        ("mean_gain", np.float64),  # sum over t of the mean gain of its uniform steps
        ("scaled_gain", np.float64),  # the same, each divided by the mean C_i of its active set
        ("width", np.float64),  # sum over t of R2 mean(C_i^2) / mean(C_i)^2
        ("r2", np.float64),  # R2: largest k(x, x) so far
        ("cost_sum", np.float64),  # sum of C_i over the active set
        ("cost_squares", np.float64),  # sum of C_i^2 over the active set
        ("ready", np.int64),  # n or -n: the scratch has the kernel values of rows with n slots
        ("alpha_sum", np.float64),  # sum of a_i over the active set
        *looks.SCALARS,
    ]
)


SCALARS: Any = Record(INFO, ranges={"n_touched": count_of("slots")}, reset=("ready",))
TOUCHED = field("slots", dtype=np.int64, range=index_of("slots"), n_used="n_touched")
"""The slots where `average` differs from `alpha`, for which `is_touched` is 1."""


class TrackingState(NamedTuple):
    """The arrays of averaged tracking; a slot is a position in arrays of length `capacity`."""

    store: Store = STORE
    cache: RowCache = CACHE
    active: ActiveSet = ACTIVE
    block: FreshBlock = BLOCK_SCRATCH
    alpha: np.ndarray = field("slots")  # signed coefficients, 0 <= y alpha <= C
    average: np.ndarray = field("slots")  # the mean of alpha since the last example
    f: np.ndarray = field("slots")  # sum_i alpha_i k(x_i, x_s)
    cost: np.ndarray = field("slots", range=BOX)  # C_s
    y: np.ndarray = field("slots", range=SIGN)
    diagonal: np.ndarray = field("slots", dtype=np.float32, range=NOT_NEGATIVE)  # k(x_s, x_s)
    touched: np.ndarray = TOUCHED
    is_touched: np.ndarray = field("slots", dtype=np.uint8, range=FLAG)
    draws: np.ndarray = DRAWS  # state of the random generator, see `support.draws`
    look_draws: np.ndarray = looks.DRAWS  # the same of the generator of looks
    info: Any = SCALARS


def check_touched(state: Any, sizes: dict[str, int]) -> None:
    """Raise ValueError if the list of touched slots contradicts the flags."""
    touched = state.touched[: state.info[0].n_touched]
    flags = np.flatnonzero(state.is_touched[: sizes["slots"]])
    if len(touched) != len(flags) or not np.array_equal(np.sort(touched), flags):
        raise ValueError("touched slots contradict their flags")


declare(TrackingState, check_touched)


@compiled_within
def touch(state, slot):
    """Add a slot, whose average may differ from its coefficient, to the list of touched slots."""
    if state.is_touched[slot] == 0:
        state.is_touched[slot] = 1
        state.touched[state.info[0].n_touched] = slot
        state.info[0].n_touched += 1


@compiled
def leave(state, slot):
    """Remove an example with coefficient 0 from the active set."""
    active_set.leave(state.active, slot)
    stores.release(state.store, slot)
    state.store.entered[slot] = 0
    cost, info = state.cost[slot], state.info[0]
    info.cost_sum -= cost
    info.cost_squares -= cost * cost
    if not looks.are_equal(info):
        # With a heavy one a running sum would lose the others.
        info.cost_sum = info.cost_squares = 0.0
        for m in range(state.active.counts[0].n_members):
            cost = state.cost[state.active.members[m]]
            info.cost_sum += cost
            info.cost_squares += cost * cost


@compiled_within
def enter(state, y, cost, weight, number, arrival, diagonal):
    """Return a slot for a new example with coefficient 0; the caller sets its row and its f."""
    info = state.info[0]
    slot = active_set.enter(state.active, arrival)
    state.store.entered[slot], state.store.weight[slot] = number, weight
    state.alpha[slot] = state.average[slot] = 0.0
    state.y[slot], state.cost[slot], state.diagonal[slot] = y, cost, diagonal
    info.cost_sum += cost
    info.cost_squares += cost * cost
    looks.note_cost(info, cost)
    info.r2 = max(info.r2, np.float64(diagonal))
    info.last_number = max(info.last_number, number)
    return slot


@compiled_within
def account(info, gain, steps, n_members):
    """Update the sums of the certificate, given the gain of the uniform steps of an example."""
    mean_cost = info.cost_sum / n_members
    info.mean_gain += gain / steps
    info.scaled_gain += gain / (steps * mean_cost)
    # At least 1, which rounding could violate for equal costs: the bound would be too low.
    info.width += info.r2 * max(1.0, info.cost_squares / (n_members * mean_cost * mean_cost))


@compiled
def settle(state, keep_zeros):
    """Start the averages of the next example: reset them to the coefficients.

    Unless `keep_zeros`, examples whose coefficient has become 0 are removed (variant i of thesis
    4.4.4). They cannot be removed earlier, because the averaged classifier still uses them.
    """
    state = borrowed(state)
    info = state.info[0]
    for t in range(info.n_touched):
        slot = state.touched[t]
        state.is_touched[slot] = 0
        state.average[slot] = state.alpha[slot]
        if not keep_zeros and state.alpha[slot] == 0.0 and state.active.place[slot] >= 0:
            leave(state, slot)
    info.n_touched = 0


@compiled_inner
def most_of_looks(info):
    """Return B = 1 + R |w|, which no part of the gap divided by its C_i exceeds."""
    square = 2.0 * (info.alpha_sum - info.dual)
    return 1.0 + math.sqrt(info.r2 * max(0.0, square))


@compiled_inner
def note_most(info, weight):
    """Take the present B, with a weight, into the largest one."""
    info.look_most = max(info.look_most, weight * most_of_looks(info))


@compiled_inner
def look_at(state, i, f, weight):
    """Look at the example in slot i, with f = f(x_i): equation (4) of the paper, over C_i."""
    y, cost = state.y[i], state.cost[i]
    g, share = 1.0 - y * f, y * state.alpha[i] / cost
    z = max((1.0 - share) * g, -share * g)
    looks.record(state.info[0], z, most_of_looks(state.info[0]), weight)


@compiled_inner
def shift(state, kernel, slot, amount, d):
    """Add `amount` to the coefficient and the average of a slot, without counting a step."""
    n = state.active.counts[0].n
    row = state.cache.values[row_cache.kernel_row(state.cache, kernel, state.store, slot, n, d)]
    add_scaled(state.f, row, amount, n)
    state.info[0].alpha_sum += abs(state.alpha[slot] + amount) - abs(state.alpha[slot])
    state.alpha[slot] += amount
    state.average[slot] += amount


@compiled
def rebuild(state, kernel, d):
    """Recompute f, diagonal and dual after a change of the kernel; the loss is added to `lost`."""
    state, kernel = borrowed((state, kernel))
    settle(state, True)
    info, counts = state.info[0], state.active.counts[0]
    n = counts.n
    row_cache.clear(state.cache, n)
    dual = 0.0
    for m in range(counts.n_members):
        s = state.active.members[m]
        row, f = values_of_slot(state, kernel, s, n, d), 0.0
        for t in range(n):
            f += state.alpha[t] * np.float64(row[t])
        state.f[s], state.diagonal[s] = f, row[s]
        info.r2 = max(info.r2, np.float64(state.diagonal[s]))
        dual += state.alpha[s] * (state.y[s] - 0.5 * f)
    info.lost += info.dual - dual
    info.dual = dual
