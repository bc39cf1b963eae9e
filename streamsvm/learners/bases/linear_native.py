"""How a linear learner comes to the fast path of its events."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from streamsvm._compiling import working_time
from streamsvm.features.names import Name
from streamsvm.learners.bases import rate_search
from streamsvm.learners.bases.training_observer import TrainingObserver, tell
from streamsvm.native_events import availability
from streamsvm.native_events.event_reader import LONGEST
from streamsvm.native_events.linear_path import LinearFastPath, NoFastPath, Target
from streamsvm.native_events.python_objects import PLAIN
from streamsvm.solvers.linear.state import LinearState

if TYPE_CHECKING:
    from streamsvm.learners.bases.linear_learner import LinearLearner

_WORTH_BINDING = 32
"""Events by the fast path that make up for binding it."""

_MOST_DOUBLINGS = 12


def bind(model: LinearLearner) -> None:
    """Let the events of a model take the fast path, if that is possible; its lock is held."""
    schema = model._schema
    possible = availability.is_on() and (schema.are_simple or schema.buckets is not None)
    if not possible or len(schema) < 2 or len(model._labels.seen) < 2:
        drop(model)
        return
    if not _has_path_for(model, model._state_for(len(schema))):
        model._set_fast_path(_new_path(model))
    # From here on the path remains closed if anything uses the model.
    now = model._generation.advance()
    model._bound_at = model._n_examples
    state, path = model._state, model._fast_path
    if state is not None and isinstance(path, LinearFastPath) and _has_path_for(model, state):
        _reserve_block(model, state)
        path.bind(_target_of(model, state), now)


def note_fallback(model: LinearLearner) -> None:
    """Note that an event could not take the open path; wait with the next binding if that is usual.

    Binding takes tens of microseconds: it must not follow each event of a stream that machine code
    does not read, of names that are not strings, say.
    """
    if not model._fast_path.is_open:
        return
    is_usual = model._n_examples - model._bound_at < _WORTH_BINDING
    model._n_fallbacks = min(model._n_fallbacks + 1, _MOST_DOUBLINGS) if is_usual else 0
    model._bind_at = model._n_examples + (1 << model._n_fallbacks) - 1


def _has_path_for(model: LinearLearner, state: LinearState) -> bool:
    path, room = model._fast_path, state.weights.shape[2]
    return isinstance(path, LinearFastPath) and path.is_for(model._schema, room, model._sparse)


def _new_path(model: LinearLearner) -> LinearFastPath:
    schema = model._schema
    room = model._state_for(len(schema)).weights.shape[2]
    lock, generation, n_learnt = model._lock, model._generation, model._n_learnt
    return LinearFastPath(schema, room, model._sparse, lock, generation, n_learnt)


def drop(model: LinearLearner) -> None:
    """Free what the fast path had: events take the general path from now on."""
    if isinstance(model._fast_path, LinearFastPath):
        model._close_fast_path()
        model._set_fast_path(NoFastPath())
        if model._first is not None:
            model._first.drop_room()


def _reserve_block(model: LinearLearner, state: LinearState) -> None:
    """Make room for the next of the first examples."""
    first, n = model._first, model._n_examples
    if first is not None:
        room = rate_search.next_search(n) - n
        width = LONGEST if model._sparse else state.weights.shape[2]
        # Of wide rows no more than are needed next.
        most = rate_search.LAST - n if width <= LONGEST else room
        first.make_block(room, most, width, model._sparse)


def _target_of(model: LinearLearner, state: LinearState) -> Target:
    """Return what the fast path leads to, or should."""
    first, weight = model._first, model.class_weight or {}
    labels = list(model.labels if model._labels.is_binary else model._labels.seen)
    factors = [float(weight.get(label, 1.0)) for label in labels]
    block, kind = None if first is None else first.block, model._kind
    return Target(state, model._schedule, kind, model._calibration, labels, factors, block)


def learn_watched(
    model: LinearLearner,
    observer: TrainingObserver,
    learn: Callable[..., Any],
    x: Mapping[Name, Any],
    y: Any,
    w: float,
) -> bool:
    """Learn an event by the fast path, and tell the monitor; return False if it fell back."""
    if observer.asks_probabilities:
        return False
    began = working_time()
    learnt = learn(x, y, w)
    if learnt is None:
        return False
    # The lock is held: it is still the last one.
    label, predicted, margin = model._fast_path.last_example()
    if not learnt:
        model._search_rate_if_due()
    seconds = working_time() - began
    if not observer.note(label, predicted, seconds):
        row = model._schema.known_row(x) if model._sparse else model._schema.row(x)
        sign, number = model._labels.sign(label), model._n_examples
        tell(observer, row, sign, label, predicted, margin, w, number, seconds)
    return True


def make_room(model: LinearLearner, x: Mapping[Name, Any]) -> None:
    """Widen the weights if an open fast path may lack room for new features of an event."""
    if (
        not model._fast_path.is_open
        or model._schema.buckets is not None
        or x.__class__ not in PLAIN
    ):
        return
    d = min(len(model._schema) + len(x), model._schema.limit)
    if len(x) <= LONGEST and model._state is not None and d > model._state.weights.shape[2]:
        model._state_for(d)
        model._bind_fast_path()


def methods_of(
    model: LinearLearner, path: NoFastPath
) -> tuple[Callable[[Any], Any], Callable[..., Any]]:
    """Return what predicts and what learns by a path; in debug mode, what compares first."""
    if not availability.DEBUG or not isinstance(path, LinearFastPath):
        return path.predict, path.learn
    return _checked(model, path, path.predict), _checked(model, path, path.learn)


def _checked(
    model: LinearLearner, path: LinearFastPath, method: Callable[..., Any]
) -> Callable[..., Any]:
    itself = weakref.ref(model)

    def checked(*arguments: Any) -> Any:
        owner = itself()
        if owner is not None:
            with owner._lock:
                if owner._state is not None:
                    path.check(_target_of(owner, owner._state))
        return method(*arguments)

    return checked
