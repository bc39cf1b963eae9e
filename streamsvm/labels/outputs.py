"""Labels and probabilities from a learner's outputs: one margin, or a score for each class.

An `Output` has no state: labels and calibration are kept by the learner. Margins are float64 (n,)
for one output; for several they are scores, (n, classes).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from streamsvm.labels.class_labels import BinaryLabels, ClassLabels
from streamsvm.labels.growing_labels import GrowingLabels
from streamsvm.support import calibration as platt


class Output(Protocol):
    """How margins become labels, decisions and probabilities."""

    def new_labels(self) -> Any:
        """Return the labels of a new learner."""

    def new_calibration(self, labels: Any) -> np.ndarray:
        """Return the calibration of a new learner."""

    def calibrate(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, signs: np.ndarray
    ) -> None:
        """Update the calibration by margins that were computed before learning the examples."""

    def zeros(self, labels: Any, n: int) -> np.ndarray:
        """Return the margins of n rows, all 0."""

    def decision(self, labels: Any, margin: Any) -> Any:
        """Return the result of `decision_function_one` for a margin, or for a list of scores."""

    def decisions(self, labels: Any, margins: np.ndarray) -> np.ndarray:
        """Return the result of `decision_function_many` for the margins of n rows."""

    def probabilities(
        self, calibration: np.ndarray, labels: Any, margin: Any, n_examples: int
    ) -> dict[Any, float]:
        """Return {label: probability} for a margin, or for a list of scores."""

    def probability_columns(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, n_examples: int
    ) -> dict[Any, np.ndarray]:
        """Return {label: float64 (n,)} of the margins of n rows."""

    def losses(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each margin, or of each row of scores."""


