"""What compiled code must know to read events: addresses and numbers in one table, its places."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, compiled_within
from streamsvm.features.schema import Schema
from streamsvm.native_events import python_objects as py
from streamsvm.native_events.vocabulary import column_of, hash_of

LONGEST = 1024
"""Features an event has at most to be read by compiled code."""

# Places, int64 (N_PLACES,): types, what `dict_next` writes, then
AT, KEY, VALUE = range(py.N_KINDS, py.N_KINDS + 3)
# the list of names by column; the table of them; hashed: how many columns; how many columns there
# are room for; how many features an event has at most; how many names are in order, -1 for sparse
# rows; the list of the names of the last event, how many they are (-1: it is not remembered), how
# many of them were new, and how many names were known then;
NAMES, VOCABULARY, BUCKETS, ROOM, MOST, N_ORDERED = range(VALUE + 1, VALUE + 7)
HELD, N_LAST, NEW_OF_LAST, D_OF_LAST = range(VALUE + 7, VALUE + 11)
# and arrays, which are behind them in the same memory.
KEYS, OBJECTS, HASHES, GIVEN, FOUND, SIGNED, KEPT, RANKS = range(VALUE + 11, VALUE + 19)
START, LISTED, VALUES, ORDER, GUESS, ROW = range(VALUE + 19, VALUE + 25)
N_PLACES = VALUE + 25

# Bytes of an entry of each: addresses of names and of values; hashes, then where new names are;
# values as numbers; columns, int32; hashed: values with their signs; room for `list_event`;
_SIZES = {KEYS: 8, OBJECTS: 8, HASHES: 8, GIVEN: 8, FOUND: 4, SIGNED: 8, KEPT: 4, RANKS: 4}
# 0 and how many features a sparse row has; its columns in order, int32, and values, float32; names
# by column, the column of each place of an event's dict as it was last, and a dense row, float32.
_SIZES |= {START: 8, LISTED: 4, VALUES: 4, ORDER: 8, GUESS: 8, ROW: 4}

_NUMBERS = [NAMES, VOCABULARY, BUCKETS, MOST, N_ORDERED, HELD]
"""The places that a new reader knows."""


class Reader(NamedTuple):
    """A table, and what it needs kept alive beside the schema."""

    places: np.ndarray
    order: np.ndarray
    """Addresses of names by column: that part of it; empty for sparse rows."""
    held: list[Any]
    """The names of the last event, and behind them some of longer ones before."""

    def update(self, schema: Schema, room: int) -> None:
        """Follow the schema, which others may have extended; it is for so many columns now."""
        if schema.buckets is None:
            schema.vocabulary.update()
        self.places[ROOM], self.places[N_LAST] = room, -1
        if len(self.order):
            known, names = int(self.places[N_ORDERED]), schema.names[:room]
            self.order[known : len(names)] = [id(name) for name in names[known:]]
            self.places[N_ORDERED] = len(names)


def reader_of(schema: Schema, room: int, is_dense: bool) -> Reader:
    """Return a reader of events, which must be updated first; keep the schema.

    Parameters
    ----------
    schema
        Where new names go.
    room
        Columns that dense rows have at most.
    is_dense
        Whether events become dense rows.

    """
    held: list[Any] = [None] * LONGEST
    arrays, first, size = _layout(room if is_dense else 0)
    places = np.zeros(size, np.int64)
    places[: py.N_KINDS] = py.kinds()
    places[_NUMBERS] = (
        id(schema.names),
        address_of(schema.vocabulary.head),
        schema.buckets or 0,
        min(LONGEST, schema.limit),
        0 if is_dense else -1,
        id(held),
    )
    places[list(_SIZES)] = address_of(places) + arrays
    order = places[first : first + is_dense * room]
    if is_dense:
        places[first + room : first + 2 * room] = np.arange(room)
    return Reader(places, order, held)


@cache
def _layout(room: int) -> tuple[np.ndarray, int, int]:
    """Return where the arrays begin, in bytes; where the order does, and the length, in numbers."""
    lengths = dict.fromkeys(_SIZES, LONGEST) | dict.fromkeys((ORDER, GUESS, ROW), room)
    ends = np.cumsum([N_PLACES, *(-(-lengths[i] * size // 8) for i, size in _SIZES.items())])
    return 8 * ends[:-1], int(ends[list(_SIZES).index(ORDER)]), int(ends[-1])


@compiled_within
def places_at(address):
    """Return the places at an address."""
    return array_at(address, (N_PLACES,), np.int64)


@compiled_within
def column_in_order(places, key, t, d):
    """Return the column of name t of an event, of d in order; -1 if it has none.

    The guess is that of the last event, whose names stood in the same order.
    """
    order = array_at(places[ORDER], (d,), np.int64)
    guess = array_at(places[GUESS], (d,), np.int64)
    column = guess[t]
    if key == order[column]:
        return column
    if not py.is_name(key, places):
        return np.int64(-1)
    if not py.are_equal(key, order[column], places):
        column = np.int64(column_of(places[VOCABULARY], key, hash_of(key), places))
        if not 0 <= column < d:
            return np.int64(-1)
        guess[t] = column
    return column
