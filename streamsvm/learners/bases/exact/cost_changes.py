"""The cost C of errors of exact learners: checked, and changed."""

from __future__ import annotations

import abc
import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_positive
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.exact.exact_learner import ExactLearner
from streamsvm.learners.bases.exact.results import LeaveOneOut, LeftOut
from streamsvm.models.exact.exact_rows import with_costs
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.support.interruptions import change_together
from streamsvm.support.locked import guarded

LARGEST_C = 1e8


class CostedLearner(ExactLearner):
    """Base class of exact models whose errors have a cost, `C`."""

    C: float

    @abc.abstractmethod
    def costs_of_kept(self, problem: ExactProblem, C: float) -> np.ndarray:
        """Return the C_i that all examples of a problem would have now, for a weight of 1."""

    @abc.abstractmethod
    def left_out(self, problem: ExactProblem, estimate: bool) -> LeaveOneOut | LeftOut:
        """Return the result of `leave_one_out` of a problem that may change."""

    @guarded
    def set_C(self, C: float) -> None:  # noqa: N802
        """Change the cost of errors; the solution is the exact one for it.

        Parameters
        ----------
        C
            The new cost, above 0 and at most 1e8.

        """
        C = checked_C(C)
        problem = with_costs(self.problem, self.costs_of_kept, C)
        # A classifier's C is that of its model.
        holder = self.__dict__ if "C" in self.__dict__ else self.model.__dict__
        change_together([(self.model.__dict__, {"problem": problem}), (holder, {"C": C})])

    @guarded
    def leave_one_out(self, estimate: bool = False) -> Any:
        """Predict each example by the model of all others.

        Parameters
        ----------
        estimate
            False, the default: exactly, by taking each support vector back in turn. True: as far as
            no other example changes sides (the span estimate), which costs hardly anything.

        Returns
        -------
        LeaveOneOut or LeftOut
            The error, and the margin of each example, or what was predicted of it.

        """
        # Of a copy: looking changes nothing, whatever interrupts it.
        return self.left_out(copy.deepcopy(self.problem), estimate)

    @guarded
    def leave_one_out_by_C(  # noqa: N802
        self, costs: Iterable[float], estimate: bool = False
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
        problem, found = self.problem, {}
        for C in _ascending(costs):
            problem = with_costs(problem, self.costs_of_kept, C)
            found[C] = float(self.left_out(copy.deepcopy(problem), estimate).error)
        return found


def _ascending(costs: Iterable[float]) -> list[float]:
    """Return several C in ascending order, checked."""
    if not isinstance(costs, Iterable):
        raise ParameterError(f"costs={costs!r:.80}: use several values of C, as [0.1, 1, 10]")
    return sorted(map(checked_C, costs))


def checked_C(C: float) -> float:  # noqa: N802
    """Return a cost; with larger ones too few digits of the solution are left."""
    if check_positive("C", C) > LARGEST_C:
        raise ParameterError(f"C={C!r}: use a number of at most {LARGEST_C:g}")
    return C
