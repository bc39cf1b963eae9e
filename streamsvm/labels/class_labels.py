"""The classes of a learner, learnt from the stream, and the numbers that solvers use for them."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from streamsvm.errors import LabelError
from streamsvm.labels.label_column import MISSING, LabelColumn
from streamsvm.support.label_values import is_too_large, too_large

Label = Hashable


def plain(label: Any) -> Any:
    """Return a label as a plain Python value (``numpy.bool_`` as bool, and so on)."""
    return label.item() if isinstance(label, np.generic) else label


def shown(label: Any) -> str:
    """Return a label as text for messages: a string in quotes, a date as in ISO 8601."""
    label = plain(label)
    return repr(label) if isinstance(label, str) else str(label)


def _guess_is_positive(label: Any) -> bool:
    """Guess whether a label is the positive one while the other one has not been seen."""
    return isinstance(label, (bool, int, float)) and label > 0


def check_present(labels: LabelColumn) -> None:
    """Raise LabelError if a label is missing (None or NaN), or too large: see `is_too_large`."""
    # A column may list labels that none of its rows has.
    if any(map(is_too_large, labels.values)):
        for label, _ in labels.present():
            if is_too_large(label):
                raise LabelError(too_large(label))
    if len(labels) and labels.codes.min() == MISSING:
        raise LabelError("a label is missing (None or NaN): learn needs one, predict does not")


def too_many_classes(label: Any, most: int) -> str:
    """Return why a label of one more class than `most` is refused."""
    return (
        f"{shown(label)} is class number {most + 1:,}: at most {most:,} are taken "
        "(max_classes), as memory and time grow with each. Raise max_classes if these are "
        "classes; a number or an identifier is no class"
    )


def check_most(labels: LabelColumn, known: Collection[Any], most: int | None) -> None:
    """Raise LabelError if labels beside the known ones are more than `most` together."""
    if most is not None:
        new = [label for label, _ in labels.present() if label not in known]
        if len(known) + len(new) > most:
            raise LabelError(too_many_classes(new[most - len(known)], most))


class ClassLabels:
    """Maps any number of labels to 0.0, 1.0, 2.0, ..., in the order in which they appear.

    The number of a label is called its sign, as with two labels. There may be at most `most` of
    them; None: any number.
    """

    def __init__(self, seen: list[Any] | None = None, most: int | None = None) -> None:
        self.most = most
        self.seen: list[Any] = list(seen or [])
        # Replaced as a whole when a class is added: other threads may be reading it.
        self.signs: dict[Any, float] = {label: float(i) for i, label in enumerate(self.seen)}

    @property
    def ordered(self) -> list[Any]:
        """The labels in the order of the scores."""
        return self.seen

    def label_of_sign(self, sign: float) -> Any:
        """Return the label of a number."""
        return self.seen[int(sign)]

    def check(self, labels: LabelColumn) -> LabelColumn:
        """Return the labels; raise LabelError if one is missing, or they are more than `most`."""
        check_present(labels)
        check_most(labels, self.signs, self.most)
        return labels

    def add(self, label: Any) -> bool:
        """Add a checked label if it is new; return False, as the numbers of others never change."""
        if label not in self.signs:
            signs = {**self.signs, label: float(len(self.seen))}
            self.seen.append(label)
            self.signs = signs
        return False

    def having(self, seen: list[Any]) -> ClassLabels:
        """Return labels with the same limit that have seen these."""
        return ClassLabels(seen, self.most)

    def sign(self, label: Any) -> float:
        """Return the number of a label that was added before."""
        return self.signs[label]

    def label(self, scores: Any) -> Any:
        """Return the label with the highest score; None before any label, as River does."""
        k = len(self.seen)
        return self.seen[max(range(k), key=scores.__getitem__)] if k else None

    def predicted(self, scores: np.ndarray, n_known: int | None = None) -> LabelColumn:
        """Return the predicted label of each row of scores.

        The first row is predicted with the first `n_known` labels only, if that is given.
        """
        codes = scores.argmax(axis=1) if scores.shape[1] else np.full(len(scores), MISSING)
        if n_known is not None:
            codes[0] = scores[0, :n_known].argmax() if n_known else MISSING
        return LabelColumn(codes.astype(np.int64), self.seen)


class BinaryLabels:
    """Maps two labels to the signs -1.0 and +1.0.

    The larger label is positive (True, 1, "yes" rather than "no"); if the two cannot be compared,
    the one seen second.
    """

    most: int | None = 2

    def __init__(self, seen: list[Any] | None = None) -> None:
        self.seen: list[Any] = list(seen or [])
        self._update_signs()

    def _update_signs(self) -> None:
        """Set all attributes that follow from the labels seen."""
        # None if not seen yet.
        self.negative, self.positive = self._sides()
        self.ordered: list[Any] = [self.negative, self.positive]
        # Empty while fewer than two labels were seen.
        self.signs: dict[Any, float] = {}
        if len(self.seen) == 2:
            self.signs = {self.negative: -1.0, self.positive: 1.0}

    def _sides(self) -> tuple[Any, Any]:
        if not self.seen:
            return None, None
        if len(self.seen) == 1:
            label = self.seen[0]
            return (None, label) if _guess_is_positive(label) else (label, None)
        first, second = self.seen
        try:
            return (first, second) if first < second else (second, first)
        except TypeError:
            return first, second

    def check(self, labels: LabelColumn) -> LabelColumn:
        """Return the labels; raise LabelError if one is missing, or is a third class."""
        check_present(labels)
        seen = list(self.seen)
        for label, _ in labels.present():
            if label not in seen:
                if len(seen) == 2:
                    raise LabelError(
                        f"a third class {shown(label)} after {' and '.join(map(shown, seen))}: "
                        "this learner is binary; LASVMClassifier and LaRankClassifier take more"
                    )
                seen.append(label)
        return labels

    def add(self, label: Any) -> bool:
        """Add a checked label if it is new; return whether that changed the sign of the first."""
        if label in self.seen:
            return False
        before = self.positive
        self.seen.append(label)
        self._update_signs()
        return len(self.seen) == 2 and self.seen[0] == (
            self.negative if before is not None else self.positive
        )

    def having(self, seen: list[Any]) -> BinaryLabels:
        """Return labels of the same kind that have seen these."""
        return type(self)(seen)

    def sign(self, label: Any) -> float:
        """Return +1.0 or -1.0 for a label that was added before."""
        return 1.0 if label == self.positive and self.positive is not None else -1.0

    def label_of_sign(self, sign: float) -> Any:
        """Return the label that -1.0 or +1.0 stands for."""
        return self.positive if sign > 0.0 else self.negative

    def label(self, margin: float) -> Any:
        """Return the label that a margin predicts; None before any label, as River's trees do."""
        if len(self.seen) < 2:
            return self.seen[0] if self.seen else None
        return self.positive if margin > 0.0 else self.negative

    def predicted(self, margins: np.ndarray, n_known: int | None = None) -> LabelColumn:
        """Return the predicted label of each margin.

        The first margin is predicted with the first `n_known` labels only, if that is given.
        """
        if len(self.seen) < 2:
            values = self.seen
            codes = np.full(len(margins), 0 if values else MISSING)
        else:
            values = [self.negative, self.positive]
            codes = (margins > 0.0).astype(np.int64)
        if n_known is not None:
            codes[0] = values.index(self.seen[0]) if n_known else MISSING
        return LabelColumn(codes, values)

    def probabilities(self, p: float, n_examples: int) -> dict[Any, float]:
        """Return {label: probability}, from the probability p of the positive label.

        Before any label there are none; where there may be two only, those of False and True, one
        half each, which River's checks ask for. While only one of the labels 0 and 1 (or
        False and True) was seen, in n examples, the other one has 1 / (n + 2) by the rule of
        succession. It is never 0, so that active learners continue to ask for labels.
        """
        if not self.seen:
            return {False: 0.5, True: 0.5} if self.most == 2 else {}
        if len(self.seen) == 2:
            return {self.negative: 1.0 - p, self.positive: p}
        label = self.seen[0]
        if isinstance(label, (bool, int)) and label in (0, 1):
            other = 1.0 / (n_examples + 2.0)
            kind = type(label)
            return {kind(y): 1.0 - other if label == y else other for y in (0, 1)}
        return {label: 1.0}
