"""Predicts and learns events by the `EventPath` of a learner, or tells it to fall back.

An event that an `EventPath` cannot take (its label is new, a value is no number, there is no room
for a feature) falls back to the general path, on which `Learner` learns it as a batch of one row.
Callers hold the learner's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsvm import _parameter_checks
from streamsvm._compiling import clock, working_time
from streamsvm._parameter_checks import LARGEST_FACTOR
from streamsvm.errors import BadEventError
from streamsvm.features.event_reader import Event, EventReader, are_usable
from streamsvm.features.names import Name
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases import label_runs, rehearsal
from streamsvm.learners.bases.event_path import EventPath
from streamsvm.monitor.learnt import learnt_one
from streamsvm.support.locked import refuse_to_learn
from streamsvm.support.rows import shape

if TYPE_CHECKING:
    from streamsvm.learners.bases.learner import Learner

_NUMBERS = (float, int, bool)
"""The usual types of weights; NumPy's are found out more slowly."""

_ATTEMPTS = 8
"""How often an event is read again because reading it changed the model (see `checked`)."""


def _read(learner: Learner, x: Mapping[Name, Any], learning: bool) -> Event | None:
    """Return an event as packed numbers, or None; methods of the user's mapping may run here."""
    reader: EventReader | None = learner.event_reader
    if reader is None or reader.schema is not learner.schema:
        reader = learner.event_reader = EventReader(learner.schema)
    return reader.sparse(x, learning) if learner.is_sparse else reader.dense(x, learning)


def _path_for(learner: Learner, event: Event) -> EventPath | None:
    """Return the path bound to the learner's current state; None if the event must fall back.

    Code of the user that ran while the event was read may have changed the learner. So everything
    is checked here, after reading, and no code of the user runs from here to the compiled call.
    """
    _, d, _, columns, new = event
    if d - len(new) != len(learner.schema) or bool(columns) != learner.is_sparse:
        return None
    path: EventPath | None = learner.event_path
    bound = learner.event_parts()
    statistics = learner.schema.missing.statistics
    if path is None or not path.is_bound_to(bound) or path.statistics is not statistics:
        state, model = bound[0], learner.event_model()
        if (
            state is None
            or len(learner.targets.labels.seen) < 2
            or model.is_sparse != learner.is_sparse
        ):
            return None
        path = learner.event_path = learner.new_event_path(learner, model, bound)
    return path if d <= path.room else None


def predict(learner: Learner, x: Mapping[Name, Any]) -> tuple[int, EventPath | None]:
    """Return the index of an event's label, -1 to fall back, and the path, which has the margin."""
    if learner.is_learning:
        # The path still has the event that is being learnt.
        return -1, None
    path: EventPath | None = learner.event_path
    if path is not None and x.__class__ is dict:
        label_index = path.predict_plain(learner, x)
        if label_index >= 0:
            return label_index, path
    event = _read(learner, x, False)
    path = None if event is None else _path_for(learner, event)
    if event is None or path is None:
        return -1, path
    label_index = path.predict(event)
    if label_index >= 0 and isinstance(x, dict):
        learner.schema.note_predicted(x)
    return label_index, path


def learn(learner: Learner, x: Mapping[Name, Any], y: Any, w: Any) -> bool:
    """Learn an event, and tell the monitor; return False to fall back, when nothing was learnt.

    Label and weight are as the user gave them: not checked yet. Raises ModelBusyError if this
    thread is in the middle of learning on this learner.
    """
    if learner.is_learning:
        refuse_to_learn()
    if learner.waiting is not None:
        return False
    # What is no number, or out of range, is refused by the general path.
    if w.__class__ not in _NUMBERS and not (
        isinstance(w, np.floating | np.integer | np.bool_) and not isinstance(w, np.timedelta64)
    ):
        return False
    if not 0.0 <= w <= LARGEST_FACTOR:
        return False
    w = float(w)
    signs = learner.targets.labels.signs
    try:
        sign = signs.get(y)
    except TypeError:
        # A label that is not hashable: the general path raises the error.
        return False
    if sign is None:
        return False
    cost = learner.cost_of(y, sign) * w
    observer = learner.observer
    if observer is not None and observer.asks_probabilities:
        return False
    began = working_time() if observer is not None else 0.0
    path: EventPath | None = learner.event_path
    label_index = -1
    try:
        if path is not None and x.__class__ is dict:
            label_index = path.learn_plain(learner, x, signs, sign, cost, w)
        if label_index < 0:
            label_index, path = read_and_learn(learner, x, signs, (sign, cost, w))
        if label_index < 0 or path is None:
            return False
        learner.after_event(path, sign, cost)
        if observer is not None:
            _tell(learner, observer, path, sign, label_index, w, working_time() - began)
    finally:
        # `learn_plain` or `read_and_learn` has set it.
        learner.is_learning = False
    return True


