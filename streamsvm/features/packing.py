"""Events and batches in single precision: checked, converted and sorted by compiled code."""

import numpy as np

from streamsvm._compile import array_at, compiled, compiled_inner, compiled_leaf, compiled_within
from streamsvm.support.rows import LARGEST, added

_ROWS = 64
MANY = 1024
"""The largest number of features of an event that `list_event` takes in any order."""

# The exponent bits of a float32: all are 1 in NaN and in infinity.
_EXPONENT_BITS = np.int32(0x7F800000)
_EXPONENT = np.uint32(0x7F800000)
_ALL_BUT_SIGN = np.uint32(0x7FFFFFFF)
_LARGEST_EXPONENT = np.int32(0x7F000000)


def are_columns(values: np.ndarray) -> bool:
    """Tell whether values, (n, d), are floats that lie column by column in memory."""
    return values.flags.f_contiguous and values.dtype in (np.float32, np.float64)


def are_rows(values: np.ndarray) -> bool:
    """Tell whether values, (n, d), are float32 that lie row by row in memory."""
    return values.flags.c_contiguous and values.dtype == np.float32


class _Claim:
    """Presents the memory of a read-only array as writable."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        described = array.__array_interface__
        self.__array_interface__ = described | {"data": (described["data"][0], False)}


def writable(array: np.ndarray) -> np.ndarray:
    """Return a view of an array that NumPy takes for writable; it must not be written to.

    Arrays of Arrow and pandas are often read-only, and numba compiles all code once more for
    read-only arrays.
    """
    return array if array.flags.writeable else np.asarray(_Claim(array))


def single(values: np.ndarray) -> np.ndarray:
    """Return numbers in single precision; those above `LARGEST` become infinite.

    Plain rounding would turn numbers that are a little above `LARGEST` into it.
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32, copy=False)
    if values.dtype.itemsize > 4 and values.dtype.kind == "f":
        at_limit = np.flatnonzero(np.abs(rounded.ravel()) == np.float32(LARGEST))
        above = at_limit[np.abs(values.ravel()[at_limit]) > LARGEST]
        if len(above):
            rounded = rounded.copy()
            rounded.flat[above] = np.copysign(np.inf, values.flat[above])
    return rounded


@compiled
def rows_of(columns, places, out):
    """Write columns, float32 or float64 (k, n), into rows.

    `places`, int64 (k,), has the column of `out`, float32 (n, d), for each; below 0: it is left
    out.
    """
    k, n = columns.shape
    # A few rows at a time, so that the memory written stays in the first-level cache.
    for start in range(0, n, _ROWS):
        stop = min(n, start + _ROWS)
        for c in range(k):
            place = places[c]
            if place >= 0:
                for r in range(start, stop):
                    out[r, place] = columns[c, r]


@compiled_leaf
def _most_exponent(bits):
    most = np.int32(0)
    for i in range(bits.size):
        most = max(most, bits[i] & _EXPONENT_BITS)
    return most


@compiled
def rows_at(addresses, out, bits):
    """Write columns of single precision into rows; return whether all values are finite.

    `addresses`, int64 (d,), are those of the columns, float32 (n,); `out`, float32 (n, d), is
    written; `bits`, int32 (n * d,), is the memory of `out`.
    """
    n, d = out.shape
    most = np.int32(0)
    for start in range(0, n, _ROWS):
        stop = min(n, start + _ROWS)
        for r in range(start, stop):
            for c in range(d):
                out[r, c] = array_at(addresses[c], (n,), np.float32)[r]
        # Checked here, while these rows are in the first-level cache.
        most = max(most, _most_exponent(bits[start * d : stop * d]))
    return most != _EXPONENT_BITS


@compiled
def mark_finite(bits, out):
    """Write which rows have no infinite value into out, bool (n,).

    bits are their float32 as uint32 (n, d).
    """
    for r in range(bits.shape[0]):
        # No branch in the inner loop, so that it is vectorised.
        bad = np.uint32(0)
        for c in range(bits.shape[1]):
            bad |= np.uint32((bits[r, c] & _ALL_BUT_SIGN) == _EXPONENT)
        out[r] = bad == 0


@compiled
def mark_usable(columns, largest, out):
    """Clear out, bool (n,), where a value of columns, (d, n), is above `largest`."""
    for c in range(columns.shape[0]):
        for r in range(columns.shape[1]):
            out[r] &= not abs(columns[c, r]) > largest


@compiled
def _first_bad(bits):
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
    """Return r * d + c of the first x[r, c] that is not finite, or -1; x is float32 (n, d)."""
    if x.flags.c_contiguous and _most_exponent(x.view(np.int32).ravel()) < _EXPONENT_BITS:
        return -1
    return int(_first_bad(x.view(np.uint32)))


def zeroed(values: np.ndarray) -> np.ndarray:
    """Return values, float32, with 0 in the place of NaN, as sparse rows have it."""
    is_whole = first_bad(values.reshape(1, -1)) < 0
    return values if is_whole else np.where(np.isnan(values), np.float32(0.0), values)


