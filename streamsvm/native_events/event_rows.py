"""Reads events into rows in compiled code, without intermediate Python objects.

Names are not looked up for a dense event whose names come in the same order as in the last one, nor
for a sparse event that is learnt right after it was predicted. An event that compiled code cannot
read falls back to the general path, where `Schema` reads it or says why it is refused.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import array_at, compiled_inner, compiled_within, prefetch
from streamsvm.features.packing import crc32, list_event
from streamsvm.native_events import event_reader as reader
from streamsvm.native_events import python_objects as py
from streamsvm.native_events.event_reader import LONGEST, column_in_order, fields_at
from streamsvm.native_events.vocabulary import (
    add,
    column_of,
    has_room,
    hash_of,
    is_complete,
    prefetch_name,
    prefetch_slot,
)
from streamsvm.support.rows import LARGEST, SparseRows


@compiled_within
def _next(x, address):
    at = address + 8 * reader.POSITION
    return py.dict_next(x, at, at + 8, at + 16) != 0


@compiled_within
def _list_objects(address, fields, x):
    """List names and values of an event; return how many there are, -1 to fall back."""
    keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
    objects = array_at(fields[reader.OBJECTS], (LONGEST,), np.int64)
    if not py.is_plain(x, fields) or py.dict_size(x) > fields[reader.MAX_FEATURES]:
        return -1
    fields[reader.POSITION] = n = 0
    while _next(x, address):
        keys[n], objects[n] = fields[reader.KEY], fields[reader.VALUE]
        py.prefetch_object(keys[n])
        prefetch(array_at(objects[n], (1, 1), np.int64), 0, 0)
        n += 1
    return n


@compiled_within
def _hash_of_text(fields, key):
    """Return the CRC-32 of a name, which is the same in all processes; -1 to fall back."""
    if py.kind_of(key) != fields[py.STR]:
        return np.int64(-1)
    text = py.text_at(key, fields[reader.ROW_START])
    length = array_at(fields[reader.ROW_START], (1,), np.int64)[0]
    return crc32(array_at(text, (length,), np.uint8)) if text != 0 else np.int64(-1)


@compiled_within
def _hash_names(fields, n):
    """Write the column and the signed value of each hashed name; return n, or -1 to fall back."""
    keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
    columns = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
    given = array_at(fields[reader.NUMBERS], (LONGEST,), np.float64)
    signed = array_at(fields[reader.SIGNED], (LONGEST,), np.float64)
    for t in range(n):
        hashed = _hash_of_text(fields, keys[t])
        if hashed < 0:
            return -1
        columns[t] = hashed % fields[reader.BUCKETS]
        signed[t] = -given[t] if hashed >> 31 else given[t]
    return n


@compiled_within
def _find_names(fields, n):
    """Write the column of each name, -1 for a new one; return the number of new ones.

    The positions of the new names replace the first hashes. Return -1 to fall back.
    """
    keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
    hashes = array_at(fields[reader.HASHES], (LONGEST,), np.int64)
    columns = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
    vocabulary = fields[reader.VOCABULARY]
    for t in range(n):
        hashes[t] = hash_of(keys[t])
        prefetch_slot(vocabulary, hashes[t])
    for t in range(n):
        prefetch_name(vocabulary, hashes[t])
    new = 0
    for t in range(n):
        columns[t] = column_of(vocabulary, keys[t], hashes[t], fields)
        # The name was added after the last `follow`.
        if columns[t] >= fields[reader.ROOM]:
            return -1
        if columns[t] < 0:
            # The general path leaves such a name out.
            if py.is_long(keys[t], fields):
                return -1
            hashes[new] = t
            new += 1
    return new


@compiled_within
def _take_values(fields, n):
    """Convert the listed values to numbers; return False to fall back."""
    keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
    objects = array_at(fields[reader.OBJECTS], (LONGEST,), np.int64)
    given = array_at(fields[reader.NUMBERS], (LONGEST,), np.float64)
    last, value = np.int64(0), 0.0
    for t in range(n):
        # In counts of words most values are the same object, 1: convert it once.
        if objects[t] != last:
            last, value = objects[t], py.number(objects[t], fields)
            # Not `>`: NaN must fall back, too.
            if not abs(value) <= LARGEST:
                return False
            value = np.float64(np.float32(value))
        if not py.is_name(keys[t], fields):
            return False
        given[t] = value
    return True


@compiled_inner
def _list_row(address, n):
    """Write n features as a sparse row in column order; with n = -1 the row's length is -1."""
    fields = fields_at(address)
    columns = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
    given = fields[reader.SIGNED] if fields[reader.BUCKETS] > 0 else fields[reader.NUMBERS]
    kept = array_at(fields[reader.SORT_KEYS], (LONGEST,), np.uint32)
    ranks = array_at(fields[reader.SORT_RANKS], (LONGEST,), np.int32)
    listed = array_at(fields[reader.ROW_COLUMNS], (LONGEST,), np.int32)
    values = array_at(fields[reader.ROW_VALUES], (LONGEST,), np.float32)
    start = array_at(fields[reader.ROW_START], (2,), np.int64)
    start[0], start[1] = 0, n
    if n > 0:
        numbers = array_at(given, (LONGEST,), np.float64)
        start[1] = list_event(columns, numbers, n, kept, ranks, listed, values)


