"""LaRank for several classes (Bordes, thesis 2010, sections 5.1 and 5.2, Algorithms 17-22).

Problem (thesis, 5.8), over the examples kept::

    max_beta  D(beta) = sum_i beta_i^{y_i} - 1/2 sum_c sum_{i,j} beta_i^c beta_j^c k(x_i, x_j)
    with      beta_i^c <= C_i if c = y_i, else 0;   sum_c beta_i^c = 0 for all i

that is the multiclass SVM of Crammer and Singer, without bias. Input: examples (x, y), y a class
0 .. classes - 1, each with its own C_i. State: the support patterns, which are the examples with a
nonzero coefficient, with their coefficients and their gradients for all classes
g_{i,c} = [c = y_i] - f_c(x_i), f_c(x) = sum_i beta_i^c k(x_i, x), up to date after every step.

A step on (i, c+, c-) adds lambda = min((g_{i,c+} - g_{i,c-}) / (2 k_ii), room of beta_i^{c+}) to
beta_i^{c+} and subtracts it from beta_i^{c-}. Functions have the names of the paper's steps.

Differences from the papers: they compute gradients of a pattern when needed. A step here updates
those of its two classes with one kernel row, so PROCESSOLD's arg max costs one pass over the
classes. The adaptive schedule counts costs instead of time (`larank.rates`): same seed, same model.

Addition to the papers, for equal rows: a few examples without coefficients stay, those whose margin
is 1, up to tau. Of equal rows patterns are as many of the rarer class as of the other one, with one
more; a further one of the rarer class turns the scores round, until one of the others, which were
left out, is learnt. Now it is learnt at once, after the operations of each example.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import (
    borrowed,
    compiled,
    compiled_inner,
    compiled_leaf,
    compiled_within,
    prefetch,
)
from streamsvm.solvers.bounds import UNBOUNDED, Bounds
from streamsvm.solvers.larank.bounds import stay_within
from streamsvm.solvers.larank.rates import assumed_cycles, begin, charge, cycles, rate
from streamsvm.solvers.larank.state import ABSENT, LaRankState, beta, forget, set_beta, squeeze
from streamsvm.solvers.larank.uniform import uniform_steps
from streamsvm.solvers.registry import MULTICLASS, register_kernel_solver
from streamsvm.support import stores
from streamsvm.support.draws import below, uniform
from streamsvm.support.kernel_rows.fresh_block import BLOCK, known_columns, squeezed
from streamsvm.support.kernel_rows.kernel_values import add_scaled
from streamsvm.support.kernel_rows.row_cache import fetch, keep, kernel_row
from streamsvm.support.looks import note_cost
from streamsvm.support.rows import count, part, width

OPTIMIZES = 10
"""Number of OPTIMIZE steps in one operation (thesis, 5.1.3 and 5.2.2)."""

SPARES = 16
"""At most so many examples without coefficients stay because their margin is 1."""

_PREFETCHED = 16
"""Number of candidates prefetched together, since their gradients are scattered in memory."""


class Schedule(NamedTuple):
    """Parameters of the steps; `learn_rows` is compiled once for each type of `bounds`."""

    tau: float  # a pair that violates by less is left alone
    reprocess: float  # REPROCESS combinations after each example; below 0: the adaptive schedule
    most: float  # largest number of operations of the adaptive schedule between two examples
    old: float = 1.0  # 1: PROCESSOLD is used, 0: it is not
    optimize: float = 1.0  # 1: OPTIMIZE is used, 0: it is not
    clock: float = 0.0  # 1: the adaptive schedule measures the time of operations
    uniform: float = 0.0  # above 0: number of uniformly random block steps instead of all these
    candidates: float = 1.0  # number of patterns of which OPTIMIZE takes the best
    bounds: Bounds = UNBOUNDED  # which support patterns are kept; not a `Reservoir`
    is_read: float = 0.0  # 1: another thread reads rows of the store, so that none may be moved


@compiled_leaf
def _gathered(coefficient, slot, row, n):
    """Return sum_j coefficient_j row[slot_j] over j < n: float64, int32, float32."""
    total = 0.0
    for j in range(n):
        total += coefficient[j] * np.float64(row[slot[j]])
    return total


@compiled_inner
def score(state, row, out):
    """Write f_c of a row, given its kernel values, into out, float64 (>= classes,)."""
    for c in range(state.info[0].n_classes):
        out[c] = _gathered(state.coefficient[c], state.slot[c], row, state.n_vectors[c])


@compiled_within
def smo_step(state, kernel, i, rising, falling, tau, d):
    """SMOSTEP (Algorithm 17) on the classes c+ and c- of slot i; return whether it was made."""
    info = state.info[0]
    slope = state.gradient[rising, i] - state.gradient[falling, i]
    now = beta(state, rising, i)
    room = (state.cost[i] if rising == state.y[i] else 0.0) - now
    if rising == falling or slope <= tau or room <= 0.0:
        info.n_null += 1
        return False
    k, other = np.float64(state.diagonal[i]), beta(state, falling, i)
    # Of a row whose k(x, x) is 0 the box alone ends the step.
    if k > 1e-12:
        step = min(slope / (2.0 * k), room)
    else:
        step, k = room, np.float64(0.0)
    if now + step == now and other - step == other:
        # Below the last digits of both coefficients.
        info.n_null += 1
        return False
    row = state.cache.values[kernel_row(state.cache, kernel, state.store, i, info.n, d)]
    # A coefficient that reaches its bound is set to it, without rounding.
    set_beta(state, rising, i, now + room if step == room else now + step)
    set_beta(state, falling, i, other - step)
    add_scaled(state.gradient[rising], row, -step, info.n)
    add_scaled(state.gradient[falling], row, step, info.n)
    gain = step * (slope - step * k)
    info.dual += gain
    info.gained += gain
    info.n_steps += 1
    # Independent of the cache: a saved model, loaded without it, must continue in the same way.
    charge(state, d, 0, 2 * info.n)
    if state.n_own[i] == 0:
        forget(state, i)
    return True


@compiled_within
def insert(state, x, y, cost, weight, number, diagonal, row, scores):
    """Return a new slot for an example; `row` holds its kernel values with all other slots."""
    info = state.info[0]
    k = info.n
    stores.put(state.store, k, x)
    state.store.entered[k], state.store.weight[k] = number, weight
    state.y[k], state.cost[k], state.diagonal[k] = y, cost, diagonal
    state.n_own[k] = 0
    for c in range(info.n_classes):
        state.gradient[c, k] = (1.0 if c == y else 0.0) - scores[c]
        state.place[c, k] = ABSENT
    note_cost(info, cost)
    state.alive[info.n_alive] = k
    state.where[k] = info.n_alive
    info.n_alive += 1
    info.n = k + 1
    row[k] = diagonal
    keep(state.cache, k, row, k + 1)
    return k


@compiled_inner
def process_new(state, kernel, x, y, cost, weight, number, row, diagonal, schedule):
    """PROCESSNEW (Algorithm 18), with the scores of the example in `state.scores`."""
    info = state.info[0]
    info.n_seen += 1
    info.n_new += 1
    scores = state.scores
    falling, best = np.int64(-1), -np.inf
    for c in range(info.n_classes):
        if c != y and scores[c] > best:
            falling, best = np.int64(c), scores[c]
    violation = 1.0 - scores[y] + best
    violates = violation > schedule.tau
    if not violates:
        info.n_null += 1
        if schedule.uniform == 0.0:
            if info.n_spares >= SPARES or violation < -schedule.tau:
                return
            info.n_spares += 1
    k = insert(state, x, y, cost, weight, number, diagonal, row, scores)
    if violates:
        smo_step(state, kernel, k, y, falling, schedule.tau, width(x))


@compiled_within
def process_old(state, kernel, i, tau, d):
    """PROCESSOLD (Algorithm 19) on the pattern in slot i; return whether a step was made."""
    info = state.info[0]
    info.n_old += 1
    rising, falling = np.int64(-1), np.int64(-1)
    most, least = -np.inf, np.inf
    for c in range(info.n_classes):
        g = state.gradient[c, i]
        if g < least:
            falling, least = np.int64(c), g
        if g > most:
            bound = state.cost[i] if c == state.y[i] else 0.0
            if beta(state, c, i) < bound:
                rising, most = np.int64(c), g
    charge(state, 0, info.n_classes, 0)
    if rising < 0:
        info.n_null += 1
        return False
    return smo_step(state, kernel, i, rising, falling, tau, d)


@compiled_within
def learn_spares(state, kernel, tau, d):
    """Make a step on spares that violate optimality now; those that no longer bound it leave."""
    info = state.info[0]
    info.n_spares, j = 0, 0
    while j < info.n_alive:
        i = state.alive[j]
        j += 1
        if state.n_own[i] > 0:
            continue
        y, falling, least = state.y[i], np.int64(-1), np.inf
        for c in range(info.n_classes):
            if c != y and state.gradient[c, i] < least:
                falling, least = np.int64(c), state.gradient[c, i]
        violation = state.gradient[y, i] - least
        if violation < -tau:
            forget(state, i)
            j -= 1
        elif violation <= tau or not smo_step(state, kernel, i, y, falling, tau, d):
            info.n_spares += 1


@compiled_within
def own_pair(state, i):
    """Return the best c+ and c- of slot i among its classes in `own`, and the step's gain."""
    rising, falling = np.int64(-1), np.int64(-1)
    most, least, y = -np.inf, np.inf, state.y[i]
    for j in range(state.n_own[i]):
        c = np.int64(state.own[i, j])
        g = state.gradient[c, i]
        if g < least:
            falling, least = c, g
        # The coefficient of a class other than y is below its bound 0.
        if g > most and (c != y or state.coefficient[c, state.place[c, i]] < state.cost[i]):
            rising, most = c, g
    if rising < 0 or most <= least:
        return rising, falling, 0.0
    return rising, falling, _gain(state, i, rising, most - least)


