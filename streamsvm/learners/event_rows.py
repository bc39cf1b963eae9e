"""Events, dicts of Python's, read into rows by compiled code: no list is made on the way.

Python would pack an event's values by `struct` and look up its names by `map`. Here a dense event
whose names stand in the same order as in the last one is not looked up at all. The functions give
up rather than raise: the long way, by `Schema`, says why.
"""

from __future__ import annotations

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
# columns there are room for; how many features an event has at most; how many names are in order,
# -1 for sparse rows;
_INDEX, _NAMES, _VOCABULARY, _BUCKETS, _ROOM, _MOST, _N_ORDERED = range(_VALUE + 1, _VALUE + 8)
# and arrays, which are behind them in the same memory.
_KEYS, _OBJECTS, _HASHES, _COLUMNS, _GIVEN, _START = range(_VALUE + 8, _VALUE + 14)
_LISTED, _VALUES, _ORDER, _GUESS, _ROW = range(_VALUE + 14, _VALUE + 19)
_N_PLACES = _VALUE + 19


_LEAST = np.int64(-(2**63))


# Bytes of an entry of each: addresses of names and of values; hashes, then where new names are;
# columns, int32; values as numbers; 0 and how many features a sparse row has; its columns in order,
# int32, and values, float32; names by column, the column of each place of an event's dict as it
# was last, and a dense row, float32.
_SIZES = {_KEYS: 8, _OBJECTS: 8, _HASHES: 8, _COLUMNS: 4, _GIVEN: 8, _START: 8}
_SIZES |= {_LISTED: 4, _VALUES: 4, _ORDER: 8, _GUESS: 8, _ROW: 4}


