"""The base class of learners of exact solutions: what can be asked of one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.errors import FeatureError
from streamsvm.learners.bases.event_path import Bound
from streamsvm.learners.bases.kernel import kernel_batches
from streamsvm.learners.bases.kernel.class_costs import ClassCosts
from streamsvm.learners.bases.kernel.support_vectors import SupportVectors, in_order
from streamsvm.learners.bases.learner import Learner
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.solvers.incremental.state import MARGIN
from streamsvm.support.kernel_rows import kernel_diagonal
from streamsvm.support.locked import locked
from streamsvm.support.rows import Rows, dense, shape

LARGEST_DIAGONAL = 1e8
"""The largest k(x, x) of a row."""


class ExactLearner(Learner):
    """A classifier of two classes whose solution is exact; `problem` holds all that it has learnt.

    Attributes
    ----------
    problem, costs
        The examples and the solution; the costs of margin errors by class.
    n_passed
        How many examples were learnt without being added: of weight 0, or with an id that is kept.

    """

    has_dual = True
    covers = "kept"
    hashing = None
    tau = 1e-6
    C: float
    class_weight: Any
    problem: ExactProblem
    costs: ClassCosts
    n_passed: int

    @property
    def n_examples(self) -> int:
        """Number of examples learnt: what was added is counted, whatever interrupted the rest."""
        self.problem.catch_up()
        return self.problem.n_added + self.n_passed

    @property
    def last_number(self) -> int:
        """The number to count on from; larger than the ids of examples kept."""
        return max(self.n_examples, int(self.numbers.max(initial=0)))

    # What all learners have

    def empty_state(self) -> None:
        """Return None: the arrays are those of the problem."""

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of n rows over the features seen, float64 (n,)."""
        # What an interruption has left unfinished is finished first.
        self.problem.settle()
        return self.problem.decisions(in_double(x))

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

    def become_sparse(self) -> None:
        """Do nothing: rows are kept with all their features."""

    def event_parts(self) -> Bound:
        """Return no parts: an event is a batch of one row."""
        return None, None, None, self.targets

    def bound_kernel(self, state: Any) -> Any:
        """Return the kernel."""
        return self.problem.kernel

    def room_for_features(self) -> int:
        """Return how many features there is room for."""
        return len(self.problem.columns)

    def takes_every_row(self) -> bool:
        """Tell whether the learner accepts every row of finite values."""
        return kernels.product_of(type(self.problem.kernel)) == "distance"

    def cost_of(self, label: Any, sign: float) -> float:
        """Return the C_i of the next example, if it has this label, for an example weight of 1."""
        return self.C if self.class_weight is None else self.costs.of_next(self.C, label, sign)

    def costs_now(self, signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of these signs would have now."""
        return self.costs.now(self.C, signs, self.targets) * weights

    def add_class(self, label: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Add a class; return the function that converts earlier signs, None if they stay."""
        labels = self.targets.labels.having(self.targets.labels.seen)
        if not labels.add(label):
            self.targets = self.targets.having(labels)
            return None
        problem = copy.deepcopy(self.problem)
        problem.exchange_signs()
        costs = self.costs.with_signs_exchanged()
        self.__dict__.update(targets=self.targets.having(labels), problem=problem, costs=costs)
        return np.negative

    # Looking inside

    @property
    def numbers(self) -> np.ndarray:
        """The numbers, or ids, of the examples kept, int64 (n_kept,): a view."""
        numbers: np.ndarray = self.problem.facts["number"][: self.problem.n]
        return numbers

    @property
    def kernel_in_use(self) -> Any:
        """The kernel in use: with the gamma that follows the data."""
        return self.problem.kernel

    @property
    def n_kept(self) -> int:
        """How many examples the solution is of."""
        return self.problem.n

    @property
    @locked
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient."""
        return int(np.count_nonzero(self.problem.state.beta[: self.problem.n]))

    @property
    def bias(self) -> float:
        """The constant b of the decision function."""
        return self.problem.bias

    @property
    @locked
    def dual(self) -> float:
        """The value of the dual objective."""
        return self.problem.dual

    @property
    @locked
    def delta(self) -> float:
        """By how much the conditions of optimality are violated, at most."""
        return self.problem.violation(self.problem.state.h[: self.problem.n])

    @locked
    def support_vectors(self) -> SupportVectors:
        """Return the support vectors, in the order of their numbers.

        Returns
        -------
        SupportVectors
            Copies of rows, coefficients, labels and example numbers.

        """
        names, rows = list(self.schema.names), self.problem.rows(len(self.schema))
        alpha = self.problem.state.beta[: self.problem.n].copy()
        return in_order(names, rows, alpha, self.numbers.copy(), self.targets.label_of)

    @property
    def kappa(self) -> float:
        """The share of steps that changed no gradient; 0 before the first step."""
        info = self.problem.state.info[0]
        return float(info.n_null) / max(1, int(info.n_steps) + int(info.n_null))

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps of paths, and those that changed no gradient."""
        info = self.problem.state.info[0]
        found = {"steps": int(info.n_steps), "null_steps": int(info.n_null)}
        return found | {"kept": self.n_kept} | self._ignored()

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``cache`` (kernel rows), ``examples``, and ``names``."""
        cache = self.problem.state.rows.nbytes
        parts = {"cache": cache, "examples": self.problem.nbytes - cache}
        return parts | {"names": self.schema.memory_usage}

    @property
    def certificate(self) -> Certificate:
        """None is needed: the solution is the optimum of the examples kept."""
        return Certificate(None, "none is needed: this is the optimum of the examples kept")

    # What a monitor asks

    @locked
    def kept_gap(self) -> KeptGap:
        """Return the measured duality gap on the examples kept, not normalised."""
        state, n = self.problem.state, self.problem.n
        h, low, high = state.h[:n], state.low[:n], state.high[:n]
        losses = np.where(h > 0.0, h * high, h * low)
        total = float((losses - state.beta[:n] * h).sum())
        return KeptGap(max(0.0, total), float((high - low).sum()), 0.0)

    def gap_beside(self, signs: np.ndarray, margins: np.ndarray, costs: np.ndarray) -> KeptGap:
        """Return the gap on the examples kept: there is one bias."""
        return self.kept_gap()

    @locked
    def duality_gap(self) -> float:
        """Return the measured duality gap on the examples kept, divided by the sum of their C_i.

        Returns
        -------
        float
            The normalised gap; 0 before the first example.

        """
        return self.kept_gap().normalised

    @locked
    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept.

        Returns
        -------
        int64 (n_kept,): counted from 1, or the ids given.

        """
        return self.numbers.copy()

    @locked
    def at_bound(self) -> np.ndarray:
        """Return whether each support vector is at its upper bound C_i.

        Returns
        -------
        bool, one value for each nonzero coefficient.

        """
        state, n = self.problem.state, self.problem.n
        return np.asarray(state.kind[:n][state.beta[:n] != 0.0] != MARGIN)


def in_double(x: Rows) -> np.ndarray:
    """Return n rows as float64 (n, d)."""
    rows = dense(x) if not isinstance(x, np.ndarray) else x
    return rows.astype(np.float64).reshape(shape(x))
