"""The two classes of a binary learner, learnt from the stream."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from streamsvm.errors import LabelError
from streamsvm.labels.label_column import MISSING, LabelColumn

Label = Hashable


def plain(label: Any) -> Any:
    """Return a label as a plain Python value (``numpy.bool_`` as bool, and so on)."""
    return label.item() if isinstance(label, np.generic) else label


def _is_positive_alone(label: Any) -> bool:
    """Guess the side of a label before the other one is known."""
    return isinstance(label, (bool, int, float)) and label > 0


def check_present(labels: LabelColumn) -> None:
    """Refuse labels of which one is missing.

    Raises
    ------
    LabelError
        One is.

    """
    if len(labels) and labels.codes.min() == MISSING:
        raise LabelError("a label is missing (None or NaN): learn needs one, predict does not")


class ClassLabels:
    """Maps any number of labels to 0.0, 1.0, 2.0, ..., in the order of their coming."""

    most: int | None = None

    def __init__(self, seen: list[Any] | None = None) -> None:
        self.seen: list[Any] = list(seen or [])
        # Replaced when a class comes, never changed.
        self.signs: dict[Any, float] = {label: float(i) for i, label in enumerate(self.seen)}

    @property
    def ordered(self) -> list[Any]:
        """The labels in the order of the scores."""
        return self.seen

    def label_of_sign(self, sign: float) -> Any:
        """Return the label of a number."""
        return self.seen[int(sign)]

    def check(self, labels: LabelColumn) -> LabelColumn:
        """Return the labels if all of them can be learnt.

        Raises
        ------
        LabelError
            A label is missing.

        """
        check_present(labels)
        return labels

    def add(self, label: Any) -> bool:
        """Take note of a checked label; return False: no other label's number changes."""
        if label not in self.signs:
            signs = {**self.signs, label: float(len(self.seen))}
            self.seen.append(label)
            self.signs = signs
        return False

    def sign(self, label: Any) -> float:
        """Return the number of a label that was added."""
        return self.signs[label]

    def label(self, scores: Any) -> Any:
        """Return the label with the highest score; None before any label (River's habit)."""
        k = len(self.seen)
        return self.seen[max(range(k), key=scores.__getitem__)] if k else None

    def predicted(self, scores: np.ndarray, n_known: int | None = None) -> LabelColumn:
        """Return the label of each row of scores; of the first with n_known labels, if given."""
        codes = scores.argmax(axis=1) if scores.shape[1] else np.full(len(scores), MISSING)
        if n_known is not None:
            codes[0] = scores[0, :n_known].argmax() if n_known else MISSING
        return LabelColumn(codes.astype(np.int64), self.seen)


class BinaryLabels:
    """Maps two labels to -1.0 and +1.0.

    Of two labels the larger is positive (True, 1, "yes" rather than "no"); of two that cannot be
    compared, the one seen second.
    """

    most: int | None = 2

    def __init__(self, seen: list[Any] | None = None) -> None:
        self.seen: list[Any] = list(seen or [])
        self._settle()

    def _settle(self) -> None:
        """Set what follows from the labels seen."""
        # The label of margins below 0 and of those above; None while not known.
        self.negative, self.positive = self._sides()
        self.ordered: list[Any] = [self.negative, self.positive]
        # Empty before there are two.
        self.signs: dict[Any, float] = {}
        if len(self.seen) == 2:
            self.signs = {self.negative: -1.0, self.positive: 1.0}

    def _sides(self) -> tuple[Any, Any]:
        if not self.seen:
            return None, None
        if len(self.seen) == 1:
            label = self.seen[0]
            return (None, label) if _is_positive_alone(label) else (label, None)
        first, second = self.seen
        try:
            return (first, second) if first < second else (second, first)
        except TypeError:
            return first, second

    def check(self, labels: LabelColumn) -> LabelColumn:
        """Return the labels if all of them can be learnt.

        Raises
        ------
        LabelError
            A label is missing, or is a third class.

        """
        check_present(labels)
        known = list(self.seen)
        for label, _ in labels.present():
            if label not in known:
                if len(known) == 2:
                    raise LabelError(
                        f"a third class {label!r} after {known[0]!r} and {known[1]!r}: this "
                        "learner is binary; use LaRankClassifier, which takes any number"
                    )
                known.append(label)
        return labels

    def add(self, label: Any) -> bool:
        """Take note of a checked label; return whether that turned the known one's sign."""
        if label in self.seen:
            return False
        before = self.positive
        self.seen.append(label)
        self._settle()
        return len(self.seen) == 2 and self.seen[0] == (
            self.negative if before is not None else self.positive
        )

    def sign(self, label: Any) -> float:
        """Return +1.0 or -1.0 for a label that was added."""
        return 1.0 if label == self.positive and self.positive is not None else -1.0

    def label_of_sign(self, sign: float) -> Any:
        """Return the label of -1.0 or +1.0."""
        return self.positive if sign > 0.0 else self.negative

    def label(self, margin: float) -> Any:
        """Return the label that a margin predicts; False before any label (River's habit)."""
        if len(self.seen) < 2:
            return self.seen[0] if self.seen else False
        return self.positive if margin > 0.0 else self.negative

    def predicted(self, margins: np.ndarray, n_known: int | None = None) -> LabelColumn:
        """Return the label of each margin; of the first with n_known labels, if given."""
        if len(self.seen) < 2:
            values = [self.label(0.0)]
            codes = np.zeros(len(margins), np.int64)
        else:
            values = [self.negative, self.positive]
            codes = (margins > 0.0).astype(np.int64)
        if n_known is not None:
            codes[0] = len(values)
            values.append(self.seen[0] if n_known else False)
        return LabelColumn(codes, values)

    def probabilities(self, p: float, n_examples: int) -> dict[Any, float]:
        """Return {label: probability}, from the probability of the positive one.

        With one class so far, after n examples of it, the other has 1 / (n + 2) (the rule of
        succession): never certain, so that active learners go on asking.
        """
        if not self.seen:
            return {False: 0.5, True: 0.5}
        if len(self.seen) == 2:
            return {self.negative: 1.0 - p, self.positive: p}
        label = self.seen[0]
        if isinstance(label, (bool, int)) and label in (0, 1):
            other = 1.0 / (n_examples + 2.0)
            return {False: other if label else 1.0 - other, True: 1.0 - other if label else other}
        return {label: 1.0}
