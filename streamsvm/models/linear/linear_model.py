"""Linear functions of the features as a model: one for two classes, or one for each of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from streamsvm.model_files.json_values import Content, Json, checked
from streamsvm.models.linear import rate_search
from streamsvm.models.linear.linear_solver import FEWEST_SPARSE, LinearSolver
from streamsvm.models.linear.rate_search import RateSearchRows
from streamsvm.models.model import LearntEvent, Model, Parts
from streamsvm.models.outputs import GrowingOutputs
from streamsvm.models.rows import NumberedRows, row_after, rows_where
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import LinearState
from streamsvm.solvers.linear.step import Step
from streamsvm.support import density
from streamsvm.support.declaration import NamedArrays, Range, as_float
from streamsvm.support.interruptions import Changes
from streamsvm.support.rows import Rows, cut, dense, shape, sparse

_T0 = Range(1e-300, 1e300)


class LinearModel(Model):
    """Learns rows by stochastic gradients, at a rate that the first examples choose.

    Parameters
    ----------
    solver
        What it learns with.
    sparse
        True, False, or None: the first examples decide whether rows become sparse.
    is_sparse
        Whether they are from the start.
    finds_rate
        Whether the first examples choose the rate.
    limit, buckets
        The largest number of features; the number of columns that names are hashed to, or None.

    Attributes
    ----------
    factors_of_classes
        float64 (classes,): what the loss of examples of each class is multiplied by.

    """

    def __init__(
        self,
        solver: LinearSolver,
        *,
        sparse: bool | None,
        is_sparse: bool,
        finds_rate: bool,
        limit: int,
        buckets: int | None,
    ) -> None:
        self.solver, self.outputs = solver, GrowingOutputs(0)
        self.sparse, self.is_sparse, self.finds_rate = sparse, is_sparse, finds_rate
        self.limit, self.buckets = limit, buckets
        self.factors_of_classes = np.zeros(0)
        self.n_learnt, self.n_features = np.zeros(1, np.int64), 0
        if finds_rate or (sparse is None and buckets is None):
            solver.first_rows = RateSearchRows()

    @property
    def state(self) -> LinearState | None:
        """The weights; None before the first example."""
        return self.solver.state

    @state.setter
    def state(self, state: LinearState | None) -> None:
        self.solver.state = state

    def empty_state(self) -> LinearState:
        """Return an empty state with room for its features and classes."""
        return self.solver.new_state(self.n_outputs, self.n_features)

    @property
    def n_outputs(self) -> int:
        """The number of outputs: 1 for two classes, otherwise the number of classes."""
        return int(self.outputs.zeros(1).size)

    def make_room(self, d: int) -> LinearState:
        """Return the state, created or grown to hold so many features and all classes."""
        sizes = self.limit, self.buckets is not None
        return self.solver.state_for(self.n_outputs, d, sizes, self.is_sparse)

    # Learning

    def with_class(self, factor: float) -> list[Changes]:
        """Return what changes as a class is added, whose losses are multiplied by a factor."""
        n = self.n_classes + 1
        factors = np.append(self.factors_of_classes, factor)
        new = {"outputs": GrowingOutputs(n), "solver": self.solver.of_classes(n)}
        return [(self.__dict__, new | {"factors_of_classes": factors})]

    def weighted(self, factors: Sequence[float], is_balanced: bool) -> list[Changes]:
        """Return what changes as losses are multiplied by other factors from now on."""
        return [(self.__dict__, {"factors_of_classes": np.array(factors, np.float64)})]

    def learn(self, rows: NumberedRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return margins before."""
        y, w = rows.y, rows.w
        if not (self.factors_of_classes == 1.0).all():
            w = w * self.factors_of_classes[y.astype(np.int64)]
        margins = self.outputs.zeros(len(y))
        of_outputs = margins.reshape(len(y), self.n_outputs)
        start, seen, is_example, solver = 0, self.n_examples, rows.numbers > 0, self.solver
        self.n_features = max(self.n_features, shape(rows.x)[1])
        while start < len(y):
            kept, stop = solver.first_rows, len(y)
            if kept is not None:
                stop = row_after(rows.numbers, start, max(1, kept.due_at - seen))
            part = slice(start, stop)
            # They may have become sparse since the batch was read.
            fresh = cut(rows.x, start, stop)
            fresh = sparse(fresh) if self.is_sparse else fresh
            self.make_room(shape(fresh)[1])
            learnt = np.flatnonzero(is_example[part])
            done: list[object] = []
            try:
                solver.learn((fresh, y[part], w[part]), of_outputs[part], done)
            finally:
                # After an interruption, too, all that were learnt are counted.
                n = self.n_learnt[0] = seen + len(done) * len(learnt)
                if kept is not None and n > seen:
                    kept.add(rows_where(fresh, is_example[part]), y[part][learnt], w[part][learnt])
                    if n >= kept.due_at:
                        self.search_rate(n)
            start, seen = stop, n
        return margins

    def search_rate(self, n: int) -> None:
        """Choose the rate by the first n examples, and decide whether rows are sparse."""
        kept = self.solver.first_rows
        if kept is None:
            return
        kept.due_at = rate_search.next_search(n)
        x, y, weight = kept.all(self.n_features)
        if self.sparse is None and not self.is_sparse and density.are_sparse(dense(x)):
            self.is_sparse, x = True, sparse(x)
            kept.become_sparse(x)
            self.make_room(min(FEWEST_SPARSE, self.limit))
        if self.finds_rate:
            self.solver.choose_rate(self.make_room(0), x, y, weight)
        if n >= rate_search.LAST:
            self.solver.first_rows = None

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of rows, float64 (n,) or (n, classes)."""
        n, d = shape(x)
        margins = self.outputs.zeros(n)
        if self.state is not None:
            out = margins.reshape(n, self.n_outputs)
            linear_state.margins_of(self.make_room(d), x, self.solver.schedule, out)
        return margins

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if self.sparse is not False:
            self.is_sparse = True
            if not self.finds_rate:
                # The first examples have nothing left to decide.
                self.solver.first_rows = None

    # Events

    def event_parts(self) -> Parts:
        """Return what compiled code uses for an event."""
        solver = self.solver
        return solver.state, None, solver.schedule

    def bound_kernel(self, state: Any) -> Step:
        """Return what compiled code takes as the kernel."""
        return self.solver.step

    def room_for_features(self) -> int:
        """Return the number of features that the state has room for."""
        return self.solver.room_for_features()

    def cost_of(self, number: float) -> float:
        """Return the cost of the next example, if it is of this class."""
        return self.factors_of_classes.item(int(number))

    def after_event(self, event: LearntEvent, number: float, cost: float) -> None:
        """Keep an event that was learnt, if it is one of the first."""
        kept = self.solver.first_rows
        if kept is not None:
            kept.add(event.row(), np.array([number]), np.array([cost]))
            if (n := self.n_examples) >= kept.due_at:
                self.search_rate(n)

    # What can be asked without learning

    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return the primal objective over rows of classes; -1: of none that was seen."""
        factors = np.append(self.factors_of_classes, 1.0)
        weights = weights * factors[classes.astype(np.int64)]
        state = self.make_room(shape(x)[1])
        return float(linear_state.primal(state, x, classes, weights, self.solver.schedule))

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``weights``, and of the ``first_rows`` kept for the rate search."""
        return self.solver.memory_parts

    # Files and copies

    def as_file(self) -> Content:
        """Return what a file holds of it: JSON values and arrays."""
        content, arrays = super().as_file()
        rows = self.solver.first_rows
        if rows is not None and rows.n_rows != self.n_examples:
            # Ctrl-C came between learning an example and keeping it: no reader would take the rows.
            rows = None
        content |= {"t0": self.solver.schedule.t0, "has_first": rows is not None}
        return content, arrays | ({} if rows is None else rows.as_arrays(self.n_features))

    def read(self, content: Json, arrays: NamedArrays) -> None:
        """Set what `as_file` returned; raise ValueError if it does not fit."""
        super().read(content, arrays)
        solver = self.solver
        t0 = as_float("t0", content.get("t0"))
        _T0.check("t0", t0, {})
        solver.schedule, solver.first_rows = solver.schedule._replace(t0=t0), None
        if checked(content.get("has_first"), bool, "has_first"):
            rows = RateSearchRows.from_arrays(arrays, self.n_examples, self.lengths)
            if rows.is_sparse and not self.is_sparse:
                raise ValueError("the first rows are sparse, but is_sparse is false")
            solver.first_rows = rows

    def for_copy(self) -> Self:
        """Return it without the unused room for features."""
        return self.changed(solver=self.solver.without_room(self.n_features))