@compiled_within
def pair_of_two(state, i):
    """Return the same as `own_pair` for exactly two classes, the usual case, without branches."""
    a, b = np.int64(state.own[i, 0]), np.int64(state.own[i, 1])
    slope = state.gradient[a, i] - state.gradient[b, i]
    rising, falling = (a, b) if slope > 0.0 else (b, a)
    return rising, falling, _gain(state, i, rising, abs(slope))


@compiled_within
def _gain(state, i, rising, slope):
    """Return the gain of a step of slot i, whose coefficient for the class `rising` is not 0."""
    bound = state.cost[i] if rising == state.y[i] else 0.0
    k = max(np.float64(state.diagonal[i]), 1e-12)
    step = min(slope / (2.0 * k), bound - state.coefficient[rising, state.place[rising, i]])
    return step * (slope - step * k)


@compiled_inner
def optimize(state, kernel, schedule, d):
    """OPTIMIZE (Algorithm 20) on the best of some random patterns: a step among their classes."""
    info = state.info[0]
    info.n_optimize += 1
    at, rising, falling, best = np.int64(-1), np.int64(-1), np.int64(-1), 0.0
    candidates = int(schedule.candidates)
    for first in range(0, candidates, _PREFETCHED):
        n_some = min(candidates - first, _PREFETCHED)
        _draw_patterns(state, n_some)
        for j in range(n_some):
            i = state.order[j]
            if state.n_own[i] == 2:
                up, down, gain = pair_of_two(state, i)
            else:
                up, down, gain = own_pair(state, i)
            if gain > best:
                at, rising, falling, best = i, up, down, gain
    charge(state, 0, 4.0 * schedule.candidates, 0)
    if at < 0:
        info.n_null += 1
        return False
    fetch(state.cache, at)
    return smo_step(state, kernel, at, rising, falling, schedule.tau, d)


