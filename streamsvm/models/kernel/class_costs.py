"""C times the weights of classes: factors that are given, or balanced by counts of examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamsvm.support.interruptions import Replaceable


class ClassCosts(Replaceable):
    """The costs C_i of examples with the weight 1.

    Attributes
    ----------
    factors
        float64 (classes,): what C is multiplied by for each class, if weights are not balanced.
    is_balanced
        Whether all classes together have the same weight, by `counts` of their examples.
    counts
        float64 (2,) or (classes,): how many examples each class has had, if weights are balanced;
        the array is replaced, not changed.

    """

    def __init__(self, factors: Sequence[float] = (), is_balanced: bool = False) -> None:
        self.factors = np.array(factors, np.float64)
        self.is_balanced = is_balanced
        # Those of two are there from the start.
        self.counts = np.zeros(max(2, len(factors)))
        self.are_equal = not is_balanced and bool((self.factors == 1.0).all())

    def with_class(self, factor: float) -> ClassCosts:
        """Return the costs with a further class, which has this factor."""
        return self.weighted([*self.factors.tolist(), factor], self.is_balanced)

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> ClassCosts:
        """Return the costs with these weights, and the counts so far."""
        new = ClassCosts(factors, is_balanced)
        new.counts[: len(self.counts)] = self.counts
        return new

    def counting(self, counts: np.ndarray) -> ClassCosts:
        """Return the costs with these counts."""
        return self.changed(counts=counts)

    def count(self, numbers: np.ndarray) -> None:
        """Count examples of the classes with these numbers, float64 (n,)."""
        if self.is_balanced:
            self.counts = self.counts + self._counted(numbers)

    def without(self, numbers: np.ndarray) -> ClassCosts:
        """Return the costs without examples of the classes with these numbers."""
        if not self.is_balanced:
            return self
        return self.counting(np.maximum(0.0, self.counts - self._counted(numbers)))

    def _counted(self, numbers: np.ndarray) -> np.ndarray:
        return np.bincount(numbers.astype(np.int64), minlength=len(self.counts))

    def count_one(self, number: float) -> None:
        """Count one example: after each event, faster than as a batch."""
        counts = self.counts.copy()
        counts[int(number)] += 1.0
        self.counts = counts

    def of_next(self, C: float, number: float) -> float:
        """Return the cost of the next example, if it is of the class with this number."""
        if not self.is_balanced:
            return C * float(self.factors[int(number)]) if number >= 0.0 else C
        own, total = self.counts[int(number)] + 1.0, self.counts.sum() + 1.0
        return float(C * total / (len(self.counts) * own))

    def of_rows(self, C: float, numbers: np.ndarray) -> np.ndarray:
        """Return the cost of each row of a batch; balanced weights count the rows before it."""
        if not self.is_balanced:
            return self.now(C, numbers)
        classes = numbers.astype(np.int64)
        counts = self.counts + np.cumsum(np.eye(len(self.counts))[classes], axis=0)
        own = counts[np.arange(len(classes)), classes]
        return C * counts.sum(axis=1) / (len(self.counts) * own)

    def now(self, C: float, numbers: np.ndarray) -> np.ndarray:
        """Return the costs that examples of these classes would have now; C for bags (below 0)."""
        if self.are_equal:
            return np.full(len(numbers), C)
        of_classes = self.balanced(C) if self.is_balanced else C * self.factors
        return np.append(of_classes, C)[np.maximum(-1, numbers).astype(np.int64)]

    def balanced(self, C: float) -> np.ndarray:
        """Return the cost of each class, by the counts so far."""
        return C * self.counts.sum() / (len(self.counts) * np.maximum(self.counts, 1.0))
