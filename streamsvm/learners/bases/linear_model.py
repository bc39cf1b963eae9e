"""What a linear learner has learnt, to look at."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from streamsvm.features import frames
from streamsvm.labels import outputs
from streamsvm.labels.class_labels import check_present
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.parameter_checks import weights_of
from streamsvm.learners.bases.rate_search import RateSearchRows
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import BIAS, N_UPDATES, LinearState, Schedule, T
from streamsvm.support.rows import Rows, shape


class LinearModel(Learner):
    """Weights by feature; the learner itself is `LinearLearner`."""

    _output = outputs.GROWING
    has_dual = False

    loss: str
    class_weight: Any
    hashing: int | None
    _schedule: Schedule
    _state: LinearState | None
    _first: RateSearchRows | None

    @abc.abstractmethod
    def _n_outputs(self) -> int:
        """Return how many weights a feature has: 1, or one a class."""

    @abc.abstractmethod
    def _state_for(self, d: int) -> LinearState:
        """Return the state, made or widened to hold so many features and all classes."""

    @property
    def summary(self) -> str:
        """Loss, lambda and rate, in a few words."""
        return f"{self.loss} loss, lambda {self._schedule.lam:g}, rate {self.rate:.3g}"

    @property
    def weights(self) -> dict[Any, Any]:
        """{feature: weight}; of more than two classes {label: {feature: weight}}."""
        with self._lock:
            return self._weights()

    def _weights(self) -> dict[Any, Any]:
        names = self.feature_names if self.hashing is None else list(range(self.hashing))
        rows = self._predicting_weights()[:, : len(names)].tolist()
        found = [dict(zip(names, row, strict=True)) for row in rows]
        if self._labels.is_binary:
            return found[0] if found else {}
        return dict(zip(self._labels.seen, found, strict=True))

    def _predicting_weights(self) -> np.ndarray:
        """Return the weights that predict, float64 (outputs, feature capacity)."""
        if self._state is None:
            return np.zeros((0, 0))
        weights, info = self._state
        found = info[:, linear_state.SCALE][:, None] * weights[:, 0]
        for o in range(len(info)):
            if linear_state.predicts_average(self._schedule, info[o]):
                found[o] = info[o, linear_state.P] * weights[o, 1]
                found[o] += info[o, linear_state.Q] * weights[o, 0]
        return np.asarray(found)

    @property
    def intercept(self) -> Any:
        """The bias; of more than two classes {label: bias}."""
        values: list[float] = []
        for info in () if self._state is None else self._state.info:
            averages = linear_state.predicts_average(self._schedule, info)
            values.append(float(info[linear_state.AVERAGE_BIAS if averages else BIAS]))
        if self._labels.is_binary:
            return values[0] if values else 0.0
        return dict(zip(self._labels.seen, values, strict=True))

    @property
    def rate(self) -> float:
        """The rate of the next example: of what its loss' derivative is multiplied with."""
        t = 0.0 if self._state is None else float(self._state.info[0, T])
        return float(linear_state.rate(self._schedule, t) / self._schedule.lam)

    def objective(self, X: Any, y: Any, w: Any = 1.0) -> float:
        """Return lambda / 2 ||w||^2 plus the mean loss over rows: what is minimised.

        Parameters
        ----------
        X, y, w
            Rows, labels and weights as in `learn_many`; labels that were never learnt count as
            errors of all outputs.

        """
        with self._lock:
            x = self._read_known(X)
            labels = frames.labels_of(y, shape(x)[0])
            check_present(labels)
            unknown = np.array([y not in self._labels.seen for y in labels.values])[labels.codes]
            signs = np.where(unknown, -1.0, labels.numbers(self._sign_of))
            return self.objective_of(x, signs, weights_of(w, len(labels)))

    def objective_of(self, x: Rows, signs: np.ndarray, weights: np.ndarray) -> float:
        """Return the primal objective, with the losses of rows of these signs and weights."""
        if self.class_weight is not None:
            factor = self.class_weight
            labels = [self._labels.label_of_sign(sign) for sign in signs.tolist()]
            weights = weights * np.array([float(factor.get(label, 1.0)) for label in labels])
        state = self._state_for(shape(x)[1])
        return float(linear_state.primal(state, x, signs, weights, self._schedule))

    @property
    def kappa(self) -> float:
        """The share of examples that changed nothing; 0 before any."""
        counts = self.counters
        n = counts["examples"] * self._n_outputs()
        return 1.0 - counts["updates"] / n if n else 0.0

    @property
    def certificate(self) -> Certificate:
        """None, and why."""
        return Certificate(
            None,
            "no certificate: stochastic gradients keep no dual coefficients whose gap could be "
            "measured; follow the objective on the sample",
        )

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: examples, updates of the weights."""
        updates = 0.0 if self._state is None else float(self._state.info[:, N_UPDATES].sum())
        return {"examples": self._n_examples, "updates": int(updates)} | self._ignored()

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        return sum(self.memory_parts.values())

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of the ``weights``, and of the ``first_rows`` while they are kept."""
        first, state = self._first, self._state
        return {
            "weights": 0 if state is None else state.weights.nbytes,
            "first_rows": 0 if first is None else first.nbytes,
        }
