"""The operations on a store of rows, each of which calls the function for the kind of store.

Fresh rows ``x`` are `SparseRows` for a `SparseStore`, and arrays for the other stores.

Problems that have examples in common keep each row once, in one store. A problem reads the rows of
its own examples, its members, through a `MemberStore`, in which member s is row slot[s] of the
shared store.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import chosen_by, compiled_inner, compiled_leaf, compiled_within, nothing
from streamsvm.support import dense_store, sparse_store, sparse_values
from streamsvm.support.bits import n_words
from streamsvm.support.declaration import copy_arrays
from streamsvm.support.dense_store import DenseStore, RowStore
from streamsvm.support.kernel_rows import kernel_values
from streamsvm.support.kernel_rows.bound_kernels import (
    DenseKernel,
    SparseKernel,
    values_dense,
    values_sparse,
)
from streamsvm.support.rows import Rows, SparseRows, sparse
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.tiles import PANEL


class MemberStore(NamedTuple):
    """The members of one problem."""

    entered: np.ndarray  # int64 (room,) number of the example, 0 if the member was removed
    weight: np.ndarray  # float64 (room,) its example weight
    slot: np.ndarray  # int64 (room,) its slot in `rows`
    rows: Any  # the shared store, a `DenseStore` or a `SparseStore`
    wanted: np.ndarray  # int64 (slots,) how many problems have the row as a member
    fresh: np.ndarray  # int64 (1,) slot of the example that is being learnt, -1 before it has one
    info: Any  # record array (1,) with n, the number of slots in use, and n_dead


class MemberKernel(NamedTuple):
    """A kernel for a `MemberStore`: the kernel for the store whose rows it shares."""

    kernel: Any


Store = DenseStore | SparseStore


def of_store(argument: int, dense: Any, sparse: Any, row: Any = None, members: Any = None) -> Any:
    """Return an operation on a store, given the function for each kind of store."""
    kinds = {DenseStore: dense, SparseStore: sparse, RowStore: row, MemberStore: members}
    return chosen_by(argument, kinds)


@compiled_inner
def _put_dense(store, slot, x):
    dense_store.put(store, slot, x[0])


@compiled_inner
def _has_room_dense(store, x):
    return True


@compiled_inner
def _row_of_dense(store, slot, scratch, d):
    dense_store.get(store, slot, scratch[0, :d])
    return scratch


@compiled_inner
def _of_rows_dense(spare, x):
    spare.binary[0] = True
    for r in range(x.shape[0]):
        dense_store.put(spare, r, x[r])
    return spare


@compiled_inner
def _between_dense(store, i, j, h, d):
    x, z = np.empty((2, d), np.float32), np.empty((1, d), np.float32)
    dense_store.get(store, i, x[0])
    dense_store.get(store, j, x[1])
    for c in range(d):
        z[0, c] = np.float32(h * x[0, c] + (1.0 - h) * x[1, c])
    return z


@compiled_inner
def _spare_dense(store, n, d):
    n_panels = (n + PANEL - 1) // PANEL
    panels = np.zeros((n_panels, d, PANEL), np.float32)
    entered, weight = np.zeros(n_panels * PANEL, np.int64), np.zeros(n_panels * PANEL)
    words = np.zeros((n_panels, n_words(d), PANEL), np.uint64)
    return DenseStore(panels, entered, weight, words, np.ones(1, np.bool_))


@compiled_inner
def _spare_sparse(store, n, d):
    return store


@compiled_inner
def _put_member(store, s, x):
    info, slot = store.info[0], store.fresh[0]
    if slot < 0:
        slot = info.n
        info.n += 1
        info.n_dead += 1
        store.fresh[0] = slot
    if store.wanted[slot] == 0:
        # It is new, or the only problem that had it as a member has removed it again.
        info.n_dead -= 1
        put(store.rows, slot, x)
    store.wanted[slot] += 1
    store.slot[s] = slot


@compiled_inner
def _release_member(store, s):
    slot = store.slot[s]
    store.wanted[slot] -= 1
    if store.wanted[slot] == 0:
        store.info[0].n_dead += 1
        store.rows.entered[slot] = 0
        release(store.rows, slot)


@compiled_inner
def _row_of_member(store, s, scratch, d):
    return row_of(store.rows, store.slot[s], scratch, d)


@compiled_inner
def _gather_members(store, members, n, d):
    return gather(store.rows, store.slot[members[:n]], n, d)


@compiled_inner
def _reorder_members(store, order, n_kept):
    slot, entered, weight = store.slot.copy(), store.entered.copy(), store.weight.copy()
    for s in range(n_kept):
        store.slot[s] = slot[order[s]]
        store.entered[s], store.weight[s] = entered[order[s]], weight[order[s]]


@compiled_leaf
def contains(entered, number, n):
    """Tell whether `number` is among the first n of `entered`, int64."""
    found = 0
    for s in range(n):
        found += entered[s] == number
    return found > 0


@compiled_within
def slot_of(state, number, n):
    """Return which of the first n slots has the example with that number, or -1."""
    if number <= state.info[0].last_number:
        for s in range(n):
            if state.store.entered[s] == number:
                return np.int64(s)
    return np.int64(-1)


put = of_store(0, _put_dense, sparse_store.put, dense_store.put_row, _put_member)
"""put(store, slot, x): write row 0 of x into a slot; the store must have room for it."""

has_room = of_store(0, _has_room_dense, sparse_store.has_room, _has_room_dense)
"""has_room(store, x): whether a free slot can take row 0 of x; if not, call `grown` first."""

release = of_store(0, nothing, sparse_store.release, nothing, _release_member)
"""release(store, slot): remove the row in a slot."""

row_of = of_store(0, _row_of_dense, sparse_store.row_of, members=_row_of_member)
"""row_of(store, slot, scratch, d): the row in a slot as a block of one; valid until the next put.

