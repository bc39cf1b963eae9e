"""Events, dicts of Python's, read into rows by compiled code: no list is made on the way.

Python would pack an event's values by `struct` and look up its names by `map`. Here a dense event
whose names stand in the order of the columns is not looked up at all. The functions give up rather
than raise: the long way, by `Schema`, says why.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, compiled, compiled_within, prefetch
from streamsvm.learners.packing import crc32, list_event
from streamsvm.learners.schema import Schema
from streamsvm.learners.vocabulary import (
    add,
    column_of,
    has_room,
    hash_of,
    is_complete,
    look_ahead,
    look_at,
)
from streamsvm.support import python_objects as py
from streamsvm.support.rows import SparseRows

LONGEST = 256
"""Features an event has at most to be read here."""

# What a reader knows: int64 (_N_PLACES,): types, what `dict_next` writes, then
_AT, _KEY, _VALUE = range(py.N_KINDS, py.N_KINDS + 3)
# the names by column as dict and as list; the table of them; hashed: how many columns; how many
# columns there are room for; how many features an event has at most;
_INDEX, _NAMES, _VOCABULARY, _BUCKETS, _ROOM, _MOST = range(py.N_KINDS + 3, py.N_KINDS + 9)
# and arrays.
_KEYS, _HASHES, _COLUMNS, _GIVEN, _VALUES, _START = range(py.N_KINDS + 9, py.N_KINDS + 15)
_N_PLACES = py.N_KINDS + 15


_LEAST = np.int64(-(2**63))


class Reader(NamedTuple):
    """Arrays that compiled code finds by the address of the first."""

    places: np.ndarray  # int64 (_N_PLACES,)
    keys: np.ndarray  # int64: of dense rows the names by column, (d,); else (LONGEST,)
    hashes: np.ndarray  # int64 (LONGEST,): values' addresses; names' hashes; where new names are
    columns: np.ndarray  # int32 (LONGEST,)
    given: np.ndarray  # float64 (LONGEST,): values
    values: np.ndarray  # float32 (LONGEST,), or the dense row, (1, d)
    start: np.ndarray  # int64 (2,): 0, and how many features a sparse event has


def _reader(schema: Schema, room: int, keys: np.ndarray, values: np.ndarray) -> Reader:
    if schema.buckets is None:
        schema.vocabulary.update()
    arrays = (
        keys,
        np.zeros(LONGEST, np.int64),
        np.zeros(LONGEST, np.int32),
        np.zeros(LONGEST),
        values,
        np.zeros(2, np.int64),
    )
    head = address_of(schema.vocabulary.head)
    most = min(LONGEST, schema.limit)
    objects = (id(schema.index), id(schema.names), head, schema.buckets or 0, room, most)
    addresses = [address_of(array) for array in arrays]
    return Reader(np.array([*py.kinds(), 0, 0, 0, *objects, *addresses], np.int64), *arrays)


def dense_reader(schema: Schema) -> Reader:
    """Return a reader of events with no other features than the known ones; keep the schema."""
    names = np.array([id(name) for name in schema.names], np.int64)
    return _reader(schema, len(names), names, np.zeros((1, len(names)), np.float32))


def sparse_reader(schema: Schema, room: int) -> Reader:
    """Return a reader of events of any features; keep the schema.

    Parameters
    ----------
    schema
        Where new names go.
    room
        Columns there are at most.

    """
    return _reader(schema, room, np.zeros(LONGEST, np.int64), np.zeros(LONGEST, np.float32))


@compiled_within
def _places_at(address):  # type: ignore[no-untyped-def]
    return array_at(address, (_N_PLACES,), np.int64)


@compiled_within
def _next(x, address):  # type: ignore[no-untyped-def]
    at = address + 8 * _AT
    return py.dict_next(x, at, at + 8, at + 16) != 0


@compiled
def read_dense(address, x):  # type: ignore[no-untyped-def]
    """Write an event of known features into the dense row, 0 for the others.

    Parameters
    ----------
    address
        Of a reader's places.
    x
        The event: its address.

    Returns
    -------
    float32 (1, d), a view of the row, and whether it was read: False also for what is not finite.

    """
    places = _places_at(address)
    d = places[_ROOM]
    row = array_at(places[_VALUES], (1, d), np.float32)
    names = array_at(places[_KEYS], (d,), np.int64)
    row[:] = 0.0
    if not py.is_plain(x, places) or py.dict_size(x) > d:
        return row, False
    places[_AT] = t = 0
    while _next(x, address):
        key, column = places[_KEY], t
        if key != names[t]:
            if not py.is_name(key, places):
                return row, False
            if not py.are_equal(key, names[t], places):
                column = column_of(places[_VOCABULARY], key, hash_of(key), places)
                # Of a schema that went on alone, it may be beyond.
                if not 0 <= column < d:
                    return row, False
        value = np.float32(py.number(places[_VALUE], places))
        if not np.isfinite(value):
            return row, False
        row[0, column] = value
        t += 1
    return row, True


@compiled_within
def _list_objects(address, places, x):  # type: ignore[no-untyped-def]
    """List names and values of an event; return how many there are, -1 to give up."""
    keys = array_at(places[_KEYS], (LONGEST,), np.int64)
    objects = array_at(places[_HASHES], (LONGEST,), np.int64)
    if not py.is_plain(x, places) or py.dict_size(x) > places[_MOST]:
        return -1
    places[_AT] = n = 0
    while _next(x, address):
        keys[n], objects[n] = places[_KEY], places[_VALUE]
        # What is at both is needed soon.
        prefetch(array_at(keys[n], (1, 1), np.int64), 0, 0)
        prefetch(array_at(objects[n], (1, 1), np.int64), 0, 0)
        n += 1
    return n


@compiled_within
def _digits(number, text):  # type: ignore[no-untyped-def]
    """Write a whole number to the end of uint8 (n,), as `repr` does; return where it begins."""
    at, rest = text.size, abs(number)
    while rest > 0 or at == text.size:
        at -= 1
        text[at] = 48 + rest % 10
        rest //= 10
    if number < 0:
        at -= 1
        text[at] = 45
    return at


@compiled_within
def _hash_of_text(places, key):  # type: ignore[no-untyped-def]
    """Return the hash of a name, the same in all processes; -1 to give up."""
    if py.kind_of(key) == places[py.TEXT]:
        text = py.text_at(key, places[_START])
        length = array_at(places[_START], (1,), np.int64)[0]
        return crc32(array_at(text, (length,), np.uint8)) if text != 0 else np.int64(-1)
    number = py.whole_number(key)
    digits = array_at(places[_VALUES], (24,), np.uint8)
    # It may be -1, or too large to be told from it; the least one has no positive.
    if number == -1 or number == _LEAST:
        return np.int64(-1)
    return crc32(digits[_digits(number, digits) :])


@compiled_within
def _hash_names(places, n):  # type: ignore[no-untyped-def]
    """Write the column of each name by its text, and give values their signs; -1 to give up."""
    keys = array_at(places[_KEYS], (LONGEST,), np.int64)
    columns = array_at(places[_COLUMNS], (LONGEST,), np.int32)
    given = array_at(places[_GIVEN], (LONGEST,), np.float64)
    for t in range(n):
        hashed = _hash_of_text(places, keys[t])
        if hashed < 0:
            return -1
        columns[t] = hashed % places[_BUCKETS]
        given[t] = -given[t] if hashed >> 31 else given[t]
    return n


@compiled_within
def _find_names(places, n):  # type: ignore[no-untyped-def]
    """Write the column of each name, -1 for the new ones; return how many, or -1 to give up."""
    keys = array_at(places[_KEYS], (LONGEST,), np.int64)
    hashes = array_at(places[_HASHES], (LONGEST,), np.int64)
    columns = array_at(places[_COLUMNS], (LONGEST,), np.int32)
    vocabulary = places[_VOCABULARY]
    for t in range(n):
        hashes[t] = hash_of(keys[t])
        look_ahead(vocabulary, hashes[t])
    for t in range(n):
        look_at(vocabulary, hashes[t])
    new = 0
    for t in range(n):
        columns[t] = column_of(vocabulary, keys[t], hashes[t], places)
        # Of a schema that went on alone.
        if columns[t] >= places[_ROOM]:
            return -1
        if columns[t] < 0:
            hashes[new] = t
            new += 1
    return new


@compiled_within
def _take_values(places, n):  # type: ignore[no-untyped-def]
    """Write the values of what was listed; return False to give up."""
    keys = array_at(places[_KEYS], (LONGEST,), np.int64)
    objects = array_at(places[_HASHES], (LONGEST,), np.int64)
    given = array_at(places[_GIVEN], (LONGEST,), np.float64)
    for t in range(n):
        value = np.float32(py.number(objects[t], places))
        if not np.isfinite(value) or not py.is_name(keys[t], places):
            return False
        given[t] = value
    return True


@compiled_within
def _listed(places, n, d):  # type: ignore[no-untyped-def]
    """Return the event as a sparse row, of length -1 for -1."""
    columns = array_at(places[_COLUMNS], (LONGEST,), np.int32)
    given = array_at(places[_GIVEN], (LONGEST,), np.float64)
    values = array_at(places[_VALUES], (LONGEST,), np.float32)
    start = array_at(places[_START], (2,), np.int64)
    start[0], start[1] = 0, n
    if n > 0:
        start[1] = list_event(columns[:n], given[:n], values[:n])
    return SparseRows(start, columns, values, d)


@compiled_within
def _read(address, places, x):  # type: ignore[no-untyped-def]
    """Return how many features an event has, below 0 to give up, and how many are new."""
    n, new = _list_objects(address, places, x), 0
    if n >= 0 and not _take_values(places, n):
        n = -1
    if n >= 0 and places[_BUCKETS] > 0:
        n = _hash_names(places, n)
    elif n >= 0:
        knows_all = is_complete(places[_VOCABULARY], py.dict_size(places[_INDEX]))
        new = _find_names(places, n) if knows_all else -1
    return (n, new) if new >= 0 else (-1, 0)


@compiled
def read_known(address, x):  # type: ignore[no-untyped-def]
    """Return an event as a sparse row without new features, of length -1 to give up."""
    places = _places_at(address)
    n, _ = _read(address, places, x)
    return _listed(places, n, 0)


@compiled_within
def _comes_before(a, b, places):  # type: ignore[no-untyped-def]
    """Tell whether a new name gets its column before another: see `in_order`."""
    is_whole = py.kind_of(a) == places[py.WHOLE]
    if is_whole != (py.kind_of(b) == places[py.WHOLE]):
        return is_whole
    if is_whole:
        return py.whole_number(a) < py.whole_number(b)
    return py.compare_text(a, b) < 0


@compiled_within
def _admit(places, d, new):  # type: ignore[no-untyped-def]
    """Append the new names to the schema, and give them columns; return False to give up."""
    keys = array_at(places[_KEYS], (LONGEST,), np.int64)
    at = array_at(places[_HASHES], (LONGEST,), np.int64)
    columns = array_at(places[_COLUMNS], (LONGEST,), np.int32)
    if d + new > places[_ROOM] or not has_room(places[_VOCABULARY], new):
        return False
    for i in range(new):
        here = at[i]
        kind = py.kind_of(keys[here])
        if kind == places[py.TUPLE]:
            # Some cannot be compared.
            return False
        if kind == places[py.WHOLE] and py.whole_number(keys[here]) < 0:
            # It may be -1, or too large to be told from it.
            return False
        k = i
        while k > 0 and _comes_before(keys[here], keys[at[k - 1]], places):
            at[k] = at[k - 1]
            k -= 1
        at[k] = here
    for i in range(new):
        if not py.append(places[_INDEX], places[_NAMES], keys[at[i]], d + i):
            return False
        add(places[_VOCABULARY], keys[at[i]])
        columns[at[i]] = d + i
    return True


@compiled
def read_any(address, x):  # type: ignore[no-untyped-def]
    """Return an event as a sparse row, of length -1 to give up; its new features become known."""
    places = _places_at(address)
    d = places[_BUCKETS] if places[_BUCKETS] > 0 else py.dict_size(places[_INDEX])
    n, new = _read(address, places, x)
    if d > places[_ROOM] or (n >= 0 and new > 0 and not _admit(places, d, new)):
        n = -1
    return _listed(places, n, d + new)
