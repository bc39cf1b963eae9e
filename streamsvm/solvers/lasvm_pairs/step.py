"""LASVM for any number of classes, as binary problems over one store of examples.

One against one: a problem for each two classes, which learns the examples of these two. One against
the rest: a problem for each class, which learns all examples. Each problem is LASVM as in
`solvers.lasvm.step`, whose functions work on it. Input: examples (x, y), y a class 0 .. classes -
1, each with its own C_s.

The kernel values of an example with all vectors of the store are computed once. Each problem that
learns it takes those of its own members, PROCESSes the example and REPROCESSes. A vector leaves the
store when no problem has it as a member.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.solvers.lasvm.bounds import kept_rows
from streamsvm.solvers.lasvm.state import bias
from streamsvm.solvers.lasvm.state import squeeze as squeeze_problem
from streamsvm.solvers.lasvm.step import Schedule as Schedule  # the same as for two classes
from streamsvm.solvers.lasvm.step import process, reprocess_some
from streamsvm.solvers.lasvm_pairs.bounds import slide, stay_within
from streamsvm.solvers.lasvm_pairs.looks import look, note_problem
from streamsvm.solvers.lasvm_pairs.needed import fill
from streamsvm.solvers.lasvm_pairs.problems import NONE, n_turns, problem_of_turn
from streamsvm.solvers.lasvm_pairs.scores import write_margins, write_scores
from streamsvm.solvers.lasvm_pairs.state import BLOCK, PairsState, problem, squeeze
from streamsvm.solvers.registry import MULTICLASS, register_kernel_solver
from streamsvm.support import stores
from streamsvm.support.calibration import update_one
from streamsvm.support.kernel_rows.fresh_block import fill_part, known_columns, squeezed
from streamsvm.support.kernel_rows.kernel_values import expansion
from streamsvm.support.looks import note_cost
from streamsvm.support.rows import are_equal, count, part, width
from streamsvm.support.stores import MemberKernel


@compiled_inner
def _squeeze_problem(state, p):
    squeeze_problem(borrowed(problem(state, p)))


@compiled_inner
def has_room(state, y):
    """Tell whether each problem of class y has room for one more; many dead members leave first."""
    of = state.problems
    for turn in range(n_turns(of)):
        p = problem_of_turn(of, y, turn)
        if p == NONE:
            continue
        # As for two classes: not by the room, which is another one after loading.
        if of.table[p].n_dead > max(16, of.table[p].n // 8):
            _squeeze_problem(state, p)
        if of.table[p].n == of.segments[p].room:
            return False
    return True


@compiled_inner
def _learn_in(state, p, kernel, x, y, cost, weight, number, row, diagonal, schedule):
    """Let a problem learn an example, given its row of the store; return y f(x) from before."""
    own, members = borrowed(problem(state, p)), state.problems.row
    info = own.info[0]
    slot, n = own.store.slot, info.n
    for s in range(n):
        members[s] = row[np.uint64(slot[s])]
    f = expansion(own.alpha, members, n)
    margin = f + bias(own)
    if info.i >= 0 and info.j >= 0:
        update_one(state.problems.calibration[p], margin, y)
    shared = MemberKernel(kernel)
    process(own, shared, x, y, cost, weight, number, members, f, diagonal, schedule)
    reprocess_some(own, shared, schedule, width(x))
    note_problem(state.info[0], own)
    return y * margin


@compiled_within
def slot_of(state, number):
    """Return the slot of an example that is in the store, or -1."""
    if stores.contains(state.store.entered, number, state.info[0].n):
        for s in range(state.info[0].n):
            if state.store.entered[s] == number:
                return np.int64(s)
    return np.int64(-1)


@compiled_within
def note_example(state, y, cost, weight, number, diagonal):
    """Record the example that was learnt, if a problem has it as a member."""
    s = state.fresh[0]
    if s >= 0 and state.wanted[s] > 0:
        state.store.entered[s] = number
        state.store.weight[s] = weight
        state.y[s], state.cost[s], state.diagonal[s] = y, cost, diagonal
        note_cost(state.info[0], cost)


@compiled_within
def learn_example(state, kernel, x, y, cost, weight, number, row, diagonal, schedule):
    """Let all problems of class y learn an example; return the least y f(x) from before."""
    of, least = state.problems, np.inf
    state.fresh[0] = slot_of(state, number)
    if state.fresh[0] >= 0:
        # An example that is kept keeps its class, whatever label comes with its number now.
        y = state.y[state.fresh[0]]
    for turn in range(n_turns(of)):
        p = problem_of_turn(of, y, turn)
        if p != NONE:
            sign = 1.0 if of.segments[p].positive == y else -1.0
            margin = _learn_in(
                state, p, kernel, x, sign, cost, weight, number, row, diagonal, schedule
            )
            least = min(least, margin)
    note_example(state, y, cost, weight, number, diagonal)
    return least


@compiled_inner
def _as_kept(state, kernel, slot, x, diagonal, out, n):
    """Let an example that is kept have the features it has there; return its k(x, x).

    As it keeps its class: with others, gradients would not be those of the rows of S. `out` has the
    kernel values of x with n slots, and is written anew if x differs.
    """
    d = width(x)
    kept = stores.row_of(state.store, slot, np.empty((1, d), np.float32), d)
    if are_equal(kept, x, d):
        return diagonal
    stores.values(kernel, state.store, kept, np.int64(1), d, np.int64(0), n, out)
    return state.diagonal[slot]


@compiled_inner
def _have_room(state, own_class, kept):
    """Tell whether the problems have room for an example of a class; else `info.crowded` is set.

    It may be kept already, in slot `kept`, as an example of another class: see `learn_example`.
    """
    info = state.info[0]
    info.crowded = own_class
    if not has_room(state, own_class):
        return False
    if kept >= 0 and state.y[kept] != own_class:
        info.crowded = state.y[kept]
        if not has_room(state, state.y[kept]):
            return False
    info.crowded = 0
    return True


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `registry`.

    y has classes; a problem does nothing for a number that it has as a member. margins are float64
    (n, 2 classes + 1): of each row before it was learnt the scores, the logarithms of
    probabilities, and the least margin of its class (of the best one, if it is not learnt). With
    one column, only that is computed; without columns, nothing is written. It also returns where it
    would move rows of the store that another thread reads.
    """
    state, kernel, x = borrowed((state, kernel, x))
    n_rows, d, info = count(x), width(x), state.info[0]
    start = np.int64(0)
    while start < n_rows:
        size = min(BLOCK, n_rows - start)
        n_block = info.n
        # Those that were computed before are left out: see `ready` of `state.INFO`.
        known = known_columns(info, n_rows == size)
        if known == 0:
            fill(x, state, kernel, y, start, size, d, margins.shape[1] == 1)
            n_block = info.n
        else:
            state.skipped[:size] = 0
            if known < n_block:
                rows = part(x, start, start + size)
                stores.values(kernel, state.store, rows, size, d, known, n_block, state.block)
        block_rows = kept_rows(schedule.bounds, state, part(x, start, start + size))
        for r in range(size):
            at = start + r
            if info.n_dead > max(16, info.n // 8):
                if schedule.is_read > 0.0:
                    return at
                squeeze(state)
                n_block = squeezed(state.block, state.order, r, n_block, info.n)
            n, own_class = info.n, np.int64(y[at])
            fresh = part(x, at, at + 1)
            if n == state.y.size or not stores.has_room(state.store, fresh):
                return at
            kept = slot_of(state, numbers[at])
            if not _have_room(state, own_class, kept):
                return at
            row, out = state.block[r], state.block[r : r + 1]
            stores.values(kernel, state.store, fresh, np.int64(1), d, n_block, n, out)
            info.n_values += n - state.skipped[r]
            if margins.shape[1] > 1:
                write_margins(state, row, state.problems.margins)
                write_scores(state, state.problems.margins, margins[at])
            k_xx = diagonal[at]
            k_xx = k_xx if kept < 0 else _as_kept(state, kernel, kept, fresh, k_xx, out, n)
            slide(schedule.bounds, state, kernel, own_class, cost[at], numbers[at], d)
            # An example of weight 0 is not processed.
            if cost[at] > 0.0:
                least = learn_example(
                    state, kernel, fresh, own_class, cost[at], weight[at], numbers[at], row, k_xx,
                    schedule,
                )  # fmt: skip
                if margins.shape[1] > 0:
                    margins[at, -1] = least
                # Wrong: a class has beaten its own.
                is_wrong = int(least <= 0.0)
                stay_within(
                    schedule.bounds, state, kernel, block_rows, r, size, n_block, d, is_wrong
                )
                look(state)
        start += size
    return n_rows


@compiled_inner
def _write_margin(state, schedule, row, out, at):
    write_margins(state, row, state.problems.margins)
    write_scores(state, state.problems.margins, out[at])


@compiled
def problem_margins_of(state, kernel, x, out):
    """Write the margin of each problem for rows x into out, float64 (n, problems)."""
    state, kernel, x = borrowed((state, kernel, x))
    n, start = state.info[0].n, 0
    while start < count(x):
        size = fill_part(state, kernel, x, start, n)
        for r in range(size):
            write_margins(state, state.block[r], out[start + r])
        start += size


register_kernel_solver(PairsState, MULTICLASS, _write_margin, learn_rows)
