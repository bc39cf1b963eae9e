"""Events of an `AdaptiveSVMClassifier` by the event paths of its models, or the general path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.features.names import Name
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases import events, members
from streamsvm.support.rows import Rows

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
    margins: list[Any] = []
    for member in learner._members:
        if events.learn(member, x, y, w):
            margins.append(member._event_path.margin)
        elif not margins:
            return False
        else:
            # The models before this one have learnt it.
            margins.append(_learn_row(member, learner._members[0]._event_path.row(), y, float(w)))
    if not margins:
        return False
    learner._is_learning = True
    try:
        learner._note_event(margins, learner._members[0]._event_path.row(), y, float(w))
    finally:
        learner._is_learning = False
    return True


def _learn_row(member: Any, row: Rows, label: Any, w: float) -> Any:
    """Learn a row by one model on the general path; return the margin before."""
    member._is_learning = True
    try:
        one = np.ones(1)
        margins = members.learn(member, row, LabelColumn.of([label]), w * one, one > 0.0)
    finally:
        member._is_learning = False
    return margins[0].tolist()
