"""Kernel values of rows with themselves, k(x, x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import compiled, compiled_inner
from streamsvm.kernels import product_of, value_of_product
from streamsvm.kernels.registry import explained_errors
from streamsvm.support import stores
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.rows import Rows, SparseRows, part, shape, width
from streamsvm.support.sparse_store import SparseStore

LARGEST_DIAGONAL = 1e30
"""Rows whose k(x, x) is not below this are refused."""


@compiled_inner
def own_value(kernel, spare, x):
    """Return k(x_0, x_0) of a block of one row, with the same bits as between stored rows.

    `spare` is a store of at least one slot, whose content is overwritten.
    """
    row = np.empty((1, spare.entered.size), np.float32)
    store = stores.of_rows(spare, x)
    stores.values(kernel, store, x, np.int64(1), width(x), np.int64(0), np.int64(1), row)
    return row[0, 0]


@compiled_inner
def diagonal_of_event(kernel, spare, x):
    """Return k(x_0, x_0) as float32 (1,), NaN if the row must be refused; see `own_value`."""
    diagonal = np.empty(1, np.float32)
    value = own_value(kernel, spare, x)
    diagonal[0] = value if 0.0 <= value < LARGEST_DIAGONAL else np.nan
    return diagonal


@compiled
def _write(kernel, spare, x, out):
    """Write k(x_r, x_r) into out, float32 (n,)."""
    for r in range(out.size):
        out[r] = own_value(kernel, spare, part(x, r, r + 1))


def diagonal_of(kernel: Any, x: Rows, spare: SparseStore | None = None) -> np.ndarray:
    """Return k(x_r, x_r) of rows x as float32 (n,), by the scratch of a sparse store, if given."""
    n, d = shape(x)
    if product_of(type(kernel)) == "distance":
        with explained_errors(type(kernel)):
            return np.full(n, value_of_product(kernel, 0.0), np.float32)
    store = stores.new_store(1, d, isinstance(x, SparseRows)) if spare is None else spare
    out = np.empty(n, np.float32)
    _write(bound(kernel, store), store, x, out)
    return out
