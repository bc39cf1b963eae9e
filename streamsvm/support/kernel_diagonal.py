"""The kernel of rows with themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import compiled
from streamsvm.support import dense_store
from streamsvm.support.kernel_values import kernel_values


@compiled
def _write(kernel, store, x, row, out):  # type: ignore[no-untyped-def]
    """Write k(x_r, x_r) into out, float32 (n,); `row` is scratch, float32 (1, capacity)."""
    one = np.int64(1)
    for r in range(x.shape[0]):
        dense_store.put(store, np.int64(0), x[r])
        kernel_values(kernel, store, x[r : r + 1], one, x.shape[1], np.int64(0), one, row)
        out[r] = row[0, 0]


def diagonal_of(kernel: Any, x: np.ndarray) -> np.ndarray:
    """Return k(x_r, x_r) of rows x, float32 (n, d), as float32 (n,)."""
    store = dense_store.new_store(1, x.shape[1])
    row = np.empty((1, store.entered.size), np.float32)
    out = np.empty(len(x), np.float32)
    _write(kernel, store, x, row, out)
    return out
