"""The base class of linear learners: what is the same for all stochastic gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._parameter_checks import check_class_weight, check_size, weights_of
from streamsvm.features import absent, batches, density, frames
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import check_present
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.labels.targets import GrowingTargets
from streamsvm.learners.bases.event_path import Bound, EventPath
from streamsvm.learners.bases.late_rows import row_after, rows_where
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.linear import rate_search
from streamsvm.learners.bases.linear.linear_solver import FEWEST_SPARSE, LinearSolver
from streamsvm.learners.bases.linear.rate_search import RateSearchRows
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear.state import LinearState
from streamsvm.solvers.linear.step import Step
from streamsvm.support.locked import guarded
from streamsvm.support.rows import Rows, cut, dense, shape, sparse


class LinearLearner(Learner):
    """A classifier with one linear function, or with one for each of several classes.

    Parameters
    ----------
    solver
        What it learns with.
    others
        As in `SVMSGDClassifier`.

    """

    new_targets = GrowingTargets
    has_dual = False
    chunk = 65_536

    loss: str  # a parameter of all linear learners

    def __init__(
        self,
        solver: LinearSolver,
        t0: float | None,
        class_weight: Any,
        sparse: bool | None,
        hashing: int | None,
        max_features: int,
        missing: str,
        max_classes: int | None,
    ) -> None:
        limit = check_size("max_features", max_features) or LIMIT
        super().__init__(limit, check_size("hashing", hashing), missing)
        self.max_classes = max_classes
        self.targets.labels.most = check_size("max_classes", max_classes, 2)
        self.solver = solver
        self.t0, self.class_weight = t0, class_weight
        self.sparse, self.hashing, self.max_features = sparse, hashing, max_features
        self.is_sparse = density.check_sparse(sparse, hashing)
        check_class_weight(class_weight)
        if t0 is None or (sparse is None and hashing is None):
            solver.first_rows = RateSearchRows()

    @property
    def state(self) -> LinearState | None:
        """The weights; None before the first example."""
        return self.solver.state

    @state.setter
    def state(self, state: LinearState | None) -> None:
        self.solver.state = state

    @property
    def n_outputs(self) -> int:
        """The number of outputs: 1 for two classes, otherwise the number of classes."""
        return int(self.targets.zeros(1).size)

    def empty_state(self) -> LinearState:
        """Return an empty state with room for the features and labels seen."""
        return self.solver.new_state(self.n_outputs, len(self.schema))

    def make_room(self, d: int) -> LinearState:
        """Return the state, created or grown to hold so many features and all classes."""
        return self.solver.state_for(self.n_outputs, d, self.schema, self.is_sparse)

    # Learning

    def add_class(self, label: Any) -> None:
        """Add a class, if it is new."""
        if not self.targets.knows(label):
            targets = self.targets.with_label(label)
            # Set in one step, so that all matches after an interruption.
            self.__dict__.update(targets=targets, solver=self.solver.of_classes(targets.n_classes))

    def learn_rows(self, rows: LabelledRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return margins before."""
        w, y = rows.w, rows.y
        if self.class_weight is not None:
            w = w * rows.labels.numbers(lambda label: self.cost_of(label, 0.0))
        margins = self.targets.zeros(len(y))
        of_outputs = margins.reshape(len(y), self.n_outputs)
        start, seen, is_example, solver = 0, self.n_examples, rows.numbers > 0, self.solver
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
            done: list[Any] = []
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
        x, y, weight = kept.all(len(self.schema))
        if self.sparse is None and not self.is_sparse and density.are_sparse(dense(x)):
            self.is_sparse, x = True, sparse(x)
            kept.become_sparse(x)
            self.make_room(min(FEWEST_SPARSE, self.schema.limit))
        if self.t0 is None:
            self.solver.choose_rate(self.make_room(0), x, y, weight)
        if n >= rate_search.LAST:
            self.solver.first_rows = None
            absent.notice(self)

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of rows, float64 (n,) or (n, classes)."""
        n, d = shape(x)
        margins = self.targets.zeros(n)
        if self.state is not None:
            out = margins.reshape(n, self.n_outputs)
            linear_state.margins_of(self.make_room(d), x, self.solver.schedule, out)
        return margins

    def become_sparse(self) -> None:
        """Store rows as their nonzero features from now on, unless they shall be dense."""
        if self.sparse is not False:
            self.is_sparse = True
            if self.t0 is not None:
                # The first examples have nothing left to decide.
                self.solver.first_rows = None

    def diagonal_of(self, x: Rows) -> np.ndarray:
        """Return k(x, x) of rows, which is not used: no row of finite values is refused."""
        return np.zeros(shape(x)[0])

    # Events

    def event_parts(self) -> Bound:
        """Return the objects that compiled code uses for an event."""
        return self.solver.state, None, self.solver.schedule, self.targets

    def bound_kernel(self, state: Any) -> Step:
        """Return what compiled code takes as the kernel."""
        return self.solver.step

    def room_for_features(self) -> int:
        """Return the number of features that the state has room for."""
        return self.solver.room_for_features()

    def cost_of(self, label: Any, number: float) -> float:
        """Return the cost of the next example, if it has this label."""
        return 1.0 if not self.class_weight else float(self.class_weight.get(label, 1.0))

    def after_event(self, path: EventPath, number: float, cost: float) -> None:
        """Update the learner after an event was learnt by `EventPath`."""
        kept = self.solver.first_rows
        if kept is not None:
            kept.add(path.row(), np.array([number]), np.array([cost]))
            if (n := self.n_examples) >= kept.due_at:
                self.search_rate(n)

    # What can be asked without learning

    @property
    def description(self) -> str:
        """The parameters in use that matter most: loss, lambda and rate."""
        return f"{self.loss} loss, lambda {self.solver.schedule.lam:g}, rate {self.rate:.3g}"

    @property
    def weights(self) -> dict[Any, Any]:
        """{feature: weight}; with more than two classes {label: {feature: weight}}."""
        with self.lock:
            names = self.feature_names if self.hashing is None else list(range(self.hashing))
            rows = self.solver.predicting_weights()[:, : len(names)]
            rows = (self.targets.direction * rows).tolist()
            return self._by_label([dict(zip(names, row, strict=True)) for row in rows], {})

    @property
    def intercept(self) -> Any:
        """The bias; with more than two classes {label: bias}."""
        turn = self.targets.direction
        return self._by_label([turn * bias for bias in self.solver.biases()], 0.0)

    def _by_label(self, of_outputs: list[Any], nothing: Any) -> Any:
        """Return what belongs to the only output, `nothing` before it exists; or by label."""
        if self.targets.has_one_margin:
            return of_outputs[0] if of_outputs else nothing
        return dict(zip(self.targets.labels.seen, of_outputs, strict=True))

    @property
    def rate(self) -> float:
        """The learning rate of the next example: the factor of its loss gradient."""
        return self.solver.rate

    @guarded
    def objective(self, X: Any, y: Any, w: Any = 1.0) -> float:
        """Return the objective that learning minimises: lambda / 2 ||w||^2 plus the mean loss.

        Parameters
        ----------
        X, y, w
            Rows, labels and weights as in `learn_many`. A label that was never learnt is on the
            negative side of all outputs.

        Returns
        -------
        The objective over these rows.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            Rows, labels or weights cannot be used.

        """
        x = batches.known_rows(self.schema, X, self.is_sparse)
        labels = frames.labels_of(y, shape(x)[0])
        check_present(labels)
        seen, number_of = self.targets.labels.seen, self.targets.number_of
        classes = labels.numbers(lambda label: number_of(label) if label in seen else -1.0)
        return self.objective_of(x, classes, weights_of(w, len(labels)))

    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return the primal objective over rows; `classes` and `weights` are those of the rows."""
        if self.class_weight is not None:
            # The last one is that of labels that were never learnt.
            labels = [*self.targets.labels.seen, None]
            costs = np.array([self.cost_of(label, 0.0) for label in labels])
            weights = weights * costs[classes.astype(np.int64)]
        state = self.make_room(shape(x)[1])
        return float(linear_state.primal(state, x, classes, weights, self.solver.schedule))

    @property
    def kappa(self) -> float:
        """The share of examples that changed no weights; 0 before the first example."""
        n = self.n_examples * self.n_outputs
        return 1.0 - self.solver.n_updates / n if n else 0.0

    @property
    def certificate(self) -> Certificate:
        """No bound, and the reason: there are no dual coefficients."""
        return Certificate(
            None,
            "no certificate: stochastic gradients keep no dual coefficients whose gap could be "
            "measured; follow the objective on the sample",
        )

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: examples, and updates of the weights."""
        own = {"examples": self.n_examples, "updates": self.solver.n_updates}
        return own | self._ignored()

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of ``weights``, ``first_rows`` kept for the rate search, and ``names``."""
        return self.solver.memory_parts | {"names": self.schema.memory_usage}

    # Copies

    def _contents(self) -> dict[str, Any]:
        return super()._contents() | {"solver": self.solver.without_room(len(self.schema))}