@compiled_within
def _draw_patterns(state, n):
    """Write n random patterns into `state.order`, and prefetch what their gains depend on."""
    for j in range(n):
        i = _random_pattern(state)
        state.order[j] = i
        prefetch(state.own, i, 0)
    for j in range(n):
        i = state.order[j]
        for k in range(2):
            prefetch(state.gradient, state.own[i, k], i)
            prefetch(state.place, state.own[i, k], i)


@compiled_within
def _random_pattern(state):
    return state.alive[below(state.draws, state.info[0].n_alive)]


@compiled_within
def _optimize_some(state, kernel, schedule, d):
    for _ in range(OPTIMIZES):
        if state.info[0].n_alive == 0:
            return
        optimize(state, kernel, schedule, d)


@compiled_inner
def _adapt(state, kernel, schedule, d):
    """Make the operations of the adaptive schedule after one example (Algorithm 22)."""
    info = state.info[0]
    done = 0
    while done < schedule.most and info.n_alive > 0:
        # An operation that was never made has the rate of PROCESSNEW.
        if info.n_old == 0:
            info.rate_old = info.rate_new
        if info.n_optimize == 0:
            info.rate_optimize = info.rate_new
        old, some = info.rate_old * schedule.old, info.rate_optimize * schedule.optimize
        u = uniform(state.draws) * (info.rate_new + old + some)
        if u < info.rate_new:
            return
        begin(state, schedule.clock, cycles())
        if u < info.rate_new + old:
            process_old(state, kernel, _random_pattern(state), schedule.tau, d)
            info.rate_old = rate(state, schedule.clock, info.rate_old)
        else:
            _optimize_some(state, kernel, schedule, d)
            info.rate_optimize = rate(state, schedule.clock, info.rate_optimize)
        done += 1


