"""The ambiguous SVM within a budget: an example leaves, and its slot is the new one's.

Within a budget the example with the smallest coefficients leaves, and its nearest neighbour with
the same bag gets them, times k(x_s, x_t) / k(x_t, x_t), at most 1, and its C_s: projected as in
LaRank. What C_s allows and what C_t allows C_s + C_t allows together, so that the coefficients stay
feasible, and those of each example sum to 0 over the labels. Without such a neighbour they are
lost. Policies of budgets are not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import chosen_by, compiled_inner, nothing
from streamsvm.solvers.ambiguous.state import add_to, row_of_slot, scale_block
from streamsvm.solvers.bounds import Budget, Unbounded
from streamsvm.support import stores
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import renew_column
from streamsvm.support.looks import note_cost
from streamsvm.support.rows import count, width


@compiled_inner
def _lightest(state):
    """Return the slot whose coefficients make up the least part of |w|^2 by themselves."""
    info = state.info[0]
    squares = np.zeros(info.n)
    for y in range(info.n_classes):
        for s in range(info.n):
            squares[s] += state.beta[y, s] * state.beta[y, s]
    found, least = np.int64(0), np.inf
    for s in range(info.n):
        square = squares[s] * np.float64(state.diagonal[s])
        if square < least:
            found, least = np.int64(s), square
    return found


@compiled_inner
def _neighbour(state, s, row):
    """Return the nearest slot with the same bag, of the same labels; -1 if there is none."""
    found, nearest = np.int64(-1), 0.0
    for t in range(state.info[0].n):
        if row[t] <= nearest or t == s or state.known[t] != state.known[s]:
            continue
        is_same = True
        for y in range(state.known[s]):
            is_same = is_same and state.bag[y, t] == state.bag[y, s]
        if is_same:
            found, nearest = np.int64(t), np.float64(row[t])
    return found


@compiled_inner
def _give(state, kernel, t, own, alpha, delta, cost, share, d):
    """Add a share of an example's coefficients, and its cost, to those of slot t."""
    info, k = state.info[0], np.float64(state.diagonal[t])
    row = row_of_slot(state, kernel, t, d)
    slope, square = share * delta, 0.0
    for y in range(info.n_classes):
        step = share * own[y]
        slope -= step * state.f[y, t]
        square += step * step
    info.dual += slope - 0.5 * square * k
    for y in range(info.n_classes):
        add_to(state, row, t, y, share * own[y])
    info.delta_sum += share * delta
    state.delta[t] += share * delta
    state.alpha[t] += share * alpha
    state.cost[t] += cost
    note_cost(info, state.cost[t])


@compiled_inner
def _next_slot(bounds, state, kernel, row, d):
    return state.info[0].n


@compiled_inner
def _project(state, kernel, s, row, d):
    """Take the coefficients from slot s; return them, and slot and share of who got them, or -1."""
    own = state.beta[: state.info[0].n_classes, s].copy()
    alpha, delta, cost = state.alpha[s], state.delta[s], state.cost[s]
    t, share = _neighbour(state, s, row), 0.0
    if t >= 0:
        share = min(1.0, np.float64(row[t]) / np.float64(state.diagonal[t]))
    scale_block(state, s, row, 0.0)
    if t >= 0:
        _give(state, kernel, t, own, alpha, delta, cost, share, d)
    return own, t, share


@compiled_inner
def _free_slot(bounds, state, kernel, row, d):
    info = state.info[0]
    if info.n < bounds.limit:
        return info.n
    s = _lightest(state)
    own, t, share = _project(state, kernel, s, row_of_slot(state, kernel, s, d), d)
    moved = share * np.float64(row[t]) if t >= 0 else 0.0
    for y in range(info.n_classes):
        state.scores[y] += own[y] * (moved - np.float64(row[s]))
    stores.release(state.store, s)
    row_cache.free(state.cache, s)
    return s


slot_for: Any = chosen_by(0, {Unbounded: _next_slot, Budget: _free_slot})
"""slot_for(bounds, state, kernel, row, d): the slot for an example whose scores are in the scratch,
and whose kernel values are `row`. If another example leaves for it, the scores change by that."""


@compiled_inner
def _renew_column(bounds, state, kernel, x, s, later, first, n):
    if s == n:
        return
    row_cache.set_column(state.cache, s, state.block[first - 1])
    size, d = count(later), width(later)
    if size > 0:
        fresh = stores.of_rows(stores.spare_of(state.store, size, d), later)
        values = state.block[first:]
        renew_column(values, kernel, fresh, x, s, np.int64(0), size, d)


renew: Any = chosen_by(0, {Unbounded: nothing, Budget: _renew_column})
"""renew(bounds, state, kernel, x, s, later, first, n): tell cached rows, and the values of the
later rows of the block, from `first` on, that slot s has x; n slots were in use before."""
