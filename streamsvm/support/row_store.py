"""A store of dense rows, each contiguous in memory, for solvers that read whole rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.support.assigning import assign


class RowStore(NamedTuple):
    """Dense float32 rows by slot."""

    rows: np.ndarray  # float32 (capacity, feature capacity)
    entered: np.ndarray  # int64 (capacity,) number of the example that became this row, from 1
    weight: np.ndarray  # float64 (capacity,) its example weight


def new_store(capacity: int, n_features: int) -> RowStore:
    """Allocate an empty store."""
    return RowStore(
        rows=np.zeros((capacity, max(1, n_features)), np.float32),
        entered=np.zeros(capacity, np.int64),
        weight=np.zeros(capacity),
    )


@compiled_inner
def put(store, slot, x):
    """Write row 0 of x, float32 (1, d), into a slot."""
    d = x.shape[1]
    assign(store.rows[slot], x[0])
    store.rows[slot, d:] = np.float32(0.0)
