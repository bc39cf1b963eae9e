"""One event into compiled code and back: a preallocated row, one compiled call.

To hand a tuple of thirty arrays to a compiled function takes 3 microseconds, an object that holds
it on the compiled side half of one. Such an object refers to the state that the learner has now; it
is made anew when the learner gets another one. Python writes the values of an event into a buffer,
compiled code checks, narrows, predicts and learns them.

A row that was predicted and is learnt next has its kernel values already: they are in the scratch
of the state, with a note of how many (`ready`; all else that uses the scratch sets it to 0).

Whatever is unusual (a value that is no number, no room for a feature) is left to the general path,
which says why.
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
"""State, kernel, schedule, calibration and labels: each is replaced when it becomes another."""

_THINNED = 6

_FIELDS = (
    "state",
    "kernel",
    "schedule",
    "calibration",  # float64: see `calibration`
    "spare",  # a store of one row that may be overwritten
    "given",  # float64 (room,): the values of the event
    "row",  # float32 (room,): the event, if dense; room for `list_event`, if sparse
    "last",  # float32 (room,): the values of the row that was predicted last
    "places",  # int32 (4, room): of a sparse event: columns, ranks, columns in order, last columns
    "kept",  # uint32 (room,): room for `list_event`
    "start",  # int64 (2,): where a sparse row begins and ends
    "numbers",  # int64 (2,): the number of the example; how long the last row was
    "n_learnt",  # int64 (1,): examples learnt so far, increased
    "doubles",  # float64 (3, 1): sign or class, C_i, weight
    "margins",  # float64 (1, outputs): of the last event
    "solver",  # see `registry.solver_for`
)
COLUMNS, RANKS, LISTED, LAST = range(4)


class _Plain:
    """What `_Held` is where nothing is compiled."""

    def __init__(self, *values: Any) -> None:
        for name, value in zip(_FIELDS, values, strict=True):
            setattr(self, name, value)


if JIT:

    @structref.register
    class _HeldType(types.StructRef):
        def preprocess_fields(self, fields: Any) -> Any:
            return tuple((name, types.unliteral(kind)) for name, kind in fields)

    class _Held(structref.StructRefProxy):
        def __new__(cls, *values: Any) -> Any:
            return structref.StructRefProxy.__new__(cls, *values)

    structref.define_proxy(_Held, _HeldType, list(_FIELDS))
else:
    _Held = _Plain  # type: ignore[assignment, misc]


# Compiled code


@compiled
def _best(margins):
    """Return the number of the label that margins, float64 (outputs,), predict."""
    if margins.size == 1:
        return 1 if margins[0] > 0.0 else 0
    best = 0
    for o in range(1, margins.size):
        if margins[o] > margins[best]:
            best = o
    return best


@compiled
def _learn(held, x, is_last, sign, box, weight):
    """Learn a row; return the number of the label that was predicted before, or -1."""
    state, margins = borrowed(held.state), held.margins
    y, boxes, weights = held.doubles[0], held.doubles[1], held.doubles[2]
    y[0], boxes[0], weights[0], held.numbers[0] = sign, box, weight, held.n_learnt[0] + 1
    done = learn_event(
        state, held.kernel, held.schedule, borrowed(held.spare), x, is_last, y, boxes, weights,
        held.numbers, margins, held.solver,
    )  # fmt: skip
    if done == 0:
        return -1
    # Here, not in Python: a signal handler may run, and raise or learn, as soon as this returns.
    held.n_learnt[0] += 1
    if margins.size > 1:
        update_temperature_one(held.calibration, margins[0], np.int64(sign))
    elif held.calibration.size == _THINNED:
        update_thinned_one(held.calibration, margins[0, 0], sign)
    else:
        update_one(held.calibration, margins[0, 0], sign)
    return _best(margins[0])


@compiled
def _predict_dense(held, d):
    """Predict the d values given; return the number of the label, or -1."""
    held.numbers[1] = -1
    if not narrow(held.given[:d], held.last[:d]):
        return -1
    row = held.last[:d].reshape(1, d)
    margins_of_event(borrowed(held.state), held.kernel, held.schedule, row, held.margins)
    held.numbers[1] = d
    return _best(held.margins[0])


@compiled
def _learn_dense(held, d, sign, box, weight):
    """Learn the d values given; return the number of the label predicted before, or -1."""
    if not narrow(held.given[:d], held.row[:d]):
        return -1
    is_last = held.numbers[1] == d
    for c in range(d):
        is_last &= held.row[c] == held.last[c]
    return _learn(held, held.row[:d].reshape(1, d), is_last, sign, box, weight)


@compiled
def _list(held, n, d, is_hashed):
    """Return the n features given as a sparse row of d features; of length -1 if one is bad."""
    columns = held.places[COLUMNS]
    if is_hashed:
        # Twice the column, plus 1 if the value changes its sign.
        for t in range(n):
            held.given[t] *= 1.0 - 2.0 * (columns[t] & 1)
            columns[t] >>= 1
    held.start[1] = list_event(
        columns, held.given, n, held.kept, held.places[RANKS], held.places[LISTED], held.row
    )
    return SparseRows(held.start, held.places[LISTED], held.row, d)


@compiled
def _predict_sparse(held, n, d, is_hashed):
    """Predict the n features given; return the number of the label, or -1."""
    held.numbers[1] = -1
    x = _list(held, n, d, is_hashed)
    if x.start[1] < 0:
        return -1
    margins_of_event(borrowed(held.state), held.kernel, held.schedule, x, held.margins)
    held.numbers[1] = x.start[1]
    for t in range(x.start[1]):
        held.places[LAST, t], held.last[t] = x.columns[t], x.values[t]
    return _best(held.margins[0])


@compiled
def _learn_sparse(held, n, d, is_hashed, sign, box, weight):
    """Learn the n features given; return the number of the label predicted before, or -1."""
    x = _list(held, n, d, is_hashed)
    if x.start[1] < 0:
        return -1
    is_last = held.numbers[1] == x.start[1]
    if is_last:
        for t in range(x.start[1]):
            is_last &= held.places[LAST, t] == x.columns[t] and held.last[t] == x.values[t]
    return _learn(held, x, is_last, sign, box, weight)


class EventPath:
    """Predicts and learns events by one compiled call each, while a learner keeps its state.

    Parameters
    ----------
    bound
        State, kernel, schedule, calibration and labels of the learner: all that the path uses.
    kernel
        The kernel as the solver takes it.
    n_learnt
        int64 (1,): how many examples were learnt; the compiled call counts.
    n_outputs
        Margins of an example: 1, or one a class.
    room
        Features that the state has room for.
    is_sparse
        Whether rows are sparse.

    Attributes
    ----------
    margins
        float64 (1, outputs): of the last event, from before it was learnt.
    best
        The number of the label that they predict.

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
        self.margins, self.best = np.zeros((1, n_outputs)), -1
        self._row, self._start = np.zeros(n, np.float32), np.zeros(2, np.int64)
        self._places: Any = np.zeros((4, n if is_sparse else 1), np.int32)
        given: Any = np.zeros(n)
        self._columns_view = memoryview(self._places[COLUMNS]).cast("B")
        self._given_view = memoryview(given).cast("B")
        self._held = _Held(
            state,
            kernel,
            schedule,
            calibration,
            _spare(state, room),
            given,
            self._row,
            np.zeros(n, np.float32),
            self._places,
            np.zeros(n if is_sparse else 1, np.uint32),
            self._start,
            np.array([0, -1]),
            n_learnt,
            np.zeros((3, 1)),
            self.margins,
            solver_for(state, kernel, schedule, 1 if n_outputs == 1 else 2, is_sparse),
        )

    def is_bound_to(self, bound: Bound) -> bool:
        """Tell whether it is bound to these, the same objects: they are replaced, not changed."""
        state, kernel, schedule, calibration, labels = self.bound
        return (
            bound[0] is state
            and bound[1] is kernel
            and bound[2] is schedule
            and bound[3] is calibration
            and bound[4] is labels
        )

    def predict(self, event: Event, is_hashed: bool) -> bool:
        """Predict an event; return False if a value is out of range."""
        n, d, values, columns, _ = event
        self._given_view[: len(values)] = values
        if self.is_sparse:
            self._columns_view[: len(columns)] = columns
            self.best = _predict_sparse(self._held, n, d, is_hashed)
        else:
            self.best = _predict_dense(self._held, d)
        return self.best >= 0

    def learn(self, event: Event, is_hashed: bool, sign: float, box: float, weight: float) -> bool:
        """Learn an event.

        Parameters
        ----------
        event
            What an `EventReader` returned.
        is_hashed
            Whether its columns are those of hashed names.
        sign
            +1.0 or -1.0; the number of the class if there are several outputs.
        box, weight
            C_i, and the example weight in it.

        Returns
        -------
        Whether it was learnt; if not, nothing changed: a value is out of range, or the state is
        full.

        """
        n, d, values, columns, _ = event
        self._given_view[: len(values)] = values
        if self.is_sparse:
            self._columns_view[: len(columns)] = columns
            self.best = _learn_sparse(self._held, n, d, is_hashed, sign, box, weight)
        else:
            self.best = _learn_dense(self._held, d, sign, box, weight)
        return self.best >= 0

    @property
    def margin(self) -> Any:
        """The margin of the last event, from before it was learnt; a list of several outputs."""
        return self.margins.item() if self.margins.size == 1 else self.margins[0].tolist()

    def row(self, event: Event) -> Rows:
        """Return a copy of the row of the event that was learnt last."""
        d = event[1]
        if not self.is_sparse:
            return self._row[:d].reshape(1, d).copy()
        n, listed = int(self._start[1]), self._places[LISTED]
        return SparseRows(self._start.copy(), listed[:n].copy(), self._row[:n].copy(), d)


def _spare(state: Any, room: int) -> Any:
    """Return a store of one row in which compiled code computes k(x, x)."""
    store = getattr(state, "store", None)
    return store if isinstance(store, SparseStore) else dense_store.new_store(1, room)
