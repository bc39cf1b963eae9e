"""The classes of a learner, learnt from the stream: their numbers are all that solvers know."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

import numpy as np

from streamsvm.errors import LabelError
from streamsvm.labels.label_column import MISSING, LabelColumn
from streamsvm.support.label_values import is_too_large, too_large

ClassWeight = dict[Any, float]
"""What multiplies C by label. A label is any hashable; a key of `dict` is the type given."""

Probabilities = dict[Any, float]
"""The probability of each label."""


def factor_in(class_weight: ClassWeight | str | None, label: Any) -> float:
    """Return what multiplies C for a label: 1 if none is given for it."""
    return float(class_weight.get(label, 1.0)) if isinstance(class_weight, dict) else 1.0


def plain(label: Any) -> Any:
    """Return a label as a plain Python value (``numpy.bool_`` as bool, and so on)."""
    return label.item() if isinstance(label, np.generic) else label


def shown(label: Any) -> str:
    """Return a label as text for messages: a string in quotes, a date as in ISO 8601."""
    label = plain(label)
    return repr(label) if isinstance(label, str) else str(label)


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
    """The labels seen, in the order in which they came: the number of each is its place.

    There may be at most `most` of them; None: any number.
    """

    def __init__(self, seen: list[Any] | None = None, most: int | None = None) -> None:
        self.most = most
        self.seen: list[Any] = list(seen or [])
        # Replaced as a whole when a class is added: other threads may be reading it.
        self.numbers: dict[Any, float] = {label: float(i) for i, label in enumerate(self.seen)}

    def check(self, labels: LabelColumn) -> LabelColumn:
        """Return the labels; raise LabelError if one is missing, or they are more than `most`."""
        check_present(labels)
        check_most(labels, self.numbers, self.most)
        return labels

    def add(self, label: Any) -> None:
        """Add a checked label if it is new."""
        if label not in self.numbers:
            numbers = {**self.numbers, label: float(len(self.seen))}
            self.seen.append(label)
            self.numbers = numbers

    def having(self, seen: list[Any]) -> Self:
        """Return labels of the same kind, with the same limit, that have seen these."""
        return type(self)(seen, self.most)


class TwoLabels(ClassLabels):
    """The labels of a learner that takes two."""

    def __init__(self, seen: list[Any] | None = None, most: int | None = 2) -> None:
        super().__init__(seen, most)

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
