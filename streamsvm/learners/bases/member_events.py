"""Events of an `AdaptiveSVMClassifier` by the event paths of its models, or the general path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamsvm.features.names import Name
from streamsvm.learners.bases import events

_PLAIN = {float, int, bool}



def learn(learner: Any, x: Mapping[Name, Any], y: Any, w: Any) -> bool:
    """Learn a plain event by the event paths of a learner's models.

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
    # Values of these types run no code of the user while they are read, once by each model.
    if (
        x.__class__ is not dict
        or learner.observer is not None
        or learner._is_learning
        or not _PLAIN.issuperset(map(type, x.values()))
    ):
        return False
    margins = []
    for member in learner._members:
        margin = _learn(member, x, y, w, may_fall_back=not margins)
        if margin is None:
            return False
        margins.append(margin)
    if not margins:
        return False
    learner._is_learning = True
    try:
        learner._note_event(margins, learner._members[0]._event_path.row(), y, float(w))
    finally:
        learner._is_learning = False
    return True


def _learn(member: Any, x: Any, y: Any, w: Any, may_fall_back: bool) -> Any:
    """Learn an event by one model; return the margin before, or None if it was not learnt."""
    if events.learn(member, x, y, w):
        return member._event_path.margin
    if may_fall_back:
        return None
    # The models before this one have learnt it.
    margin = member._margin_one(x)
    events.learn_generally(member, x, y, w)
    return margin
