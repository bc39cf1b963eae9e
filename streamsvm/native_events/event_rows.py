"""Events, dicts of Python's, read into rows by compiled code: no list is made on the way.

Python would pack an event's values by `struct` and look up its names by `map`. Here a dense event
whose names stand in the same order as in the last one is not looked up at all, nor is a sparse one
that is learnt after it was predicted. The functions give up rather than raise: the general path, by
`Schema`, says why.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import array_at, compiled, compiled_within, prefetch
from streamsvm.features.packing import crc32, list_event
from streamsvm.native_events import event_reader as its
from streamsvm.native_events import python_objects as py
from streamsvm.native_events.event_reader import LONGEST, column_in_order, places_at
from streamsvm.native_events.vocabulary import (
    add,
    column_of,
    has_room,
    hash_of,
    is_complete,
    look_ahead,
    look_at,
)
from streamsvm.support.rows import SparseRows

_LEAST = np.int64(-(2**63))


@compiled_within
def _next(x, address):
    at = address + 8 * its.AT
    return py.dict_next(x, at, at + 8, at + 16) != 0


@compiled_within
def _list_objects(address, places, x):
    """List names and values of an event; return how many there are, -1 to give up."""
    keys = array_at(places[its.KEYS], (LONGEST,), np.int64)
    objects = array_at(places[its.OBJECTS], (LONGEST,), np.int64)
    if not py.is_plain(x, places) or py.dict_size(x) > places[its.MOST]:
        return -1
    places[its.AT] = n = 0
    while _next(x, address):
        keys[n], objects[n] = places[its.KEY], places[its.VALUE]
        # What is at both is needed soon.
        py.look_ahead(keys[n])
        prefetch(array_at(objects[n], (1, 1), np.int64), 0, 0)
        n += 1
    return n


@compiled_within
def _digits(number, text):
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
def _hash_of_text(places, key):
    """Return the hash of a name, the same in all processes; -1 to give up."""
    if py.kind_of(key) == places[py.TEXT]:
        text = py.text_at(key, places[its.START])
        length = array_at(places[its.START], (1,), np.int64)[0]
        return crc32(array_at(text, (length,), np.uint8)) if text != 0 else np.int64(-1)
    number = py.whole_number(key)
    digits = array_at(places[its.LISTED], (24,), np.uint8)
    # It may be -1, or too large to be told from it; the least one has no positive.
    if number == -1 or number == _LEAST:
        return np.int64(-1)
    return crc32(digits[_digits(number, digits) :])


@compiled_within
def _hash_names(places, n):
    """Write the column of each name by its text, and give values their signs; -1 to give up."""
    keys = array_at(places[its.KEYS], (LONGEST,), np.int64)
    columns = array_at(places[its.FOUND], (LONGEST,), np.int32)
    given = array_at(places[its.GIVEN], (LONGEST,), np.float64)
    signed = array_at(places[its.SIGNED], (LONGEST,), np.float64)
    for t in range(n):
        hashed = _hash_of_text(places, keys[t])
        if hashed < 0:
            return -1
        columns[t] = hashed % places[its.BUCKETS]
        signed[t] = -given[t] if hashed >> 31 else given[t]
    return n


@compiled_within
def _find_names(places, n):
    """Write the column of each name, -1 for the new ones; return how many, or -1 to give up."""
    keys = array_at(places[its.KEYS], (LONGEST,), np.int64)
    hashes = array_at(places[its.HASHES], (LONGEST,), np.int64)
    columns = array_at(places[its.FOUND], (LONGEST,), np.int32)
    vocabulary = places[its.VOCABULARY]
    for t in range(n):
        hashes[t] = hash_of(keys[t])
        look_ahead(vocabulary, hashes[t])
    for t in range(n):
        look_at(vocabulary, hashes[t])
    new = 0
    for t in range(n):
        columns[t] = column_of(vocabulary, keys[t], hashes[t], places)
        # Of a schema that went on alone.
        if columns[t] >= places[its.ROOM]:
            return -1
        if columns[t] < 0:
            hashes[new] = t
            new += 1
    return new


@compiled_within
def _take_values(places, n):
    """Write the values of what was listed; return False to give up."""
    keys = array_at(places[its.KEYS], (LONGEST,), np.int64)
    objects = array_at(places[its.OBJECTS], (LONGEST,), np.int64)
    given = array_at(places[its.GIVEN], (LONGEST,), np.float64)
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
def _list_row(address, n):
    """List the columns and the values of n features in order; of -1 the row gets length -1."""
    places = places_at(address)
    columns = array_at(places[its.FOUND], (LONGEST,), np.int32)
    given = places[its.SIGNED] if places[its.BUCKETS] > 0 else places[its.GIVEN]
    kept = array_at(places[its.KEPT], (LONGEST,), np.uint32)
    ranks = array_at(places[its.RANKS], (LONGEST,), np.int32)
    listed = array_at(places[its.LISTED], (LONGEST,), np.int32)
    values = array_at(places[its.VALUES], (LONGEST,), np.float32)
    start = array_at(places[its.START], (2,), np.int64)
    start[0], start[1] = 0, n
    if n > 0:
        numbers = array_at(given, (LONGEST,), np.float64)
        start[1] = list_event(columns, numbers, n, kept, ranks, listed, values)


@compiled_within
def _listed(places, d):
    """Return the row that was listed last, of d features."""
    start = array_at(places[its.START], (2,), np.int64)
    listed = array_at(places[its.LISTED], (LONGEST,), np.int32)
    values = array_at(places[its.VALUES], (LONGEST,), np.float32)
    return SparseRows(start, listed, values, d)


@compiled_within
def _remember(places, n, new):
    """Keep the names of the event that was listed, so that they can be told by their addresses."""
    keys = array_at(places[its.KEYS], (LONGEST,), np.int64)
    for t in range(n):
        py.store_reference(places[its.HELD], t, keys[t])
    places[its.N_LAST], places[its.NEW_OF_LAST] = n, new
    places[its.D_OF_LAST] = py.list_size(places[its.NAMES])


@compiled_within
def _is_as_before(address, places, x):
    """Tell whether an event is the one that is remembered: all that was found is still there."""
    if not py.is_plain(x, places) or py.dict_size(x) != places[its.N_LAST]:
        return False
    if places[its.NEW_OF_LAST] > 0 and py.list_size(places[its.NAMES]) != places[its.D_OF_LAST]:
        return False
    keys = array_at(places[its.KEYS], (LONGEST,), np.int64)
    given = array_at(places[its.GIVEN], (LONGEST,), np.float64)
    last, value = np.int64(0), 0.0
    places[its.AT] = t = 0
    while _next(x, address):
        if places[its.KEY] != keys[t]:
            return False
        if places[its.VALUE] != last:
            last = places[its.VALUE]
            value = np.float64(np.float32(py.number(last, places)))
        # NaN is not equal to anything.
        if not value == given[t]:
            return False
        t += 1
    return True


@compiled_within
def _list_values(address, places, x):
    # What is remembered is written over.
    places[its.N_LAST] = -1
    n = _list_objects(address, places, x)
    return n if n >= 0 and _take_values(places, n) else -1


@compiled
def _read_names(address, x):
    """Return how many features an event has, below 0 to give up, and how many are new."""
    places = places_at(address)
    n = _list_values(address, places, x)
    knows_all = is_complete(places[its.VOCABULARY], py.list_size(places[its.NAMES]))
    new = _find_names(places, n) if n >= 0 and knows_all else -1
    return (n, new) if new >= 0 else (-1, 0)


@compiled
def _read_hashed(address, x):
    """Return how many features an event has whose names are hashed, below 0 to give up."""
    places = places_at(address)
    n = _list_values(address, places, x)
    return _hash_names(places, n) if n >= 0 else -1


@compiled_within
def _read(address, places, x):
    """Return how many features an event has, below 0 to give up, and how many are new."""
    return (_read_hashed(address, x), 0) if places[its.BUCKETS] > 0 else _read_names(address, x)


@compiled
def read_known(address, x):
    """Return an event as a sparse row without new features, of length -1 to give up."""
    places = places_at(address)
    if not _is_as_before(address, places, x):
        n, new = _read(address, places, x)
        _list_row(address, n)
        _remember(places, n, new)
    return _listed(places, 0)


@compiled_within
def _comes_before(a, b, places):
    """Tell whether a new name gets its column before another: see `in_order`."""
    is_whole = py.kind_of(a) == places[py.WHOLE]
    if is_whole != (py.kind_of(b) == places[py.WHOLE]):
        return is_whole
    if is_whole:
        return py.whole_number(a) < py.whole_number(b)
    return py.compare_text(a, b) < 0


@compiled
def _admit(address, d, new):
    """Append the new names to the schema, and give them columns; return False to give up."""
    places = places_at(address)
    keys = array_at(places[its.KEYS], (LONGEST,), np.int64)
    at = array_at(places[its.HASHES], (LONGEST,), np.int64)
    columns = array_at(places[its.FOUND], (LONGEST,), np.int32)
    if d + new > places[its.ROOM] or not has_room(places[its.VOCABULARY], new):
        return False
    if not is_complete(places[its.VOCABULARY], d):
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
        if not py.append(places[its.NAMES], keys[at[i]]):
            return False
        add(places[its.VOCABULARY], keys[at[i]])
        columns[at[i]] = d + i
        if places[its.N_ORDERED] >= 0:
            array_at(places[its.ORDER], (d + i + 1,), np.int64)[d + i] = keys[at[i]]
            places[its.N_ORDERED] = d + i + 1
    return True


@compiled_within
def _list_new(places, new):
    """Append the names that were new to the row: their columns are the last ones, in order."""
    at = array_at(places[its.HASHES], (LONGEST,), np.int64)
    found = array_at(places[its.FOUND], (LONGEST,), np.int32)
    given = array_at(places[its.GIVEN], (LONGEST,), np.float64)
    listed = array_at(places[its.LISTED], (LONGEST,), np.int32)
    values = array_at(places[its.VALUES], (LONGEST,), np.float32)
    start = array_at(places[its.START], (2,), np.int64)
    for i in range(new):
        if given[at[i]] != 0.0:
            listed[start[1]], values[start[1]] = found[at[i]], given[at[i]]
            start[1] += 1


@compiled
def read_any(address, x):
    """Return an event as a sparse row, of length -1 to give up; its new features become known."""
    places = places_at(address)
    d = places[its.BUCKETS] if places[its.BUCKETS] > 0 else py.list_size(places[its.NAMES])
    is_listed = _is_as_before(address, places, x)
    if is_listed:
        n, new = places[its.N_LAST], places[its.NEW_OF_LAST]
    else:
        n, new = _read(address, places, x)
    if d > places[its.ROOM] or (n >= 0 and new > 0 and not _admit(address, d, new)):
        n = places[its.N_LAST] = -1
    if is_listed and n >= 0:
        _list_new(places, new)
    else:
        _list_row(address, n)
    # If the event comes once more, its names are known, and its row is there.
    places[its.NEW_OF_LAST] = 0
    return _listed(places, d + new)


@compiled_within
def _read_in_order(address, places, x, row):
    """Write an event of known features into a dense row; return False for another one."""
    row[:] = 0.0
    places[its.AT] = t = 0
    while _next(x, address):
        column = column_in_order(places, places[its.KEY], t, row.size)
        if column < 0:
            return False
        value = np.float32(py.number(places[its.VALUE], places))
        if not np.isfinite(value):
            return False
        row[column] = value
        t += 1
    return True


@compiled
def read_dense(address, x, y):
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
    places = places_at(address)
    # How many it knows; not those of a schema that went on alone.
    d = places[its.N_ORDERED]
    row = array_at(places[its.ROW], (d,), np.float32)
    if not py.is_plain(x, places) or py.list_size(places[its.NAMES]) != d:
        return row.reshape(1, d), False
    if py.dict_size(x) <= d and _read_in_order(address, places, x, row):
        return row.reshape(1, d), True
    n, new = _read_names(address, x)
    if y != 0.0 and n >= 0 and new > 0:
        n, d = (n, d + new) if _admit(address, d, new) else (-1, d)
    row = array_at(places[its.ROW], (d,), np.float32)
    row[:] = 0.0
    columns = array_at(places[its.FOUND], (LONGEST,), np.int32)
    given = array_at(places[its.GIVEN], (LONGEST,), np.float64)
    for t in range(n):
        if columns[t] >= 0:
            row[columns[t]] = given[t]
    return row.reshape(1, d), n >= 0
