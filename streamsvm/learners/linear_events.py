"""The short ways of one event of two classes to the weights and back: dense and sparse.

They are methods in machine code, given an event and its label as they are: all else that they need
is in a table of addresses. While one runs, no other Python code does; where another thread is at
work on the model, they give up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of, array_at, compiled_for_c, compiled_within
from streamsvm.learners.calibration import update_thinned_one
from streamsvm.learners.event_block import Block, keep, room_of
from streamsvm.learners.event_reader import LONGEST, Reader, reader_of
from streamsvm.learners.event_rows import read_any, read_dense, read_known
from streamsvm.learners.schema import Schema
from streamsvm.learners.shared import HOLDER
from streamsvm.solvers import sgd, sgdqn
from streamsvm.solvers.linear_state import N_INFO, LinearState, Schedule, margin_of
from streamsvm.support import python_objects as py
from streamsvm.support.python_methods import argument, methods_of, shared, table_of
from streamsvm.support.python_objects import PLAIN

# The table, int64 (_N,): addresses of a reader's places; of weights and info; of the schedule; of
# the calibration; of the numbers, float64 (5,): parts and capacity of the weights, 0 for SGD or 1
# for SGD-QN, weights of both labels; of int64s: whether the lock is held, whether the way is
# closed, how many examples were learnt; of a block for the first events, 0 if there is none; and
# the objects that are given back.
_PLACES, _WEIGHTS, _INFO, _SCHEDULE, _CALIBRATION, _NUMBERS = range(6)
_HELD, _CLOSED, _LEARNT, _BLOCK = range(6, 10)
_NEGATIVE, _POSITIVE, _NONE, _DUE, _GIVE_UP = range(10, 15)
_N = 15


class _GiveUp:
    def __repr__(self) -> str:
        return "GIVE_UP"


GIVE_UP: Any = _GiveUp()
"""In the place of a label: the event must go the long way."""

DUE = True
"""The event was learnt, and was the last there was room for."""


@compiled_within
def _number_at(address):  # type: ignore[no-untyped-def]
    return array_at(address, (1,), np.int64)[0]


@compiled_within
def _table_of(owner):  # type: ignore[no-untyped-def]
    return array_at(table_of(owner), (_N,), np.int64)


@compiled_within
def _is_open(table):  # type: ignore[no-untyped-def]
    return _number_at(table[_HELD]) == 0 and _number_at(table[_CLOSED]) == 0


@compiled_within
def _state_of(table):  # type: ignore[no-untyped-def]
    """Return the state, the schedule and the numbers."""
    numbers = array_at(table[_NUMBERS], (5,), np.float64)
    parts, capacity = np.int64(numbers[0]), np.int64(numbers[1])
    weights = array_at(table[_WEIGHTS], (1, parts, capacity), np.float64)
    info = array_at(table[_INFO], (1, N_INFO), np.float64)
    s = array_at(table[_SCHEDULE], (8,), np.float64)
    schedule = Schedule(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
    return LinearState(weights, info), schedule, numbers


@compiled_within
def _predicted(table, row):  # type: ignore[no-untyped-def]
    """Return the label of a row: one of the objects of the table."""
    state, schedule, _ = _state_of(table)
    f = margin_of(state, row, 0, 0, schedule)
    if f > 0.0:
        return table[_POSITIVE]
    # NaN is not above or below anything.
    return table[_NEGATIVE] if f <= 0.0 else table[_GIVE_UP]


@compiled_within
def _side_of(table, y):  # type: ignore[no-untyped-def]
    """Return the sign of a label; 0 for one that is not among both, or not easily told."""
    if y == table[_POSITIVE]:
        return 1.0
    if y == table[_NEGATIVE]:
        return -1.0
    kinds = array_at(table[_PLACES], (py.N_KINDS,), np.int64)
    if not py.is_simple(y, kinds):
        return 0.0
    positive, negative = table[_POSITIVE], table[_NEGATIVE]
    if py.is_simple(positive, kinds) and py.are_equal(positive, y, kinds):
        return 1.0
    if py.is_simple(negative, kinds) and py.are_equal(negative, y, kinds):
        return -1.0
    return 0.0


@compiled_within
def _learn(table, row, y):  # type: ignore[no-untyped-def]
    """Learn a row, and keep it if it is one of the first; return what tells so."""
    state, schedule, numbers = _state_of(table)
    weight = numbers[4] if y > 0.0 else numbers[3]
    if numbers[2] == 0.0:
        f = sgd.learn_row(state, row, 0, 0, y, weight, schedule)
    else:
        f = sgdqn.learn_row(state, row, 0, 0, y, weight, schedule)
    update_thinned_one(array_at(table[_CALIBRATION], (6,), np.float64), f, y)
    array_at(table[_LEARNT], (1,), np.int64)[0] += 1
    if table[_BLOCK] != 0:
        keep(table[_BLOCK], row, y, weight)
        if room_of(table[_BLOCK]) == 0:
            return table[_DUE]
    return table[_NONE]


@compiled_within
def _may_learn(table, n, y):  # type: ignore[no-untyped-def]
    is_full = table[_BLOCK] != 0 and room_of(table[_BLOCK]) == 0
    return n == 2 and y != 0.0 and not is_full and _is_open(table)


@compiled_for_c
def predict_dense(owner, x):  # type: ignore[no-untyped-def]
    """Return the label of an event as a dense row, or `GIVE_UP`: objects all."""
    table = _table_of(owner)
    found = table[_GIVE_UP]
    if _is_open(table):
        row, is_read = read_dense(table[_PLACES], x, 0.0)
        if is_read:
            found = _predicted(table, row)
    return shared(found)


@compiled_for_c
def learn_dense(owner, arguments, n):  # type: ignore[no-untyped-def]
    """Learn an event as a dense row, and its label; return None, `DUE` or `GIVE_UP`."""
    table = _table_of(owner)
    found = table[_GIVE_UP]
    y = _side_of(table, argument(arguments, 1)) if n == 2 else 0.0
    if _may_learn(table, n, y):
        row, is_read = read_dense(table[_PLACES], argument(arguments, 0), y)
        if is_read:
            found = _learn(table, row, y)
    return shared(found)


@compiled_for_c
def predict_sparse(owner, x):  # type: ignore[no-untyped-def]
    """Return the label of an event as a sparse row, or `GIVE_UP`."""
    table = _table_of(owner)
    found = table[_GIVE_UP]
    if _is_open(table):
        row = read_known(table[_PLACES], x)
        if row.start[1] >= 0:
            found = _predicted(table, row)
    return shared(found)


@compiled_for_c
def learn_sparse(owner, arguments, n):  # type: ignore[no-untyped-def]
    """Learn an event as a sparse row, and its label; return None, `DUE` or `GIVE_UP`."""
    table = _table_of(owner)
    found = table[_GIVE_UP]
    y = _side_of(table, argument(arguments, 1)) if n == 2 else 0.0
    if _may_learn(table, n, y):
        row = read_any(table[_PLACES], argument(arguments, 0))
        if row.start[1] >= 0:
            found = _learn(table, row, y)
    return shared(found)


@cache
def _methods(is_sparse: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what makes methods that predict and that learn."""
    functions = (predict_sparse, learn_sparse) if is_sparse else (predict_dense, learn_dense)
    return methods_of(functions[0]), methods_of(functions[1])


