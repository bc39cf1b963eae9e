"""The finishing of LASVM with shrinking (Bordes, thesis 2010, Algorithm 13 line 4 and 4.2.4).

REPROCESS until delta <= tau, like a small SMO solver on the examples kept. About every thousand
steps, slots at a bound that no violating pair can use are moved behind the others, where steps do
not reach them, if they are many: the first `n_active` slots are the active set S_a. When it has no
violating pair left, the gradients of the rest are brought up to date, by the changes of alpha since
all gradients were right, all slots are active again, and the search goes on until the merged set
has none either.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled
from streamsvm.solvers.lasvm.extreme_lanes import LANES
from streamsvm.solvers.lasvm.state import BLOCK, refresh_extremes, reorder, squeeze
from streamsvm.solvers.lasvm.step import remove_blatant, reprocess
from streamsvm.support import stores

SHRINK_EVERY = 1000
_WORTH = 0.8
"""Shrinking moves rows about, which pays when no more than this share stays active."""


@compiled
def _note(state, known):
    """Note alpha and gradient, which is right for all slots, in `known`, float64 (2, capacity)."""
    known[0] = state.alpha
    known[1] = state.gradient


@compiled
def _catch_up(state, kernel, known, n_active, d):
    """Compute the inactive gradients from those that were noted and all changes since."""
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
    """Move slots that no pair can use behind the active ones, if they are many.

    Returns how many are active.
    """
    info = state.info[0]
    n, g_max, g_min = info.n, info.g_max, info.g_min
    useful = 0
    for s in range(n_active):
        useful += _is_useful(state, s, g_max, g_min)
    if useful > _WORTH * n_active:
        return n_active
    # Whole groups of lanes: a pass over the active set reads to the end of its last group.
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

    Parameters
    ----------
    state, kernel
        The state and its kernel.
    schedule
        A `Schedule`.
    d
        Number of features.
    max_steps
        Where to stop and let the caller report progress or be interrupted; the state is whole.

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
            _catch_up(state, kernel, known, n_active, d)
            n_active = n
            refresh_extremes(state)
            since = 0
        if since >= min(n, SHRINK_EVERY):
            since = 0
            if n_active == n:
                _note(state, known)
            shrunk = _shrink(state, known, n_active)
            if shrunk < n_active:
                n_active = shrunk
                _find_extremes(state, n_active)
    _catch_up(state, kernel, known, n_active, d)
    refresh_extremes(state)
    if done:
        # Not before: later steps might have used them again, and slices would change the result.
        remove_blatant(state)
        squeeze(state)
    return done


@compiled
def _find_extremes(state, n_active):
    """Find i, j, g_max and g_min among the first n_active slots."""
    n = state.info[0].n
    state.info[0].n = n_active
    refresh_extremes(state)
    state.info[0].n = n
