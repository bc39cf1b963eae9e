"""Events of an `AdaptiveSVMClassifier` by the event path of the model in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamsvm.features.names import Name
from streamsvm.learners.bases import events

_PLAIN = {float, int, bool}


def learn(learner: Any, x: Mapping[Name, Any], y: Any, w: Any) -> bool:
    """Learn a plain event by the event path of the model that predicts.

    Parameters
    ----------
    learner
        An `AdaptiveSVMClassifier`; the caller holds its lock.
    x, y, w
        The event, its label and its weight, as the user gave them.

    Returns
    -------
    True; False to fall back, when nothing was learnt.

    """
    # Values of these types run no code of the user while they are read.
    if (
        x.__class__ is not dict
        or learner.observer is not None
        or learner._is_learning
        or not _PLAIN.issuperset(map(type, x.values()))
    ):
        return False
    model = learner.in_use
    if model is None or not events.learn(model, x, y, w):
        return False
    learner._is_learning = True
    try:
        path = model._event_path
        learner._note_event(path.margin, path.row(), y, float(w))
    finally:
        learner._is_learning = False
    return True
