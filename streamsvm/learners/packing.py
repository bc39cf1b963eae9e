"""Events and rows as single precision: checked, narrowed and put into order."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import array_at, compiled, compiled_leaf
from streamsvm.support.rows import added

_ROWS = 64
_MANY = 256
_EXPONENT = np.uint32(0x7F800000)


def are_columns(values: np.ndarray) -> bool:
    """Tell whether values, (n, d), lie column by column, as floats."""
    return values.flags.f_contiguous and values.dtype in (np.float32, np.float64)


def are_rows(values: np.ndarray) -> bool:
    """Tell whether values, (n, d), lie row by row, in single precision."""
    return values.flags.c_contiguous and values.dtype == np.float32


def writable(array: np.ndarray) -> np.ndarray:
    """Return an array, or a copy of a read-only one: for those all code would be compiled again."""
    return array if array.flags.writeable else array.copy()


@compiled
def narrow(values, row):  # type: ignore[no-untyped-def]
    """Copy values, float64 (d,), into row, float32 (d,); return whether all are finite there."""
    finite = True
    for c in range(values.size):
        row[c] = values[c]
        finite &= np.isfinite(row[c])
    return finite


@compiled
def rows_of(columns, places, out):  # type: ignore[no-untyped-def]
    """Write columns as rows.

    Parameters
    ----------
    columns
        float32 or float64 (k, n).
    places
        int64 (k,): the place of each in the rows; below 0: leave it out.
    out
        float32 (n, d), written.

    """
    k, n = columns.shape
    # Some rows at a time, so that what is written stays in the nearest cache.
    for start in range(0, n, _ROWS):
        stop = min(n, start + _ROWS)
        for c in range(k):
            place = places[c]
            if place >= 0:
                for r in range(start, stop):
                    out[r, place] = columns[c, r]


@compiled
def rows_at(addresses, out):  # type: ignore[no-untyped-def]
    """Write single-precision columns, each at an address, int64 (d,), as rows, float32 (n, d)."""
    n, d = out.shape
    for start in range(0, n, _ROWS):
        stop = min(n, start + _ROWS)
        for c in range(d):
            column = array_at(addresses[c], (n,), np.float32)
            for r in range(start, stop):
                out[r, c] = column[r]


@compiled
def mark_finite(bits, out):  # type: ignore[no-untyped-def]
    """Write which rows of single precision, as uint32 (n, d), are finite into out, bool (n,)."""
    for r in range(bits.shape[0]):
        # The exponent of NaN and of infinity is all ones; without a branch it is vector code.
        bad = np.uint32(0)
        for c in range(bits.shape[1]):
            bad |= np.uint32((bits[r, c] & _EXPONENT) == _EXPONENT)
        out[r] = bad == 0


@compiled
def mark_usable(columns, largest, out):  # type: ignore[no-untyped-def]
    """Clear out, bool (n,), where a value of columns, (d, n), is not at most `largest`, or NaN."""
    for c in range(columns.shape[0]):
        for r in range(columns.shape[1]):
            out[r] &= abs(columns[c, r]) <= largest


@compiled
def _first_bad(bits):  # type: ignore[no-untyped-def]
    n, d = bits.shape
    for r in range(n):
        bad = np.uint32(0)
        for c in range(d):
            bad |= np.uint32((bits[r, c] & _EXPONENT) == _EXPONENT)
        if bad != 0:
            for c in range(d):
                if (bits[r, c] & _EXPONENT) == _EXPONENT:
                    return r * d + c
    return -1


def first_bad(x: np.ndarray) -> int:
    """Return row * width + column of the first value of x, float32 (n, d), not finite, or -1."""
    return int(_first_bad(x.view(np.uint32)))


def _crc32_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table.astype(np.uint32)


_CRC32 = _crc32_table()


@compiled
def crc32(content):  # type: ignore[no-untyped-def]
    """Return the CRC-32 of uint8 (n,), as int64: that of `zlib`."""
    c = np.uint32(0xFFFFFFFF)
    for i in range(content.size):
        c = _CRC32[(c ^ content[i]) & np.uint32(0xFF)] ^ (c >> np.uint32(8))
    return np.int64(c ^ np.uint32(0xFFFFFFFF))


@compiled_leaf
def _rank(columns, c):  # type: ignore[no-untyped-def]
    """Return how many columns, int32 (n,), are less than c."""
    rank = np.int32(0)
    for s in range(columns.size):
        rank = np.int32(rank + np.int32(columns[s] < c))
    return rank


@compiled
def _sort_few(columns, values):  # type: ignore[no-untyped-def]
    """Sort columns, int32 (n,), and values with them, float32 (n,); False if two are the same.

    Each is compared with each, many in one operation, and nothing is guessed: up to some hundred
    that is faster than a sort, whose comparisons are foreseen half of the time.
    """
    n = columns.size
    sorted_columns, sorted_values = np.full(n, -1, np.int32), np.empty(n, np.float32)
    for t in range(n):
        at = _rank(columns, columns[t])
        if sorted_columns[at] >= 0:
            return False
        sorted_columns[at], sorted_values[at] = columns[t], values[t]
    columns[:], values[:] = sorted_columns, sorted_values
    return True


@compiled
def _sort_and_add(columns, values):  # type: ignore[no-untyped-def]
    """Sort as `_sort_few`, but add up the values of one column; return how many are left."""
    n = 0
    for t in range(columns.size):
        column, value = columns[t], values[t]
        at = n
        while at > 0 and columns[at - 1] > column:
            at -= 1
        if at > 0 and columns[at - 1] == column:
            values[at - 1] = added(values[at - 1], value)
            continue
        for s in range(n, at, -1):
            columns[s] = columns[s - 1]
            values[s] = values[s - 1]
        columns[at] = column
        values[at] = value
        n += 1
    return n


@compiled
def list_event(columns, given, values):  # type: ignore[no-untyped-def]
    """Bring the nonzero features of an event into order, in place.

    Parameters
    ----------
    columns
        int32 (n,), overwritten with ascending columns; below 0: leave the feature out.
    given
        float64 (n,): the values.
    values
        float32 (n,), written.

    Returns
    -------
    How many features are left, those of one column added up; -1 if a value is not finite.

    """
    n, is_sorted = 0, True
    for t in range(columns.size):
        column, value = columns[t], np.float32(given[t])
        if not np.isfinite(value):
            return -1
        if column >= 0 and value != 0.0:
            is_sorted &= n == 0 or columns[n - 1] < column
            columns[n], values[n] = column, value
            n += 1
    if is_sorted or (n <= _MANY and _sort_few(columns[:n], values[:n])):
        return n
    return _sort_and_add(columns[:n], values[:n])
