"""The finishing of LASVM by working sets (Bordes, thesis 2010, Algorithm 13, line 4).

REPROCESS is repeated until delta <= tau, as in an SMO solver on the examples kept. A step of that
kind reads and writes the gradients of all slots. So the steps are made on a working set W at a
time, the slots that violate optimality most: W with its kernel values is a LASVM of its own, small
enough for the processor's cache, whose other coefficients stay as they are. Then the gradients of
all slots are updated at once, by what each coefficient of W has changed by. The search ends when
all slots together have no violating pair.

Shrinking (thesis, 4.2.4): slots at a bound that cannot be in a violating pair are moved behind the
others, the active ones, and their gradients are left as they were. When the active slots have no
violating pair, these gradients are computed from all changes of alpha since then, and all slots
become active again.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.lasvm.extremes import LANES
from streamsvm.solvers.lasvm.state import (
    LASVMState,
    find_extremes,
    refresh_extremes,
    reorder,
    squeeze,
)
from streamsvm.solvers.lasvm.step import Schedule, delta, enter, remove_blatant, reprocess
from streamsvm.solvers.registry import side_of
from streamsvm.support import stores
from streamsvm.support.assigning import assign
from streamsvm.support.kernel_rows.fresh_block import BLOCK
from streamsvm.support.kernel_rows.kernel_values import add_scaled
from streamsvm.support.kernel_rows.row_cache import (
    COMPUTED,
    MISSES,
    NONE,
    RowCache,
    kernel_row,
    take_line,
)
from streamsvm.support.rows import count, part

_COLUMNS = 2048
"""A multiple of 32: of so many slots kernel values are computed and used at a time."""

FEWEST, MOST = 1024, 2048
"""Sizes of working sets: the kernel values of a set take 1 to 16 MB."""

DIRECT = 4096
"""Up to so many slots the steps are made on all of them."""

_FEW_STEPS = 2
"""After fewer steps than so many for each slot, the next working set is twice as large."""

_LARGEST_ACTIVE_SHARE = 0.7
"""Shrinking moves rows in memory: it is done only if at most this share of slots stays active."""

_ENOUGH = 0.1
"""Steps on a working set end when its delta is below this share of that of all slots."""

_STEPS_EACH = 20
"""Steps on a working set end after so many for each of its slots."""


@compiled_inner
def _forget_counts(own):
    own.dual, own.n_steps, own.n_null, own.n_zero = 0.0, 0, 0, 0


@compiled_inner
def _working_set_state(state, most):
    """Return a state of `most` slots without rows of its own, whose kernel rows are all cached."""
    lines = np.arange(most + 2).astype(np.int32)
    cache = RowCache(
        np.zeros((most, most), np.float32), np.zeros(most, np.int64), lines[:most].copy(),
        lines[:most].copy(), lines.copy(), lines.copy(), np.zeros(most, np.int64), state.cache.row,
        np.zeros(4, np.int64), np.zeros(4, np.int64),
    )  # fmt: skip
    own = LASVMState(
        state.store, cache, np.zeros(most), np.zeros(most), np.zeros(most), np.zeros(most),
        np.zeros(most), np.zeros(most, np.float32), state.recent, state.look_draws,
        state.info.copy(), state.block, state.order, state.lanes.copy(), state.groups.copy(),
    )  # fmt: skip
    _forget_counts(own.info[0])
    return own


@compiled_inner
def _take_best(found, worth, n_found, room, slots, size):
    """Append the `room` slots of largest worth among those found, of equal ones the first."""
    n_taken = min(room, n_found)
    if n_taken == 0:
        return size
    least = order_statistic(worth[:n_found].copy(), n_found - n_taken)
    n_equal = n_taken
    for c in range(n_found):
        n_equal -= worth[c] > least
    for c in range(n_found):
        if worth[c] > least or (worth[c] == least and n_equal > 0):
            n_equal -= worth[c] == least
            slots[size] = found[c]
            size += 1
    return size


@compiled_inner
def _choose(state, n, slots, size, is_in, most):
    """Write the next working set, of the first n slots; return its size. The last had `size`."""
    g_max, g_min = state.info[0].g_max, state.info[0].g_min
    is_in[:n] = False
    # Those that came last: an older half gives way to others.
    kept = np.int64(0)
    last = slots[:size].copy()
    for c in range(size - 1, -1, -1):
        s = last[c]
        if kept < most // 2 and state.lower[s] < state.alpha[s] < state.upper[s]:
            slots[kept] = s
            is_in[s] = True
            kept += 1
    size = kept
    found, worth = np.empty(n, np.int64), np.empty(n)
    for rises in (True, False):
        n_found = 0
        for s in range(n):
            g = state.gradient[s]
            can_move = state.alpha[s] < state.upper[s] if rises else state.alpha[s] > state.lower[s]
            if can_move and not is_in[s] and (g > g_min if rises else g < g_max):
                found[n_found], worth[n_found] = s, g if rises else -g
                n_found += 1
        before = size
        room = (most - size) // 2 if rises else most - size
        size = _take_best(found, worth, n_found, room, slots, size)
        for c in range(before, size):
            is_in[slots[c]] = True
    return size


@compiled_inner
def _load_values(own, state, n, kernel, slots, size, d, spare):
    """Write the kernel values between these slots: from cached rows, or else in blocks."""
    values = own.cache.values
    missing, n_missing = np.empty(size, np.int64), np.int64(0)
    for c in range(size):
        line = state.cache.line_of[slots[c]]
        if line != NONE and state.cache.length[line] >= n:
            for e in range(size):
                values[c, e] = state.cache.values[line, slots[e]]
        else:
            missing[n_missing] = c
            n_missing += 1
    if n_missing > 0:
        fresh = stores.of_rows(spare, stores.gather(state.store, slots, size, d))
        x = stores.gather(state.store, slots[missing[:n_missing]], n_missing, d)
        found = np.empty((n_missing, values.shape[1]), np.float32)
        stores.values(kernel, fresh, x, n_missing, d, np.int64(0), size, found)
        state.cache.counts[COMPUTED] += n_missing * size
        for r in range(n_missing):
            assign(values[missing[r]], found[r, :size])


@compiled_inner
def _load(own, state, slots, size):
    """Make the coefficients and gradients of a working set those of these slots."""
    for c in range(own.alpha.size):
        is_used = c < size
        s = slots[c] if is_used else np.int64(0)
        own.cache.length[c] = size if is_used else 0
        own.alpha[c] = state.alpha[s] if is_used else 0.0
        own.gradient[c] = state.gradient[s] if is_used else 0.0
        own.lower[c] = state.lower[s] if is_used else 0.0
        own.upper[c] = state.upper[s] if is_used else 0.0
        own.diagonal[c] = state.diagonal[s] if is_used else np.float32(0.0)
    own.info[0].n = size
    refresh_extremes(own)


@compiled_inner
def _reprocess_some(own, kernel, schedule, size, d, enough):
    """Make steps on a working set until its delta is small enough; return how many."""
    own, kernel = borrowed((own, kernel))
    inner = Schedule(
        max(0.5 * schedule.tau, enough), schedule.reprocess, schedule.delta_max,
        schedule.max_reprocess, 1.0, schedule.bounds,
    )  # fmt: skip
    steps = 0
    while steps < _STEPS_EACH * size and reprocess(own, kernel, inner, size, d):
        steps += 1
    return steps


@compiled_inner
def _update_gradients(state, n, kernel, slots, changes, size, d):
    """Update the first n gradients by changes of the coefficients of at most `BLOCK` slots."""
    cache = state.cache
    at, missing, n_missing = np.empty(size, np.int64), np.empty(size, np.int64), np.int64(0)
    for r in range(size):
        at[r] = NONE
        if cache.line_of[slots[r]] == NONE:
            at[r] = n_missing
            missing[n_missing] = slots[r]
            n_missing += 1
        else:
            kernel_row(cache, kernel, state.store, slots[r], n, d)
    x = stores.gather(state.store, missing, n_missing, d)
    # Some columns at a time, which stay in the processor's cache.
    for first in range(0, n, _COLUMNS):
        stop = min(n, first + _COLUMNS)
        if n_missing > 0:
            stores.values(kernel, state.store, x, n_missing, d, first, stop, state.block)
        for r in range(size):
            own = cache.values[cache.line_of[slots[r]]] if at[r] == NONE else state.block[at[r]]
            add_scaled(state.gradient[first:stop], own[first:stop], -changes[r], stop - first)
    for r in range(n_missing):
        line = take_line(cache, missing[r])
        assign(cache.values[line], state.block[r, :n])
        cache.length[line] = n
    cache.counts[MISSES] += n_missing
    cache.counts[COMPUTED] += n_missing * n


@compiled_inner
def _take_over(state, n, own, kernel, slots, size, d):
    """Write the coefficients of the working set back, and update the first n gradients."""
    changed, changes, n_changed = np.empty(BLOCK, np.int64), np.empty(BLOCK), np.int64(0)
    for c in range(size):
        s = slots[c]
        if own.alpha[c] != state.alpha[s]:
            changed[n_changed], changes[n_changed] = s, own.alpha[c] - state.alpha[s]
            state.alpha[s] = own.alpha[c]
            n_changed += 1
        if n_changed == BLOCK or (c == size - 1 and n_changed > 0):
            _update_gradients(state, n, kernel, changed, changes, n_changed, d)
            n_changed = np.int64(0)


@compiled_inner
def _add_counts(info, own):
    """Add what a working set has counted; it begins to count anew."""
    info.dual += own.dual
    info.n_steps += own.n_steps
    info.n_null += own.n_null
    info.n_zero += own.n_zero
    _forget_counts(own)


@compiled_inner
def _update_inactive(state, kernel, known, n_active, d):
    """Compute the inactive gradients from saved ones and the changes of alpha since then.

    `known`, float64 (2, n), are alpha and gradient when they were right for all slots.
    """
    n = state.info[0].n
    slots, changes = np.empty(BLOCK, np.int64), np.empty(BLOCK)
    found = np.int64(0)
    for i in range(n):
        change = state.alpha[i] - known[0, i]
        if change != 0.0:
            slots[found] = i
            changes[found] = change
            found += 1
        if found == BLOCK or i == n - 1:
            x = stores.gather(state.store, slots, found, d)
            stores.values(kernel, state.store, x, found, d, n_active, n, state.block)
            state.cache.counts[COMPUTED] += found * (n - n_active)
            for r in range(found):
                add_scaled(
                    known[1, n_active:], state.block[r, n_active:n], -changes[r], n - n_active
                )
            found = np.int64(0)
    for s in range(n_active, n):
        state.gradient[s] = known[1, s]
    refresh_extremes(state)


@compiled_inner
def _shrink(state, known, n_active):
    """Move slots that are in no violating pair behind the active ones; return how many stay."""
    info = state.info[0]
    n, g_max, g_min = info.n, info.g_max, info.g_min
    useful = np.zeros(n_active, np.bool_)
    for s in range(n_active):
        g = state.gradient[s]
        can_rise, can_fall = state.alpha[s] < state.upper[s], state.alpha[s] > state.lower[s]
        useful[s] = (can_rise and g > g_min) or (can_fall and g < g_max)
    n_useful = useful.sum()
    if n_useful > _LARGEST_ACTIVE_SHARE * n_active:
        return n_active
    if n_active == n:
        assign(known[0], state.alpha[:n])
        assign(known[1], state.gradient[:n])
    # Rounded up to a multiple of 16, since a pass reads to the end of its last group.
    spare = min(n_active, (n_useful + LANES - 1) // LANES * LANES) - n_useful
    order, active, idle = np.empty(n, np.int64), np.int64(0), n
    for s in range(n):
        stays = s < n_active
        if stays and not useful[s]:
            stays = spare > 0
            spare -= 1
        if stays:
            order[active] = s
            active += 1
        else:
            idle -= 1
            order[idle] = s
    reorder(state, order, n)
    before = known.copy()
    for s in range(n):
        known[0, s], known[1, s] = before[0, order[s]], before[1, order[s]]
    find_extremes(state, active)
    return active


@compiled_inner
def improve_by_sets(state, kernel, schedule, d, max_steps, most, largest, may_move):
    """Make some `max_steps` steps on one working set after the other; tell whether it is over.

    A set has `most` slots, a multiple of 32, or if few steps are made on it twice as many, up to
    `largest`. Slots are moved to shrink the active ones, if they may be moved.
    """
    n, made, size, steps = state.info[0].n, 0, np.int64(0), 1
    n_active, known = n, np.empty((2, n))
    own, spare = _working_set_state(state, most), stores.spare_of(state.store, largest, d)
    slots, is_in = np.empty(largest, np.int64), np.zeros(n, np.bool_)
    while made < max_steps and steps > 0:
        if delta(state) <= schedule.tau:
            if n_active == n:
                break
            _update_inactive(state, kernel, known, n_active, d)
            n_active, size = n, np.int64(0)
            continue
        n_before = n_active
        n_active = _shrink(state, known, n_active) if may_move else n_active
        size = _choose(state, n_active, slots, size if n_active == n_before else 0, is_in, most)
        _load(own, state, slots, size)
        _load_values(own, state, n_active, kernel, slots, size, d, spare)
        steps = _reprocess_some(own, kernel, schedule, size, d, _ENOUGH * delta(state))
        _take_over(state, n_active, own, kernel, slots, size, d)
        _add_counts(state.info[0], own.info[0])
        find_extremes(state, n_active)
        made += steps
        if steps < _FEW_STEPS * size and most < largest:
            most = min(2 * most, largest)
            own = _working_set_state(state, most)
    if n_active < n:
        _update_inactive(state, kernel, known, n_active, d)
    return steps == 0 or delta(state) <= schedule.tau


@compiled_inner
def improve(state, kernel, schedule, d, max_steps, may_move):
    """Make some `max_steps` steps on slots that are all live; return whether it is over.

    It is when delta <= tau, or no step changes a coefficient in double precision.
    """
    n = state.info[0].n
    state.info[0].ready = 0
    if n > DIRECT:
        sizes = np.int64(FEWEST), np.int64(MOST)
        return improve_by_sets(state, kernel, schedule, d, max_steps, *sizes, may_move)
    made = 0
    while made < max_steps and reprocess(state, kernel, schedule, n, d):
        made += 1
    return made < max_steps


@compiled
def finish_some(state, kernel, schedule, d, max_steps):
    """Make some `max_steps` REPROCESS steps; return True when delta <= tau.

    The state is consistent after each call, so that the caller can report progress.
    """
    state, kernel = borrowed((state, kernel))
    squeeze(state)
    is_over = improve(state, kernel, schedule, d, max_steps, True)
    if is_over:
        # Only at the end: a later step might use a removed example, so that the result would depend
        # on `max_steps`.
        remove_blatant(state, schedule)
        squeeze(state)
    return is_over


@compiled
def add_rows(state, x, y, cost, weight, numbers, diagonal, f):
    """Make examples that are not in S members of it, with alpha = 0; return how many fitted.

    Arguments are as in `learn_rows`; f, float64 (n,), is f(x) without b. Those of cost 0 are left
    out.
    """
    state, x = borrowed((state, x))
    state.info[0].ready = 0
    for r in range(count(x)):
        row = part(x, r, r + 1)
        if state.info[0].n == state.alpha.size or not stores.has_room(state.store, row):
            refresh_extremes(state)
            return r
        if cost[r] > 0.0:
            y_r = side_of(y[r])
            enter(state, row, y_r, cost[r], weight[r], numbers[r], y_r - f[r], diagonal[r])
    refresh_extremes(state)
    return count(x)


@compiled_inner
def order_statistic(values, n):
    """Return the number that stands at place n, from 0, when the values are sorted (Hoare's FIND).

    values: (size,), moved about; none is NaN.
    """
    low, high = np.int64(0), np.int64(values.size - 1)
    while low < high:
        pivot, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < n < i:
            break
        if n <= j:
            high = j
        else:
            low = i
    return values[n]
