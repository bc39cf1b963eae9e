"""Rows whose solution is exact: each is added to it as it comes."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import check_number
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.models.kernel import auto_gamma, kernel_batches
from streamsvm.models.model import Kernel
from streamsvm.solvers.incremental import whole
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.support.kernel_rows import kernel_diagonal
from streamsvm.support.rows import Rows, dense, shape

LARGEST_DIAGONAL = 1e8
"""The largest k(x, x) of a row."""

LEAST_COST = 1e-12
"""An example with a lower cost is not kept, as one of weight 0."""


class ExactRows:
    """The examples and their exact solution.

    Parameters
    ----------
    kernel
        The kernel; None: an RBF whose gamma follows the data.
    window
        How many of the last examples are kept; None: all.
    cache_mb
        Megabytes for kernel rows.
    tube
        2 epsilon of regression, else infinity.

    Attributes
    ----------
    problem
        The examples and the solution.
    moments
        What gamma is computed from, if it follows the data.
    n_passed
        How many examples were learnt without being added: of weight 0, or with an id that is kept.

    """

    def __init__(
        self, kernel: Kernel | None, window: int | None, cache_mb: float, tube: float
    ) -> None:
        if kernel is not None:
            kernels.check_kernel(kernel)
        cache_bytes = int(check_number("cache_mb", cache_mb, 0) * 1e6)
        self.follows_rule, self.window = kernel is None, window
        kernel = kernels.RBF(gamma=1.0) if kernel is None else kernel
        self.problem = ExactProblem(kernel, cache_bytes, tube)
        self.n_passed, self.moments = 0, auto_gamma.new_moments(0)

    @property
    def n_examples(self) -> int:
        """Number of examples learnt: what was added is counted, whatever interrupted the rest."""
        self.problem.catch_up()
        return self.problem.n_added + self.n_passed

    @property
    def numbers(self) -> np.ndarray:
        """The numbers, or ids, of the examples kept, int64 (n_kept,): a view."""
        numbers: np.ndarray = self.problem.facts["number"][: self.problem.n]
        return numbers

    def add_example(
        self, x: np.ndarray, target: float, cost: float, number: int, weight: float, y: float
    ) -> None:
        """Add a row, float64 (features,), with its target, whose coefficient is at most `cost`.

        Of negative ones, y below 0 of classes, it is at least -cost. The oldest example leaves, if
        there is a window. What it learns, and has, is kept with the number, weight and y.
        """
        problem, n = self.problem, self.n_examples + 1
        if cost >= LEAST_COST and not np.any(self.numbers == number):
            low, high = (-cost, 0.0) if self.is_negative(y) else (0.0, cost)
            problem.add(x, target, low, high, number, weight, y)
        else:
            self.n_passed += 1
        while self.window is not None and problem.n > self.window:
            problem.remove(int(problem.facts["arrived"][: problem.n].argmin()))
        if self.follows_rule and n <= auto_gamma.LAST_SET:
            row = x.astype(np.float32)[None]
            self.moments = auto_gamma.updated(self.moments, n - 1, row)
            # At powers of two only.
            gamma = problem.kernel.gamma if n & (n - 1) else auto_gamma.gamma_of(self.moments, n)
            if auto_gamma.is_worth_it(problem.kernel.gamma, gamma):
                self.problem = self.with_kernel(kernels.RBF(gamma=gamma))

    def is_negative(self, y: float) -> bool:
        """Tell whether the coefficient of an example is 0 or less, to begin with."""
        return False

    def with_kernel(self, kernel: Kernel) -> ExactProblem:
        """Return the solution with a kernel; ParameterError if it is too large for a kept row."""
        problem = copy.deepcopy(self.problem)
        own = np.array([problem.own_value(s, kernel) for s in range(problem.n)])
        if not np.all(own <= LARGEST_DIAGONAL):
            raise ParameterError(
                f"{kernel!r}: of a kept row with itself it is {own.max():.3g}, of which an exact "
                f"solution has too few digits left: at most {LARGEST_DIAGONAL:g}"
            )
        whole.set_kernel(problem, kernel, own)
        return problem

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows, float32 (n,); raise `FeatureError` if one is out of range."""
        kernel = self.problem.kernel
        found = kernel_batches.checked_diagonal(kernel, kernel_diagonal.diagonal_of(kernel, x))
        for r in np.flatnonzero(found > LARGEST_DIAGONAL)[:1]:
            raise FeatureError(
                f"row {r}: {kernel!r} of the row with itself is {found[r]:.3g}, of which an exact "
                f"solution has too few digits left: at most {LARGEST_DIAGONAL:g}; scale the "
                "features (StandardScaler)"
            )
        return found

    def decisions(self, x: Rows) -> np.ndarray:
        """Return f of rows, float64 (n,)."""
        # What an interruption has left unfinished is finished first.
        self.problem.settle()
        return self.problem.decisions(in_double(x))

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``cache`` (kernel rows) and ``examples``."""
        cache = self.problem.state.rows.nbytes
        return {"cache": cache, "examples": self.problem.nbytes - cache}


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


def in_double(x: Rows) -> np.ndarray:
    """Return n rows as float64 (n, d)."""
    rows = dense(x) if not isinstance(x, np.ndarray) else x
    return rows.astype(np.float64).reshape(shape(x))