def exceeds_single(values: np.ndarray, x: np.ndarray) -> bool:
    """Tell whether a number above `LARGEST` was rounded to it.

    `x` are the `values` converted to float32; it is C-contiguous, and all are finite.
    """
    if values.dtype.kind != "f" or values.dtype.itemsize <= 4:
        return False
    if _most_exponent(x.view(np.int32).ravel()) < _LARGEST_EXPONENT:
        return False
    return bool((np.abs(values) > LARGEST).any())


def _crc32_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table.astype(np.uint32)


_CRC32 = _crc32_table()


@compiled_inner
def crc32(content):
    """Return the CRC-32 of content, uint8 (n,), as int64: the same as `zlib.crc32`."""
    c = np.uint32(0xFFFFFFFF)
    for i in range(content.size):
        c = _CRC32[(c ^ content[i]) & np.uint32(0xFF)] ^ (c >> np.uint32(8))
    return np.int64(c ^ np.uint32(0xFFFFFFFF))


_LANES = 8
_DROPPED = np.uint32(2**32 - 1)


@compiled_inner
def _mark_kept(columns, given, n, kept):
    """Write columns, or `_DROPPED` where a value is 0 or NaN or a column -1.

    Return how many are kept; -1 if an absolute value is above `LARGEST`.
    """
    m, usable = 0, True
    # No branch in the loop, so that it is vectorised.
    for t in range(n):
        value = np.float32(given[t])
        kept[t] = np.uint32(columns[t]) if abs(value) > np.float32(0.0) else _DROPPED
        m += int(np.int32(kept[t]) >= 0)
        usable &= not abs(given[t]) > LARGEST
    return m if usable else -1


@compiled_leaf
def _rank(columns, n, stop, ranks):
    """Write how many of the first n columns are less than each of the first `stop`."""
    for t in range(stop):
        ranks[t] = 0
    s = 0
    while s + 4 <= n:
        # Four at a time, so that ranks are loaded and stored less often.
        i, j, k, m = columns[s], columns[s + 1], columns[s + 2], columns[s + 3]
        for t in range(stop):
            c = columns[t]
            ranks[t] += np.int32(i < c) + np.int32(j < c) + np.int32(k < c) + np.int32(m < c)
        s += 4
    while s < n:
        i = columns[s]
        for t in range(stop):
            ranks[t] += np.int32(i < columns[t])
        s += 1


@compiled_within
def _sort_few(kept, given, n, m, ranks, out_columns, out_values):
    """Write the m kept ones of n features in column order; return False if two share a column.

    Each column is compared with each other, many in one vector operation. Up to some hundred
    features that is faster than a sort, whose branches the processor mispredicts half of the time.
    """
    stop = min(-(-n // _LANES) * _LANES, kept.size)
    for t in range(n, stop):
        kept[t] = _DROPPED
    _rank(kept, n, stop, ranks)
    total = 0
    for t in range(n):
        at = np.uint32(ranks[t])
        total += int(at)
        # All dropped ones have the same rank, m: they overwrite each other behind the kept ones.
        out_columns[at], out_values[at] = np.int32(kept[t]), given[t]
    # Without equal columns the ranks are 0, 1, ..., m - 1, and m for each dropped one.
    return 2 * total == m * (m - 1) + 2 * (n - m) * m


@compiled_inner
def _sort_and_add(kept, given, n, out_columns, out_values):
    """Write as `_sort_few`, but add up values of the same column; return how many are left."""
    m = 0
    for t in range(n):
        if kept[t] == _DROPPED:
            continue
        column, value = np.int32(kept[t]), np.float32(given[t])
        at = m
        while at > 0 and out_columns[at - 1] > column:
            at -= 1
        if at > 0 and out_columns[at - 1] == column:
            out_values[at - 1] = added(out_values[at - 1], value)
            continue
        for s in range(m, at, -1):
            out_columns[s] = out_columns[s - 1]
            out_values[s] = out_values[s - 1]
        out_columns[at] = column
        out_values[at] = value
        m += 1
    return m


@compiled
def list_event(columns, given, n, kept, ranks, out_columns, out_values):
    """Write the nonzero features of an event in the order of their columns; return their number.

    `columns`, int32, and `given`, float64, have its n features, and maybe more; a column of -1:
    leave the feature out. If n is above `MANY`, they should be sorted, or nearly so: the time grows
    with the square of the disorder. `kept` and `ranks`, uint32 and int32, are scratch of one
    length, at least n; fastest if it is a multiple of 8. `out_columns` and `out_values`, int32 and
    float32 (at least n,), are overwritten.

    Values of the same column are added up. NaN, a missing value, is left out as 0 is. -1 is
    returned if an absolute value is above `LARGEST`.
    """
    m = _mark_kept(columns, given, n, kept)
    if m < 0:
        return -1
    if n <= MANY and _sort_few(kept, given, n, m, ranks, out_columns, out_values):
        return m
    return _sort_and_add(kept, given, n, out_columns, out_values)
