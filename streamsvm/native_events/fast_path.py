"""What fast paths have in common: methods in machine code that know a table of addresses.

A table, int64, begins with the fields below; what follows are addresses and sizes of a model's
arrays. Addresses in a closed table dangle. Three things must hold for a method to use its table:
native events are on, nobody holds the model's lock, and the table is open: its generation is that
of the model, which counts on whenever an array of the model may be replaced.

All addresses are computed first. `publish` then writes them to the table in one call during which
no other Python code runs, and only if the generation is still the one that the caller began with: a
signal handler, a finalizer or the hash of a label may have used the model in between.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from streamsvm._compile import address_of, array_at, compiled_with_python, compiled_within
from streamsvm.native_events import python_objects as py
from streamsvm.native_events.availability import LOCK_OFFSET, SWITCH_ADDRESS
from streamsvm.native_events.event_reader import follow
from streamsvm.native_events.python_methods import table_of

# The address of `availability.SWITCH`; that of the generation of the model, and the generation that
# the table was published for; a word that stays 0; the address of the reader's fields.
SWITCH, MODEL_GENERATION, GENERATION, ZERO, READER = range(5)
N_HEAD = 5

_TABLE, _MUST_BE_0 = 0, 8


class Generation:
    """A number that changes whenever the arrays of a model may: fast paths of another are closed.

    No number comes twice, so that a caller who was interrupted between two steps of `advance` never
    brings back one that somebody remembers.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._now = np.zeros(1, np.int64)
        self.address = address_of(self._now)

    @property
    def now(self) -> int:
        """The number."""
        return int(self._now[0])

    def advance(self) -> int:
        """Close all fast paths of the model; return the number for which one may be published."""
        self._now[0] = number = next(self._numbers)
        return number


def head_of(generation: Generation, reader: int) -> list[int]:
    """Return the first fields of a closed table, with the address of a reader's fields."""
    return [SWITCH_ADDRESS, generation.address, -1, 0, reader]


def guarded_by_lock(table: np.ndarray, lock: Any) -> bytes:
    """Return what a method must know that runs only while nobody holds the lock, an RLock."""
    return np.array([address_of(table), id(lock) + (LOCK_OFFSET or 0)], np.int64).tobytes()


def unguarded(table: np.ndarray) -> bytes:
    """Return what a method must know that is called with the lock held."""
    address = address_of(table)
    return np.array([address, address + 8 * ZERO], np.int64).tobytes()


@compiled_within
def _word_at(address):
    return array_at(address, (1,), np.int64)[0]


@compiled_within
def table_at(owner, n):
    """Return the table of a method, int64 (n,)."""
    return array_at(_word_at(table_of(owner) + _TABLE), (n,), np.int64)


@compiled_within
def is_open(owner, table):
    """Tell whether a method may use its table now."""
    return (
        table[GENERATION] == _word_at(table[MODEL_GENERATION])
        and _word_at(table[SWITCH]) != 0
        and _word_at(_word_at(table_of(owner) + _MUST_BE_0)) == 0
    )


@compiled_with_python
def _publish(table, fresh, n, room, holder, arrays):
    fields, found = array_at(table, (n,), np.int64), array_at(fresh, (n,), np.int64)
    if found[GENERATION] != _word_at(found[MODEL_GENERATION]) or not follow(found[READER], room):
        return False
    for i in range(n):
        fields[i] = found[i]
    py.store_reference(holder, 0, arrays)
    return True


def publish(
    table: np.ndarray, fresh: np.ndarray, room: int, holder: list[Any], arrays: Any
) -> bool:
    """Open a table for arrays of its model, unless the model was used since the caller began.

    Parameters
    ----------
    table
        int64 (n,), written.
    fresh
        int64 (n,): the fields to be; its generation is that which the caller began with.
    room
        Columns that the arrays have.
    holder
        A list of one object: what the addresses in the table lead to; replaced.
    arrays
        The owner of all that `fresh` leads to.

    Returns
    -------
    Whether the table is open. If not, nothing has changed: the generation is another one, or a name
    of the schema cannot be handled, or there are more names than columns.

    """
    # Held until the end: what is replaced is not freed, and no finalizer runs, in between.
    former = holder[0]
    addresses = address_of(table), address_of(fresh)
    is_published: bool = _publish(*addresses, len(fresh), room, id(holder), id(arrays))
    del former
    return is_published


@compiled_with_python
def _release(table, n, holder, nothing):
    fields = array_at(table, (n,), np.int64)
    if fields[GENERATION] != _word_at(fields[MODEL_GENERATION]):
        py.store_reference(holder, 0, nothing)


def release(table: np.ndarray, holder: list[Any]) -> None:
    """Let go of the arrays that a table leads to, if it is closed."""
    former = holder[0]
    if former is not None:
        _release(address_of(table), len(table), id(holder), id(None))
    del former
