"""LASVM for several classes within bounds: a window, a budget of vectors in the store.

An example leaves the store by leaving each problem that has it as a member, as for two classes (see
`solvers.lasvm.bounds`). A budget merges two vectors of one class (`merging`).

Merging. The store has a vector once, and so its merged one, z: it takes the slot of the second of
the two, and in each problem that has either the coefficient and the box of both, so that the sums
stay 0. Which two: of one class, near to each other, and light in all problems, where the weight of
a vector is the root of the sum of its squared coefficients, as if all problems were one with these
coefficients (see `solvers.merging`). Nothing depends on the order of the slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import borrowed, chosen_by, compiled, compiled_inner, nothing
from streamsvm.solvers.bounds import Budget, Unbounded, Window
from streamsvm.solvers.lasvm.bounds import (
    LEAST_COST,
    RHO,
    errs_more,
    fade,
    mark_dead,
    note_error,
    remove,
)
from streamsvm.solvers.lasvm.state import refresh_extremes
from streamsvm.solvers.lasvm_pairs.looks import note_problem
from streamsvm.solvers.lasvm_pairs.problems import NONE, n_turns, problem_of_turn
from streamsvm.solvers.lasvm_pairs.state import problem
from streamsvm.solvers.merging import CANDIDATES, are_as_one, pair_cost, weight_of
from streamsvm.solvers.window import last_too_old, note_class
from streamsvm.support import stores
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import renew_column
from streamsvm.support.kernel_rows.kernel_diagonal import own_value
from streamsvm.support.looks import note_cost
from streamsvm.support.stores import MemberKernel


@compiled_inner
def _leave(state, p, kernel, s, d):
    """Remove a member of a problem."""
    remove(borrowed(problem(state, p)), MemberKernel(kernel), s, d)


@compiled
def forget(state, kernel, slot, d):
    """Remove the example in a slot from all problems, and so from the store."""
    state, kernel = borrowed((state, kernel))
    of = state.problems
    for turn in range(n_turns(of)):
        p = problem_of_turn(of, state.y[slot], turn)
        if p == NONE:
            continue
        start = of.segments[p].start
        for s in range(of.table[p].n):
            at = start + s
            if of.slot[at] == slot and of.lower[at] != of.upper[at]:
                _leave(state, p, kernel, s, d)
                break


@compiled_inner
def _too_old(bounds, state, number):
    """Return the slot of the oldest example that leaves when example `number` comes, or -1."""
    found, entered = np.int64(NONE), state.store.entered
    for s in range(state.info[0].n):
        age = number - abs(entered[s])
        # Most are not: the class is looked up of few.
        if age < bounds.window or state.wanted[s] == 0:
            continue
        if found >= 0 and abs(entered[s]) >= abs(entered[found]):
            continue
        if abs(entered[s]) <= last_too_old(bounds, state.recent, state.y[s], number):
            found = np.int64(s)
    return found


@compiled_inner
def _slide_window(bounds, state, kernel, y, cost, number, d):
    if bounds.window <= 0.0:
        return
    if cost > 0.0:
        note_class(bounds, state.recent, y, state.info[0].n_classes, number)
    slot = _too_old(bounds, state, number)
    while slot >= 0:
        forget(state, kernel, slot, d)
        slot = _too_old(bounds, state, number)


slide: Any = chosen_by(0, {Unbounded: nothing, Window: _slide_window, Budget: _slide_window})
"""slide(bounds, state, kernel, y, cost, number, d): remove the examples that leave the window when
example `number` comes, of class y and with this C (0: it is not learnt)."""


_MULTIPLIER, _MODULUS = np.int64(48271), np.int64(2147483647)


@compiled_inner
def _weigh(state):
    """Write the weight of the vector in each slot to `state.norm`."""
    of, norm = state.problems, state.norm
    norm[: state.info[0].n] = 0.0
    for p in range(of.table.size):
        start = of.segments[p].start
        for at in range(start, start + of.table[p].n):
            norm[of.slot[at]] += of.alpha[at] * of.alpha[at]
    for s in range(state.info[0].n):
        norm[s] = np.sqrt(norm[s])


@compiled_inner
def _lightest(state):
    """Return the slot of the vector of the least `state.norm`, the oldest of several."""
    found, entered, norm = np.int64(NONE), state.store.entered, state.norm
    for s in range(state.info[0].n):
        if state.wanted[s] > 0:
            is_older = found >= 0 and abs(entered[s]) < abs(entered[found])
            if found < 0 or norm[s] < norm[found] or (norm[s] == norm[found] and is_older):
                found = np.int64(s)
    return found


@compiled_inner
def _drawn(state, c):
    """Return the slot of a vector drawn by its number."""
    found, least = np.int64(NONE), _MODULUS
    seed = (state.info[0].n_looked * CANDIDATES + c) % _MODULUS
    for s in range(state.info[0].n):
        if state.wanted[s] > 0:
            drawn = (abs(state.store.entered[s]) + seed * 16807) % _MODULUS
            drawn = drawn * _MULTIPLIER % _MODULUS
            if drawn < least:
                found, least = np.int64(s), drawn
    return found


@compiled_inner
def _nearest(state, row, i):
    """Return the slot of the same class with the largest k_ij^2 / k_jj, k_ij > 0, or -1."""
    found, most, entered = np.int64(NONE), 0.0, state.store.entered
    for j in range(state.info[0].n):
        k = np.float64(row[0, j])
        if j == i or state.y[j] != state.y[i] or state.wanted[j] == 0 or k <= 0.0:
            continue
        worth = k * k / max(np.float64(state.diagonal[j]), 1e-30)
        is_older = found >= 0 and abs(entered[j]) < abs(entered[found])
        if worth > most or (worth == most and is_older):
            found, most = np.int64(j), worth
    return found


@compiled_inner
def _neighbour(state, kernel, i, row, d):
    """Return the result of `_nearest`; `row` gets the kernel values of slot i with all slots."""
    x = stores.row_of(state.store, i, np.empty((1, d), np.float32), d)
    n = state.info[0].n
    stores.values(kernel, state.store, x, np.int64(1), d, np.int64(0), n, row)
    return _nearest(state, row, i)


@compiled_inner
def _cheapest_pair(state, kernel, first, row, d):
    """Return two slots to merge: of `first` and some drawn vectors, each with its neighbour."""
    least, best_i, best_j = np.inf, first, np.int64(NONE)
    for c in range(CANDIDATES + 1):
        i = first if c == 0 else _drawn(state, c)
        j = _neighbour(state, kernel, i, row, d)
        if j == NONE:
            continue
        cost = pair_cost(state.norm, state.diagonal, i, j, row[0, j])
        if cost < least:
            least, best_i, best_j = cost, i, j
    return best_i, best_j


@compiled_inner
def _member(problems, p, slot):
    """Return which member of a problem has a slot, or -1."""
    start = problems.segments[p].start
    for s in range(problems.table[p].n):
        at = start + s
        if problems.slot[at] == slot and problems.lower[at] != problems.upper[at]:
            return np.int64(s)
    return np.int64(NONE)


@compiled_inner
def _rewrite(own, i, j, rows, members, k_zz):
    """Give member j the merged row, and what member i has; -1 for one that is none.

    `rows` are the kernel values of the two slots and of z with all slots.
    """
    info, table = own.info[0], own.store.slot
    before = 0.0
    for s in range(info.n):
        before += own.alpha[s] * (own.y[s] + own.gradient[s])
    keeper = i if j == NONE else j
    a_i = own.alpha[i] if i != NONE else 0.0
    a_j = own.alpha[j] if j != NONE else 0.0
    a_z, g_z = a_i + a_j, own.y[keeper]
    for s in range(info.n):
        slot = table[s]
        members[s] = rows[2, slot]
        if s != i and s != j:
            g_z -= own.alpha[s] * np.float64(members[s])
            own.gradient[s] += a_i * np.float64(rows[0, slot]) + a_j * np.float64(rows[1, slot])
            own.gradient[s] -= a_z * np.float64(members[s])
    members[keeper] = k_zz
    if i != NONE and j != NONE:
        own.lower[j] += own.lower[i]
        own.upper[j] += own.upper[i]
        note_cost(info, own.upper[j] - own.lower[j])
        info.n_zero += 1 - int(a_i == 0.0) - int(a_j == 0.0) + int(a_z == 0.0)
        own.alpha[i] = 0.0
        mark_dead(own, i)
    # Clipped, since the sum may be outside the box by rounding.
    own.alpha[keeper] = min(own.upper[keeper], max(own.lower[keeper], a_z))
    own.gradient[keeper], own.diagonal[keeper] = g_z - a_z * np.float64(k_zz), k_zz
    row_cache.free(own.cache, keeper)
    row_cache.set_column(own.cache, keeper, members)
    row_cache.keep(own.cache, keeper, members, info.n)
    after = 0.0
    for s in range(info.n):
        after += own.alpha[s] * (own.y[s] + own.gradient[s])
    info.dual += 0.5 * (after - before)
    info.lost -= 0.5 * (after - before)
    return keeper


@compiled_inner
def _merge_in(state, p, s_i, s_j, rows, k_zz, j, number, weight):
    """Merge members of a problem, -1 for one that is none, to one of slot j of the store."""
    own = borrowed(problem(state, p))
    keeper = _rewrite(own, s_i, s_j, rows, state.problems.row, k_zz)
    if s_j == NONE:
        stores.release(own.store, keeper)
        own.store.slot[keeper] = j
        state.wanted[j] += 1
    # As in the store, from which both are read back from a file.
    own.store.entered[keeper], own.store.weight[keeper] = number, weight
    refresh_extremes(own)
    note_problem(state.info[0], own)


@compiled_inner
def _merge(state, kernel, i, j, policy, d):
    """Replace the vectors in two slots of one class by one between them, in slot j."""
    of, n, store = state.problems, state.info[0].n, state.store
    rows, scratch = np.zeros((3, state.y.size), np.float32), np.empty((1, d), np.float32)
    for at, slot in ((0, i), (1, j)):
        x = stores.row_of(store, slot, scratch, d)
        stores.values(kernel, store, x, np.int64(1), d, np.int64(0), n, rows[at : at + 1])
    h = weight_of(policy, np.float64(rows[0, j]), state.norm[i], state.norm[j])
    z = stores.between(store, i, j, h, d)
    stores.values(kernel, store, z, np.int64(1), d, np.int64(0), n, rows[2:3])
    k_zz = own_value(kernel, stores.spare_of(store, np.int64(1), d), z)
    number = -max(abs(store.entered[i]), abs(store.entered[j]))
    weight = store.weight[i] + store.weight[j]
    # Both rows, or a sparse store may lack room for z.
    stores.release(store, i)
    stores.release(store, j)
    stores.put(store, j, z)
    for turn in range(n_turns(of)):
        p = problem_of_turn(of, state.y[j], turn)
        if p == NONE:
            continue
        s_i, s_j = _member(of, p, i), _member(of, p, j)
        if s_i == NONE and s_j == NONE:
            continue
        _merge_in(state, p, s_i, s_j, rows, k_zz, j, number, weight)
    store.entered[j], store.weight[j] = number, weight
    state.cost[j] += state.cost[i]
    state.diagonal[j] = k_zz
    note_cost(state.info[0], state.cost[j])


@compiled_inner
def merge_two(state, kernel, policy, d):
    """Merge the two cheapest vectors, and return the new slot, True; or one to remove, False."""
    _weigh(state)
    first, row = _lightest(state), np.empty((1, state.y.size), np.float32)
    if state.norm[first] > 0.0:
        i, j = _cheapest_pair(state, kernel, first, row, d)
    else:
        # Its equal gets its boxes: see `solvers.lasvm.bounds.make_room`.
        i, j = first, _neighbour(state, kernel, first, row, d)
        if j != NONE and not are_as_one(state.diagonal[i], state.diagonal[j], row[0, j]):
            j = np.int64(NONE)
    if j == NONE:
        return first, False
    _merge(state, kernel, i, j, policy, d)
    return j, True


@compiled_inner
def _fade_problem(state, p, rho):
    own = borrowed(problem(state, p))
    fade(own, rho)
    note_problem(state.info[0], own)


@compiled_inner
def _fade(state, rho):
    """Let all problems fade, and costs and weights in the store (see `solvers.lasvm.bounds`)."""
    info = state.info[0]
    info.n_watched, info.n_wrong, info.wrong_of_late = 0, 0, 0.0
    for p in range(state.problems.table.size):
        _fade_problem(state, p, rho)
    for s in range(info.n):
        if state.cost[s] > LEAST_COST:
            state.cost[s] *= rho
            state.store.weight[s] *= rho
            note_cost(info, state.cost[s])


@compiled_inner
def _stay_within_budget(bounds, state, kernel, fresh, r, size, n_block, d, is_wrong):
    info = state.info[0]
    note_error(info, is_wrong)
    is_full = info.n - info.n_dead >= bounds.limit
    if is_full and errs_more(info):
        _fade(state, RHO)
    while info.n - info.n_dead > bounds.limit:
        slot, is_merged = merge_two(state, kernel, bounds.policy, d)
        if not is_merged:
            forget(state, kernel, slot, d)
        elif slot < n_block:
            z = stores.row_of(state.store, slot, state.problems.feature_row, d)
            renew_column(state.block, kernel, fresh, z, slot, r + 1, size, d)


stay_within: Any = chosen_by(0, {Unbounded: nothing, Window: nothing, Budget: _stay_within_budget})
"""stay_within(bounds, state, kernel, fresh, r, size, n_block, d, is_wrong): merge or remove vectors
while there are more than the limit, or let all fade, as `solvers.lasvm.bounds.stay_within` does."""