class ShortWay(NamedTuple):
    """Functions that predict and learn an event, or give up: it must go the long way then."""

    predict: Callable[[Any], Any]
    """The label of an event, or `GIVE_UP`."""
    learn: Callable[[Any, Any], Any]
    """Learn an event and its label: None or `DUE`; `GIVE_UP`: it was not learnt."""
    predict_held: Callable[[Any], Any]
    """The same for who holds the lock, and for events that must be looked at in Python first."""
    learn_held: Callable[[Any, Any], Any]
    set_schedule: Callable[[Schedule], None]
    """Learn by another one from now on; called with the lock."""
    close: Callable[[], None]
    """Give up from now on; called with the lock."""


NO_WAY = ShortWay(
    lambda x: GIVE_UP,
    lambda x, y: GIVE_UP,
    lambda x: GIVE_UP,
    lambda x, y: GIVE_UP,
    lambda schedule: None,
    lambda: None,
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
    n_learnt: np.ndarray
    """int64 (1,): counted up."""
    block: Block | None
    """Where events are kept."""

    def labels(self) -> list[Any]:
        """Return the negative and the positive label."""
        return sorted(self.sides, key=lambda label: self.sides[label][0])

    def tables(
        self, schema: Schema, reader: Reader, schedule: np.ndarray, closed: np.ndarray
    ) -> tuple[bytes, bytes, Any]:
        """Return the table, that for who holds the lock, and what must live as long as they."""
        own = self.labels()
        weights = [self.sides[label][1] for label in own]
        numbers = np.array([*self.state.weights.shape[1:], self.kind, *weights], np.float64)
        arrays = [reader.places, *self.state, schedule, self.calibration, numbers]
        table = np.zeros(_N, np.int64)
        table[:_HELD] = [address_of(array) for array in arrays]
        table[_HELD], table[_CLOSED] = id(self.lock) + (HOLDER or 0), address_of(closed)
        table[_LEARNT] = address_of(self.n_learnt)
        table[_BLOCK] = 0 if self.block is None else address_of(self.block.head)
        table[_NEGATIVE:] = [id(thing) for thing in (*own, None, DUE, GIVE_UP)]
        free = table.tobytes()
        # Nobody else can be at work then.
        table[_HELD] = table[_CLOSED]
        return free, table.tobytes(), (self, schema, reader, arrays, own, closed)


def short_way(schema: Schema, target: Target, is_sparse: bool) -> ShortWay:
    """Return the short way of events of any features: new ones, too, while there is room."""
    room = target.state.weights.shape[2]
    room = room if schema.buckets else max(len(schema), min(schema.limit, room))
    return _way(schema, target, reader_of(schema, room, not is_sparse), is_sparse)


def _way(schema: Schema, target: Target, reader: Reader, is_sparse: bool) -> ShortWay:
    closed, schedule = np.zeros(1, np.int64), np.array(target.schedule)
    new_predict, new_learn = _methods(is_sparse)
    free, held, all_of_it = target.tables(schema, reader, schedule, closed)
    predict, learn = new_predict(held, all_of_it), new_learn(held, all_of_it)
    own = {label: label for label in target.sides}

    def readable(x: Any) -> dict[Any, float]:
        """Return an event that was given up as one that may be read after all."""
        if x.__class__ in PLAIN and len(x) > LONGEST:
            raise ValueError
        schema.vocabulary.update()
        # What makes its values floats may close the way: it gives up then.
        return schema.checked(x)

    def predict_held(x: Any) -> Any:
        try:
            found = predict(x)
            return predict(readable(x)) if found is GIVE_UP else found
        except _REFUSED:
            return GIVE_UP

    def learn_held(x: Any, y: Any) -> Any:
        try:
            label = own[y]
            found = learn(x, label)
            return learn(readable(x), label) if found is GIVE_UP else found
        except _REFUSED:
            return GIVE_UP

    def set_schedule(new: Schedule) -> None:
        schedule[:] = new

    def close() -> None:
        closed[0] = 1

    own_predict, own_learn = new_predict(free, all_of_it), new_learn(free, all_of_it)
    return ShortWay(own_predict, own_learn, predict_held, learn_held, set_schedule, close)


_REFUSED = (KeyError, TypeError, ValueError)
