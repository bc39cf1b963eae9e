"""LASVM: an online soft-margin SVM with bias (Bordes, thesis 2010, section 4.2, Algorithms 11-13).

Problem (thesis, 4.1), over the examples kept::

    max_alpha  D(alpha) = sum_s alpha_s y_s - 1/2 sum_{s,t} alpha_s alpha_t k(x_s, x_t)
    with       sum_s alpha_s = 0,   A_s <= alpha_s <= B_s,
               A_s = min(0, C_s y_s),   B_s = max(0, C_s y_s)

Input: examples (x, y) one after the other, y = +1 or -1, each with its own C_s = C x class weight x
example weight. State: a set S of slots with the signed alpha_s and the gradient g_s = dD/dalpha_s
= y_s - sum_t alpha_t k(x_t, x_s), both up to date after every step.

Symbols: a pair (i, j) is tau-violating if alpha_i < B_i, alpha_j > A_j and g_i - g_j > tau. A step
on it adds lambda = min((g_i - g_j) / eta, B_i - alpha_i, alpha_j - A_j) to alpha_i and takes it
from alpha_j, with eta = k_ii + k_jj - 2 k_ij; at eta = 0, as for equal examples, the box alone ends
it. A step that changes neither coefficient in double precision is none. b = (g_max + g_min) / 2,
delta = g_max - g_min.

Functions have the names of the paper's steps. Additions to the paper: the partner of a pair may be
chosen by second-order gain; REPROCESS may be repeated until delta <= delta_max; the slot of a
removed example stays as a dead slot until an eighth of all slots are dead.

Further addition, for equal rows: once delta <= tau, a few examples with alpha = 0 stay in S, or
enter it, although they violate nothing: those whose gradient is one of the two that b is computed
from. Without them S would only have what is hard to tell; of equal rows that would be as many of
the smaller class as of the larger one, whose others were left out, and b would be as good for
either. Later examples of the smaller class find their partners among them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_leaf, compiled_within
from streamsvm.solvers.bounds import UNBOUNDED, Bounds
from streamsvm.solvers.lasvm.bounds import kept_rows, mark_dead, share, slide, stay_within
from streamsvm.solvers.lasvm.extremes import best_partner, update_gradient
from streamsvm.solvers.lasvm.gap import look
from streamsvm.solvers.lasvm.state import LASVMState, bias, refresh_extremes, squeeze
from streamsvm.solvers.registry import BINARY, register_kernel_solver, side_of
from streamsvm.support import stores
from streamsvm.support.kernel_rows.fresh_block import next_rows, squeezed
from streamsvm.support.kernel_rows.kernel_values import expansion
from streamsvm.support.kernel_rows.row_cache import keep, kernel_row
from streamsvm.support.looks import note_cost
from streamsvm.support.rows import count, part, width

SEEDS = 5
"""Number of examples inserted while there is no pair yet: the seeds of Algorithm 13, line 1."""

SPARES = 16
"""At most so many examples that are no support vectors stay in S because they bound b."""

_TINY = 1e-12

_TOGETHER = 64
"""So many slots are looked at together: most are dead or of support vectors, in no order."""


class Schedule(NamedTuple):
    """Parameters of the steps; `learn_rows` is compiled once for each type of `bounds`."""

    tau: float  # a pair that violates by less is left alone
    reprocess: float  # REPROCESS calls after each PROCESS
    delta_max: float  # further REPROCESS calls are made until delta <= delta_max
    max_reprocess: float  # the largest number of REPROCESS calls for one example
    second_order: float  # 1: the partner is chosen by gain, 0: by gradient, as in the papers
    bounds: Bounds = UNBOUNDED  # which examples are kept in S; not a `Reservoir`
    is_read: float = 0.0  # 1: another thread reads rows of the store, so that none may be moved


@compiled_within
def delta(state):
    """Return g_max - g_min, the uncertainty of b; 0 without a pair."""
    info = state.info[0]
    if info.i < 0 or info.j < 0:
        return 0.0
    return info.g_max - info.g_min


@compiled_within
def n_spares(state, schedule):
    """Return how many examples may stay in S because they bound b; a budget removes them first."""
    return 0 if delta(state) > schedule.tau else SPARES


@compiled_within
def bounds_bias(info, g, rising, tau):
    """Tell whether an example with alpha = 0 bounds b, as nothing in S does by more than tau."""
    return g >= info.g_max - tau if rising else g <= info.g_min + tau


@compiled_within
def pair_step(state, kernel, i, j, n, d):
    """Make the step of length lambda on slots (i, j) of n; tell if a coefficient changed."""
    row_i = state.cache.values[kernel_row(state.cache, kernel, state.store, i, n, d)]
    row_j = state.cache.values[kernel_row(state.cache, kernel, state.store, j, n, d)]
    # In double precision: for nearly equal examples the three terms almost cancel.
    diagonals = np.float64(state.diagonal[i]) + np.float64(state.diagonal[j])
    eta = diagonals - 2.0 * np.float64(row_i[j])
    slope = state.gradient[i] - state.gradient[j]
    old_i, old_j = state.alpha[i], state.alpha[j]
    room_i, room_j = state.upper[i] - old_i, old_j - state.lower[j]
    step = min(room_i, room_j)
    if eta > _TINY:
        step = min(step, slope / eta)
    else:
        eta = np.float64(0.0)
    # A coefficient that reaches its bound is set to it, without rounding.
    state.alpha[i] = state.upper[i] if step == room_i else old_i + step
    state.alpha[j] = state.lower[j] if step == room_j else old_j - step
    info = state.info[0]
    if state.alpha[i] == old_i and state.alpha[j] == old_j:
        info.n_null += 1
        return False
    info.n_zero -= int(old_i == 0.0) + int(old_j == 0.0)
    info.n_zero += int(state.alpha[i] == 0.0) + int(state.alpha[j] == 0.0)
    info.dual += step * (slope - 0.5 * step * eta)
    info.n_steps += 1
    update_gradient(state, row_i, row_j, step, n)
    return True


@compiled_within
def enter(state, x, y, cost, weight, number, gradient, diagonal):
    """Add an example to S with alpha = 0; return its slot."""
    info = state.info[0]
    k = info.n
    stores.put(state.store, k, x)
    state.store.entered[k], state.store.weight[k] = number, weight
    state.alpha[k], state.gradient[k], state.y[k], state.diagonal[k] = 0.0, gradient, y, diagonal
    state.lower[k], state.upper[k] = min(0.0, cost * y), max(0.0, cost * y)
    note_cost(info, cost)
    info.n = k + 1
    info.n_zero += 1
    return k


@compiled_within
def insert(state, x, y, cost, weight, number, gradient, diagonal, row):
    """Add an example to S with alpha = 0; `row` holds its kernel values with all other slots."""
    k = enter(state, x, y, cost, weight, number, gradient, diagonal)
    row[k] = diagonal
    keep(state.cache, k, row, k + 1)
    return k


@compiled_within
def process(state, kernel, x, y, cost, weight, number, row, f, diagonal, schedule):
    """PROCESS (Algorithm 11): try to make a fresh example a support vector.

    Return whether a step was made. x is a block of one row, with the kernel values `row` and
    diagonal = k(x, x), and f = sum_s alpha_s k(x, x_s), without bias; y is +1.0 or -1.0, cost its
    C_s, and weight the example weight in it.
    """
    info = state.info[0]
    info.n_seen += 1
    if stores.contains(state.store.entered, number, info.n):
        info.n_null += 1
        return False
    g = y - f
    rising = y > 0.0
    partner = info.j if rising else info.i
    seeding = partner < 0
    if seeding:
        if info.n - info.n_dead >= SEEDS:
            return False
    else:
        violation = g - info.g_min if rising else info.g_max - g
        if violation <= schedule.tau:
            info.n_null += 1
            # If S determines b only up to an interval and this example narrows it, it may form a
            # violating pair with a later one (case c of the convergence argument, thesis 4.2.3).
            narrows = info.g_max < g if rising else info.g_min > g
            seeding = narrows and delta(state) <= 0.0
            if info.n_zero < n_spares(state, schedule):
                seeding = seeding or bounds_bias(info, g, rising, schedule.tau)
            if not seeding:
                return False
        elif schedule.second_order > 0.0:
            partner = best_partner(state, row, g, np.float32(diagonal), rising, info.n)
    k = insert(state, x, y, cost, weight, number, g, diagonal, row)
    if seeding:
        refresh_extremes(state)
        return False
    i, j = (k, partner) if rising else (partner, k)
    return pair_step(state, kernel, i, j, info.n, width(x))


@compiled_within
def reprocess(state, kernel, schedule, n, d):
    """REPROCESS (Algorithm 12, lines 1-4), among n slots; return whether it made a step."""
    info = state.info[0]
    if delta(state) <= schedule.tau:
        info.n_null += 1
        return False
    i, j = info.i, info.j
    if schedule.second_order > 0.0:
        row = state.cache.values[kernel_row(state.cache, kernel, state.store, i, n, d)]
        j = best_partner(state, row, state.gradient[i], state.diagonal[i], info.i >= 0, n)
    return j >= 0 and pair_step(state, kernel, i, j, n, d)


@compiled_leaf
def has_live_zero(alpha, lower, upper):
    """Tell whether one of some slots is live and has alpha = 0."""
    found = 0
    for s in range(alpha.size):
        found += (alpha[s] == 0.0) & (lower[s] != upper[s])
    return found > 0


@compiled_within
def remove_blatant(state, schedule):
    """Remove blatant non-support vectors (Algorithm 12, lines 5-11): mark their slots as dead.

    Of those that bound b the last few stay, and the two that b is computed from.
    """
    info = state.info[0]
    if info.n_zero == 0 or info.i < 0 or info.j < 0:
        return
    lost_extreme, most = False, n_spares(state, schedule)
    for first in range(0, info.n, _TOGETHER):
        stop = min(info.n, first + _TOGETHER)
        some = slice(first, stop)
        if not has_live_zero(state.alpha[some], state.lower[some], state.upper[some]):
            continue
        for s in range(first, stop):
            if state.alpha[s] != 0.0 or state.lower[s] == state.upper[s]:
                continue
            g, rising = state.gradient[s], state.y[s] > 0.0
            if most > 0 and bounds_bias(info, g, rising, schedule.tau):
                if info.n_zero <= most or s == info.i or s == info.j:
                    continue
            if g <= info.g_min if rising else g >= info.g_max:
                mark_dead(state, s)
                lost_extreme |= s == info.i or s == info.j
    if lost_extreme:
        refresh_extremes(state)


@compiled_within
def reprocess_some(state, kernel, schedule, d):
    """Call REPROCESS as often as the schedule says, then remove blatant non-support vectors."""
    made = 0
    while made < schedule.reprocess or (
        made < schedule.max_reprocess and delta(state) > schedule.delta_max
    ):
        if not reprocess(state, kernel, schedule, state.info[0].n, d):
            break
        made += 1
    # As in the paper: a REPROCESS without a violating pair removes nothing.
    if made > 0:
        remove_blatant(state, schedule)


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `registry`.

    PROCESS does nothing for a number that is already in S; margins are f(x) + b.
    It also returns where it would move rows of the store that another thread reads.
    """
    state, kernel, x = borrowed((state, kernel, x))
    n_rows, d = count(x), width(x)
    start = 0
    while start < n_rows:
        n_block = state.info[0].n
        rows = next_rows(state, kernel, x, start, n_block)
        size = count(rows)
        block_rows = kept_rows(schedule.bounds, state, rows)
        for r in range(size):
            info = state.info[0]
            at = start + r
            # Not by the capacity: a loaded model has another one, and must learn the same.
            if info.n_dead > max(16, info.n // 8):
                if schedule.is_read > 0.0:
                    return at
                squeeze(state)
                n_block = squeezed(state.block, state.order, r, n_block, state.info[0].n)
            n = state.info[0].n
            fresh = part(x, at, at + 1)
            if n == state.alpha.size or not stores.has_room(state.store, fresh):
                return at
            row = state.block[r]
            out = state.block[r : r + 1]
            stores.values(kernel, state.store, fresh, np.int64(1), d, n_block, n, out)
            state.info[0].n_values += n
            f = expansion(state.alpha, row, n)
            margins[at] = f + bias(state)
            if slide(schedule.bounds, state, kernel, y[at], cost[at], numbers[at], d):
                f = expansion(state.alpha, row, n)
            # An example of weight 0 is not processed.
            if cost[at] > 0.0:
                part_of, side = share(schedule.bounds, state.info[0]), side_of(y[at])
                process(
                    state, kernel, fresh, side, cost[at] * part_of, weight[at] * part_of,
                    numbers[at], row, f, diagonal[at], schedule,
                )  # fmt: skip
                is_wrong = int(margins[at] * side <= 0.0)
                stay_within(
                    schedule.bounds, state, kernel, block_rows, r, size, n_block, d, is_wrong
                )
                reprocess_some(state, kernel, schedule, d)
                look(state)
        start += size
    return n_rows


@compiled_inner
def _write_margin(state, schedule, row, out, at):
    out[at] = expansion(state.alpha, row, state.info[0].n) + bias(state)


register_kernel_solver(LASVMState, BINARY, _write_margin, learn_rows)
