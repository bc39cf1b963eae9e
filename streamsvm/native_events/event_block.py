"""Buffers of events, allocated in advance, to which compiled code appends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, chosen_by, compiled_within
from streamsvm.support.rows import SparseRows

# The fields of the head of a block: the number of events in it; how many more may be appended (0:
# the block is full, below 0: it is closed); the addresses of the arrays.
COUNT, ROOM, _START, _COLUMNS, _VALUES, _Y, _WEIGHT = range(7)
_N_HEAD = 7


class Block(NamedTuple):
    """A buffer of events, one after the other; all arrays have unused room at their ends."""

    head: np.ndarray  # int64 (7,): the fields above
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
    head = [contents[0].size - 1, -1, *map(address_of, arrays)]
    start, columns, kept, y, weight = arrays
    return Block(np.array(head, np.int64), start, columns, kept, y, weight, is_sparse)


@compiled_within
def _add_event(block, y, weight, n):
    """Append an event of n values, not written yet; return the head and where they begin."""
    head = array_at(block, (_N_HEAD,), np.int64)
    i = head[COUNT]
    start = array_at(head[_START], (i + 2,), np.int64)
    start[i + 1] = start[i] + n
    array_at(head[_Y], (i + 1,), np.float64)[i] = y
    array_at(head[_WEIGHT], (i + 1,), np.float64)[i] = weight
    head[COUNT] += 1
    head[ROOM] -= 1
    return head, start[i]


@compiled_within
def _keep_dense(block, x, y, weight):
    n = x.shape[1]
    head, at = _add_event(block, y, weight, n)
    values = array_at(head[_VALUES], (at + n,), np.float32)
    for c in range(n):
        values[at + c] = x[0, c]


@compiled_within
def _keep_sparse(block, x, y, weight):
    n = x.start[1]
    head, at = _add_event(block, y, weight, n)
    columns = array_at(head[_COLUMNS], (at + n,), np.int32)
    values = array_at(head[_VALUES], (at + n,), np.float32)
    for t in range(n):
        columns[at + t], values[at + t] = x.columns[t], x.values[t]


keep: Any = chosen_by(1, {np.ndarray: _keep_dense, SparseRows: _keep_sparse})
"""keep(block, x, y, weight): append the only row of x to the block whose head is at an address."""


@compiled_within
def room_of(block):
    """Return how many more events may be appended to the block whose head is at an address."""
    return array_at(block, (_N_HEAD,), np.int64)[ROOM]
