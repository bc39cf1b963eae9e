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
from streamsvm.learners.event_reader import LONGEST, reader_of
from streamsvm.learners.event_rows import read_any, read_dense, read_known
from streamsvm.learners.schema import Schema
from streamsvm.learners.shared import HOLDER
from streamsvm.solvers import sgd, sgdqn
from streamsvm.solvers.linear_state import N_INFO, LinearState, Schedule, margin_of
from streamsvm.support import python_objects as py
from streamsvm.support.python_methods import argument, methods_of, shared, table_of
from streamsvm.support.python_objects import PLAIN

# The table, int64 (_N,): whether the way is closed; addresses of a reader's places; of the numbers,
# float64 (12,): the schedule, 0 for SGD or 1 for SGD-QN, weights of both labels, the margin that
# was predicted last; of the count of examples that were learnt; of weights, of info, and how many
# parts and columns the weights have; of the calibration; of a block for the first events, 0 if
# there is none; and the objects that are given back.
_CLOSED, _PLACES, _NUMBERS, _LEARNT, _WEIGHTS, _INFO, _PARTS, _CAPACITY = range(8)
_CALIBRATION, _BLOCK, _NEGATIVE, _POSITIVE, _NONE, _DUE, _GIVE_UP = range(8, 15)
_N = 15
_KIND, _OF_NEGATIVE, _OF_POSITIVE, _MARGIN = range(8, 12)
_N_NUMBERS = 12
# What a method knows, int64 (2,): addresses of the table, and of what tells whether it must not run
# now, not 0. What a closed table leads to is somebody else's memory, or nobody's.
_TABLE, _HELD = 0, 8


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
    return array_at(_number_at(table_of(owner) + _TABLE), (_N,), np.int64)


@compiled_within
def _is_open(owner, table):  # type: ignore[no-untyped-def]
    return table[_CLOSED] == 0 and _number_at(_number_at(table_of(owner) + _HELD)) == 0


