"""How well a learner predicts examples before it learns them, to compare learners."""

from __future__ import annotations

import math

import numpy as np

from streamsvm.models.outputs import Outputs

_BEYOND_CHANCE = 1.5


class ProgressiveErrors:
    """Errors and hinge losses of predictions that a model made before it learnt the examples.

    After `settle` `wrong` and `losses`, bool and float64 (n,), are 0 where they do not count.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.wrong, self.losses = np.zeros(0, bool), np.zeros(0)

    def add(self, y: np.ndarray, margins: np.ndarray, outputs: Outputs, is_new: bool) -> None:
        """Take note of the margins of n examples of classes y.

        `is_new` tells whether the class of the first one was not known when it was predicted.
        """
        wrong = outputs.are_wrong(y, outputs.scores_of(margins))
        wrong[0] |= is_new
        self._parts.append((wrong, outputs.losses(y, margins)))

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
