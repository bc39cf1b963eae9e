"""Kernel perceptrons, passive-aggressive steps and kernel Pegasos as the solver of a model."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from streamsvm._parameter_checks import check_seed, check_size
from streamsvm.errors import ParameterError
from streamsvm.models.kernel.kernel_solver import KernelSolver, KernelState, Sizes, merging_by
from streamsvm.models.model import Kernel
from streamsvm.solvers import bounds
from streamsvm.solvers.bounds import UNBOUNDED, Budget
from streamsvm.solvers.perceptron import state as perceptron_state
from streamsvm.solvers.perceptron import step as perceptron
from streamsvm.solvers.perceptron.budget import PROJECT, REMOVE
from streamsvm.solvers.perceptron.state import PerceptronState
from streamsvm.support import states
from streamsvm.support.dense_store import DenseStore

_MERGE = (bounds.MERGE, bounds.MERGE_MEAN)


def _policy_of(budget: str | None, names: tuple[str, ...], kernel: Kernel | None) -> float:
    """Return the number by which the solver knows a budget; None is the first of the names."""
    name = names[0] if budget is None else budget
    if name not in names:
        listed = ", ".join(map(repr, names))
        raise ParameterError(f"budget={budget!r}: use None or one of {listed}")
    return {"project": PROJECT, "remove": REMOVE}.get(name, merging_by(kernel))


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
        kernel: Kernel | None,
        cache_mb: float,
        *,
        rule: float,
        margin: float,
        l2: float = 0.0,
        averaged: bool | None,
        max_support_vectors: int | None,
        budget: str | None,
        seed: int | None,
        policy_names: tuple[str, ...] = ("project", "merge"),
        is_voted: bool = False,
    ) -> None:
        policy = _policy_of(budget, policy_names, kernel)
        limit = check_size("max_support_vectors", max_support_vectors, 2)
        if averaged is None:
            # What is removed has gone from an average, too.
            averaged = limit is None or policy != REMOVE
        schedule = perceptron.Schedule(
            rule=rule,
            margin=margin,
            l2=l2,
            averaged=perceptron.VOTED if is_voted else float(bool(averaged)),
            bounds=UNBOUNDED if limit is None else Budget(float(limit), policy),
        )
        super().__init__(kernel, schedule, cache_mb)
        self._seed = check_seed(seed)
        self.loss_margin, self.regularisation = margin, l2

    def may_be_read(self, state: KernelState) -> bool:
        """Tell whether another thread may read stored rows: where none is ever replaced."""
        is_bounded = np.isfinite(self.schedule.bounds.limit)
        return isinstance(state.store, DenseStore) and not is_bounded

    def new_state(self, sizes: Sizes) -> PerceptronState:
        """Return an empty state."""
        limits = self.schedule.bounds
        # Projecting needs the inverse of the kernel matrix, the other policies rows of it.
        is_bounded = isinstance(limits, Budget)
        is_projected = is_bounded and limits.policy == PROJECT
        return states.new_state(
            PerceptronState,
            sizes.n_features,
            self.cache_bytes if is_bounded and not is_projected else 0,
            self._seed,
            sizes.is_sparse,
            basis=int(limits.limit) if is_projected else 0,
        )

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

    def sums(self) -> list[tuple[np.ndarray, float]]:
        """Return f of the support vectors, which one policy needs."""
        bounds = self.schedule.bounds
        if not isinstance(bounds, Budget) or bounds.policy != REMOVE:
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
        rows, coefficients, _ = self.expansion(n_features)
        schedule, margins = self.schedule, np.empty(len(coefficients))
        if schedule.averaged == perceptron.VOTED:
            schedule = schedule._replace(averaged=perceptron.LAST)
        self.write_margins_by(schedule, self.state, rows, margins)
        return max(0.0, float(coefficients @ margins))
