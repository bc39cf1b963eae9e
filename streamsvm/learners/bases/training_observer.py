"""The interface by which a learner tells a monitor what it learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from streamsvm.support.rows import Rows


class TrainingObserver(Protocol):
    """A monitor, as a learner sees it: it is told of every example learnt."""

    asks_probabilities: bool
    """Whether it must be told before the calibration learns a margin; then no fast path is used."""

    def learnt(
        self,
        x: Rows,
        signs: np.ndarray,
        labels: list[Any],
        predicted: list[Any],
        margins: np.ndarray,
        weights: np.ndarray,
        numbers: np.ndarray,
        seconds: float,
    ) -> None:
        """Take note of n examples, which took so many seconds to learn.

        Rows may be views of the caller's arrays. Signs are +1 or -1, or class indices. Labels and
        margins were predicted before each example was learnt.
        """

    def note(self, label: Any, predicted: Any, seconds: float) -> bool:
        """Count one example; False: it was not counted, and `learnt` must be called."""
        return False

    def wanted(self) -> int:
        """Return how many examples to learn, at most, before the next call of `learnt`."""
        return 1 << 62

    def expect(self, predicted: list[Any]) -> None:
        """Take the labels that were predicted earlier for the next examples to be learnt."""
        return

    def turn_signs(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Convert the signs that were stored so far by the function `change`."""
        return


def tell(
    observer: TrainingObserver,
    x: Rows,
    sign: float,
    label: Any,
    predicted: Any,
    margin: Any,
    weight: float,
    number: int,
    seconds: float,
) -> None:
    """Call `TrainingObserver.learnt` for one example."""
    margins, numbers = np.array([margin]), np.array([number])
    signs, weights = np.array([sign]), np.array([float(weight)])
    observer.learnt(x, signs, [label], [predicted], margins, weights, numbers, seconds)