A dense row is written to `scratch`, float32 (1, d).
"""

gather = of_store(0, dense_store.gather, sparse_store.gather, members=_gather_members)
"""gather(store, slots, n, d): copies of the rows in the first n of `slots`, as one block."""

of_rows = of_store(0, _of_rows_dense, sparse_store.of_rows)
"""of_rows(spare, x): a store of all rows of x, which uses the memory of the store `spare`.

`spare` must have at least as many slots.
"""

reorder = of_store(0, dense_store.reorder, sparse_store.reorder, members=_reorder_members)
"""reorder(store, order, n_kept): move the row in slot order[s] to slot s, for s < n_kept."""

spare_of = of_store(0, _spare_dense, _spare_sparse)
"""spare_of(store, n, d): a store of n slots that can be the `spare` of `of_rows`."""

between = of_store(0, _between_dense, sparse_store.between)
"""between(store, i, j, h, d): h x_i + (1 - h) x_j as a block of one row."""

_own_values = of_store(1, kernel_values.kernel_values, sparse_values.kernel_values)


@compiled_inner
def _values_unbound(kernel, store, x, n_rows, d, first, stop, out):
    _own_values(kernel, store, x, n_rows, d, first, stop, out)


@compiled_inner
def values_of_panels(kernel, store, x, n_rows, d, is_wanted, found):
    """Compute the values with all rows in some panels of a `MemberStore`: found[r, slot].

    `is_wanted`, bool (panels,), tells in which. Neighbours are computed together.
    """
    p = np.int64(0)
    while p < is_wanted.size:
        q = p
        while q < is_wanted.size and is_wanted[q]:
            q += 1
        if q > p:
            values(kernel.kernel, store.rows, x, n_rows, d, p * PANEL, q * PANEL, found)
        p = q + 1


@compiled_inner
def _values_of_members(kernel, store, x, n_rows, d, first, stop, out):
    """Compute the values with members first .. stop-1 only, each panel that has some once."""
    slot, n = store.slot, store.rows.entered.size
    is_wanted = np.zeros(n // PANEL, np.bool_)
    for s in range(first, stop):
        is_wanted[slot[s] // PANEL] = True
    found = np.empty((n_rows, n), np.float32)
    values_of_panels(kernel, store, x, n_rows, d, is_wanted, found)
    for r in range(n_rows):
        for s in range(first, stop):
            out[r, s] = found[r, slot[s]]


_BOUND = {
    DenseKernel: values_dense,
    SparseKernel: values_sparse,
    MemberKernel: _values_of_members,
    None: _values_unbound,
}
values = chosen_by(0, _BOUND, lambda kernel_type: kernel_type if kernel_type in _BOUND else None)
"""values(kernel, store, x, n_rows, d, first, stop, out): see `kernel_values.kernel_values`.

The kernel may be bound to this kind of store; that for a `MemberStore` is a `MemberKernel`.
"""


def new_store(capacity: int, n_features: int, sparse: bool) -> Store:
    """Allocate an empty store for `capacity` rows, rounded up to 32."""
    return (sparse_store if sparse else dense_store).new_store(capacity, n_features)


def grown(store: Any, capacity: int, n_features: int) -> Any:
    """Return a larger copy of the store; new rows and features are zero."""
    if isinstance(store, SparseStore):
        return sparse_store.grown(store, capacity, n_features)
    if isinstance(store, DenseStore):
        return dense_store.grown(store, capacity, n_features)
    new = dense_store.new_row_store(capacity, n_features)
    copy_arrays(store, new)
    return new


def made_sparse(store: DenseStore | RowStore) -> SparseStore:
    """Return a sparse store with the same content."""
    n, d = store.entered.size, n_columns(store)
    new = filled(sparse_store.new_store(n, d), sparse(rows_of(store, n, d)))
    new.entered[:n], new.weight[:n] = store.entered, store.weight
    return new


def wants_pairs(store: Any) -> bool:
    """Tell whether `has_room` returned False because the pool of a sparse store is full."""
    return isinstance(store, SparseStore) and bool(store.counts[sparse_store.WANTED])


def with_scratch(store: Any) -> Any:
    """Return the store with scratch of its own, for another thread."""
    if not isinstance(store, SparseStore):
        return store
    return store._replace(
        **{name: np.zeros_like(getattr(store, name)) for name in sparse_store.SCRATCH}
    )


def n_columns(store: Store | RowStore) -> int:
    """Return the number of features that the store has room for."""
    if isinstance(store, SparseStore):
        return store.place.size
    return store.rows.shape[1] if isinstance(store, RowStore) else store.panels.shape[1]


def rows_of(store: Store | RowStore, n: int, n_features: int) -> Rows:
    """Return a copy of the first n rows."""
    if isinstance(store, RowStore):
        return store.rows[:n, :n_features].copy()
    if isinstance(store, SparseStore):
        return sparse_store.rows_of(store, n, n_features)
    return dense_store.rows_of(store, n, n_features)


def filled(store: Any, rows: Rows) -> Any:
    """Return an empty store, enlarged if necessary, with these rows put into its first slots."""
    if isinstance(rows, SparseRows):
        return sparse_store.filled(store, rows)
    if isinstance(store, RowStore):
        store.rows[: len(rows), : rows.shape[1]] = rows
        return store
    for slot in range(len(rows)):
        dense_store.put(store, slot, rows[slot])
    return store
