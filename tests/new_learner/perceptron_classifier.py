"""The perceptron as a model, and as a River classifier: what a new learner costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_size
from streamsvm.features.schema import LIMIT
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.model import Model, Parts
from streamsvm.models.outputs import Outputs, sides_of
from streamsvm.models.rows import NumberedRows
from streamsvm.monitor.certificate import Certificate
from streamsvm.support import states
from streamsvm.support.rows import Rows, shape, sparse
from tests.new_learner.perceptron import step
from tests.new_learner.perceptron.state import BIAS, N_UPDATES, PerceptronState


class PerceptronModel(Model):
    """Rows of numbers in, margins out."""

    def __init__(self, is_sparse: bool) -> None:
        self.outputs, self.is_sparse = Outputs(0), is_sparse
        self.n_learnt, self.n_features = np.zeros(1, np.int64), 0
        self.state: PerceptronState = self.empty_state()

    def empty_state(self) -> PerceptronState:
        room = max(16, self.n_features)
        state: PerceptronState = states.new(PerceptronState, {"features": room})
        return state

    def state_for(self, x: Rows) -> PerceptronState:
        d, room = shape(x)[1], self.room_for_features()
        if d > room:
            self.state = states.grown_arrays(self.state, {"features": max(d, 2 * room)})
        return self.state

    def learn(self, rows: NumberedRows) -> np.ndarray:
        margins = np.zeros(len(rows.y))
        x = sparse(rows.x) if self.is_sparse else rows.x
        step.learn_rows(self.state_for(x), x, rows.y, rows.w, margins)
        self.n_learnt[0] = max(self.n_learnt[0], *rows.numbers)
        return margins

    def margins_of(self, x: Rows) -> np.ndarray:
        margins = np.zeros(shape(x)[0])
        step.margins_of(self.state_for(x), x, margins)
        return margins

    def become_sparse(self) -> None:
        self.is_sparse = True

    def event_parts(self) -> Parts:
        return self.state, None, None

    def room_for_features(self) -> int:
        return self.state.weights.size

    @property
    def memory_parts(self) -> dict[str, int]:
        return {"weights": self.state.weights.nbytes}


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
        model, limit = PerceptronModel(sparse or hashing is not None), max_features
        super().__init__(model, check_size("max_features", limit) or LIMIT, hashing)
        self.sparse, self.hashing, self.max_features = sparse, hashing, max_features

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"sparse": True}

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

    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return the mean perceptron loss of rows."""
        return float((weights * np.maximum(0.0, -sides_of(classes) * self.margins_of(x))).mean())


register_learner(PerceptronClassifier, "perceptron")
