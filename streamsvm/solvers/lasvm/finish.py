"""The finishing of LASVM with shrinking (Bordes, thesis 2010, Algorithm 13 line 4 and 4.2.4).

REPROCESS is repeated until delta <= tau, as in an SMO solver on the examples kept. The first
`n_active` slots are the active set S_a: steps use and update only these. About every thousand
steps, slots at a bound that cannot be in a violating pair are moved behind the active ones, if
there are many of them. When S_a has no violating pair left, the gradients of the inactive slots are
recomputed from the changes of alpha since all gradients were last right, and all slots become
active again. The search ends when all slots together have no violating pair.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled
from streamsvm.solvers.lasvm.extreme_lanes import LANES
from streamsvm.solvers.lasvm.state import find_extremes, refresh_extremes, reorder, squeeze
from streamsvm.solvers.lasvm.step import remove_blatant, reprocess
from streamsvm.support import stores
from streamsvm.support.kernel_rows.fresh_block import BLOCK

SHRINK_EVERY = 1000
_LARGEST_ACTIVE_SHARE = 0.8
"""Shrinking moves rows in memory: it is done only if at most this share of slots stays active."""


@compiled
def _update_inactive(state, kernel, known, n_active, d):
    """Compute the inactive gradients from saved ones and the changes of alpha since then.

    `known`, float64 (2, capacity), are alpha and gradient when they were right for all slots.
    """
    n = state.info[0].n
    if n_active == n:
        return
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
            state.info[0].n_values += found * (n - n_active)
            for r in range(found):
                for s in range(n_active, n):
                    known[1, s] -= changes[r] * np.float64(state.block[r, s])
            found = np.int64(0)
    for s in range(n_active, n):
        state.gradient[s] = known[1, s]


@compiled
def _is_useful(state, s, g_max, g_min):
    can_rise = state.alpha[s] < state.upper[s]
    can_fall = state.alpha[s] > state.lower[s]
    return (can_rise and state.gradient[s] > g_min) or (can_fall and state.gradient[s] < g_max)


@compiled
def _shrink(state, known, n_active):
    """Move slots that are in no violating pair behind the active ones; return how many stay."""
    info = state.info[0]
    n, g_max, g_min = info.n, info.g_max, info.g_min
    useful = 0
    for s in range(n_active):
        useful += _is_useful(state, s, g_max, g_min)
    if useful > _LARGEST_ACTIVE_SHARE * n_active:
        return n_active
    # Rounded up to a multiple of 16, since a pass reads to the end of its last group.
    spare = min(n, (useful + LANES - 1) // LANES * LANES) - useful
    order = np.empty(n, np.int64)
    active, idle = 0, n
    for s in range(n):
        stays = s < n_active
        if stays and not _is_useful(state, s, g_max, g_min):
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
    return active


@compiled
def finish_some(state, kernel, schedule, d, max_steps):
    """Make up to `max_steps` REPROCESS steps; return True when delta <= tau.

    The state is consistent after each call, so that the caller can report progress.
    """
    state = borrowed(state)
    squeeze(state)
    n = state.info[0].n
    n_active, known = n, np.empty((2, state.alpha.size))
    state.info[0].ready = 0
    made, since, done = 0, 0, False
    while made < max_steps:
        if reprocess(state, kernel, schedule, n_active, d):
            made += 1
            since += 1
        elif n_active == n:
            done = True
            break
        else:
            _update_inactive(state, kernel, known, n_active, d)
            n_active = n
            refresh_extremes(state)
            since = 0
        if since >= min(n, SHRINK_EVERY):
            since = 0
            if n_active == n:
                known[0], known[1] = state.alpha, state.gradient
            shrunk = _shrink(state, known, n_active)
            if shrunk < n_active:
                n_active = shrunk
                find_extremes(state, n_active)
    _update_inactive(state, kernel, known, n_active, d)
    refresh_extremes(state)
    if done:
        # Only at the end: a later step might use a removed example, so that the result would depend
        # on `max_steps`.
        remove_blatant(state)
        squeeze(state)
    return done
