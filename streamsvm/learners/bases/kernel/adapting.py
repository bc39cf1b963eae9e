"""How a kernel learner adapts to its stream: gamma, costs, kind of rows, classes, and its trial.

Callers hold the learner's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsvm import kernels
from streamsvm.features import absent, density
from streamsvm.labels.growing_labels import spread_to
from streamsvm.learners.bases.kernel import auto_gamma, definiteness
from streamsvm.learners.bases.kernel.trials import race
from streamsvm.support import states

if TYPE_CHECKING:
    from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner


def adapt(learner: KernelLearner, n: int) -> None:
    """Update gamma, class weights and the kind of rows after n examples, and go on with the trial.

    All but the trial changes at powers of two, or after the next example if it was interrupted.
    """
    if n < learner.preparation.adapts_at:
        race.step(learner, n)
        return
    solver, gamma = learner.solver, learner.preparation.gamma_by_rule(n, learner.is_sparse)
    if gamma is not None and auto_gamma.is_worth_it(solver.kernel.gamma, gamma):
        learner.replace(solver=solver.with_kernel(kernels.RBF(gamma=gamma), len(learner.schema)))
    rebalance(learner)
    if learner.sparse is None and not learner.is_sparse and learner.state is not None:
        if density.are_sparse(learner.dense_rows()):
            learner.become_sparse_after(n)
    # Last, when it is known whether rows are sparse.
    if learner.preparation.trial is not None:
        race.step(learner, n)
    else:
        factors = learner.preparation.factors_due()
        if factors is not None:
            rescale(learner, factors)
    if learner.kernel is not None:
        definiteness.look(learner, n)
    if learner.preparation.adapts_at <= absent.NOTICED_AT <= n:
        absent.notice(learner)
    learner.preparation.adapts_at = auto_gamma.next_power_of_two(n)


def rescale(learner: KernelLearner, factors: np.ndarray) -> None:
    """Multiply each feature by other factors, float32 (d,), in the dense rows kept, too.

    The model is computed anew from its coefficients: the kernel always compares rows of one scale.
    """
    solver, preparation = learner.solver, learner.preparation
    ratio = factors / preparation.factors_in_use(factors.size)
    scaled = solver.with_rows_scaled(ratio, len(learner.schema))
    learner.replace(solver=scaled, preparation=preparation.changed(factors=factors))


def rebalance(learner: KernelLearner) -> None:
    """Update the C_i of all examples if the class weights depend on the stream."""
    costs, solver = learner.costs, learner.solver
    if costs.is_balanced and solver.state is not None and costs.counts.min() > 0:
        solver.set_costs(costs.balanced(learner.C_), len(learner.schema))


def become_sparse_if_large(learner: KernelLearner, n_features: int, seen: int) -> None:
    """Become sparse if dense rows of so many features would fill the memory with zeros."""
    state = learner.state
    if learner.sparse is not None or learner.is_sparse or state is None:
        return
    if n_features > states.n_columns(state):
        capacity = state.store.entered.size
        if density.may_be_too_many(capacity, n_features) and density.are_mostly_zero(
            learner.dense_rows(), n_features
        ):
            learner.become_sparse_after(seen)


def with_class(
    learner: KernelLearner, label: Any
) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray] | None]:
    """Return what changes when a class is added that was not seen; the learner is not changed.

    These are the attributes with their new values, and the function that converts earlier signs,
    None if they stay.
    """
    labels = learner.targets.labels.having(learner.targets.labels.seen)
    is_turned, n = labels.add(label), len(labels.seen)
    changes: dict[str, Any] = {"targets": learner.targets.having(labels)}
    if not changes["targets"].has_one_margin:
        return _with_further_class(learner, changes, labels, n)
    if not is_turned:
        return changes, None
    solver = learner.solver.with_signs_exchanged()
    if solver.kept_rows is not None:
        solver.kept_rows = solver.kept_rows.with_signs(np.negative)
    return changes | {"solver": solver, "costs": learner.costs.with_signs_exchanged()}, np.negative


def _with_further_class(
    learner: KernelLearner, changes: dict[str, Any], labels: Any, n: int
) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray] | None]:
    """Complete `changes` by those of a class beyond two, or of one with a score of its own."""
    if not learner.targets.has_one_margin:
        if learner.costs.takes_balanced:
            changes["costs"] = learner.costs.of_classes(n, 0)
        return changes, None
    # Signs become numbers of classes.
    change, positive = spread_to(labels), labels.seen.index(labels.positive)
    changes["costs"] = learner.costs.of_classes(n, positive)
    solver = changes["solver"] = learner.solver.of_classes(n, positive)
    if solver.kept_rows is not None:
        solver.kept_rows = solver.kept_rows.with_signs(change)
    return changes, change
