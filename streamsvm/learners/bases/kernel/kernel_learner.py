"""The base class of kernel learners: what is the same for all of their solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import check_size
from streamsvm.errors import ParameterError
from streamsvm.features import density
from streamsvm.features.schema import LIMIT
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.learners.bases import rehearsal
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.kernel import (
    adapting,
    finishing,
    kept_values,
    kernel_batches,
    loaded,
    threads,
)
from streamsvm.learners.bases.kernel.availability import of_dual, of_primal
from streamsvm.learners.bases.kernel.class_costs import ClassCosts
from streamsvm.learners.bases.kernel.kernel_solver import DualSolver, KernelSolver, Sizes
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.kernel.preparation import Preparation
from streamsvm.learners.bases.kernel.reserves.reserving_solver import ReservingSolver
from streamsvm.learners.bases.kernel.support_vectors import SupportVectors, as_matrix, in_order
from streamsvm.learners.bases.learner import Learner
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.solvers.gap import KeptGap
from streamsvm.support.locked import locked
from streamsvm.support.rows import Rows

_MOST_OF_RESERVE = 2000
"""Of a larger reserve so many rows are drawn: as many kernel rows cost a fraction of a second."""


class KernelLearner(Learner):
    """A classifier whose decision function is a kernel expansion.

    Parameters
    ----------
    solver
        What it learns with.
    kernel
        The kernel; None: an RBF whose gamma follows the data.
    given, C, class_weight, scale, gamma
        As in `LASVMClassifier`.

    Attributes
    ----------
    solver, preparation, costs, targets
        Its parts: what it learns with; scale and width; class weights; labels and calibration.

    """

    has_dual = False
    costs: ClassCosts
    takes_balanced: ClassVar[bool] = False
    """Whether `class_weight` may be "balanced"."""

    seed: int | None
    n_indefinite = 0
    """How often the kernel was found not to be positive definite: see `definiteness`."""

    def __init__(
        self,
        solver: KernelSolver,
        kernel: Any,
        given: KernelParameters,
        *,
        C: float | str = 1.0,
        class_weight: Any = None,
        scale: bool | str = False,
        gamma: str = "scale",
    ) -> None:
        self.sparse, self.hashing, self.max_features = given[:3]
        self.cache_mb, self.n_jobs = given.cache_mb, given.n_jobs
        limit = check_size("max_features", given.max_features) or LIMIT
        super().__init__(limit, check_size("hashing", given.hashing), given.missing)
        if kernel is not None:
            kernels.check_kernel(kernel)
        self.solver, self.kernel, self.C = solver, kernel, C
        self.class_weight, self.scale, self.gamma = class_weight, scale, gamma
        self.is_sparse = density.check_sparse(given.sparse, given.hashing)
        self.n_threads = threads.check_n_jobs(given.n_jobs)
        self.preparation = Preparation(kernel, C, scale, gamma)
        self.choose_by(given.selection)

    @property
    def kernel_(self) -> Any:
        """The kernel in use."""
        return self.solver.kernel

    @kernel_.setter
    def kernel_(self, kernel: Any) -> None:
        self.solver.kernel = kernel

    @property
    def C_(self) -> float:  # noqa: N802
        """The C in use."""
        return self.preparation.C

    @property
    def class_weight(self) -> Any:
        """The parameter; it may be changed at any time."""
        return self._class_weight

    @class_weight.setter
    def class_weight(self, class_weight: Any) -> None:
        counts = self.costs.counts if hasattr(self, "costs") else None
        self._class_weight = class_weight
        self.costs = ClassCosts(class_weight, self.takes_balanced, counts)

    @property
    def state(self) -> Any:
        """The arrays of the solver; None before the first example."""
        return self.solver.state

    @state.setter
    def state(self, state: Any) -> None:
        self.solver.state = state

    def empty_state(self) -> Any:
        """Return an empty state with room for the features and labels seen."""
        return self.solver.new_state(self.sizes(len(self.schema)))

    def _dual_solver(self) -> DualSolver:
        if isinstance(self.solver, DualSolver):
            return self.solver
        raise AttributeError(f"{type(self).__name__} has no dual")

    # Learning

    learn_rows, margins_of = kernel_batches.learn_rows, kernel_batches.checked_margins
    diagonal_of, dense_rows = kernel_batches.diagonal_of, kernel_batches.dense_rows
    margins_of_arrivals = kept_values.margins_of_arrivals
    margins_of_waiting = kept_values.margins_of_waiting

    def sizes(self, n_features: int) -> Sizes:
        """Return what the state must have room for, if rows have so many features."""
        return Sizes(n_features, self.schema, self.targets.n_classes, self.is_sparse)

    def make_room(self, n_features: int) -> None:
        """Let the state, which may be new, have room for rows of so many features."""
        self.solver.state_for(self.sizes(n_features))

    def event_parts(self) -> Bound:
        """Return the objects that compiled code uses for an event, if `state` is not None."""
        solver = self.solver
        return solver.state, solver.kernel, solver.schedule, self.targets

    def bound_kernel(self, state: Any) -> Any:
        """Return the kernel in the form that solvers use."""
        return self.solver.bound_kernel(state)

    def room_for_features(self) -> int:
        """Return the number of features that the state has room for."""
        return self.solver.room_for_features()

    def takes_every_row(self) -> bool:
        """Tell whether the learner accepts every row of finite values."""
        return kernels.product_of(type(self.kernel_)) == "distance"

    def after_event(self, path: EventPath, sign: float, cost: float) -> None:
        """Update reserve, scale, gamma and class weights after an event was learnt."""
        n, solver, preparation = self.n_learnt.item(), self.solver, self.preparation
        if self.costs.is_balanced:
            self.costs.count_one(sign)
        # First: a trial of scale and width replaces the reserve by one that has this row already.
        if isinstance(solver, ReservingSolver):
            margin = solver.wants(sign, path.margins)
            if margin is not None and path.weight > 0.0:
                row = preparation.scaled(path.row())
                solver.kept_rows.add_one(row, (n, n, sign, path.weight, margin))
            solver.kept_rows.now = n
        if preparation.note_event(self, path, sign, n):
            adapting.adapt(self, n)
            rehearsal.look(self)

    def margins_of_learning(self, rows: LabelledRows) -> np.ndarray:
        """Return an array of zeros for what the solver writes of rows when it learns them."""
        return self.targets.zeros(len(rows.y))

    def replace(self, **parts: Any) -> None:
        """Replace parts by others in one step, so that they match after an interruption."""
        self.__dict__.update(parts)

    def add_class(self, label: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Add a class; return the function that converts earlier signs, None if they stay."""
        if label in self.targets.labels.seen:
            return None  # a batch may also be cut before an example of a known class
        changes, change = adapting.with_class(self, label)
        self.replace(**changes)
        return change

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if not self.is_sparse and self.sparse is not False:
            self.become_sparse_after(self.n_examples)

    def become_sparse_after(self, n: int) -> None:
        """Store rows as their nonzero features from now on, after n examples."""
        solver, preparation = self.solver.made_sparse(), self.preparation.made_sparse(n)
        self.replace(is_sparse=True, solver=solver, preparation=preparation)

    def _check_ids(self, ids: Any) -> None:
        if ids is not None and self.solver.refuses_ids is not None:
            raise ParameterError(f"ids: {self.solver.refuses_ids}")

    # Costs

    def cost_of(self, label: Any, sign: float) -> float:
        """Return the C_i of the next example, if it has this label, for an example weight of 1."""
        # Without another call where it can be: each event asks.
        C = self.preparation.C
        return C if self._class_weight is None else self.costs.of_next(C, label, sign)

    def costs_now(self, signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of these signs, or class numbers, would have now."""
        return self.costs.now(self.C_, signs, self.targets) * weights

    # What can be asked without learning

    def expansion(self) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return rows, coefficients and example numbers of the slots in use."""
        return self.solver.expansion(len(self.schema))

    def unscaled_expansion(self) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return what `expansion` does, with rows as they came."""
        rows, coefficients, entered = self.expansion()
        return self.preparation.unscaled(rows), coefficients, entered

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel, C, class weights."""
        weights = "" if self.class_weight is None else f", class_weight={self.class_weight!r}"
        choice = "" if self.preparation.choice is None else f" ({self.chosen})"
        return f"{self.kernel_!r}, C={self.C_:g}{weights}{choice}"

    @property
    def chosen(self) -> str | None:
        """Scale, gamma and C in words, and of how many they were the best; None: no trial yet."""
        return self.preparation.in_words(self.kernel_)

    @property
    @locked
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient."""
        return self.solver.n_support_vectors

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``support_vectors``, ``cache``, ``scratch``, ``names`` and the ``reserve``."""
        parts, reserve = self.solver.memory_parts, self.solver.kept_rows
        parts["names"] = self.schema.memory_usage
        if reserve is not None:
            parts["reserve"] = reserve.nbytes
        parts["scratch"] += self.preparation.nbytes
        return parts

    @locked
    def support_vectors(self) -> Any:
        """Return the support vectors, in the order in which they entered the model.

        Returns
        -------
        Copies of rows, coefficients, labels and example numbers: `SupportVectors` for two classes,
        `ProblemVectors` or `SupportPatterns` for more.

        """
        names = self.feature_names
        if self.state is None:
            rows = as_matrix(np.zeros((0, len(self.schema)), np.float32))
            return SupportVectors(names, rows, np.zeros(0), [], np.zeros(0, np.int64))
        return in_order(names, *self.unscaled_expansion(), self.targets.label_of)

    @property
    def kappa(self) -> float:
        """The share of operations that changed nothing; 0 before the first operation."""
        counts = self.solver.counters
        return counts["null_steps"] / max(1, counts["steps"] + counts["null_steps"])

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps, kernel values, hits and misses of the cache.

        ``indefinite_kernel``, if it is there: how often a kernel of your own was found not to be
        positive definite, as an SVM needs, since the model was made or loaded.
        """
        n = self.n_indefinite
        more = {"indefinite_kernel": n} if n else {}
        return self.solver.counters | self._ignored() | more

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean gap, or None and the reason why there is none."""
        return Certificate(None, self.solver.no_certificate)

    @property
    @locked
    def squared_norm(self) -> float:
        """The square of |w|; of several classes, the sum over the problems or classes."""
        if self.state is None and self.solver.has_norm:
            return 0.0
        return self.solver.squared_norm(len(self.schema))

    objective_of = of_primal(kernel_batches.objective_of)

    # Of learners with a dual, others have no such methods

    @property
    def looks(self) -> Looks:
        """The sums of looks so far, which estimate and bound the mean gap; none without a dual."""
        return self.solver.looks if isinstance(self.solver, DualSolver) else Looks()

    @property
    @locked
    def dual(self) -> float:
        """The value of the dual objective; of several classes, the sum over the problems."""
        solver = self._dual_solver()
        return 0.0 if solver.state is None else solver.dual

    @of_dual
    def kept_gap(self) -> KeptGap:
        """Return the measured duality gap on the examples kept, summed over the problems.

        It is not normalised. The learner has learnt an example.
        """
        return self._dual_solver().kept_gap(len(self.schema))

    @of_dual
    def duality_gap(self) -> float:
        """Return the measured duality gap, divided by the sum of the C_i.

        It is that of the model that predicts, with its bias, on the examples kept and those of the
        reserve (of more than 2,000, so many drawn at random stand for all). The gap bounds how far
        primal and dual are from their common optimum.

        Returns
        -------
        The normalised gap; 0 before the first example.

        """
        if self._dual_solver().state is None:
            return 0.0
        kept = self.kept_gap()
        losses, costs = finishing.losses_of_reserve(self, _MOST_OF_RESERVE)
        return KeptGap(kept.total + losses, kept.cost + costs).normalised

    @of_dual
    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept.

        Returns
        -------
        int64 (n_kept,): counted from 1, or the ids given.

        """
        return np.zeros(0, np.int64) if self.state is None else self._dual_solver().kept_numbers()

    @of_dual
    def at_bound(self) -> np.ndarray:
        """Return whether each support vector is at its upper bound C_i, in some problem at least.

        Returns
        -------
        bool, one value for each nonzero coefficient. The learner has learnt an example.

        """
        return self._dual_solver().at_bound()

    reserve_sample = of_dual(finishing.reserve_sample)

    # What is computed again when a model file was read
    mend_diagonal, mend_gradients = loaded.mend_diagonal, loaded.mend_gradients

    def know_labels(self, seen: list[Any]) -> None:
        """Set the labels of a learner that has learnt nothing, as a file has them."""
        super().know_labels(seen)
        if (k := self.targets.n_classes) and not self.targets.has_one_margin:
            self.solver, self.costs = self.solver.of_classes(k, 0), self.costs.of_classes(k, 0)

    # Copies

    def _contents(self) -> dict[str, Any]:
        parts = {"solver": self.solver.without_cache()}
        return super()._contents() | parts | {"preparation": self.preparation.without_race()}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        self.n_threads = threads.check_n_jobs(self.n_jobs)  # this process may have other cores
        self.solver.restore_cache()
