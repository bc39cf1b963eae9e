"""Columns by name, for compiled code: a table of the names that a list has, and places by hash.

Where a name's slot is follows from its hash: what all the names of an event need can be brought
near at once. In Python's dict each name takes four visits of memory, one after the other.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from streamsvm._compile import address_of, array_at, compiled_with_python, compiled_within, prefetch
from streamsvm.native_events import python_objects as py

# A slot, int64 (2,): the name; the upper half of its hash, and its column plus 1 (0: it is empty).
_HALF = np.int64(2**32 - 1)
_ODD = np.int64(0x9E3779B97F4A7C15 - 2**64)

# The head, int64 (3,): address of the slots, how many there are less 1, how many are taken.
_SLOTS, _MASK, _TAKEN = range(3)

_REMEMBERED = 2**16
_FEW = 2**14


@compiled_within
def _slots_of(head):
    h = array_at(head, (3,), np.int64)
    return array_at(h[_SLOTS], (h[_MASK] + 1, 2), np.int64), h[_MASK]


@compiled_within
def hash_of(name):
    """Return the hash of a name; its upper half tells the slot.

    Python's hashes of ints are these themselves: those that have all digits but the first in common
    would stand in one queue.
    """
    hashed = py.hash_of(name)
    return (hashed ^ (hashed >> 32)) * _ODD


@compiled_within
def _first_slot(hashed, mask):
    return (hashed >> 32) & mask


@compiled_within
def _mark(hashed):
    return hashed & ~_HALF


@compiled_within
def look_ahead(head, hashed):
    """Have the slot of a name brought near."""
    slots, mask = _slots_of(head)
    prefetch(slots, _first_slot(hashed, mask), 0)


@compiled_within
def look_at(head, hashed):
    """Have the name in that slot brought near."""
    slots, mask = _slots_of(head)
    py.look_ahead(slots[_first_slot(hashed, mask), 0])


@compiled_within
def column_of(head, name, hashed, kinds):
    """Return the column of a name, -1 if it is unknown; kinds as `py.kinds`."""
    slots, mask = _slots_of(head)
    i, mark = _first_slot(hashed, mask), _mark(hashed)
    while slots[i, 1] != 0:
        if slots[i, 1] & ~_HALF == mark and py.are_equal(slots[i, 0], name, kinds):
            return (slots[i, 1] & _HALF) - 1
        i = (i + 1) & mask
    return np.int64(-1)


@compiled_within
def is_complete(head, n):
    """Tell whether the first n names are in the table."""
    return array_at(head, (3,), np.int64)[_TAKEN] == n


@compiled_within
def has_room(head, more):
    """Tell whether so many names can be added."""
    h = array_at(head, (3,), np.int64)
    return 3 * (h[_TAKEN] + more) <= 2 * (h[_MASK] + 1)


@compiled_within
def add(head, name):
    """Give an unknown name, which somebody keeps alive, the next column; there is room."""
    slots, mask = _slots_of(head)
    h = array_at(head, (3,), np.int64)
    hashed = hash_of(name)
    i = _first_slot(hashed, mask)
    while slots[i, 1] != 0:
        i = (i + 1) & mask
    h[_TAKEN] += 1
    slots[i, 0], slots[i, 1] = name, _mark(hashed) | h[_TAKEN]


@compiled_with_python
def _add_all(head, names, first, stop):
    """Add names first .. stop - 1 of a list."""
    for i in range(first, stop):
        add(head, py.item_of_list(names, i))


@compiled_with_python
def _move(head, address, size):
    """Fill an empty table without a look at the names, and have the head lead there.

    In one call, with the interpreter's lock: nobody adds a name meanwhile, or is interrupted.
    """
    h = array_at(head, (3,), np.int64)
    slots, mask = array_at(address, (size, 2), np.int64), size - 1
    if h[_SLOTS] != 0:
        old, last = _slots_of(head)
        for t in range(last + 1):
            if old[t, 1] != 0:
                i = _first_slot(old[t, 1], mask)
                while slots[i, 1] != 0:
                    i = (i + 1) & mask
                slots[i, 0], slots[i, 1] = old[t, 0], old[t, 1]
    h[_SLOTS], h[_MASK] = address, mask


class HashedPlaces(dict[Any, int]):
    """Twice the column that a name is hashed to, plus 1 if its values change sign.

    A few names are remembered, as hashing one takes longer than everything else about it.
    """

    def __init__(self, buckets: int) -> None:
        super().__init__()
        self._buckets = buckets

    def __missing__(self, name: Any) -> int:
        text = name if isinstance(name, str) else repr(name)
        # Not hash(): that of a string is another one in each process.
        hashed = zlib.crc32(text.encode())
        place = 2 * (hashed % self._buckets) + (hashed >> 31)
        # Others may be equal and yet have another text: 1 and True.
        if isinstance(name, str):
            if len(self) >= _REMEMBERED:
                self.clear()
            self[name] = place
        return place


class Vocabulary:
    """The table, of a list of names that only grows.

    Parameters
    ----------
    names
        The names by column; it keeps them alive.

    """

    def __init__(self, names: list[Any]) -> None:
        self._names = names
        self.head = np.zeros(3, np.int64)
        # Those that the head leads to, and some that an interruption left.
        self._kept: list[np.ndarray] = []

    @property
    def n_slots(self) -> int:
        """How many names there is room for, and half as many."""
        return int(self.head[_MASK]) + 1 if self.head[_SLOTS] else 0

    @property
    def n_names(self) -> int:
        """How many names are in the table."""
        return int(self.head[_TAKEN])

    def update(self, more: int = 256) -> None:
        """Add the names that the list has now, and make room for some more."""
        n = len(self._names)
        if 3 * (n + more) > 2 * self.n_slots:
            # Room for twice as many, and few slots in one queue; of few names for more.
            size = 1 << ((4 if n < _FEW else 2) * (n + more)).bit_length()
            self._kept.append(np.zeros((size, 2), np.int64))
            _move(address_of(self.head), address_of(self._kept[-1]), size)
            del self._kept[:-1]
        if self.n_names < n:
            _add_all(address_of(self.head), id(self._names), self.n_names, n)
