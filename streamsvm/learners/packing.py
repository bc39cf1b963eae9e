"""Events and rows as single precision: checked, narrowed and put into order."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled


@compiled
def narrow(values, row):  # type: ignore[no-untyped-def]
    """Copy values, float64 (d,), into row, float32 (d,); return whether all are finite there."""
    finite = True
    for c in range(values.size):
        row[c] = values[c]
        finite &= np.isfinite(row[c])
    return finite


@compiled
def first_bad(x):  # type: ignore[no-untyped-def]
    """Return row * width + column of the first value of x, float32 (n, d), not finite, or -1."""
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            if not np.isfinite(x[r, c]):
                return r * x.shape[1] + c
    return -1


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
