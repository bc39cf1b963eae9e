"""The state of LASVM: its arrays, and how they are reordered and rebuilt."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.solvers.lasvm.extremes import LANES, update_gradient
from streamsvm.solvers.window import RECENT_OF_TWO
from streamsvm.support import looks, stores
from streamsvm.support.declaration import (
    BOX,
    NOT_NEGATIVE,
    SIGN,
    Range,
    Record,
    count_of,
    field,
    index_of,
)
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import BLOCK, values_of_slot
from streamsvm.support.kernel_rows.row_cache import RowCache
from streamsvm.support.looks import note_cost
from streamsvm.support.states import CACHE, STORE, declare
from streamsvm.support.stores import Store

INFO = np.dtype(
    [
        ("n", np.int64),  # slots in use, dead ones included
        ("n_dead", np.int64),  # slots whose example was removed, not yet squeezed out
        ("n_zero", np.int64),  # live slots with alpha = 0
        ("n_seen", np.int64),  # examples given to PROCESS
        ("n_steps", np.int64),  # pair steps made
        ("n_null", np.int64),  # PROCESS and REPROCESS calls that found no violating pair
        ("n_values", np.int64),  # kernel values computed for fresh examples
        ("i", np.int64),  # slot of g_max, or -1
        ("j", np.int64),  # slot of g_min, or -1
        ("g_max", np.float64),  # largest gradient with alpha < B, or -inf
        ("g_min", np.float64),  # smallest gradient with alpha > A, or +inf
        ("dual", np.float64),  # the dual objective, summed step by step
        ("lost", np.float64),  # by how much removals, merges and rebuilds lowered the dual
        ("ready", np.int64),  # n or -n: the scratch has the kernel values of rows with n slots
        ("n_watched", np.int64),  # examples whose errors were noted: see `solvers.lasvm.bounds`
        ("n_wrong", np.int64),  # how many of them were predicted wrong before they were learnt
        ("wrong_of_late", np.float64),  # the share of these of late
        ("n_over", np.int64),  # vectors that made room for others since the last fading
        *looks.SCALARS,
    ]
)


_A_SLOT = index_of("slots", none=-1)


class LASVMState(NamedTuple):
    """The arrays of LASVM; a slot is a position in all arrays of length `capacity`."""

    store: Store = STORE
    cache: RowCache = CACHE
    alpha: np.ndarray = field("slots")  # signed coefficients, A <= alpha <= B, sum 0
    gradient: np.ndarray = field("slots")  # g_s = y_s - sum_i alpha_i k(x_i, x_s)
    lower: np.ndarray = field("slots", range=Range(-BOX.high, 0.0))  # A = min(0, C y)
    upper: np.ndarray = field("slots", range=BOX)  # B = max(0, C y); A = B: dead and unused slots
    y: np.ndarray = field("slots", range=SIGN)
    diagonal: np.ndarray = field("slots", dtype=np.float32, range=NOT_NEGATIVE)  # k(x_s, x_s)
    recent: np.ndarray = RECENT_OF_TWO  # of y = -1 and of y = +1: see `solvers.window`
    look_draws: np.ndarray = looks.DRAWS  # state of the generator of looks, see `support.draws`
    info: Any = Record(
        INFO,
        initial={"i": -1, "j": -1, "g_max": -np.inf, "g_min": np.inf},
        ranges={
            "n_dead": count_of("slots"),
            "n_zero": count_of("slots"),
            "i": _A_SLOT,
            "j": _A_SLOT,
            "g_max": Range(infinite=True),
            "g_min": Range(infinite=True),
            "wrong_of_late": Range(0.0, 1.0),
        },
        reset=("ready",),
    )
    # Kernel values of fresh rows; a permutation of slots.
    block: np.ndarray = field(BLOCK, "slots", dtype=np.float32, scratch=True)
    order: np.ndarray = field("slots", dtype=np.int64, scratch=True)
    # Of `extremes`: values, and groups in which they occurred.
    lanes: np.ndarray = field(2, LANES, scratch=True)
    groups: np.ndarray = field(2, LANES, dtype=np.int64, scratch=True)


def are_feasible(alpha: Any, lower: Any, upper: Any, owner: Any, cost_most: Any) -> bool:
    """Tell whether coefficients are in their boxes and of sum 0 by owner, but for rounding.

    `cost_most` has the largest C_i so far of each owner.
    """
    # What rounding leaves of the largest coefficients stays when they have gone.
    rounding = looks.ROUNDING * np.asarray(cost_most)
    slack = 1e-6 * (upper - lower) + rounding[owner]
    sums = np.bincount(owner, alpha, len(rounding))
    sizes = np.bincount(owner, np.abs(alpha) + upper - lower, len(rounding))
    fits = bool(((alpha >= lower - slack) & (alpha <= upper + slack)).all())
    return fits and bool((np.abs(sums) <= 1e-6 * sizes + rounding).all())


def _check(state: LASVMState, sizes: Any) -> None:
    """Refuse coefficients and boxes that contradict each other, or the numbers of them."""
    n, info = sizes["slots"], state.info[0]
    alpha, lower, upper = state.alpha[:n], state.lower[:n], state.upper[:n]
    is_live = lower != upper
    fits = are_feasible(alpha, lower, upper, np.zeros(n, np.int64), [info.cost_most])
    fits = fits and bool((np.where(state.y[:n] > 0.0, lower, upper) == 0.0).all())
    fits = fits and int(info.n_dead) == int((~is_live).sum())
    if not fits or int(info.n_zero) != int((is_live & (alpha == 0.0)).sum()):
        raise ValueError("a coefficient is not within its box, or counts or sums do not fit")


declare(LASVMState, _check)


@compiled_within
def bias_of(info):
    """Return b: the middle of [g_min, g_max]; if only one of them exists, that one; else 0."""
    if info.i >= 0 and info.j >= 0:
        return 0.5 * (info.g_max + info.g_min)
    if info.i >= 0:
        return info.g_max
    return info.g_min if info.j >= 0 else 0.0


@compiled_inner
def bias(state):
    """Return b."""
    return bias_of(state.info[0])


@compiled_inner
def find_extremes(state, n):
    """Find i, j, g_max and g_min among the first n slots."""
    # A step of length 0; the diagonal stands in for a row because it is finite.
    update_gradient(state, state.diagonal, state.diagonal, 0.0, n)


@compiled
def refresh_extremes(state):
    """Find i, j, g_max and g_min."""
    state = borrowed(state)
    find_extremes(state, state.info[0].n)


@compiled_inner
def reorder(state, order, n_kept):
    """Move slot order[s] to slot s, for s < n_kept; all other slots become unused."""
    stores.reorder(state.store, order, n_kept)
    row_cache.reorder(state.cache, order, n_kept)
    for array in (state.alpha, state.gradient, state.lower, state.upper, state.y):
        copy = array.copy()
        for s in range(n_kept):
            array[s] = copy[order[s]]
        for s in range(n_kept, array.size):
            array[s] = 0.0
    copy = state.diagonal.copy()
    for s in range(n_kept):
        state.diagonal[s] = copy[order[s]]
    state.info[0].n = n_kept


@compiled
def squeeze(state):
    """Remove dead slots by moving the others up; `state.order` has the old slot of each new one."""
    state = borrowed(state)
    # Not a literal, for which numba would compile one more version of each function called.
    n_kept = np.int64(0)
    for s in range(state.info[0].n):
        if state.lower[s] != state.upper[s]:
            state.order[n_kept] = s
            n_kept += 1
    reorder(state, state.order, n_kept)
    state.info[0].n_dead = 0
    refresh_extremes(state)


@compiled
def rebuild(state, kernel, d):
    """Recompute gradients, diagonal and dual, after a change of the kernel or the boxes."""
    state, kernel = borrowed((state, kernel))
    n = state.info[0].n
    row_cache.clear(state.cache, n)
    dual, n_zero = 0.0, 0
    for s in range(n):
        row, f = values_of_slot(state, kernel, s, n, d), 0.0
        for t in range(n):
            f += state.alpha[t] * row[t]
        state.gradient[s] = state.y[s] - f
        state.diagonal[s] = row[s]
        dual += 0.5 * state.alpha[s] * (state.y[s] + state.gradient[s])
        n_zero += state.alpha[s] == 0.0 and state.lower[s] != state.upper[s]
    state.info[0].lost += state.info[0].dual - dual
    state.info[0].dual = dual
    state.info[0].n_zero = n_zero
    refresh_extremes(state)


@compiled_inner
def set_cost(state, s, cost):
    """Set the box of an example, and clip its coefficient."""
    note_cost(state.info[0], cost)
    state.upper[s] = cost if state.y[s] > 0.0 else 0.0
    state.lower[s] = -cost if state.y[s] < 0.0 else 0.0
    state.alpha[s] = min(state.upper[s], max(state.lower[s], state.alpha[s]))


@compiled_inner
def restore_sum(state, rising, falling):
    """Scale down the coefficients of the sign with the larger sum: the sum of all is 0 again."""
    for s in range(state.info[0].n):
        if state.alpha[s] > 0.0 and rising > falling:
            state.alpha[s] *= falling / rising
        elif state.alpha[s] < 0.0 and falling > rising:
            state.alpha[s] *= rising / falling


@compiled
def set_costs(state, kernel, c_negative, c_positive, d):
    """Set C_s of every example kept to C_y times its weight; return whether any has changed.

    Coefficients outside their new box are clipped. To restore sum_s alpha_s = 0, the coefficients
    of the class with the larger sum are then scaled down, which keeps them inside their boxes.
    Gradients are recomputed.
    """
    state, kernel = borrowed((state, kernel))
    changed = False
    rising, falling = 0.0, 0.0
    for s in range(state.info[0].n):
        if state.lower[s] == state.upper[s]:
            continue
        c = c_positive if state.y[s] > 0.0 else c_negative
        cost = c * state.store.weight[s]
        old = state.upper[s] - state.lower[s]
        changed |= abs(cost - old) > 1e-9 * old
        set_cost(state, s, cost)
        rising += max(0.0, state.alpha[s])
        falling -= min(0.0, state.alpha[s])
    if not changed:
        return False
    restore_sum(state, rising, falling)
    rebuild(state, kernel, d)
    return True