def _tell(
    learner: Learner,
    observer: Any,
    path: EventPath,
    sign: float,
    label_index: int,
    w: float,
    seconds: float,
) -> None:
    """Tell the monitor of the event that a path has learnt; `label_index` was predicted."""
    labels = learner.targets.labels
    label, predicted = labels.label_of_sign(sign), labels.ordered[label_index]
    if not observer.note(label, predicted, seconds):
        number = learner.n_examples
        row, margin = path.row(), path.margin
        observer.learnt(learnt_one(row, sign, label, predicted, margin, w, number, seconds))


def read_and_learn(
    learner: Learner,
    x: Mapping[Name, Any],
    signs: dict[Any, float],
    target: tuple[Any, float, float],
    learn_by: Callable[..., int] = EventPath.learn,
) -> tuple[int, EventPath | None]:
    """Learn an event that is not plain; return what `predict` does.

    `signs` are the signs of the learner's labels, `target` the sign, C_i and weight of the event,
    as `learn_by`, a method of the path, takes them.
    """
    learner.is_learning = False
    event = _read(learner, x, True)
    # Before it is compared: from here on, nothing else may learn on the model.
    learner.is_learning = True
    path = None if event is None else _path_for(learner, event)
    if path is None or event is None or learner.targets.labels.signs is not signs:
        return -1, None
    if event[4]:
        takes_all = learner.takes_every_row() and learner.schema.missing.policy != "reject"
        if not (takes_all and are_usable(event)):
            return -1, None
        # Before learning, so that after an interruption every column in use has a name.
        learner.schema.extend(event[4])
        if len(learner.schema) != event[1]:
            # Names that compare otherwise each time: the general path refuses them.
            return -1, None
    return learn_by(path, event, *target), path


def margin(learner: Learner, x: Mapping[Name, Any]) -> Any:
    """Return the margin of an event as a float, or its scores as a list; the lock is held."""
    label_index, path = predict(learner, x)
    return path.margin if path is not None and label_index >= 0 else general_margin(learner, x)


def general_margin(learner: Learner, x: Mapping[Name, Any]) -> Any:
    """Return the same by the general path, which takes every event."""
    row = learner.schema.known_row(x) if learner.is_sparse else learner.schema.row(x)
    if not learner.targets.labels.seen:
        return learner.targets.zeros(1)[0].tolist()
    if isinstance(x, dict):
        learner.schema.note_predicted(x)
    return learner.margins_of(row)[0].tolist()


def learn_generally(learner: Learner, x: Mapping[Name, Any], y: Any, w: Any) -> None:
    """Learn an event by the general path; the learner's lock is held."""
    try:
        row, labels, weights, new = checked(learner, x, y, w)
        missing = learner.schema.missing
        row, statistics = missing.filled(row, [*learner.schema.names, *new], True)
        diagonal = learner.diagonal_of(row)
        learner.schema.extend(new)
        if shape(row)[1] > len(learner.schema):
            raise BadEventError("names of features must compare in the same way each time")
        missing.keep(statistics)
        compiled = clock.functions
        label_runs.learn(learner, row, labels, weights, None, diagonal)
        if clock.functions > compiled:
            rehearsal.compile_ahead(learner)
        rehearsal.look(learner)
    finally:
        learner.is_learning = False


def checked(learner: Learner, x: Mapping[Name, Any], y: Any, w: Any) -> tuple[Any, ...]:
    """Return an event as a batch of one row for the general path, and the names of new features.

    Missing values of the row are NaN; beside it are a label and a weight. Raises BadEventError if
    the event cannot be used; the model is unchanged. The caller sets `is_learning` back.
    """
    # Methods of the event's values may use this model and change it. So they are converted to
    # floats once, here.
    event = learner.schema.checked(x)
    for left in reversed(range(_ATTEMPTS)):
        # Methods of names and labels (hash, comparison) may change the model, too: then again. In
        # the last attempt they are refused to: signal handlers may come, and learn, in each one.
        learner.is_learning = left == 0
        schema, n, k = learner.schema, learner.n_examples, len(learner.schema)
        row, new = schema.sparse_row(event) if learner.is_sparse else schema.wider_row(event)
        weights = _parameter_checks.weights_of(w, 1)
        labels = learner.targets.labels.check(LabelColumn.of([y]))
        # Before it is compared: from here on, nothing else may learn on the model.
        learner.is_learning = True
        if learner.schema is schema and (learner.n_examples, len(schema)) == (n, k):
            return row, labels, weights, new
        learner.is_learning = False
    raise BadEventError(
        "the model was changed each time this event was read: its values, names or label must "
        "not learn on the model that reads them"
    )
