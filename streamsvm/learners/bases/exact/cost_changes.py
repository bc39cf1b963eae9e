"""The cost C of errors of exact learners: checked, and changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable

import numpy as np

from streamsvm._parameter_checks import check_positive
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.exact.exact_model import LEAST_COST
from streamsvm.solvers.incremental import whole
from streamsvm.solvers.incremental.exact import ExactProblem

LARGEST_C = 1e8


def with_costs(
    problem: ExactProblem, costs_of: Callable[[ExactProblem, float], np.ndarray], C: float
) -> ExactProblem:
    """Return a problem whose examples cost what they would with another C.

    `costs_of` returns these costs, for a weight of 1.
    """
    # A copy: what interrupts it leaves the solution for the old costs.
    problem = copy.deepcopy(problem)
    problem.settle()
    costs = costs_of(problem, C) * problem.facts["weight"][: problem.n]
    whole.set_costs(problem, np.maximum(costs, LEAST_COST))
    return problem


def ascending(costs: Iterable[float]) -> list[float]:
    """Return several C in ascending order, checked."""
    if not isinstance(costs, Iterable):
        raise ParameterError(f"costs={costs!r:.80}: use several values of C, as [0.1, 1, 10]")
    return sorted(map(checked_C, costs))


def checked_C(C: float) -> float:  # noqa: N802
    """Return a cost; with larger ones too few digits of the solution are left."""
    if check_positive("C", C) > LARGEST_C:
        raise ParameterError(f"C={C!r}: use a number of at most {LARGEST_C:g}")
    return C