@compiled_within
def _state_of(table):  # type: ignore[no-untyped-def]
    """Return the state, the schedule and the numbers."""
    shape = (1, table[_PARTS], table[_CAPACITY])
    weights = array_at(table[_WEIGHTS], shape, np.float64)
    info = array_at(table[_INFO], (1, N_INFO), np.float64)
    s = array_at(table[_NUMBERS], (_N_NUMBERS,), np.float64)
    schedule = Schedule(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
    return LinearState(weights, info), schedule, s


@compiled_within
def _predicted(table, row):  # type: ignore[no-untyped-def]
    """Return the label of a row: one of the objects of the table."""
    state, schedule, numbers = _state_of(table)
    f = numbers[_MARGIN] = margin_of(state, row, 0, 0, schedule)
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
def _learn(table, row, y, w):  # type: ignore[no-untyped-def]
    """Learn a row, and keep it if it is one of the first; return what tells so."""
    state, schedule, numbers = _state_of(table)
    weight = w * (numbers[_OF_POSITIVE] if y > 0.0 else numbers[_OF_NEGATIVE])
    if numbers[_KIND] == 0.0:
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
def _example_of(table, arguments, n):  # type: ignore[no-untyped-def]
    """Return the sign and the weight of an example, event, label and maybe weight; 0 to give up."""
    if n != 2 and n != 3:
        return 0.0, 0.0
    y, w = _side_of(table, argument(arguments, 1)), 1.0
    if n == 3:
        kinds = array_at(table[_PLACES], (py.N_KINDS,), np.int64)
        w = py.number(argument(arguments, 2), kinds)
    # NaN is neither; one without weight is none.
    return y, (w if 0.0 < w < np.inf else 0.0)


@compiled_within
def _may_learn(owner, table):  # type: ignore[no-untyped-def]
    if not _is_open(owner, table):
        return False
    return table[_BLOCK] == 0 or room_of(table[_BLOCK]) != 0


@compiled_for_c
def predict_dense(owner, x):  # type: ignore[no-untyped-def]
    """Return the label of an event as a dense row, or `GIVE_UP`: objects all."""
    table = _table_of(owner)
    found = table[_GIVE_UP]
    if _is_open(owner, table):
        row, is_read = read_dense(table[_PLACES], x, 0.0)
        if is_read:
            found = _predicted(table, row)
    return shared(found)


@compiled_for_c
def learn_dense(owner, arguments, n):  # type: ignore[no-untyped-def]
    """Learn an event as a dense row, by label and weight; return None, `DUE` or `GIVE_UP`."""
    table = _table_of(owner)
    found = table[_GIVE_UP]
    if _may_learn(owner, table):
        y, w = _example_of(table, arguments, n)
        if y != 0.0 and w != 0.0:
            row, is_read = read_dense(table[_PLACES], argument(arguments, 0), y)
            if is_read:
                found = _learn(table, row, y, w)
    return shared(found)


@compiled_for_c
def predict_sparse(owner, x):  # type: ignore[no-untyped-def]
    """Return the label of an event as a sparse row, or `GIVE_UP`."""
    table = _table_of(owner)
    found = table[_GIVE_UP]
    if _is_open(owner, table):
        row = read_known(table[_PLACES], x)
        if row.start[1] >= 0:
            found = _predicted(table, row)
    return shared(found)


@compiled_for_c
def learn_sparse(owner, arguments, n):  # type: ignore[no-untyped-def]
    """Learn an event as a sparse row, by label and weight; return None, `DUE` or `GIVE_UP`."""
    table = _table_of(owner)
    found = table[_GIVE_UP]
    if _may_learn(owner, table):
        y, w = _example_of(table, arguments, n)
        if y != 0.0 and w != 0.0:
            row = read_any(table[_PLACES], argument(arguments, 0))
            if row.start[1] >= 0:
                found = _learn(table, row, y, w)
    return shared(found)


@cache
def _methods(is_sparse: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what makes methods that predict and that learn."""
    functions = (predict_sparse, learn_sparse) if is_sparse else (predict_dense, learn_dense)
    return methods_of(functions[0]), methods_of(functions[1])


class Target(NamedTuple):
    """What a short way leads to."""

    state: LinearState
    schedule: Schedule
    kind: float
    calibration: np.ndarray
    sides: dict[Any, tuple[float, float]]
    """Sign and weight of both labels."""
    block: Block | None
    """Where events are kept."""


class NoWay:
    """Gives up all events."""

    is_open = False

    def __init__(self) -> None:
        self.predict: Callable[[Any], Any] = lambda x: GIVE_UP
        self.learn: Callable[..., Any] = lambda x, y, w=1.0: GIVE_UP

    def close(self) -> None:
        """Give up from now on; called with the lock."""

    def margin_held(self, x: Any) -> Any:
        """Return a margin to who holds the lock; of events, too, that Python must look at first."""
        return GIVE_UP

    def learn_held(self, x: Any, y: Any, w: float = 1.0) -> Any:
        """Learn for who holds the lock; events, too, that Python must look at first."""
        return GIVE_UP


class ShortWay(NoWay):
    """Predicts and learns events of a schema, new features, too; or gives up: they go the long way.

    It is closed until it leads somewhere. ``predict(x)`` returns a label, ``learn(x, y[, w])`` None
    or `DUE`; `GIVE_UP`: it was not learnt.

    Parameters
    ----------
    schema
        Where new names go.
    room
        Features that dense rows have at most.
    is_sparse
        What events are read as.
    lock
        Held while an event is predicted or learnt.
    n_learnt
        int64 (1,): counted up.

    """

    def __init__(
        self, schema: Schema, room: int, is_sparse: bool, lock: Any, n_learnt: np.ndarray
    ) -> None:
        self._schema, self._is_sparse, self._capacity = schema, is_sparse, room
        self._reader = reader_of(schema, room, not is_sparse)
        self._numbers, self._table = np.zeros(_N_NUMBERS), np.zeros(_N, np.int64)
        self._own: dict[Any, Any] = {}
        arrays = (self._reader.places, self._numbers, n_learnt)
        self._table[: _LEARNT + 1] = 1, *map(address_of, arrays)
        self._table[_NONE:] = [id(thing) for thing in (None, DUE, GIVE_UP)]
        # What must live as long as the methods: that which it leads to comes last.
        self._kept = [self._table, arrays, self._reader, schema, lock, None]
        place = address_of(self._table)
        # Who holds the lock is the only one at work.
        free, held = (
            np.array([place, of_lock], np.int64).tobytes()
            for of_lock in (id(lock) + (HOLDER or 0), place + 8 * _CLOSED)
        )
        new_predict, new_learn = _methods(is_sparse)
        self.predict, self.learn = new_predict(free, self._kept), new_learn(free, self._kept)
        self._predict, self._learn = new_predict(held, self._kept), new_learn(held, self._kept)

    @property
    def is_open(self) -> bool:  # type: ignore[override]
        """Whether it leads somewhere."""
        return not self._table[_CLOSED]

    def close(self) -> None:
        """Give up from now on; called with the lock."""
        self._table[_CLOSED] = 1
        self._kept[-1] = None

    def is_for(self, schema: Schema, room: int, is_sparse: bool) -> bool:
        """Tell whether it may lead to weights for so many features of that schema."""
        fits = is_sparse or room <= self._capacity
        return schema is self._schema and is_sparse == self._is_sparse and fits

    def lead_to(self, target: Target) -> None:
        """Lead there from now on, if there are weights for all names; called with the lock."""
        # An interruption leaves it closed.
        self.close()
        state, schedule, kind, calibration, sides, block = target
        labels = sorted(sides, key=lambda label: sides[label][0])
        self._own = {label: label for label in labels}
        self._kept[-1] = (target, labels)
        room = state.weights.shape[2]
        # A copy shares the schema, and goes on alone.
        if len(self._schema) > room:
            return
        limit = room if self._schema.buckets else self._schema.limit
        self._reader.update(self._schema, min(room, limit))
        self._numbers[:_MARGIN] = *schedule, kind, *(sides[label][1] for label in labels)
        table = self._table
        table[_WEIGHTS : _INFO + 1] = address_of(state.weights), address_of(state.info)
        table[_PARTS : _CAPACITY + 1] = state.weights.shape[1:]
        table[_CALIBRATION] = address_of(calibration)
        table[_BLOCK] = 0 if block is None else address_of(block.head)
        table[_NEGATIVE : _POSITIVE + 1] = [id(label) for label in labels]
        table[_CLOSED] = 0

    def _readable(self, x: Any) -> dict[Any, float]:
        """Return an event that was given up as one that may be read after all."""
        if x.__class__ in PLAIN and len(x) > LONGEST:
            raise ValueError
        # Whoever shares the schema may have added others, which must not get into the table.
        if not self._schema.are_plain:
            raise ValueError
        self._schema.vocabulary.update()
        # What makes its values floats may close the way: it gives up then.
        return self._schema.checked(x)

    def margin_held(self, x: Any) -> Any:
        """Return a margin to who holds the lock; of events, too, that Python must look at first."""
        if not self.is_open:
            return GIVE_UP
        try:
            found = self._predict(x)
            found = self._predict(self._readable(x)) if found is GIVE_UP else found
        except _REFUSED:
            return GIVE_UP
        return GIVE_UP if found is GIVE_UP else float(self._numbers[_MARGIN])

    def learn_held(self, x: Any, y: Any, w: float = 1.0) -> Any:
        """Learn for who holds the lock; events, too, that Python must look at first."""
        if not self.is_open:
            return GIVE_UP
        try:
            label = self._own[y]
            found = self._learn(x, label, w)
            return self._learn(self._readable(x), label, w) if found is GIVE_UP else found
        except _REFUSED:
            return GIVE_UP


_REFUSED = (KeyError, TypeError, ValueError)
