"""Events and rows as single precision: checked, narrowed and put into order."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import array_at, compiled

_ROWS = 64
_EXPONENT = np.uint32(0x7F800000)


def are_columns(values: np.ndarray) -> bool:
    """Tell whether values, (n, d), lie column by column, as floats."""
    return values.flags.f_contiguous and values.dtype in (np.float32, np.float64)


def are_rows(values: np.ndarray) -> bool:
    """Tell whether values, (n, d), lie row by row, in single precision."""
    return values.flags.c_contiguous and values.dtype == np.float32


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
    n = 0
    for t in range(columns.size):
        column, value = columns[t], np.float32(given[t])
        if not np.isfinite(value):
            return -1
        if column < 0 or value == 0.0:
            continue
        # Sorted as they come: few are out of order, or all are few.
        at = n
        while at > 0 and columns[at - 1] > column:
            at -= 1
        if at > 0 and columns[at - 1] == column:
            values[at - 1] += value
            continue
        for s in range(n, at, -1):
            columns[s] = columns[s - 1]
            values[s] = values[s - 1]
        columns[at] = column
        values[at] = value
        n += 1
    return n
