"""A learner of two classes until a third comes, and of several from then on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.features.names import Name
from streamsvm.labels.calibration import new_temperature, new_thinned, update_thinned
from streamsvm.labels.growing_labels import GrowingLabels
from streamsvm.learners.bases.binary_learner import BinaryLearner
from streamsvm.learners.bases.multiclass_learner import MulticlassLearner


class AnyClassesLearner(BinaryLearner, MulticlassLearner):
    """Margins are numbers with up to two classes, rows of scores with more."""

    def _new_labels(self) -> GrowingLabels:
        return GrowingLabels()

    @property
    def _classes_kind(self) -> Any:
        return BinaryLearner if self._labels.is_binary else MulticlassLearner

    def _new_calibration(self) -> np.ndarray:
        return new_thinned() if self._labels.is_binary else new_temperature()

    def _calibrate(self, margins: np.ndarray, signs: np.ndarray) -> None:
        if self._labels.is_binary:
            update_thinned(self._calibration, margins, signs)
        else:
            MulticlassLearner._calibrate(self, margins, signs)

    def _no_margins(self, n: int) -> np.ndarray:
        margins: np.ndarray = self._classes_kind._no_margins(self, n)
        return margins

    def _margin_one(self, x: Mapping[Name, Any]) -> Any:
        return self._classes_kind._margin_one(self, x)

    def decision_function_one(self, x: Mapping[Name, Any]) -> Any:
        """Return the signed margin; of more than two classes {label: score}."""
        with self._lock:
            return self._classes_kind.decision_function_one(self, x)

    def predict_proba_one(self, x: Mapping[Name, Any], **kwargs: Any) -> dict[Any, float]:
        """Return {label: probability}, calibrated on margins from before each was learnt."""
        with self._lock:
            p: dict[Any, float] = self._classes_kind.predict_proba_one(self, x)
        return p

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame with a column a label and a row of probabilities a row."""
        with self._lock:
            return self._classes_kind.predict_proba_many(self, X)

    def probabilities_of(self, margin: Any) -> dict[Any, float]:
        """Return {label: calibrated probability} at a margin, or at a row of scores."""
        p: dict[Any, float] = self._classes_kind.probabilities_of(self, margin)
        return p
