"""The Huller: a hard-margin SVM by the nearest points of two convex hulls (thesis 2010, 4.1).

Problem (4.4)::

    min |X_P - X_N|^2     X_P = sum_P a_i x_i,  X_N = sum_N a_j x_j,  a >= 0, each sum 1

Its solution is the hard-margin SVM, f(x) = <X_P - X_N, x> + (|X_N|^2 - |X_P|^2) / 2.

State: the coefficients, signed by class, and the three scalars |X_P|^2, <X_P, X_N>, |X_N|^2. An
update (Algorithm 9) with a positive example x_k moves X_P on the line through X_P and x_k to the
point nearest to X_N, as far as a_k stays at least 0 (4.6, 4.8), and the scalars with it (4.9)::

    lambda = min(1, max(-a_k / (1 - a_k), <X_P - X_N, X_P - x_k> / |X_P - x_k|^2))
    X_P <- (1 - lambda) X_P + lambda x_k

With a negative one X_N moves in the same way (4.7, 4.10). PROCESS is an update with a fresh
example, REPROCESS one with a random support vector (Algorithm 10). A support vector whose
coefficient becomes 0 is removed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_leaf
from streamsvm.solvers.registry import BINARY, register_kernel_solver, side_of
from streamsvm.support import active_set, stores
from streamsvm.support.active_set import ACTIVE, ActiveSet
from streamsvm.support.declaration import DRAWS, NOT_NEGATIVE, Range, Record, field
from streamsvm.support.draws import below
from streamsvm.support.kernel_rows import fresh_block, row_cache
from streamsvm.support.kernel_rows.fresh_block import FreshBlock, values_of_slot
from streamsvm.support.kernel_rows.row_cache import RowCache
from streamsvm.support.rows import count, part, width
from streamsvm.support.states import BLOCK_SCRATCH, CACHE, STORE, declare
from streamsvm.support.stores import Store

INFO = np.dtype(
    [
        ("n_positive", np.int64),  # examples of the positive class so far
        ("n_negative", np.int64),  # examples of the negative class so far
        ("n_steps", np.int64),  # updates that changed a coefficient
        ("n_null", np.int64),  # updates that did not
        ("n_values", np.int64),  # kernel values computed for fresh examples
        ("last_number", np.int64),  # largest number of an example so far
        ("pp", np.float64),  # |X_P|^2
        ("pn", np.float64),  # <X_P, X_N>
        ("nn", np.float64),  # |X_N|^2
        ("ready", np.int64),  # n or -n: the scratch has the kernel values of rows with n slots
    ]
)


class HullerState(NamedTuple):
    """The arrays of the Huller; a slot is a position in arrays of length `capacity`."""

    store: Store = STORE
    cache: RowCache = CACHE
    active: ActiveSet = ACTIVE
    block: FreshBlock = BLOCK_SCRATCH
    # Coefficients of X_P, and minus those of X_N; 0 in free slots.
    alpha: np.ndarray = field("slots", range=Range(-1.5, 1.5))
    diagonal: np.ndarray = field("slots", dtype=np.float32, range=NOT_NEGATIVE)  # k(x_s, x_s)
    draws: np.ndarray = DRAWS  # state of the random generator, see `support.draws`
    info: Any = Record(INFO, reset=("ready",))


declare(HullerState)


@compiled_leaf
def products(alpha, row, n):
    """Return <x, X_P> and <x, X_N> of the example with these kernel values."""
    difference, total = 0.0, 0.0
    for s in range(n):
        k = np.float64(row[s])
        difference += alpha[s] * k
        total += abs(alpha[s]) * k
    return 0.5 * (total + difference), 0.5 * (total - difference)


@compiled
def squared_distance(state):
    """Return |X_P - X_N|^2; rounding may make it negative."""
    info = state.info[0]
    return info.pp + info.nn - 2.0 * info.pn


@compiled
def scale_of(state):
    """Return the factor of f at which support vectors of the optimum have the margin 1.

    Where the hulls meet, the distance is 0 but for rounding, and the sign of f is all there is.
    """
    info = state.info[0]
    least = 1e-9 * (info.pp + info.nn) + 1e-300
    return 2.0 / max(squared_distance(state), least)


@compiled
def margin_of(state, p, q):
    """Return the margin, scaled (4.5), from <x, X_P> and <x, X_N>; of one class only, its sign."""
    info = state.info[0]
    if info.n_positive == 0 or info.n_negative == 0:
        return np.sign(np.float64(info.n_positive - info.n_negative))
    return scale_of(state) * (p - q + 0.5 * (info.nn - info.pp))


@compiled
def rebuild(state, kernel, d):
    """Recompute diagonal and scalars after a change of the kernel."""
    state, kernel = borrowed((state, kernel))
    n, info = state.active.counts[0].n, state.info[0]
    row_cache.clear(state.cache, n)
    info.pp = info.pn = info.nn = 0.0
    for s in range(n):
        if state.alpha[s] == 0.0:
            continue
        row = values_of_slot(state, kernel, s, n, d)
        p, q = products(state.alpha, row, n)
        state.diagonal[s] = row[s]
        if state.alpha[s] > 0.0:
            info.pp += state.alpha[s] * p
            info.pn += state.alpha[s] * q
        else:
            info.nn -= state.alpha[s] * q


SEEDS = 5
"""The first so many examples of a class are averaged (Algorithm 10, line 1)."""

_TINY = 1e-12


class Schedule(NamedTuple):
    """Parameters of the steps."""

    reprocess: float  # REPROCESS calls after each PROCESS


@compiled_leaf
def _multiply(alpha, sign, factor, n):
    """Multiply the coefficients of one class."""
    for s in range(n):
        alpha[s] *= factor if sign * alpha[s] > 0.0 else 1.0


@compiled_inner
def best_move(state, y, a, p, q, diagonal):
    """Return lambda (4.6 to 4.8) for an example with the coefficient a of its class, at least 0."""
    info = state.info[0]
    own, to_own, to_other = (info.pp, p, q) if y > 0.0 else (info.nn, q, p)
    square = own + diagonal - 2.0 * to_own
    if a >= 1.0 or square <= _TINY * (own + diagonal):
        # The point of the class is this example.
        return 0.0
    free = (own - info.pn - to_own + to_other) / square
    return min(1.0, max(-a / (1.0 - a), free))


@compiled_inner
def _remove_unused(state):
    """Remove the members whose coefficient is 0."""
    m = state.active.counts[0].n_members - 1
    while m >= 0:
        s = state.active.members[m]
        if state.alpha[s] == 0.0:
            active_set.leave(state.active, s)
            stores.release(state.store, s)
            state.store.entered[s] = 0
            row_cache.free(state.cache, s)
        m -= 1


@compiled_inner
def move(state, s, y, step, p, q):
    """Move the point of class y by lambda = `step` towards the example in slot s."""
    info = state.info[0]
    a, keep, diagonal = y * state.alpha[s], 1.0 - step, np.float64(state.diagonal[s])
    to_own, to_other = (p, q) if y > 0.0 else (q, p)
    own = info.pp if y > 0.0 else info.nn
    own = keep * keep * own + 2.0 * step * keep * to_own + step * step * diagonal
    info.pp, info.nn = (own, info.nn) if y > 0.0 else (info.pp, own)
    info.pn = keep * info.pn + step * to_other
    _multiply(state.alpha, y, keep, state.active.counts[0].n)
    # At its lower bound lambda takes the coefficient to 0, which rounding may miss.
    is_gone = a > 0.0 and step <= -a / (1.0 - a)
    state.alpha[s] = 0.0 if is_gone else y * (keep * a + step)
    info.n_steps += 1
    if is_gone or step >= 1.0:
        _remove_unused(state)


@compiled_inner
def _enter(state, x, r, weight, number, diagonal, row):
    """Put row r of the block into a slot, with coefficient 0; return the slot."""
    n_before = state.active.counts[0].n
    slot = active_set.enter(state.active, number)
    stores.put(state.store, slot, x)
    state.store.entered[slot], state.store.weight[slot] = number, weight
    state.alpha[slot], state.diagonal[slot] = 0.0, diagonal
    state.info[0].last_number = max(state.info[0].last_number, number)
    row[slot] = diagonal
    if slot < n_before:
        # The slot was used before: cached kernel values of its old example are invalid.
        row_cache.set_column(state.cache, slot, row)
    row_cache.keep(state.cache, slot, row, state.active.counts[0].n)
    fresh_block.note(state.block, slot, r)
    return slot


@compiled_inner
def process(state, x, r, y, weight, number, diagonal, row):
    """PROCESS: the update with row r of the block, x, which is no support vector."""
    info, n = state.info[0], state.active.counts[0].n
    p, q = products(state.alpha, row, n)
    n_own = info.n_positive if y > 0.0 else info.n_negative
    info.n_positive += int(y > 0.0)
    info.n_negative += int(y < 0.0)
    if stores.slot_of(state, number, n) >= 0:
        return
    step = 1.0 / (n_own + 1.0)
    if n_own >= SEEDS and info.n_positive > 0 and info.n_negative > 0:
        step = best_move(state, y, 0.0, p, q, np.float64(diagonal))
    elif n_own >= SEEDS:
        # There is nothing to be near to yet.
        step = 0.0
    if step <= 0.0:
        info.n_null += 1
        return
    slot = _enter(state, x, r, weight, number, diagonal, row)
    move(state, slot, y, step, p, q)


@compiled_inner
def reprocess(state, kernel, d):
    """REPROCESS: the update with a random support vector."""
    n = state.active.counts[0].n
    s = state.active.members[below(state.draws, state.active.counts[0].n_members)]
    line = row_cache.kernel_row(state.cache, kernel, state.store, s, n, d)
    p, q = products(state.alpha, state.cache.values[line], n)
    y = 1.0 if state.alpha[s] > 0.0 else -1.0
    step = best_move(state, y, abs(state.alpha[s]), p, q, np.float64(state.diagonal[s]))
    if step == 0.0:
        state.info[0].n_null += 1
    else:
        move(state, s, y, step, p, q)


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `registry`.

    Rows with a cost of 0 are not learnt; PROCESS does nothing for a number that is a support vector
    already.
    """
    state = borrowed(state)
    n_rows, d = count(x), width(x)
    start = 0
    while start < n_rows:
        rows = fresh_block.next_rows(state, kernel, x, start, state.active.counts[0].n)
        fresh_block.begin(state.block, kernel, rows)
        for r in range(count(rows)):
            at = start + r
            one = part(x, at, at + 1)
            if active_set.is_full(state.active, np.inf) or not stores.has_room(state.store, one):
                return at
            row = fresh_block.values_of(state.block, kernel, state.store, rows, r)
            n = state.active.counts[0].n
            state.info[0].n_values += n
            p, q = products(state.alpha, row, n)
            margins[at] = margin_of(state, p, q)
            if cost[at] <= 0.0:
                continue
            side = side_of(y[at])
            process(state, one, r, side, weight[at], numbers[at], diagonal[at], row)
            if state.info[0].n_positive > 0 and state.info[0].n_negative > 0:
                for _ in range(np.int64(schedule.reprocess)):
                    reprocess(state, kernel, d)
        start += count(rows)
    return n_rows


@compiled_inner
def _write_margin(state, schedule, row, out, at):
    p, q = products(state.alpha, row, state.active.counts[0].n)
    out[at] = margin_of(state, p, q)


register_kernel_solver(HullerState, BINARY, _write_margin, learn_rows)
