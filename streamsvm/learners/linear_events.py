"""The short ways of one event of two classes to the weights and back: dense and sparse.

An array costs 50 nanoseconds on its way from Python into compiled code, an object that holds arrays
ten times that, a whole number 20: so that compiled code is told where a table of addresses is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, compiled
from streamsvm.learners.calibration import update_thinned_one
from streamsvm.learners.packing import list_event
from streamsvm.learners.schema import Schema, in_order
from streamsvm.solvers import sgd, sgdqn
from streamsvm.solvers.linear_state import N_INFO, LinearState, Schedule, margin_of
from streamsvm.support.rows import Rows, SparseRows

# The table, int64 (6,): addresses of the row; of weights and info; of the schedule; of the
# calibration; of the numbers, float64 (5,): features there is room for in the row, parts and
# capacity of the weights, 0 for SGD or 1 for SGD-QN, and 1 if columns are `HashedPlaces`.


@compiled
def _held(address):  # type: ignore[no-untyped-def]
    """Return the table, the state, the schedule and the numbers."""
    table = array_at(address, (6,), np.int64)
    numbers = array_at(table[5], (5,), np.float64)
    parts, capacity = np.int64(numbers[1]), np.int64(numbers[2])
    weights = array_at(table[1], (1, parts, capacity), np.float64)
    info = array_at(table[2], (1, N_INFO), np.float64)
    s = array_at(table[3], (8,), np.float64)
    schedule = Schedule(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
    return table, LinearState(weights, info), schedule, numbers


@compiled
def _learn(table, state, schedule, kind, x, y, weight):  # type: ignore[no-untyped-def]
    if kind == 0.0:
        f = sgd.learn_row(state, x, 0, 0, y, weight, schedule)
    else:
        f = sgdqn.learn_row(state, x, 0, 0, y, weight, schedule)
    update_thinned_one(array_at(table[4], (6,), np.float64), f, y)


@compiled
def margin(address):  # type: ignore[no-untyped-def]
    """Return the margin of the dense event in the row; NaN if a value is not finite."""
    table, state, schedule, numbers = _held(address)
    row = array_at(table[0], (1, np.int64(numbers[0])), np.float32)
    f = margin_of(state, row, 0, 0, schedule)
    return f if np.isfinite(f) else np.nan


@compiled
def scatter(address, place, room, n):  # type: ignore[no-untyped-def]
    """Write an event of known features into the dense row, 0 for the others; False if one is not.

    Parameters
    ----------
    address, place
        Of a table; of n values, float64, and n columns, int32.
    room
        The number of features of the row.

    """
    row = array_at(array_at(address, (6,), np.int64)[0], (room,), np.float32)
    given = array_at(place, (n,), np.float64)
    columns = array_at(place + 8 * n, (n,), np.int32)
    row[:] = 0.0
    for t in range(n):
        if not 0 <= columns[t] < room:
            return False
        row[columns[t]] = given[t]
    return True


@compiled
def learn(address, y, weight):  # type: ignore[no-untyped-def]
    """Learn the dense event in the row; return False, and change nothing, if it is not finite.

    Parameters
    ----------
    address
        Of a table.
    y, weight
        +1 or -1; the weight of the example.

    """
    table, state, schedule, numbers = _held(address)
    row = array_at(table[0], (1, np.int64(numbers[0])), np.float32)
    for c in range(row.shape[1]):
        if not np.isfinite(row[0, c]):
            return False
    _learn(table, state, schedule, numbers[3], row, y, weight)
    return True


@compiled
def _sparse_row(address, room, n, d, capacity, hashed):  # type: ignore[no-untyped-def]
    """Return the sparse event in the row, of length -1 if a value is not finite, or out of place.

    The row has n values, float64; n columns, int32, below 0 for none; then, at their places for the
    longest event, bounds, int64 (2,), and room for values, float32.
    """
    given = array_at(address, (n,), np.float64)
    columns = array_at(address + 8 * n, (n,), np.int32)
    start = array_at(address + 12 * room, (2,), np.int64)
    values = array_at(address + 12 * room + 16, (n,), np.float32)
    if hashed:
        for t in range(n):
            given[t] = -given[t] if columns[t] & 1 else given[t]
            columns[t] >>= 1
    start[0] = 0
    start[1] = list_event(columns, given, values)
    if start[1] > 0 and columns[start[1] - 1] >= capacity:
        start[1] = -1
    return SparseRows(start, columns, values, d)


@compiled
def sparse_margin(address, n):  # type: ignore[no-untyped-def]
    """Return the margin of the sparse event of n features; NaN if a value is not finite."""
    table, state, schedule, numbers = _held(address)
    x = _sparse_row(table[0], np.int64(numbers[0]), n, 0, np.int64(numbers[2]), numbers[4] > 0.0)
    if x.start[1] < 0:
        return np.nan
    return margin_of(state, x, 0, 0, schedule)


@compiled
def sparse_learn(address, n, d, y, weight):  # type: ignore[no-untyped-def]
    """Learn the sparse event of n out of d features; as `learn`."""
    table, state, schedule, numbers = _held(address)
    x = _sparse_row(table[0], np.int64(numbers[0]), n, d, np.int64(numbers[2]), numbers[4] > 0.0)
    if x.start[1] < 0:
        return False
    _learn(table, state, schedule, numbers[3], x, y, weight)
    return True


GIVE_UP: Any = object()
"""In the place of a label: the event must go the long way."""


class ShortWay(NamedTuple):
    """Functions that predict and learn an event, or give up: it must go the long way then."""

    predict: Callable[[Any], Any]
    """The label of an event, or `GIVE_UP`."""
    learn: Callable[[Any, Any], bool]
    """Learn an event and its label; False, and nothing changed, to give up."""
    close: Callable[[], None]
    """Give up from now on; called with the lock."""
    last: Callable[[], Rows]
    """Return a copy of the event that was learnt last."""
    arrays: tuple[np.ndarray, ...] = ()
    """What the addresses are of."""


NO_WAY = ShortWay(
    lambda x: GIVE_UP, lambda x, y: False, lambda: None, lambda: np.zeros((1, 0), np.float32)
)
"""Gives up."""


class Target(NamedTuple):
    """What a short way leads to."""

    state: LinearState
    schedule: Schedule
    kind: float
    calibration: np.ndarray
    sides: dict[Any, tuple[float, float]]
    """Sign and weight of both labels."""
    lock: Any
    """Held while an event is predicted or learnt."""
    contents: dict[str, Any]
    """Of the learner: ``_n_examples`` is counted up."""

    def table(self, row: np.ndarray, room: int, hashed: bool = False) -> tuple[np.ndarray, ...]:
        """Return the table, and after it the arrays that must live as long as it."""
        numbers = np.array([room, *self.state.weights.shape[1:], self.kind, hashed], np.float64)
        arrays = (row, *self.state, np.array(self.schedule), self.calibration, numbers)
        return np.array([address_of(array) for array in arrays], np.int64), *arrays

    def labels(self) -> tuple[Any, Any]:
        """Return the negative and the positive label."""
        negative, positive = sorted(self.sides, key=lambda label: self.sides[label][0])
        return negative, positive


# Closures, since each attribute of an object would take as long as eight features, and so would
# "with lock".


_LONGEST = 256


@cache
def _packers() -> list[Callable[..., None]]:
    """Return what writes the values and columns of n features, for each n."""
    return [struct.Struct(f"{n}d{n}i").pack_into for n in range(_LONGEST + 1)]


def dense_way(schema: Schema, target: Target) -> ShortWay:
    """Return the short way of events that have no other features than the known ones, at least 2.

    Of those with all of them it is the shortest.
    """
    d, get = len(schema.names), itemgetter(*schema.names)
    pack = struct.Struct(f"{d}f").pack_into
    row = np.zeros((1, d), np.float32)
    buffer: Any = memoryview(row.data).cast("B")
    arrays = target.table(row, d)
    address = address_of(arrays[0])
    negative, positive = target.labels()
    sides, contents, is_open = target.sides, target.contents, True
    acquire, release = target.lock.acquire, target.lock.release
    packers, known = _packers(), schema.index.__getitem__
    part = np.zeros(2 * _LONGEST, np.int64)
    part_buffer: Any = memoryview(part.data).cast("B")
    place = address_of(part)

    def pack_some(x: Any) -> None:
        packers[len(x)](part_buffer, 0, *x.values(), *map(known, x))
        if not scatter(address, place, d, len(x)):
            raise KeyError

    def predict_shortly(x: Any) -> Any:
        acquire()
        try:
            if not is_open:
                return GIVE_UP
            # Counters would make up what is missing.
            if len(x) == d and x.__class__ is dict:
                pack(buffer, 0, *get(x))
            else:
                pack_some(x)
            f = margin(address)
        except _REFUSED:
            return GIVE_UP
        finally:
            release()
        # NaN is not above or below anything.
        return positive if f > 0.0 else negative if f <= 0.0 else GIVE_UP

    def learn_shortly(x: Any, y: Any) -> bool:
        acquire()
        try:
            sign, weight = sides[y]
            if not is_open:
                return False
            if len(x) == d and x.__class__ is dict:
                pack(buffer, 0, *get(x))
            else:
                pack_some(x)
            learnt: bool = learn(address, sign, weight)
            contents["_n_examples"] += learnt
            return learnt
        except _REFUSED:
            return False
        finally:
            release()

    def close() -> None:
        nonlocal is_open
        is_open = False

    return ShortWay(predict_shortly, learn_shortly, close, row.copy, (*arrays, part))


def row_of(row: np.ndarray, d: int) -> SparseRows:
    """Return a copy of the sparse event in a row: see `_sparse_row`."""
    content = row.tobytes()
    at = 12 * _LONGEST
    n = int(np.frombuffer(content, np.int64, 2, at)[1])
    length = int(row[-1])
    columns = np.frombuffer(content, np.int32, n, 8 * length)
    values = np.frombuffer(content, np.float32, n, at + 16)
    return SparseRows(np.array([0, n]), columns, values, d)


def sparse_way(schema: Schema, target: Target) -> ShortWay:
    """Return the short way of events of any features: new ones, too, while there is room."""
    index, packers = schema.index, _packers()
    maybe, buckets = index.get, schema.buckets
    # Hashed names are never unknown.
    known = index.__getitem__ if buckets is None else schema.places.__getitem__
    # The last number: how many features the event had.
    row = np.zeros(2 * _LONGEST + 3, np.int64)
    buffer: Any = memoryview(row.data).cast("B")
    arrays = target.table(row, _LONGEST, buckets is not None)
    address = address_of(arrays[0])
    room = target.state.weights.shape[2]
    room = min(schema.limit, room) if buckets is None else room
    negative, positive = target.labels()
    sides, contents, is_open = target.sides, target.contents, True
    acquire, release = target.lock.acquire, target.lock.release

    def pack(x: Any) -> list[Any]:
        """Write an event into the row; return its unseen features, given the next columns."""
        row[-1] = n = len(x)
        try:
            packers[n](buffer, 0, *x.values(), *map(known, x))
            return []
        except KeyError:
            new = in_order(name for name in x if name not in index)
            places = {name: len(index) + i for i, name in enumerate(new)}
            columns = [places[name] if name in places else index[name] for name in x]
            packers[n](buffer, 0, *x.values(), *columns)
            return new

    def predict_shortly(x: Any) -> Any:
        acquire()
        try:
            if not is_open:
                return GIVE_UP
            n = len(x)
            try:
                packers[n](buffer, 0, *x.values(), *map(known, x))
            except KeyError:
                packers[n](buffer, 0, *x.values(), *[maybe(name, -1) for name in x])
            f = sparse_margin(address, n)
        except _REFUSED:
            return GIVE_UP
        finally:
            release()
        return positive if f > 0.0 else negative if f <= 0.0 else GIVE_UP

    def learn_shortly(x: Any, y: Any) -> bool:
        acquire()
        try:
            sign, weight = sides[y]
            if not is_open:
                return False
            new = pack(x)
            d = (buckets or len(index)) + len(new)
            if d > room or not sparse_learn(address, len(x), d, sign, weight):
                return False
            if new:
                schema.extend(new)
            contents["_n_examples"] += 1
            return True
        except _REFUSED:
            return False
        finally:
            release()

    def close() -> None:
        nonlocal is_open
        is_open = False

    return ShortWay(
        predict_shortly, learn_shortly, close, lambda: row_of(row, buckets or len(index)), arrays
    )


_REFUSED = (KeyError, IndexError, AttributeError, struct.error, TypeError, OverflowError)
