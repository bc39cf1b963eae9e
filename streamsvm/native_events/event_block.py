"""Buffers of events, allocated in advance, to which compiled code appends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, chosen_by, compiled_within
from streamsvm.support.rows import SparseRows

# The fields of the head of a block: the number of events in it; at which number it is full (-1: it
# is closed); how many events and values the arrays hold; the addresses of the arrays.
COUNT, STOP, _MOST_EVENTS, _MOST_VALUES, _START, _COLUMNS, _VALUES, _Y, _WEIGHT = range(9)
_N_HEAD = 9


class Block(NamedTuple):
    """A buffer of events, one after the other; all arrays have unused room at their ends."""

    head: np.ndarray  # int64 (9,): the fields above
    start: np.ndarray  # int64 (n + 1,): where the values of each of n events begin
    columns: np.ndarray  # int32, parallel to values; empty for dense rows
    values: np.ndarray  # float32; a dense row has one for each feature known at the time
    y: np.ndarray  # float64 (n,)
    weight: np.ndarray  # float64 (n,)
    is_sparse: bool

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of events and of values."""
        n = int(self.head[COUNT])
        return n, int(self.start[n])

    def content(self) -> Contents:
        """Return views of the arrays without their unused room."""
        n, stop = self.size
        columns = self.columns[:stop]
        return self.start[: n + 1], columns, self.values[:stop], self.y[:n], self.weight[:n]

    def is_sound(self) -> bool:
        """Tell whether the addresses in the head are those of the arrays."""
        arrays = (self.start, self.columns, self.values, self.y, self.weight)
        return bool((self.head[_START:] == [address_of(array) for array in arrays]).all())

    def has_room(self, events: int, values: int) -> bool:
        """Tell whether the arrays have room for so many more events and values."""
        n, stop = self.size
        return self.y.size - n >= events and self.values.size - stop >= values


Contents = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""The arrays of a block, from `start` to `weight`."""


def new_block(contents: Contents, is_sparse: bool, events: int = 0, values: int = 0) -> Block:
    """Return a closed block with these contents and room for so many more events and values."""
    more = (events, values * is_sparse, values, events, events)
    arrays: Any = [
        np.empty(array.size + n, array.dtype) for array, n in zip(contents, more, strict=True)
    ]
    for new, old in zip(arrays, contents, strict=True):
        new[: old.size] = old
    start, columns, kept, y, weight = arrays
    head = [contents[0].size - 1, -1, y.size, kept.size, *map(address_of, arrays)]
    return Block(np.array(head, np.int64), start, columns, kept, y, weight, is_sparse)


@compiled_within
def _end_of(head):
    """Return where the values of the next event begin."""
    i = head[COUNT]
    return array_at(head[_START], (i + 1,), np.int64)[i]


@compiled_within
def _holds(head, n):
    """Tell whether the arrays hold a further event of n values, whatever Python code has done."""
    if not 0 <= head[COUNT] < head[_MOST_EVENTS]:
        return False
    return 0 <= _end_of(head) <= head[_MOST_VALUES] - n


@compiled_within
def _add_event(head, y, weight, n):
    """Append an event of n values, not written yet; return where they begin."""
    i = head[COUNT]
    start = array_at(head[_START], (i + 2,), np.int64)
    start[i + 1] = start[i] + n
    array_at(head[_Y], (i + 1,), np.float64)[i] = y
    array_at(head[_WEIGHT], (i + 1,), np.float64)[i] = weight
    head[COUNT] += 1
    return start[i]


@compiled_within
def _keep_dense(block, x, y, weight):
    n, head = x.shape[1], array_at(block, (_N_HEAD,), np.int64)
    if not _holds(head, n):
        return False
    at = _add_event(head, y, weight, n)
    values = array_at(head[_VALUES], (at + n,), np.float32)
    for c in range(n):
        values[at + c] = x[0, c]
    return True


@compiled_within
def _keep_sparse(block, x, y, weight):
    n, head = x.start[1], array_at(block, (_N_HEAD,), np.int64)
    if not _holds(head, n):
        return False
    at = _add_event(head, y, weight, n)
    columns = array_at(head[_COLUMNS], (at + n,), np.int32)
    values = array_at(head[_VALUES], (at + n,), np.float32)
    for t in range(n):
        columns[at + t], values[at + t] = x.columns[t], x.values[t]
    return True


keep: Any = chosen_by(1, {np.ndarray: _keep_dense, SparseRows: _keep_sparse})
"""keep(block, x, y, weight): append the only row of x to the block whose head is at an address.

It returns whether the arrays have room for the row; without it nothing is written.
"""


@compiled_within
def room_of(block):
    """Return how many more events may be appended to the block whose head is at an address."""
    head = array_at(block, (_N_HEAD,), np.int64)
    return max(head[STOP] - head[COUNT], 0)
