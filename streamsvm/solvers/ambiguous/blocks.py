"""The ambiguous SVM with a kernel: examples are kept, and can be looked at again.

Problem and symbols are those of `step`. Example i has the coefficients beta_iy = sum_c alpha_i^c
u_y(c) and delta_i = sum_c alpha_i^c Delta(c), sum_c alpha_i^c <= C_i, over what steps on it found::

    s_y(x) = sum_i beta_iy k(x_i, x)
    D = sum_i delta_i - 1/2 sum_y sum_ij beta_iy beta_jy k_ij

A step on a block, an example, goes from its coefficients towards those with the largest loss now,
C_i u and C_i Delta (block-coordinate Frank-Wolfe: Lacoste-Julien, Jaggi, Schmidt, Pletscher, ICML
2013), as far as the dual grows along this line: the share t of the way is

    t = min(1, gap_i / (k_ii sum_y (C_i u_y - beta_iy)^2)),
    gap_i = C_i L_i - delta_i + sum_y beta_iy s_y(x_i).

Of a fresh example all coefficients are 0, and this is Algorithm 23 (PROCESS); made on random
examples that are kept it is REPROCESS. The sum of all gap_i is the duality gap over the examples
kept. An example without a loss when it comes is not kept.

The loss of an example is over the labels known when it was last looked at. With more of them each
pair counts less, so that before its next step beta_i and delta_i shrink by as much; the dual may
fall by this. Its new loss is summed then as that of an example learnt again: the dual is at most
|w|^2 / 2 plus all losses summed, at any w.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.ambiguous.bounds import renew, slot_for
from streamsvm.solvers.ambiguous.state import (
    AmbiguousState,
    add_to,
    note_example,
    note_loss,
    read_bag,
    row_of_slot,
    scale_block,
)
from streamsvm.solvers.ambiguous.step import coefficients
from streamsvm.solvers.bounds import UNBOUNDED, Budget, Unbounded
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.registry import MULTICLASS, register_kernel_solver
from streamsvm.support import stores
from streamsvm.support.draws import below
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import BLOCK, known_columns
from streamsvm.support.kernel_rows.kernel_values import expansion
from streamsvm.support.looks import heavy_member, note_cost, record
from streamsvm.support.rows import count, part, width

_TINY = 1e-12
"""A gap below this share of C_i is rounding."""


class Schedule(NamedTuple):
    """Parameters of the steps."""

    reprocess: float = 0.0  # REPROCESS steps after each example
    bounds: Unbounded | Budget = UNBOUNDED


@compiled_inner
def score(state, row, out):
    """Write s_y of a row, given its kernel values, into out, float64 (>= labels,)."""
    n = state.info[0].n
    for y in range(state.info[0].n_classes):
        out[y] = expansion(state.beta[y], row, n)


@compiled_inner
def gap_of(state, s):
    """Write scores, bag and u of a slot into the scratch; return its gap, loss, and Delta."""
    k = state.known[s]
    for y in range(k):
        state.scores[y], state.in_bag[y] = state.f[y, s], state.bag[y, s]
    loss, _ = coefficients(state.scores, state.in_bag, k, state.u)
    gap, delta = state.cost[s] * loss - state.delta[s], 0.0
    for y in range(k):
        gap += state.beta[y, s] * state.scores[y]
        delta += state.u[y] if state.in_bag[y] else 0.0
    return gap, loss, delta


@compiled_inner
def _widen(state, s, row):
    """Take the labels that came since the last step on a slot into its loss."""
    k, n_in = state.info[0].n_classes, 0
    for y in range(state.known[s]):
        n_in += state.bag[y, s]
    rest = np.float64(state.known[s] - n_in)
    scale_block(state, s, row, rest / (k - n_in))
    state.known[s] = k


@compiled_inner
def step_on(state, s, row):
    """Make a step on a slot, whose kernel values are `row`; return its gap before."""
    info = state.info[0]
    is_wider = state.known[s] < info.n_classes
    if is_wider:
        _widen(state, s, row)
    gap, loss, delta = gap_of(state, s)
    cost = state.cost[s]
    if is_wider:
        # From here on the dual is about this loss, not about the one that was summed before.
        note_loss(info, cost, loss, np.float64(state.diagonal[s]))
    if gap <= _TINY * cost:
        info.n_null += 1
        return 0.0
    square = 0.0
    for y in range(info.n_classes):
        away = cost * state.u[y] - state.beta[y, s]
        square += away * away
    square *= np.float64(state.diagonal[s])
    t = 1.0 if gap >= square else gap / square
    for y in range(info.n_classes):
        wanted = cost * state.u[y]
        add_to(state, row, s, y, t * (wanted - state.beta[y, s]))
        if t == 1.0:
            # Without rounding: it may be 0.
            state.beta[y, s] = wanted
    info.delta_sum += t * (cost * delta - state.delta[s])
    state.delta[s] += t * (cost * delta - state.delta[s])
    to_bound = cost if loss > 0.0 else 0.0
    state.alpha[s] = to_bound if t == 1.0 else state.alpha[s] + t * (to_bound - state.alpha[s])
    info.dual += t * (gap - 0.5 * t * square)
    info.n_steps += 1
    return gap


@compiled_inner
def _insert(state, s, x, cost, weight, number, diagonal, row):
    """Put the example whose bag and scores are in the scratch into a slot: the next, or a free."""
    info = state.info[0]
    stores.put(state.store, s, x)
    state.store.entered[s], state.store.weight[s] = number, weight
    state.cost[s], state.diagonal[s], state.known[s] = cost, diagonal, info.n_classes
    for y in range(info.n_classes):
        state.f[y, s], state.bag[y, s] = state.scores[y], state.in_bag[y]
    state.members[s] = s
    note_cost(info, cost)
    info.r2 = max(info.r2, np.float64(diagonal))
    info.last_number = max(info.last_number, number)
    info.n = max(info.n, s + 1)
    row[s] = diagonal
    row_cache.keep(state.cache, s, row, info.n)


@compiled_inner
def _learn_kept(state, kernel, s, n_in, cost, weight, d):
    """Learn an example that is kept once more; of another bag what the former did is undone."""
    info = state.info[0]
    row = row_of_slot(state, kernel, s, d)
    k = info.n_classes
    is_other = cost != state.cost[s]
    for y in range(k):
        is_other = is_other or state.bag[y, s] != state.in_bag[y]
    if is_other and n_in < k:
        scale_block(state, s, row, 0.0)
        for y in range(k):
            state.bag[y, s] = state.in_bag[y]
        state.cost[s], state.store.weight[s], state.known[s] = cost, weight, k
        note_cost(info, cost)
    elif not is_other and state.known[s] < k:
        # Its loss over all labels has just been summed.
        _widen(state, s, row)
    step_on(state, s, row)


@compiled_inner
def look(state):
    """Look at an example: see `support.looks`."""
    info = state.info[0]
    s = heavy_member(state.look_draws, state.members, info.n, state.cost, info.cost_most)
    gap, _, _ = gap_of(state, s)
    # The loss of no pair exceeds 1 + sqrt(2) R |w|.
    norm = math.sqrt(max(0.0, 2.0 * (info.delta_sum - info.dual)))
    record(info, gap / state.cost[s], 1.0 + math.sqrt(2.0 * info.r2) * norm, 1.0)
    info.n_looked += 1


@compiled_inner
def _reprocess(state, kernel, schedule, d):
    """REPROCESS: steps on random examples kept, and a look at one afterwards."""
    if schedule.reprocess == 0.0 or state.info[0].n == 0:
        return
    made = 0.0
    while made < schedule.reprocess:
        s = below(state.draws, state.info[0].n)
        step_on(state, s, row_of_slot(state, kernel, s, d))
        made += 1.0
    look(state)


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `registry`.

    y is the number of a label; or negative, and the row of `margins` has 1.0 for each candidate.
    """
    state = borrowed(state)
    info = state.info[0]
    n_rows, d, start, k = count(x), width(x), 0, info.n_classes
    limit = schedule.bounds.limit
    while start < n_rows:
        size = min(BLOCK, n_rows - start)
        n_block = info.n
        rows = part(x, start, start + size)
        known = known_columns(info, n_rows == size)
        if known < n_block:
            stores.values(kernel, state.store, rows, size, d, known, n_block, state.block)
        for r in range(size):
            at, n = start + r, info.n
            one = part(x, at, at + 1)
            if n == state.cost.size < limit or not stores.has_room(state.store, one):
                return at
            row, out = state.block[r], state.block[r : r + 1]
            stores.values(kernel, state.store, one, np.int64(1), d, n_block, n, out)
            info.n_values += n
            n_in = read_bag(state, y[at], margins[at])
            score(state, row, state.scores)
            for c in range(margins.shape[1]):
                margins[at, c] = state.scores[c]
            if cost[at] <= 0.0:
                continue
            loss, _ = coefficients(state.scores, state.in_bag, k, state.u)
            note_example(info, cost[at], loss, np.float64(diagonal[at]))
            info.n_all += n_in == k
            s = stores.slot_of(state, numbers[at], n)
            if s >= 0:
                _learn_kept(state, kernel, s, n_in, cost[at], weight[at], d)
            elif loss > 0.0:
                s = slot_for(schedule.bounds, state, kernel, row, d)
                _insert(state, s, one, cost[at], weight[at], numbers[at], diagonal[at], row)
                step_on(state, s, row)
                renew(schedule.bounds, state, kernel, one, s, part(rows, r + 1, size), r + 1, n)
            else:
                info.n_null += 1
            _reprocess(state, kernel, schedule, d)
        start += size
    return n_rows


@compiled_inner
def _write_margin(state, schedule, row, out, at):
    score(state, row, out[at])


@compiled
def remove(state, kernel, s, d):
    """Take the example in slot s back; the slot stays, without coefficients."""
    state, kernel = borrowed((state, kernel))
    scale_block(state, s, row_of_slot(state, kernel, s, d), 0.0)


@compiled
def sweep(state, kernel, first, stop, d):
    """Make a step on each slot from `first` to before `stop`; return the sum of gaps before."""
    state, kernel = borrowed((state, kernel))
    total = 0.0
    for s in range(first, stop):
        total += step_on(state, s, row_of_slot(state, kernel, s, d))
    return total


@compiled
def _gap_of_all(state):
    state = borrowed(state)
    total, costs = 0.0, 0.0
    for s in range(state.info[0].n):
        gap, _, _ = gap_of(state, s)
        total += gap
        costs += state.cost[s]
    return total, costs


def kept_gap(state: AmbiguousState) -> KeptGap:
    """Return the duality gap over the examples kept."""
    total, costs = _gap_of_all(state)
    return KeptGap(max(0.0, total), costs)


register_kernel_solver(AmbiguousState, MULTICLASS, _write_margin, learn_rows)
