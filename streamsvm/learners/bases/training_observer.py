"""The interface by which a learner tells a monitor what it learns."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from streamsvm.labels.label_column import Label
from streamsvm.monitor.learnt import Learnt
from streamsvm.support.interruptions import Changes


class TrainingObserver(Protocol):
    """A monitor, as a learner sees it: it is told of every example learnt."""

    asks_probabilities: bool
    """Whether it must be told before the calibration learns a margin; then no fast path is used."""

    def learnt(self, learnt: Learnt) -> None:
        """Take note of n examples that were just learnt."""

    def note(self, label: Label, predicted: Label, seconds: float) -> bool:
        """Count one example; False: it was not counted, and `learnt` must be called."""
        return False

    def wanted(self) -> int:
        """Return how many examples to learn, at most, before the next call of `learnt`."""
        return 1 << 62

    def expect(self, predicted: list[Label]) -> None:
        """Take the labels that were predicted earlier for the next examples to be learnt."""
        return

    def without(self, numbers: np.ndarray, columns: np.ndarray | None) -> Changes:
        """Return what changes as the learner takes examples back, and keeps these columns.

        None: all columns. The caller makes the change in one step with that of the learner.
        """
        return {}, {}
