"""The perceptron as a River classifier: what a new learner costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_size
from streamsvm.features.schema import LIMIT
from streamsvm.learners.bases.event_path import Bound
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import register_learner
from streamsvm.monitor.certificate import Certificate
from streamsvm.support import states
from streamsvm.support.rows import Rows, shape, sparse
from tests.new_learner.perceptron import step
from tests.new_learner.perceptron.state import BIAS, N_UPDATES, PerceptronState


class PerceptronClassifier(Learner):
    """Perceptron: a linear classifier that changes at its mistakes only.

    Parameters
    ----------
    sparse
        True: rows are read by their nonzero features; False, the default: with all of them.
    hashing
        None, the default: each feature name gets a column of its own; or the number of columns.
    max_features
        At most so many names are known; 1,048,576 by default.

    """

    has_dual = False
    description = "perceptron"
    certificate = Certificate(None, "no certificate: the perceptron has no dual")

    def __init__(
        self, sparse: bool = False, hashing: int | None = None, max_features: int = LIMIT
    ) -> None:
        super().__init__(check_size("max_features", max_features) or LIMIT, hashing)
        self.sparse, self.hashing, self.max_features = sparse, hashing, max_features
        self._sparse = self._sparse or sparse
        self._state: PerceptronState = self._new_state(16)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"sparse": True}

    # Learning

    def _new_state(self, n_features: int) -> PerceptronState:
        state: PerceptronState = states.new(PerceptronState, {"features": n_features})
        return state

    def _state_for(self, x: Rows) -> PerceptronState:
        d, room = shape(x)[1], self._room_for_features()
        if d > room:
            self._state = states.grown_arrays(self._state, {"features": max(d, 2 * room)})
        return self._state

    def _learn_rows(self, x, y, labels, w, numbers, diagonal) -> np.ndarray:
        margins = np.zeros(len(y))
        x = sparse(x) if self._sparse else x
        step.learn_rows(self._state_for(x), x, y, w, margins)
        return margins

    def _margins(self, x: Rows) -> np.ndarray:
        margins = np.zeros(shape(x)[0])
        step.margins_of(self._state_for(x), x, margins)
        return margins

    def _diagonal(self, x: Rows) -> np.ndarray:
        return np.zeros(shape(x)[0])

    def _with_signs_exchanged(self) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]:
        weights, info = self._state
        turned = PerceptronState(-weights, info * np.array([-1.0, 1.0]))
        return {"_state": turned}, np.negative

    def _become_sparse(self) -> None:
        self._sparse = True

    # Events

    def _bound(self) -> Bound:
        return self._state, None, None, self._calibration, self._labels

    def _bound_kernel(self, state: Any) -> None:
        return None

    def _room_for_features(self) -> int:
        return self._state.weights.size

    def _box_of(self, label: Any, sign: float) -> float:
        return 1.0

    # Looking inside

    @property
    def weights(self) -> np.ndarray:
        """float64 (d,), in the order of `feature_names`."""
        return self._state.weights[: len(self._schema)]

    @property
    def intercept(self) -> float:
        """The bias."""
        return float(self._state.info[BIAS])

    @property
    def counters(self) -> dict[str, int]:
        """Examples and mistakes."""
        return {"examples": self._n_examples, "updates": int(self._state.info[N_UPDATES])}

    @property
    def kappa(self) -> float:
        """The share of examples that changed nothing."""
        return 1.0 - self.counters["updates"] / max(1, self._n_examples)

    @property
    def memory_usage(self) -> int:
        """Bytes of the weights."""
        return self._state.weights.nbytes

    def objective_of(self, x: Rows, signs: np.ndarray, weights: np.ndarray) -> float:
        """Return the mean perceptron loss of rows."""
        return float((weights * np.maximum(0.0, -signs * self._margins(x))).mean())


register_learner(PerceptronClassifier, "perceptron")
