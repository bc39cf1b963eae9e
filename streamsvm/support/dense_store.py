"""A store of dense rows of support vectors: panels of 32 rows, stored feature by feature.

Slots 0..n-1 are in use; the solver that owns the store counts them. Rows are removed by `reorder`:
the solver marks slots as removed and, when there are enough of them, moves all remaining rows
together in one pass over memory. Cached kernel rows are reordered in the same way. (Moving the last
row into a free slot at each removal would change every cached kernel row each time, which is where
the original LASVM spends its time.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled
from streamsvm.support.tiles import PANEL


class DenseStore(NamedTuple):
    """Dense float32 rows; the capacity is a multiple of 32."""

    panels: np.ndarray  # float32 (capacity / 32, feature capacity, 32)
    entered: np.ndarray  # int64 (capacity,) number of the example that became this row, from 1
    weight: np.ndarray  # float64 (capacity,) its example weight


def new_store(capacity: int, n_features: int) -> DenseStore:
    """Allocate an empty store for `capacity` rows (rounded up to whole panels)."""
    n_panels = max(1, -(-capacity // PANEL))
    return DenseStore(
        panels=np.zeros((n_panels, max(1, n_features), PANEL), np.float32),
        entered=np.zeros(n_panels * PANEL, np.int64),
        weight=np.zeros(n_panels * PANEL, np.float64),
    )


@compiled
def put(store, slot, x):
    """Write row `x`, float32 (n_features,), into a slot."""
    panel = store.panels[slot // PANEL]
    lane = slot % PANEL
    for feature in range(x.size):
        panel[feature, lane] = x[feature]
    for feature in range(x.size, panel.shape[0]):
        panel[feature, lane] = np.float32(0.0)


@compiled
def get(store, slot, out):
    """Read a slot into `out`, float32 (n_features,)."""
    panel = store.panels[slot // PANEL]
    lane = slot % PANEL
    for feature in range(out.size):
        out[feature] = panel[feature, lane]


@compiled
def gather(store, slots, n, d):
    """Return copies of the rows in the first n of `slots`, float32 (n, d)."""
    x = np.empty((n, d), np.float32)
    for r in range(n):
        get(store, slots[r], x[r])
    return x


@compiled
def reorder(store, order, n_kept):
    """Move the row in slot order[s] to slot s, for s < n_kept; all other rows are removed."""
    panels, entered, weight = store.panels, store.entered, store.weight
    last, moves_up = 0, True
    for s in range(n_kept):
        last = max(last, order[s])
        moves_up &= order[s] >= s
    if not moves_up:
        # Otherwise no slot is read after it was written.
        panels, entered, weight = panels[: last // PANEL + 1].copy(), entered.copy(), weight.copy()
    for first in range(0, n_kept, PANEL):
        stop, target = min(first + PANEL, n_kept), store.panels[first // PANEL]
        # All rows of a panel feature by feature, since they are in few other panels.
        for feature in range(target.shape[0]):
            for s in range(first, stop):
                old = order[s]
                target[feature, s - first] = panels[old // PANEL, feature, old % PANEL]
        for s in range(first, stop):
            store.entered[s] = entered[order[s]]
            store.weight[s] = weight[order[s]]


def rows_of(store: DenseStore, n: int, n_features: int) -> np.ndarray:
    """Return a copy of the first n rows, float32 (n, n_features)."""
    depth = store.panels.shape[1]
    rows = store.panels.transpose(0, 2, 1).reshape(-1, depth)[:n, :n_features]
    return np.ascontiguousarray(rows)
