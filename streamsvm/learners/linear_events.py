"""The short ways of one event of two classes to the weights and back: dense and sparse.

An array costs 50 nanoseconds on its way from Python into compiled code, an object that holds arrays
ten times that, a whole number 10: so that compiled code is told where a table of addresses is, and
where the event is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, compiled, compiled_with_python, entry_of
from streamsvm.learners.calibration import update_thinned_one
from streamsvm.learners.event_rows import (
    AGAIN,
    LONGEST,
    Reader,
    dense_reader,
    read_any,
    read_dense,
    read_known,
    sparse_reader,
)
from streamsvm.learners.schema import Schema
from streamsvm.solvers import sgd, sgdqn
from streamsvm.solvers.linear_state import N_INFO, LinearState, Schedule, margin_of
from streamsvm.support.python_objects import PLAIN
from streamsvm.support.rows import Rows

# The table, int64 (6,): addresses of a reader's places; of weights and info; of the schedule; of
# the calibration; of the numbers, float64 (3,): parts and capacity of the weights, 0 for SGD or 1
# for SGD-QN.


@compiled
def _held(address):  # type: ignore[no-untyped-def]
    """Return the table, the state, the schedule and the numbers."""
    table = array_at(address, (6,), np.int64)
    numbers = array_at(table[5], (3,), np.float64)
    parts, capacity = np.int64(numbers[0]), np.int64(numbers[1])
    weights = array_at(table[1], (1, parts, capacity), np.float64)
    info = array_at(table[2], (1, N_INFO), np.float64)
    s = array_at(table[3], (8,), np.float64)
    schedule = Schedule(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
    return table, LinearState(weights, info), schedule, numbers


@compiled
def _learn(table, state, schedule, numbers, x, y, weight):  # type: ignore[no-untyped-def]
    if numbers[2] == 0.0:
        f = sgd.learn_row(state, x, 0, 0, y, weight, schedule)
    else:
        f = sgdqn.learn_row(state, x, 0, 0, y, weight, schedule)
    update_thinned_one(array_at(table[4], (6,), np.float64), f, y)


@compiled_with_python
def _margin_dense(address, x):  # type: ignore[no-untyped-def]
    """Return the margin of an event, the dict at x, of known features; NaN to give up."""
    table, state, schedule, _ = _held(address)
    row, is_read = read_dense(table[0], x)
    return margin_of(state, row, 0, 0, schedule) if is_read else np.nan


@compiled_with_python
def _learn_dense(address, x, y, weight):  # type: ignore[no-untyped-def]
    """Learn an event of known features; return 0, or -1, and nothing changed, to give up.

    Parameters
    ----------
    address, x
        Of a table; of the event.
    y, weight
        +1 or -1; the weight of the example.

    """
    table, state, schedule, numbers = _held(address)
    row, is_read = read_dense(table[0], x)
    if not is_read:
        return -1
    _learn(table, state, schedule, numbers, row, y, weight)
    return 0


@compiled_with_python
def _margin_sparse(address, x):  # type: ignore[no-untyped-def]
    """Return the margin of an event of any features; NaN to give up."""
    table, state, schedule, _ = _held(address)
    row = read_known(table[0], x)
    return margin_of(state, row, 0, 0, schedule) if row.start[1] >= 0 else np.nan


@compiled_with_python
def _learn_sparse(address, x, y, weight):  # type: ignore[no-untyped-def]
    """Learn an event of any features; return how many of them were new, or `AGAIN` or `NEVER`."""
    table, state, schedule, numbers = _held(address)
    row, new = read_any(table[0], x)
    if row.start[1] < 0:
        return row.start[1]
    _learn(table, state, schedule, numbers, row, y, weight)
    return new


@cache
def _entries(sparse: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what predicts and what learns."""
    margin, learn = (_margin_sparse, _learn_sparse) if sparse else (_margin_dense, _learn_dense)
    event = ("int64", "int64")
    return entry_of(margin, *event), entry_of(learn, *event, "float64", "float64")


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
    """Return the event that was learnt last: the next one takes its place."""


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

    def table(self, reader: Reader) -> tuple[np.ndarray, ...]:
        """Return the table, and after it the arrays that must live as long as it."""
        numbers = np.array([*self.state.weights.shape[1:], self.kind], np.float64)
        arrays = (reader.places, *self.state, np.array(self.schedule), self.calibration, numbers)
        return np.array([address_of(array) for array in arrays], np.int64), *arrays, *reader

    def labels(self) -> tuple[Any, Any]:
        """Return the negative and the positive label."""
        negative, positive = sorted(self.sides, key=lambda label: self.sides[label][0])
        return negative, positive


def dense_way(schema: Schema, target: Target) -> ShortWay:
    """Return the short way of events that have no other features than the known ones."""
    reader = dense_reader(schema)
    return _way(schema, target, reader, lambda: reader.values, sparse=False)


def sparse_way(schema: Schema, target: Target) -> ShortWay:
    """Return the short way of events of any features: new ones, too, while there is room."""
    room = target.state.weights.shape[2]
    reader = sparse_reader(schema, room if schema.buckets else min(schema.limit, room))
    return _way(schema, target, reader, lambda: reader.row(len(schema)), sparse=True)


def _way(
    schema: Schema, target: Target, reader: Reader, last: Callable[[], Rows], sparse: bool
) -> ShortWay:
    margin, learn = _entries(sparse)
    # What the address is of; None once the way is closed.
    held: Any = target.table(reader)
    address = address_of(held[0])
    negative, positive = target.labels()
    sides, contents = target.sides, target.contents
    # "with lock" would take as long as eight features, and so would attributes of an object.
    acquire, release = target.lock.acquire, target.lock.release

    def readable(x: Any) -> dict[Any, float]:
        """Return an event that was given up as one that may be read after all."""
        if x.__class__ in PLAIN and len(x) > LONGEST:
            raise ValueError
        schema.vocabulary.update()
        return schema.checked(x)

    def predict_shortly(x: Any) -> Any:
        acquire()
        try:
            if held is None:
                return GIVE_UP
            f = margin(address, id(x))
            if f != f:
                x = readable(x)
                # What made its values floats may have closed the way.
                if held is None:
                    return GIVE_UP
                f = margin(address, id(x))
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
            if held is None:
                return False
            new = learn(address, id(x), sign, weight)
            if new:
                if new == AGAIN:
                    x = readable(x)
                    if held is None:
                        return False
                    new = learn(address, id(x), sign, weight)
                schema.note_names()
            if new >= 0:
                contents["_n_examples"] += 1
                return True
            return False
        except _REFUSED:
            return False
        finally:
            release()

    def close() -> None:
        nonlocal held
        held = None

    return ShortWay(predict_shortly, learn_shortly, close, last)


_REFUSED = (KeyError, TypeError, ValueError)
