"""Predicts or learns one event by one compiled call, through a preallocated buffer.

Passing a state of thirty arrays to a compiled function takes 3 microseconds. The arguments of all
calls are therefore written once into a block of words that compiled code reads by its address
(`_compile/layout.py`). It refers to the current state of the model, and is replaced when the model
gets another state. Python writes the values of an event into a buffer, NaN for those that are
missing; compiled code checks and fills them, converts them to float32, and predicts or learns the
row.

Predicting a row leaves its kernel values in the scratch arrays of the state, and their number in
the field `ready` of its `info`. If the same row is learnt next, they are used again. Every other
use of the scratch arrays sets `ready` to 0.

Events that cannot be handled here (a value out of range, no room for a feature) fall back to the
general path, which raises the error or grows the state.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import repeat
from typing import Any, Protocol

import numpy as np

from streamsvm.features.event_reader import (
    LONGEST,
    UNUSUAL,
    EventReader,
    Packed,
    are_usable,
    getter,
    packer,
)
from streamsvm.features.events import Event
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.labels.targets import Targets
from streamsvm.learners.bases.event_calls import (
    BEHIND,
    EVENT_COLUMNS,
    MARKS,
    SORTED_COLUMNS,
    Arguments,
    FurtherArguments,
    learn_dense,
    learn_sparse,
    predict_dense,
    predict_sparse,
)
from streamsvm.models.model import Model, Parts
from streamsvm.models.rows import padded
from streamsvm.solvers.adaptive import combination as combination_of
from streamsvm.solvers.adaptive.combination import nothing_combined
from streamsvm.solvers.one_event import Solver, solver_for
from streamsvm.support import dense_store
from streamsvm.support.rows import Rows, SparseRows
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.stores import Store


class EventLearner(Protocol):
    """What a path asks of the learner whose events it predicts and learns."""

    schema: Schema
    targets: Targets
    model: Model


class EventPath:
    """Predicts and learns events by one compiled call each, for one state of a learner.

    `parts` are what the model's `event_parts` returned: it is valid as long as the model has these
    very objects. `margins`, float64 (1, outputs), are those of the last event, as the solver wrote
    them before it was learnt.
    """

    def __init__(self, learner: EventLearner, parts: Parts) -> None:
        targets, model = learner.targets, learner.model.in_use
        state, _, schedule = model.event_parts()
        schema, is_sparse, room = learner.schema, model.is_sparse, model.room_for_features()
        self.parts, self.targets, self.room, self.is_sparse = parts, targets, room, is_sparse
        n_outputs, kernel = model.outputs.zeros(1).size, model.bound_kernel(state)
        factors, combined = model.factors, learner.model.combining(room)
        self.combination = learner.model.combination
        n = LONGEST if is_sparse else room
        self.margins = np.zeros((1, n_outputs))
        self._row_values, self._start = np.zeros(n, np.float32), np.zeros(2, np.int64)
        # Those of the row as the solver compares it.
        self._scaled_values = self._row_values if factors is None else np.zeros(n, np.float32)
        self._columns = np.zeros((4, n if is_sparse else 1), np.int32)
        event_values = np.zeros(n)
        self._columns_view = memoryview(self._columns[EVENT_COLUMNS]).cast("B")
        self._values_view = event_values.data.cast("B")
        self.schema, self._reader = schema, EventReader(schema)
        self.statistics = schema.missing.reserve(0 if is_sparse else room)
        # Class, C_i and weight of an event.
        self._targets = np.zeros((3, 1))
        combination, scratch, asked = nothing_combined() if combined is None else combined
        scores = np.zeros((combination_of.N_MODELS, scratch.p.size))
        self._combined = np.zeros(scratch.p.size)
        self._output = self.margins[0] if combined is None else self._combined
        # Of plain events (see `_write_plain`): of dense rows the number of values, -1: none is
        # plain, and how they are read; of sparse ones the columns of names.
        self._n_plain = -1
        self._get: Callable[[Event], tuple[float, ...]] = _not_plain
        self._pack_into = struct.Struct("").pack_into
        self._buckets, self._is_hashed = schema.buckets, schema.buckets is not None
        self._index: dict[Name, int] = schema.index
        # Whether the event that was read last has features that are not known.
        self._has_unknown = False
        # The number of values of a sparse event; that of features of the event learnt last.
        self._n = self.n_features = 0
        spare, n_dimensions = _row_store(state, room), 1 if n_outputs == 1 else 2
        # Its arrays, and what is at its addresses, are kept here.
        self._solver = solver_for(state, kernel, schedule, spare, n_dimensions, is_sparse)
        margins_of, learn, parts, _ = self._solver
        n_scores = 1 if n_outputs == 1 else len(targets.labels.seen)
        first_score = model.outputs.combined[0] if combined else 0
        self._numbers = np.array([0, -1, n_scores, first_score, 0, 0, 0])
        self._further = [] if combined is None else self._bound_further(learner.model, room)
        self._bind(
            margins_of=margins_of,
            learn=learn,
            parts=parts,
            policy=schema.missing.code,
            calibration=targets.calibration,
            event_values=event_values,
            row_values=self._row_values,
            last_values=np.zeros(n, np.float32),
            statistics=self.statistics,
            factors=np.zeros(0, np.float32) if factors is None else padded(factors, room),
            values=self._scaled_values,
            columns=self._columns,
            sort_keys=np.zeros(n if is_sparse else 1, np.uint32),
            start=self._start,
            numbers=self._numbers,
            n_learnt=model.n_learnt,
            targets=self._targets,
            margins=self.margins,
            further=self._further[0][0].address if self._further else 0,
            scores=scores,
            combined=self._combined,
            asked=asked,
            **combination._asdict(),
            **scratch._asdict(),
        )

    def _bound_further(self, whole: Model, room: int) -> list[tuple[FurtherArguments, Solver]]:
        """Return the arguments of the models that are combined with the first one.

        With each is what is at its addresses.
        """
        found: list[tuple[FurtherArguments, Solver]] = []
        for more in reversed(whole.further(room)):
            model, bits = more.model, more.bits
            state, _, schedule = model.event_parts()
            margins, factors = model.outputs.zeros(1).reshape(1, -1), model.factors
            n_columns = model.room_for_features()
            solver = solver_for(
                state,
                model.bound_kernel(state),
                schedule,
                _row_store(state, n_columns),
                1 if margins.size == 1 else 2,
                self.is_sparse,
            )
            first_score, n_scores = model.outputs.combined
            n_values = len(self._row_values) if bits is None else len(bits.edges)
            arguments = FurtherArguments(
                margins_of=solver.margins,
                learn=solver.learn,
                parts=solver.parts,
                factors=np.zeros(0, np.float32) if factors is None else padded(factors, n_columns),
                edges=np.zeros(0, np.float32) if bits is None else bits.edges,
                bit_columns=np.zeros(0, np.int32) if bits is None else bits.columns,
                values=np.zeros(n_values, np.float32),
                costs=model.costs_now(np.arange(model.n_classes), np.ones(model.n_classes)),
                targets=np.zeros((3, 1)),
                numbers=np.array([0, -1, n_scores, first_score, more.slot, 0, 0]),
                n_learnt=model.n_learnt,
                margins=margins,
                further=found[0][0].address if found else 0,
            )
            found.insert(0, (arguments, solver))
        return found

    def _bind(self, **values: object) -> None:
        """Bind the arguments of all calls."""
        self._bound_values = Arguments(**values)
        self._arguments = self._bound_values.address

    def is_bound_to(self, parts: Parts) -> bool:
        """Tell whether the path is bound to these very objects."""
        # Compared one by one, as each event does this: a loop takes three times as long.
        own = self.parts
        return parts[0] is own[0] and parts[1] is own[1] and parts[2] is own[2]

    def _write_plain(self, learner: EventLearner, x: Event, learning: bool = False) -> int:
        """Write a plain event into the buffer; return its number of features, or -1.

        That is a dict of all known features, if rows are dense; of any, if they are sparse: the
        names of new ones are appended if it is to be learnt. Most events are plain, and this takes
        a third of the time that an `EventReader` takes. Returns -1 if the event is not plain, or
        the path is not bound to what the learner has now.
        """
        schema = self.schema
        n_names = schema.n_names
        # In one expression, and one by one: it takes a fifth of the time of an event. Names may be
        # known for which the state has no room yet, after an interruption.
        state, kernel, schedule = learner.model.event_parts()
        own_state, own_kernel, own_schedule = self.parts
        if not (
            state is own_state
            and schedule is own_schedule
            and learner.targets is self.targets
            and kernel is own_kernel
            and learner.schema is schema
            and learner.model.combination is self.combination
            and n_names <= self.room
            and schema.missing.statistics is self.statistics
        ):
            return -1
        try:
            if self.is_sparse:
                return self._write_sparse(learner, x, n_names, learning)
            if n_names != self._n_plain:
                self._prepare(n_names)
            if len(x) != n_names:
                return -1
            # One call of C code reads all values; a name that is missing or unknown raises.
            self._pack_into(self._values_view, 0, *self._get(x))
        except UNUSUAL:
            return -1
        return n_names

    def _write_sparse(self, learner: EventLearner, x: Event, n_names: int, learning: bool) -> int:
        # At one moment: another thread may change it between names and values.
        x = dict(x)
        n, schema = len(x), self.schema
        if n > LONGEST or (n > schema.limit and not self._is_hashed):
            return -1
        values = packer("d", n)(*x.values())
        if self._is_hashed:
            columns = tuple(map(schema.hashed_columns.__getitem__, x))
        else:
            # It is brought up to date when it is read.
            index = self._index if len(self._index) == n_names else schema.index
            columns = tuple(map(index.get, x, repeat(-1)))
            self._has_unknown = -1 in columns
            if self._has_unknown and learning:
                columns = self._with_new(learner, x, values, columns)
                if not columns:
                    return -1
                n_names = schema.n_names
        self._write(values, packer("i", n)(*columns))
        return n_names if self._buckets is None else self._buckets

    def _with_new(
        self,
        learner: EventLearner,
        x: dict[Name, Any],
        values: bytes,
        columns: tuple[int, ...],
    ) -> tuple[int, ...]:
        """Append the names of a sparse event that are new; return its columns, or none of them.

        Then the event falls back, and nothing has changed: there is no room, or a value is out of
        range.
        """
        schema, model = self.schema, learner.model
        if not (model.takes_every_row() and are_usable(values)):
            return ()
        d, new = schema.n_names, self._reader.new_names(x, schema.n_names, True)
        if new is None or d + len(new) > self.room:
            return ()
        # Before learning, so that after an interruption every column in use has a name.
        schema.extend(new)
        if schema.n_names != d + len(new):
            # Names that compare otherwise each time: the general path refuses them.
            return ()
        model.n_features = schema.n_names
        at = {name: d + i for i, name in enumerate(new)}
        # A missing value may have a name that is not known yet.
        return tuple(c if c >= 0 else at.get(n, -1) for n, c in zip(x, columns, strict=True))

    def _prepare(self, n: int) -> None:
        """Prepare to read plain events of n features; rows are dense."""
        self._n_plain = n
        if n < 2:
            # A function that reads no value of any event, and so lets it fall back.
            self._get = _not_plain
            return
        self._get, self._pack_into = getter(self.schema.names), struct.Struct(f"{n}d").pack_into

    def _write(self, values: bytes, columns: bytes) -> None:
        """Write the values of an event into the buffer; and their columns, if rows are sparse."""
        self._values_view[: len(values)] = values
        if self.is_sparse:
            self._columns_view[: len(columns)] = columns
            self._n = len(values) >> 3

    def predict_plain(self, learner: EventLearner, x: Event) -> int:
        """Predict an event if it is a plain dict; return the same as `predict`."""
        d = self._write_plain(learner, x, False)
        label_index = -1 if d < 0 else self._predict_written(d)
        if self._has_unknown and label_index >= 0:
            self.schema.note_predicted(x)
        return label_index

    def learn_plain(
        self,
        learner: EventLearner,
        x: Event,
        number: float,
        cost: float,
        weight: float,
    ) -> int:
        """Learn an event if it is plain; return the same as `learn`."""
        d = self._write_plain(learner, x, True)
        return -1 if d < 0 else self._learn_written(self._arguments, d, number, cost, weight)

    def _predict_written(self, d: int) -> int:
        if self.is_sparse:
            return predict_sparse(self._arguments, self._n, d, self._is_hashed)
        return predict_dense(self._arguments, d)

    def _learn_written(
        self, arguments: object, d: int, number: float, cost: float, weight: float
    ) -> int:
        self.n_features = d
        if self.is_sparse:
            return learn_sparse(arguments, self._n, d, self._is_hashed, number, cost, weight)
        return learn_dense(arguments, d, number, cost, weight)

    def read(self, x: Event, learning: bool) -> Packed | None:
        """Return an event as an `EventReader` reads it, or None; methods of it may run here.

        None also if the state has no room for its features.
        """
        read = self._reader.sparse if self.is_sparse else self._reader.dense
        event = read(x, learning)
        return event if event is not None and event[1] <= self.room else None

    def predict(self, event: Packed) -> int:
        """Predict what `read` returned; return the index of the label, -1 to fall back.

        It falls back if a value is out of range.
        """
        _, d, values, columns, _ = event
        self._write(values, columns)
        return self._predict_written(d)

    def learn(self, event: Packed, number: float, cost: float, weight: float) -> int:
        """Learn what `read` returned; return the index of the label predicted before.

        Returns -1 to fall back, when nothing was learnt: as for `predict`, or because the state is
        full. `number` is that of the class; `cost` is C_i, which `weight` is in.
        """
        _, d, values, columns, _ = event
        self._write(values, columns)
        return self._learn_written(self._arguments, d, number, cost, weight)

    @property
    def marks(self) -> int:
        """Which models erred on the event that was learnt last: see `event_calls.MARKS`."""
        return int(self._numbers[MARKS])

    @property
    def behind(self) -> int:
        """Which further models could not learn that event, as bits."""
        return int(self._numbers[BEHIND])

    @property
    def margin(self) -> Any:
        """The margin that predicted the last event; a list if there are several."""
        return self._output.item() if self._output.size == 1 else self._output.tolist()

    @property
    def weight(self) -> float:
        """The example weight of the event that was learnt last."""
        return float(self._targets[2, 0])

    def row(self) -> Rows:
        """Return a copy of the row of the event that was learnt last."""
        return self._copy_of(self._row_values)

    def scaled_row(self) -> Rows:
        """Return the same as the solver compares it."""
        return self._copy_of(self._scaled_values)

    def _copy_of(self, values: np.ndarray) -> Rows:
        d = self.n_features
        if not self.is_sparse:
            return values[:d].reshape(1, d).copy()
        n, columns = int(self._start[1]), self._columns[SORTED_COLUMNS]
        return SparseRows(self._start.copy(), columns[:n].copy(), values[:n].copy(), d)


def _not_plain(x: Event) -> tuple[float, ...]:
    """Read an event that is not plain: see `EventPath._write_plain`."""
    raise KeyError


def _row_store(state: Any, room: int) -> Store:
    """Return a store of one row, as scratch in which compiled code computes k(x, x)."""
    store = state.store if "store" in state._fields else None
    return store if isinstance(store, SparseStore) else dense_store.new_store(1, room)
