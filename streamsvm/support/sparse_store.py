"""A store of sparse rows of support vectors: a pool of (column, value) pairs, and a range by slot.

A new row is appended to the pool; the pairs that its slot had before become garbage. When the pool
is full, `_compact` moves all rows in use to its front. `has_room` keeps a quarter of the pool free,
so that compaction takes a constant share of the time of insertions.

The store also has the scratch of `sparse_values`: at most `MOST_COLUMNS` dense columns of 32 lanes
(1 MB), and 12 bytes for each feature.

As long as all rows are of 0 and 1, and there are few features, rows are kept as words of bits, too,
as those of a `DenseStore` are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_inner
from streamsvm.support.bits import WORD, n_words
from streamsvm.support.declaration import copy_arrays
from streamsvm.support.rows import SparseRows
from streamsvm.support.tiles import PANEL

MOST_COLUMNS = 8192
"""The largest number of distinct features of a group of fresh rows, which is made dense at once."""

MOST_MERGED = 1024
"""A merged vector keeps its so many largest features, so that merging does not make rows dense."""

WIDEST = 1024
"""With more features there are no words: they would take more memory than rows of 16 features."""

SCRATCH = ("place", "flat", "lanes", "products")
"""Fields whose content is not needed after a call."""

USED, LIVE, WANTED = range(3)
"""Indices of `counts`: pairs in the pool, those of rows in use, pairs of a row without room."""


class SparseStore(NamedTuple):
    """Sparse float32 rows by slot."""

    start: np.ndarray  # int64 (capacity,) where the row begins in the pool
    length: np.ndarray  # int64 (capacity,) how many nonzero features it has
    columns: np.ndarray  # int32 (pool,)
    values: np.ndarray  # float32 (pool,)
    norm: np.ndarray  # float64 (capacity,) |x|^2
    entered: np.ndarray  # int64 (capacity,) number of the example that became this row, from 1
    weight: np.ndarray  # float64 (capacity,) its example weight
    counts: np.ndarray  # int64 (3,): USED, LIVE, WANTED
    place: np.ndarray  # int32 (features,) scratch, 0 between calls: the row of `lanes` of a column
    flat: np.ndarray  # float32 (2, features) scratch, 0 between calls: two rows, made dense
    lanes: np.ndarray  # float32 (MOST_COLUMNS + 1, 32) scratch: columns of 32 fresh rows
    products: np.ndarray  # float64 (32, 32) scratch
    words: np.ndarray  # uint64 (capacity / 32, words, 32) the rows as bits, if they are binary
    binary: np.ndarray  # bool (1,) whether all rows that were put here are of 0 and 1


def new_store(capacity: int, n_features: int, n_pairs: int = 1024) -> SparseStore:
    """Allocate an empty store for `capacity` rows, rounded up to 32, of `n_pairs` values in all."""
    capacity = max(1, -(-capacity // PANEL)) * PANEL
    width = max(1, n_features)
    depth = n_words(width) if width <= WIDEST else 0
    return SparseStore(
        start=np.zeros(capacity, np.int64), length=np.zeros(capacity, np.int64),
        columns=np.zeros(n_pairs, np.int32), values=np.zeros(n_pairs, np.float32),
        norm=np.zeros(capacity), entered=np.zeros(capacity, np.int64), weight=np.zeros(capacity),
        counts=np.zeros(3, np.int64), place=np.zeros(width, np.int32),
        flat=np.zeros((2, width), np.float32),
        lanes=np.zeros((MOST_COLUMNS + 1, PANEL), np.float32), products=np.zeros((PANEL, PANEL)),
        words=np.zeros((capacity // PANEL, depth, PANEL), np.uint64),
        binary=np.full(1, depth > 0),
    )  # fmt: skip


def grown(store: SparseStore, capacity: int, n_features: int) -> SparseStore:
    """Return a larger copy of the store, its pool at most three quarters full."""
    live, wanted = int(store.counts[LIVE]), int(store.counts[WANTED])
    n_pairs = store.columns.size
    while 4 * (live + wanted) > 3 * n_pairs:
        n_pairs *= 2
    new = new_store(capacity, n_features, n_pairs)
    used = int(store.counts[USED])
    copy_arrays(store, new, ("start", "length", "norm", "entered", "weight"))
    new.columns[:used], new.values[:used] = store.columns[:used], store.values[:used]
    new.counts[:2] = store.counts[:2]
    new.binary[0] &= store.binary[0]
    if new.binary[0]:
        copy_arrays(store, new, ("words",))
    return new


@compiled_inner
def _compact(store):
    """Move all rows in use to the front of the pool."""
    used = store.counts[USED]
    columns, values = store.columns[:used].copy(), store.values[:used].copy()
    used = 0
    for slot in range(store.start.size):
        start, length = store.start[slot], store.length[slot]
        for t in range(length):
            store.columns[used + t] = columns[start + t]
            store.values[used + t] = values[start + t]
        store.start[slot] = used
        used += length
    store.counts[USED] = used


@compiled_inner
def has_room(store, x):
    """Tell whether row 0 of x fits; if not, the store must be `grown` first."""
    need = x.start[1] - x.start[0]
    fits = 4 * (store.counts[LIVE] + need) <= 3 * store.columns.size
    store.counts[WANTED] = 0 if fits else need
    return fits


@compiled_inner
def release(store, slot):
    """Remove the row in a slot; its pairs are garbage until the next compaction."""
    store.counts[LIVE] -= store.length[slot]
    store.length[slot] = 0
    store.norm[slot] = 0.0
    if store.binary[0]:
        store.words[slot // PANEL, :, slot % PANEL] = 0


@compiled_inner
def set_bits(x, r, words):
    """Set the bits of the features of row r in words, uint64 (words,), which are 0.

    Tell whether all its values are 0 or 1 and there is a bit for each of its features.
    """
    for t in range(x.start[r], x.start[r + 1]):
        column = x.columns[t]
        if x.values[t] == 1.0 and column < words.size * WORD:
            words[column // WORD] |= np.uint64(1) << np.uint64(column % WORD)
        elif x.values[t] != 0.0:
            return False
    return True


@compiled
def put(store, slot, x):
    """Write row 0 of x into a slot."""
    release(store, slot)
    first = x.start[0]
    length = x.start[1] - first
    if store.counts[USED] + length > store.columns.size:
        _compact(store)
    start = store.counts[USED]
    norm = 0.0
    for t in range(length):
        value = x.values[first + t]
        store.columns[start + t] = x.columns[first + t]
        store.values[start + t] = value
        norm += np.float64(value) * np.float64(value)
    store.start[slot] = start
    store.length[slot] = length
    store.norm[slot] = norm
    store.counts[USED] += length
    store.counts[LIVE] += length
    if store.binary[0]:
        store.binary[0] = set_bits(x, 0, store.words[slot // PANEL, :, slot % PANEL])


@compiled_inner
def row_of(store, slot, scratch, d):
    """Return the row in a slot, valid until the next `put`; `scratch` is not used."""
    start = np.empty(2, np.int64)
    start[0] = store.start[slot]
    start[1] = start[0] + store.length[slot]
    return SparseRows(start, store.columns, store.values, d)


@compiled_inner
def gather(store, slots, n, d):
    """Return copies of the rows in the first n of `slots`."""
    start = np.zeros(n + 1, np.int64)
    for r in range(n):
        start[r + 1] = start[r] + store.length[slots[r]]
    columns, values = np.empty(start[n], np.int32), np.empty(start[n], np.float32)
    for r in range(n):
        first = store.start[slots[r]]
        for t in range(store.length[slots[r]]):
            columns[start[r] + t] = store.columns[first + t]
            values[start[r] + t] = store.values[first + t]
    return SparseRows(start, columns, values, d)


@compiled_inner
def of_rows(spare, x):
    """Return a store of all rows of x, which shares their memory and the scratch of `spare`.

    It has no words: `spare` may be a store in use.
    """
    start, n = x.start[:-1], x.start.size - 1
    length, norm = np.empty(n, np.int64), np.zeros(n)
    for r in range(n):
        length[r] = x.start[r + 1] - x.start[r]
        for t in range(x.start[r], x.start[r + 1]):
            norm[r] += np.float64(x.values[t]) * np.float64(x.values[t])
    return SparseStore(
        start, length, x.columns, x.values, norm, spare.entered, spare.weight, spare.counts,
        spare.place, spare.flat, spare.lanes, spare.products, spare.words, np.zeros(1, np.bool_),
    )  # fmt: skip


@compiled_inner
def reorder(store, order, n_kept):
    """Move the row in slot order[s] to slot s, for s < n_kept; all other rows are removed."""
    start, length, norm = store.start.copy(), store.length.copy(), store.norm.copy()
    entered, weight = store.entered.copy(), store.weight.copy()
    live = 0
    for s in range(n_kept):
        old = order[s]
        store.start[s], store.length[s], store.norm[s] = start[old], length[old], norm[old]
        store.entered[s], store.weight[s] = entered[old], weight[old]
        live += length[old]
    for s in range(n_kept, store.start.size):
        store.length[s] = 0
        store.norm[s] = 0.0
    store.counts[LIVE] = live
    if store.binary[0]:
        words = store.words.copy()
        store.words[:] = 0
        for s in range(n_kept):
            old = order[s]
            for k in range(words.shape[1]):
                store.words[s // PANEL, k, s % PANEL] = words[old // PANEL, k, old % PANEL]


@compiled_inner
def _largest(columns, values, n):
    """Keep the `MOST_MERGED` largest entries, of equal ones the first; return how many are kept."""
    if n <= MOST_MERGED:
        return n
    ordered = np.sort(np.abs(values[:n]))
    least = ordered[n - MOST_MERGED]
    # Room for entries as small as the least: what all larger ones leave.
    n_equal = np.searchsorted(ordered, least, side="right") - (n - MOST_MERGED)
    kept = 0
    for t in range(n):
        size = abs(values[t])
        if size > least or (size == least and n_equal > 0):
            if size == least:
                n_equal -= 1
            columns[kept] = columns[t]
            values[kept] = values[t]
            kept += 1
    return kept


@compiled_inner
def between(store, i, j, h, d):
    """Return a new row, h x_i + (1 - h) x_j, with its `MOST_MERGED` largest features only."""
    a, end_a = store.start[i], store.start[i] + store.length[i]
    b, end_b = store.start[j], store.start[j] + store.length[j]
    columns = np.empty(end_a - a + end_b - b, np.int32)
    values = np.empty(columns.size, np.float32)
    n = 0
    while a < end_a or b < end_b:
        column_a = store.columns[a] if a < end_a else d
        column_b = store.columns[b] if b < end_b else d
        column, value = min(column_a, column_b), 0.0
        if column_a == column:
            value += h * np.float64(store.values[a])
            a += 1
        if column_b == column:
            value += (1.0 - h) * np.float64(store.values[b])
            b += 1
        columns[n] = column
        values[n] = np.float32(value)
        n += 1
    start = np.zeros(2, np.int64)
    start[1] = _largest(columns, values, n)
    return SparseRows(start, columns, values, d)


def rows_of(store: SparseStore, n: int, n_features: int) -> SparseRows:
    """Return a copy of the first n rows."""
    lengths = store.length[:n]
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    # The position of each value in the pool: the start of its row there, plus that in the row.
    at = np.arange(start[-1]) + np.repeat(store.start[:n] - start[:-1], lengths)
    return SparseRows(start, store.columns[at], store.values[at], n_features)


def filled(store: SparseStore, rows: SparseRows) -> SparseStore:
    """Return an empty store, enlarged if necessary, with these rows put into its first slots."""
    # `grown` makes room for so many pairs.
    store.counts[WANTED] = rows.values.size
    store = grown(store, store.start.size, store.place.size)
    for slot in range(rows.start.size - 1):
        part = SparseRows(rows.start[slot : slot + 2], rows.columns, rows.values, rows.d)
        put(store, slot, part)
    return store
