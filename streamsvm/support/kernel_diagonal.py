"""The kernel of rows with themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import compiled
from streamsvm.support import stores
from streamsvm.support.rows import Rows, SparseRows, count, part, width


@compiled
def own_value(kernel, spare, x):  # type: ignore[no-untyped-def]
    """Return k(x_0, x_0) of a block of one row, as it is computed among stored rows.

    `spare` is a store of one row or more that may be written over.
    """
    row = np.empty((1, spare.entered.size), np.float32)
    store = stores.of_rows(spare, x)
    stores.values(kernel, store, x, np.int64(1), width(x), np.int64(0), np.int64(1), row)
    return row[0, 0]


@compiled
def _write(kernel, spare, x, out):  # type: ignore[no-untyped-def]
    """Write k(x_r, x_r) into out, float32 (n,)."""
    for r in range(out.size):
        out[r] = own_value(kernel, spare, part(x, r, r + 1))


def diagonal_of(kernel: Any, x: Rows) -> np.ndarray:
    """Return k(x_r, x_r) of rows x as float32 (n,)."""
    spare = stores.new_store(1, width(x), isinstance(x, SparseRows))
    out = np.empty(count(x), np.float32)
    _write(kernel, spare, x, out)
    return out
