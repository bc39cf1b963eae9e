"""Labels of a learner with one output for up to two classes, and one for each class beyond that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.labels.class_labels import BinaryLabels, check_most, check_present
from streamsvm.labels.label_column import LabelColumn


class GrowingLabels(BinaryLabels):
    """Maps up to two labels to -1.0 and +1.0, as `BinaryLabels`, and more to 0.0, 1.0, 2.0, ..."""

    most: int | None = None

    @property
    def is_binary(self) -> bool:
        """Whether margins are single numbers."""
        return len(self.seen) <= 2

    def _update_signs(self) -> None:
        super()._update_signs()
        if not self.is_binary:
            self.ordered = self.seen
            self.signs = dict(zip(self.seen, map(float, range(len(self.seen))), strict=True))

    def _sides(self) -> tuple[Any, Any]:
        if self.is_binary:
            return super()._sides()
        # They remain those of the first two labels.
        pair = BinaryLabels(self.seen[:2])
        return pair.negative, pair.positive

    def check(self, labels: LabelColumn) -> LabelColumn:
        """Return the labels; raise LabelError if one is missing, or they are more than `most`."""
        check_present(labels)
        known = self.seen if self.is_binary else self.signs
        check_most(labels, known, self.most)
        return labels

    def add(self, label: Any) -> bool:
        """Add a checked label if it is new; return whether that changed the signs of others."""
        if label in self.seen:
            return False
        turned = super().add(label)
        return turned or len(self.seen) == 3

    def having(self, seen: list[Any]) -> GrowingLabels:
        """Return labels with the same limit that have seen these."""
        new = type(self)(seen)
        new.most = self.most
        return new

    def sign(self, label: Any) -> float:
        """Return the number that stands for a label that was added before."""
        return super().sign(label) if self.is_binary else self.signs[label]

    def label_of_sign(self, sign: float) -> Any:
        """Return the label that a number stands for; None if that label was not seen.

        With three or more labels, negative numbers stand for none.
        """
        if self.is_binary:
            return super().label_of_sign(sign)
        return self.seen[int(sign)] if sign >= 0.0 else None

    def place_of_sign(self, sign: float) -> int:
        """Return the index in `seen` of the label that a number stands for."""
        if not self.is_binary:
            return int(sign)
        # Labels are not compared, which may run code of the user's.
        return 0 if self.seen[0] is super().label_of_sign(sign) else 1

    def label(self, margin: Any) -> Any:
        """Return the label that a margin, or a row of scores, predicts."""
        if self.is_binary:
            return super().label(margin)
        return self.seen[max(range(len(self.seen)), key=margin.__getitem__)]

    def predicted(self, margins: np.ndarray, n_known: int | None = None) -> LabelColumn:
        """Return the predicted label of each margin, or row of scores: see `BinaryLabels`."""
        if self.is_binary:
            return super().predicted(margins, n_known)
        # Further columns hold the probabilities of some learners.
        codes = margins[:, : len(self.seen)].argmax(axis=1).astype(np.int64)
        if n_known is not None:
            codes[0] = margins[0, :n_known].argmax()
        return LabelColumn(codes, self.seen)


def spread_to(labels: GrowingLabels) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that converts signs, float64 (n,), into indices of three or more classes.

    The first two of the labels are those of the signs.
    """
    positive, negative = pair_of(labels)
    return lambda signs: np.where(signs > 0.0, float(positive), float(negative))


def pair_of(labels: GrowingLabels) -> tuple[int, int]:
    """Return the indices of the first two labels, the positive one first."""
    return labels.seen.index(labels.positive), labels.seen.index(labels.negative)
