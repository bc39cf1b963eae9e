"""What binary learners share: their two labels, probabilities, and a fast path for events."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.features import frames
from streamsvm.features.names import Name
from streamsvm.labels.calibration import new_calibration, probability, update_calibration
from streamsvm.labels.class_labels import BinaryLabels
from streamsvm.learners.bases import event_handle as events
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.training_observer import tell


class BinaryLearner(Learner):
    """A learner of two classes: margins are numbers, above 0 for the positive label."""

    def _new_labels(self) -> BinaryLabels:
        return BinaryLabels()

    def _new_calibration(self) -> np.ndarray:
        return new_calibration()

    def _calibrate(self, margins: np.ndarray, signs: np.ndarray) -> None:
        update_calibration(self._calibration, margins, signs)

    def _no_margins(self, n: int) -> np.ndarray:
        return np.zeros(n)

    def losses_of(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each margin."""
        return np.maximum(0.0, 1.0 - signs * margins)

    # Events

    def _current_handle(self) -> events.Handle | None:
        """Return the fast path to the state, None if events must go the long one."""
        key = self._handle_key()
        if key is None or len(self._labels.seen) < 2:
            return None
        state, kernel, schedule = key
        d, handle = len(self._schema), self._handle
        # By identity: a state or a kernel is replaced, never changed.
        if handle is None or not handle.serves(state, kernel, schedule, d):
            handle = events.Handle(state, kernel, schedule, self._calibration, d)
            self._handle = handle
        return handle

    def _learn_fast(self, x: Mapping[Name, Any], y: Any) -> bool:
        """Learn an event of known features and labels; return False if nothing was done."""
        try:
            known = y in self._labels.seen
        except (TypeError, ValueError, OverflowError):
            return False
        observer = self.observer
        if not known or (observer is not None and observer.asks_probabilities):
            return False
        box = self._box_of(y)
        handle = None if box is None else self._current_handle()
        if handle is None or box is None:
            return False
        event: Any
        new: list[Name] = []
        if self._sparse:
            event, new = self._schema.sparse_row(x)
            if event.d > self._room_for_features():
                return False
        else:
            event = self._schema.packed(x)
            if event is None:
                return False
        number, sign, began = self._n_examples + 1, self._labels.sign(y), time.perf_counter()
        if not handle.learn(event, sign, box, number):
            return False
        seconds = time.perf_counter() - began
        if self._sparse:
            self._schema.extend(new)
        self._n_examples = number
        if observer is not None:
            margin, label = handle.margin, self._labels.label(sign)
            predicted = self._labels.label(margin)
            if not observer.note(label, predicted, seconds):
                row = event if self._sparse else event.astype(np.float32).reshape(1, -1)
                tell(observer, row, sign, label, predicted, margin, 1.0, number, seconds)
        return True

    def decision_function_one(self, x: Mapping[Name, Any]) -> float:
        """Return the signed margin f(x) + b; above 0 is the larger label, 0.0 before any label."""
        with self._lock:
            return self._margin_one(x)

    def _margin_one(self, x: Mapping[Name, Any]) -> float:
        schema = self._schema
        handle = self._current_handle()
        event: Any = None
        if handle is not None:
            event = schema.known_row(x) if self._sparse else schema.packed(x)
        if handle is not None and event is not None:
            margin: float = handle.margin_of(event)
            if margin == margin:
                return margin
        return float(super()._margin_one(x))

    def predict_proba_one(self, x: Mapping[Name, Any], **kwargs: Any) -> dict[Any, float]:
        """Return {label: probability}, calibrated on margins from before each was learnt.

        Before any label the keys are False and True, at one half each.
        """
        with self._lock:
            return self.probabilities_of(self._margin_one(x))

    # Batches

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame with a column a label and a row of probabilities a row.

        A dict of arrays for NumPy, an Arrow Table for Arrow, else a frame like `X`.
        """
        with self._lock:
            margins = self._margins_many(X)
            p = np.array([probability(self._calibration, m) for m in margins])
            rows = [self._labels.probabilities(value, self._n_examples) for value in p.tolist()]
            keys = list(self._labels.probabilities(0.5, 0))
        return frames.columns_like(X, {key: np.array([row[key] for row in rows]) for key in keys})

    # Labels

    @property
    def labels(self) -> tuple[Any, Any]:
        """The labels of margins below and above 0; None where not seen yet."""
        return self._labels.negative, self._labels.positive

    def probability_of(self, margin: float) -> float:
        """Return the calibrated probability of the positive label at a margin."""
        return float(probability(self._calibration, margin))

    def probabilities_of(self, margin: float) -> dict[Any, float]:
        """Return {label: calibrated probability} at a margin."""
        return self._labels.probabilities(self.probability_of(margin), self._n_examples)
