"""The finishing of LASVM with shrinking (Bordes, thesis 2010, Algorithm 13 line 4 and 4.2.4).

REPROCESS until delta <= tau, like a small SMO solver on the examples kept. About every thousand
steps, slots at a bound that no violating pair can use are either removed (alpha = 0) or moved
behind the others, where steps do not reach them: the first `n_active` slots are the active set S_a.
When it has no violating pair left, the gradients of the rest are caught up with, all slots are
active again, and the search goes on until the merged set has none either.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled
from streamsvm.solvers.extreme_lanes import LANES
from streamsvm.solvers.lasvm import remove_blatant, reprocess
from streamsvm.solvers.lasvm_state import refresh_extremes, reorder, squeeze
from streamsvm.support.row_cache import kernel_row

SHRINK_EVERY = 1000


@compiled
def _catch_up(state, kernel, caught_up, n_active, d):  # type: ignore[no-untyped-def]
    """Give the inactive gradients all changes of alpha since `caught_up`, and note them there."""
    n = state.info[0].n
    for i in range(n):
        change = state.alpha[i] - caught_up[i]
        if change == 0.0:
            continue
        if n_active < n:
            row = state.cache.values[kernel_row(state.cache, kernel, state.store, i, n, d)]
            for s in range(n_active, n):
                state.gradient[s] -= change * np.float64(row[s])
        caught_up[i] = state.alpha[i]


@compiled
def _is_useful(state, s, g_max, g_min):  # type: ignore[no-untyped-def]
    can_rise = state.alpha[s] < state.upper[s]
    can_fall = state.alpha[s] > state.lower[s]
    return (can_rise and state.gradient[s] > g_min) or (can_fall and state.gradient[s] < g_max)


@compiled
def _shrink(state, caught_up, n_active):  # type: ignore[no-untyped-def]
    """Move slots that no pair can use behind the active ones; return how many stay active."""
    info = state.info[0]
    n, g_max, g_min = info.n, info.g_max, info.g_min
    useful = 0
    for s in range(n_active):
        useful += _is_useful(state, s, g_max, g_min)
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
    if active == n_active:
        return n_active
    reorder(state, order, n)
    before = caught_up.copy()
    for s in range(n):
        caught_up[s] = before[order[s]]
    return active


@compiled
def finish_some(state, kernel, schedule, d, max_steps):  # type: ignore[no-untyped-def]
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
    n_active, caught_up = n, state.alpha.copy()
    made, since, done = 0, 0, False
    while made < max_steps:
        if reprocess(state, kernel, schedule, n_active, d):
            made += 1
            since += 1
        elif n_active == n:
            done = True
            break
        else:
            _catch_up(state, kernel, caught_up, n_active, d)
            n_active = n
            refresh_extremes(state)
            since = 0
        if since >= min(n, SHRINK_EVERY):
            since = 0
            _catch_up(state, kernel, caught_up, n_active, d)
            shrunk = _shrink(state, caught_up, n_active)
            if shrunk < n_active:
                n_active = shrunk
                _find_extremes(state, n_active)
    _catch_up(state, kernel, caught_up, n_active, d)
    refresh_extremes(state)
    if done:
        # Not before: later steps might have used them again, and slices would change the result.
        remove_blatant(state)
        squeeze(state)
    return done


@compiled
def _find_extremes(state, n_active):  # type: ignore[no-untyped-def]
    """Find i, j, g_max and g_min among the first n_active slots."""
    n = state.info[0].n
    state.info[0].n = n_active
    refresh_extremes(state)
    state.info[0].n = n
