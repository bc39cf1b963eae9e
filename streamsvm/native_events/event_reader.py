"""What compiled code must know to read events: addresses and numbers in one table, its fields."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, compiled_within
from streamsvm.features.schema import Schema
from streamsvm.native_events import python_objects as py
from streamsvm.native_events.vocabulary import Vocabulary, add_missing, column_of, hash_of

LONGEST = 1024
"""Features an event has at most to be read by compiled code."""

# The fields, int64 (N_FIELDS,): `python_objects.new_kinds`, what `dict_next` writes, then
POSITION, KEY, VALUE = range(py.N_KINDS, py.N_KINDS + 3)
# the list of names by column; the head of the vocabulary; the number of columns of hashed names, or
# 0; columns there are room for; how many features an event has at most; how many names the order
# below has, -1 for sparse rows;
NAME_LIST, VOCABULARY, BUCKETS, ROOM, MAX_FEATURES, N_ORDERED = range(VALUE + 1, VALUE + 7)
# of the last event that was read: the list that keeps its names alive, how many they are (-1: it is
# not remembered), how many were new, and how many names were known then;
LAST_NAMES, LAST_COUNT, LAST_NEW, LAST_WIDTH = range(VALUE + 7, VALUE + 11)
# then the addresses of arrays, which follow the fields in the same memory. Of an event: its names
# and values (objects), hashes of the names and then the positions of the new ones, the values as
# numbers, the columns, the values with the signs of hashed names, scratch of `list_event`.
KEYS, OBJECTS, HASHES, NUMBERS, COLUMNS, SIGNED, SORT_KEYS, SORT_RANKS = range(
    VALUE + 11, VALUE + 19
)
# Of a sparse row: 0 and its length, its columns, its values. Of dense rows: the names by column,
# the column of the name at each position of the last event, and the row.
ROW_START, ROW_COLUMNS, ROW_VALUES, NAME_ORDER, COLUMN_GUESS, DENSE_ROW = range(
    VALUE + 19, VALUE + 25
)
N_FIELDS = VALUE + 25

# Bytes of an entry of each array.
_SIZES = {
    KEYS: 8, OBJECTS: 8, HASHES: 8, NUMBERS: 8, COLUMNS: 4, SIGNED: 8, SORT_KEYS: 4, SORT_RANKS: 4,
    ROW_START: 8, ROW_COLUMNS: 4, ROW_VALUES: 4, NAME_ORDER: 8, COLUMN_GUESS: 8, DENSE_ROW: 4,
}  # fmt: skip


class Reader(NamedTuple):
    """The fields, and what their addresses lead to besides the schema."""

    fields: np.ndarray  # int64
    vocabulary: Vocabulary
    last_names: list[Any]  # those of the last event, then some of longer ones before
    layout: dict[int, int]  # what fields with addresses and sizes must be
    owners: tuple[Any, ...]  # what those addresses lead to, kept alive

    def update(self) -> None:
        """Have the vocabulary follow the schema, and make room in it for further names."""
        if not self.fields[BUCKETS]:
            self.vocabulary.update()

    def is_sound(self) -> bool:
        """Tell whether each address is still that of what it shall lead to."""
        return all(self.fields[i] == expected for i, expected in self.layout.items())


def reader_of(schema: Schema, room: int, is_dense: bool) -> Reader:
    """Return a reader of events; it is of use once `follow` was called.

    Parameters
    ----------
    schema
        Where new names go.
    room
        Columns that dense rows have at most.
    is_dense
        Whether events become dense rows.

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
    """Return where the arrays begin and where the last one ends, in numbers of 8 bytes."""
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
    """Have a reader follow its schema, which may have grown, for rows of so many columns.

    Return False if a name cannot be handled, or there are more names than columns; a dense reader
    was made for at least as many.
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
    """Return the column of name t of an event, one of the first d; -1 if it has none.

    The guess is the column of name t of the last event: names often come in the same order.
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
