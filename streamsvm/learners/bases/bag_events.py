"""Learns events whose labels are bags by one compiled call, as `EventPath` does others."""

from __future__ import annotations

import numpy as np

from streamsvm.features.event_reader import Packed
from streamsvm.features.events import Event
from streamsvm.learners.bases.event_calls import Arguments
from streamsvm.learners.bases.event_path import EventLearner, EventPath
from streamsvm.support.calibration import update_bag

OF_BAG = -1.0
"""The number of a bag: the solver finds its candidates in the margins."""


class BagPath(EventPath):
    """An `EventPath` that learns bags, too: sets of the numbers of labels."""

    def _bind(self, **values: object) -> None:
        super()._bind(**values)
        # Compiled code would calibrate by the number of a label.
        self._values_of_bags = Arguments(**values | {"calibration": np.zeros(0)})
        self._of_bags = self._values_of_bags.address
        self._calibration, self._scores = values["calibration"], self.margins[0]
        self._bag = np.zeros(self.margins.size)

    def learn_bag_plain(
        self,
        learner: EventLearner,
        x: Event,
        bag: set[int],
        cost: float,
        weight: float,
    ) -> int:
        """Learn an event if it is plain: see `learn_plain`; `bag` is as of `learn_bag`."""
        d = self._write_plain(learner, x, True)
        return -1 if d < 0 else self._learn_bag_written(d, bag, cost, weight)

    def learn_bag(self, event: Packed, bag: set[int], cost: float, weight: float) -> int:
        """Learn what `read` returned: see `learn`."""
        _, d, values, columns, _ = event
        self._write(values, columns)
        return self._learn_bag_written(d, bag, cost, weight)

    def _learn_bag_written(self, d: int, bag: set[int], cost: float, weight: float) -> int:
        # To where the solver reads it.
        self._bag.fill(0.0)
        for number in bag:
            self._bag[number] = 1.0
        self._scores[:] = self._bag
        label_index = self._learn_written(self._of_bags, d, OF_BAG, cost, weight)
        if label_index >= 0:
            update_bag(self._calibration, self._scores, self._bag)
        return label_index