@compiled_within
def _listed(fields, d):
    """Return the sparse row that was written last, as one of d features."""
    start = array_at(fields[reader.ROW_START], (2,), np.int64)
    listed = array_at(fields[reader.ROW_COLUMNS], (LONGEST,), np.int32)
    values = array_at(fields[reader.ROW_VALUES], (LONGEST,), np.float32)
    return SparseRows(start, listed, values, d)


@compiled_within
def _remember(fields, n, new):
    """Keep references to the names of this event, so that `_is_as_before` may compare addresses."""
    keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
    for t in range(n):
        py.store_reference(fields[reader.LAST_NAMES], t, keys[t])
    fields[reader.LAST_COUNT], fields[reader.LAST_NEW] = n, new
    fields[reader.LAST_WIDTH] = py.list_size(fields[reader.NAME_LIST])


@compiled_within
def _is_as_before(address, fields, x):
    """Tell whether an event has the names and values of the remembered one, whose row can be used.

    Names are compared by address.
    """
    if not py.is_plain(x, fields) or py.dict_size(x) != fields[reader.LAST_COUNT]:
        return False
    if (
        fields[reader.LAST_NEW] > 0
        and py.list_size(fields[reader.NAME_LIST]) != fields[reader.LAST_WIDTH]
    ):
        return False
    keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
    given = array_at(fields[reader.NUMBERS], (LONGEST,), np.float64)
    last, value = np.int64(0), 0.0
    fields[reader.POSITION] = t = 0
    while _next(x, address):
        if fields[reader.KEY] != keys[t]:
            return False
        if fields[reader.VALUE] != last:
            last = fields[reader.VALUE]
            value = py.number(last, fields)
            if not abs(value) <= LARGEST:
                return False
            value = np.float64(np.float32(value))
        if value != given[t]:
            return False
        t += 1
    return True


@compiled_within
def _list_values(address, fields, x):
    # The buffers of the remembered event are overwritten.
    fields[reader.LAST_COUNT] = -1
    n = _list_objects(address, fields, x)
    return n if n >= 0 and _take_values(fields, n) else -1


@compiled_inner
def _read_names(address, x):
    """Return the numbers of features and of new features of an event; below 0 to fall back."""
    fields = fields_at(address)
    n = _list_values(address, fields, x)
    knows_all = is_complete(fields[reader.VOCABULARY], py.list_size(fields[reader.NAME_LIST]))
    new = _find_names(fields, n) if n >= 0 and knows_all else -1
    return (n, new) if new >= 0 else (-1, 0)


@compiled_inner
def _read_hashed(address, x):
    """Return the number of features of an event with hashed names; below 0 to fall back."""
    fields = fields_at(address)
    n = _list_values(address, fields, x)
    return _hash_names(fields, n) if n >= 0 else -1


@compiled_within
def _read(address, fields, x):
    """Return the numbers of features and of new features of an event; below 0 to fall back."""
    return (_read_hashed(address, x), 0) if fields[reader.BUCKETS] > 0 else _read_names(address, x)


@compiled_inner
def read_known(address, x):
    """Return an event as a sparse row without its new features; its length is -1 to fall back."""
    fields = fields_at(address)
    if not _is_as_before(address, fields, x):
        n, new = _read(address, fields, x)
        _list_row(address, n)
        _remember(fields, n, new)
    return _listed(fields, 0)


@compiled_within
def _comes_before(a, b, fields):
    """Tell whether new name a gets its column before new name b: see `schema.in_order`."""
    is_int = py.kind_of(a) == fields[py.INT]
    if is_int != (py.kind_of(b) == fields[py.INT]):
        return is_int
    if is_int:
        return py.whole_number(a, fields)[0] < py.whole_number(b, fields)[0]
    return py.compare_text(a, b) < 0


