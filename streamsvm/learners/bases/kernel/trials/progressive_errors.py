"""How well a learner predicts examples before it learns them, to compare learners."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from streamsvm.learners.bases.training_observer import TrainingObserver
from streamsvm.monitor.learnt import Learnt

_BEYOND_CHANCE = 1.5


class ProgressiveErrors(TrainingObserver):
    """A `TrainingObserver` that keeps errors and hinge losses of predictions.

    After `settle` `wrong` and `losses`, bool and float64 (n,), are 0 where they do not count.
    `losses_of` is that of the learner.
    """

    asks_probabilities = False

    def __init__(self, losses_of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        self._losses_of = losses_of
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.wrong, self.losses = np.zeros(0, bool), np.zeros(0)

    def settle(self, counts: np.ndarray) -> None:
        """Set `wrong` and `losses`; `counts`, bool (n,), says which examples count."""
        wrong, losses = map(np.concatenate, zip(*self._parts, strict=True))
        self.wrong, self.losses = wrong & counts, np.where(counts, losses, 0.0)

    def are_fewer(self, others: ProgressiveErrors) -> bool:
        """Tell whether there are fewer errors than others, by one or more."""
        return bool(self.wrong.sum() < others.wrong.sum())

    def are_clearly_fewer(self, others: ProgressiveErrors) -> bool:
        """Tell whether there are fewer errors, and not just by chance.

        Either the losses are smaller, too, or a sign test on the examples that only one of the two
        got wrong gives 1.5 standard deviations.
        """
        is_surer = bool(self.losses.sum() < others.losses.sum())
        return self.are_fewer_by(0.0 if is_surer else _BEYOND_CHANCE, others)

    def are_fewer_by(self, deviations: float, others: ProgressiveErrors, start: int = 0) -> bool:
        """Tell whether there are fewer errors than others, by more than so many deviations.

        These are standard deviations of a sign test on the examples that only one of the two got
        wrong, from number `start` on. If one of them has not learnt all yet, the first examples are
        compared.
        """
        n = min(self.wrong.size, others.wrong.size)
        own, other = self.wrong[start:n], others.wrong[start:n]
        fewer, more = int((other & ~own).sum()), int((own & ~other).sum())
        return fewer - more > deviations * math.sqrt(fewer + more)

    # As a `TrainingObserver`

    def learnt(self, learnt: Learnt) -> None:
        """Take note of n examples; see `TrainingObserver.learnt`."""
        pairs = zip(learnt.labels, learnt.predicted, strict=True)
        wrong = np.array([a != b for a, b in pairs], bool)
        self._parts.append((wrong, self._losses_of(learnt.classes, learnt.margins)))
