"""What a learner is to predict: its labels, and what margins say of them.

A solver knows the number of each class, 0, 1, 2, ..., in the order in which they came. Margins are
float64 (n,) where one tells two classes apart, above 0 for class 1, and at exactly 0 class 0 is
predicted; else they are scores, float64 (n, classes), the highest of which predicts. Users see
margins above 0 for the larger label, even if that is class 0: `decision` turns them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from streamsvm.labels.class_labels import ClassLabels, TwoLabels
from streamsvm.labels.label_column import MISSING, LabelColumn
from streamsvm.models.outputs import GrowingOutputs, Outputs, ProblemOutputs, Scores
from streamsvm.support import calibration as platt


def _is_first_larger(seen: list[Any]) -> bool:
    """Tell whether the first of two labels is the larger one: True, 1, "yes" rather than "no".

    It is not if the two cannot be compared. Of one alone it is guessed.
    """
    if len(seen) == 2:
        try:
            return not seen[0] < seen[1]
        except TypeError:
            return False
    return bool(seen) and isinstance(seen[0], (bool, int, float)) and bool(seen[0] > 0)


Margin = float | list[float]
"""The margin of an event, or its scores."""


class Targets:
    """The labels of a learner with one margin, and the calibration of its probabilities.

    A learner replaces its targets as a whole when a label comes, so that labels and numbers match
    whatever interrupts it. `calibration` is the array with which margins become probabilities.

    All kinds, also those that do not derive from this one, have `labels`, of which `seen` are in
    files and `most` is the limit; `n_classes`; `having`; and `labels_of` what a solver returned.
    `SequenceTargets` has no more but its own reader. Another kind for rows has all methods here: of
    a label `number_of` and `labels.check`; of margins their `outputs`, which say what they mean,
    labels, decisions, probabilities and `calibrate`.
    """

    new_labels: ClassVar[type] = TwoLabels
    new_outputs: ClassVar[type[Outputs]] = Outputs

    def __init__(self, labels: Any = None, calibration: np.ndarray | None = None) -> None:
        self.labels = self.new_labels() if labels is None else labels
        self.outputs = self.new_outputs(len(self.labels.seen))
        # Changed in place.
        self.calibration = self.new_calibration() if calibration is None else calibration
        # What margins are multiplied by for users. Labels are compared here, once.
        self.direction = -1.0 if self.has_one_margin and _is_first_larger(self.labels.seen) else 1.0

    @property
    def n_classes(self) -> int:
        """How many labels were seen."""
        return len(self.labels.seen)

    @property
    def has_one_margin(self) -> bool:
        """Whether an example has one margin, and no score for each class."""
        return self.outputs.has_one_margin

    @property
    def ordered(self) -> list[Any]:
        """The labels in the order of scores; of one margin that below 0 first, or None."""
        seen = self.labels.seen
        if not self.has_one_margin:
            return list(seen)
        pair = [*seen, None, None][:2]
        return pair if self.direction > 0.0 else pair[::-1]

    def new_calibration(self) -> np.ndarray:
        """Return the calibration of these labels before the first example."""
        return platt.new_calibration() if self.has_one_margin else platt.new_temperature()

    def having(self, labels: Any) -> Targets:
        """Return targets of these labels, with the same calibration if it is one of them."""
        new = type(self)(labels)
        same = new.has_one_margin == self.has_one_margin
        return type(self)(labels, self.calibration) if same else new

    def with_label(self, label: Any) -> Targets:
        """Return targets that know a label, too, which was checked."""
        labels = self.labels.having(self.labels.seen)
        labels.add(label)
        return self.having(labels)

    def number_of(self, label: Any) -> float:
        """Return the number of a label; 0.0 for a label that was never seen."""
        return float(self.labels.numbers.get(label, 0.0))

    def column_of(self, labels: Any) -> LabelColumn:
        """Return labels, in any container, as a column."""
        return LabelColumn.of(labels)

    def members_of(self, label: Any) -> list[Any]:
        """Return the labels that one stands for: itself, or the candidates of a bag."""
        return [label]

    def new_in(self, label: Any) -> list[Any]:
        """Return the labels that one stands for which were not seen yet."""
        return [] if self.knows(label) else [label]

    def in_bags(self, labels: LabelColumn) -> np.ndarray | None:
        """Return the candidates of rows that have bags, float64 (n, classes); None: no bags."""
        return None

    def knows(self, label: Any) -> bool:
        """Tell whether a label was seen."""
        return label in self.labels.numbers

    def runs(self, labels: LabelColumn) -> list[tuple[int, int]]:
        """Return ranges of rows, split at the first row of each label that was not seen yet."""
        return labels.runs(self.labels.seen)

    def judged(self, labels: LabelColumn, predicted: Iterable[Any]) -> LabelColumn:
        """Return the labels that predictions are compared with."""
        return labels

    def calibrate(
        self, margins: np.ndarray, numbers: np.ndarray, labels: LabelColumn | None = None
    ) -> None:
        """Update the calibration by margins that were computed before learning the examples.

        `numbers`, float64 (n,), are those of the classes, and `labels` what they were made of:
        bags have no number.
        """
        if self.has_one_margin:
            platt.update_calibration(self.calibration, margins, numbers)
        else:
            platt.update_temperature(self.calibration, margins, numbers)

    def label_of(self, margin: Any) -> Any:
        """Return the label that a margin, or a list of scores, predicts; None before any label."""
        seen = self.labels.seen
        if len(seen) < 2:
            return seen[0] if seen else None
        if self.has_one_margin:
            return seen[margin > 0.0]
        return seen[max(range(len(seen)), key=margin.__getitem__)]

    def labels_of(self, margins: np.ndarray, n_known: int | None = None) -> LabelColumn:
        """Return the labels that margins predict; the first one from `n_known` labels, if given."""
        seen = self.labels.seen
        if not seen:
            return LabelColumn(np.full(len(margins), MISSING), seen)
        if not self.has_one_margin:
            codes = margins[:, : len(seen)].argmax(axis=1)
        else:
            codes = (margins > 0.0) & (len(seen) == 2)
        codes = codes.astype(np.int64)
        if n_known is not None:
            # Scores, if two classes were known: with one margin no more can be new.
            codes[0] = (margins[0, :n_known].argmax() if n_known > 1 else 0) if n_known else MISSING
        return LabelColumn(codes, seen)

    def decision(self, margin: Any) -> Any:
        """Return the result of `decision_function_one` for a margin, or for a list of scores."""
        if self.has_one_margin:
            return self.direction * float(margin)
        seen = self.labels.seen
        return dict(zip(seen, margin[: len(seen)], strict=True))

    def label_of_decision(self, decision: float) -> Any:
        """Return the label that a number predicts which is turned as `decision` is."""
        return self.label_of(self.direction * decision)

    def decisions(self, margins: np.ndarray) -> np.ndarray:
        """Return the result of `decision_function_many` for the margins of n rows."""
        return self.direction * self.outputs.scores_of(margins)

    def probabilities(self, margin: Any, n_examples: int) -> dict[Any, float]:
        """Return {label: probability} at a margin or a list of scores, after n examples."""
        if self.has_one_margin:
            p = float(platt.probability(self.calibration, margin))
            return self._probabilities_of_two(p, n_examples)
        if not self.labels.seen:
            return {}
        p_of_each = self._softmax(np.array(margin, np.float64)[None])[0]
        return dict(zip(self.labels.seen, p_of_each.tolist(), strict=True))

    def _probabilities_of_two(self, p: float, n_examples: int) -> dict[Any, float]:
        """Return {label: probability}, from the probability p of class 1.

        Before any label there are none; where there may be two only, those of False and True, one
        half each, which River's checks ask for. While only one of the labels 0 and 1 (or
        False and True) was seen, in n examples, the other one has 1 / (n + 2) by the rule of
        succession. It is never 0, so that active learners continue to ask for labels.
        """
        seen = self.labels.seen
        if not seen:
            return {False: 0.5, True: 0.5} if self.labels.most == 2 else {}
        if len(seen) == 2:
            found = {seen[0]: 1.0 - p, seen[1]: p}
            return {label: found[label] for label in self.ordered}
        label = seen[0]
        if isinstance(label, (bool, int)) and label in (0, 1):
            other = 1.0 / (n_examples + 2.0)
            kind = type(label)
            return {kind(y): 1.0 - other if label == y else other for y in (0, 1)}
        return {label: 1.0}

    def probability_columns(self, margins: np.ndarray, n_examples: int) -> dict[Any, np.ndarray]:
        """Return {label: float64 (n,)} of the margins of n rows."""
        if not self.has_one_margin:
            seen = self.labels.seen
            return dict(zip(seen, self._softmax(margins).T, strict=True)) if seen else {}
        rows = [self.probabilities(margin, n_examples) for margin in margins]
        keys = list(self._probabilities_of_two(0.5, 0))
        return {key: np.array([row[key] for row in rows]) for key in keys}

    def _softmax(self, margins: np.ndarray) -> np.ndarray:
        """Return the probabilities of n rows of scores, float64 (n, classes)."""
        scores = margins[:, : self.n_classes]
        found = np.array([platt.softmax(self.calibration, row) for row in scores])
        return found.reshape(scores.shape)


class ClassTargets(Targets):
    """Labels of which each has a score: the one with the highest is predicted."""

    new_labels = ClassLabels
    new_outputs = Scores


class GrowingTargets(Targets):
    """Labels with one margin while there are up to two of them, then with a score for each."""

    new_labels = ClassLabels
    new_outputs = GrowingOutputs

    def new_calibration(self) -> np.ndarray:
        """Return the calibration of these labels: of two, by a part of the margins."""
        return platt.new_thinned() if self.has_one_margin else platt.new_temperature()

    def calibrate(
        self, margins: np.ndarray, numbers: np.ndarray, labels: LabelColumn | None = None
    ) -> None:
        """Update the calibration by scores; with up to two labels, by a part of the margins."""
        if self.has_one_margin:
            platt.update_thinned(self.calibration, margins, numbers)
        else:
            super().calibrate(margins, numbers)


class ProblemTargets(GrowingTargets):
    """The same, where the solver of several classes calibrates itself: see `ProblemOutputs`."""

    new_outputs = ProblemOutputs

    def new_calibration(self) -> np.ndarray:
        """Return the calibration of one margin; an empty one for several labels."""
        return platt.new_calibration() if self.has_one_margin else np.zeros(0)

    def calibrate(
        self, margins: np.ndarray, numbers: np.ndarray, labels: LabelColumn | None = None
    ) -> None:
        """Update the calibration by margins of two labels; the solver does it for several."""
        if self.has_one_margin:
            Targets.calibrate(self, margins, numbers)

    def _softmax(self, margins: np.ndarray) -> np.ndarray:
        k = self.n_classes
        p: np.ndarray = np.exp(margins[:, k : 2 * k])
        return p / p.sum(axis=1, keepdims=True)
