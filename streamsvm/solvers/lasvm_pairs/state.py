"""The state of LASVM for several classes: one store of examples, and binary problems over it.

Each problem is a LASVM of two classes, or of one class against the rest. A vector of the store is
kept once, and is a member of each problem that wants it. `problem` returns a problem as a
`LASVMState` whose arrays are parts of common ones, so that the functions of `solvers.lasvm` work on
it. Its kernel is a `MemberKernel`. `p` is always the index of a problem.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.solvers.lasvm.state import LASVMState
from streamsvm.solvers.lasvm_pairs import layout
from streamsvm.solvers.lasvm_pairs import problems as of_problems
from streamsvm.solvers.lasvm_pairs.problems import Problems, cache_of
from streamsvm.solvers.window import RECENT
from streamsvm.support import looks, stores
from streamsvm.support.declaration import (
    BOX,
    NOT_NEGATIVE,
    Range,
    Record,
    count_of,
    field,
    index_of,
)
from streamsvm.support.kernel_rows.fresh_block import BLOCK as BLOCK
from streamsvm.support.states import STORE, Part, declare
from streamsvm.support.stores import MemberStore, Store
from streamsvm.support.tiles import PANEL

INFO = np.dtype(
    [
        ("n", np.int64),  # slots in use, dead ones included
        ("n_dead", np.int64),  # slots that no problem wants, not yet squeezed out
        ("n_classes", np.int64),  # classes that have problems
        ("most_members", np.int64),  # most members that a problem had, dead ones included
        ("n_values", np.int64),  # kernel values computed for fresh examples
        ("lost", np.float64),  # by how much the dual of problems fell when they were rebuilt
        ("ready", np.int64),  # n or -n: the scratch has the kernel values of rows with n slots
        ("n_grouped", np.int64),  # slots that `needed` put in order; -n: not worth it of n slots
        ("crowded", np.int64),  # class of the last example that a problem had no room for
        ("n_watched", np.int64),  # these three as in `solvers.lasvm.state.INFO`
        ("n_wrong", np.int64),
        ("wrong_of_late", np.float64),
        *looks.SCALARS,
    ]
)


def _grown_problems(problems: Any, sizes: Any, sparse: bool, cache_bytes: int) -> Any:
    width = 1 if sparse else sizes["features"]
    is_stripped = problems.values.size == 0
    if is_stripped or problems.feature_row.shape[1] != max(1, width):
        room = problems.segments["room"]
        return layout.laid_out(problems, room, cache_bytes, width)
    return problems


def _problems_for_thread(problems: Any, block: bool) -> Any:
    own = {name: np.zeros_like(getattr(problems, name)) for name in of_problems.SCRATCH}
    return problems._replace(**own)


PROBLEMS: Any = Part(
    new=lambda sizes, sparse, _: of_problems.none(
        sizes["classes"], 1 if sparse else sizes["features"]
    ),
    grown=_grown_problems,
    # Without lines, and without room that no member uses yet.
    stripped=lambda problems, sizes, sparse: layout.laid_out(
        problems, -(-problems.table["n"] // PANEL) * PANEL, -1, 1
    ),
    for_thread=_problems_for_thread,
    made_sparse=lambda of, sizes, cache_bytes: layout.laid_out(
        layout.laid_out(of, of.segments["room"], -1, 1), of.segments["room"], cache_bytes, 1
    ),
)


class PairsState(NamedTuple):
    """The arrays of LASVM for several classes; a slot is a position in those of `capacity`."""

    store: Store = STORE
    y: np.ndarray = field("slots", dtype=np.int64, range=index_of("classes"))
    cost: np.ndarray = field("slots", range=BOX)  # C_s
    diagonal: np.ndarray = field("slots", dtype=np.float32, range=NOT_NEGATIVE)  # k(x_s, x_s)
    # The number of problems that it is a member of; 0 marks dead and unused slots.
    wanted: np.ndarray = field("slots", dtype=np.int64, range=NOT_NEGATIVE)
    recent: np.ndarray = RECENT  # see `solvers.window`; a problem does not use it
    problems: Problems = PROBLEMS
    look_draws: np.ndarray = looks.DRAWS  # state of the generator of looks, see `support.draws`
    info: Any = Record(
        INFO,
        ranges={
            "n_dead": count_of("slots"),
            "n_classes": count_of("classes"),
            "wrong_of_late": Range(0.0, 1.0),
        },
        reset=("ready", "crowded"),
    )
    # Kernel values of fresh rows, and the number of values that each row lacks.
    block: np.ndarray = field(BLOCK, "slots", dtype=np.float32, scratch=True)
    skipped: np.ndarray = field(BLOCK, dtype=np.int64, scratch=True)
    # The classes whose examples need a vector, see `needed`.
    needed_by: np.ndarray = field("slots", dtype=np.uint64, scratch=True)
    order: np.ndarray = field("slots", dtype=np.int64, scratch=True)  # of slots, or of members
    norm: np.ndarray = field("slots", scratch=True)  # root of the squared coefficients of a slot
    fresh: np.ndarray = field(1, dtype=np.int64, scratch=True)  # see `MemberStore`


declare(PairsState)


@compiled_within
def problem(state, p):
    """Return a problem as a `LASVMState`, a view of the common arrays."""
    of = state.problems
    own = of.segments[p]
    a, b = own.start, own.start + own.room
    store: Any = MemberStore(
        of.entered[a:b], of.weight[a:b], of.slot[a:b], state.store, state.wanted, state.fresh,
        state.info,
    )  # fmt: skip
    return LASVMState(
        store,
        cache_of(of, p),
        of.alpha[a:b], of.gradient[a:b], of.lower[a:b], of.upper[a:b], of.y[a:b],
        of.diagonal[a:b], state.recent, state.look_draws, of.table[p : p + 1], state.block,
        state.order, of.lanes, of.groups,
    )  # fmt: skip


@compiled_inner
def arrange(state, n_kept):
    """Move the example in slot order[s] to slot s, for s < n_kept; all others are removed."""
    info, of, order = state.info[0], state.problems, state.order
    place = np.zeros(info.n, np.int64)
    y, cost, wanted = state.y[: info.n].copy(), state.cost[: info.n].copy(), state.wanted.copy()
    diagonal = state.diagonal[: info.n].copy()
    stores.reorder(state.store, order, n_kept)
    for s in range(n_kept):
        old = order[s]
        place[old] = s
        state.y[s], state.cost[s] = y[old], cost[old]
        state.diagonal[s], state.wanted[s] = diagonal[old], wanted[old]
    for s in range(n_kept, info.n):
        state.wanted[s] = 0
        state.store.entered[s] = 0
        state.cost[s] = 0.0
    for p in range(of.table.size):
        start = of.segments[p].start
        for at in range(start, start + of.table[p].n):
            # That of a dead member may be beyond all slots by now.
            of.slot[at] = place[of.slot[at]] if of.lower[at] != of.upper[at] else 0
    info.n = n_kept
    info.n_dead = 0


@compiled
def squeeze(state):
    """Remove dead slots by moving the others up; `state.order` has the old slot of each new one."""
    state = borrowed(state)
    info, n_kept, n_grouped = state.info[0], np.int64(0), np.int64(0)
    for s in range(info.n):
        if state.wanted[s] > 0:
            state.order[n_kept] = s
            n_kept += 1
            n_grouped += s < info.n_grouped
    arrange(state, n_kept)
    info.n_grouped = min(info.n_grouped, n_grouped)
