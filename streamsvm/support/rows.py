"""Blocks of fresh rows: float32 arrays (n, d), or `SparseRows` that list the nonzero features.

Solvers read both through `count`, `width` and `part`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import chosen_by, compiled


class SparseRows(NamedTuple):
    """Rows by their nonzero features, as in SciPy's CSR; rows r .. are start[r] .. of the rest."""

    start: np.ndarray  # int64 (n + 1,)
    columns: np.ndarray  # int32, ascending within a row, without repeats
    values: np.ndarray  # float32, finite
    d: int  # number of features


Rows = np.ndarray | SparseRows


@compiled
def _count_dense(x):  # type: ignore[no-untyped-def]
    return x.shape[0]


@compiled
def _count_sparse(x):  # type: ignore[no-untyped-def]
    return x.start.size - 1


@compiled
def _width_dense(x):  # type: ignore[no-untyped-def]
    return x.shape[1]


@compiled
def _width_sparse(x):  # type: ignore[no-untyped-def]
    return x.d


@compiled
def _part_dense(x, first, stop):  # type: ignore[no-untyped-def]
    return x[first:stop]


@compiled
def _part_sparse(x, first, stop):  # type: ignore[no-untyped-def]
    return SparseRows(x.start[first : stop + 1], x.columns, x.values, x.d)


count: Any = chosen_by(0, {np.ndarray: _count_dense, SparseRows: _count_sparse})
width: Any = chosen_by(0, {np.ndarray: _width_dense, SparseRows: _width_sparse})
part: Any = chosen_by(0, {np.ndarray: _part_dense, SparseRows: _part_sparse})


@compiled
def _count_values(x):  # type: ignore[no-untyped-def]
    n = 0
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            n += x[r, c] != 0.0
    return n


@compiled
def _list_values(x, start, columns, values):  # type: ignore[no-untyped-def]
    n = 0
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            if x[r, c] != 0.0:
                columns[n] = c
                values[n] = x[r, c]
                n += 1
        start[r + 1] = n


def sparse(x: Rows) -> SparseRows:
    """Return rows as `SparseRows`."""
    if isinstance(x, SparseRows):
        return x
    n = int(_count_values(x))
    start, columns = np.zeros(len(x) + 1, np.int64), np.empty(n, np.int32)
    values = np.empty(n, np.float32)
    _list_values(x, start, columns, values)
    return SparseRows(start, columns, values, x.shape[1])


def dense(x: Rows) -> np.ndarray:
    """Return rows as an array, float32 (n, d)."""
    if not isinstance(x, SparseRows):
        return x
    n = x.start.size - 1
    out = np.zeros((n, x.d), np.float32)
    first, stop = int(x.start[0]), int(x.start[-1])
    out[np.repeat(np.arange(n), np.diff(x.start)), x.columns[first:stop]] = x.values[first:stop]
    return out