@compiled_inner
def _reprocess(state, kernel, schedule, d):
    """Make the operations of the fixed schedule after one example (Algorithm 21)."""
    made = 0.0
    while made < schedule.reprocess and state.info[0].n_alive > 0:
        if schedule.old > 0.0:
            process_old(state, kernel, _random_pattern(state), schedule.tau, d)
        if schedule.optimize > 0.0:
            _optimize_some(state, kernel, schedule, d)
        made += 1.0


@compiled_inner
def _values_of_block(state, kernel, rows, size, d, alone):
    """Fill state.block, but for what it has of rows that are `alone`; return a row's cycles."""
    info = state.info[0]
    began = cycles()
    # Computed before, for predictions or by threads: see `ready` of `state.INFO`.
    known = known_columns(info, alone)
    if known > 0:
        began -= assumed_cycles(d, size * known)
    if known < info.n:
        stores.values(kernel, state.store, rows, size, d, known, info.n, state.block)
    return (cycles() - began) // size


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `registry`.

    y has classes, margins float64 (n, classes) the scores; an example whose number is already kept
    is not processed. It also returns where it would move rows that another thread reads.
    """
    state = borrowed(state)
    n_rows, d = count(x), width(x)
    start = 0
    while start < n_rows:
        size = min(BLOCK, n_rows - start)
        info = state.info[0]
        n_block = info.n
        rows = part(x, start, start + size)
        share = _values_of_block(state, kernel, rows, size, d, n_rows == size)
        for r in range(size):
            at = start + r
            began = cycles() - share
            # Not by the capacity: a loaded model has another one, and must learn the same.
            if info.n - info.n_alive > max(16, info.n // 8):
                if schedule.is_read > 0.0:
                    return at
                squeeze(state)
                n_block = squeezed(state.block, state.order, r, n_block, info.n)
            n = info.n
            fresh = part(x, at, at + 1)
            if n == state.cost.size or not stores.has_room(state.store, fresh):
                return at
            row = state.block[r]
            out = state.block[r : r + 1]
            stores.values(kernel, state.store, fresh, np.int64(1), d, n_block, n, out)
            info.n_values += n
            score(state, row, state.scores)
            for c in range(margins.shape[1]):
                margins[at, c] = state.scores[c]
            # An example of weight 0, or that is already a support pattern, is not processed.
            if cost[at] > 0.0 and not stores.contains(state.store.entered, numbers[at], n):
                begin(state, schedule.clock, began)
                process_new(
                    state, kernel, fresh, np.int64(y[at]), cost[at], weight[at], numbers[at], row,
                    diagonal[at], schedule,
                )  # fmt: skip
                charge(state, d, n, 0)
                info.rate_new = rate(state, schedule.clock, info.rate_new)
                stay_within(schedule.bounds, state, kernel, np.int64(y[at]), numbers[at], d)
                if schedule.uniform > 0.0:
                    uniform_steps(state, kernel, schedule.uniform, schedule.tau, d)
                elif schedule.reprocess < 0.0:
                    _adapt(state, kernel, schedule, d)
                else:
                    _reprocess(state, kernel, schedule, d)
                if info.n_spares > 0:
                    learn_spares(state, kernel, schedule.tau, d)
        start += size
    return n_rows


@compiled_inner
def _write_margin(state, schedule, row, out, at):
    score(state, row, state.scores)
    for c in range(out.shape[1]):
        out[at, c] = state.scores[c]


register_kernel_solver(LaRankState, MULTICLASS, _write_margin, learn_rows)
