"""The fast path of one event to linear weights and back, and when it is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of
from streamsvm.features.schema import Schema
from streamsvm.native_events import linear_events as its
from streamsvm.native_events.event_block import Block
from streamsvm.native_events.event_reader import LONGEST, reader_of
from streamsvm.native_events.linear_events import N_NUMBERS, N_TABLE, methods
from streamsvm.native_events.path_table import CLOSED, FALL_BACK, guarded_by_lock, unguarded
from streamsvm.native_events.python_objects import PLAIN
from streamsvm.solvers.linear.state import LinearState, Schedule

BUFFER_FULL = True
"""The event was learnt, and was the last there was room for."""


class Target(NamedTuple):
    """What a fast path leads to."""

    state: LinearState
    schedule: Schedule
    kind: float
    calibration: np.ndarray
    labels: list[Any]
    """In the order of the outputs; of two the negative one first."""
    factors: list[float]
    """Weights of the labels."""
    block: Block | None
    """Where events are kept."""


class NoFastPath:
    """Gives up all events."""

    is_open = False

    def __init__(self) -> None:
        self.predict: Callable[[Any], Any] = lambda x: FALL_BACK
        self.learn: Callable[..., Any] = lambda x, y, w=1.0: FALL_BACK
        # The same for who holds the lock.
        self.learn_locked = self.learn

    def close(self) -> None:
        """Give up from now on; called with the lock."""

    def margin_locked(self, x: Any) -> Any:
        """Return a margin to who holds the lock; of events, too, that Python must look at first."""
        return FALL_BACK

    def learn_locked_any(self, x: Any, y: Any, w: float = 1.0) -> Any:
        """Learn for who holds the lock; events, too, that Python must look at first."""
        return FALL_BACK

    def last_example(self) -> tuple[Any, Any, Any]:
        """Return the label, the prediction and the margin of the event that was learnt last."""
        raise AssertionError("no event was learnt")


class LinearFastPath(NoFastPath):
    """Predicts and learns events of a schema, new features, too; or falls back to the general path.

    It is closed until it leads somewhere. ``predict(x)`` returns a label, ``learn(x, y[, w])`` None
    or `BUFFER_FULL`; `FALL_BACK`: it was not learnt.

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
        self._numbers, self._table = np.zeros(N_NUMBERS), np.zeros(N_TABLE, np.int64)
        self._margins = np.zeros(1)
        self._labels: list[Any] = []
        self._own: dict[Any, Any] = {}
        arrays = (self._reader.places, self._numbers, n_learnt)
        self._table[: its.LEARNT + 1] = 1, *map(address_of, arrays)
        self._table[its.NONE :] = [id(thing) for thing in (None, BUFFER_FULL, FALL_BACK)]
        # What must live as long as the methods: that which it leads to comes last.
        self._kept = [self._table, arrays, self._reader, schema, lock, None]
        free, held = guarded_by_lock(self._table, lock), unguarded(self._table)
        new_predict, new_learn = methods(is_sparse)
        self.predict, self.learn = new_predict(free, self._kept), new_learn(free, self._kept)
        self._predict, self.learn_locked = (
            new_predict(held, self._kept),
            new_learn(held, self._kept),
        )

    @property
    def is_open(self) -> bool:  # type: ignore[override]
        """Whether it leads somewhere."""
        return not self._table[CLOSED]

    def close(self) -> None:
        """Give up from now on; called with the lock."""
        self._table[CLOSED] = 1
        self._kept[-1] = None

    def is_for(self, schema: Schema, room: int, is_sparse: bool) -> bool:
        """Tell whether it may lead to weights for so many features of that schema."""
        fits = is_sparse or room <= self._capacity
        return schema is self._schema and is_sparse == self._is_sparse and fits

    def bind(self, target: Target) -> None:
        """Lead there from now on, if there are weights for all names; called with the lock."""
        # An interruption leaves it closed.
        self.close()
        state, schedule, kind, calibration, labels, factors, block = target
        self._labels, self._own = labels, {label: label for label in labels}
        objects = np.array([id(label) for label in labels], np.int64)
        weights = np.array(factors)
        self._margins = np.zeros(len(state.info))
        self._kept[-1] = (target, objects, weights, self._margins)
        room = state.weights.shape[2]
        # A copy shares the schema, and goes on alone.
        if len(self._schema) > room:
            return
        limit = room if self._schema.buckets else self._schema.limit
        self._reader.update(self._schema, min(room, limit))
        self._numbers[:] = *schedule, kind
        table = self._table
        table[its.WEIGHTS : its.INFO + 1] = address_of(state.weights), address_of(state.info)
        table[its.OUTPUTS : its.COLUMNS + 1] = state.weights.shape
        table[its.CALIBRATION] = address_of(calibration)
        table[its.BLOCK] = 0 if block is None else address_of(block.head)
        table[its.N_LABELS] = len(labels)
        table[its.LABELS : its.MARGINS + 1] = (*map(address_of, (objects, weights, self._margins)),)
        table[CLOSED] = 0

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

    def margin_locked(self, x: Any) -> Any:
        """Return a margin to who holds the lock; of events, too, that Python must look at first."""
        if not self.is_open:
            return FALL_BACK
        try:
            found = self._predict(x)
            found = self._predict(self._readable(x)) if found is FALL_BACK else found
        except _REFUSED:
            return FALL_BACK
        return FALL_BACK if found is FALL_BACK else self._margin()

    def _margin(self) -> Any:
        """Return the margin of the last event, from before it was learnt; or one a class."""
        found = self._margins
        return found.item() if found.size == 1 else found.tolist()

    def last_example(self) -> tuple[Any, Any, Any]:
        """See `NoFastPath`."""
        margin, labels = self._margin(), self._labels
        best = margin > 0.0 if len(labels) == 2 else max(range(len(labels)), key=margin.__getitem__)
        return labels[self._table[its.CLASS]], labels[best], margin

    def learn_locked_any(self, x: Any, y: Any, w: float = 1.0) -> Any:
        """Learn for who holds the lock; events, too, that Python must look at first."""
        if not self.is_open:
            return FALL_BACK
        try:
            label = self._own[y]
            found = self.learn_locked(x, label, w)
            return self.learn_locked(self._readable(x), label, w) if found is FALL_BACK else found
        except _REFUSED:
            return FALL_BACK


_REFUSED = (KeyError, TypeError, ValueError)
