"""What fast paths have in common: methods in machine code that know a table of addresses.

A table, int64, begins with whether the way is closed: what a closed one leads to is somebody else's
memory, or nobody's. A method knows where its table is, and where it is written whether it must not
run now: that somebody holds a lock, or that the way is closed.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

import numpy as np

from streamsvm._compile import JIT, address_of, array_at, compiled_within
from streamsvm.native_events.python_methods import table_of
from streamsvm.native_events.python_objects import HAS_LOCK


def _offset_of_owner() -> int | None:
    """Return where an RLock says, in a word that is not 0, that it is held: bytes from its start.

    Found by trying, as the interpreter promises none; None if it cannot be found.
    """
    lock = threading.RLock()

    def words() -> list[int]:
        n = type(lock).__basicsize__ // 8
        return [ctypes.c_int64.from_address(id(lock) + 8 * i).value for i in range(n)]

    seen = [words()]
    for change in (lock.acquire, lock.acquire, lock.release, lock.release):
        change()
        seen.append(words())
    for i in range(object.__basicsize__ // 8, len(seen[0])):
        if [found[i] != 0 for found in seen] == [False, True, True, True, False]:
            return 8 * i
    return None


LOCK_OWNER = _offset_of_owner() if sys.implementation.name == "cpython" else None
"""Where compiled code sees whether an RLock is held, without taking it: bytes from its address.

Who has the interpreter's lock and finds the other one free is alone until that is given up.
"""


CLOSED = 0
"""The first entry of a table: not 0 while the way is closed."""

POSSIBLE = JIT and HAS_LOCK and LOCK_OWNER is not None
"""Whether there can be fast paths."""

_TABLE, _HELD = 0, 8


class _GiveUp:
    def __repr__(self) -> str:
        return "FALL_BACK"


FALL_BACK: Any = _GiveUp()
"""In the place of a result: the event must go the general path."""


def guarded_by_lock(table: np.ndarray, lock: Any) -> bytes:
    """Return what a method must know that runs while nobody holds the lock, an RLock."""
    return np.array([address_of(table), id(lock) + (LOCK_OWNER or 0)], np.int64).tobytes()


def unguarded(table: np.ndarray) -> bytes:
    """Return what a method must know for who holds the lock, and so is the only one at work."""
    place = address_of(table)
    return np.array([place, place + 8 * CLOSED], np.int64).tobytes()


@compiled_within
def _number_at(address):
    return array_at(address, (1,), np.int64)[0]


@compiled_within
def table_at(owner, n):
    """Return the table of a method, n numbers."""
    return array_at(_number_at(table_of(owner) + _TABLE), (n,), np.int64)


@compiled_within
def is_open(owner, table):
    """Tell whether a method may run now."""
    return table[CLOSED] == 0 and _number_at(_number_at(table_of(owner) + _HELD)) == 0
