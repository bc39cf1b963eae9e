"""LASVM for several classes within bounds: a window, a budget of vectors in the store.

An example leaves the store by leaving each problem that has it as a member, as for two classes (see
`solvers.lasvm.bounds`). A budget takes the vector for which the sum of the costs over its problems
is least. If vectors are to be projected, each problem projects it on its nearest member of the same
sign.

No vectors are merged: a merged one would be another one in each problem. In its place, after every
second example the oldest one is removed, not the cheapest. To remove an example that is classified
wrongly costs the dual most, so by cost alone noise would stay, until little else is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import chosen_by, compiled
from streamsvm.solvers.bounds import MERGE, PROJECT, SMALLEST, Budget, Unbounded, Window
from streamsvm.solvers.lasvm.bounds import nearest, project, remove
from streamsvm.solvers.lasvm_pairs.problems import NONE, bias_of, n_turns, problem_of_turn
from streamsvm.solvers.lasvm_pairs.state import problem
from streamsvm.support.kernel_rows.row_cache import kernel_row
from streamsvm.support.member_store import MemberKernel


@compiled
def _leave(own, kernel, s, projects, d):
    """Remove a member of a problem, or project it on its nearest one."""
    shared = MemberKernel(kernel)
    j = np.int64(-1)
    if projects and own.alpha[s] != 0.0:
        line = kernel_row(own.cache, shared, own.store, s, own.info[0].n, d)
        j = nearest(own, own.cache.values[line], s)
    if j < 0:
        remove(own, shared, s, d)
    else:
        project(own, shared, s, j, d)


@compiled
def forget(state, kernel, slot, projects, d):
    """Remove the example in a slot from all problems, and so from the store."""
    of = state.problems
    for turn in range(n_turns(of)):
        p = problem_of_turn(of, state.y[slot], turn)
        if p == NONE:
            continue
        start = of.segments[p].start
        for s in range(of.table[p].n):
            at = start + s
            if of.slot[at] == slot and of.lower[at] != of.upper[at]:
                _leave(problem(state, p), kernel, s, projects, d)
                break


@compiled
def _forget_number(state, kernel, number, d):
    if number < 1:
        return
    for s in range(state.info[0].n):
        if abs(state.store.entered[s]) == number and state.wanted[s] > 0:
            forget(state, kernel, s, False, d)


@compiled
def _cheapest(state, smallest):
    """Return the slot that is cheapest to remove; if `smallest`, by the sum of |alpha|.

    Of several it is that of the oldest example, in whatever order the slots are.
    """
    of, cost, entered = state.problems, state.cost, state.store.entered
    cost[: state.info[0].n] = 0.0
    for p in range(of.table.size):
        b, start = bias_of(of.table[p]), of.segments[p].start
        for at in range(start, start + of.table[p].n):
            if of.lower[at] == of.upper[at]:
                continue
            a = abs(of.alpha[at])
            loss = a
            if not smallest:
                violation = of.y[at] * (of.gradient[at] - b)
                loss = a * violation + 0.5 * a * a * np.float64(of.diagonal[at])
            cost[of.slot[at]] += loss
    found = np.int64(-1)
    for s in range(state.info[0].n):
        if state.wanted[s] > 0:
            is_older = found >= 0 and abs(entered[s]) < abs(entered[found])
            if found < 0 or cost[s] < cost[found] or (cost[s] == cost[found] and is_older):
                found = np.int64(s)
    return found


@compiled
def _oldest(state):
    """Return the slot of the oldest example."""
    entered = state.store.entered
    found = np.int64(NONE)
    for s in range(state.info[0].n):
        if state.wanted[s] > 0 and (found < 0 or abs(entered[s]) < abs(entered[found])):
            found = np.int64(s)
    return found


@compiled
def _slide_unbounded(bounds, state, kernel, number, d):
    pass


@compiled
def _slide_window(bounds, state, kernel, number, d):
    _forget_number(state, kernel, number - np.int64(bounds.size), d)


@compiled
def _slide_budget(bounds, state, kernel, number, d):
    if bounds.window > 0.0:
        _forget_number(state, kernel, number - np.int64(bounds.window), d)


slide: Any = chosen_by(
    0, {Unbounded: _slide_unbounded, Window: _slide_window, Budget: _slide_budget}
)
"""slide(bounds, state, kernel, number, d): remove the example that leaves the window when example
`number` comes."""


@compiled
def _stay_unbounded(bounds, state, kernel, d):
    pass


@compiled
def _stay_within_budget(bounds, state, kernel, d):
    info = state.info[0]
    while info.n - info.n_dead > bounds.limit:
        slot = np.int64(NONE)
        if bounds.policy >= MERGE and info.n_looked % 2 == 0:
            slot = _oldest(state)
        if slot < 0:
            slot = _cheapest(state, bounds.policy == SMALLEST)
        forget(state, kernel, slot, bounds.policy == PROJECT, d)


stay_within: Any = chosen_by(
    0, {Unbounded: _stay_unbounded, Window: _stay_unbounded, Budget: _stay_within_budget}
)
"""stay_within(bounds, state, kernel, d): remove vectors while there are more than the limit."""
