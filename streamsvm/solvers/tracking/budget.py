"""Room for one more example in averaged tracking: two are merged, or one is removed.

Leaving out example i changes the dual by -a_i g_i - a_i^2 k(x_i, x_i) / 2: the least harmful one
is where that loss is least, from f alone. If it costs nothing, it is removed. Else it and a few
drawn members are looked at, each with its nearest neighbour of the same label, and the pair that
costs w least (`pair_cost`) is replaced by one vector between the two (see `solvers.merging`), which
stands for two examples: its cost is the sum of theirs.

Whatever is done, the dual before minus the dual after is added to `lost`.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.merging import CANDIDATES, pair_cost, weight_of
from streamsvm.solvers.tracking.state import enter, leave, shift
from streamsvm.support import stores
from streamsvm.support.draws import below
from streamsvm.support.kernel_rows import fresh_block, row_cache
from streamsvm.support.kernel_rows.kernel_diagonal import own_value
from streamsvm.support.kernel_rows.kernel_values import add_scaled, expansion


@compiled_inner
def removal_loss(state, i):
    """Return what the dual loses when example i leaves."""
    a = state.y[i] * state.alpha[i]
    g = 1.0 - state.y[i] * state.f[i]
    return a * g + 0.5 * a * a * np.float64(state.diagonal[i])


@compiled
def remove(state, kernel, i, d):
    """Take example i out of the active set."""
    state, kernel = borrowed((state, kernel))
    if state.alpha[i] != 0.0:
        loss = removal_loss(state, i)
        state.info[0].dual -= loss
        state.info[0].lost += loss
        shift(state, kernel, i, -state.alpha[i], d)
    # Exactly 0: what is free must not be seen in any sum.
    state.alpha[i] = 0.0
    state.average[i] = 0.0
    leave(state, i)


@compiled_inner
def least_harmful(state):
    """Return the member whose removal costs least and that cost; among free ones, least needed."""
    found, least, useless = np.int64(-1), np.inf, -np.inf
    for m in range(state.active.counts[0].n_members):
        i = state.active.members[m]
        loss = removal_loss(state, i)
        need = 1.0 - state.y[i] * state.f[i]
        if loss < least or (loss == least and need < useless):
            found, least, useless = i, loss, need
    return found, least


@compiled_inner
def _nearest(state, row, i):
    """Return the member of the same label with the largest k_ij^2 / k_jj, k_ij > 0, or -1."""
    found, most = np.int64(-1), 0.0
    for m in range(state.active.counts[0].n_members):
        j = state.active.members[m]
        k = np.float64(row[j])
        if j == i or k <= 0.0 or state.y[j] != state.y[i]:
            continue
        worth = k * k / max(np.float64(state.diagonal[j]), 1e-30)
        if worth > most:
            found, most = j, worth
    return found


@compiled_inner
def cheapest_pair(state, kernel, first, d):
    """Return the cheapest pair of one label to merge: of `first` and some drawn members."""
    n = state.active.counts[0].n
    least, best_i, best_j = np.inf, first, np.int64(-1)
    for c in range(CANDIDATES + 1):
        i = first
        if c > 0:
            i = state.active.members[below(state.draws, state.active.counts[0].n_members)]
        row = state.cache.values[row_cache.kernel_row(state.cache, kernel, state.store, i, n, d)]
        j = _nearest(state, row, i)
        if j < 0:
            continue
        cost = pair_cost(state.alpha, state.diagonal, i, j, row[j])
        if cost < least:
            least, best_i, best_j = cost, i, j
    return best_i, best_j


@compiled_inner
def _merge(state, kernel, i, j, policy, d):
    """Replace i and j, of the same label, by one vector between them."""
    info, n = state.info[0], state.active.counts[0].n
    row_i = state.cache.values[row_cache.kernel_row(state.cache, kernel, state.store, i, n, d)]
    a_i, a_j = abs(state.alpha[i]), abs(state.alpha[j])
    h = weight_of(policy, np.float64(row_i[j]), a_i, a_j)
    z = stores.between(state.store, i, j, h, d)
    row = np.zeros((1, state.alpha.size), np.float32)
    stores.values(kernel, state.store, z, np.int64(1), d, np.int64(0), n, row)
    part = a_i * np.float64(row[0, i]) + a_j * np.float64(row[0, j])
    y, cost = state.y[i], state.cost[i] + state.cost[j]
    weight = state.store.weight[i] + state.store.weight[j]
    # As new as the newer of the two; negative, since it is no example that may come again.
    number = -max(abs(state.store.entered[i]), abs(state.store.entered[j]))
    arrival = max(state.active.arrival[i], state.active.arrival[j])
    # remove() adds both to `lost`; what z brings back is taken from it.
    remove(state, kernel, i, d)
    remove(state, kernel, j, d)
    slot = enter(state, y, cost, weight, number, arrival, np.float32(0.0))
    stores.put(state.store, slot, z)
    diagonal = own_value(kernel, stores.spare_of(state.store, np.int64(1), d), z)
    row[0, slot] = diagonal
    state.diagonal[slot] = diagonal
    info.r2 = max(info.r2, np.float64(diagonal))
    row_cache.free(state.cache, slot)
    row_cache.set_column(state.cache, slot, row[0])
    row_cache.keep(state.cache, slot, row[0], n)
    fresh_block.note(state.block, slot, np.int64(fresh_block.FOREIGN))
    a_z = max(0.0, min(cost, part / max(np.float64(diagonal), 1e-30)))
    f_z = expansion(state.alpha, row[0], n)
    state.alpha[slot] = state.average[slot] = y * a_z
    info.alpha_sum += a_z
    state.f[slot] = f_z
    add_scaled(state.f, row[0], y * a_z, n)
    gain = a_z * (1.0 - y * f_z) - 0.5 * a_z * a_z * np.float64(diagonal)
    info.dual += gain
    info.lost -= gain


@compiled_inner
def make_room(state, kernel, wanted, policy, d):
    """Free a place in a full active set; return whether the fresh example may have it.

    `wanted` tells whether a step on that would raise the dual. If not, it enters only in the place
    of one that is not missed.
    """
    i, loss = least_harmful(state)
    if loss > 0.0 and not wanted:
        return False
    j = np.int64(-1)
    if loss > 0.0:
        i, j = cheapest_pair(state, kernel, i, d)
    if j < 0:
        remove(state, kernel, i, d)
    else:
        _merge(state, kernel, i, j, policy, d)
    return True
