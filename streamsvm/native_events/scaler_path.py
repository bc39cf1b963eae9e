"""The fast path of one event through a `StandardScaler`: methods in machine code, see `ways`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from streamsvm._compile import address_of, array_at, compiled, compiled_for_c
from streamsvm.features.schema import Schema
from streamsvm.native_events import event_reader as its
from streamsvm.native_events import python_objects as py
from streamsvm.native_events.event_reader import LONGEST, column_in_order, places_at, reader_of
from streamsvm.native_events.path_table import CLOSED, FALL_BACK, guarded_by_lock, is_open, table_at
from streamsvm.native_events.python_methods import methods_of, new_reference
from streamsvm.support.rows import LARGEST

# The table, int64 (_N,): whether the way is closed; addresses of a reader's places and of the
# statistics, float64 (3, features), and how many features they are of; and the objects that are
# given back.
_PLACES, _STATISTICS, _WIDTH, _NONE, _FALL_BACK = range(CLOSED + 1, 6)
_N = 6


@compiled
def learn_value(statistics, f, value):
    """Learn one value of feature f; statistics are counts, means and variances, float64 (3, d)."""
    statistics[0, f] += 1.0
    old_mean = statistics[1, f]
    statistics[1, f] += (value - old_mean) / statistics[0, f]
    spread = (value - old_mean) * (value - statistics[1, f])
    statistics[2, f] += (spread - statistics[2, f]) / statistics[0, f]


@compiled
def scaled(statistics, f, value):
    """Return a value of feature f in standard deviations from the mean; 0 without variance."""
    variance = statistics[2, f]
    return (value - statistics[1, f]) / variance**0.5 if variance > 0.0 else 0.0


@compiled
def _list_event(address, d, x):
    """List columns and values of an event of d known features at most; return how many.

    Or -1 to give up.
    """
    places = places_at(address)
    # All names are in order, and there are statistics of all.
    if places[its.N_ORDERED] != d or py.list_size(places[its.NAMES]) != d:
        return -1
    if not py.is_plain(x, places) or py.dict_size(x) > d:
        return -1
    columns = array_at(places[its.FOUND], (LONGEST,), np.int32)
    given = array_at(places[its.GIVEN], (LONGEST,), np.float64)
    at = address + 8 * its.AT
    places[its.AT] = n = 0
    while py.dict_next(x, at, at + 8, at + 16) != 0:
        columns[n] = column_in_order(places, places[its.KEY], n, d)
        given[n] = py.number(places[its.VALUE], places)
        # NaN is not at most anything.
        if columns[n] < 0 or not abs(given[n]) <= LARGEST:
            return -1
        n += 1
    return n


@compiled_for_c
def learn(owner, x):
    """Learn an event; return None, or `FALL_BACK`: objects both."""
    table = table_at(owner, _N)
    d = table[_WIDTH]
    n = _list_event(table[_PLACES], d, x) if is_open(owner, table) else -1
    if n < 0:
        return new_reference(table[_FALL_BACK])
    places = places_at(table[_PLACES])
    statistics = array_at(table[_STATISTICS], (3, d), np.float64)
    columns = array_at(places[its.FOUND], (LONGEST,), np.int32)
    given = array_at(places[its.GIVEN], (LONGEST,), np.float64)
    for t in range(n):
        learn_value(statistics, columns[t], given[t])
    return new_reference(table[_NONE])


@compiled_for_c
def transform(owner, x):
    """Return the scaled event, a dict, or `FALL_BACK`."""
    table = table_at(owner, _N)
    # First: to make it may wake the garbage collector, and that anybody, who may change anything.
    event = py.new_dict()
    d = table[_WIDTH]
    n = _list_event(table[_PLACES], d, x) if event != 0 and is_open(owner, table) else -1
    if n >= 0:
        places = places_at(table[_PLACES])
        statistics = array_at(table[_STATISTICS], (3, d), np.float64)
        order = array_at(places[its.ORDER], (d,), np.int64)
        columns = array_at(places[its.FOUND], (LONGEST,), np.int32)
        given = array_at(places[its.GIVEN], (LONGEST,), np.float64)
        for t in range(n):
            c = columns[t]
            if not py.put_number(event, order[c], scaled(statistics, c, given[t])):
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
    """Learns and scales events of known features, or gives up: they go the general path.

    It is closed until it leads somewhere. ``learn(x)`` returns None, ``transform(x)`` a dict.

    Parameters
    ----------
    schema
        The features, at most `LONGEST`.
    room
        How many of them there may be.
    lock
        Held while statistics are changed elsewhere.

    """

    def __init__(self, schema: Schema, room: int, lock: Any) -> None:
        self._schema, self._room = schema, room
        self._reader = reader_of(schema, room, True)
        self._table = np.zeros(_N, np.int64)
        self._table[CLOSED], self._table[_PLACES] = 1, address_of(self._reader.places)
        self._table[_NONE], self._table[_FALL_BACK] = id(None), id(FALL_BACK)
        # What must live as long as the methods: the statistics come last.
        self._kept = [self._table, self._reader, schema, lock, None]
        known = guarded_by_lock(self._table, lock)
        self.learn, self.transform = (new(known, self._kept) for new in _methods())

    def is_bound_to(self, statistics: np.ndarray) -> bool:
        """Tell whether it is open, and leads there."""
        return not self._table[CLOSED] and self._kept[-1] is statistics

    def close(self) -> None:
        """Give up from now on; called with the lock."""
        self._table[CLOSED] = 1
        self._kept[-1] = None

    def is_for(self, schema: Schema) -> bool:
        """Tell whether it may lead to statistics of that schema's features."""
        return schema is self._schema and len(schema) <= self._room

    def bind(self, statistics: np.ndarray) -> None:
        """Lead to statistics of all features of the schema; called with the lock."""
        self.close()
        self._reader.update(self._schema, self._room)
        kept: list[Any] = self._kept
        table, place, width = self._table, address_of(statistics), statistics.shape[1]
        # No call from here on: what an interruption calls may lead it elsewhere.
        kept[-1] = statistics
        table[_STATISTICS] = place
        table[_WIDTH] = width
        table[CLOSED] = 0