class BinaryOutput:
    """One margin for two labels: the positive label is predicted if it is above 0."""

    def new_labels(self) -> Any:
        """Return the labels of a new learner."""
        return BinaryLabels()

    def new_calibration(self, labels: Any) -> np.ndarray:
        """Return slope, offset and curvature: see `calibration.new_calibration`."""
        return platt.new_calibration()

    def calibrate(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, signs: np.ndarray
    ) -> None:
        """Update the calibration by margins, float64 (n,), with signs +1 and -1."""
        platt.update_calibration(calibration, margins, signs)

    def zeros(self, labels: Any, n: int) -> np.ndarray:
        """Return the margins of n rows, all 0."""
        return np.zeros(n)

    def decision(self, labels: Any, margin: Any) -> Any:
        """Return the margin."""
        return float(margin)

    def decisions(self, labels: Any, margins: np.ndarray) -> np.ndarray:
        """Return the margins."""
        return margins

    def probabilities(
        self, calibration: np.ndarray, labels: Any, margin: Any, n_examples: int
    ) -> dict[Any, float]:
        """Return {label: probability}: see `BinaryLabels.probabilities`."""
        p = float(platt.probability(calibration, margin))
        found: dict[Any, float] = labels.probabilities(p, n_examples)
        return found

    def probability_columns(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, n_examples: int
    ) -> dict[Any, np.ndarray]:
        """Return {label: float64 (n,)} of the margins of n rows."""
        p = [float(platt.probability(calibration, margin)) for margin in margins]
        rows = [labels.probabilities(value, n_examples) for value in p]
        keys = list(labels.probabilities(0.5, 0))
        return {key: np.array([row[key] for row in rows]) for key in keys}

    def losses(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each margin."""
        return np.maximum(0.0, 1.0 - signs * margins)


class MulticlassOutput:
    """A score for each class: the label with the highest score is predicted."""

    def new_labels(self) -> Any:
        """Return the labels of a new learner."""
        return ClassLabels()

    def new_calibration(self, labels: Any) -> np.ndarray:
        """Return slope and curvature: see `calibration.new_temperature`."""
        return platt.new_temperature()

    def calibrate(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, signs: np.ndarray
    ) -> None:
        """Update the calibration by scores, float64 (n, classes); `signs` are class numbers."""
        platt.update_temperature(calibration, margins, signs)

    def zeros(self, labels: Any, n: int) -> np.ndarray:
        """Return the scores of n rows, all 0."""
        return np.zeros((n, len(labels.seen)))

    def decision(self, labels: Any, margin: Any) -> Any:
        """Return {label: score}."""
        return dict(zip(labels.seen, margin, strict=True))

    def decisions(self, labels: Any, margins: np.ndarray) -> np.ndarray:
        """Return the margins."""
        return margins

    def probabilities(
        self, calibration: np.ndarray, labels: Any, margin: Any, n_examples: int
    ) -> dict[Any, float]:
        """Return {label: probability}; {} before any label."""
        seen = labels.seen
        if not seen:
            return {}
        p = platt.softmax(calibration, np.array(margin, np.float64)[: len(seen)])
        return dict(zip(seen, p.tolist(), strict=False))

    def probability_columns(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, n_examples: int
    ) -> dict[Any, np.ndarray]:
        """Return {label: float64 (n,)} of the scores of n rows."""
        if not labels.seen:
            return {}
        p = np.array([platt.softmax(calibration, scores) for scores in margins])
        return dict(zip(labels.seen, p.reshape(margins.shape).T, strict=True))

    def losses(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the multiclass hinge loss of each row: 1 - own score + best other one, or 0."""
        rows, own = np.arange(len(signs)), signs.astype(np.int64)
        others = margins.copy()
        others[rows, own] = -np.inf
        best = others.max(axis=1, initial=-np.inf)
        return np.maximum(0.0, np.where(np.isfinite(best), 1.0 - margins[rows, own] + best, 0.0))


class GrowingOutput:
    """One margin while there are up to two labels, then a score for each label."""

    def new_labels(self) -> Any:
        """Return the labels of a new learner."""
        return GrowingLabels()

    def new_calibration(self, labels: Any) -> np.ndarray:
        """Return the calibration for as many labels as there are: see `calibration`."""
        return platt.new_thinned() if labels.is_binary else platt.new_temperature()

    def calibrate(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, signs: np.ndarray
    ) -> None:
        """Update the calibration by scores; with up to two labels, by a part of the margins."""
        if labels.is_binary:
            platt.update_thinned(calibration, margins, signs)
        else:
            MULTICLASS.calibrate(calibration, labels, margins, signs)

    def zeros(self, labels: Any, n: int) -> np.ndarray:
        """Return the margins of n rows, all 0."""
        return _of(labels).zeros(labels, n)

    def decision(self, labels: Any, margin: Any) -> Any:
        """Return the margin, or {label: score}."""
        return _of(labels).decision(labels, margin)

    def decisions(self, labels: Any, margins: np.ndarray) -> np.ndarray:
        """Return the margins."""
        return margins

    def probabilities(
        self, calibration: np.ndarray, labels: Any, margin: Any, n_examples: int
    ) -> dict[Any, float]:
        """Return {label: probability}."""
        return _of(labels).probabilities(calibration, labels, margin, n_examples)

    def probability_columns(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, n_examples: int
    ) -> dict[Any, np.ndarray]:
        """Return {label: float64 (n,)} of the margins of n rows."""
        return _of(labels).probability_columns(calibration, labels, margins, n_examples)

    def losses(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each margin, or of each row of scores."""
        return (BINARY if margins.ndim == 1 else MULTICLASS).losses(signs, margins)


class ProblemsOutput(GrowingOutput):
    """One margin while there are up to two labels, then the scores and probabilities of labels.

    Of several labels a row has their scores, then the logarithms of their probabilities, which
    the solver computes from the margins of its binary problems, and calibrates; and last the least
    margin of its own label, if it was learnt.
    """

    def new_calibration(self, labels: Any) -> np.ndarray:
        """Return the calibration of one margin; an empty one for several labels."""
        return platt.new_calibration() if labels.is_binary else np.zeros(0)

    def calibrate(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, signs: np.ndarray
    ) -> None:
        """Update the calibration by margins of two labels; the solver does it for several."""
        if labels.is_binary:
            BINARY.calibrate(calibration, labels, margins, signs)

    def zeros(self, labels: Any, n: int) -> np.ndarray:
        """Return the margins of n rows, all 0."""
        return np.zeros(n) if labels.is_binary else np.zeros((n, 2 * len(labels.seen) + 1))

    def decision(self, labels: Any, margin: Any) -> Any:
        """Return the margin, or {label: score}."""
        if labels.is_binary:
            return BINARY.decision(labels, margin)
        return dict(zip(labels.seen, margin[: len(labels.seen)], strict=True))

    def decisions(self, labels: Any, margins: np.ndarray) -> np.ndarray:
        """Return the margins, without probabilities."""
        return margins if labels.is_binary else margins[:, : len(labels.seen)]

    def probabilities(
        self, calibration: np.ndarray, labels: Any, margin: Any, n_examples: int
    ) -> dict[Any, float]:
        """Return {label: probability}."""
        if labels.is_binary:
            return BINARY.probabilities(calibration, labels, margin, n_examples)
        k = len(labels.seen)
        p = np.exp(np.asarray(margin[k : 2 * k], np.float64))
        return dict(zip(labels.seen, (p / p.sum()).tolist(), strict=True))

    def probability_columns(
        self, calibration: np.ndarray, labels: Any, margins: np.ndarray, n_examples: int
    ) -> dict[Any, np.ndarray]:
        """Return {label: float64 (n,)} of the margins of n rows."""
        if labels.is_binary:
            return BINARY.probability_columns(calibration, labels, margins, n_examples)
        k = len(labels.seen)
        p = np.exp(margins[:, k : 2 * k])
        return dict(zip(labels.seen, (p / p.sum(axis=1, keepdims=True)).T.copy(), strict=True))

    def losses(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each margin; of several labels, of the best and own scores."""
        if margins.ndim == 1:
            return BINARY.losses(signs, margins)
        return MULTICLASS.losses(signs, margins[:, : margins.shape[1] // 2])


BINARY = BinaryOutput()
MULTICLASS = MulticlassOutput()
GROWING = GrowingOutput()
PROBLEMS = ProblemsOutput()


def _of(labels: Any) -> BinaryOutput | MulticlassOutput:
    return BINARY if labels.is_binary else MULTICLASS
