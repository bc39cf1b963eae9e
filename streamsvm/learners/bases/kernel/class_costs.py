"""C times the class weights of a learner: given for each label, or balanced by counts of labels."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_class_weight
from streamsvm.labels.label_column import LabelColumn


class ClassCosts:
    """The costs C_i of examples with the weight 1.

    `class_weight` is None, a dict {label: factor}, or "balanced". Then `counts`, float64 (2,) or
    (classes,), are the numbers of examples of each class; the array is replaced, not changed.
    """

    def __init__(
        self, class_weight: Any, takes_balanced: bool, counts: np.ndarray | None = None
    ) -> None:
        check_class_weight(class_weight, takes_balanced)
        self.class_weight, self.takes_balanced = class_weight, takes_balanced
        self.is_balanced = class_weight == "balanced"
        self.counts = np.zeros(2) if counts is None else counts

    def of_classes(self, n_classes: int) -> ClassCosts:
        """Return the costs of so many classes, at least as many as before."""
        # Those of two are there from the start.
        return self.counting(np.pad(self.counts, (0, max(0, n_classes - len(self.counts)))))

    def counting(self, counts: np.ndarray) -> ClassCosts:
        """Return the costs with these counts."""
        new = copy.copy(self)
        new.counts = counts
        return new

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

    def of_next(self, C: float, label: Any, number: float) -> float:
        """Return the cost of the next example, if it has this label, with the class's number."""
        if not self.is_balanced:
            return C * float(self.class_weight.get(label, 1.0))
        own, total = self.counts[int(number)] + 1.0, self.counts.sum() + 1.0
        return float(C * total / (len(self.counts) * own))

    def of_rows(self, C: float, y: np.ndarray, labels: LabelColumn) -> np.ndarray:
        """Return the cost of each row of a batch; balanced weights count the rows before it."""
        weight = self.class_weight
        if weight is None:
            return np.full(len(y), C)
        if not self.is_balanced:
            return C * labels.numbers(lambda label: float(weight.get(label, 1.0)))
        numbers = y.astype(np.int64)
        counts = self.counts + np.cumsum(np.eye(len(self.counts))[numbers], axis=0)
        own = counts[np.arange(len(y)), numbers]
        return C * counts.sum(axis=1) / (len(self.counts) * own)

    def now(self, C: float, numbers: np.ndarray, seen: list[Any]) -> np.ndarray:
        """Return the costs that examples of classes would have now; `seen` are their labels."""
        if self.class_weight is None:
            return np.full(len(numbers), C)
        if self.is_balanced:
            return self.balanced(C)[numbers.astype(np.int64)]
        found, which = np.unique(numbers, return_inverse=True)
        labels = [seen[number] if number >= 0 else None for number in found.astype(int).tolist()]
        factors = [float(self.class_weight.get(label, 1.0)) for label in labels]
        return C * np.array(factors)[which]

    def balanced(self, C: float) -> np.ndarray:
        """Return the cost of each class, by the counts so far."""
        return C * self.counts.sum() / (len(self.counts) * np.maximum(self.counts, 1.0))
