"""Events of a linear learner by compiled methods: when the fast path is bound, and to what."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from streamsvm._compiling import working_time
from streamsvm.features.names import Name
from streamsvm.learners.bases.linear import rate_search
from streamsvm.monitor.learnt import learnt_one
from streamsvm.native_events import availability
from streamsvm.native_events.event_reader import LONGEST
from streamsvm.native_events.linear_path import LinearFastPath, NoFastPath, Target
from streamsvm.native_events.python_objects import PLAIN
from streamsvm.solvers.linear.state import LinearState

if TYPE_CHECKING:
    from streamsvm.learners.bases.linear.linear_learner import LinearLearner

_WORTH_BINDING = 32
"""The number of events on the fast path that make up for the time of binding it."""

_MOST_DOUBLINGS = 12


class BindingPace:
    """When it is worth binding the fast path again.

    Binding takes tens of microseconds. It must not follow each event of a stream that compiled code
    cannot read, for example because the names of features are no strings: after each binding that
    was of little use, twice as many examples go by before the next one.

    Attributes
    ----------
    bind_at
        The number of examples from which on it is worth binding.

    """

    def __init__(self) -> None:
        self.bind_at = self._bound_at = self._n_fallbacks = 0

    def note_binding(self, n: int) -> None:
        """Note that the path was bound after n examples."""
        self._bound_at = n

    def note_fallback(self, n: int) -> None:
        """Note that the next event after n examples could not take the open path."""
        is_usual = n - self._bound_at < _WORTH_BINDING
        self._n_fallbacks = min(self._n_fallbacks + 1, _MOST_DOUBLINGS) if is_usual else 0
        self.bind_at = n + (1 << self._n_fallbacks) - 1


def bind(model: LinearLearner) -> None:
    """Let the events of a model take the fast path, if they can; the lock is held."""
    schema = model.schema
    is_readable = schema.are_simple or schema.buckets is not None
    # Compiled code refuses nothing.
    refuses = schema.missing.policy == "reject" and not model.is_sparse
    if not is_readable or refuses or len(schema) < 2 or model.waiting is not None:
        drop(model)
        return
    if not _has_path_for(model, model.make_room(len(schema))):
        model.set_fast_path(_new_path(model))
    # If the model is used from here on, the path remains closed.
    now = model.solver.generation.advance()
    model.pace.note_binding(model.n_examples)
    state, path = model.state, model.fast_path
    if state is not None and isinstance(path, LinearFastPath) and _has_path_for(model, state):
        _reserve_block(model, state)
        path.bind(_target_of(model, state), now)


def _has_path_for(model: LinearLearner, state: LinearState) -> bool:
    path, room = model.fast_path, state.weights.shape[2]
    return isinstance(path, LinearFastPath) and path.is_for(model.schema, room, model.is_sparse)


def _new_path(model: LinearLearner) -> LinearFastPath:
    room, generation = model.make_room(len(model.schema)).weights.shape[2], model.solver.generation
    own = model.schema, room, model.is_sparse
    return LinearFastPath(*own, model.lock, generation, model.n_learnt)


def drop(model: LinearLearner) -> None:
    """Free the memory of the fast path: from now on events take the general path."""
    if isinstance(model.fast_path, LinearFastPath):
        model.close_fast_path()
        model.set_fast_path(NoFastPath())
        if model.solver.first_rows is not None:
            model.solver.first_rows.drop_room()


def _reserve_block(model: LinearLearner, state: LinearState) -> None:
    """Make room for the events until the next rate search, which compiled code appends."""
    rows, n = model.solver.first_rows, model.n_examples
    if rows is not None:
        stop = rate_search.next_search(n)
        width = LONGEST if model.is_sparse else state.weights.shape[2]
        # Of wide rows no more than are needed next.
        most = (rate_search.LAST if width <= LONGEST else stop) - n
        rows.make_block(stop, most, width, model.is_sparse)


def _target_of(model: LinearLearner, state: LinearState) -> Target:
    """Return the parts of the model that the fast path is to be bound to."""
    solver, labels, missing = model.solver, list(model.labels), model.schema.missing
    rows = solver.first_rows
    return Target(
        state,
        solver.schedule,
        solver.step.is_sgdqn,
        model.targets.calibration,
        labels,
        [model.cost_of(label, 0.0) for label in labels],
        None if rows is None else rows.block,
        missing.reserve(0 if model.is_sparse else state.weights.shape[2]),
        missing.code,
    )


def learn_watched(
    model: LinearLearner, learn: Callable[..., Any], x: Mapping[Name, Any], y: Any, w: float
) -> bool:
    """Learn an event by a method of the fast path, and tell the monitor; the lock is held.

    False if nothing was learnt: there is no monitor, or the event has to take the general path.
    """
    observer = model.observer
    if observer is None or observer.asks_probabilities:
        return False
    began = working_time()
    learnt = learn(x, y, w)
    if learnt is None:
        return False
    # The lock is held: no other event was learnt since.
    label, predicted, margin = model.fast_path.last_example()
    if not learnt:
        model.search_rate_if_due()
    seconds = working_time() - began
    if not observer.note(label, predicted, seconds):
        row = model.schema.known_row(x) if model.is_sparse else model.fast_path.last_row()
        sign, number = model.targets.number_of(label), model.n_examples
        observer.learnt(learnt_one(row, sign, label, predicted, margin, w, number, seconds))
    return True


def make_room(model: LinearLearner, x: Mapping[Name, Any]) -> None:
    """Widen the weights if an open fast path may lack room for the new features of an event."""
    schema, state = model.schema, model.state
    if not model.fast_path.is_open or schema.buckets is not None or x.__class__ not in PLAIN:
        return
    d = min(len(schema) + len(x), schema.limit)
    if len(x) <= LONGEST and state is not None and d > state.weights.shape[2]:
        model.make_room(d)
        model.bind_fast_path()


def methods_of(
    model: LinearLearner, path: NoFastPath
) -> tuple[Callable[[Any], Any], Callable[..., Any]]:
    """Return the methods of a path that predict and that learn events.

    In debug mode they first compare the addresses that the path uses with those of the arrays.
    """
    if not availability.DEBUG or not isinstance(path, LinearFastPath):
        return path.predict, path.learn
    return _checked(model, path, path.predict), _checked(model, path, path.learn)


def _checked(
    model: LinearLearner, path: LinearFastPath, method: Callable[..., Any]
) -> Callable[..., Any]:
    reference = weakref.ref(model)

    def checked(*arguments: Any) -> Any:
        owner = reference()
        if owner is not None:
            with owner.lock:
                now = owner.solver.generation.now
                if owner.state is not None:
                    path.check(_target_of(owner, owner.state), now)
        return method(*arguments)

    return checked
