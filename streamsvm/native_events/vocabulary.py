"""A hash table for compiled code, from the names in a list to their columns.

The first slot of a name follows from its hash alone, so that the slots of all names of an event can
be prefetched together. A look-up in Python's dict reads four places in memory, each of which
depends on the one before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import address_of, array_at, compiled_with_python, compiled_within, prefetch
from streamsvm.native_events import python_objects as py

# A slot, int64 (2,), is the address of the name, and a word with the upper half of its hash above
# its column plus 1; that word is 0 in an empty slot.
_HALF = np.int64(2**32 - 1)
_ODD = np.int64(0x9E3779B97F4A7C15 - 2**64)

# The head, int64 (3,): the address of the slots, their number less 1, the number of taken ones.
SLOTS, MASK, TAKEN = range(3)
_N_HEAD = 3

_FEW = 2**14


@compiled_within
def _slots_of(head):
    h = array_at(head, (_N_HEAD,), np.int64)
    return array_at(h[SLOTS], (h[MASK] + 1, 2), np.int64), h[MASK]


@compiled_within
def hash_of(name):
    """Return the hash of a name; its upper half determines the slot.

    Python's hash of an int is the int itself. It is mixed here, as ints that differ in their upper
    bits only would all get the same first slot.
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
def prefetch_slot(head, hashed):
    """Prefetch the first slot of a name."""
    slots, mask = _slots_of(head)
    prefetch(slots, _first_slot(hashed, mask), 0)


@compiled_within
def prefetch_name(head, hashed):
    """Prefetch the name that is in the first slot of a hash."""
    slots, mask = _slots_of(head)
    py.prefetch_object(slots[_first_slot(hashed, mask), 0])


@compiled_within
def column_of(head, name, hashed, kinds):
    """Return the column of a name, -1 if it is not in the table; kinds: see `py.new_kinds`."""
    slots, mask = _slots_of(head)
    i, mark = _first_slot(hashed, mask), _mark(hashed)
    while slots[i, 1] != 0:
        if slots[i, 1] & ~_HALF == mark and py.are_equal(slots[i, 0], name, kinds):
            return (slots[i, 1] & _HALF) - 1
        i = (i + 1) & mask
    return np.int64(-1)


@compiled_within
def is_complete(head, n):
    """Tell whether the table holds exactly the first n names."""
    return array_at(head, (_N_HEAD,), np.int64)[TAKEN] == n


@compiled_within
def has_room(head, more):
    """Tell whether so many more names can be added; two thirds of the slots may be taken."""
    h = array_at(head, (_N_HEAD,), np.int64)
    return 3 * (h[TAKEN] + more) <= 2 * (h[MASK] + 1)


@compiled_within
def add(head, name):
    """Give a new name the next column. The list keeps it alive, and the table has room."""
    slots, mask = _slots_of(head)
    h = array_at(head, (_N_HEAD,), np.int64)
    hashed = hash_of(name)
    i = _first_slot(hashed, mask)
    while slots[i, 1] != 0:
        i = (i + 1) & mask
    h[TAKEN] += 1
    slots[i, 0], slots[i, 1] = name, _mark(hashed) | h[TAKEN]


@compiled_within
def add_missing(head, names, kinds):
    """Add the names of a list that are missing in the table; return whether it holds all now."""
    n = py.list_size(names)
    for i in range(array_at(head, (_N_HEAD,), np.int64)[TAKEN], n):
        name = py.item_of_list(names, i)
        if not py.is_name(name, kinds) or not has_room(head, 1):
            return False
        add(head, name)
    return True


@compiled_with_python
def _add_missing_names(head, names, kinds):
    return add_missing(head, names, array_at(kinds, (py.N_KINDS,), np.int64))


@compiled_with_python
def _move(head, address, size, holder, owner):
    """Move all names to an array of empty slots, which the head uses from now on, if it is larger.

    One call that holds the global interpreter lock, so that no name is added meanwhile.
    """
    h = array_at(head, (_N_HEAD,), np.int64)
    slots, mask = array_at(address, (size, 2), np.int64), size - 1
    if h[SLOTS] != 0:
        old, last = _slots_of(head)
        if last >= mask:
            return
        for t in range(last + 1):
            if old[t, 1] != 0:
                i = _first_slot(old[t, 1], mask)
                while slots[i, 1] != 0:
                    i = (i + 1) & mask
                slots[i, 0], slots[i, 1] = old[t, 0], old[t, 1]
    h[SLOTS], h[MASK] = address, mask
    py.store_reference(holder, 0, owner)


class Vocabulary:
    """A hash table of the names in a list that only grows.

    Parameters
    ----------
    names
        The names by column; the list keeps them alive.

    """

    def __init__(self, names: list[Any]) -> None:
        self._names = names
        self.head = np.zeros(_N_HEAD, np.int64)
        self._kinds = py.new_kinds()
        # The array of the slots, or None.
        self._slots: list[Any] = [None]

    @property
    def n_slots(self) -> int:
        """The number of slots, of which two thirds can be taken."""
        return int(self.head[MASK]) + 1 if self.head[SLOTS] else 0

    @property
    def n_names(self) -> int:
        """The number of names in the table."""
        return int(self.head[TAKEN])

    def update(self, more: int = 256) -> bool:
        """Add the names that are new in the list, and make room for so many more.

        Return whether the table holds all names: not if one is neither a string nor an int of 64
        bits.
        """
        n = len(self._names)
        if 3 * (n + more) > 2 * self.n_slots:
            # More than two slots a name, or four while they are few, keep most searches to one.
            size = 1 << ((4 if n < _FEW else 2) * (n + more)).bit_length()
            former, slots = self._slots[0], np.zeros((size, 2), np.int64)
            addresses = address_of(self.head), address_of(slots)
            _move(*addresses, size, id(self._slots), id(slots))
            del former
        kinds = address_of(self._kinds)
        return bool(_add_missing_names(address_of(self.head), id(self._names), kinds))