def reader_of(schema: Schema, room: int, is_dense: bool) -> np.ndarray:
    """Return the places of a reader of events; keep the schema.

    Parameters
    ----------
    schema
        Where new names go.
    room
        Columns there are at most, no fewer than there are now.
    is_dense
        Whether events become dense rows.

    """
    if schema.buckets is None:
        schema.vocabulary.update()
    numbers = {
        **dict(enumerate(py.kinds().tolist())),
        _INDEX: id(schema.index),
        _NAMES: id(schema.names),
        _VOCABULARY: address_of(schema.vocabulary.head),
        _BUCKETS: schema.buckets or 0,
        _ROOM: room,
        _MOST: min(LONGEST, schema.limit),
        _N_ORDERED: len(schema.names) if is_dense else -1,
    }
    lengths = dict.fromkeys(_SIZES, LONGEST) | dict.fromkeys(
        (_ORDER, _GUESS, _ROW), is_dense * room
    )
    ends = np.cumsum([_N_PLACES, *(-(-lengths[i] * size // 8) for i, size in _SIZES.items())])
    places = np.zeros(int(ends[-1]), np.int64)
    places[list(numbers)] = list(numbers.values())
    places[list(_SIZES)] = address_of(places) + 8 * ends[:-1]
    if is_dense:
        first = int(ends[list(_SIZES).index(_ORDER)])
        places[first : first + len(schema.names)] = [id(name) for name in schema.names]
        places[first + room : first + 2 * room] = np.arange(room)
    return places


@compiled_within
def _places_at(address):  # type: ignore[no-untyped-def]
    return array_at(address, (_N_PLACES,), np.int64)


@compiled_within
def _next(x, address):  # type: ignore[no-untyped-def]
    at = address + 8 * _AT
    return py.dict_next(x, at, at + 8, at + 16) != 0


@compiled_within
def _list_objects(address, places, x):  # type: ignore[no-untyped-def]
    """List names and values of an event; return how many there are, -1 to give up."""
    keys = array_at(places[_KEYS], (LONGEST,), np.int64)
    objects = array_at(places[_OBJECTS], (LONGEST,), np.int64)
    if not py.is_plain(x, places) or py.dict_size(x) > places[_MOST]:
        return -1
    places[_AT] = n = 0
    while _next(x, address):
        keys[n], objects[n] = places[_KEY], places[_VALUE]
        # What is at both is needed soon.
        py.look_ahead(keys[n])
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
    digits = array_at(places[_LISTED], (24,), np.uint8)
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
    objects = array_at(places[_OBJECTS], (LONGEST,), np.int64)
    given = array_at(places[_GIVEN], (LONGEST,), np.float64)
    last, value = np.int64(0), 0.0
    for t in range(n):
        # Of counted words most are one and the same 1.
        if objects[t] != last:
            last, value = objects[t], np.float64(np.float32(py.number(objects[t], places)))
            if not np.isfinite(value):
                return False
        if not py.is_name(keys[t], places):
            return False
        given[t] = value
    return True


@compiled
def _listed(address, n, d):  # type: ignore[no-untyped-def]
    """Return the event as a sparse row, of length -1 for -1."""
    places = _places_at(address)
    columns = array_at(places[_COLUMNS], (LONGEST,), np.int32)
    given = array_at(places[_GIVEN], (LONGEST,), np.float64)
    listed = array_at(places[_LISTED], (LONGEST,), np.int32)
    values = array_at(places[_VALUES], (LONGEST,), np.float32)
    start = array_at(places[_START], (2,), np.int64)
    start[0], start[1] = 0, n
    if n > 0:
        start[1] = list_event(columns, given, n, listed, values)
    return SparseRows(start, listed, values, d)


@compiled_within
def _list_values(address, places, x):  # type: ignore[no-untyped-def]
    n = _list_objects(address, places, x)
    return n if n >= 0 and _take_values(places, n) else -1


@compiled
def _read_names(address, x):  # type: ignore[no-untyped-def]
    """Return how many features an event has, below 0 to give up, and how many are new."""
    places = _places_at(address)
    n = _list_values(address, places, x)
    knows_all = is_complete(places[_VOCABULARY], py.dict_size(places[_INDEX]))
    new = _find_names(places, n) if n >= 0 and knows_all else -1
    return (n, new) if new >= 0 else (-1, 0)


@compiled
def _read_hashed(address, x):  # type: ignore[no-untyped-def]
    """Return how many features an event has whose names are hashed, below 0 to give up."""
    places = _places_at(address)
    n = _list_values(address, places, x)
    return _hash_names(places, n) if n >= 0 else -1


@compiled_within
def _read(address, places, x):  # type: ignore[no-untyped-def]
    """Return how many features an event has, below 0 to give up, and how many are new."""
    return (_read_hashed(address, x), 0) if places[_BUCKETS] > 0 else _read_names(address, x)


@compiled
def read_known(address, x):  # type: ignore[no-untyped-def]
    """Return an event as a sparse row without new features, of length -1 to give up."""
    places = _places_at(address)
    n, _ = _read(address, places, x)
    return _listed(address, n, 0)


@compiled_within
def _comes_before(a, b, places):  # type: ignore[no-untyped-def]
    """Tell whether a new name gets its column before another: see `in_order`."""
    is_whole = py.kind_of(a) == places[py.WHOLE]
    if is_whole != (py.kind_of(b) == places[py.WHOLE]):
        return is_whole
    if is_whole:
        return py.whole_number(a) < py.whole_number(b)
    return py.compare_text(a, b) < 0


@compiled
def _admit(address, d, new):  # type: ignore[no-untyped-def]
    """Append the new names to the schema, and give them columns; return False to give up."""
    places = _places_at(address)
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
        if places[_N_ORDERED] >= 0:
            array_at(places[_ORDER], (d + i + 1,), np.int64)[d + i] = keys[at[i]]
            places[_N_ORDERED] = d + i + 1
    return True


@compiled
def read_any(address, x):  # type: ignore[no-untyped-def]
    """Return an event as a sparse row, of length -1 to give up; its new features become known."""
    places = _places_at(address)
    d = places[_BUCKETS] if places[_BUCKETS] > 0 else py.dict_size(places[_INDEX])
    n, new = _read(address, places, x)
    if d > places[_ROOM] or (n >= 0 and new > 0 and not _admit(address, d, new)):
        n = -1
    return _listed(address, n, d + new)


@compiled_within
def _read_in_order(address, places, x, row):  # type: ignore[no-untyped-def]
    """Write an event of known features into a dense row; return False for another one."""
    row[:] = 0.0
    order = array_at(places[_ORDER], (row.size,), np.int64)
    guess = array_at(places[_GUESS], (row.size,), np.int64)
    places[_AT] = t = 0
    while _next(x, address):
        key, column = places[_KEY], guess[t]
        if key != order[column]:
            if not py.is_name(key, places):
                return False
            if not py.are_equal(key, order[column], places):
                column = column_of(places[_VOCABULARY], key, hash_of(key), places)
                if not 0 <= column < row.size:
                    return False
                guess[t] = column
        value = np.float32(py.number(places[_VALUE], places))
        if not np.isfinite(value):
            return False
        row[column] = value
        t += 1
    return True


@compiled
def read_dense(address, x, y):  # type: ignore[no-untyped-def]
    """Read an event as a dense row, 0 for the features that it lacks.

    Parameters
    ----------
    address
        Of a reader's places.
    x
        The event: its address.
    y
        Its sign: new features become known; or 0: they are left out.

    Returns
    -------
    float32 (1, d), a view of the row, and whether it was read: False to give up.

    """
    places = _places_at(address)
    # How many it knows; not those of a schema that went on alone.
    d = places[_N_ORDERED]
    row = array_at(places[_ROW], (d,), np.float32)
    if not py.is_plain(x, places) or py.dict_size(places[_INDEX]) != d:
        return row.reshape(1, d), False
    if py.dict_size(x) <= d and _read_in_order(address, places, x, row):
        return row.reshape(1, d), True
    n, new = _read_names(address, x)
    if y != 0.0 and n >= 0 and new > 0:
        n, d = (n, d + new) if _admit(address, d, new) else (-1, d)
    row = array_at(places[_ROW], (d,), np.float32)
    row[:] = 0.0
    columns = array_at(places[_COLUMNS], (LONGEST,), np.int32)
    given = array_at(places[_GIVEN], (LONGEST,), np.float64)
    for t in range(n):
        if columns[t] >= 0:
            row[columns[t]] = given[t]
    return row.reshape(1, d), n >= 0
