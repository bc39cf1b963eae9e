"""What a learner is to predict: its labels, the numbers that stand for them, and probabilities.

Margins are float64 (n,) where one margin tells two labels apart; else they are scores, float64 (n,
classes).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from streamsvm.labels.class_labels import BinaryLabels, ClassLabels
from streamsvm.labels.growing_labels import GrowingLabels
from streamsvm.labels.label_column import LabelColumn
from streamsvm.support import calibration as platt


class Targets:
    """The labels of a learner with one margin, and the calibration of its probabilities.

    A solver is given float64 (n,): -1 or +1 for each label while `has_one_margin`, else its index
    in `labels.seen`. What it returns, margins or scores, means something to the targets only.

    A learner replaces its targets as a whole when a label comes, so that labels and numbers match
    whatever interrupts it. `calibration` is the array with which margins become probabilities.

    All kinds, also those that do not derive from this one, have `labels`, of which `seen` are in
    files and `most` is the limit; `n_classes`; `having`; and `labels_of` what a solver returned.
    `SequenceTargets` has no more but its own reader. Another kind for rows has all methods here: of
    a label `number_of` and `labels.check`, and of margins their `zeros`, labels, decisions,
    probabilities, `calibrate` and `losses`.
    """

    new_labels: ClassVar[type] = BinaryLabels

    def __init__(self, labels: Any = None, calibration: np.ndarray | None = None) -> None:
        self.labels = self.new_labels() if labels is None else labels
        # Changed in place.
        self.calibration = self.new_calibration() if calibration is None else calibration

    @property
    def n_classes(self) -> int:
        """How many labels were seen."""
        return len(self.labels.seen)

    @property
    def has_one_margin(self) -> bool:
        """Whether an example has one margin, and no score for each class."""
        return True

    def new_calibration(self) -> np.ndarray:
        """Return the calibration of these labels before the first example."""
        return platt.new_calibration() if self.has_one_margin else platt.new_temperature()

    def having(self, labels: Any) -> Targets:
        """Return targets of these labels, with the same calibration if it is one of them."""
        new = type(self)(labels)
        same = new.has_one_margin == self.has_one_margin
        return type(self)(labels, self.calibration) if same else new

    def number_of(self, label: Any) -> float:
        """Return the sign or number of a label; 0.0 for a label that was never seen."""
        labels = self.labels
        # First a dict, as there may be thousands of labels; with fewer than two it is empty.
        is_seen = label in labels.signs or label in labels.seen[:2]
        return float(labels.sign(label)) if is_seen else 0.0

    def column_of(self, labels: Any) -> LabelColumn:
        """Return labels, in any container, as a column."""
        return LabelColumn.of(labels)

    def members_of(self, label: Any) -> list[Any]:
        """Return the labels that one stands for: itself, or the candidates of a bag."""
        return [label]

    def knows(self, label: Any) -> bool:
        """Tell whether a label was seen."""
        return label in self.labels.seen

    def runs(self, labels: LabelColumn) -> list[tuple[int, int]]:
        """Return ranges of rows, split at the first row of each label that was not seen yet."""
        return labels.runs(self.labels.seen)

    def judged(self, labels: LabelColumn, predicted: Iterable[Any]) -> LabelColumn:
        """Return the labels that predictions are compared with."""
        return labels

    def calibrate(
        self, margins: np.ndarray, signs: np.ndarray, labels: LabelColumn | None = None
    ) -> None:
        """Update the calibration by margins that were computed before learning the examples.

        `labels` are those of the signs, where bags have only one sign.
        """
        if self.has_one_margin:
            platt.update_calibration(self.calibration, margins, signs)
        else:
            platt.update_temperature(self.calibration, margins, signs)

    def zeros(self, n: int) -> np.ndarray:
        """Return the margins of n rows, all 0."""
        return np.zeros(n) if self.has_one_margin else np.zeros((n, self.n_classes))

    def label_of(self, margin: Any) -> Any:
        """Return the label that a margin, or a list of scores, predicts; None before any label."""
        return self.labels.label(margin)

    def labels_of(self, margins: np.ndarray, n_known: int | None = None) -> LabelColumn:
        """Return the labels that margins predict; the first one from `n_known` labels, if given."""
        found: LabelColumn = self.labels.predicted(margins, n_known)
        return found

    def decision(self, margin: Any) -> Any:
        """Return the result of `decision_function_one` for a margin, or for a list of scores."""
        if self.has_one_margin:
            return float(margin)
        seen = self.labels.seen
        return dict(zip(seen, margin[: len(seen)], strict=True))

    def decisions(self, margins: np.ndarray) -> np.ndarray:
        """Return the result of `decision_function_many` for the margins of n rows."""
        return margins

    def probabilities(self, margin: Any, n_examples: int) -> dict[Any, float]:
        """Return {label: probability} at a margin or a list of scores, after n examples."""
        if self.has_one_margin:
            p = float(platt.probability(self.calibration, margin))
            found: dict[Any, float] = self.labels.probabilities(p, n_examples)
            return found
        if not self.labels.seen:
            return {}
        p_of_each = self._softmax(np.array(margin, np.float64)[None])[0]
        return dict(zip(self.labels.seen, p_of_each.tolist(), strict=True))

    def probability_columns(self, margins: np.ndarray, n_examples: int) -> dict[Any, np.ndarray]:
        """Return {label: float64 (n,)} of the margins of n rows."""
        if not self.has_one_margin:
            seen = self.labels.seen
            return dict(zip(seen, self._softmax(margins).T, strict=True)) if seen else {}
        rows = [self.probabilities(margin, n_examples) for margin in margins]
        keys = list(self.labels.probabilities(0.5, 0))
        return {key: np.array([row[key] for row in rows]) for key in keys}

    def _softmax(self, margins: np.ndarray) -> np.ndarray:
        """Return the probabilities of n rows of scores, float64 (n, classes)."""
        scores = margins[:, : self.n_classes]
        found = np.array([platt.softmax(self.calibration, row) for row in scores])
        return found.reshape(scores.shape)

    def losses(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each margin, or 1 - own score + best other one of each row."""
        return np.maximum(0.0, 1.0 - self.correctness(signs, margins))

    def correctness(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return y f(x) of each margin, or own score - best other one; below 0 it is wrong.

        Without another class it is infinite.
        """
        if margins.ndim == 1:
            return signs * margins
        rows, own = np.arange(len(signs)), signs.astype(np.int64)
        others = margins[:, : self.n_classes].copy()
        others[rows, own] = -np.inf
        found: np.ndarray = margins[rows, own] - others.max(axis=1, initial=-np.inf)
        return found

    def distances(self, margins: np.ndarray) -> np.ndarray:
        """Return how far rows are from the border: |f(x)|, or the best score - the second best."""
        if margins.ndim == 1:
            return np.abs(margins)
        best = margins[:, : self.n_classes].argmax(axis=1)
        return self.correctness(best.astype(np.float64), margins)


class ClassTargets(Targets):
    """Labels of which each has a score: the one with the highest is predicted."""

    new_labels = ClassLabels

    @property
    def has_one_margin(self) -> bool:
        """False."""
        return False


class GrowingTargets(Targets):
    """Labels with one margin while there are up to two of them, then with a score for each."""

    new_labels = GrowingLabels

    @property
    def has_one_margin(self) -> bool:
        """Whether there are up to two labels."""
        return bool(self.labels.is_binary)

    def new_calibration(self) -> np.ndarray:
        """Return the calibration of these labels: of two, by a part of the margins."""
        return platt.new_thinned() if self.has_one_margin else platt.new_temperature()

    def calibrate(
        self, margins: np.ndarray, signs: np.ndarray, labels: LabelColumn | None = None
    ) -> None:
        """Update the calibration by scores; with up to two labels, by a part of the margins."""
        if self.has_one_margin:
            platt.update_thinned(self.calibration, margins, signs)
        else:
            super().calibrate(margins, signs)


class ProblemTargets(GrowingTargets):
    """Labels with one margin while there are up to two, then with scores and probabilities.

    Of several labels a row has their scores, then the logarithms of their probabilities, which
    the solver computes from the margins of its binary problems, and calibrates; and last the least
    margin of its own label, if it was learnt, else of the best one.
    """

    def new_calibration(self) -> np.ndarray:
        """Return the calibration of one margin; an empty one for several labels."""
        return platt.new_calibration() if self.has_one_margin else np.zeros(0)

    def calibrate(
        self, margins: np.ndarray, signs: np.ndarray, labels: LabelColumn | None = None
    ) -> None:
        """Update the calibration by margins of two labels; the solver does it for several."""
        if self.has_one_margin:
            Targets.calibrate(self, margins, signs)

    def zeros(self, n: int) -> np.ndarray:
        """Return the margins of n rows, all 0."""
        return np.zeros(n) if self.has_one_margin else np.zeros((n, 2 * self.n_classes + 1))

    def decisions(self, margins: np.ndarray) -> np.ndarray:
        """Return the margins, without probabilities."""
        return margins if self.has_one_margin else margins[:, : self.n_classes]

    def _softmax(self, margins: np.ndarray) -> np.ndarray:
        k = self.n_classes
        p: np.ndarray = np.exp(margins[:, k : 2 * k])
        return p / p.sum(axis=1, keepdims=True)

    def distances(self, margins: np.ndarray) -> np.ndarray:
        """Return |f(x)| of rows; of several labels what the solver wrote of rows not learnt yet."""
        return np.abs(margins) if margins.ndim == 1 else margins[:, -1]
