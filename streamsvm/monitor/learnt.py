"""Examples that were learnt, and the interface by which a learner tells its monitor of them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from streamsvm.support.interruptions import Changes
from streamsvm.support.rows import Rows


class Learnt(NamedTuple):
    """n examples; labels and margins were predicted before each was learnt."""

    x: Rows  # may be views of the caller's arrays
    classes: np.ndarray  # float64 (n,): their numbers; below 0 of bags
    labels: list[Any]
    predicted: list[Any]
    margins: np.ndarray  # float64 (n,), or (n, columns)
    weights: np.ndarray  # float64 (n,)
    numbers: np.ndarray  # int64 (n,)
    seconds: float  # that learning them took


def learnt_one(
    x: Rows,
    number: float,
    label: Any,
    predicted: Any,
    margin: Any,
    weight: float,
    n: int,
    seconds: float,
) -> Learnt:
    """Return example n, of the class with this number, as it was learnt."""
    margins, numbers = np.array([margin]), np.array([n])
    classes, weights = np.array([number]), np.array([float(weight)])
    return Learnt(x, classes, [label], [predicted], margins, weights, numbers, seconds)


class TrainingObserver(Protocol):
    """A monitor, as a learner sees it: it is told of every example learnt."""

    asks_probabilities: bool
    """Whether it must be told before the calibration learns a margin; then no fast path is used."""

    def learnt(self, learnt: Learnt) -> None:
        """Take note of n examples that were just learnt."""

    def note(self, label: Any, predicted: Any, seconds: float) -> bool:
        """Count one example; False: it was not counted, and `learnt` must be called."""
        return False

    def wanted(self) -> int:
        """Return how many examples to learn, at most, before the next call of `learnt`."""
        return 1 << 62

    def expect(self, predicted: list[Any]) -> None:
        """Take the labels that were predicted earlier for the next examples to be learnt."""
        return

    def without(self, numbers: np.ndarray, columns: np.ndarray | None) -> Changes:
        """Return what changes as the learner takes examples back, and keeps these columns.

        None: all columns. The caller makes the change in one step with that of the learner.
        """
        return {}, {}
