"""Events that are kept by compiled code, in room made beforehand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, chosen_by, compiled_within
from streamsvm.support.rows import SparseRows

# The head of a block: how many events there are in it; how many more are to come, 0: it waits for
# somebody to look at them, below 0: it is closed; addresses.
COUNT, ROOM, _START, _COLUMNS, _VALUES, _Y, _WEIGHT = range(7)
_N_HEAD = 7


class Block(NamedTuple):
    """Events that compiled code writes one after the other."""

    head: np.ndarray  # int64 (7,): the numbers above, and where the other arrays are
    start: np.ndarray  # int64 (most + 1,)
    columns: np.ndarray  # int32; of dense rows there are none
    values: np.ndarray  # float32
    y: np.ndarray  # float64 (most,)
    weight: np.ndarray  # float64 (most,)


def new_block(most: int, width: int, is_sparse: bool) -> Block:
    """Return a closed block with memory for so many events of at most so many features."""
    columns = np.empty(most * width if is_sparse else 0, np.int32)
    start, values = np.zeros(most + 1, np.int64), np.empty(most * width, np.float32)
    arrays = (start, columns, values, np.empty(most), np.empty(most))
    addresses = [address_of(array) for array in arrays]
    return Block(np.array([0, -1, *addresses], np.int64), *arrays)


def has_room(block: Block, most: int, width: int, is_sparse: bool) -> bool:
    """Tell whether a block has memory for so many more events, and of these rows."""
    n = int(block.head[COUNT])
    n_values = block.values.size - int(block.start[n])
    is_alike = is_sparse == bool(len(block.columns))
    return is_alike and block.y.size - n >= most and n_values >= most * width


@compiled_within
def _next_place(block, y, weight, n):  # type: ignore[no-untyped-def]
    """Note an event of n values; return the head, and where its values go."""
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
def _keep_dense(block, x, y, weight):  # type: ignore[no-untyped-def]
    n = x.shape[1]
    head, at = _next_place(block, y, weight, n)
    values = array_at(head[_VALUES], (at + n,), np.float32)
    for c in range(n):
        values[at + c] = x[0, c]


@compiled_within
def _keep_sparse(block, x, y, weight):  # type: ignore[no-untyped-def]
    n = x.start[1]
    head, at = _next_place(block, y, weight, n)
    columns = array_at(head[_COLUMNS], (at + n,), np.int32)
    values = array_at(head[_VALUES], (at + n,), np.float32)
    for t in range(n):
        columns[at + t], values[at + t] = x.columns[t], x.values[t]


keep: Any = chosen_by(1, {np.ndarray: _keep_dense, SparseRows: _keep_sparse})
"""keep(block, x, y, weight): append the only row of x to a block, its head's address given."""


@compiled_within
def room_of(block):  # type: ignore[no-untyped-def]
    """Return how many events are still to come."""
    return array_at(block, (_N_HEAD,), np.int64)[ROOM]
