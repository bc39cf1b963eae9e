"""Predicts or learns one event by one compiled call, through a preallocated buffer.

Passing a state of thirty arrays to a compiled function takes 3 microseconds; passing one numba
object (`structref`) that refers to them takes half a microsecond. The arguments of all calls are
therefore bound once in such an object. It refers to the current state of the learner, and is
replaced when the learner gets another state. Python writes the values of an event into a buffer of
the object; compiled code checks them, converts them to float32, and predicts or learns the row.

Predicting a row leaves its kernel values in the scratch arrays of the state, and their number in
the field `ready` of its `info`. If the same row is learnt next, they are used again. Every other
use of the scratch arrays sets `ready` to 0.

Events that cannot be handled here (a value out of range, no room for a feature) fall back to the
general path, which raises the error or grows the state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.experimental import structref

from streamsvm._compile import JIT, borrowed, compiled
from streamsvm.features.event_reader import LONGEST, Event
from streamsvm.features.packing import list_event, narrow
from streamsvm.labels.calibration import (
    update_one,
    update_temperature_one,
    update_thinned_one,
)
from streamsvm.solvers.registry import learn_event, margins_of_event, solver_for
from streamsvm.support import dense_store
from streamsvm.support.rows import Rows, SparseRows
from streamsvm.support.sparse_store import SparseStore

Bound = tuple[Any, Any, Any, np.ndarray, Any]
"""State, kernel, schedule, calibration and labels of a learner.

A learner that changes one of them in a way that concerns an `EventPath` replaces the object. So a
path is valid as long as the learner has the very objects that the path is bound to.
"""

_THINNED_SIZE = 6
"""Size of the calibration array of `new_thinned`."""

_FIELDS = (
    "state",
    "kernel",
    "schedule",
    "calibration",  # float64: see `labels.calibration`
    "row_store",  # scratch: a store of one row
    "event_values",  # float64 (room,): the values of the event, written by Python
    "row_values",  # float32 (room,): the values of the row; if it is sparse, sorted by column
    "last_values",  # float32 (room,): the values of the row that was predicted last
    "columns",  # int32 (4, room): columns of sparse events, see `EVENT_COLUMNS`
    "sort_keys",  # uint32 (room,): scratch of `list_event`
    "start",  # int64 (2,): `start` of a sparse row
    "numbers",  # int64 (3,): see below
    "n_learnt",  # int64 (1,): number of examples learnt; `_learn` increases it
    "targets",  # float64 (3, 1): sign or class, C_i, weight
    "margins",  # float64 (1, outputs): the margins of the last event
    "solver",  # see `registry.solver_for`
)
EVENT_COLUMNS, SORT_RANKS, SORTED_COLUMNS, LAST_COLUMNS = range(4)
"""Rows of the field `columns`: the columns of an event, written by Python; scratch of `list_event`;
the columns of the row in increasing order; the columns of the row that was predicted last."""
EXAMPLE, LAST_LENGTH, TURN = range(3)
"""Entries of the field `numbers`: the number of the example; the length of the row that was
predicted last, or -1; the number of the event whose values Python has written."""


class _PlainArguments:
    """The substitute for `_Arguments` if nothing is compiled: an object with the same fields."""

    def __init__(self, *values: Any) -> None:
        for name, value in zip(_FIELDS, values, strict=True):
            setattr(self, name, value)


if JIT:

    @structref.register
    class _ArgumentsType(types.StructRef):
        """Numba's type of `_Arguments`; it does not depend on the values of literals."""

        def preprocess_fields(self, fields: Any) -> Any:
            return tuple((name, types.unliteral(kind)) for name, kind in fields)

    class _Arguments(structref.StructRefProxy):
        """The arguments of the functions below, as fields of one object: see `_FIELDS`."""

        def __new__(cls, *values: Any) -> Any:
            return structref.StructRefProxy.__new__(cls, *values)

    structref.define_proxy(_Arguments, _ArgumentsType, list(_FIELDS))
else:
    _Arguments = _PlainArguments  # type: ignore[assignment, misc]


# Compiled code


@compiled
def _label_index(margins):
    """Return the index of the label that margins, float64 (outputs,), predict."""
    if margins.size == 1:
        return 1 if margins[0] > 0.0 else 0
    best = 0
    for o in range(1, margins.size):
        if margins[o] > margins[best]:
            best = o
    return best


