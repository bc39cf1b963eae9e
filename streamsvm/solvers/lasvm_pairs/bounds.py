"""LASVM for several classes within bounds: a window, a budget of vectors in the store.

An example leaves the store by leaving each problem that has it as a member, as for two classes (see
`solvers.lasvm.bounds`). A budget merges two vectors of one class (`merging`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import borrowed, chosen_by, compiled, compiled_inner
from streamsvm.solvers.bounds import Budget, Unbounded, Window
from streamsvm.solvers.lasvm.bounds import remove
from streamsvm.solvers.lasvm.fading import LEAST_COST, RHO, errs_more, fade, note_error
from streamsvm.solvers.lasvm_pairs.looks import note_problem
from streamsvm.solvers.lasvm_pairs.merging import merge_two
from streamsvm.solvers.lasvm_pairs.problems import NONE, n_turns, problem_of_turn
from streamsvm.solvers.lasvm_pairs.state import problem
from streamsvm.support import stores
from streamsvm.support.kernel_rows.fresh_block import renew_column
from streamsvm.support.looks import note_cost
from streamsvm.support.member_store import MemberKernel


@compiled_inner
def _leave(state, p, kernel, s, d):
    """Remove a member of a problem."""
    remove(borrowed(problem(state, p)), MemberKernel(kernel), s, d)


@compiled
def forget(state, kernel, slot, d):
    """Remove the example in a slot from all problems, and so from the store."""
    state, kernel = borrowed((state, kernel))
    of = state.problems
    for turn in range(n_turns(of)):
        p = problem_of_turn(of, state.y[slot], turn)
        if p == NONE:
            continue
        start = of.segments[p].start
        for s in range(of.table[p].n):
            at = start + s
            if of.slot[at] == slot and of.lower[at] != of.upper[at]:
                _leave(state, p, kernel, s, d)
                break


@compiled_inner
def _forget_number(state, kernel, number, d):
    if number < 1:
        return
    for s in range(state.info[0].n):
        if abs(state.store.entered[s]) == number and state.wanted[s] > 0:
            forget(state, kernel, s, d)


@compiled_inner
def _slide_unbounded(bounds, state, kernel, number, d):
    pass


@compiled_inner
def _slide_window(bounds, state, kernel, number, d):
    if bounds.window > 0.0:
        _forget_number(state, kernel, number - np.int64(bounds.window), d)


slide: Any = chosen_by(
    0, {Unbounded: _slide_unbounded, Window: _slide_window, Budget: _slide_window}
)
"""slide(bounds, state, kernel, number, d): remove the example that leaves the window when example
`number` comes."""


@compiled_inner
def _fade_problem(state, p, rho):
    own = borrowed(problem(state, p))
    fade(own, rho)
    note_problem(state.info[0], own)


@compiled_inner
def _fade(state, rho):
    """Let all problems fade, and costs and weights in the store (see `solvers.lasvm.fading`)."""
    info = state.info[0]
    info.n_watched, info.n_wrong, info.wrong_of_late = 0, 0, 0.0
    for p in range(state.problems.table.size):
        _fade_problem(state, p, rho)
    for s in range(info.n):
        if state.cost[s] > LEAST_COST:
            state.cost[s] *= rho
            state.store.weight[s] *= rho
            note_cost(info, state.cost[s])


@compiled_inner
def _stay_unbounded(bounds, state, kernel, fresh, r, size, n_block, d, is_wrong):
    pass


@compiled_inner
def _stay_within_budget(bounds, state, kernel, fresh, r, size, n_block, d, is_wrong):
    info = state.info[0]
    note_error(info, is_wrong)
    is_full = info.n - info.n_dead >= bounds.limit
    if is_full and errs_more(info):
        _fade(state, RHO)
    while info.n - info.n_dead > bounds.limit:
        slot, is_merged = merge_two(state, kernel, bounds.policy, d)
        if not is_merged:
            forget(state, kernel, slot, d)
        elif slot < n_block:
            z = stores.row_of(state.store, slot, state.problems.feature_row, d)
            renew_column(state.block, kernel, fresh, z, slot, r + 1, size, d)


stay_within: Any = chosen_by(
    0, {Unbounded: _stay_unbounded, Window: _stay_unbounded, Budget: _stay_within_budget}
)
"""stay_within(bounds, state, kernel, fresh, r, size, n_block, d, is_wrong): merge or remove vectors
while there are more than the limit, or let all fade, as `solvers.lasvm.bounds.stay_within` does."""
