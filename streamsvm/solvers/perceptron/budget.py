"""Room for one more support vector: which one leaves.

* `REMOVE` (Crammer, Kandola, Singer, NIPS 2003): the one that would be classified with the largest
  margin without itself, y_i (f(x_i) - alpha_i k(x_i, x_i)); f is kept up to date for this.
* `MERGE` (Wang, Crammer, Vucetic, JMLR 13, 2012): of the smallest by alpha_i^2 k(x_i, x_i) and a
  few drawn ones, each with its best partner of the same sign, the cheapest pair becomes one vector
  between them; see `streamsvm.solvers.merging`. The smallest leaves if there is no pair.

`PROJECT` makes no room: see `step`. An average loses what its model loses; of merged vectors for
ever, so that older models fade from it (see `step`).
"""

from __future__ import annotations

import math

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.solvers.merging import CANDIDATES, weight_of
from streamsvm.solvers.perceptron.state import kernel_row_of, put
from streamsvm.support import stores
from streamsvm.support.draws import below
from streamsvm.support.kernel_rows import fresh_block, row_cache
from streamsvm.support.kernel_rows.kernel_diagonal import own_value
from streamsvm.support.kernel_rows.kernel_values import add_scaled

PROJECT, REMOVE = 2.0, 3.0
"""Policies beside those of `streamsvm.solvers.bounds`."""


@compiled_inner
def _easiest(state):
    """Return the slot of the largest margin without itself."""
    found, most = np.int64(0), -np.inf
    for s in range(state.info[0].n):
        a = state.alpha[s]
        margin = math.copysign(1.0, a) * (state.f[s] - a * np.float64(state.diagonal[s]))
        if margin > most:
            found, most = np.int64(s), margin
    return found


@compiled_inner
def _smallest(state):
    found, least = np.int64(0), np.inf
    for s in range(state.info[0].n):
        square = state.alpha[s] * state.alpha[s] * np.float64(state.diagonal[s])
        if square < least:
            found, least = np.int64(s), square
    return found


@compiled_inner
def _partner(state, row, i):
    """Return the slot of the same sign that is cheapest to merge with i, and the cost; or -1.

    The cost is what |w|^2 loses when the lighter of the two goes over to the other.
    """
    a_i, k_ii = state.alpha[i], np.float64(state.diagonal[i])
    found, least = np.int64(-1), np.inf
    for j in range(state.info[0].n):
        k, a_j = np.float64(row[j]), state.alpha[j]
        if k <= 0.0 or a_i * a_j <= 0.0 or j == i:
            continue
        k_jj = np.float64(state.diagonal[j])
        to_j = a_i * a_i * (k_ii - k * k / max(k_jj, 1e-30))
        to_i = a_j * a_j * (k_jj - k * k / max(k_ii, 1e-30))
        if min(to_i, to_j) < least:
            found, least = np.int64(j), min(to_i, to_j)
    return found, least


@compiled_inner
def _cheapest_pair(state, kernel, d):
    """Return the pair to merge; the second is -1 if no two vectors can be merged."""
    first = _smallest(state)
    least, best_i, best_j = np.inf, first, np.int64(-1)
    for c in range(CANDIDATES + 1):
        i = first if c == 0 else below(state.draws, state.info[0].n)
        j, cost = _partner(state, kernel_row_of(state, kernel, i, d), i)
        if j >= 0 and cost < least:
            least, best_i, best_j = cost, i, j
    return best_i, best_j


@compiled_inner
def _merge(state, kernel, fresh, i, j, policy, r, size, d):
    """Put a vector between i and j into slot j, for both; slot i is free then.

    `fresh` is a store of the `size` rows of the block; the values of rows r and later with slot j
    are computed anew.
    """
    n, cache = state.info[0].n, state.cache
    k_ij = np.float64(kernel_row_of(state, kernel, i, d)[j])
    h = weight_of(policy, k_ij, abs(state.alpha[i]), abs(state.alpha[j]))
    z = stores.between(state.store, i, j, h, d)
    row = np.zeros((1, state.alpha.size), np.float32)
    stores.values(kernel, state.store, z, np.int64(1), d, np.int64(0), n, row)
    k_zz = own_value(kernel, stores.spare_of(state.store, np.int64(1), d), z)
    part_i = np.float64(row[0, i]) / max(np.float64(k_zz), 1e-30)
    part_j = np.float64(row[0, j]) / max(np.float64(k_zz), 1e-30)
    alpha = part_i * state.alpha[i] + part_j * state.alpha[j]
    late = part_i * state.late[i] + part_j * state.late[j]
    # The number of the newer one; negative, since z is no example of the stream.
    number = -max(abs(state.store.entered[i]), abs(state.store.entered[j]))
    # A sparse store has room for z in the place of both.
    stores.release(state.store, i)
    put(state, j, z, state.store.weight[i] + state.store.weight[j], number, k_zz)
    state.alpha[j], state.late[j] = alpha, late
    row[0, j] = k_zz
    row_cache.set_column(cache, j, row[0])
    row_cache.keep(cache, j, row[0], n)
    fresh_block.renew_column(state.block.values, kernel, fresh, z, j, r, size, d)


@compiled_inner
def make_room(state, kernel, policy, fresh, r, size, d):
    """Return the slot that row r of the block takes, all of which are in use.

    `fresh` is a store of the `size` rows of the block, `policy` one that makes room.
    """
    state.info[0].n_room += 1
    if policy == REMOVE:
        slot = _easiest(state)
        row_of_slot = kernel_row_of(state, kernel, slot, d)
        add_scaled(state.f, row_of_slot, -state.alpha[slot], state.info[0].n)
        return slot
    i, j = _cheapest_pair(state, kernel, d)
    if j >= 0:
        _merge(state, kernel, fresh, i, j, policy, r, size, d)
    return i
