"""The margins of many rows by a model that is sent to them, in all its problems at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.run.shards.exchange import Expansion
from streamsvm.solvers.incremental.kept import write_row
from streamsvm.support import stores
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.kernel_rows.fresh_block import BLOCK, fill_values
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape


def margins_of(kernel: Any, model: Expansion, x: Rows) -> np.ndarray:
    """Return f(x) of rows, float64 (n, problems): kernel values in single precision, sums not."""
    (n, d), m = shape(x), len(model.numbers)
    f = np.tile(model.biases, (n, 1))
    if not m or not n:
        return f
    store = stores.new_store(m, d, isinstance(x, SparseRows))
    store = stores.filled(store, model.rows)
    own, values = bound(kernel, store), np.zeros((BLOCK, len(store.entered)), np.float32)
    for first in range(0, n, BLOCK):
        some = cut(x, first, min(n, first + BLOCK))
        fill_values(own, store, some, np.int64(0), np.int64(m), values)
        f[first : first + BLOCK] += values[: len(f[first : first + BLOCK]), :m] @ model.coefficients
    return f


def margins_in_double(kernel: Any, model: Expansion, x: Rows) -> np.ndarray:
    """Return the same with kernel values in double precision, row by row: for a few rows."""
    columns = np.ascontiguousarray(dense(model.rows).T, np.float64)
    values = np.zeros(len(model.numbers))
    found = np.tile(model.biases, (shape(x)[0], 1))
    for r, row in enumerate(dense(x).astype(np.float64)):
        write_row(kernel, columns, len(values), row, values)
        found[r] += values @ model.coefficients
    return found
