"""A kernel expansion as a model: a solver, and how rows, costs and gamma are prepared for it."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from streamsvm import kernels
from streamsvm.errors import FeatureError
from streamsvm.model_files.json_values import (
    Content,
    Json,
    checked,
    kernel_as_json,
    kernel_from_json,
)
from streamsvm.models.kernel import auto_gamma, definiteness, kernel_batches, loaded, race
from streamsvm.models.kernel.kept_values import kept_values
from streamsvm.models.kernel.kernel_solver import (
    DualSolver,
    KernelSolver,
    KernelState,
    ReservingSolver,
    Sizes,
    reserving,
)
from streamsvm.models.kernel.preparation import ClassCosts, Preparation
from streamsvm.models.model import LearntEvent, Model, Parts
from streamsvm.models.outputs import Outputs
from streamsvm.models.rows import NumberedRows, row_after
from streamsvm.selection.candidates import Candidates
from streamsvm.solvers.gap import KeptGap
from streamsvm.support import density, states, stores
from streamsvm.support.declaration import NOT_NEGATIVE, Field, NamedArrays
from streamsvm.support.interruptions import Changes
from streamsvm.support.kernel_rows import kernel_diagonal
from streamsvm.support.kernel_rows.fresh_block import fill_values
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape, sparse, taken
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.state_arrays import from_arrays

_MOST_OF_RESERVE = 2000
"""Of a larger reserve so many rows are drawn: as many kernel rows cost a fraction of a second."""


class KernelModel(Model):
    """Learns rows by a solver, and adapts scale, gamma, costs and the kind of rows to them.

    Parameters
    ----------
    solver
        What it learns with; it has learnt nothing.
    outputs
        What margins mean.
    preparation
        Scale, width and C.
    sparse
        True, False, or None: rows become sparse when mostly zeros are found.
    is_sparse
        Whether they are from the start.
    limit
        The largest number of features.
    n_threads
        How many compute kernel values.

    Attributes
    ----------
    costs
        The costs of classes.
    n_indefinite
        How often the kernel was found not to be positive definite: see `definiteness`.

    """

    def __init__(
        self,
        solver: KernelSolver,
        outputs: type[Outputs],
        preparation: Preparation,
        *,
        sparse: bool | None = None,
        is_sparse: bool = False,
        limit: int,
        n_threads: int = 1,
    ) -> None:
        self.solver, self.outputs, self.preparation = solver, outputs(0), preparation
        self.sparse, self.is_sparse, self.limit = sparse, is_sparse, limit
        self.n_threads = n_threads
        self.costs = ClassCosts()
        self.n_learnt = np.zeros(1, np.int64)
        self.n_features = self.n_indefinite = 0

    def like(self, gamma: float, C: float, cache_bytes: int) -> KernelModel:
        """Return a model with these settings that has learnt nothing, with an RBF and this C."""
        kernel = kernels.RBF(gamma=gamma)
        new = KernelModel(
            self.solver.fresh(kernel, cache_bytes),
            type(self.outputs),
            Preparation(kernel, C, False, "scale"),
            sparse=self.is_sparse,
            is_sparse=self.is_sparse,
            limit=self.limit,
            n_threads=self.n_threads,
        )
        new.costs = ClassCosts(is_balanced=self.costs.is_balanced)
        return new

    def replace(self, **parts: object) -> None:
        """Replace attributes in one step, so that they match after an interruption."""
        self.__dict__.update(parts)

    @property
    def state(self) -> Any:
        """The arrays of the solver; None before the first example."""
        return self.solver.state

    @property
    def kernel(self) -> Any:
        """The kernel in use."""
        return self.solver.kernel

    @property
    def C(self) -> float:  # noqa: N802
        """The C in use."""
        return self.preparation.C

    @property
    def factors(self) -> np.ndarray | None:
        """What features are multiplied by, float32; None: by nothing."""
        return self.preparation.factors

    def dual_solver(self) -> DualSolver:
        """Return the solver, which has a dual."""
        assert isinstance(self.solver, DualSolver)
        return self.solver

    # Learning

    def learn(self, rows: NumberedRows, has_scores: bool = True) -> np.ndarray:
        """Learn n rows; return the margins from before each, as its `outputs` say.

        Gamma and class weights are updated when the number of examples is a power of two. The batch
        is split there, so that the model does not depend on how the stream is cut into batches.
        The numbers of bags become those of their best candidates.
        Without `has_scores` what the solver writes of several classes may be left out, if it takes
        longer than learning.
        """
        n_rows, start = len(rows.y), 0
        margins = self.solver.new_margins(self.outputs, n_rows, has_scores)
        if rows.bags is not None:
            # Where the solver reads them.
            margins[:] = rows.bags
        self.n_features = max(self.n_features, shape(rows.x)[1])
        while start < n_rows:
            seen = self.n_examples
            until = max(1, self.preparation.adapts_at - seen)
            if self.preparation.is_racing:
                until = 1
            stop = row_after(rows.numbers, start, until)
            part = rows.part(start, stop)
            cost = self.costs.of_rows(self.C, part)
            self._become_sparse_if_large(shape(rows.x)[1])
            if self.is_sparse:
                # The model may have become sparse after the batch was read.
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
        if rows.bags is not None:
            of_bags = np.flatnonzero(rows.y < 0.0)
            found = np.where(rows.bags[of_bags] > 0.0, margins[of_bags], -np.inf)
            rows.y[of_bags] = -1.0 - found.argmax(axis=1)
        return margins

    def _count(self, seen: int, rows: NumberedRows, scaled: Rows, margins: np.ndarray) -> None:
        """Take note of rows learnt after `seen` examples, and adapt to them."""
        n = self.n_examples
        self.costs.count(rows.y[rows.numbers > 0])
        if isinstance(self.solver, ReservingSolver):
            self.solver.note(scaled, (rows.y, rows.w, rows.numbers, margins), seen)
        self.preparation.note(rows, seen)
        if seen < n:
            self.adapt(n)

    def after_event(self, event: LearntEvent, number: float, cost: float) -> None:
        """Update reserve, scale, gamma and class weights after an event was learnt."""
        n, solver, preparation = self.n_learnt.item(), self.solver, self.preparation
        if self.costs.is_balanced:
            self.costs.count_one(number)
        # First: a trial of scale and width replaces the reserve by one that has this row already.
        if isinstance(solver, ReservingSolver):
            reserve = solver.kept_rows
            if reserve.most != 0 and event.weight > 0.0:
                margin = solver.least_margin(number, event.margins)
                if margin < reserve.threshold:
                    reserve.add_one(event.scaled_row(), (n, n, number, event.weight, margin))
            reserve.now = n
        if preparation.note_event(event, number, n):
            self.adapt(n)

    def with_class(self, factor: float) -> list[Changes]:
        """Return what changes as a class is added, whose C is multiplied by a factor."""
        n = self.n_classes + 1
        solver, costs = self.solver.of_classes(n), self.costs.with_class(factor)
        new = {"outputs": type(self.outputs)(n), "solver": solver, "costs": costs}
        return [(self.__dict__, new)]

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> list[Changes]:
        """Return what changes as C is multiplied by other factors from now on."""
        new = {
            "costs": self.costs.weighted(factors, is_balanced),
            # Its candidates have the factors from before.
            "preparation": self.preparation.without_race(),
        }
        return [(self.__dict__, new)]

    # What changes as the stream goes on

    def adapt(self, n: int) -> None:
        """Update gamma, costs and the kind of rows after n examples, and go on with the trial.

        All but the trial changes at powers of two, or after the next example if it was interrupted.
        """
        if n < self.preparation.adapts_at:
            if self.preparation.trial is not None:
                race.step(self, n)
            return
        solver, gamma = self.solver, self.preparation.gamma_by_rule(n, self.is_sparse)
        if gamma is not None and auto_gamma.is_worth_it(self.kernel.gamma, gamma):
            self.replace(solver=solver.with_kernel(kernels.RBF(gamma=gamma), self.n_features))
        self.rebalance()
        if self.sparse is None and not self.is_sparse and self.state is not None:
            if density.are_sparse(self.dense_rows()):
                self.become_sparse()
        # Last, when it is known whether rows are sparse.
        if self.preparation.trial is not None:
            race.step(self, n)
        else:
            factors = self.preparation.factors_due()
            if factors is not None:
                self.rescale(factors)
        if self.state is not None and definiteness.is_due(self.kernel, n):
            self._look_at_kernel()
        self.preparation.adapts_at = auto_gamma.next_power_of_two(n)

    def rescale(self, factors: np.ndarray) -> None:
        """Multiply each feature by other factors, float32 (d,), in the dense rows kept, too.

        The model is computed anew from its coefficients: the kernel always compares rows of one
        scale.
        """
        solver, preparation = self.solver, self.preparation
        ratio = factors / preparation.factors_in_use(factors.size)
        scaled = solver.with_rows_scaled(ratio, self.n_features)
        self.replace(solver=scaled, preparation=preparation.changed(factors=factors))

    def rebalance(self) -> None:
        """Update the C_i of all examples if the class weights depend on the stream."""
        costs, solver = self.costs, self.solver
        if costs.is_balanced and solver.state is not None and costs.counts.min() > 0:
            solver.set_costs(costs.balanced(self.C), self.n_features)

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if not self.is_sparse and self.sparse is not False:
            preparation = self.preparation.made_sparse(self.n_examples)
            solver = self.solver.made_sparse()
            self.replace(is_sparse=True, solver=solver, preparation=preparation)

    def _become_sparse_if_large(self, n_features: int) -> None:
        """Become sparse if dense rows of so many features would fill the memory with zeros."""
        state = self.state
        if self.sparse is not None or self.is_sparse or state is None:
            return
        may_be = n_features > states.n_columns(state) and density.may_be_too_many(
            state.store.entered.size, n_features
        )
        if may_be and density.are_mostly_zero(self.dense_rows(), n_features):
            self.become_sparse()

    def _look_at_kernel(self) -> None:
        """Count, and warn of once, a kernel of the user's that is not positive definite."""
        rows, _, entered = self.expansion()
        fault = definiteness.fault_of(self.kernel, rows, entered)
        if fault is not None:
            self.n_indefinite += 1
            if self.n_indefinite == 1:
                warnings.warn(fault, stacklevel=2)

    # What a solver, and compiled code, use

    def sizes(self, n_features: int | None = None) -> Sizes:
        """Return what the state must have room for, if rows have so many features."""
        d = self.n_features if n_features is None else n_features
        return Sizes(d, self.n_features, self.limit, self.n_classes, self.is_sparse)

    def make_room(self, n_features: int) -> None:
        """Let the state, which may be new, have room for rows of so many features."""
        self.solver.state_for(self.sizes(n_features))

    def event_parts(self) -> Parts:
        """Return what compiled code uses for an event, if `state` is not None."""
        solver = self.solver
        return solver.state, solver.kernel, solver.schedule

    def lacks_class(self) -> bool:
        """Tell whether what adds a class was interrupted."""
        return not self.solver.has_classes(self.n_classes)

    def bound_kernel(self, state: KernelState) -> Any:
        """Return the kernel in the form that solvers use."""
        return self.solver.bound_kernel(state)

    def room_for_features(self) -> int:
        """Return the number of features that the state has room for."""
        return 0 if self.state is None else int(states.n_columns(self.state))

    def takes_every_row(self) -> bool:
        """Tell whether it accepts every row of finite values."""
        return kernels.product_of(type(self.kernel)) == "distance"

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows, float32 (n,); raise `FeatureError` if one is out of range."""
        store = self.state.store if self.state is not None and isinstance(x, SparseRows) else None
        # A sparse store lends its scratch, if it has room for all features.
        has_room = isinstance(store, SparseStore) and stores.n_columns(store) >= shape(x)[1]
        diagonal = kernel_diagonal.diagonal_of(self.kernel, x, store if has_room else None)
        return kernel_batches.checked_diagonal(self.kernel, diagonal)

    def dense_rows(self) -> np.ndarray:
        """Return the rows kept, as they are compared; without coefficients, which may be many."""
        state = self.state
        return dense(stores.rows_of(state.store, states.n_slots(state), self.n_features))

    # Margins

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of n rows over the features seen, as its `outputs` say.

        Raises FeatureError if a margin is too large for single precision.
        """
        margins = self.margins_of_scaled(self.preparation.scaled(x))
        if not np.isfinite(margins).all():
            r = int(np.flatnonzero(~np.isfinite(margins.reshape(len(margins), -1)).all(axis=1))[0])
            raise FeatureError(
                f"row {r}: {self.kernel!r} of it is too large for single precision; scale the "
                "features"
            )
        return margins

    def margins_of_scaled(self, x: Rows) -> np.ndarray:
        """Return the margins of rows that are scaled as those kept; 0 before the first example.

        Several threads compute them if there are enough rows.
        """
        if self.is_sparse:
            # A monitor's sample may be of rows from before the model became sparse.
            x = sparse(x)
        n, d = shape(x)
        margins = self.outputs.zeros(n)
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
        sizes = self.sizes(shape(x)[1])
        state = kept.bring_up_to_date(self.solver, sizes, candidates, self.preparation.scaled)
        scaled, n = self._compared(x), shape(x)[0]
        margins = self.outputs.zeros(n)
        values = np.zeros((n, states.capacity_of(state)), np.float32)
        fill_values(kept.bound, state.store, scaled, 0, kept.n, values)
        self.solver.margins_by_values(state, scaled, margins, values)
        return margins, values

    def margins_of_waiting(self, candidates: Candidates, d: int) -> np.ndarray:
        """Return the margins of all candidates over d features, by the values that are kept.

        `margins_of_arrivals` was called since the model changed.
        """
        if not self._keeps_values:
            return super().margins_of_waiting(candidates, d)
        scaled, margins = self._compared(candidates.rows(d)), self.outputs.zeros(len(candidates))
        self.solver.margins_by_values(self.state, scaled, margins, candidates.values)
        return margins

    def _compared(self, x: Rows) -> Rows:
        """Return rows as the solver compares them."""
        return self.preparation.scaled(sparse(x) if self.is_sparse else x)

    @property
    def _keeps_values(self) -> bool:
        """Whether the kernel values of candidates are kept while they wait."""
        return self.state is not None and "block" in self.state._fields

    # Costs

    def cost_of(self, number: float) -> float:
        """Return the C_i of the next example, if it is of this class, for a weight of 1."""
        # Without another call where it can be: each event asks.
        C, costs = self.preparation.C, self.costs
        return C if costs.are_equal else costs.of_next(C, number)

    def costs_now(self, classes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of classes, given by number, would have now."""
        return self.costs.now(self.C, classes) * weights

    # What can be asked without learning

    def expansion(self, n_features: int | None = None) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return rows, coefficients and example numbers of the slots in use."""
        return self.solver.expansion(self.n_features if n_features is None else n_features)

    def unscaled_expansion(self, n_features: int) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return what `expansion` does, with rows as they came."""
        rows, coefficients, entered = self.expansion(n_features)
        return self.preparation.unscaled(rows), coefficients, entered

    @property
    def delta(self) -> float:
        """The gradient gap of the worst pair, of solvers that choose pairs."""
        return self.solver.delta

    @property
    def chosen(self) -> str | None:
        """Scale, gamma and C in words, and of how many they were the best; None: no trial yet."""
        return self.preparation.in_words(self.kernel)

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``support_vectors``, ``cache``, ``scratch``, and the ``reserve``."""
        parts, reserve = self.solver.memory_parts, self.solver.kept_rows
        if reserve is not None:
            parts["reserve"] = reserve.nbytes
        parts["scratch"] += self.preparation.nbytes
        return parts

    @property
    def kappa(self) -> float:
        """The share of operations that changed nothing; 0 before the first operation."""
        counts = self.solver.counters
        return counts["null_steps"] / max(1, counts["steps"] + counts["null_steps"])

    @property
    def counters(self) -> dict[str, int]:
        """Counts of the solver, and how often the kernel was not positive definite, if it was."""
        n = self.n_indefinite
        return self.solver.counters | ({"indefinite_kernel": n} if n else {})

    @property
    def squared_norm(self) -> float:
        """The square of |w|; of several classes, the sum over the problems or classes."""
        if self.state is None and self.solver.has_norm:
            return 0.0
        return self.solver.squared_norm(self.n_features)

    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return the regularisation, where there is one, plus the mean hinge loss over rows.

        `classes` and `weights` are those of the n rows, which are over the features seen.
        """
        margins = self.margins_of(x) if shape(x)[0] else np.zeros(0)
        correctness = self.outputs.correctness(classes, margins)
        losses = np.maximum(0.0, self.solver.loss_margin - correctness)
        factors = self.costs_now(classes, weights) / self.C
        of_norm = self.solver.regularisation
        more = 0.5 * of_norm * self.squared_norm if of_norm else 0.0
        return more + (float((factors * losses).mean()) if len(losses) else 0.0)

    # Of solvers with a dual

    @property
    def dual(self) -> float:
        """The value of the dual objective; of several classes, the sum over the problems."""
        return 0.0 if self.state is None else self.dual_solver().dual

    def kept_gap(self) -> KeptGap:
        """Return the measured duality gap on the examples kept, summed over the problems."""
        return self.dual_solver().kept_gap(self.n_features)

    def duality_gap(self) -> float:
        """Return the measured duality gap, divided by the sum of the C_i.

        It is that on the examples kept and those of the reserve, of which some stand for all if
        there are many; 0 before the first example.
        """
        if self.state is None:
            return 0.0
        kept, reserve = self.kept_gap(), self.solver.kept_rows
        if reserve is not None and reserve.n_rows:
            losses, costs = reserving(self.solver).revisits(self, _MOST_OF_RESERVE).losses()
            kept = KeptGap(kept.total + losses, kept.cost + costs)
        return kept.normalised

    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept, int64 (n_kept,)."""
        return np.zeros(0, np.int64) if self.state is None else self.dual_solver().kept_numbers()

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

    # Files

    def as_file(self) -> Content:
        """Return what a file holds of it: JSON values and arrays."""
        content, arrays = self.preparation.as_file(self.n_examples, self.n_features)
        content["kernel_"] = kernel_as_json(self.kernel)
        if self.costs.is_balanced:
            arrays["counts"] = self.costs.counts
        for records, own in (super().as_file(), self.solver.as_file()):
            content, arrays = content | records, arrays | own
        return content, arrays

    def read(self, content: Json, arrays: NamedArrays) -> None:
        """Set what `as_file` returned; raise ValueError if it does not fit."""
        solver, d, k = self.solver, self.n_features, self.n_classes
        solver.kernel = kernel_from_json(checked(content.get("kernel_"), dict, "kernel_"))
        self.preparation.read(content, arrays, (self.n_examples, d, k))
        if self.is_sparse:
            self.preparation.scales = None
        given = solver.read_draws(arrays)
        if self.costs.is_balanced:
            field = Field(self.costs.counts.shape, range=NOT_NEGATIVE)
            self.costs = self.costs.changed(counts=arrays.take("counts", field, {}))
        if "info" in content or "info" in arrays:
            empty, room = solver.new_state(self.sizes()), solver.cache_bytes
            solver.state = from_arrays(empty, content, arrays, self.lengths, room, given)
            self._mend_diagonal()
        elif self.n_examples:
            raise ValueError("there are examples, but no state")
        solver.read(content, arrays, d, k)
        if solver.state is not None:
            loaded.mend_gradients(solver, d)

    def _mend_diagonal(self) -> None:
        """Compute k(x, x) of the examples kept, and replace those that are wrong.

        Raises ValueError if the kernel cannot take a row.
        """
        state = self.state
        if "diagonal" not in state._fields:
            return
        n = states.n_slots(state)
        live = np.flatnonzero(state.store.entered[:n])
        if not live.size:
            return
        try:
            own = self.diagonal_of(taken(stores.rows_of(state.store, n, self.n_features), live))
        except FeatureError as error:
            raise ValueError(str(error)) from error
        # Otherwise not one bit is changed: other releases may have computed in another order.
        wrong = ~np.isclose(state.diagonal[live], own, rtol=1e-4, atol=0.0)
        state.diagonal[live[wrong]] = own[wrong]

    # Copies

    def for_copy(self) -> Self:
        """Return it without what a copy computes again: cached kernel rows, candidates."""
        return self.changed(
            solver=self.solver.without_cache(), preparation=self.preparation.without_race()
        )

    def after_copy(self, n_threads: int) -> None:
        """Add what `for_copy` left out; this process may have other cores."""
        self.n_threads = n_threads
        self.solver.restore_cache()
