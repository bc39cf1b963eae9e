"""The state of LaRank: its arrays, its coefficients, and how it is squeezed and rebuilt."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.solvers.window import RECENT
from streamsvm.support import looks, stores
from streamsvm.support.declaration import (
    BOX,
    DRAWS,
    NOT_NEGATIVE,
    Range,
    Record,
    count_of,
    field,
    index_of,
)
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import BLOCK, values_of_slot
from streamsvm.support.kernel_rows.row_cache import RowCache
from streamsvm.support.states import CACHE, STORE, declare
from streamsvm.support.stores import Store

ABSENT = -1
"""The value of `place` for a coefficient that is 0."""

INFO = np.dtype(
    [
        ("n", np.int64),  # slots in use, dead ones included
        ("n_alive", np.int64),  # support patterns
        ("n_classes", np.int64),  # classes that have been seen
        ("n_seen", np.int64),  # examples given to PROCESSNEW
        ("n_steps", np.int64),  # steps that changed a coefficient
        ("n_null", np.int64),  # operations that found no violating pair
        ("n_values", np.int64),  # kernel values computed for fresh examples
        ("n_new", np.int64),  # PROCESSNEW operations: each is an arg max over all classes
        ("n_old", np.int64),  # PROCESSOLD operations: each is an arg max over all classes
        ("n_optimize", np.int64),  # OPTIMIZE operations, without such an arg max
        ("dual", np.float64),  # the dual objective, summed step by step
        ("lost", np.float64),  # by how much removals and rebuilds lowered the dual
        ("gained", np.float64),  # by how much the last operation raised the dual
        ("work", np.float64),  # cost of the last operation, in seconds: counted, or measured
        ("began", np.int64),  # clock cycles when the last operation began, if the cost is measured
        ("n_spares", np.int64),  # at least as many patterns have no coefficients: see `step`
        ("rate_new", np.float64),  # gain divided by cost for each kind of operation: Algorithm 22
        ("rate_old", np.float64),
        ("rate_optimize", np.float64),
        ("mean_gain", np.float64),  # sum over t of the mean gain of its uniform steps
        ("scaled_gain", np.float64),  # the same, each divided by the mean C_i
        ("width", np.float64),  # sum over t of 2 R2 mean(C_i^2) / mean(C_i)^2
        ("own_sum", np.float64),  # sum of the coefficients of the examples' own classes
        ("norm", np.float64),  # |w| after the last uniform steps
        ("r2", np.float64),  # R2: largest k(x, x) of an example kept, at that moment
        ("ready", np.int64),  # n or -n: the scratch has the kernel values of rows with n slots
        *looks.SCALARS,
    ]
)


class LaRankState(NamedTuple):
    """The arrays of LaRank; a slot is a position in all arrays of length `capacity`.

    The nonzero coefficients of class c stand at coefficient[c, :n_vectors[c]], in no order; the
    coefficient at position p belongs to slot[c, p], and place[c, s] is the position for slot s.
    """

    store: Store = STORE
    cache: RowCache = CACHE
    gradient: np.ndarray = field("classes", "slots")  # g_{s,c} = [c = y_s] - f_c(x_s)
    # Nonzero coefficients beta by class and position, and the slot of each of them.
    coefficient: np.ndarray = field("classes", "slots")
    slot: np.ndarray = field("classes", "slots", dtype=np.int32)
    # By class and slot: the position of the coefficient, or ABSENT.
    place: np.ndarray = field(
        "classes", "slots", dtype=np.int32, fill=ABSENT, range=index_of("slots", none=ABSENT)
    )
    # The number of nonzero coefficients of each class.
    n_vectors: np.ndarray = field("classes", dtype=np.int64, range=count_of("slots"))
    # own[s, :n_own[s]]: the classes for which slot s has a nonzero coefficient.
    own: np.ndarray = field("slots", "classes", dtype=np.int32)
    n_own: np.ndarray = field("slots", dtype=np.int64, range=count_of("classes"))
    y: np.ndarray = field("slots", dtype=np.int64, range=index_of("classes"))
    cost: np.ndarray = field("slots", range=BOX)  # C_s; 0 marks dead and unused slots
    diagonal: np.ndarray = field("slots", dtype=np.float32, range=NOT_NEGATIVE)  # k(x_s, x_s)
    # The slots of support patterns, in no order; and the position of a slot among them.
    alive: np.ndarray = field("slots", dtype=np.int64, range=index_of("slots"), n_used="n_alive")
    where: np.ndarray = field("slots", dtype=np.int64)
    recent: np.ndarray = RECENT  # see `solvers.window`
    draws: np.ndarray = DRAWS  # state of the random generator, see `support.draws`
    look_draws: np.ndarray = looks.DRAWS  # the same of the generator of looks
    info: Any = Record(
        INFO,
        initial={"rate_new": 1.0, "rate_old": 1.0, "rate_optimize": 1.0},
        ranges={
            "n_alive": count_of("slots"),
            "n_spares": count_of("slots"),
            "n_classes": count_of("classes"),
            "began": Range(),
        },
        reset=("ready",),
    )
    # Kernel values of fresh rows; f_c of a row; slots.
    block: np.ndarray = field(BLOCK, "slots", dtype=np.float32, scratch=True)
    scores: np.ndarray = field("classes", scratch=True)
    order: np.ndarray = field("slots", dtype=np.int64, scratch=True)


def _check(state: LaRankState, sizes: dict[str, int]) -> None:
    """Raise ValueError if index arrays contradict each other: compiled code uses them unchecked."""
    n, k, info = sizes["slots"], sizes["classes"], state.info[0]
    own, n_own = state.own[:n, :k], state.n_own[:n]
    fits = bool((own[np.arange(k) < n_own[:, None]] < k).all())
    alive = state.alive[: int(info.n_alive)]
    fits = fits and bool((state.where[alive] == np.arange(len(alive))).all())
    fits = fits and len(alive) == np.count_nonzero(state.cost[:n]) and bool(state.cost[alive].all())
    # `place` and `slot` are inverse, and the numbers of coefficients are right.
    for c in range(k):
        places = state.place[c, :n]
        slots = np.flatnonzero(places >= 0)
        fits = fits and len(slots) == state.n_vectors[c] and bool((places < len(slots)).all())
        fits = fits and bool((state.slot[c, places[slots]] == slots).all())
        fits = fits and all(c in own[s, : n_own[s]] for s in slots)
    if not fits or n_own.sum() != state.n_vectors[:k].sum():
        raise ValueError("a slot, class or place contradicts another")
    found, own_cost = coefficients(state), np.zeros((n, state.n_vectors.size))
    own_cost[np.arange(n), state.y[:n]] = state.cost[:n]
    size = 1e-6 * (np.abs(found).sum(axis=1) + state.cost[:n]) + looks.ROUNDING * info.cost_most
    if (np.abs(found.sum(axis=1)) > size).any() or (found > own_cost + size[:, None]).any():
        raise ValueError("a coefficient is out of its bounds, or the sum of some is not 0")


declare(LaRankState, _check)


def coefficients(state: LaRankState) -> np.ndarray:
    """Return beta of all slots in use, float64 (n, classes)."""
    n, k = int(state.info[0].n), state.n_vectors.size
    found = np.zeros((n, k))
    for c in range(k):
        m = int(state.n_vectors[c])
        found[state.slot[c, :m], c] = state.coefficient[c, :m]
    return found


def bounded(state: LaRankState) -> np.ndarray:
    """Return whether each nonzero coefficient is at its upper bound C_i."""
    found = [np.zeros(0, bool)]
    for c in range(state.n_vectors.size):
        m = int(state.n_vectors[c])
        found.append(state.coefficient[c, :m] >= state.cost[state.slot[c, :m]])
    return np.concatenate(found)


@compiled_within
def beta(state, c, s):
    """Return the coefficient of class c of the example in slot s."""
    at = state.place[c, s]
    return state.coefficient[c, at] if at != ABSENT else 0.0


@compiled_within
def set_beta(state, c, s, value):
    """Set a coefficient; the list of nonzero coefficients is updated."""
    at = state.place[c, s]
    if c == state.y[s]:
        state.info[0].own_sum += value - (state.coefficient[c, at] if at != ABSENT else 0.0)
    if value != 0.0:
        if at == ABSENT:
            at = np.int32(state.n_vectors[c])
            state.place[c, s] = at
            state.slot[c, at] = s
            state.n_vectors[c] += 1
            state.own[s, state.n_own[s]] = c
            state.n_own[s] += 1
        state.coefficient[c, at] = value
    elif at != ABSENT:
        last = state.n_vectors[c] - 1
        moved = state.slot[c, last]
        state.coefficient[c, at] = state.coefficient[c, last]
        state.slot[c, at] = moved
        state.place[c, moved] = at
        state.place[c, s] = ABSENT
        state.n_vectors[c] = last
        state.n_own[s] -= 1
        j = 0
        while state.own[s, j] != c:
            j += 1
        state.own[s, j] = state.own[s, state.n_own[s]]


@compiled_inner
def forget(state, s):
    """Mark slot s, whose coefficients are all 0, as dead."""
    info = state.info[0]
    state.cost[s] = 0.0
    state.store.entered[s] = 0
    stores.release(state.store, s)
    row_cache.free(state.cache, s)
    last = state.alive[info.n_alive - 1]
    state.alive[state.where[s]] = last
    state.where[last] = state.where[s]
    info.n_alive -= 1


@compiled
def squeeze(state):
    """Remove dead slots by moving the others up; `state.order` has the old slot of each new one."""
    info = state.info[0]
    # Not a literal, for which numba would compile one more version of each function called.
    n_kept = np.int64(0)
    for s in range(info.n):
        if state.cost[s] > 0.0:
            state.order[n_kept] = s
            n_kept += 1
    order = state.order
    stores.reorder(state.store, order, n_kept)
    row_cache.reorder(state.cache, order, n_kept)
    # In place: order[s] >= s, so that no slot is read after it was written.
    for s in range(n_kept):
        old = order[s]
        state.n_own[s] = state.n_own[old]
        for j in range(state.n_own[s]):
            state.own[s, j] = state.own[old, j]
        state.y[s], state.cost[s] = state.y[old], state.cost[old]
        state.diagonal[s] = state.diagonal[old]
        state.where[s] = state.where[old]
        state.alive[state.where[s]] = s
    for c in range(info.n_classes):
        for s in range(n_kept):
            state.gradient[c, s] = state.gradient[c, order[s]]
            state.place[c, s] = state.place[c, order[s]]
            if state.place[c, s] != ABSENT:
                state.slot[c, state.place[c, s]] = s
        for s in range(n_kept, info.n):
            state.place[c, s] = ABSENT
    for s in range(n_kept, info.n):
        state.cost[s] = 0.0
        state.n_own[s] = 0
        # So that a model from a file, which holds no slots beyond n, stays the same to the byte.
        state.own[s] = 0
    info.n = n_kept


@compiled
def rebuild(state, kernel, d):
    """Recompute gradients, diagonal and dual after a change of the kernel."""
    state, kernel = borrowed((state, kernel))
    info = state.info[0]
    n = info.n
    row_cache.clear(state.cache, n)
    dual = 0.0
    for s in range(n):
        row = values_of_slot(state, kernel, s, n, d)
        state.diagonal[s] = row[s]
        for c in range(info.n_classes):
            f = 0.0
            for j in range(state.n_vectors[c]):
                f += state.coefficient[c, j] * np.float64(row[state.slot[c, j]])
            target = 1.0 if c == state.y[s] else 0.0
            state.gradient[c, s] = target - f
            dual += 0.5 * beta(state, c, s) * (target + state.gradient[c, s])
    info.lost += info.dual - dual
    info.dual = dual
