"""Labels that may be bags: sets of candidates of which at least one should be the label."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from streamsvm._parameter_checks import column_of
from streamsvm.errors import LabelError
from streamsvm.labels.class_labels import (
    ClassLabels,
    plain,
    too_many_classes,
)
from streamsvm.labels.label_column import LabelColumn, holds_lists
from streamsvm.labels.targets import ClassTargets
from streamsvm.models.outputs import BagOutputs, classes_of
from streamsvm.monitor.score import NO_CANDIDATE
from streamsvm.support.calibration import update_labels_and_bags
from streamsvm.support.label_values import is_too_large, too_large

BAGS = (set, frozenset, list, np.ndarray, pa.Array, pa.ChunkedArray, pa.Scalar, dict)
"""What is a bag, or a scalar of Arrow that may be one; or a dict, which is refused."""


def bag_of(y: Any) -> Any:
    """Return a bag as a frozenset, or as its label if it has one only; another label as it is."""
    if not isinstance(y, BAGS):
        return y
    if isinstance(y, dict):
        raise LabelError(
            f"{y!r:.60} is no bag, as a bag does not count votes: use list(...) of it for "
            "candidates, or learn each label alone, with w = its share of the votes"
        )
    if isinstance(y, pa.Scalar):
        return bag_of(y.as_py())
    try:
        bag = frozenset(map(_plain, y.ravel() if isinstance(y, np.ndarray) else y))
    except TypeError as error:
        raise LabelError(f"a candidate in {y!r:.60} is not hashable") from error
    return next(iter(bag)) if len(bag) == 1 else bag


def _plain(label: Any) -> Any:
    return label.as_py() if isinstance(label, pa.Scalar) else plain(label)


def bags_of(labels: Any) -> LabelColumn:
    """Return n labels or bags, in any container, as a column of labels and frozensets."""
    if isinstance(labels, LabelColumn):
        return labels
    if not (isinstance(labels, np.ndarray) and labels.ndim == 2):  # whose rows are bags
        labels = column_of(labels, "labels", LabelError)
    if isinstance(labels, (pa.Array, pa.ChunkedArray)) and not holds_lists(labels.type):
        return LabelColumn.of(labels)
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biufU":
        return LabelColumn.of(labels)
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(labels, method):
            labels = getattr(labels, method)()
            break
    return LabelColumn.of_values(map(bag_of, labels))


def members_of(label: Any) -> list[Any]:
    """Return the candidates of a bag in an order that does not depend on hashes, or the label."""
    if not isinstance(label, frozenset):
        return [label]
    try:
        return sorted(label)
    except TypeError:
        return sorted(label, key=repr)


def candidates_of(labels: LabelColumn) -> LabelColumn:
    """Return the candidates of all rows, one after the other; labels without bags as they are."""
    if not any(isinstance(label, frozenset) for label in labels.values):
        return labels
    return LabelColumn.of_values(one for label in labels for one in members_of(label))


def judged_one(label: Any, guess: Any) -> Any:
    """Return what a prediction is compared with: itself if it is in the bag, or the label."""
    if not isinstance(label, frozenset):
        return label
    return guess if guess in label else NO_CANDIDATE


class BagLabels(ClassLabels):
    """Class labels that are learnt from bags of them, too; the number of a bag is -1.0."""

    def check(self, labels: LabelColumn) -> LabelColumn:
        """Return the labels; raise LabelError if a candidate cannot be a label, or a bag is empty.

        Also if they are more than `most`.
        """
        known = set(self.seen)
        for label, row in labels.present():
            if isinstance(label, frozenset) and not label:
                raise LabelError(f"the bag of row {row} is empty: it needs a candidate")
            for one in members_of(label):
                if one is None or one != one:
                    raise LabelError(f"a candidate of row {row} is missing (None or NaN)")
                if is_too_large(one):
                    raise LabelError(too_large(one))
                if one not in known:
                    if not isinstance(one, (str, int, float)):
                        raise LabelError(
                            f"{one!r:.60}, of row {row}, is neither a label nor a bag: a label is "
                            "a text, a number or a boolean, and candidates are a list or a set"
                        )
                    if self.most is not None and len(known) >= self.most:
                        raise LabelError(too_many_classes(one, self.most))
                    known.add(one)
        if len(labels) and labels.codes.min() < 0:
            raise LabelError("a label is missing (None or NaN): learn needs one, predict does not")
        return labels

    def having(self, seen: list[Any]) -> BagLabels:
        """Return labels with the same limit that have seen these."""
        return BagLabels(seen, self.most)

    def new_in(self, label: Any) -> list[Any]:
        """Return the candidates that were not seen yet, in order."""
        return [one for one in members_of(label) if one not in self.numbers]


class BagTargets(ClassTargets):
    """A score for each label, learnt from bags; the highest one is predicted.

    The number of a bag is negative while it is learnt, and then -1 - that of its best candidate, by
    the scores from before.
    """

    new_labels = BagLabels
    new_outputs = BagOutputs

    def number_of(self, label: Any) -> float:
        """Return the number of a label, -1.0 of a bag."""
        return -1.0 if isinstance(label, frozenset) else super().number_of(label)

    def column_of(self, labels: Any) -> LabelColumn:
        """Return labels or bags, in any container, as a column."""
        return bags_of(labels)

    def members_of(self, label: Any) -> list[Any]:
        """Return the candidates of a bag, or the label."""
        return members_of(label)

    def knows(self, label: Any) -> bool:
        """Tell whether a label, or each candidate of a bag, was seen."""
        return not self.labels.new_in(label)

    def runs(self, labels: LabelColumn) -> list[tuple[int, int]]:
        """Return ranges of rows, split where a candidate comes for the first time."""
        known, starts = set(self.labels.seen), {0}
        for label, first in labels.present():
            new = [one for one in members_of(label) if one not in known]
            if new:
                known.update(new)
                starts.add(first)
        found = sorted(starts)
        return list(zip(found, [*found[1:], len(labels)], strict=True)) if len(labels) else []

    def new_in(self, label: Any) -> list[Any]:
        """Return the candidates that were not seen yet, or the label if it was not."""
        new: list[Any] = self.labels.new_in(label)
        return new

    def in_bags(self, labels: LabelColumn) -> np.ndarray | None:
        """Return 1.0 for the candidates of rows that have bags, float64 (n, classes).

        None: there are no bags.
        """
        numbers, values = self.labels.numbers, labels.values
        # Only of the bags that occur: the column may list those of a whole batch.
        codes, own = np.unique(labels.codes, return_inverse=True)
        bags = [values[code] if code >= 0 else None for code in codes.tolist()]
        if not any(isinstance(bag, frozenset) for bag in bags):
            return None
        out = np.zeros((len(labels), self.n_classes))
        lists = [[*map(numbers.__getitem__, b)] if isinstance(b, frozenset) else [] for b in bags]
        sizes = np.array([len(one) for one in lists], np.int64)
        places = np.array([*chain.from_iterable(lists)], np.int64)
        firsts = (np.cumsum(sizes) - sizes)[own]
        counts = sizes[own]
        ends = np.cumsum(counts)
        if not len(ends) or not ends[-1]:
            return out
        rows = np.repeat(np.arange(len(own)), counts)
        # Entry t of a row is entry t of its bag.
        of_bag = np.arange(ends[-1]) - np.repeat(ends - counts - firsts, counts)
        out[rows, places[of_bag]] = 1.0
        return out

    def best_of(self, labels: LabelColumn, scores: np.ndarray) -> list[Any]:
        """Return the candidate of each bag that has the highest score, the bag if none was seen."""
        numbers, found = self.labels.numbers, []
        for label, of_row in zip(labels, scores.tolist(), strict=True):
            known = [one for one in members_of(label) if one in numbers]
            of_known = {one: of_row[int(numbers[one])] for one in known}
            found.append(max(known, key=of_known.__getitem__) if known else label)
        return found

    def judged(self, labels: LabelColumn, predicted: Iterable[Any]) -> LabelColumn:
        """Return the labels; of a bag the prediction if it is in it, else `NO_CANDIDATE`."""
        if not any(isinstance(label, frozenset) for label in labels.values):
            return labels
        return LabelColumn.of_values(map(judged_one, labels.tolist(), predicted))

    def calibrate(
        self, margins: np.ndarray, numbers: np.ndarray, labels: LabelColumn | None = None
    ) -> None:
        """Update the calibration; that of a bag by the probability of all its candidates."""
        if labels is None or not (numbers < 0.0).any():
            super().calibrate(margins, classes_of(numbers))
            return
        update_labels_and_bags(self.calibration, margins, numbers, self.in_bags(labels))
