"""Growth of the state of LASVM for several classes: more classes, vectors, members, features.

When a class appears, a problem begins for it and each earlier class, and, one against the rest, one
problem. A problem that begins has a few examples of the earlier classes as members, the oldest ones
in the store, as a LASVM of two classes has that has learnt only one of them so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.lasvm.state import LASVMState, refresh_extremes
from streamsvm.solvers.lasvm.state import squeeze as squeeze_problem
from streamsvm.solvers.lasvm.step import SEEDS, insert
from streamsvm.solvers.lasvm_pairs import layout
from streamsvm.solvers.lasvm_pairs.problems import REST, with_problems
from streamsvm.solvers.lasvm_pairs.state import PairsState, problem
from streamsvm.support import looks, states, stores
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.tiles import PANEL


def with_classes(
    state: PairsState, kernel: Any, n_classes: int, rest: bool, cache_bytes: int, d: int
) -> PairsState:
    """Return a state with problems for so many classes, or more.

    `rest` tells whether each class is learnt against the rest; else each against each other.
    """
    known = int(state.info[0].n_classes)
    of, n_before = state.problems, len(state.problems.table)
    state = counting(state, n_classes)
    sides = sides_of(known, n_classes, rest)
    of = with_problems(of, sides, max(n_classes, len(of.problem_of)))
    # Without examples that would be their members, problems get room when the first one comes.
    room = np.maximum(of.segments["room"], PANEL if state.info[0].n else 0)
    # What is written is of the new state: an interruption leaves the old one as it was.
    wanted, info = state.wanted.copy(), state.info.copy()
    of = layout.grown(of, room, cache_bytes, _width(state))
    state = state._replace(problems=of, wanted=wanted, info=info)
    if state.info[0].n:
        _seed_all(state, kernel, np.int64(n_before), d)
    state.info[0].n_classes = n_classes
    return state


def counting(state: PairsState, n_classes: int) -> PairsState:
    """Return a state that can count the recent examples of so many classes."""
    further = max(0, n_classes - len(state.recent))
    return state._replace(recent=np.pad(state.recent, ((0, further), (0, 0))))


def sides_of(known: int, n_classes: int, rest: bool) -> list[tuple[int, int]]:
    """Return the two sides of each problem that the classes from number `known` on begin."""
    later = range(known, n_classes)
    return [(c, REST) for c in later] if rest else [(a, b) for b in later for a in range(b)]


def _width(state: Any) -> int:
    return 1 if isinstance(state.store, SparseStore) else states.n_columns(state)


@compiled
def _seed_all(state, kernel, first, d):
    """Give the problems from number `first` on, which have no members, their first ones."""
    state, kernel = borrowed((state, kernel))
    for p in range(first, state.problems.table.size):
        _seed(state, kernel, p, d)


@compiled_inner
def _seed(state, kernel, p, d):
    """Give a problem without members the oldest examples in the store that are of its classes."""
    own, info = borrowed(problem(state, p)), state.info[0]
    table, side = own.info[0], state.problems.segments[p]
    scratch = np.zeros((1, d), np.float32)
    last = np.int64(0)
    while table.n < SEEDS:
        slot = np.int64(-1)
        for s in range(info.n):
            is_own = state.y[s] == side.negative or side.negative < 0
            if state.wanted[s] > 0 and (is_own or state.y[s] == side.positive):
                age = abs(state.store.entered[s])
                if age > last and (slot < 0 or age < abs(state.store.entered[slot])):
                    slot = np.int64(s)
        if slot < 0:
            break
        last = abs(state.store.entered[slot])
        x = stores.row_of(state.store, slot, scratch, d)
        stores.values(kernel, state.store, x, np.int64(1), d, np.int64(0), info.n, state.block)
        row = state.problems.row
        for s in range(table.n):
            row[s] = state.block[0, own.store.slot[s]]
        y = 1.0 if state.y[slot] == side.positive else -1.0
        state.fresh[0] = slot
        weight, number = state.store.weight[slot], state.store.entered[slot]
        insert(own, x, y, state.cost[slot], weight, number, y, state.diagonal[slot], row)
    refresh_extremes(own)


@compiled_inner
def refresh(state, p):
    """Find the extreme gradients of a problem anew."""
    refresh_extremes(borrowed(problem(state, p)))


@compiled
def refresh_all(state):
    """Find the extreme gradients of all problems anew."""
    state = borrowed(state)
    for p in range(state.problems.table.size):
        refresh(state, p)


def from_two(two: LASVMState, rest: bool, cache_bytes: int) -> PairsState:
    """Return a LASVM of two classes, which is squeezed, as a state for several, with problems.

    The class of the examples with y = +1 is number 1; see `with_classes` for the arguments.
    """
    squeeze_problem(two)
    n, width = int(two.info[0].n), states.n_columns(two)
    is_sparse = isinstance(two.store, SparseStore)
    state = states.new_state(PairsState, width, sparse=is_sparse, slots=len(two.alpha), classes=2)
    state = state._replace(store=stores.filled(state.store, stores.rows_of(two.store, n, width)))
    state.store.entered[:n], state.store.weight[:n] = two.store.entered[:n], two.store.weight[:n]
    state.y[:n] = two.y[:n] > 0.0
    state.cost[:n] = two.upper[:n] - two.lower[:n]
    state.diagonal[:n] = two.diagonal[:n]
    for name in ("n", "n_values", *(name for name, _ in looks.SCALARS)):
        state.info[0][name] = two.info[0][name]
    state.look_draws[:], state.recent[:] = two.look_draws, two.recent
    sides = sides_of(0, 2, rest)
    of = with_problems(state.problems, sides, 2)
    room = np.full(len(sides), max(PANEL, -(-2 * n // PANEL) * PANEL))
    state = state._replace(problems=layout.laid_out(of, room, cache_bytes, _width(state)))
    state.wanted[:n] = len(sides)
    for p, side in enumerate(sides):
        _take_over(state, two, p, 1.0 if side[0] == 1 else -1.0)
    refresh_all(state)
    state.info[0].n_classes, state.info[0].most_members = 2, n
    return state


def _take_over(state: PairsState, two: LASVMState, p: int, sign: float) -> None:
    """Make the examples of a LASVM of two classes the members of a problem."""
    of, n = state.problems, int(two.info[0].n)
    start = int(of.segments[p].start)
    own = slice(start, start + n)
    of.slot[own], of.entered[own] = np.arange(n), two.store.entered[:n]
    of.weight[own], of.diagonal[own] = two.store.weight[:n], two.diagonal[:n]
    of.alpha[own], of.gradient[own] = sign * two.alpha[:n], sign * two.gradient[:n]
    of.y[own] = sign * two.y[:n]
    lower, upper = sign * two.lower[:n], sign * two.upper[:n]
    of.lower[own], of.upper[own] = np.minimum(lower, upper), np.maximum(lower, upper)
    for name in two.info.dtype.names or ():
        if name not in ("i", "j", "g_max", "g_min", "ready"):
            of.table[p][name] = two.info[0][name]


def grown(state: PairsState, cache_bytes: int) -> PairsState:
    """Return the state with more room for what `learn_rows` found no room for."""
    info, of = state.info[0], state.problems
    n_columns, capacity = states.n_columns(state), states.capacity_of(state)
    if stores.wants_pairs(state.store):
        return states.grown(state, capacity, n_columns, cache_bytes)
    if info.n == capacity:
        return states.grown(state, 2 * capacity, n_columns, cache_bytes)
    room = layout.rooms_for(of, int(info.crowded), cache_bytes)
    info.crowded = 0
    return state._replace(problems=layout.grown(of, room, cache_bytes, _width(state)))
