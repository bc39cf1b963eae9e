"""A store of dense rows of support vectors: panels of 32 rows, stored feature by feature.

Slots 0..n-1 are in use; the solver that owns the store counts them. Rows are removed by `reorder`:
the solver marks slots as removed and, when there are enough of them, moves all remaining rows
together in one pass over memory. Cached kernel rows are reordered in the same way. (Moving the last
row into a free slot at each removal would change every cached kernel row each time, which is where
the original LASVM spends its time.)

As long as all rows are of 0 and 1, they are kept as words of bits, too, from which kernel values
are computed several times faster: see `bits`. Words follow from the panels, and are in no file.

A `RowStore` has each row contiguous in memory, for solvers that read whole rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_inner
from streamsvm.support.assigning import assign
from streamsvm.support.bits import WORD, n_words, word
from streamsvm.support.declaration import copy_arrays
from streamsvm.support.tiles import PANEL


class DenseStore(NamedTuple):
    """Dense float32 rows; the capacity is a multiple of 32."""

    panels: np.ndarray  # float32 (capacity / 32, feature capacity, 32)
    entered: np.ndarray  # int64 (capacity,) number of the example that became this row, from 1
    weight: np.ndarray  # float64 (capacity,) its example weight
    words: np.ndarray  # uint64 (capacity / 32, words, 32) the rows as bits, if they are binary
    binary: np.ndarray  # bool (1,) whether all rows that were put here are of 0 and 1


def new_store(capacity: int, n_features: int) -> DenseStore:
    """Allocate an empty store for `capacity` rows (rounded up to whole panels)."""
    n_panels = max(1, -(-capacity // PANEL))
    return DenseStore(
        panels=np.zeros((n_panels, max(1, n_features), PANEL), np.float32),
        entered=np.zeros(n_panels * PANEL, np.int64),
        weight=np.zeros(n_panels * PANEL, np.float64),
        words=np.zeros((n_panels, n_words(max(1, n_features)), PANEL), np.uint64),
        binary=np.ones(1, np.bool_),
    )


def grown(store: DenseStore, capacity: int, n_features: int) -> DenseStore:
    """Return a larger copy of the store; new rows and features are zero."""
    new = new_store(capacity, n_features)
    # Words that are not used take no memory, as long as they are not written.
    names = store._fields if store.binary[0] else [k for k in store._fields if k != "words"]
    copy_arrays(store, new, names)
    return new


@compiled
def put(store, slot, x):
    """Write row `x`, float32 (n_features,), into a slot."""
    panel = store.panels[slot // PANEL]
    lane = slot % PANEL
    for feature in range(x.size):
        panel[feature, lane] = x[feature]
    for feature in range(x.size, panel.shape[0]):
        panel[feature, lane] = np.float32(0.0)
    if store.binary[0]:
        store.binary[0] = _put_words(store.words[slot // PANEL], lane, x)


@compiled_inner
def _put_words(words, lane, x):
    """Write row `x` as bits, and tell whether all its values are 0 or 1."""
    for k in range(words.shape[0]):
        words[k, lane], others = word(x, k * WORD, x.size)
        if others != 0:
            return False
    return True


@compiled
def renew_words(store):
    """Make words and `binary` anew, after the panels were changed."""
    x = np.empty(store.panels.shape[1], np.float32)
    store.binary[0] = True
    for slot in range(store.entered.size):
        get(store, slot, x)
        if store.binary[0]:
            store.binary[0] = _put_words(store.words[slot // PANEL], slot % PANEL, x)


@compiled_inner
def get(store, slot, out):
    """Read a slot into `out`, float32 (n_features,)."""
    panel = store.panels[slot // PANEL]
    lane = slot % PANEL
    for feature in range(out.size):
        out[feature] = panel[feature, lane]


@compiled_inner
def gather(store, slots, n, d):
    """Return copies of the rows in the first n of `slots`, float32 (n, d)."""
    x = np.empty((n, d), np.float32)
    for r in range(n):
        get(store, slots[r], x[r])
    return x


@compiled_inner
def reorder(store, order, n_kept):
    """Move the row in slot order[s] to slot s, for s < n_kept; all other rows are removed."""
    panels, entered, weight = store.panels, store.entered, store.weight
    last, moves_up = 0, True
    for s in range(n_kept):
        last = max(last, order[s])
        moves_up &= order[s] >= s
    words = store.words
    if not moves_up:
        # Otherwise no slot is read after it was written.
        panels, words = panels[: last // PANEL + 1].copy(), words[: last // PANEL + 1].copy()
        entered, weight = entered.copy(), weight.copy()
    for first in range(0, n_kept, PANEL):
        stop, target = min(first + PANEL, n_kept), store.panels[first // PANEL]
        # All rows of a panel feature by feature, since they are in few other panels.
        for feature in range(target.shape[0]):
            for s in range(first, stop):
                old = order[s]
                target[feature, s - first] = panels[old // PANEL, feature, old % PANEL]
        if store.binary[0]:
            for k in range(words.shape[1]):
                for s in range(first, stop):
                    old = order[s]
                    store.words[first // PANEL, k, s - first] = words[old // PANEL, k, old % PANEL]
        for s in range(first, stop):
            store.entered[s] = entered[order[s]]
            store.weight[s] = weight[order[s]]


def rows_of(store: DenseStore, n: int, n_features: int) -> np.ndarray:
    """Return a copy of the first n rows, float32 (n, n_features)."""
    depth = store.panels.shape[1]
    rows = store.panels.transpose(0, 2, 1).reshape(-1, depth)[:n, :n_features]
    # A copy also of a single feature, of which the lines above make a view.
    return np.array(rows, order="C")


class RowStore(NamedTuple):
    """Dense float32 rows by slot."""

    rows: np.ndarray  # float32 (capacity, feature capacity)
    entered: np.ndarray  # int64 (capacity,) number of the example that became this row, from 1
    weight: np.ndarray  # float64 (capacity,) its example weight


def new_row_store(capacity: int, n_features: int) -> RowStore:
    """Allocate an empty store."""
    return RowStore(
        rows=np.zeros((capacity, max(1, n_features)), np.float32),
        entered=np.zeros(capacity, np.int64),
        weight=np.zeros(capacity),
    )


@compiled_inner
def put_row(store, slot, x):
    """Write row 0 of x, float32 (1, d), into a slot."""
    d = x.shape[1]
    assign(store.rows[slot], x[0])
    store.rows[slot, d:] = np.float32(0.0)
