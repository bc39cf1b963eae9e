"""Kernel perceptrons, passive-aggressive steps and kernel Pegasos as the solver of a learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from streamsvm._parameter_checks import check_seed, check_size
from streamsvm.learners.bases.kernel.bounds import POLICIES as _POLICIES
from streamsvm.learners.bases.kernel.bounds import policy_of
from streamsvm.learners.bases.kernel.kernel_solver import KernelSolver, Sizes
from streamsvm.solvers import bounds
from streamsvm.solvers.bounds import UNBOUNDED, Budget
from streamsvm.solvers.perceptron import budget as policies
from streamsvm.solvers.perceptron import state as perceptron_state
from streamsvm.solvers.perceptron import step as perceptron
from streamsvm.solvers.perceptron.state import PerceptronState
from streamsvm.support import states
from streamsvm.support.dense_store import DenseStore
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

_FORGETS = (
    "with budget='forget' the oldest leaves, which is told by the numbers that examples get; leave "
    "the ids out, or use another budget"
)


class PerceptronSolver(KernelSolver):
    """A solver that makes one update an example, and at most one vector an update.

    `rule` is one of `solvers.perceptron.step`; examples with a margin of at most `margin` make an
    update; `l2` is the regularisation, which only Pegasos has. `policy_names` are those of the
    budgets that the learner takes, the default one first; `is_voted` tells whether all models so
    far vote.
    """

    step, states = perceptron, perceptron_state
    more_counts: ClassVar[dict[str, str]] = {"vectors_replaced": "n_room"}
    no_certificate = (
        "no certificate: one update an example solves no dual problem whose gap could be "
        "measured; follow the objective on the sample"
    )

    def __init__(
        self,
        kernel: Any,
        cache_mb: float,
        *,
        rule: float,
        margin: float,
        l2: float = 0.0,
        averaged: bool | None,
        max_support_vectors: int | None,
        budget: str | None,
        seed: int | None,
        policy_names: tuple[str, ...],
        is_voted: bool = False,
    ) -> None:
        policy = policy_of(budget, kernel, {name: POLICIES[name] for name in policy_names})
        limit = check_size("max_support_vectors", max_support_vectors, 2)
        if averaged is None:
            averaged = limit is None or policy in _KEEP
        # Projectron++ has a hinge loss: beside its mistakes it learns what is within the margin.
        is_plus = limit is not None and policy == policies.PROJECT_PLUS
        schedule = perceptron.Schedule(
            rule=rule,
            margin=1.0 if is_plus else margin,
            l2=l2,
            averaged=perceptron.VOTED if is_voted else float(bool(averaged)),
            bounds=UNBOUNDED if limit is None else Budget(float(limit), policy),
            mistake=margin,
        )
        super().__init__(kernel, schedule, cache_mb)
        self._seed = check_seed(seed)
        self.loss_margin, self.regularisation = schedule.margin, l2
        if limit is not None and policy == policies.FORGET:
            self.refuses_ids = _FORGETS

    def may_be_read(self, state: Any) -> bool:
        """Tell whether another thread may read stored rows: where none is ever replaced."""
        is_bounded = np.isfinite(self.schedule.bounds.limit)
        return isinstance(state.store, DenseStore) and not is_bounded

    def new_state(self, sizes: Sizes) -> PerceptronState:
        """Return an empty state."""
        limits = self.schedule.bounds
        is_bounded = isinstance(limits, Budget)
        uses_rows = is_bounded and policies.uses_rows(limits.policy)
        basis = int(limits.limit) if is_bounded and limits.policy in _PROJECT else 0
        return states.new_seeded(
            PerceptronState,
            sizes.n_features,
            self.cache_bytes if uses_rows else 0,
            self._seed,
            sizes.is_sparse,
            basis=basis,
        )

    def write_margins(self, state: Any, x: Rows, out: np.ndarray) -> None:
        """Write the margins of rows into `out`."""
        perceptron.margins_of(state, self.bound_kernel(state), self.schedule, x, out)

    def rebuild(self, n_features: int) -> None:
        """Compute anew what depends on the kernel, which only a budget needs."""
        if isinstance(self.schedule.bounds, Budget):
            super().rebuild(n_features)

    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the model that predicts, or of the last one with votes."""
        state = self.state
        info = state.info[0]
        T = int(info.n_seen)
        if self.schedule.averaged != perceptron.MEAN:
            return np.asarray(perceptron.scale_of(self.schedule, T) * state.alpha[:n])
        scale = perceptron.scale_of_average(self.schedule, info)
        return np.asarray(scale * ((T - info.n_faded) * state.alpha[:n] - state.late[:n]))

    def sums(self) -> list[tuple[Any, float]]:
        """Return f of the support vectors, which one policy needs."""
        if getattr(self.schedule.bounds, "policy", None) != bounds.REMOVE:
            return []
        return [(self.state.f, float(np.abs(self.state.alpha).sum()))]

    @property
    def predicts_by(self) -> str:
        """Which of the models so far predict, in words."""
        limits = self.schedule.bounds
        merges = isinstance(limits, Budget) and limits.policy in _MERGE
        mean = "mean of the models, of which older ones fade" if merges else "mean of all models"
        ways = {perceptron.MEAN: mean, perceptron.VOTED: "votes of all models"}
        return ways.get(self.schedule.averaged, "last model")

    has_norm = True

    def squared_norm(self, n_features: int) -> float:
        """Return the square of |w|, of the model that predicts, or of the last one with votes."""
        if self.state is None:
            return 0.0
        rows, coefficients, _ = self.expansion(n_features)
        schedule, margins = self.schedule, np.empty(len(coefficients))
        if schedule.averaged == perceptron.VOTED:
            schedule = schedule._replace(averaged=perceptron.LAST)
        kernel = self.bound_kernel(self.state)
        perceptron.margins_of(self.state, kernel, schedule, rows, margins)
        return max(0.0, float(coefficients @ margins))
