"""What all fast paths share: compiled methods, and the table of addresses that each one uses.

A table, int64, begins with the fields below; addresses and sizes of a model's arrays follow.
Addresses in a closed table dangle. A method uses its table only while three conditions hold: native
events are on, no thread holds the model's lock, and the table is open. A table is open while its
generation equals that of the model, which changes whenever an array of the model may be replaced.

To open a table, all addresses are computed first. `publish` then writes them in one call during
which no other Python code runs, and only if the generation is still the one that the caller began
with: a signal handler, a finalizer or the hash of a label may have used the model meanwhile.
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

# The address of `availability.SWITCH`; the address of the model's generation, and the generation
# that the table was published for; a word that is always 0; the address of the reader's fields.
SWITCH, MODEL_GENERATION, GENERATION, ZERO, READER = range(5)
N_HEAD = 5

# What a method owns: the address of its table, and the address of a word that must be 0 at a call.
_TABLE, _MUST_BE_0 = 0, 8


class Generation:
    """A number that changes whenever an array of a model may be replaced, which closes its tables.

    Numbers are never used again, so that a thread which is interrupted within `advance` cannot
    bring back a number for which a table was published.

    Attributes
    ----------
    word
        int64 (1,): the number of the current generation.

    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self.word = np.zeros(1, np.int64)
        self.address = address_of(self.word)

    def __getstate__(self) -> bool:
        # A copy counts on its own, as compiled code has the address of this one's word.
        return True

    def __setstate__(self, state: bool) -> None:
        Generation.__init__(self)

    @property
    def now(self) -> int:
        """The number of the current generation."""
        return int(self.word[0])

    def advance(self) -> int:
        """Close all fast paths; return the number of a new generation, for tables to come."""
        self.word[0] = number = next(self._numbers)
        return number


def head_of(generation: Generation, reader: int) -> list[int]:
    """Return the first fields of a closed table; `reader` is the address of a reader's fields."""
    return [SWITCH_ADDRESS, generation.address, -1, 0, reader]


def guarded_by_lock(table: np.ndarray, lock: Any) -> bytes:
    """Return what a method owns that falls back while any thread holds the lock, an RLock."""
    return np.array([address_of(table), id(lock) + (LOCK_OFFSET or 0)], np.int64).tobytes()


def unguarded(table: np.ndarray) -> bytes:
    """Return what a method owns whose caller holds the lock: the guard is the field `ZERO`."""
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
    """Open a table for arrays of `room` columns, unless the model was used since the caller began.

    The fields `fresh` have the generation that the caller began with. `arrays`, the owner of all
    arrays whose addresses are in them, takes the place of the former owner in the list `holder`.

    Return whether the table is open. If not, it has not changed: the generation is another one, or
    compiled code cannot read a name of the schema, or there are more names than columns.
    """
    # This reference delays the freeing of the former arrays, and their finalizers, to the end.
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
    """Replace the owner of a table's arrays, in `holder`, by None if the table is closed."""
    former = holder[0]
    if former is not None:
        _release(address_of(table), len(table), id(holder), id(None))
    del former
