"""The perceptron as a River classifier: what a new learner costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_size
from streamsvm.features.schema import LIMIT
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.labels.targets import sides_of
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
        self.is_sparse = self.is_sparse or sparse
        self.state: PerceptronState = self.empty_state()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"sparse": True}

    # Learning

    def empty_state(self) -> PerceptronState:
        room = max(16, len(self.schema))
        state: PerceptronState = states.new(PerceptronState, {"features": room})
        return state

    def state_for(self, x: Rows) -> PerceptronState:
        d, room = shape(x)[1], self.room_for_features()
        if d > room:
            self.state = states.grown_arrays(self.state, {"features": max(d, 2 * room)})
        return self.state

    def learn_rows(self, rows: LabelledRows) -> np.ndarray:
        margins = np.zeros(len(rows.y))
        x = sparse(rows.x) if self.is_sparse else rows.x
        step.learn_rows(self.state_for(x), x, rows.y, rows.w, margins)
        return margins

    def margins_of(self, x: Rows) -> np.ndarray:
        margins = np.zeros(shape(x)[0])
        step.margins_of(self.state_for(x), x, margins)
        return margins

    def diagonal_of(self, x: Rows) -> np.ndarray:
        return np.zeros(shape(x)[0])

    def add_class(self, label: Any) -> None:
        if not self.targets.knows(label):
            self.targets = self.targets.with_label(label)

    def become_sparse(self) -> None:
        self.is_sparse = True

    # Events

    def event_parts(self) -> Bound:
        return self.state, None, None, self.targets

    def bound_kernel(self, state: Any) -> None:
        return None

    def room_for_features(self) -> int:
        return self.state.weights.size

    def cost_of(self, label: Any, number: float) -> float:
        return 1.0

    # Looking inside

    @property
    def weights(self) -> np.ndarray:
        """float64 (d,), in the order of `feature_names`."""
        return self.targets.direction * self.state.weights[: len(self.schema)]

    @property
    def intercept(self) -> float:
        """The bias."""
        return self.targets.direction * float(self.state.info[BIAS])

    @property
    def counters(self) -> dict[str, int]:
        """Examples and mistakes."""
        return {"examples": self.n_examples, "updates": int(self.state.info[N_UPDATES])}

    @property
    def kappa(self) -> float:
        """The share of examples that changed nothing."""
        return 1.0 - self.counters["updates"] / max(1, self.n_examples)

    @property
    def memory_usage(self) -> int:
        """Bytes of the weights."""
        return self.state.weights.nbytes

    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return the mean perceptron loss of rows."""
        return float((weights * np.maximum(0.0, -sides_of(classes) * self.margins_of(x))).mean())


register_learner(PerceptronClassifier, "perceptron")