@compiled
def _learn(args, x, is_last, sign, box, weight):
    """Learn a row; return the index of the label predicted before, or -1 if it was not learnt."""
    state, margins = borrowed(args.state), args.margins
    y, boxes, weights = args.targets[0], args.targets[1], args.targets[2]
    y[0], boxes[0], weights[0], args.numbers[EXAMPLE] = sign, box, weight, args.n_learnt[0] + 1
    done = learn_event(
        state, args.kernel, args.schedule, borrowed(args.row_store), x, is_last, y, boxes, weights,
        args.numbers, margins, args.solver,
    )  # fmt: skip
    if done == 0:
        return -1
    # Here, not in Python, where a signal handler may run first, and raise an error or learn.
    args.n_learnt[0] += 1
    if margins.size > 1:
        update_temperature_one(args.calibration, margins[0], np.int64(sign))
    elif args.calibration.size == _THINNED_SIZE:
        update_thinned_one(args.calibration, margins[0, 0], sign)
    else:
        update_one(args.calibration, margins[0, 0], sign)
    return _label_index(margins[0])


@compiled
def _predict_dense(args, turn, d):
    """Predict a dense event of d features; return the index of the label, or -1."""
    args.numbers[LAST_LENGTH] = -1
    if args.numbers[TURN] != turn or not narrow(args.event_values[:d], args.last_values[:d]):
        return -1
    row = args.last_values[:d].reshape(1, d)
    margins_of_event(borrowed(args.state), args.kernel, args.schedule, row, args.margins)
    args.numbers[LAST_LENGTH] = d
    return _label_index(args.margins[0])


@compiled
def _learn_dense(args, turn, d, sign, box, weight):
    """Learn a dense event of d features; return the index of the label predicted before, or -1."""
    if args.numbers[TURN] != turn or not narrow(args.event_values[:d], args.row_values[:d]):
        return -1
    is_last = args.numbers[LAST_LENGTH] == d
    for c in range(d):
        is_last &= args.row_values[c] == args.last_values[c]
    return _learn(args, args.row_values[:d].reshape(1, d), is_last, sign, box, weight)


@compiled
def _sparse_row(args, n, d, is_hashed):
    """Return n values as a sparse row of d features; `start[1]` is -1 if one is out of range."""
    columns = args.columns[EVENT_COLUMNS]
    if is_hashed:
        # A hashed column is encoded as 2 * column, plus 1 if the sign of the value changes.
        for t in range(n):
            args.event_values[t] *= 1.0 - 2.0 * (columns[t] & 1)
            columns[t] >>= 1
    args.start[1] = list_event(
        columns,
        args.event_values,
        n,
        args.sort_keys,
        args.columns[SORT_RANKS],
        args.columns[SORTED_COLUMNS],
        args.row_values,
    )
    return SparseRows(args.start, args.columns[SORTED_COLUMNS], args.row_values, d)


@compiled
def _predict_sparse(args, turn, n, d, is_hashed):
    """Predict a sparse event of n values; return the index of the label, or -1."""
    args.numbers[LAST_LENGTH] = -1
    if args.numbers[TURN] != turn:
        return -1
    x = _sparse_row(args, n, d, is_hashed)
    if x.start[1] < 0:
        return -1
    margins_of_event(borrowed(args.state), args.kernel, args.schedule, x, args.margins)
    args.numbers[LAST_LENGTH] = x.start[1]
    for t in range(x.start[1]):
        args.columns[LAST_COLUMNS, t], args.last_values[t] = x.columns[t], x.values[t]
    return _label_index(args.margins[0])


@compiled
def _learn_sparse(args, turn, n, d, is_hashed, sign, box, weight):
    """Learn a sparse event of n values; return the index of the label predicted before, or -1."""
    if args.numbers[TURN] != turn:
        return -1
    x = _sparse_row(args, n, d, is_hashed)
    if x.start[1] < 0:
        return -1
    is_last = args.numbers[LAST_LENGTH] == x.start[1]
    if is_last:
        for t in range(x.start[1]):
            is_last &= (
                args.columns[LAST_COLUMNS, t] == x.columns[t] and args.last_values[t] == x.values[t]
            )
    return _learn(args, x, is_last, sign, box, weight)


