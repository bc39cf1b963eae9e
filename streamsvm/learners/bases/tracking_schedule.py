"""Checks the parameters of averaged tracking and makes the schedule of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsvm import kernels
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.bounds import policy_of
from streamsvm.learners.bases.parameter_checks import check_number, check_size
from streamsvm.monitor.certificate import steps_for
from streamsvm.solvers.bounds import Reservoir, bounds_of
from streamsvm.solvers.tracking import step as tracking

if TYPE_CHECKING:
    from streamsvm.learners.tracking import TrackingSVMClassifier

DEFAULT_STEPS = 10
_GRADIENTS = ("all", "support", "fresh")


def chosen_gradients(model: TrackingSVMClassifier) -> str:
    """Return the parameter `gradients`, or the default for the kernel if it is None.

    Raises
    ------
    ParameterError
        It is none of the three values, or cannot be combined with the kernel or a bound.

    """
    is_linear = isinstance(model.kernel, kernels.Linear)
    gradients = model.gradients
    if gradients is None:
        gradients = "fresh" if is_linear and model.max_support_vectors is None else "all"
    if gradients not in _GRADIENTS:
        names = ", ".join(map(repr, _GRADIENTS))
        raise ParameterError(f"gradients={gradients!r}: use None or one of {names}")
    if gradients == "fresh" and not is_linear:
        raise ParameterError("gradients='fresh' keeps w itself: use it with kernels.Linear")
    _check_bounds(model, gradients)
    return gradients


def _check_bounds(model: TrackingSVMClassifier, gradients: str) -> None:
    if model.reservoir is not None and (model.window or model.max_support_vectors):
        raise ParameterError("reservoir: a uniform sample has no window or budget; use one only")
    if model.reservoir is not None and gradients == "support":
        raise ParameterError("reservoir: a sample that drops examples is not uniform; use 'all'")
    if model.max_support_vectors is not None and gradients == "fresh":
        raise ParameterError(
            "max_support_vectors: explicit w does not know which example is least harmful; "
            "use window or reservoir, or gradients='all'"
        )


def schedule_of(model: TrackingSVMClassifier) -> tracking.Schedule:
    """Return the schedule of a learner whose parameters have been set as attributes.

    Raises
    ------
    ParameterError
        A parameter is out of range, or two exclude each other.

    """
    if model.K is not None and model.epsilon is not None:
        raise ParameterError(f"K={model.K!r}, epsilon={model.epsilon!r}: give one of them")
    steps, per_r2 = float(DEFAULT_STEPS), 0.0
    if model.epsilon is not None:
        check_number("epsilon", model.epsilon, 0.0)
        factors = model.class_weight.values() if isinstance(model.class_weight, dict) else ()
        largest = model._C * max([1.0, *map(float, factors)])
        steps = float(steps_for(model.epsilon, largest, 0.0))
        per_r2 = 8.0 * largest / model.epsilon**2
    elif model.K is not None:
        steps = float(check_size("K", model.K) or 1)
    policy = policy_of(model.budget, model.kernel)
    bounds = bounds_of(model.window, model.max_support_vectors, policy)
    return tracking.Schedule(
        steps=steps,
        steps_per_r2=per_r2,
        process=float(bool(model.process)),
        keep_zeros=float(model._gradients != "support"),
        averaged=float(bool(model.averaged)),
        tau=check_number("tau", model.tau, 0.0),
        bounds=Reservoir(float(model.reservoir)) if model.reservoir else bounds,
    )
