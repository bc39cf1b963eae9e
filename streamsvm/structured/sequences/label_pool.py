"""Sequences of whole numbers of different lengths, by slot, in one array.

As in the store of sparse rows, a new sequence is appended, and what its slot had before becomes
garbage, which `_compact` removes when the array is full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_inner, compiled_within
from streamsvm.support.assigning import assign
from streamsvm.support.declaration import copy_arrays

USED, LIVE = range(2)
"""Indices of `counts`: numbers in the array, and those of sequences in use."""


class LabelPool(NamedTuple):
    """Sequences of int32 by slot."""

    start: np.ndarray  # int64 (slots,)
    length: np.ndarray  # int64 (slots,)
    numbers: np.ndarray  # int32 (room,)
    counts: np.ndarray  # int64 (2,): USED, LIVE


def new_pool(slots: int, room: int = 1024) -> LabelPool:
    """Return an empty pool for sequences of `room` numbers in all."""
    start, length = np.zeros((2, slots), np.int64)
    return LabelPool(start, length, np.zeros(room, np.int32), np.zeros(2, np.int64))


def grown(pool: LabelPool, slots: int, more: int) -> LabelPool:
    """Return a copy with room for more slots and so many more numbers, three quarters full."""
    room = pool.numbers.size
    while 4 * (int(pool.counts[LIVE]) + more) > 3 * room:
        room *= 2
    new = new_pool(slots, room)
    used = int(pool.counts[USED])
    copy_arrays(pool, new, ("start", "length", "counts"))
    new.numbers[:used] = pool.numbers[:used]
    return new


@compiled_within
def have_room(pool, more):
    """Tell whether so many more numbers fit; if not, the pool must be `grown` first."""
    return 4 * (pool.counts[LIVE] + more) <= 3 * pool.numbers.size


@compiled_inner
def _compact(pool):
    numbers, used = pool.numbers[: pool.counts[USED]].copy(), 0
    for slot in range(pool.start.size):
        start, length = pool.start[slot], pool.length[slot]
        assign(pool.numbers[used:], numbers[start : start + length])
        pool.start[slot] = used
        used += length
    pool.counts[USED] = used


@compiled_inner
def release(pool, slot):
    """Remove a sequence."""
    pool.counts[LIVE] -= pool.length[slot]
    pool.length[slot] = 0


@compiled
def put(pool, slot, sequence):
    """Write a sequence, which must fit, into a slot."""
    release(pool, slot)
    if pool.counts[USED] + sequence.size > pool.numbers.size:
        _compact(pool)
    start = pool.counts[USED]
    assign(pool.numbers[start:], sequence)
    pool.start[slot], pool.length[slot] = start, sequence.size
    pool.counts[USED] += sequence.size
    pool.counts[LIVE] += sequence.size


@compiled_within
def sequence_of(pool, slot):
    """Return the sequence in a slot, as a view that is valid until the next `put`."""
    return pool.numbers[pool.start[slot] : pool.start[slot] + pool.length[slot]]
