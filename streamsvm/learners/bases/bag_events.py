"""Learns events whose labels are bags by one compiled call, as `events` does others.

Callers hold the learner's lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsvm._compiling import working_time
from streamsvm._parameter_checks import LARGEST_FACTOR
from streamsvm.features.event_reader import Event
from streamsvm.features.names import Name
from streamsvm.labels.bag_labels import judged_one
from streamsvm.learners.bases import events
from streamsvm.learners.bases.event_calls import Arguments
from streamsvm.learners.bases.event_path import EventPath
from streamsvm.monitor.learnt import learnt_one
from streamsvm.support.bag_calibration import update_bag
from streamsvm.support.locked import refuse_to_learn

if TYPE_CHECKING:
    from streamsvm.learners.bases.learner import Learner

_BAGS = frozenset((set, frozenset, list))
"""The usual bags; the general path takes others, too."""

_OF_BAG = -1.0
"""The sign of a bag: the solver finds its candidates in the margins."""


class BagPath(EventPath):
    """An `EventPath` that learns bags, too: sets of the numbers of labels."""

    def _bind(self, **values: Any) -> None:
        super()._bind(**values)
        # Compiled code would calibrate by the number of a label.
        self._values_of_bags = Arguments(**values | {"calibration": np.zeros(0)})
        self._of_bags = self._values_of_bags.address
        self._calibration, self._scores = values["calibration"], self.margins[0]
        self._bag = np.zeros(self.margins.size)

    def learn_bag_plain(
        self,
        learner: Learner,
        x: Mapping[Name, Any],
        signs: dict[Any, float],
        *target: Any,
    ) -> int:
        """Learn an event if it is plain: see `learn_plain`; `target` is as of `learn_bag`."""
        read = self._plain(learner, x, True)
        if read is None or learner.targets.labels.signs is not signs:
            return -1
        return self._learn_bag_read(*read, *target)

    def learn_bag(self, event: Event, bag: set[int], cost: float, weight: float) -> int:
        """Learn what an `EventReader` read: see `learn`."""
        _, d, values, columns, _ = event
        return self._learn_bag_read(values, columns, d, bag, cost, weight)

    def _learn_bag_read(
        self, values: bytes, columns: bytes, d: int, bag: set[int], cost: float, weight: float
    ) -> int:
        # To where the solver reads it.
        self._bag.fill(0.0)
        for number in bag:
            self._bag[number] = 1.0
        self._scores[:] = self._bag
        given = values, columns, d, _OF_BAG, cost, weight
        label_index = self._learn_read(*given, self._of_bags)
        if label_index >= 0:
            update_bag(self._calibration, self._scores, self._bag)
        return label_index


def learn(learner: Learner, x: Mapping[Name, Any], y: Any, w: Any) -> bool:
    """Learn an event with a bag, as given, of two labels or more: see `events.learn`."""
    if learner.is_learning:
        refuse_to_learn()
    if y.__class__ not in _BAGS or w.__class__ not in (float, int):
        return False
    signs, observer = learner.targets.labels.signs, learner.observer
    try:
        bag = {int(signs[one]) for one in y}
    except (KeyError, TypeError):
        return False
    is_usual = len(bag) > 1 and 0.0 <= w <= LARGEST_FACTOR
    if not is_usual or (observer is not None and observer.asks_probabilities):
        return False
    cost = learner.cost_of(None, _OF_BAG) * w
    began = working_time() if observer is not None else 0.0
    path, label_index = learner.event_path, -1
    try:
        if path is not None and x.__class__ is dict:
            label_index = path.learn_bag_plain(learner, x, signs, bag, cost, w)
        if label_index < 0:
            target = (bag, cost, float(w))
            label_index, path = events.read_and_learn(learner, x, signs, target, BagPath.learn_bag)
        if label_index < 0 or path is None:
            return False
        learner.after_event(path, _OF_BAG, cost)
        if observer is not None:
            _tell(learner, observer, path, bag, label_index, w, working_time() - began)
    finally:
        learner.is_learning = False
    return True


def _tell(
    learner: Learner,
    observer: Any,
    path: EventPath,
    bag: set[int],
    label_index: int,
    w: float,
    seconds: float,
) -> None:
    """Tell the monitor of the event that a path has learnt; `label_index` was predicted."""
    seen = learner.targets.labels.seen
    predicted = seen[label_index]
    label = judged_one(frozenset(seen[number] for number in bag), predicted)
    if not observer.note(label, predicted, seconds):
        margin = path.margin
        sign = -1.0 - max(sorted(bag), key=margin.__getitem__)
        number, row = learner.n_examples, path.row()
        observer.learnt(learnt_one(row, sign, label, predicted, margin, w, number, seconds))
