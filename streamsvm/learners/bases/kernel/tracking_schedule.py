"""Checks of the parameters of averaged tracking, and the schedule of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsvm import kernels
from streamsvm._parameter_checks import MOST_STEPS, check_cost, check_number, check_size
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.kernel.bounds import policy_of
from streamsvm.monitor.certificate import steps_for
from streamsvm.solvers.bounds import Reservoir, bounds_of
from streamsvm.solvers.tracking import step as tracking

if TYPE_CHECKING:
    from streamsvm.learners.tracking import TrackingSVMClassifier

DEFAULT_STEPS = 10
_GRADIENTS = ("all", "support", "fresh")


def chosen_gradients(given: TrackingSVMClassifier) -> str:
    """Return the parameter `gradients`, checked; if it is None, the default for the kernel."""
    is_linear = isinstance(given.kernel, kernels.Linear)
    gradients = given.gradients
    if gradients is None:
        gradients = "fresh" if is_linear and given.max_support_vectors is None else "all"
    if gradients not in _GRADIENTS:
        names = ", ".join(map(repr, _GRADIENTS))
        raise ParameterError(f"gradients={gradients!r}: use None or one of {names}")
    if gradients == "fresh" and not is_linear:
        raise ParameterError("gradients='fresh' keeps w itself: use it with kernels.Linear")
    _check_bounds(given, gradients)
    return gradients


def _check_bounds(given: TrackingSVMClassifier, gradients: str) -> None:
    if given.reservoir is not None and (given.window or given.max_support_vectors):
        raise ParameterError("reservoir: a uniform sample has no window or budget; use one only")
    if given.reservoir is not None and gradients == "support":
        raise ParameterError("reservoir: a sample that drops examples is not uniform; use 'all'")
    if given.max_support_vectors is not None and gradients == "fresh":
        raise ParameterError(
            "max_support_vectors: explicit w does not know which example is least harmful; "
            "use window or reservoir, or gradients='all'"
        )


def schedule_of(given: TrackingSVMClassifier, gradients: str) -> tracking.Schedule:
    """Return the schedule for the parameters, which are checked.

    `gradients` is what `chosen_gradients` returned.
    """
    if given.K is not None and given.epsilon is not None:
        raise ParameterError(f"K={given.K!r}, epsilon={given.epsilon!r}: give one of them")
    steps, per_r2 = float(DEFAULT_STEPS), 0.0
    if given.epsilon is not None:
        check_number("epsilon", given.epsilon, 0.0)
        factors = given.class_weight.values() if isinstance(given.class_weight, dict) else ()
        largest = check_cost(given.C) * max([1.0, *map(float, factors)])
        steps = float(steps_for(given.epsilon, largest, 0.0))
        per_r2 = 8.0 * largest / given.epsilon**2
    elif given.K is not None:
        steps = float(check_size("K", given.K, most=MOST_STEPS) or 1)
    policy = policy_of(given.budget, given.kernel)
    bounds = bounds_of(given.window, given.max_support_vectors, policy)
    return tracking.Schedule(
        steps=steps,
        steps_per_r2=per_r2,
        process=float(bool(given.process)),
        keep_zeros=float(gradients != "support"),
        averaged=float(bool(given.averaged)),
        tau=check_number("tau", given.tau, 0.0),
        bounds=Reservoir(float(given.reservoir)) if given.reservoir else bounds,
    )
