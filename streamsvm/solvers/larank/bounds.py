"""LaRank within bounds: removes examples, and hands their coefficients to a neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import borrowed, chosen_by, compiled, compiled_inner, nothing
from streamsvm.solvers.bounds import Budget, Unbounded, Window
from streamsvm.solvers.larank.state import beta, forget, set_beta
from streamsvm.solvers.merging import are_as_one
from streamsvm.solvers.window import last_too_old, note_class
from streamsvm.support.kernel_rows.kernel_values import add_scaled
from streamsvm.support.kernel_rows.row_cache import kernel_row
from streamsvm.support.looks import note_cost


@compiled
def remove(state, kernel, s, d):
    """Remove an example and all its coefficients."""
    state, kernel = borrowed((state, kernel))
    info = state.info[0]
    row = state.cache.values[kernel_row(state.cache, kernel, state.store, s, info.n, d)]
    k = np.float64(state.diagonal[s])
    for c in range(info.n_classes):
        b = beta(state, c, s)
        if b != 0.0:
            # The loss in the dual: linear and quadratic term of this coefficient.
            loss = b * state.gradient[c, s] + 0.5 * b * b * k
            info.dual -= loss
            info.lost += loss
            add_scaled(state.gradient[c], row, b, info.n)
            set_beta(state, c, s, 0.0)
    forget(state, s)


@compiled_inner
def project_on_neighbour(state, kernel, s, d):
    """Remove an example; add its projection and its cost to its nearest neighbour of its class.

    The cost of one without coefficients only goes to its equal.
    """
    info = state.info[0]
    row = state.cache.values[kernel_row(state.cache, kernel, state.store, s, info.n, d)]
    neighbour, nearest = np.int64(-1), 0.0
    for j in range(info.n_alive):
        t = state.alive[j]
        if t != s and state.y[t] == state.y[s] and row[t] > nearest:
            neighbour, nearest = t, np.float64(row[t])
    own = np.empty(info.n_classes)
    for c in range(info.n_classes):
        own[c] = beta(state, c, s)
    cost, diagonal, n_own = state.cost[s], state.diagonal[s], state.n_own[s]
    remove(state, kernel, s, d)
    if neighbour < 0:
        return
    k = np.float64(state.diagonal[neighbour])
    if n_own == 0 and not are_as_one(diagonal, k, nearest):
        return
    share = min(1.0, nearest / k)
    state.cost[neighbour] += cost
    note_cost(state.info[0], state.cost[neighbour])
    row = state.cache.values[kernel_row(state.cache, kernel, state.store, neighbour, info.n, d)]
    for c in range(info.n_classes):
        step = share * own[c]
        if step != 0.0:
            gain = step * (state.gradient[c, neighbour] - 0.5 * step * k)
            info.dual += gain
            info.lost -= gain
            add_scaled(state.gradient[c], row, -step, info.n)
            set_beta(state, c, neighbour, beta(state, c, neighbour) + step)


@compiled_inner
def _remove_old(bounds, state, kernel, y, number, d):
    """Remove the examples that leave the window when example `number` comes, of class y."""
    if bounds.window <= 0.0:
        return
    note_class(bounds, state.recent, y, state.info[0].n_classes, number)
    j = 0
    while j < state.info[0].n_alive:
        s = state.alive[j]
        if state.store.entered[s] <= last_too_old(bounds, state.recent, state.y[s], number):
            remove(state, kernel, s, d)
        else:
            j += 1


@compiled_inner
def _make_room(bounds, state, kernel, y, number, d):
    info = state.info[0]
    _remove_old(bounds, state, kernel, y, number, d)
    while info.n_alive > bounds.limit:
        least, size = state.alive[0], np.inf
        for j in range(info.n_alive):
            s = state.alive[j]
            norm = 0.0
            for c in range(info.n_classes):
                norm += beta(state, c, s) ** 2
            norm *= np.float64(state.diagonal[s])
            # The example that has just been learnt is never removed, if it has coefficients.
            if norm < size and (state.store.entered[s] != number or state.n_own[s] == 0):
                least, size = s, norm
        project_on_neighbour(state, kernel, least, d)


stay_within: Any = chosen_by(0, {Unbounded: nothing, Window: _remove_old, Budget: _make_room})
"""stay_within(bounds, state, kernel, y, number, d): remove the examples that leave the window when
example `number` of class y comes, and those with the smallest coefficients while there are more
than the limit. These are removed by `project_on_neighbour`; the policy of the budget is not used.
"""
