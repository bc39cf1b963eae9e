"""What LASVM for several classes does with all members of its problems, one after the other."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.lasvm import finish as two_finish
from streamsvm.solvers.lasvm import state as two_state
from streamsvm.solvers.lasvm.state import LASVMState
from streamsvm.solvers.lasvm.step import delta, enter, remove_blatant
from streamsvm.solvers.lasvm_pairs.classes import refresh
from streamsvm.solvers.lasvm_pairs.state import problem
from streamsvm.solvers.lasvm_pairs.step import has_room, note_example, slot_of
from streamsvm.support import stores
from streamsvm.support.rows import count, part
from streamsvm.support.stores import MemberKernel

_FEWEST = 1000
"""A call makes so many steps on each problem, if its part of them is less."""


@compiled_inner
def _packed(own, d):
    """Return a problem as a LASVM with a store of its own members, which are copied."""
    n = own.info[0].n
    members = stores.gather(own.store, np.arange(n), n, d)
    rows = stores.of_rows(stores.spare_of(own.store.rows, n, d), members)
    return LASVMState(
        rows, own.cache, own.alpha, own.gradient, own.lower, own.upper, own.y, own.diagonal,
        own.recent, own.look_draws, own.info, own.block, own.order, own.lanes, own.groups,
    )  # fmt: skip


@compiled_inner
def _finish_problem(state, p, kernel, schedule, d, max_steps):
    """Finish a binary problem as `finish_some` of two classes does."""
    own = borrowed(problem(state, p))
    two_state.squeeze(own)
    is_over = delta(own) <= schedule.tau
    if not is_over:
        is_over = two_finish.improve(_packed(own, d), kernel, schedule, d, max_steps, False)
    if is_over:
        remove_blatant(own, schedule)
        two_state.squeeze(own)
    return is_over


@compiled
def finish_some(state, kernel, schedule, d, max_steps):
    """Make some `max_steps` REPROCESS steps; return True when delta <= tau in all problems."""
    state, kernel = borrowed((state, kernel))
    state.info[0].ready = 0
    n = state.problems.table.size
    # A part for each problem, so that what a call gains is the gain of all.
    most, n_over = max(np.int64(_FEWEST), max_steps // max(1, n)), 0
    for p in range(n):
        n_over += _finish_problem(state, p, kernel, schedule, d, most)
    return n_over == n


@compiled_inner
def _enter(state, p, x, y, cost, weight, number, diagonal, f):
    """Make an example a member of a problem, unless it is one."""
    own = borrowed(problem(state, p))
    sign = 1.0 if state.problems.segments[p].positive == y else -1.0
    if not stores.contains(own.store.entered, number, own.info[0].n):
        enter(own, x, sign, cost, weight, number, sign - f, diagonal)
        state.info[0].most_members = max(state.info[0].most_members, own.info[0].n)


@compiled_inner
def _add_row(state, x, y, cost, weight, number, diagonal, f, wanted):
    """Make an example a member of some problems; return whether there was room for it."""
    if state.info[0].n == state.y.size or not stores.has_room(state.store, x):
        return False
    state.info[0].crowded = y
    if not has_room(state, y):
        return False
    state.info[0].crowded = 0
    state.fresh[0] = slot_of(state, number)
    if state.fresh[0] >= 0 and state.y[state.fresh[0]] != y:
        # It is kept with another label.
        return True
    for c in range(wanted.size):
        if 0 <= wanted[c] < state.problems.table.size:
            _enter(state, wanted[c], x, y, cost, weight, number, diagonal, f[c])
    note_example(state, y, cost, weight, number, diagonal)
    return True


@compiled
def add_rows(state, x, y, cost, weight, numbers, diagonal, f, wanted):
    """Make examples members of problems, with alpha = 0; return how many fitted.

    Arguments are as in `learn_rows`. `wanted`, int64 (n, columns), are the problems of each
    example, NONE for none, and f, float64 of the same shape, its f(x) there without b. Examples of
    cost 0 are left out.
    """
    state, x = borrowed((state, x))
    state.info[0].ready = 0
    done = np.int64(0)
    while done < count(x):
        r, row = done, part(x, done, done + 1)
        if cost[r] > 0.0 and not _add_row(
            state, row, np.int64(y[r]), cost[r], weight[r], numbers[r], diagonal[r], f[r], wanted[r]
        ):
            break
        done += 1
    for p in range(state.problems.table.size):
        refresh(state, p)
    return done


@compiled_inner
def _rebuild_problem(state, p, kernel, d):
    own = borrowed(problem(state, p))
    # Without dead members there are at most as many as slots, for which there is scratch.
    two_state.squeeze(own)
    two_state.rebuild(own, MemberKernel(kernel), d)
    for s in range(own.info[0].n):
        state.diagonal[own.store.slot[s]] = own.diagonal[s]


@compiled
def rebuild(state, kernel, d):
    """Recompute gradients, diagonal and dual of all problems, after a change of the kernel."""
    state, kernel = borrowed((state, kernel))
    for p in range(state.problems.table.size):
        _rebuild_problem(state, p, kernel, d)


@compiled
def set_costs(state, kernel, costs, d):
    """Set C_s of every example to costs[class], float64 (classes,), times its weight."""
    state, kernel = borrowed((state, kernel))
    of = state.problems
    for s in range(state.info[0].n):
        if state.wanted[s] > 0:
            state.cost[s] = costs[state.y[s]] * state.store.weight[s]
    for p in range(of.table.size):
        _set_costs_of(state, p, kernel, d)


@compiled_inner
def _set_costs_of(state, p, kernel, d):
    """Clip the coefficients of a problem to the costs of its members, and compute it anew."""
    own, cost = borrowed(problem(state, p)), state.cost
    two_state.squeeze(own)
    rising, falling = 0.0, 0.0
    for s in range(own.info[0].n):
        size = cost[own.store.slot[s]]
        two_state.set_cost(own, s, size)
        rising += max(0.0, own.alpha[s])
        falling -= min(0.0, own.alpha[s])
    two_state.restore_sum(own, rising, falling)
    two_state.rebuild(own, MemberKernel(kernel), d)
