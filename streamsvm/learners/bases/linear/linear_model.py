"""The state of linear learners, and what is public of it: weights, rate, objective, counters."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from streamsvm._parameter_checks import weights_of
from streamsvm.features import batches, frames
from streamsvm.labels.class_labels import check_present
from streamsvm.labels.targets import GrowingTargets
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.linear.rate_search import RateSearchRows
from streamsvm.monitor.certificate import Certificate
from streamsvm.native_events.fast_path import Generation
from streamsvm.native_events.linear_path import NoFastPath
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import BIAS, N_UPDATES, LinearState, Schedule, T
from streamsvm.support.rows import Rows, shape

FEWEST, FEWEST_SPARSE = 1024, 4096
"""The smallest room for features, of dense and of sparse rows: growing it often would take long."""


class LinearModel(Learner):
    """The inspection part of a linear learner; `LinearLearner` adds the learning.

    Attributes
    ----------
    weights
        {feature: weight}; with more than two classes {label: {feature: weight}}.
    intercept
        The bias; with more than two classes {label: bias}.
    rate
        The learning rate of the next example.

    """

    new_targets = GrowingTargets
    has_dual = False

    loss: str
    class_weight: Any
    hashing: int | None
    schedule: Schedule
    state: LinearState | None
    rate_search_rows: RateSearchRows | None
    generation: Generation
    fast_path: NoFastPath

    @abc.abstractmethod
    def n_outputs(self) -> int:
        """Return the number of outputs: 1 for two classes, otherwise the number of classes."""

    @abc.abstractmethod
    def new_state(self, n_features: int) -> LinearState:
        """Return an empty state with room for so many features."""

    @abc.abstractmethod
    def _initial_second_part(self) -> float | None:
        """Return the initial value of the second part of the weights; None: there is none."""

    def state_for(self, d: int) -> LinearState:
        """Return the state, created or grown to hold so many features and all classes."""
        while True:
            state, n, outputs = self.state, self.n_examples, self.n_outputs()
            if state is None:
                fewest = FEWEST_SPARSE if self.is_sparse else FEWEST
                room = d if self.schema.buckets else max(d, min(fewest, self.schema.limit))
                new = self.new_state(room)
            else:
                k, _, room = state.weights.shape
                if d <= room and outputs <= k:
                    return state
                room = room if d <= room else max(d, min(2 * room, self.schema.limit))
                new = linear_state.grown(state, outputs, room, self._initial_second_part())
            # First: the fast path is bound to the old state.
            now = self.generation.advance()
            # What a signal handler has learnt meanwhile is in the old state only, and it may have
            # bound the fast path to that: then again. No handler can run between these two lines,
            # as they call nothing.
            is_same = self.state is state and self.n_learnt[0] == n
            if is_same and self.generation.word[0] == now:
                self.state = new
            self.fast_path.release()

    @property
    def description(self) -> str:
        """The parameters in use that matter most: loss, lambda and rate."""
        return f"{self.loss} loss, lambda {self.schedule.lam:g}, rate {self.rate:.3g}"

    @property
    def weights(self) -> dict[Any, Any]:
        """{feature: weight}; with more than two classes {label: {feature: weight}}."""
        with self.lock:
            return self._weights()

    def _weights(self) -> dict[Any, Any]:
        names = self.feature_names if self.hashing is None else list(range(self.hashing))
        rows = self._predicting_weights()[:, : len(names)].tolist()
        found = [dict(zip(names, row, strict=True)) for row in rows]
        if self.targets.labels.is_binary:
            return found[0] if found else {}
        return dict(zip(self.targets.labels.seen, found, strict=True))

    def _predicting_weights(self) -> np.ndarray:
        """Return the weights that predict, float64 (outputs, feature capacity)."""
        if self.state is None:
            return np.zeros((0, 0))
        weights, info = self.state
        found = info[:, linear_state.SCALE][:, None] * weights[:, 0]
        for o in range(len(info)):
            if linear_state.predicts_average(self.schedule, info[o]):
                found[o] = info[o, linear_state.P] * weights[o, 1]
                found[o] += info[o, linear_state.Q] * weights[o, 0]
        return np.asarray(found)

    @property
    def intercept(self) -> Any:
        """The bias; with more than two classes {label: bias}."""
        values: list[float] = []
        for info in () if self.state is None else self.state.info:
            averages = linear_state.predicts_average(self.schedule, info)
            values.append(float(info[linear_state.AVERAGE_BIAS if averages else BIAS]))
        if self.targets.labels.is_binary:
            return values[0] if values else 0.0
        return dict(zip(self.targets.labels.seen, values, strict=True))

    @property
    def rate(self) -> float:
        """The learning rate of the next example: the factor of its loss gradient."""
        t = 0.0 if self.state is None else float(self.state.info[0, T])
        return float(linear_state.rate(self.schedule, t) / self.schedule.lam)

    def objective(self, X: Any, y: Any, w: Any = 1.0) -> float:
        """Return the objective that learning minimises: lambda / 2 ||w||^2 plus the mean loss.

        Parameters
        ----------
        X, y, w
            Rows, labels and weights as in `learn_many`. A label that was never learnt is on the
            negative side of all outputs.

        Returns
        -------
        The objective over these rows.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            Rows, labels or weights cannot be used.

        """
        with self.lock:
            x = batches.known_rows(self.schema, X, self.is_sparse)
            labels = frames.labels_of(y, shape(x)[0])
            check_present(labels)
            unknown = np.array([y not in self.targets.labels.seen for y in labels.values])[
                labels.codes
            ]
            signs = np.where(unknown, -1.0, labels.numbers(self.targets.number_of))
            return self.objective_of(x, signs, weights_of(w, len(labels)))

    def objective_of(self, x: Rows, signs: np.ndarray, weights: np.ndarray) -> float:
        """Return the primal objective with the mean loss over rows.

        Parameters
        ----------
        x
            n rows over the features seen.
        signs, weights
            float64 (n,): +1 or -1, or the indices of the classes; example weights, at least 0.

        Returns
        -------
        The objective.

        """
        if self.class_weight is not None:
            factor = self.class_weight
            labels = [self.targets.labels.label_of_sign(sign) for sign in signs.tolist()]
            weights = weights * np.array([float(factor.get(label, 1.0)) for label in labels])
        state = self.state_for(shape(x)[1])
        return float(linear_state.primal(state, x, signs, weights, self.schedule))

    @property
    def kappa(self) -> float:
        """The share of examples that changed no weights; 0 before the first example."""
        counts = self.counters
        n = counts["examples"] * self.n_outputs()
        return 1.0 - counts["updates"] / n if n else 0.0

    @property
    def certificate(self) -> Certificate:
        """No bound, and the reason: there are no dual coefficients."""
        return Certificate(
            None,
            "no certificate: stochastic gradients keep no dual coefficients whose gap could be "
            "measured; follow the objective on the sample",
        )

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: examples, and updates of the weights."""
        updates = 0.0 if self.state is None else float(self.state.info[:, N_UPDATES].sum())
        return {"examples": self.n_examples, "updates": int(updates)} | self._ignored()

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``weights``, ``first_rows`` kept for the rate search, and ``names``."""
        kept, state = self.rate_search_rows, self.state
        return {
            "weights": 0 if state is None else state.weights.nbytes,
            "first_rows": 0 if kept is None else kept.nbytes,
            "names": self.schema.memory_usage,
        }
