"""What LASVM for several classes does with all members of its problems, one after the other."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled
from streamsvm.solvers.lasvm import finish as two_finish
from streamsvm.solvers.lasvm import reweighting as of_two
from streamsvm.solvers.lasvm import state as two_state
from streamsvm.solvers.lasvm.state import LASVMState
from streamsvm.solvers.lasvm.step import delta, remove_blatant
from streamsvm.solvers.lasvm_pairs.state import problem
from streamsvm.support import stores
from streamsvm.support.member_store import MemberKernel


@compiled
def _packed(own, d):
    """Return a problem as a LASVM with a store of its own members, which are copied."""
    n = own.info[0].n
    members = stores.gather(own.store, np.arange(n), n, d)
    rows = stores.of_rows(stores.spare_of(own.store.rows, n, d), members)
    return LASVMState(
        rows, own.cache, own.alpha, own.gradient, own.lower, own.upper, own.y, own.diagonal,
        own.look_draws, own.info, own.block, own.order, own.lanes, own.groups,
    )  # fmt: skip


@compiled
def _finish_problem(own, kernel, schedule, d, max_steps):
    """Finish a binary problem as `finish_some` of two classes does."""
    two_state.squeeze(own)
    is_over = delta(own) <= schedule.tau
    if not is_over:
        is_over = two_finish.improve(_packed(own, d), kernel, schedule, d, max_steps)
    if is_over:
        remove_blatant(own)
        two_state.squeeze(own)
    return is_over


@compiled
def finish_some(state, kernel, schedule, d, max_steps):
    """Make some `max_steps` REPROCESS steps; return True when delta <= tau in all problems."""
    state = borrowed(state)
    state.info[0].ready = 0
    left = max_steps
    for p in range(state.problems.table.size):
        own = problem(state, p)
        before = own.info[0].n_steps
        if not _finish_problem(own, kernel, schedule, d, left):
            return False
        left -= own.info[0].n_steps - before
        if left <= 0:
            return False
    return True


@compiled
def rebuild(state, kernel, d):
    """Recompute gradients, diagonal and dual of all problems, after a change of the kernel."""
    for p in range(state.problems.table.size):
        own = problem(state, p)
        # Without dead members there are at most as many as slots, for which there is scratch.
        two_state.squeeze(own)
        two_state.rebuild(own, MemberKernel(kernel), d)
        for s in range(own.info[0].n):
            state.diagonal[own.store.slot[s]] = own.diagonal[s]


@compiled
def set_costs(state, kernel, costs, d):
    """Set C_s of every example to costs[class], float64 (classes,), times its weight."""
    of = state.problems
    for s in range(state.info[0].n):
        if state.wanted[s] > 0:
            state.cost[s] = costs[state.y[s]] * state.store.weight[s]
    for p in range(of.table.size):
        own = problem(state, p)
        two_state.squeeze(own)
        _set_costs_of(own, state.cost)
        two_state.rebuild(own, MemberKernel(kernel), d)


@compiled
def _set_costs_of(own, cost):
    """Clip the coefficients of a problem to new costs, cost[slot]; gradients are not updated."""
    rising, falling = 0.0, 0.0
    for s in range(own.info[0].n):
        size = cost[own.store.slot[s]]
        of_two.set_cost(own, s, size)
        rising += max(0.0, own.alpha[s])
        falling -= min(0.0, own.alpha[s])
    of_two.restore_sum(own, rising, falling)