@compiled_inner
def _admit(address, d, new):
    """Append the new names to the schema and write their columns; return False to fall back."""
    fields = fields_at(address)
    keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
    at = array_at(fields[reader.HASHES], (LONGEST,), np.int64)
    columns = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
    if d + new > fields[reader.ROOM] or not has_room(fields[reader.VOCABULARY], new):
        return False
    if not is_complete(fields[reader.VOCABULARY], d):
        return False
    for i in range(new):
        here = at[i]
        k = i
        while k > 0 and _comes_before(keys[here], keys[at[k - 1]], fields):
            at[k] = at[k - 1]
            k -= 1
        at[k] = here
    for i in range(new):
        if not py.append(fields[reader.NAME_LIST], keys[at[i]]):
            return False
        add(fields[reader.VOCABULARY], keys[at[i]])
        columns[at[i]] = d + i
        if fields[reader.N_ORDERED] >= 0:
            array_at(fields[reader.NAME_ORDER], (d + i + 1,), np.int64)[d + i] = keys[at[i]]
            fields[reader.N_ORDERED] = d + i + 1
    return True


@compiled_within
def _list_new(fields, new):
    """Append the new features to the row; their columns follow all others, in order."""
    at = array_at(fields[reader.HASHES], (LONGEST,), np.int64)
    found = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
    given = array_at(fields[reader.NUMBERS], (LONGEST,), np.float64)
    listed = array_at(fields[reader.ROW_COLUMNS], (LONGEST,), np.int32)
    values = array_at(fields[reader.ROW_VALUES], (LONGEST,), np.float32)
    start = array_at(fields[reader.ROW_START], (2,), np.int64)
    for i in range(new):
        if given[at[i]] != 0.0:
            listed[start[1]], values[start[1]] = found[at[i]], given[at[i]]
            start[1] += 1


@compiled_inner
def read_any(address, x):
    """Return an event as a sparse row, and append its new names to the schema.

    The length of the row is -1 to fall back.
    """
    fields = fields_at(address)
    d = (
        fields[reader.BUCKETS]
        if fields[reader.BUCKETS] > 0
        else py.list_size(fields[reader.NAME_LIST])
    )
    is_listed = _is_as_before(address, fields, x)
    if is_listed:
        n, new = fields[reader.LAST_COUNT], fields[reader.LAST_NEW]
    else:
        n, new = _read(address, fields, x)
    if d > fields[reader.ROOM] or (n >= 0 and new > 0 and not _admit(address, d, new)):
        n = fields[reader.LAST_COUNT] = -1
    if is_listed and n >= 0:
        _list_new(fields, new)
    else:
        _list_row(address, n)
    # If the same event comes again, its names are in the schema and its row is complete.
    fields[reader.LAST_NEW] = 0
    return _listed(fields, d + new)


@compiled_within
def _read_in_order(address, fields, x, row):
    """Write an event into a dense row; return False if a feature is new or cannot be read."""
    row[:] = np.nan
    fields[reader.POSITION] = t = 0
    while _next(x, address):
        column = column_in_order(fields, fields[reader.KEY], t, row.size)
        if column < 0:
            return False
        value = py.number(fields[reader.VALUE], fields)
        if not abs(value) <= LARGEST:
            return False
        row[column] = value
        t += 1
    return True


@compiled_inner
def read_dense(address, x, y):
    """Read the event at address x as a dense row, NaN for the features that it lacks.

    `address` is that of a reader's fields. If y is 0, new features are left out; else their names
    are appended to the schema. Return a view of the reader's row, float32 (1, d), and whether the
    event was read: False to fall back.
    """
    fields = fields_at(address)
    # The schema has more names than the reader if the general path has learnt new ones.
    d = fields[reader.N_ORDERED]
    row = array_at(fields[reader.DENSE_ROW], (d,), np.float32)
    if not py.is_plain(x, fields) or py.list_size(fields[reader.NAME_LIST]) != d:
        return row.reshape(1, d), False
    if py.dict_size(x) <= d and _read_in_order(address, fields, x, row):
        return row.reshape(1, d), True
    n, new = _read_names(address, x)
    if y != 0.0 and n >= 0 and new > 0:
        n, d = (n, d + new) if _admit(address, d, new) else (-1, d)
    row = array_at(fields[reader.DENSE_ROW], (d,), np.float32)
    row[:] = np.nan
    columns = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
    given = array_at(fields[reader.NUMBERS], (LONGEST,), np.float64)
    for t in range(n):
        if columns[t] >= 0:
            row[columns[t]] = given[t]
    return row.reshape(1, d), n >= 0
