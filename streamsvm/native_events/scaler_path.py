"""The fast path of single events of a `StandardScaler`: compiled methods, and their binding."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from streamsvm._compile import address_of, array_at, compiled_for_c, compiled_inner, compiled_within
from streamsvm.errors import StaleAddressError
from streamsvm.features.schema import Schema
from streamsvm.native_events import availability
from streamsvm.native_events import event_reader as reader
from streamsvm.native_events import python_objects as py
from streamsvm.native_events.event_reader import LONGEST, ROOM, fields_at, reader_of
from streamsvm.native_events.fast_path import (
    GENERATION,
    N_HEAD,
    READER,
    Generation,
    guarded_by_lock,
    head_of,
    is_open,
    publish,
    release,
    table_at,
)
from streamsvm.native_events.python_methods import methods_of, new_reference
from streamsvm.native_events.vocabulary import add, column_of, has_room, hash_of, is_complete
from streamsvm.support.feature_statistics import N_ROWS, is_far, learn_value, scaled
from streamsvm.support.rows import LARGEST

# The fields of the table, int64 (_N,), after those that all tables begin with: the addresses of the
# statistics, float64 (N_ROWS, room), and of the limits, float64 (2,); the room; the number of
# features; the objects that the methods return for an event that was learnt, and for one that falls
# back.
_STATISTICS, _LIMITS, _ROOM, _N_FEATURES, _LEARNT, _FALL_BACK = range(N_HEAD, N_HEAD + 6)
_N = N_HEAD + 6

CLIP, REJECT = range(2)
"""The limits, in standard deviations from the mean: where values are clipped, and where an event is
refused; infinite if there is no such limit."""


ONE_HOT, UNKNOWN = -1, -2
"""In place of a column: a one-hot feature, which is not scaled; a feature not learnt yet."""

_UNREADABLE = -3
_EQUALS_SIGN = ord("=")


@compiled_within
def _column(fields, key, guess, d):
    """Return the column of a name, below d; or `ONE_HOT`, `UNKNOWN`, `_UNREADABLE`.

    The guess is tried first: what was found for the same position of the last event.
    """
    if 0 <= guess < d and key == py.item_of_list(fields[reader.NAME_LIST], guess):
        return guess
    if not py.is_name(key, fields):
        return np.int64(_UNREADABLE)
    if py.kind_of(key) == fields[py.STR] and py.contains(key, _EQUALS_SIGN):
        return np.int64(ONE_HOT)
    column = np.int64(column_of(fields[reader.VOCABULARY], key, hash_of(key), fields))
    if not 0 <= column < d:
        return np.int64(UNKNOWN)
    return column


@compiled_inner
def _list_event(address, d, x):
    """Write names, columns and values of an event; return how many it has, -1 to fall back."""
    fields = fields_at(address)
    # The reader and the statistics cover all names of the schema.
    if not is_complete(fields[reader.VOCABULARY], d) or py.list_size(fields[reader.NAME_LIST]) != d:
        return -1
    if not py.is_plain(x, fields) or py.dict_size(x) > LONGEST:
        return -1
    keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
    columns = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
    given = array_at(fields[reader.NUMBERS], (LONGEST,), np.float64)
    at = address + 8 * reader.POSITION
    fields[reader.POSITION] = n = 0
    while py.dict_next(x, at, at + 8, at + 16) != 0:
        keys[n] = fields[reader.KEY]
        columns[n] = _column(fields, keys[n], np.int64(columns[n]), d)
        given[n] = py.number(fields[reader.VALUE], fields)
        # Not `>`: NaN must fall back, too.
        if columns[n] == _UNREADABLE or not abs(given[n]) <= LARGEST:
            return -1
        n += 1
    return n


@compiled_within
def _admit(fields, table, n):
    """Give the new names among the n of an event the next columns; return False to fall back."""
    keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
    columns = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
    new = 0
    for t in range(n):
        if columns[t] == UNKNOWN:
            if py.is_long(keys[t], fields):
                return False
            new += 1
    if new == 0:
        return True
    d = table[_N_FEATURES]
    if d + new > fields[reader.ROOM] or not has_room(fields[reader.VOCABULARY], new):
        return False
    for t in range(n):
        if columns[t] == UNKNOWN:
            if not py.append(fields[reader.NAME_LIST], keys[t]):
                return False
            add(fields[reader.VOCABULARY], keys[t])
            columns[t] = d
            d += 1
            table[_N_FEATURES] = d
    return True


@compiled_for_c
def learn(owner, x):
    """Learn an event; return the object `_LEARNT` or `_FALL_BACK`."""
    table = table_at(owner, _N)
    n = _list_event(table[READER], table[_N_FEATURES], x) if is_open(owner, table) else -1
    if n < 0:
        return new_reference(table[_FALL_BACK])
    fields = fields_at(table[READER])
    statistics = array_at(table[_STATISTICS], (N_ROWS, table[_ROOM]), np.float64)
    limits = array_at(table[_LIMITS], (2,), np.float64)
    columns = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
    given = array_at(fields[reader.NUMBERS], (LONGEST,), np.float64)
    if limits[REJECT] < np.inf:
        # The general path says which feature is too far.
        for t in range(n):
            c = columns[t]
            if c >= 0 and is_far(statistics, c, given[t], limits[REJECT]):
                return new_reference(table[_FALL_BACK])
    # The event is learnt: only now may the names change.
    if not _admit(fields, table, n):
        return new_reference(table[_FALL_BACK])
    for t in range(n):
        if columns[t] >= 0:
            learn_value(statistics, columns[t], given[t], limits[CLIP])
    return new_reference(table[_LEARNT])


@compiled_for_c
def transform(owner, x):
    """Return the scaled event, a new dict, or the object `_FALL_BACK`."""
    table = table_at(owner, _N)
    # Before the table is checked: a new dict may start the garbage collector, whose finalizers may
    # use the scaler.
    event = py.new_dict()
    d = table[_N_FEATURES]
    n = _list_event(table[READER], d, x) if event != 0 and is_open(owner, table) else -1
    if n >= 0:
        fields = fields_at(table[READER])
        statistics = array_at(table[_STATISTICS], (N_ROWS, table[_ROOM]), np.float64)
        clip = array_at(table[_LIMITS], (2,), np.float64)[CLIP]
        keys = array_at(fields[reader.KEYS], (LONGEST,), np.int64)
        columns = array_at(fields[reader.COLUMNS], (LONGEST,), np.int32)
        given = array_at(fields[reader.NUMBERS], (LONGEST,), np.float64)
        for t in range(n):
            c = columns[t]
            value = given[t] if c == ONE_HOT else 0.0
            if c >= 0:
                value = scaled(statistics, c, given[t], clip)
            # The event holds its names during the call: no other Python code runs meanwhile.
            if not py.put_number(event, keys[t], value):
                n = -1
                break
    if n < 0:
        py.decref(event)
        return new_reference(table[_FALL_BACK])
    return event


@cache
def _methods() -> tuple[Callable[..., Any], Callable[..., Any]]:
    return methods_of(learn), methods_of(transform)


class ScalerFastPath:
    """Learns and scales events by compiled methods, new features while there is room for them.

    ``learn(x)`` returns True, ``transform(x)`` a dict. Both return None, and change nothing, if
    they cannot read the event, while the path is closed, and while any thread holds the lock.

    Parameters
    ----------
    schema
        The names of the features.
    lock
        The scaler's RLock, held while statistics are changed elsewhere.
    generation
        The scaler's generation.
    limits
        float64 (2,): the scaler's clip and reject, infinite if it has no such limit.

    """

    def __init__(
        self, schema: Schema, lock: Any, generation: Generation, limits: np.ndarray
    ) -> None:
        self.schema, self._generation = schema, generation
        self._limits = limits
        # Of names alone, as for sparse rows: there may be many more than in an event.
        self._reader = reader_of(schema, 0, False)
        self._table = np.zeros(_N, np.int64)
        self._table[:N_HEAD] = head_of(generation, address_of(self._reader.fields))
        # Methods of a closed table return these, too.
        self._table[_LEARNT:] = id(True), id(None)
        # The statistics, or None.
        self._arrays: list[Any] = [None]
        # All objects whose addresses the methods use.
        kept = (self._table, self._reader, self._arrays, generation, lock, limits)
        owned = guarded_by_lock(self._table, lock)
        self.learn, self.transform = (new(owned, kept) for new in _methods())

    @property
    def is_open(self) -> bool:
        """Whether the methods use their table: the path is bound to the current statistics."""
        return availability.is_on() and bool(self._table[GENERATION] == self._generation.now)

    def is_bound_to(self, statistics: np.ndarray) -> bool:
        """Tell whether the path is open and bound to these statistics, with all features."""
        n = len(self.schema)
        return self._is_open_for(statistics) and bool(self._table[_N_FEATURES] == n)

    def _is_open_for(self, statistics: np.ndarray) -> bool:
        return self.is_open and self._arrays[0] is statistics

    def is_for(self, schema: Schema) -> bool:
        """Tell whether the path can be bound to statistics of that schema's features."""
        return schema is self.schema

    def follow(self, statistics: np.ndarray) -> bool:
        """Add new features to an open path bound to these statistics; False: it must be bound."""
        n = len(self.schema)
        if n > statistics.shape[1] or not self._is_open_for(statistics):
            return False
        if not self._reader.vocabulary.update():
            return False
        self._reader.fields[ROOM] = self._most(statistics)
        # Nobody reads an event meanwhile: the lock is held. If a signal handler binds the path or
        # adds features here, this number is too small: then events take the general path once.
        self._table[_N_FEATURES] = n
        return True

    def release(self) -> None:
        """Drop the reference to the statistics of a closed path; the caller holds the lock."""
        release(self._table, self._arrays)

    def bind(self, statistics: np.ndarray, generation: int) -> bool:
        """Bind the path to the statistics, float64 (N_ROWS, room), of all features of the schema.

        `generation` is what `Generation.advance` returned before they were read. Return whether the
        path is open: not if the scaler was used meanwhile, or compiled code cannot read a name.
        """
        # Compiled code cannot check the type or the size of an array that it finds by its address.
        if statistics.dtype != np.float64 or len(statistics) != N_ROWS:
            return False
        self._reader.update()
        n, most = len(self.schema), self._most(statistics)
        if n > most:
            return False
        table = self._table_of(statistics, generation, n)
        return publish(self._table, table, most, self._arrays, statistics)

    def _most(self, statistics: np.ndarray) -> int:
        """Return how many features fit into the statistics, and their names into the schema."""
        return min(statistics.shape[1], len(self.schema) + self.schema.room)

    def _table_of(self, statistics: np.ndarray, generation: int, n: int) -> np.ndarray:
        head = head_of(self._generation, address_of(self._reader.fields))
        head[GENERATION] = generation
        addresses = address_of(statistics), address_of(self._limits)
        sizes = statistics.shape[1], n
        return np.array([*head, *addresses, *sizes, id(True), id(None)], np.int64)

    def check(self, statistics: np.ndarray, generation: int) -> None:
        """Compare each address in an open table with that of its array: for debug mode.

        Raise `StaleAddressError` if one is wrong, unless the scaler was used after `generation` was
        read, by a signal handler for example.
        """
        if not self.is_open:
            return
        found = self._table.copy()
        n = int(found[_N_FEATURES])
        expected = self._table_of(statistics, generation, n)
        is_sound = np.array_equal(expected, found) and self._reader.is_sound()
        # Fewer than there are: events take the general path.
        is_sound = is_sound and n <= min(len(self.schema), statistics.shape[1])
        # Last, so that whatever changed the scaler meanwhile is noticed.
        if not is_sound and self._generation.now == generation:
            wrong = np.flatnonzero(expected != found).tolist()
            raise StaleAddressError(
                f"fields {wrong} of the table of a scaler are not those of its arrays, or its "
                "reader is wrong: switch native events off (STREAMSVM_NATIVE_EVENTS=0), and "
                "report this"
            )
