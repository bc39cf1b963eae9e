"""Whether the label of the last event is known when the next one comes.

It is if each event is predicted and then learnt. If other rows are predicted between the two, or
labels come late, nobody knows it. A row is told from others by its digest.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled, compiled_inner

N_PREDICTED, IS_LATE, LAST_ROW, IS_OFF = range(4)
N_ASKED = 4
"""Entries of `asked`, int64 (4,): how many rows were predicted since the last example; 1 if that
was another one than the row that was predicted last, as labels come late; the `digest` of that; 1
if nobody wants to know."""

_PRIME, _FACTOR = 2**31 - 1, 65599


@compiled
def digest(columns, values, n, is_sparse, width):
    """Return a number that tells a row from others: of its nonzero values and their columns.

    The row is float32 (>= n,), the columns are int32 (>= n,); those of a dense row are not read.
    Columns from `width` on count for nothing: when the row was predicted, they may not have been
    known. Of sparse rows that is rounded down to a power of two, as new words come all the time
    while labels are waited for.
    """
    bits, found, limit = values[:n].view(np.int32), np.int64(1), np.int64(width)
    if is_sparse:
        limit = np.int64(1)
        while 2 * limit <= width:
            limit *= 2
    for t in range(n):
        column = np.int64(columns[t]) if is_sparse else np.int64(t)
        if values[t] != 0.0 and column < limit:
            found = (_FACTOR * found + column) % _PRIME
            # Not below 0.
            found = (_FACTOR * found + np.int64(bits[t]) + 2**31) % _PRIME
    return found


@compiled_inner
def is_next(asked, row):
    """Note that a row, given by its digest, is predicted; tell whether an example is next to come.

    It is not if other rows were predicted, too, or labels come late.
    """
    if asked[N_PREDICTED] == 0 or asked[LAST_ROW] != row:
        asked[N_PREDICTED] += 1
    asked[LAST_ROW] = row
    return asked[N_PREDICTED] == 1 and knows_last(asked)


@compiled
def knows_last(asked):
    """Tell whether the label before an example was known when that came."""
    return asked[IS_LATE] == 0 and asked[IS_OFF] == 0


@compiled
def note_learnt(asked, row):
    """Note that a row, given by its digest, is learnt."""
    if asked[N_PREDICTED] > 0:
        asked[IS_LATE] = np.int64(asked[LAST_ROW] != row)
    asked[N_PREDICTED] = asked[LAST_ROW] = 0
