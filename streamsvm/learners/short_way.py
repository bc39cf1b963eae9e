"""The short way of one event to linear weights and back, and when it is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import address_of
from streamsvm.learners import linear_events as its
from streamsvm.learners.event_block import Block
from streamsvm.learners.event_reader import LONGEST, reader_of
from streamsvm.learners.linear_events import N_NUMBERS, N_TABLE, methods
from streamsvm.learners.schema import Schema
from streamsvm.learners.ways import CLOSED, GIVE_UP, known_by_free, known_by_holder
from streamsvm.solvers.linear_state import LinearState, Schedule
from streamsvm.support.python_objects import PLAIN

DUE = True
"""The event was learnt, and was the last there was room for."""


class Target(NamedTuple):
    """What a short way leads to."""

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


class NoWay:
    """Gives up all events."""

    is_open = False

    def __init__(self) -> None:
        self.predict: Callable[[Any], Any] = lambda x: GIVE_UP
        self.learn: Callable[..., Any] = lambda x, y, w=1.0: GIVE_UP
        # The same for who holds the lock.
        self.learn_locked = self.learn

    def close(self) -> None:
        """Give up from now on; called with the lock."""

    def margin_held(self, x: Any) -> Any:
        """Return a margin to who holds the lock; of events, too, that Python must look at first."""
        return GIVE_UP

    def learn_held(self, x: Any, y: Any, w: float = 1.0) -> Any:
        """Learn for who holds the lock; events, too, that Python must look at first."""
        return GIVE_UP

    def last_example(self) -> tuple[Any, Any, Any]:
        """Return the label, the prediction and the margin of the event that was learnt last."""
        raise AssertionError("no event was learnt")


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
        self._numbers, self._table = np.zeros(N_NUMBERS), np.zeros(N_TABLE, np.int64)
        self._margins = np.zeros(1)
        self._labels: list[Any] = []
        self._own: dict[Any, Any] = {}
        arrays = (self._reader.places, self._numbers, n_learnt)
        self._table[: its.LEARNT + 1] = 1, *map(address_of, arrays)
        self._table[its.NONE :] = [id(thing) for thing in (None, DUE, GIVE_UP)]
        # What must live as long as the methods: that which it leads to comes last.
        self._kept = [self._table, arrays, self._reader, schema, lock, None]
        free, held = known_by_free(self._table, lock), known_by_holder(self._table)
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

    def lead_to(self, target: Target) -> None:
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

    def margin_held(self, x: Any) -> Any:
        """Return a margin to who holds the lock; of events, too, that Python must look at first."""
        if not self.is_open:
            return GIVE_UP
        try:
            found = self._predict(x)
            found = self._predict(self._readable(x)) if found is GIVE_UP else found
        except _REFUSED:
            return GIVE_UP
        return GIVE_UP if found is GIVE_UP else self._margin()

    def _margin(self) -> Any:
        """Return the margin of the last event, from before it was learnt; or one a class."""
        found = self._margins
        return found.item() if found.size == 1 else found.tolist()

    def last_example(self) -> tuple[Any, Any, Any]:
        """See `NoWay`."""
        margin, labels = self._margin(), self._labels
        best = margin > 0.0 if len(labels) == 2 else max(range(len(labels)), key=margin.__getitem__)
        return labels[self._table[its.CLASS]], labels[best], margin

    def learn_held(self, x: Any, y: Any, w: float = 1.0) -> Any:
        """Learn for who holds the lock; events, too, that Python must look at first."""
        if not self.is_open:
            return GIVE_UP
        try:
            label = self._own[y]
            found = self.learn_locked(x, label, w)
            return self.learn_locked(self._readable(x), label, w) if found is GIVE_UP else found
        except _REFUSED:
            return GIVE_UP


_REFUSED = (KeyError, TypeError, ValueError)
