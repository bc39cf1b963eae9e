"""The fast path of single events of a linear learner: binding it to arrays, and closing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of
from streamsvm.errors import StaleAddressError
from streamsvm.features.schema import Schema
from streamsvm.native_events import availability
from streamsvm.native_events import linear_events as events
from streamsvm.native_events.event_block import Block
from streamsvm.native_events.event_reader import LONGEST, reader_of
from streamsvm.native_events.fast_path import (
    GENERATION,
    N_HEAD,
    Generation,
    guarded_by_lock,
    head_of,
    publish,
    release,
    unguarded,
)
from streamsvm.native_events.linear_events import N_TABLE, methods
from streamsvm.native_events.python_objects import PLAIN
from streamsvm.solvers.linear.state import LinearState, Schedule


class Target(NamedTuple):
    """The parts of a linear learner that a fast path reads and writes."""

    state: LinearState
    schedule: Schedule
    step: float  # 0: SGD, 1: SGD-QN
    calibration: np.ndarray
    labels: list[Any]  # in the order of the outputs; the negative one of two first
    factors: list[float]  # the weight of each label
    block: Block | None  # the buffer that events are appended to
    statistics: np.ndarray  # of features, see `features.missing`
    policy: int  # what takes the place of missing values


class _Arrays(NamedTuple):
    """A target, and copies of its numbers in arrays whose addresses compiled code can use."""

    target: Target
    numbers: np.ndarray  # float64 (9,): schedule and step
    labels: np.ndarray  # int64: the addresses of the labels
    factors: np.ndarray  # float64
    margins: np.ndarray  # float64 (outputs,)
    equal_label: dict[Any, Any]  # {label: label}: the label that equals a given one of another type


class NoFastPath:
    """A fast path that is never open: all events take the general path.

    `predict` and `learn` return None, which says that the event has to take the general path: None
    is no label, and `learn` returns a bool for an event that it has learnt.
    """

    is_open = False

    def __init__(self) -> None:
        self.predict: Callable[[Any], Any] = lambda x: None
        self.learn: Callable[..., Any] = lambda x, y, w=1.0: None
        # For a caller that holds the lock.
        self.learn_locked = self.learn

    def release(self) -> None:
        """Drop the references to the arrays, if the path is closed; the caller holds the lock."""

    def margin_locked(self, x: Any) -> Any:
        """Return the margin of an event, or its list of scores; None: take the general path.

        The caller holds the lock. Events that compiled code cannot read are converted first.
        """
        return None

    def learn_locked_any(self, x: Any, y: Any, w: float = 1.0) -> bool | None:
        """Learn an event: True; False if the block is full now; None: take the general path.

        The caller holds the lock. What compiled code cannot read is converted first.
        """
        return None

    def last_example(self) -> tuple[Any, Any, Any]:
        """Return label, prediction and margin, before learning, of the event learnt last."""
        raise AssertionError("no event was learnt")

    def last_row(self) -> np.ndarray:
        """Return a copy of the row of the event learnt last, if rows are dense."""
        raise AssertionError("no event was learnt")


class LinearFastPath(NoFastPath):
    """Predicts and learns events by compiled methods; new features are appended to the schema.

    ``predict(x)`` returns a label. ``learn(x, y[, w])`` returns True, or False if the block is full
    after this event. Both return None, and change nothing, if they cannot read the event or its
    label, while the path is closed, and while any thread holds the lock.

    Parameters
    ----------
    schema
        The schema that new names are appended to.
    room
        The largest number of features of dense rows.
    is_sparse
        Whether events are read as sparse rows.
    lock
        The model's RLock: events are neither predicted nor learnt while it is held.
    generation
        The model's generation.
    n_learnt
        int64 (1,): the number of examples learnt, which `learn` increases.

    """

    def __init__(
        self,
        schema: Schema,
        room: int,
        is_sparse: bool,
        lock: Any,
        generation: Generation,
        n_learnt: np.ndarray,
    ) -> None:
        self.schema, self._is_sparse, self._capacity = schema, is_sparse, room
        self._generation, self.n_learnt = generation, n_learnt
        self._reader = reader_of(schema, room, not is_sparse)
        self._table = np.zeros(N_TABLE, np.int64)
        self._table[:N_HEAD] = head_of(generation, address_of(self._reader.fields))
        # Methods of a closed table return these, too.
        self._table[events.LEARNT :] = id(True), id(False), id(None)
        # The last dense row, without missing values: it outlasts a binding to other arrays.
        self._filled = np.zeros(0 if is_sparse else room, np.float32)
        self._arrays: list[_Arrays | None] = [None]
        # All objects whose addresses the methods use.
        kept = self._table, self._reader, self._filled, self._arrays, generation, n_learnt, lock
        guarded, locked = guarded_by_lock(self._table, lock), unguarded(self._table)
        new_predict, new_learn = methods(is_sparse)
        self.predict, self.learn = new_predict(guarded, kept), new_learn(guarded, kept)
        self._predict, self.learn_locked = new_predict(locked, kept), new_learn(locked, kept)

    @property
    def is_open(self) -> bool:  # type: ignore[override]
        """Whether the methods use their table: the path is bound to the model's current arrays."""
        return availability.is_on() and bool(self._table[GENERATION] == self._generation.now)

    def release(self) -> None:
        """See `NoFastPath`."""
        release(self._table, self._arrays)

    def is_for(self, schema: Schema, room: int, is_sparse: bool) -> bool:
        """Tell whether the path can be bound to weights of `room` columns for that schema."""
        fits = is_sparse or room <= self._capacity
        return schema is self.schema and is_sparse == self._is_sparse and fits

    def bind(self, target: Target, generation: int) -> bool:
        """Bind the path to the parts of a model; return whether that opened it.

        `generation` is what `Generation.advance` returned before any part was read. The path stays
        closed if the model was used meanwhile, if the numbers of labels and of outputs do not
        match, or if compiled code cannot read a name.
        """
        outputs, _, room = target.state.weights.shape
        n = len(target.labels)
        # Compiled code cannot check the sizes of arrays that it finds by their addresses.
        fits = n >= 2 and outputs == (1 if n == 2 else n) and len(target.state.info) == outputs
        if not fits or target.calibration.size != (6 if outputs == 1 else 2):
            return False
        schema = self.schema
        most = min(schema.limit, schema.n_names + schema.room)
        limit = room if schema.buckets else min(room, most)
        self._reader.update()
        arrays = _Arrays(
            target,
            np.array([*target.schedule, target.step]),
            np.array([id(label) for label in target.labels], np.int64),
            np.array(target.factors),
            np.zeros(len(target.state.info)),
            {label: label for label in target.labels},
        )
        return publish(self._table, self._table_of(arrays, generation), limit, self._arrays, arrays)

    def _table_of(self, arrays: _Arrays, generation: int) -> np.ndarray:
        """Return the fields of a table for these arrays."""
        target, numbers, labels, factors, margins, _ = arrays
        table = self._table.copy()
        table[GENERATION] = generation
        table[events.NUMBERS], table[events.N_LEARNT] = map(address_of, (numbers, self.n_learnt))
        table[events.WEIGHTS], table[events.INFO] = map(address_of, target.state)
        table[events.N_OUTPUTS : events.N_COLUMNS + 1] = target.state.weights.shape
        table[events.CALIBRATION] = address_of(target.calibration)
        table[events.BLOCK] = 0 if target.block is None else address_of(target.block.head)
        table[events.N_LABELS] = len(target.labels)
        table[events.LABELS : events.MARGINS + 1] = (*map(address_of, (labels, factors, margins)),)
        table[events.STATISTICS] = address_of(target.statistics)
        table[events.N_STATISTICS] = target.statistics.shape[1]
        table[events.POLICY], table[events.FILLED] = target.policy, address_of(self._filled)
        return table

    def check(self, target: Target, generation: int) -> None:
        """Compare each address in an open table with that of the model's array: for debug mode.

        Raise `StaleAddressError` if one is wrong, unless the model was used after `generation` was
        read, by a signal handler for example.
        """
        arrays = self._arrays[0]
        if arrays is None or not self.is_open:
            return
        expected = self._table_of(arrays._replace(target=target), generation)
        expected[:N_HEAD] = head_of(self._generation, address_of(self._reader.fields))
        expected[GENERATION] = generation
        found = self._table.copy()
        expected[events.LAST_LABEL] = found[events.LAST_LABEL]
        labels = [id(label) for label in target.labels]
        block = target.block
        is_sound = (
            np.array_equal(expected, found)
            and arrays.labels.tolist() == labels
            and self._reader.is_sound()
            and (block is None or block.is_sound())
        )
        # Last, so that whatever changed the model meanwhile is noticed.
        if not is_sound and self._generation.now == generation:
            wrong = np.flatnonzero(expected != found).tolist()
            raise StaleAddressError(
                f"fields {wrong} of the table of a linear learner are not those of its arrays, or "
                "its reader or block are wrong: switch native events off "
                "(STREAMSVM_NATIVE_EVENTS=0), and report this"
            )

    def _readable(self, x: Any) -> dict[Any, float]:
        """Return an event that fell back as a dict of floats, which compiled code can read."""
        if x.__class__ in PLAIN and len(x) > LONGEST:
            raise ValueError
        if not self.schema.are_simple:
            raise ValueError
        self._reader.update()
        # A value's `__float__` may run code that uses the model, which closes the path.
        return self.schema.checked(x)

    def margin_locked(self, x: Any) -> Any:
        """See `NoFastPath`."""
        if not self.is_open:
            return None
        try:
            found = self._predict(x)
            found = self._predict(self._readable(x)) if found is None else found
        except _REFUSED:
            return None
        return None if found is None else self._margin()

    def _margin(self) -> Any:
        """Return the margin of the last event, before learning, or a list of scores by class."""
        arrays = self._arrays[0]
        assert arrays is not None
        return arrays.margins.item() if arrays.margins.size == 1 else arrays.margins.tolist()

    def last_example(self) -> tuple[Any, Any, Any]:
        """See `NoFastPath`."""
        arrays, margin = self._arrays[0], self._margin()
        assert arrays is not None
        labels = arrays.target.labels
        best = margin > 0.0 if len(labels) == 2 else max(range(len(labels)), key=margin.__getitem__)
        return labels[self._table[events.LAST_LABEL]], labels[best], margin

    def last_row(self) -> np.ndarray:
        """See `NoFastPath`."""
        return self._filled[: self.schema.n_names].reshape(1, -1).copy()

    def learn_locked_any(self, x: Any, y: Any, w: float = 1.0) -> bool | None:
        """See `NoFastPath`."""
        arrays = self._arrays[0]
        if arrays is None or not self.is_open:
            return None
        try:
            label = arrays.equal_label[y]
            learnt: bool | None = self.learn_locked(x, label, w)
            return self.learn_locked(self._readable(x), label, w) if learnt is None else learnt
        except _REFUSED:
            return None


_REFUSED = (KeyError, TypeError, ValueError)
