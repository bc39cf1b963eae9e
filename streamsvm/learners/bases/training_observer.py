"""What a learner tells a monitor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from streamsvm.support.rows import Rows


class TrainingObserver(Protocol):
    """A monitor that a learner tells what it learns."""

    asks_probabilities: bool
    """Whether it must be told before the calibration learns a margin: no fast path can do that."""

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
        """Take note of n examples.

        Parameters
        ----------
        x
            n rows; may share the caller's memory.
        signs, weights, numbers
            +1 or -1, weights and numbers of the examples.
        labels, predicted, margins
            True labels, and what was predicted before each was learnt.
        seconds
            How long learning took.

        """

    def note(self, label: Any, predicted: Any, seconds: float) -> bool:
        """Take note of one example, if no more needs to be known of it; False: it was not."""

    def expect(self, predicted: list[Any]) -> None:
        """Take note of what was predicted, some time ago, of the next examples to be learnt."""

    def turn_signs(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Take note that signs so far are others from now on: what `change` makes of them."""


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
    """Tell a monitor of one example that it did not `note`: see `TrainingObserver.learnt`."""
    margins, numbers = np.array([margin]), np.array([number])
    signs, weights = np.array([sign]), np.array([float(weight)])
    observer.learnt(x, signs, [label], [predicted], margins, weights, numbers, seconds)
