"""C times the class weights of a learner: given for each label, or balanced by counts of labels."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_class_weight
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.targets import Targets


class ClassCosts:
    """The costs C_i of examples with the weight 1.

    `class_weight` is None, a dict {label: factor}, or "balanced". Then `counts`, float64 (2,) or
    (classes,), are the numbers of examples of the negative and the positive class, or of each of
    several; the array is replaced, not changed.
    """

    def __init__(
        self, class_weight: Any, takes_balanced: bool, counts: np.ndarray | None = None
    ) -> None:
        check_class_weight(class_weight, takes_balanced)
        self.class_weight, self.takes_balanced = class_weight, takes_balanced
        self.is_balanced = class_weight == "balanced"
        self.counts = np.zeros(2) if counts is None else counts

    def of_classes(self, n_classes: int, positive: int) -> ClassCosts:
        """Return the costs of so many classes, of which number `positive` was +1 of two."""
        # Those of two are there from the start.
        counts = np.zeros(max(2, n_classes))
        if n_classes == 3:
            counts[[1 - positive, positive]] = self.counts
        else:
            counts[: len(self.counts)] = self.counts
        return self.counting(counts)

    def with_signs_exchanged(self) -> ClassCosts:
        """Return the costs with +1 and -1 exchanged."""
        return self.counting(self.counts[::-1].copy())

    def counting(self, counts: np.ndarray) -> ClassCosts:
        """Return the costs with these counts."""
        new = copy.copy(self)
        new.counts = counts
        return new

    def count(self, signs: np.ndarray) -> None:
        """Count examples of these signs, or numbers of classes."""
        if self.is_balanced:
            found = np.bincount(self._side_of(signs), minlength=len(self.counts))
            self.counts = self.counts + found

    def without(self, signs: np.ndarray) -> ClassCosts:
        """Return the costs without examples of these signs, or numbers of classes."""
        if not self.is_balanced:
            return self
        found = np.bincount(self._side_of(signs), minlength=len(self.counts))
        return self.counting(np.maximum(0.0, self.counts - found))

    def count_one(self, sign: float) -> None:
        """Count one example: after each event, faster than as a batch."""
        counts = self.counts.copy()
        counts[self._own(sign)] += 1.0
        self.counts = counts

    def _own(self, sign: float) -> int:
        """Return the index in `counts` of a sign, or number of a class."""
        return int(sign > 0.0) if len(self.counts) == 2 else int(sign)

    def _side_of(self, signs: np.ndarray) -> np.ndarray:
        """Return the index in `counts` of each sign, or number of a class."""
        return np.asarray(signs > 0.0 if len(self.counts) == 2 else signs, np.int64)

    def of_next(self, C: float, label: Any, sign: float) -> float:
        """Return the cost of the next example, if it has this label."""
        if not self.is_balanced:
            return C * float(self.class_weight.get(label, 1.0))
        own, total = self.counts[self._own(sign)] + 1.0, self.counts.sum() + 1.0
        return float(C * total / (len(self.counts) * own))

    def of_rows(self, C: float, y: np.ndarray, labels: LabelColumn) -> np.ndarray:
        """Return the cost of each row of a batch; balanced weights count the rows before it."""
        weight = self.class_weight
        if weight is None:
            return np.full(len(y), C)
        if not self.is_balanced:
            return C * labels.numbers(lambda label: float(weight.get(label, 1.0)))
        numbers = self._side_of(y)
        counts = self.counts + np.cumsum(np.eye(len(self.counts))[numbers], axis=0)
        own = counts[np.arange(len(y)), numbers]
        return C * counts.sum(axis=1) / (len(self.counts) * own)

    def now(self, C: float, signs: np.ndarray, targets: Targets) -> np.ndarray:
        """Return the costs that examples of these signs, or numbers of classes, would have now."""
        if self.class_weight is None:
            return np.full(len(signs), C)
        if self.is_balanced:
            return self.balanced(C)[self._side_of(signs)]
        found, which = np.unique(signs, return_inverse=True)
        labels = [targets.labels.label_of_sign(sign) for sign in found.tolist()]
        factors = [float(self.class_weight.get(label, 1.0)) for label in labels]
        return C * np.array(factors)[which]

    def balanced(self, C: float) -> np.ndarray:
        """Return the cost of each class, by the counts so far."""
        return C * self.counts.sum() / (len(self.counts) * np.maximum(self.counts, 1.0))
