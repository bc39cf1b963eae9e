"""The cost C of errors of exact learners: changed, and chosen by leaving one out."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_positive
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.exact.exact_model import LEAST_COST
from streamsvm.solvers.incremental import whole
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.support.locked import locked, refuse_to_learn

LARGEST_C = 1e8


def with_costs(learner: Any, problem: ExactProblem, C: float) -> ExactProblem:
    """Let the examples of a problem cost what they would now; return it."""
    problem.settle()
    costs = learner.costs_of_kept(problem, C) * problem.facts["weight"][: problem.n]
    whole.set_costs(problem, np.maximum(costs, LEAST_COST))
    return problem


@locked
def set_C(learner: Any, C: float) -> None:  # noqa: N802
    """Change the cost of errors; the solution is the exact one for it.

    Parameters
    ----------
    C
        The new cost, above 0 and at most 1e8.

    """
    C = checked_C(C)
    if learner.is_learning:
        refuse_to_learn()
    # On a copy: what interrupts it leaves the solution for the old cost.
    learner.problem = with_costs(learner, copy.deepcopy(learner.problem), C)
    learner.C = C


@locked
def leave_one_out(learner: Any, estimate: bool = False) -> Any:
    """Predict each example by the model of all others.

    Parameters
    ----------
    estimate
        False, the default: exactly, by taking each support vector back in turn. True: as far as
        no other example changes sides (the span estimate), which costs hardly anything.

    Returns
    -------
    LeaveOneOut
        The error, and the margin of each example; of numbers `LeftOut`.

    """
    # Of a copy: looking changes nothing, whatever interrupts it.
    return learner.left_out(copy.deepcopy(learner.problem), estimate)


@locked
def leave_one_out_by_C(  # noqa: N802
    learner: Any, costs: Iterable[float], estimate: bool = False
) -> dict[float, float]:
    """Return the error of `leave_one_out` for several C, to choose one; the model stays.

    The solution is followed from one C to the next, which costs less than to learn anew.

    Parameters
    ----------
    costs
        Values of C, above 0 and at most 1e8.
    estimate
        As for `leave_one_out`.

    Returns
    -------
    dict[float, float]
        The error by C, in ascending order.

    """
    if not isinstance(costs, Iterable):
        raise ParameterError(f"costs={costs!r:.80}: use several values of C, as [0.1, 1, 10]")
    problem, found = copy.deepcopy(learner.problem), {}
    for C in sorted(map(checked_C, costs)):
        problem = with_costs(learner, problem, C)
        found[C] = float(learner.left_out(copy.deepcopy(problem), estimate).error)
    return found


def checked_C(C: float) -> float:  # noqa: N802
    """Return a cost; with larger ones too few digits of the solution are left."""
    if check_positive("C", C) > LARGEST_C:
        raise ParameterError(f"C={C!r}: use a number of at most {LARGEST_C:g}")
    return C
