"""What learners of several classes share: rows of scores, and probabilities from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.features import frames
from streamsvm.features.names import Name
from streamsvm.labels.calibration import new_temperature, softmax, update_temperature
from streamsvm.learners.bases.learner import Learner


class MulticlassLearner(Learner):
    """A learner whose margins are rows of scores, one a class; the highest is predicted."""

    def _new_calibration(self) -> np.ndarray:
        return new_temperature()

    def _calibrate(self, margins: np.ndarray, signs: np.ndarray) -> None:
        update_temperature(self._calibration, margins, signs)

    def _no_margins(self, n: int) -> np.ndarray:
        return np.zeros((n, len(self._labels.seen)))

    def decision_function_one(self, x: Mapping[Name, Any]) -> dict[Any, float]:
        """Return {label: score} of an event; the highest is predicted."""
        with self._lock:
            return dict(zip(self._labels.seen, self._margin_one(x), strict=True))

    def predict_proba_one(self, x: Mapping[Name, Any], **kwargs: Any) -> dict[Any, float]:
        """Return {label: probability}, calibrated on scores from before each was learnt."""
        with self._lock:
            return self.probabilities_of(self._margin_one(x))

    def probabilities_of(self, margin: Any) -> dict[Any, float]:
        """Return {label: calibrated probability} at a row of scores; {} before any label."""
        seen = self._labels.seen
        if not seen:
            return {}
        p = softmax(self._calibration, np.array(margin, np.float64)[: len(seen)])
        return dict(zip(seen, p.tolist(), strict=False))

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame with a column a label and a row of probabilities a row."""
        with self._lock:
            margins = self._margins_many(X)
            p = np.array([softmax(self._calibration, m) for m in margins])
            columns = p.reshape(margins.shape).T
        return frames.columns_like(X, dict(zip(self._labels.seen, columns, strict=True)))
