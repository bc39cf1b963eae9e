"""The states of the ambiguous SVM: with explicit weights, or with the examples that it keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.support import looks, stores
from streamsvm.support.declaration import (
    BOX,
    DRAWS,
    FLAG,
    NOT_NEGATIVE,
    Record,
    count_of,
    field,
    index_of,
)
from streamsvm.support.dense_store import RowStore
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import BLOCK, values_of_slot
from streamsvm.support.kernel_rows.kernel_values import add_scaled, expansion
from streamsvm.support.kernel_rows.row_cache import RowCache
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.states import CACHE, ROWS, STORE, declare
from streamsvm.support.stores import Store

INFO = np.dtype(
    [
        ("n", np.int64),  # slots in use: examples kept
        ("n_classes", np.int64),  # labels seen
        ("n_seen", np.int64),  # examples of a weight above 0
        ("n_steps", np.int64),  # steps that changed a coefficient
        ("n_null", np.int64),  # examples, or steps, that changed nothing
        ("n_all", np.int64),  # examples with all labels in the bag: they say nothing
        ("n_values", np.int64),  # kernel values computed for fresh examples
        ("last_number", np.int64),  # largest number of an example kept so far
        ("dual", np.float64),  # the dual objective, summed step by step
        ("losses", np.float64),  # sum of C_i L_i before each example was learnt, or took in labels
        ("costs", np.float64),  # sum of C_i
        ("widths", np.float64),  # sum of C_i^2 rho_i, rho_i = 2 k(x_i, x_i)
        ("delta_sum", np.float64),  # sum of all delta_s
        ("r2", np.float64),  # largest k(x, x) of an example kept so far
        *looks.SCALARS,
        ("ready", np.int64),  # n or -n: the scratch has the kernel values of rows with n slots
    ]
)


_INFO: Any = Record(INFO, ranges={"n_classes": count_of("classes")}, reset=("ready",))
_OF_LABELS = field("classes", scratch=True)
_IN_BAG = field("classes", dtype=np.int64, scratch=True)
"""Whether label y is in the bag."""


class LinearState(NamedTuple):
    """The arrays with explicit weights. No rows are kept: `store` tells the room for features.

    After n examples the mean of the weights after each is weights - sums / n. A step of the example
    after m others is in all but m of them: the sums have m times each step.
    """

    store: RowStore | SparseStore = ROWS
    weights: np.ndarray = field("features", "classes")
    # Without parts if the last weights predict.
    sums: np.ndarray = field("parts", "features", "classes")
    bias: np.ndarray = field(2, "classes")  # of each label, and its sums
    info: Any = _INFO
    scores: np.ndarray = _OF_LABELS  # s_y of a row
    late: np.ndarray = _OF_LABELS  # the products of a row with the sums
    u: np.ndarray = _OF_LABELS  # u_y
    in_bag: np.ndarray = _IN_BAG


class AmbiguousState(NamedTuple):
    """The arrays with a kernel; a slot is a position in all arrays of length `capacity`."""

    store: Store = STORE
    cache: RowCache = CACHE
    beta: np.ndarray = field("classes", "slots")  # sum_c alpha_s^c u_y(c), by label and slot
    f: np.ndarray = field("classes", "slots")  # the score of label y for the example in slot s
    # 1: label y is in the bag of slot s.
    bag: np.ndarray = field("classes", "slots", dtype=np.int32, range=FLAG)
    alpha: np.ndarray = field("slots", range=NOT_NEGATIVE)  # sum_c alpha_s^c, at most C_s
    delta: np.ndarray = field("slots", range=NOT_NEGATIVE)  # sum_c alpha_s^c Delta(c)
    cost: np.ndarray = field("slots", range=BOX)  # C_s
    # Of how many labels the loss of slot s is.
    known: np.ndarray = field("slots", dtype=np.int64, range=count_of("classes"))
    diagonal: np.ndarray = field("slots", dtype=np.float32, range=NOT_NEGATIVE)  # k(x_s, x_s)
    # members[s] is s: of what looks are drawn.
    members: np.ndarray = field("slots", dtype=np.int64, range=index_of("slots"))
    draws: np.ndarray = DRAWS  # state of the random generator, see `support.draws`
    look_draws: np.ndarray = looks.DRAWS  # the same of the generator of looks
    info: Any = _INFO
    block: np.ndarray = field(BLOCK, "slots", dtype=np.float32, scratch=True)  # of fresh rows
    scores: np.ndarray = _OF_LABELS  # s_y of a row
    u: np.ndarray = _OF_LABELS  # u_y
    in_bag: np.ndarray = _IN_BAG


def _check(state: AmbiguousState, sizes: dict[str, int]) -> None:
    n, k = int(state.info[0].n), len(state.bag)
    if (state.alpha[:n] > state.cost[:n] * (1.0 + 1e-9)).any():
        raise ValueError("a coefficient is above its C_i")
    size = 1e-6 * (1.0 + np.abs(state.beta[:, :n]).sum(axis=0))
    if (np.abs(state.beta[:, :n].sum(axis=0)) > size).any():
        raise ValueError("the coefficients of an example do not sum to 0")
    in_bag = state.bag[:, :n].sum(axis=0)
    if ((in_bag < 1) | (in_bag >= np.maximum(state.known[:n], 2))).any():
        raise ValueError("a bag is empty, or has all labels")
    if (state.bag[:, :n] * (np.arange(k)[:, None] >= state.known[:n])).any():
        raise ValueError("a bag has a label that is not known")


declare(LinearState)
declare(AmbiguousState, _check)


@compiled_within
def read_bag(state, y, given):
    """Write the bag of an example into `in_bag`; return how many labels it has.

    y is the number of its label, or negative: then `given`, float64 (classes,), is 1.0 for each
    candidate.
    """
    k, n = state.info[0].n_classes, 0
    for c in range(k):
        state.in_bag[c] = np.int64(given[c] > 0.0) if y < 0.0 else np.int64(c == np.int64(y))
        n += state.in_bag[c]
    return n


@compiled_within
def note_example(info, cost, loss, diagonal):
    """Count an example with this loss before it is learnt."""
    info.n_seen += 1
    note_loss(info, cost, loss, diagonal)


@compiled_within
def note_loss(info, cost, loss, diagonal):
    """Add a loss to the sums that the dual is compared with."""
    info.losses += cost * loss
    info.costs += cost
    info.widths += 2.0 * cost * cost * diagonal


@compiled_inner
def add_to(state, row, s, y, amount):
    """Add an amount to beta of label y and slot s, whose kernel values are `row`."""
    if amount != 0.0:
        state.beta[y, s] += amount
        add_scaled(state.f[y], row, amount, state.info[0].n)


@compiled_within
def row_of_slot(state, kernel, s, d):
    """Return the kernel values of a slot with all slots; valid until the next call."""
    n = state.info[0].n
    return state.cache.values[row_cache.kernel_row(state.cache, kernel, state.store, s, n, d)]


@compiled_inner
def scale_block(state, s, row, factor):
    """Multiply the coefficients of a slot, at most by 1; `row` has its kernel values."""
    info = state.info[0]
    slope, square = state.delta[s], 0.0
    for y in range(info.n_classes):
        slope -= state.beta[y, s] * state.f[y, s]
        square += state.beta[y, s] * state.beta[y, s]
    step = factor - 1.0
    info.dual += step * slope - 0.5 * step * step * square * np.float64(state.diagonal[s])
    for y in range(info.n_classes):
        beta = state.beta[y, s]
        add_to(state, row, s, y, step * beta)
        state.beta[y, s] = factor * beta
    info.delta_sum += step * state.delta[s]
    state.alpha[s] *= factor
    state.delta[s] *= factor


@compiled
def keep_only(state, order, n_kept):
    """Move slot order[s], ascending, to slot s, for s < n_kept; the others, all 0, are removed."""
    info = state.info[0]
    stores.reorder(state.store, order, n_kept)
    row_cache.reorder(state.cache, order, n_kept)
    for s in range(n_kept):
        old = order[s]
        state.alpha[s], state.delta[s] = state.alpha[old], state.delta[old]
        state.cost[s], state.known[s] = state.cost[old], state.known[old]
        state.diagonal[s] = state.diagonal[old]
        for y in range(info.n_classes):
            state.beta[y, s], state.f[y, s] = state.beta[y, old], state.f[y, old]
            state.bag[y, s] = state.bag[y, old]
    info.n = n_kept


@compiled
def rebuild(state, kernel, d):
    """Recompute scores, diagonal and dual after a change of the kernel."""
    state, kernel = borrowed((state, kernel))
    info = state.info[0]
    row_cache.clear(state.cache, info.n)
    info.dual, info.r2, info.delta_sum = 0.0, 0.0, 0.0
    for s in range(info.n):
        row = values_of_slot(state, kernel, s, info.n, d)
        state.diagonal[s] = row[s]
        info.r2 = max(info.r2, np.float64(row[s]))
        info.delta_sum += state.delta[s]
        for y in range(info.n_classes):
            state.f[y, s] = expansion(state.beta[y], row, info.n)
            info.dual -= 0.5 * state.beta[y, s] * state.f[y, s]
    info.dual += info.delta_sum
