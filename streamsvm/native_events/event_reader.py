"""The table that compiled code reads events by: sizes, addresses, and the scratch of one event."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, compiled_within
from streamsvm.features.schema import Schema
from streamsvm.native_events import python_objects as py
from streamsvm.native_events.vocabulary import Vocabulary, add_missing, column_of, hash_of

LONGEST = 1024
"""The largest number of features of an event that compiled code reads."""

# The fields of the table, int64 (N_FIELDS,). They begin with `python_objects.new_kinds`, and with
# what `dict_next` writes.
POSITION, KEY, VALUE = range(py.N_KINDS, py.N_KINDS + 3)
# The list of names by column; the head of the vocabulary; the number of columns that names are
# hashed to, or 0; the number of columns that rows may have; the largest number of features of an
# event; how many names are in NAME_ORDER, or -1 for sparse rows.
NAME_LIST, VOCABULARY, BUCKETS, ROOM, MAX_FEATURES, N_ORDERED = range(VALUE + 1, VALUE + 7)
# The last event that was read: the list that keeps its names alive, how many names it had (-1: no
# event is remembered), how many of them were new, and how many names the schema had at that time.
LAST_NAMES, LAST_COUNT, LAST_NEW, LAST_WIDTH = range(VALUE + 7, VALUE + 11)
# The addresses of arrays, which follow the fields in the same memory. For each feature of an event:
# its name and value (objects), the hash of its name, its value as a number, its column, its value
# with the sign of a hashed name, and scratch of `list_event`. Once the names have been looked up,
# HASHES holds the positions of the new ones instead.
KEYS, OBJECTS, HASHES, NUMBERS, COLUMNS, SIGNED, SORT_KEYS, SORT_RANKS = range(
    VALUE + 11, VALUE + 19
)
# For a sparse row: 0 and its length, its columns, its values. For dense rows: the names by column,
# the column of the name at each position of the last event, and the row.
ROW_START, ROW_COLUMNS, ROW_VALUES, NAME_ORDER, COLUMN_GUESS, DENSE_ROW = range(
    VALUE + 19, VALUE + 25
)
N_FIELDS = VALUE + 25

# The size of an entry of each array, in bytes.
_SIZES = {
    KEYS: 8, OBJECTS: 8, HASHES: 8, NUMBERS: 8, COLUMNS: 4, SIGNED: 8, SORT_KEYS: 4, SORT_RANKS: 4,
    ROW_START: 8, ROW_COLUMNS: 4, ROW_VALUES: 4, NAME_ORDER: 8, COLUMN_GUESS: 8, DENSE_ROW: 4,
}  # fmt: skip


class Reader(NamedTuple):
    """The table, and references to the objects whose addresses are in it."""

    fields: np.ndarray  # int64
    vocabulary: Vocabulary
    last_names: list[Any]  # the names of the last event; entries beyond its length are older
    layout: dict[int, int]  # the value that each field with an address or a size must have
    owners: tuple[Any, ...]  # other objects at those addresses, kept alive

    def update(self) -> None:
        """Add the schema's new names to the vocabulary, and make room in it for further ones."""
        if not self.fields[BUCKETS]:
            self.vocabulary.update()

    def is_sound(self) -> bool:
        """Tell whether each address and size in the table is still the right one."""
        return all(self.fields[i] == expected for i, expected in self.layout.items())


def reader_of(schema: Schema, room: int, is_dense: bool) -> Reader:
    """Return a reader of events, whose table does not know the names of the schema yet.

    `follow` must be called before it is used. Dense rows have up to `room` columns.
    """
    last_names: list[Any] = [None] * LONGEST
    vocabulary, names = Vocabulary(schema.names), schema.names
    arrays, size = _layout(room if is_dense else 0)
    fields = np.zeros(size, np.int64)
    fields[: py.N_KINDS] = py.new_kinds()
    start = address_of(fields)
    layout = {
        NAME_LIST: id(names),
        VOCABULARY: address_of(vocabulary.head),
        BUCKETS: schema.buckets or 0,
        MAX_FEATURES: min(LONGEST, schema.limit),
        LAST_NAMES: id(last_names),
        **{field: start + 8 * first for field, first in arrays.items()},
    }
    fields[list(layout)] = list(layout.values())
    fields[N_ORDERED] = 0 if is_dense else -1
    if is_dense:
        first = arrays[COLUMN_GUESS]
        fields[first : first + room] = np.arange(room)
    return Reader(fields, vocabulary, last_names, layout, (names, schema))


@cache
def _layout(room: int) -> tuple[dict[int, int], int]:
    """Return where each array begins and where the last one ends, in units of 8 bytes."""
    lengths = dict.fromkeys(_SIZES, LONGEST) | dict.fromkeys(
        (NAME_ORDER, COLUMN_GUESS, DENSE_ROW), room
    )
    first, stop = {}, N_FIELDS
    for field, size in _SIZES.items():
        first[field] = stop
        stop += -(-lengths[field] * size // 8)
    return first, stop


@compiled_within
def fields_at(address):
    """Return the fields at an address."""
    return array_at(address, (N_FIELDS,), np.int64)


@compiled_within
def follow(address, room):
    """Update a reader to the names of its schema, for rows of at most `room` columns.

    A dense reader must have been made for at least as many columns. Return False if there are more
    names than columns, or if a name is of a type that compiled code does not read.
    """
    fields = fields_at(address)
    fields[ROOM], fields[LAST_COUNT] = room, -1
    if fields[BUCKETS] > 0:
        return True
    n = py.list_size(fields[NAME_LIST])
    if n > room or not add_missing(fields[VOCABULARY], fields[NAME_LIST], fields):
        return False
    if fields[N_ORDERED] >= 0:
        order = array_at(fields[NAME_ORDER], (n,), np.int64)
        for i in range(fields[N_ORDERED], n):
            order[i] = py.item_of_list(fields[NAME_LIST], i)
        fields[N_ORDERED] = n
    return True


@compiled_within
def column_in_order(fields, key, t, d):
    """Return the column of a name, which is below d; -1 if it has none.

    The name stands at position t of the event. Names often come in the same order, so the column of
    the name at position t of the last event is tried first.
    """
    order = array_at(fields[NAME_ORDER], (d,), np.int64)
    guess = array_at(fields[COLUMN_GUESS], (d,), np.int64)
    column = guess[t]
    if key == order[column]:
        return column
    if not py.is_name(key, fields):
        return np.int64(-1)
    if not py.are_equal(key, order[column], fields):
        column = np.int64(column_of(fields[VOCABULARY], key, hash_of(key), fields))
        if not 0 <= column < d:
            return np.int64(-1)
        guess[t] = column
    return column