class EventPath:
    """Predicts and learns events by one compiled call each, for one state of a learner.

    Parameters
    ----------
    bound
        State, kernel, schedule, calibration and labels of the learner.
    kernel
        The kernel in the form that the solver takes.
    n_learnt
        int64 (1,): the number of examples learnt, which the compiled call increases.
    n_outputs
        Number of margins of an example: 1, or the number of classes.
    room
        Number of features that the state has room for.
    is_sparse
        Whether rows are sparse.

    Attributes
    ----------
    margins
        float64 (1, outputs): the margins of the last event, from before it was learnt.

    """

    def __init__(
        self,
        bound: Bound,
        kernel: Any,
        n_learnt: np.ndarray,
        n_outputs: int,
        room: int,
        is_sparse: bool,
    ) -> None:
        self.bound, self.room, self.is_sparse = bound, room, is_sparse
        state, _, schedule, calibration, _ = bound
        n = LONGEST if is_sparse else room
        self.margins = np.zeros((1, n_outputs))
        self._row_values, self._start = np.zeros(n, np.float32), np.zeros(2, np.int64)
        self._columns: Any = np.zeros((4, n if is_sparse else 1), np.int32)
        event_values: Any = np.zeros(n)
        self._columns_view = memoryview(self._columns[EVENT_COLUMNS]).cast("B")
        self._values_view = memoryview(event_values).cast("B")
        numbers: Any = np.array([0, -1, 0])
        self._turn, self._numbers_view = 0, memoryview(numbers)
        self._arguments = _Arguments(
            state,
            kernel,
            schedule,
            calibration,
            _row_store(state, room),
            event_values,
            self._row_values,
            np.zeros(n, np.float32),
            self._columns,
            np.zeros(n if is_sparse else 1, np.uint32),
            self._start,
            numbers,
            n_learnt,
            np.zeros((3, 1)),
            self.margins,
            solver_for(state, kernel, schedule, 1 if n_outputs == 1 else 2, is_sparse),
        )

    def is_bound_to(self, bound: Bound) -> bool:
        """Tell whether the path is bound to these very objects: see `Bound`."""
        # Compared one by one, as each event does this: a loop takes three times as long.
        own = self.bound
        return (
            bound[0] is own[0]
            and bound[1] is own[1]
            and bound[2] is own[2]
            and bound[3] is own[3]
            and bound[4] is own[4]
        )

    def invalidate(self) -> None:
        """Make a call for an event that is being written fall back: the model has changed."""
        self._begin()

    def _begin(self) -> int:
        """Return a number for the event whose values are written next.

        A signal handler may write an event of its own before the compiled call, which therefore
        checks that this event was the last one to begin.
        """
        turn = self._turn = self._turn + 1
        self._numbers_view[TURN] = turn
        return turn

    def predict(self, event: Event, is_hashed: bool) -> int:
        """Predict an event.

        Parameters
        ----------
        event
            What an `EventReader` returned.
        is_hashed
            Whether its columns are encoded as hashed columns.

        Returns
        -------
        The index of the label; -1 to fall back: a value is out of range, or a signal handler used
        the model meanwhile.

        """
        n, d, values, columns, _ = event
        turn = self._begin()
        self._values_view[: len(values)] = values
        if self.is_sparse:
            self._columns_view[: len(columns)] = columns
            return _predict_sparse(self._arguments, turn, n, d, is_hashed)
        return _predict_dense(self._arguments, turn, d)

    def learn(self, event: Event, is_hashed: bool, sign: float, box: float, weight: float) -> int:
        """Learn an event.

        Parameters
        ----------
        event
            What an `EventReader` returned.
        is_hashed
            Whether its columns are encoded as hashed columns.
        sign
            +1.0 or -1.0; the index of the class if there are several outputs.
        box, weight
            C_i, and the example weight in it.

        Returns
        -------
        The index of the label that was predicted before; -1 to fall back, when nothing was learnt:
        as for `predict`, or because the state is full.

        """
        n, d, values, columns, _ = event
        turn = self._begin()
        self._values_view[: len(values)] = values
        if self.is_sparse:
            self._columns_view[: len(columns)] = columns
            return _learn_sparse(self._arguments, turn, n, d, is_hashed, sign, box, weight)
        return _learn_dense(self._arguments, turn, d, sign, box, weight)

    @property
    def margin(self) -> Any:
        """The margin of the last event, from before it was learnt; a list if there are several."""
        return self.margins.item() if self.margins.size == 1 else self.margins[0].tolist()

    def row(self, event: Event) -> Rows:
        """Return a copy of the row of the event that was learnt last."""
        d = event[1]
        if not self.is_sparse:
            return self._row_values[:d].reshape(1, d).copy()
        n, columns = int(self._start[1]), self._columns[SORTED_COLUMNS]
        return SparseRows(self._start.copy(), columns[:n].copy(), self._row_values[:n].copy(), d)


def _row_store(state: Any, room: int) -> Any:
    """Return a store of one row, as scratch in which compiled code computes k(x, x)."""
    store = getattr(state, "store", None)
    return store if isinstance(store, SparseStore) else dense_store.new_store(1, room)
