"""Copies of rows and states that hold what is kept, and nothing of what was removed.

A slot of a removed example keeps its row, and other entries, until another example takes it; caches
and scratch have kernel values with it. A state returned here has none of this. It may also have
fewer columns: those that are left out are 0 in all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.support import dense_store, row_store, sparse_store, stores
from streamsvm.support.bits import WORD
from streamsvm.support.declaration import Field, Record
from streamsvm.support.dense_store import DenseStore
from streamsvm.support.row_columns import Columns, columns_of, entries_of
from streamsvm.support.row_store import RowStore
from streamsvm.support.rows import SparseRows
from streamsvm.support.sparse_store import LIVE, USED, SparseStore
from streamsvm.support.state_parts import Part
from streamsvm.support.states import map_fields, n_slots, sizes_of
from streamsvm.support.tiles import PANEL


def only_kept(state: Any, columns: Columns, cache_bytes: int) -> Any:
    """Return a copy of a state, without removed examples, over these columns, with room as before.

    Cached kernel rows are computed anew.
    """
    sizes, n = sizes_of(state), n_slots(state)
    is_sparse = isinstance(state.store, SparseStore)

    def change(name: str, declared: Any, value: Any) -> Any:
        if name == "store":
            return _store_of_kept(value, n, columns)
        if isinstance(declared, Part):
            stripped = declared.stripped(value, sizes, is_sparse)
            return declared.grown(stripped, sizes, is_sparse, cache_bytes)
        return declared.copy_of(value) if isinstance(declared, Record) else used(declared, value)

    def used(declared: Field, value: np.ndarray) -> np.ndarray:
        if not any(isinstance(axis, str) for axis in declared.axes):
            # Other objects may share it, as the state of random numbers.
            return value
        new = declared.new(sizes)
        if not declared.scratch:
            part = value[tuple(slice(n if axis == "slots" else None) for axis in declared.axes)]
            part = entries_of(part, columns) if declared.axes == ("features",) else part
            new[tuple(map(slice, part.shape))] = part
        return new

    found = map_fields(state, change)
    if hasattr(found, "cache"):
        found.cache.counts[:] = state.cache.counts
    return found


def _store_of_kept(store: Any, n: int, columns: Columns) -> Any:
    capacity, d = store.entered.size, stores.n_columns(store)
    live = np.flatnonzero(store.entered[:n])
    rows = columns_of(stores.rows_of(store, n, d), columns)
    new: Any
    if isinstance(rows, SparseRows):
        new = _sparse_store(store, rows, live)
    else:
        new = _dense_store(store, rows, live, (capacity, d))
    new.entered[live], new.weight[live] = store.entered[live], store.weight[live]
    return new


def _dense_store(
    store: DenseStore | RowStore, rows: np.ndarray, live: np.ndarray, size: tuple[int, int]
) -> DenseStore | RowStore:
    if isinstance(store, RowStore):
        of_rows = row_store.new_store(*size)
        of_rows.rows[live, : rows.shape[1]] = rows[live]
        return of_rows
    new = dense_store.new_store(*size)
    new.panels[live // PANEL, : rows.shape[1], live % PANEL] = rows[live]
    dense_store.renew_words(new)
    return new


def _sparse_store(store: SparseStore, rows: SparseRows, live: np.ndarray) -> SparseStore:
    new = sparse_store.new_store(store.entered.size, store.place.size, store.columns.size)
    n, used = len(rows.start) - 1, len(rows.values)
    new.start[:n], new.length[:n] = rows.start[:-1], np.diff(rows.start)
    new.columns[:used], new.values[:used] = rows.columns, rows.values
    new.norm[live], new.counts[[USED, LIVE]] = store.norm[live], used
    new.binary[0] &= bool((rows.values == 1.0).all())
    if new.binary[0]:
        slot = np.repeat(np.arange(n), new.length[:n])
        bits = np.uint64(1) << (rows.columns % WORD).astype(np.uint64)
        np.bitwise_or.at(new.words, (slot // PANEL, rows.columns // WORD, slot % PANEL), bits)
    return new
