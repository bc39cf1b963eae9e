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
from streamsvm.learners.bases import event_calls, events
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

    def _bind(self, *values: Any) -> None:
        super()._bind(*values)
        # Compiled code would calibrate by the number of a label.
        calibration = self.bound[3].calibration
        own = [np.zeros(0) if value is calibration else value for value in values]
        self._of_bags = Arguments(*own)
        self._calibration, self._scores = calibration, self.margins[0]
        self._bag = np.zeros(self.margins.size)

    def _write(self, bag: set[int]) -> None:
        """Write a bag to where the solver reads it, after `_begin`."""
        self._bag.fill(0.0)
        for number in bag:
            self._bag[number] = 1.0
        self._scores[:] = self._bag

    def _calibrate(self, label_index: int) -> int:
        """Learn the scores of an event, if it was learnt; return the same index."""
        if label_index >= 0:
            update_bag(self._calibration, self._scores, self._bag)
        return label_index

    def learn_bag_plain(
        self,
        learner: Learner,
        x: Mapping[Name, Any],
        signs: dict[Any, float],
        bag: set[int],
        cost: float,
        weight: float,
    ) -> int:
        """Learn an event if it is plain: see `learn_plain`."""
        values = self._plain_values(learner, x, True)
        if values is None or learner.targets.labels.signs is not signs:
            return -1
        turn = self._begin()
        self._plain_view[:] = values
        self._write(bag)
        d = self._d = self._n_plain
        return self._calibrate(
            event_calls.learn_dense(self._of_bags, turn, d, _OF_BAG, cost, weight)
        )

    def learn_bag(
        self, event: Event, is_hashed: bool, bag: set[int], cost: float, weight: float
    ) -> int:
        """Learn what an `EventReader` read: see `learn`."""
        n, d, values, columns, _ = event
        turn, self._d = self._begin(), d
        self._values_view[: len(values)] = values
        self._write(bag)
        own = self._of_bags
        if self.is_sparse:
            self._columns_view[: len(columns)] = columns
            found = event_calls.learn_sparse(own, turn, n, d, is_hashed, _OF_BAG, cost, weight)
        else:
            found = event_calls.learn_dense(own, turn, d, _OF_BAG, cost, weight)
        return self._calibrate(found)


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
