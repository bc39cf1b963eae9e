"""The base class of kernel perceptrons, passive-aggressive learners and kernel Pegasos."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from streamsvm._parameter_checks import check_seed, check_size
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.kernel.bounds import POLICIES as _POLICIES
from streamsvm.learners.bases.kernel.bounds import policy_of
from streamsvm.learners.bases.kernel.primal_kernel_learner import PrimalKernelLearner
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers import bounds
from streamsvm.solvers.bounds import UNBOUNDED, Budget
from streamsvm.solvers.perceptron import budget as policies
from streamsvm.solvers.perceptron import events as events  # registers the solver
from streamsvm.solvers.perceptron import state as perceptron_state
from streamsvm.solvers.perceptron import step as perceptron
from streamsvm.solvers.perceptron.state import PerceptronState
from streamsvm.support import states
from streamsvm.support.rows import Rows

POLICIES: Mapping[str, float] = _POLICIES | {
    "random": policies.RANDOM,
    "forget": policies.FORGET,
    "bpa-s": policies.BPA_S,
    "project++": policies.PROJECT_PLUS,
}
"""What makes room for one more support vector: see `solvers.perceptron.budget`."""

_PROJECT = (bounds.PROJECT, policies.PROJECT_PLUS)
"""Policies that need the inverse of the kernel matrix."""

_MERGE = (bounds.MERGE, bounds.MERGE_MEAN)

_KEEP = (*_MERGE, *_PROJECT)
"""Policies that give the coefficients of a vector to others, so that an average keeps them."""


class PerceptronLearner(PrimalKernelLearner):
    """A kernel learner that makes one update an example, and at most one vector an update."""

    _states = perceptron_state
    _solver = perceptron
    _more_counts: ClassVar[dict[str, str]] = {"vectors_replaced": "n_room"}
    _policies: ClassVar[tuple[str, ...]]
    """The names of the policies that are defined for the learner, the default one first."""

    averaged: bool | None
    max_support_vectors: int | None
    budget: str | None
    seed: int | None
    _state: PerceptronState | None

    def __init__(
        self,
        rule: float,
        kernel: Any,
        C: float,
        margin: float,
        l2: float,
        averaged: bool | None,
        class_weight: Any,
        max_support_vectors: int | None,
        budget: str | None,
        sparse: bool | None,
        hashing: int | None,
        max_features: int,
        cache_mb: float,
        n_jobs: int | None,
        seed: int | None,
        missing: str,
        voted: bool = False,
    ) -> None:
        super().__init__(
            kernel,
            C,
            class_weight,
            sparse,
            hashing,
            max_features,
            cache_mb,
            n_jobs,
            missing=missing,
        )
        self.averaged = averaged
        self.max_support_vectors = max_support_vectors
        self.budget = budget
        self.seed = check_seed(seed)
        policy = self._policy(budget)
        limit = check_size("max_support_vectors", max_support_vectors, 2)
        if averaged is None:
            averaged = limit is None or policy in _KEEP
        # Projectron++ has a hinge loss: beside its mistakes it learns what is within the margin.
        is_plus = limit is not None and policy == policies.PROJECT_PLUS
        self._schedule = perceptron.Schedule(
            rule=rule,
            margin=1.0 if is_plus else margin,
            l2=l2,
            averaged=perceptron.VOTED if voted else float(bool(averaged)),
            bounds=UNBOUNDED if limit is None else Budget(float(limit), policy),
            mistake=margin,
        )

    def _policy(self, name: str | None) -> float:
        """Return the number by which the solver knows a policy."""
        return policy_of(name, self.kernel, {n: POLICIES[n] for n in self._policies})

    # The solver

    def _new_state(self, n_features: int) -> PerceptronState:
        limits = self._schedule.bounds
        is_bounded = isinstance(limits, Budget)
        uses_rows = is_bounded and policies.uses_rows(limits.policy)
        basis = int(limits.limit) if is_bounded and limits.policy in _PROJECT else 0
        return states.new_seeded(
            PerceptronState,
            n_features,
            self._cache_bytes if uses_rows else 0,
            self.seed,
            self._sparse,
            basis=basis,
        )

    def _write_margins(self, state: Any, x: Rows, out: np.ndarray) -> None:
        perceptron.margins_of(state, self._bound_kernel(state), self._schedule, x, out)

    def _rebuild(self) -> None:
        if self.max_support_vectors is not None:
            super()._rebuild()

    def _coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the model that predicts, or of the last one with votes."""
        state: Any = self._state
        info = state.info[0]
        T = int(info.n_seen)
        if self._schedule.averaged != perceptron.MEAN:
            return np.asarray(perceptron.scale_of(self._schedule, T) * state.alpha[:n])
        scale = perceptron.scale_of_average(self._schedule, info)
        return np.asarray(scale * ((T - info.n_faded) * state.alpha[:n] - state.late[:n]))

    def _check_ids(self, ids: Any) -> None:
        if ids is not None and self.budget == "forget" and self.max_support_vectors is not None:
            raise ParameterError(
                "ids: with budget='forget' the oldest leaves, which is told by the numbers that "
                "examples get; leave the ids out, or use another budget"
            )

    # Inspection

    @property
    def _what_predicts(self) -> str:
        merges = self.max_support_vectors is not None and self._policy(self.budget) in _MERGE
        mean = "mean of the models, of which older ones fade" if merges else "mean of all models"
        ways = {perceptron.MEAN: mean, perceptron.VOTED: "votes of all models"}
        return ways.get(self._schedule.averaged, "last model")

    @property
    def squared_norm(self) -> float:
        """The square of |w|, of the model that predicts; it takes time like a prediction of all.

        Of a voted perceptron it is that of the last model.
        """
        if self._state is None:
            return 0.0
        with self._lock:
            rows, coefficients, _ = self._expansion()
            schedule, margins = self._schedule, np.empty(len(coefficients))
            if schedule.averaged == perceptron.VOTED:
                schedule = schedule._replace(averaged=perceptron.LAST)
            kernel = self._bound_kernel(self._state)
            perceptron.margins_of(self._state, kernel, schedule, rows, margins)
            return max(0.0, float(coefficients @ margins))

    @property
    def _loss_margin(self) -> float:  # type: ignore[override]
        return self._schedule.margin

    @property
    def _regularisation(self) -> float:
        l2 = self._schedule.l2
        # Only Pegasos has any.
        return 0.5 * l2 * self.squared_norm if l2 else 0.0

    @property
    def certificate(self) -> Certificate:
        """No bound, and the reason: one update an example solves no dual problem."""
        return Certificate(
            None,
            "no certificate: one update an example solves no dual problem whose gap could be "
            "measured; follow the objective on the sample",
        )
