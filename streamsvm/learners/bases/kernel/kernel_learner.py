"""The base class of kernel learners: what is the same for all of their solvers."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable
from typing import Any, ClassVar, cast

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import check_size
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.features import absent, density
from streamsvm.features.schema import LIMIT
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.labels.targets import sides_of
from streamsvm.learners.bases import rehearsal
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.kernel import (
    auto_gamma,
    definiteness,
    kernel_batches,
    loaded,
    threads,
)
from streamsvm.learners.bases.kernel.availability import of_dual, of_keepers, of_primal
from streamsvm.learners.bases.kernel.class_costs import ClassCosts
from streamsvm.learners.bases.kernel.kept_values import kept_values
from streamsvm.learners.bases.kernel.kernel_solver import DualSolver, KernelSolver, Sizes
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.kernel.preparation import Preparation
from streamsvm.learners.bases.kernel.remains import Remains, Traces, checked_ids
from streamsvm.learners.bases.kernel.reserves.reserving_solver import ReservingSolver, reserving
from streamsvm.learners.bases.kernel.support_vectors import SupportVectors, as_matrix, in_order
from streamsvm.learners.bases.kernel.trials import race
from streamsvm.learners.bases.kernel.unlearning import Unlearned, parts_without
from streamsvm.learners.bases.late_rows import row_after
from streamsvm.learners.bases.learner import Learner
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.selection.candidates import Candidates
from streamsvm.solvers.gap import KeptGap
from streamsvm.support import states, stores
from streamsvm.support.interruptions import Changes, change_together
from streamsvm.support.kernel_rows import kernel_diagonal
from streamsvm.support.kernel_rows.fresh_block import fill_values
from streamsvm.support.locked import guarded, locked
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape, sparse, taken
from streamsvm.support.sparse_store import SparseStore

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
    gives_back = False
    """Whether examples can be taken back from it."""

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

    def learn_rows(self, rows: LabelledRows) -> np.ndarray:
        """Learn n rows over the features of the schema; return the margins before each was learnt.

        Gamma and class weights are updated when the number of examples is a power of two. The batch
        is split there, so that the model does not depend on how the stream is cut into batches.

        The margins are float64 (n,), or (n, classes).
        """
        n_rows, start = len(rows.y), 0
        margins = self.margins_of_learning(rows)
        while start < n_rows:
            seen = self.n_examples
            until = max(1, self.preparation.adapts_at - seen)
            if self.preparation.is_racing:
                until = 1
            stop = row_after(rows.numbers, start, until)
            part = rows.part(start, stop)
            cost = self._costs_of(part)
            self._become_sparse_if_large(shape(rows.x)[1], seen)
            if self.is_sparse:
                # The learner may have become sparse after the batch was read.
                part = part._replace(x=sparse(part.x))
            scaled = self.preparation.scaled(part.x)
            counts: list[int] = []
            try:
                arguments = (scaled, part.y, cost, part.w, part.numbers, part.diagonal)
                learn = self.solver, self.n_threads, self.sizes(shape(scaled)[1])
                kernel_batches.learn_part(*learn, arguments, margins[start:stop], counts)
            finally:
                n = sum(counts)
                # First, so that no other example gets these numbers, whatever interrupts the rest.
                self.n_learnt[0] = seen + np.count_nonzero(part.numbers[:n])
                self._count(seen, part.part(0, n), cut(scaled, 0, n), margins[start : start + n])
            start = stop
        return margins

    def _costs_of(self, rows: LabelledRows) -> np.ndarray:
        """Return the C_i of rows, 0 of those that are only predicted."""
        cost, learnt = np.zeros(len(rows.y)), np.flatnonzero(rows.numbers > 0)
        if len(learnt):
            costs = self.costs.of_rows(self.C_, rows.y[learnt], rows.labels.take(learnt))
            cost[learnt] = costs * rows.w[learnt]
        return cost

    def _count(self, seen: int, rows: LabelledRows, scaled: Rows, margins: np.ndarray) -> None:
        """Take note of rows learnt after `seen` examples, and adapt the learner to them."""
        n = self.n_examples
        self.costs.count(rows.y[rows.numbers > 0])
        if isinstance(self.solver, ReservingSolver):
            self.solver.note(scaled, (rows.y, rows.w, rows.numbers, margins), seen)
        self.preparation.note(rows, seen)
        if seen < n:
            self.adapt(n)

    # What changes as the stream goes on

    def adapt(self, n: int) -> None:
        """Update gamma, costs and the kind of rows after n examples, and go on with the trial.

        All but the trial changes at powers of two, or after the next example if it was interrupted.
        """
        if n < self.preparation.adapts_at:
            race.step(self, n)
            return
        solver, gamma = self.solver, self.preparation.gamma_by_rule(n, self.is_sparse)
        if gamma is not None and auto_gamma.is_worth_it(solver.kernel.gamma, gamma):
            self.replace(solver=solver.with_kernel(kernels.RBF(gamma=gamma), len(self.schema)))
        self.rebalance()
        if self.sparse is None and not self.is_sparse and self.state is not None:
            if density.are_sparse(self.dense_rows()):
                self.become_sparse_after(n)
        # Last, when it is known whether rows are sparse.
        if self.preparation.trial is not None:
            race.step(self, n)
        else:
            factors = self.preparation.factors_due()
            if factors is not None:
                self.rescale(factors)
        if self.state is not None and definiteness.is_due(self.kernel, n):
            self._look_at_kernel()
        if self.preparation.adapts_at <= absent.NOTICED_AT <= n:
            absent.notice(self)
        self.preparation.adapts_at = auto_gamma.next_power_of_two(n)

    def rescale(self, factors: np.ndarray) -> None:
        """Multiply each feature by other factors, float32 (d,), in the dense rows kept, too.

        The model is computed anew from its coefficients: the kernel always compares rows of one
        scale.
        """
        solver, preparation = self.solver, self.preparation
        ratio = factors / preparation.factors_in_use(factors.size)
        scaled = solver.with_rows_scaled(ratio, len(self.schema))
        self.replace(solver=scaled, preparation=preparation.changed(factors=factors))

    def rebalance(self) -> None:
        """Update the C_i of all examples if the class weights depend on the stream."""
        costs, solver = self.costs, self.solver
        if costs.is_balanced and solver.state is not None and costs.counts.min() > 0:
            solver.set_costs(costs.balanced(self.C_), len(self.schema))

    def _become_sparse_if_large(self, n_features: int, seen: int) -> None:
        """Become sparse if dense rows of so many features would fill the memory with zeros."""
        state = self.state
        if self.sparse is not None or self.is_sparse or state is None:
            return
        if n_features > states.n_columns(state):
            capacity = state.store.entered.size
            if density.may_be_too_many(capacity, n_features) and density.are_mostly_zero(
                self.dense_rows(), n_features
            ):
                self.become_sparse_after(seen)

    def _look_at_kernel(self) -> None:
        """Count, and warn of once, a kernel of the user's that is not positive definite."""
        rows, _, entered = self.expansion()
        fault = definiteness.fault_of(self.kernel_, rows, entered)
        if fault is not None:
            self.n_indefinite += 1
            if self.n_indefinite == 1:
                warnings.warn(fault, stacklevel=2)

    # What a solver, and compiled code, use

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

    def after_event(self, path: EventPath, number: float, cost: float) -> None:
        """Update reserve, scale, gamma and class weights after an event was learnt."""
        n, solver, preparation = self.n_learnt.item(), self.solver, self.preparation
        if self.costs.is_balanced:
            self.costs.count_one(number)
        # First: a trial of scale and width replaces the reserve by one that has this row already.
        if isinstance(solver, ReservingSolver):
            margin = solver.wants(number, path.margins)
            if margin is not None and path.weight > 0.0:
                row = preparation.scaled(path.row())
                solver.kept_rows.add_one(row, (n, n, number, path.weight, margin))
            solver.kept_rows.now = n
        if preparation.note_event(path, number, n):
            self.adapt(n)
            rehearsal.look(self)

    def margins_of_learning(self, rows: LabelledRows) -> np.ndarray:
        """Return an array of zeros for what the solver writes of rows when it learns them."""
        return self.targets.zeros(len(rows.y))

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows, float32 (n,); raise `FeatureError` if one is out of range."""
        store = self.state.store if self.state is not None and isinstance(x, SparseRows) else None
        # A sparse store lends its scratch, if it has room for all features.
        has_room = isinstance(store, SparseStore) and stores.n_columns(store) >= shape(x)[1]
        diagonal = kernel_diagonal.diagonal_of(self.kernel_, x, store if has_room else None)
        return kernel_batches.checked_diagonal(self.kernel_, diagonal)

    def dense_rows(self) -> np.ndarray:
        """Return the rows kept, as they are compared; without coefficients, which may be many."""
        state = self.state
        return dense(stores.rows_of(state.store, states.n_slots(state), len(self.schema)))

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of n rows over the features seen, float64 (n,) or (n, classes).

        Raises FeatureError if a margin is too large for single precision.
        """
        margins = self.margins_of_scaled(self.preparation.scaled(x))
        if not np.isfinite(margins).all():
            r = int(np.flatnonzero(~np.isfinite(margins.reshape(len(margins), -1)).all(axis=1))[0])
            raise FeatureError(
                f"row {r}: {self.kernel_!r} of it is too large for single precision; scale the "
                "features"
            )
        return margins

    def margins_of_scaled(self, x: Rows) -> np.ndarray:
        """Return the margins of rows, computed by several threads if the batch is large enough.

        The n rows are over the features of the schema, and scaled as those kept. The result is
        float64 (n,) or (n, classes), 0 before the first example.
        """
        if self.is_sparse:
            # A monitor's sample may be of rows from before the learner became sparse.
            x = sparse(x)
        n, d = shape(x)
        margins = self.targets.zeros(n)
        if self.state is None or n == 0:
            return margins
        state = self.solver.state_for(self.sizes(d))
        kernel_batches.write_margins(self.solver, self.n_threads, state, x, margins)
        return margins

    def margins_of_arrivals(self, candidates: Candidates, x: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins of rows that come, and their kernel values with all slots."""
        if not self._keeps_values:
            return super().margins_of_arrivals(candidates, x)
        kept = kept_values(candidates)
        state = kept.bring_up_to_date(
            self.solver, self.sizes(len(self.schema)), candidates, self.preparation.scaled
        )
        scaled = self.preparation.scaled(sparse(x) if self.is_sparse else x)
        n = shape(x)[0]
        margins = self.targets.zeros(n)
        values = np.zeros((n, states.capacity_of(state)), np.float32)
        fill_values(kept.bound, state.store, scaled, 0, kept.n, values)
        self.solver.margins_by_values(state, scaled, margins, values)
        return margins, values

    def margins_of_waiting(self, candidates: Candidates) -> np.ndarray:
        """Return the margins of all candidates, by the values that are kept.

        `margins_of_arrivals` was called since the learner changed.
        """
        if not self._keeps_values:
            return super().margins_of_waiting(candidates)
        x = candidates.rows(len(self.schema))
        scaled = self.preparation.scaled(sparse(x) if self.is_sparse else x)
        margins = self.targets.zeros(len(candidates))
        self.solver.margins_by_values(self.state, scaled, margins, candidates.values)
        return margins

    @property
    def _keeps_values(self) -> bool:
        """Whether the kernel values of candidates are kept while they wait."""
        return self.state is not None and hasattr(self.state, "block")

    def replace(self, **parts: Any) -> None:
        """Replace parts by others in one step, so that they match after an interruption."""
        self.__dict__.update(parts)

    def add_class(self, label: Any) -> None:
        """Add a class, if it is new: a batch may also be cut before an example of a known one."""
        if not self.targets.knows(label):
            targets = self.targets.with_label(label)
            n = targets.n_classes
            costs = self.costs.of_classes(n) if self.costs.takes_balanced else self.costs
            self.replace(targets=targets, solver=self.solver.of_classes(n), costs=costs)

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

    def cost_of(self, label: Any, number: float) -> float:
        """Return the C_i of the next example, if it has this label, for an example weight of 1."""
        # Without another call where it can be: each event asks.
        C = self.preparation.C
        return C if self._class_weight is None else self.costs.of_next(C, label, number)

    def costs_now(self, classes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of classes, given by number, would have now."""
        return self.costs.now(self.C_, classes, self.targets.labels.seen) * weights

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
        (rows, alpha, entered), targets = self.unscaled_expansion(), self.targets
        return in_order(names, rows, targets.direction * alpha, entered, targets.label_of_decision)

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

    @of_primal
    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return the regularisation, where there is one, plus the mean hinge loss over rows.

        `classes` and `weights` are those of the n rows, which are over the features seen.
        """
        margins = self.margins_of(x) if shape(x)[0] else np.zeros(0)
        losses = np.maximum(0.0, self.solver.loss_margin - sides_of(classes) * margins)
        factors = self.costs_now(classes, weights) / self.C_
        of_norm = self.solver.regularisation
        more = 0.5 * of_norm * self.squared_norm if of_norm else 0.0
        return more + (float((factors * losses).mean()) if len(losses) else 0.0)

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
    @guarded
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
        losses, costs = self._losses_of_reserve()
        return KeptGap(kept.total + losses, kept.cost + costs).normalised

    def _losses_of_reserve(self) -> tuple[float, float]:
        """Return the summed losses and C_i of rows of the reserve that are not kept.

        Of more than `_MOST_OF_RESERVE` they are estimated from so many. Several problems are
        summed.
        """
        reserve = self.solver.kept_rows
        if reserve is None or not reserve.n_rows:
            return 0.0, 0.0
        revisits = reserving(self).revisits(self, _MOST_OF_RESERVE)
        found: tuple[float, float] = revisits.losses()
        return found

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

    @of_dual
    def reserve_sample(
        self, n: int, n_before: int, draws: random.Random
    ) -> tuple[Rows, np.ndarray, np.ndarray, np.ndarray] | None:
        """Return rows of the reserve that the model does not keep now; None without a reserve.

        They are of examples after the first `n_before`: all, or n drawn by `draws`. With the rows,
        as they came, are their classes and weights, and the numbers of all such rows, drawn or not.
        There are none if an example came more than once.
        """
        reserve = self.solver.kept_rows
        if reserve is None:
            return None
        x, facts = reserve.rows()
        is_outside = ~np.isin(facts["number"], self.kept_numbers())
        outside = np.flatnonzero(is_outside & (facts["arrived"] > n_before))
        if len(facts) < reserve.n_rows:
            outside = outside[:0]
        rows = outside
        if len(outside) > n:
            rows = outside[np.sort(draws.sample(range(len(outside)), n))]
        found = self.preparation.unscaled(taken(x, rows))
        return found, facts["class"][rows], facts["weight"][rows], facts["number"][outside]

    # Taking examples back, and what still depends on them

    @of_keepers
    def unlearn(self, ids: Iterable[int] | int) -> Unlearned:
        """Take examples back: the model goes on as one that is trained on the others.

        Coefficients, rows, cached kernel rows, the reserve, waiting candidates and feature names
        that no other example has are removed; then the learner finishes. See the page "Forgetting"
        for what stays, as averages of many examples. Other threads may predict meanwhile. Ctrl-C
        before the first step of finishing leaves the model as it was; after that the examples are
        gone, and the model can be used.

        Parameters
        ----------
        ids
            Numbers of examples, counted from 1, or the ids that were given to `learn_many`; or one.

        Returns
        -------
        Unlearned
            The ids removed, those not kept (no error), and the duality gap.

        Raises
        ------
        ParameterError
            The ids are no whole numbers of at least 1; nothing has changed.
        ModelBusyError
            As for `learn_one`.

        """
        wanted = checked_ids(ids)
        found = self._remove(wanted)
        # Learners that do not finish do not have this method.
        if len(found) and self.state is not None:
            cast(Any, self).finish()
        missing = wanted[~np.isin(wanted, found)]
        return Unlearned(found.tolist(), missing.tolist(), self.duality_gap())

    @of_keepers
    def audit(self, ids: Iterable[int] | int) -> dict[int, Remains]:
        """Tell what a model has of examples.

        Parameters
        ----------
        ids
            As for `unlearn`.

        Returns
        -------
        dict[int, Remains]
            By id; `is_kept` is False for an example of which nothing is kept.

        Raises
        ------
        ParameterError
            The ids are no whole numbers of at least 1.

        """
        wanted = checked_ids(ids)
        return self._remains(wanted)

    @of_keepers
    def keeps(self, ids: np.ndarray) -> np.ndarray:
        """Return of which ids, int64 (n,), `unlearn` would remove something; bool (n,)."""
        with self.lock:
            return self._traces().keeps(ids)

    @guarded
    def _remains(self, wanted: np.ndarray) -> dict[int, Remains]:
        return self._traces().remains(wanted)

    @guarded
    def _remove(self, wanted: np.ndarray) -> np.ndarray:
        """Remove what is kept of examples; return their ids."""
        traces = self._traces()
        own = traces.kept_of(wanted)
        found = own.ids
        if not found.size:
            self.solver.drop_numbers()
            return found
        d, gone = len(self.schema), traces.dropped(found)
        columns = np.setdiff1d(np.arange(d), gone) if gone.size else None
        new = parts_without(traces, own, columns, self.sizes(d))
        new |= {"costs": self.costs.without(own.classes), "event_path": None, "event_reader": None}
        changes: list[Changes] = [(self.__dict__, new)]
        if self.observer is not None:
            changes.append(self.observer.without(found, columns))
        change_together(changes)
        return found

    def _traces(self) -> Traces:
        return Traces(
            solver=self._dual_solver(),
            preparation=self.preparation,
            targets=self.targets,
            schema=self.schema,
            waiting=self.waiting,
            n_examples=self.n_examples,
            is_sparse=self.is_sparse,
            is_bounded=getattr(self, "max_support_vectors", None) is not None,
        )

    # What is computed again when a model file was read

    def mend_diagonal(self) -> None:
        """Compute k(x, x) of the examples kept, and replace those that are wrong.

        Raises ValueError if the kernel cannot take a row.
        """
        state = self.state
        if not hasattr(state, "diagonal"):
            return
        n = states.n_slots(state)
        live = np.flatnonzero(state.store.entered[:n])
        if not live.size:
            return
        try:
            own = self.diagonal_of(taken(stores.rows_of(state.store, n, len(self.schema)), live))
        except FeatureError as error:
            raise ValueError(str(error)) from error
        # Otherwise not one bit is changed: other releases may have computed in another order.
        wrong = ~np.isclose(state.diagonal[live], own, rtol=1e-4, atol=0.0)
        state.diagonal[live[wrong]] = own[wrong]

    def mend_gradients(self) -> None:
        """Compare sums and gradients with the rows; if they differ, compute all anew."""
        loaded.mend_gradients(self.solver, len(self.schema))

    def know_labels(self, seen: list[Any]) -> None:
        """Set the labels of a learner that has learnt nothing, as a file has them."""
        super().know_labels(seen)
        k = self.targets.n_classes
        self.solver, self.costs = self.solver.of_classes(k), self.costs.of_classes(k)

    # Copies

    def _contents(self) -> dict[str, Any]:
        parts = {"solver": self.solver.without_cache()}
        return super()._contents() | parts | {"preparation": self.preparation.without_race()}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)
        self.n_threads = threads.check_n_jobs(self.n_jobs)  # this process may have other cores
        self.solver.restore_cache()
