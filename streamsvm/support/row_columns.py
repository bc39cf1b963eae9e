"""Some columns of rows, and of arrays with an entry for each column."""

from __future__ import annotations

import numpy as np

from streamsvm.support.rows import Rows, SparseRows

Columns = np.ndarray | None
"""Which columns are kept, int64, ascending; None: all."""


def columns_of(x: Rows, columns: Columns) -> Rows:
    """Return rows over these columns, as far as the rows have them."""
    if columns is None:
        return x
    if not isinstance(x, SparseRows):
        return np.ascontiguousarray(entries_of(x, columns))
    columns = columns[columns < x.d]
    place = np.full(x.d, -1, np.int32)
    place[columns] = np.arange(len(columns))
    own = slice(int(x.start[0]), int(x.start[-1]))
    moved = place[x.columns[own]]
    is_kept = moved >= 0
    start = np.append(0, np.cumsum(is_kept))[x.start - x.start[0]].astype(np.int64)
    return SparseRows(start, moved[is_kept], x.values[own][is_kept], len(columns))


def entries_of(array: np.ndarray, columns: Columns) -> np.ndarray:
    """Return the entries of these columns, along the last axis, as far as there are any."""
    return array if columns is None else array[..., columns[columns < array.shape[-1]]]


def are_used(x: Rows, d: int) -> np.ndarray:
    """Tell of each of d columns whether some row has another value than 0 there, bool (d,)."""
    found = np.zeros(d, bool)
    if isinstance(x, SparseRows):
        own = slice(int(x.start[0]), int(x.start[-1]))
        found[x.columns[own][x.values[own] != 0.0]] = True
    else:
        found[: x.shape[1]] = x.any(axis=0)
    return found
