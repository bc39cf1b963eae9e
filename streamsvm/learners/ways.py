"""What short ways have in common: methods in machine code that know a table of addresses.

A table, int64, begins with whether the way is closed: what a closed one leads to is somebody else's
memory, or nobody's. A method knows where its table is, and where it is written whether it must not
run now: that somebody holds a lock, or that the way is closed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import JIT, address_of, array_at, compiled_within
from streamsvm.learners.shared import HOLDER
from streamsvm.support.python_methods import table_of
from streamsvm.support.python_objects import HAS_LOCK

CLOSED = 0
"""The first entry of a table: not 0 while the way is closed."""

POSSIBLE = JIT and HAS_LOCK and HOLDER is not None
"""Whether there can be short ways."""

_TABLE, _HELD = 0, 8


class _GiveUp:
    def __repr__(self) -> str:
        return "GIVE_UP"


GIVE_UP: Any = _GiveUp()
"""In the place of a result: the event must go the long way."""


def known_by_free(table: np.ndarray, lock: Any) -> bytes:
    """Return what a method must know that runs while nobody holds the lock, an RLock."""
    return np.array([address_of(table), id(lock) + (HOLDER or 0)], np.int64).tobytes()


def known_by_holder(table: np.ndarray) -> bytes:
    """Return what a method must know for who holds the lock, and so is the only one at work."""
    place = address_of(table)
    return np.array([place, place + 8 * CLOSED], np.int64).tobytes()


@compiled_within
def _number_at(address):  # type: ignore[no-untyped-def]
    return array_at(address, (1,), np.int64)[0]


@compiled_within
def table_at(owner, n):  # type: ignore[no-untyped-def]
    """Return the table of a method, n numbers."""
    return array_at(_number_at(table_of(owner) + _TABLE), (n,), np.int64)


@compiled_within
def is_open(owner, table):  # type: ignore[no-untyped-def]
    """Tell whether a method may run now."""
    return table[CLOSED] == 0 and _number_at(_number_at(table_of(owner) + _HELD)) == 0
