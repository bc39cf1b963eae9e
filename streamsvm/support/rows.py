"""Blocks of fresh rows: float32 arrays (n, d), or `SparseRows` that list the nonzero features.

Solvers read both through `count`, `width` and `part`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from streamsvm._compile import chosen_by, compiled, compiled_inner, compiled_leaf, compiled_within
from streamsvm.support.assigning import assign


class SparseRows(NamedTuple):
    """Rows that list their nonzero features, as SciPy's CSR matrices do.

    Row r consists of entries start[r] .. start[r + 1] - 1 of columns and values.
    """

    start: np.ndarray  # int64 (n + 1,)
    columns: np.ndarray  # int32, ascending within a row, without repeats
    values: np.ndarray  # float32, finite
    d: int  # number of features


Rows = np.ndarray | SparseRows
RowsT = TypeVar("RowsT", np.ndarray, SparseRows, np.ndarray | SparseRows)

LARGEST = float(np.finfo(np.float32).max)
"""The largest finite number of single precision, 3.4e38."""

_SHORT = 64
"""Rows of up to so many entries are sorted by insertion, which needs no further arrays."""


@compiled_inner
def _count_dense(x):
    return x.shape[0]


@compiled_inner
def _count_sparse(x):
    return x.start.size - 1


@compiled_inner
def _width_dense(x):
    return x.shape[1]


@compiled_inner
def _width_sparse(x):
    return x.d


@compiled_inner
def _part_dense(x, first, stop):
    return x[first:stop]


@compiled_inner
def _part_sparse(x, first, stop):
    return SparseRows(x.start[first : stop + 1], x.columns, x.values, x.d)


@compiled_leaf
def _differ(x, z):
    """Tell whether two arrays of one length differ."""
    found = 0
    for c in range(x.size):
        found += x[c] != z[c]
    return found > 0


@compiled_inner
def _are_equal_dense(x, z, d):
    return not _differ(x[0, :d], z[0, :d])


@compiled_inner
def _are_equal_sparse(x, z, d):
    a, b, n = x.start[0], z.start[0], x.start[1] - x.start[0]
    if z.start[1] - b != n or _differ(x.columns[a : a + n], z.columns[b : b + n]):
        return False
    return not _differ(x.values[a : a + n], z.values[b : b + n])


are_equal: Any = chosen_by(0, {np.ndarray: _are_equal_dense, SparseRows: _are_equal_sparse})
"""are_equal(x, z, d): whether two blocks of one row have the same features."""

count: Any = chosen_by(0, {np.ndarray: _count_dense, SparseRows: _count_sparse})
width: Any = chosen_by(0, {np.ndarray: _width_dense, SparseRows: _width_sparse})
part: Any = chosen_by(0, {np.ndarray: _part_dense, SparseRows: _part_sparse})


def shape(x: Rows) -> tuple[int, int]:
    """Return the numbers of rows and of features, as `count` and `width` do in compiled code."""
    return (x.start.size - 1, x.d) if isinstance(x, SparseRows) else x.shape  # type: ignore[return-value]


def cut(x: Rows, first: int, stop: int) -> Any:
    """Return rows first .. stop-1 as a view, as `part` does in compiled code."""
    if isinstance(x, SparseRows):
        return x._replace(start=x.start[first : stop + 1])
    return x[first:stop]


def copied(x: Rows, r: int) -> Rows:
    """Return a copy of row r, as a block of one row."""
    return taken(x, np.array([r])) if isinstance(x, SparseRows) else x[r : r + 1].copy()


def joined(blocks: list[Rows], d: int) -> Rows:
    """Return the concatenation of blocks of at most d features; sparse if one of them is."""
    if any(isinstance(block, SparseRows) for block in blocks):
        listed = [sparse(block) for block in blocks]
        lengths = np.concatenate([np.diff(block.start) for block in listed])
        return SparseRows(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.concatenate([block.columns for block in listed]),
            np.concatenate([block.values for block in listed]),
            d,
        )
    arrays = [block for block in blocks if not isinstance(block, SparseRows)]
    if {block.shape[1] for block in arrays} == {d}:
        return np.concatenate(arrays)
    rows = np.zeros((sum(map(len, arrays)), d), np.float32)
    n = 0
    for block in arrays:
        rows[n : n + len(block), : block.shape[1]] = block
        n += len(block)
    return rows


def taken(x: RowsT, kept: np.ndarray) -> RowsT:
    """Return copies of the rows with these indices."""
    if not isinstance(x, SparseRows):
        return x[kept]
    lengths = np.diff(x.start)[kept]
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    at = np.arange(start[-1]) + np.repeat(x.start[:-1][kept] - start[:-1], lengths)
    return SparseRows(start, x.columns[at], x.values[at], x.d)


@compiled_inner
def added(a, b):
    """Return the sum of two finite values as float32, clipped to -LARGEST .. LARGEST."""
    return np.float32(min(LARGEST, max(-LARGEST, np.float64(a) + np.float64(b))))


@compiled_within
def _sort(columns, values, first, stop):
    """Sort entries first .. stop-1 by column in place; those of one column keep their order."""
    if stop - first > _SHORT:
        order = np.argsort(columns[first:stop], kind="mergesort")
        assign(columns[first:], columns[first:stop][order])
        assign(values[first:], values[first:stop][order])
        return
    for t in range(first + 1, stop):
        column, value = columns[t], values[t]
        at = t
        while at > first and columns[at - 1] > column:
            columns[at] = columns[at - 1]
            values[at] = values[at - 1]
            at -= 1
        columns[at] = column
        values[at] = value


@compiled
def tidy(start, columns, values):
    """Make rows those of `sorted_rows`, in place, without columns below 0; return their size."""
    n = 0
    first = start[0]
    for r in range(start.size - 1):
        stop = start[r + 1]
        ascending = True
        for t in range(first + 1, stop):
            ascending &= columns[t - 1] < columns[t]
        if not ascending:
            _sort(columns, values, first, stop)
        # In place: entry n is written after entry t >= n was read.
        begin = n
        for t in range(first, stop):
            if n > begin and columns[n - 1] == columns[t]:
                values[n - 1] = added(values[n - 1], values[t])
            elif values[t] != 0.0 and columns[t] >= 0:
                columns[n] = columns[t]
                values[n] = values[t]
                n += 1
        start[r + 1] = n
        first = stop
    return n


@compiled_inner
def _count_zeros(values):
    n = 0
    for t in range(values.size):
        n += values[t] == 0.0
    return n


@compiled_inner
def _count_falls(a, b):
    n = 0
    for t in range(a.size):
        n += a[t] >= b[t]
    return n


@compiled
def _are_tidy(start, columns, values):
    """Tell whether `tidy` would change nothing, where no column is below 0."""
    first, stop = start[0], start[-1]
    if _count_zeros(values[first:stop]) > 0:
        return False
    if stop - first < 2:
        return True
    # One loop without a branch, so that it is vectorised; then subtract the falls between rows,
    # which are allowed.
    falls = _count_falls(columns[first : stop - 1], columns[first + 1 : stop])
    for r in range(start.size - 1):
        t = start[r]
        if first < t < start[r + 1]:
            falls -= columns[t - 1] >= columns[t]
    return falls == 0


def sorted_rows(x: SparseRows) -> SparseRows:
    """Return rows with ascending columns, repeats added up, zeros dropped; maybe the same."""
    if _are_tidy(x.start, x.columns, x.values):
        return x
    first, stop = int(x.start[0]), int(x.start[-1])
    start = x.start - first
    columns, values = x.columns[first:stop].copy(), x.values[first:stop].copy()
    n = tidy(start, columns, values)
    return SparseRows(start, columns[:n], values[:n], x.d)


@compiled
def _count_values(x):
    n = 0
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            n += x[r, c] != 0.0
    return n


@compiled
def _list_values(x, start, columns, values):
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
