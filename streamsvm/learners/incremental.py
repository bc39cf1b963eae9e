"""An exact SVM after every example, which can take examples back."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import check_size
from streamsvm.features.schema import LIMIT
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.labels.targets import sides_of
from streamsvm.learners.bases.event_path import Bound
from streamsvm.learners.bases.exact import exact_file
from streamsvm.learners.bases.exact.cost_changes import CostedModel, checked_C, with_costs
from streamsvm.learners.bases.exact.exact_model import in_double
from streamsvm.learners.bases.exact.results import Influence, LeaveOneOut
from streamsvm.learners.bases.kernel.class_costs import ClassCosts
from streamsvm.learners.bases.kernel.remains import checked_ids
from streamsvm.learners.bases.kernel.support_vectors import SupportVectors, in_order
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import register_learner
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.incremental import without
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.support.locked import guarded, locked
from streamsvm.support.rows import Rows


class IncrementalSVMClassifier(CostedModel, Learner):
    """Exact SVM with kernels and a bias: the optimum after each example, and after taking any back.

    The solution is followed while the coefficient of an example grows from 0, or falls to 0, so
    that the conditions of optimality hold at each moment (Cauwenberghs and Poggio). All examples
    are kept, with a matrix over those on the margin: it is for up to 5,000 or 10,000 examples of
    which some may have to be forgotten, or where the exact answer matters. For more take
    `LASVMClassifier`. Labels are of two classes.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`. None, the default: an RBF whose gamma follows the data, set
        anew at 1, 2, 4, ... 1,024 examples. Features should have one scale
        (`streamsvm.StandardScaler`).
    C
        Cost of margin errors, above 0 and at most 1e8; 1.0 by default. `set_C` changes it.
    class_weight
        None, the default; {label: factor of C}, 1 for labels that are not in it; or "balanced":
        inversely proportional to how often the label came.
    window
        None, the default: all examples are kept; or the number W, at least 2: the solution is that
        of the last W examples.
    max_features
        At most so many names are known; 1,048,576 by default. Rows are kept with all features.
    cache_mb
        Megabytes for kernel rows; those of examples on the margin are kept whatever it is. 200 by
        default: all of 4,096 examples.
    missing, selection
        As in `LASVMClassifier`.

    Attributes
    ----------
    n_kept
        How many examples the solution is of.
    dual, bias, delta
        The dual objective; the constant of the decision function; by how much the conditions of
        optimality are violated at most: 1e-8 or less where features have one scale.
    n_support_vectors, classes, feature_names, memory_usage
        As in `LASVMClassifier`.

    References
    ----------
    Cauwenberghs, Poggio, Incremental and Decremental Support Vector Machine Learning, NIPS 13
    (2000); Laskov, Gehl, Krueger, Mueller, Incremental Support Vector Learning, JMLR 7 (2006).

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import IncrementalSVMClassifier
    >>> model = IncrementalSVMClassifier()
    >>> for x, y in datasets.Bananas().take(300):
    ...     model.learn_one(x, y)
    >>> model.unlearn_one(7)
    >>> model.n_kept, model.n_examples, model.delta < 1e-6
    (299, 300, True)

    """

    hashing = None
    tau = 1e-6
    averages = (
        "labels, means that stand for missing values, gamma if it follows the data, balanced class "
        "weights, and the calibration of probabilities"
    )

    def __init__(
        self,
        kernel: Any = None,
        C: float = 1.0,
        class_weight: Any = None,
        window: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        missing: str = "mean",
        selection: Selection | None = None,
    ) -> None:
        super().__init__(check_size("max_features", max_features) or LIMIT, None, missing)
        self.kernel, self.C, self.max_features = kernel, checked_C(C), max_features
        self.class_weight, self.cache_mb = class_weight, cache_mb
        self.window = check_size("window", window, 2)
        self.begin(kernel, self.window, cache_mb, np.inf)
        self.choose_by(selection)
        self.costs = ClassCosts(class_weight, takes_balanced=True)
        self.state = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"kernel": kernels.Linear(), "C": 10.0, "class_weight": "balanced", "window": 40}

    # What all learners have

    def empty_state(self) -> None:
        """Return None: the arrays are those of the problem."""

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of n rows over the features seen, float64 (n,)."""
        # What an interruption has left unfinished is finished first.
        self.problem.settle()
        return self.problem.decisions(in_double(x))

    def become_sparse(self) -> None:
        """Do nothing: rows are kept with all their features."""

    def event_parts(self) -> Bound:
        """Return no parts: an event is a batch of one row."""
        return None, None, None, self.targets

    def takes_every_row(self) -> bool:
        """Tell whether the learner accepts every row of finite values."""
        return kernels.product_of(type(self.problem.kernel)) == "distance"

    def cost_of(self, label: Any, number: float) -> float:
        """Return the C_i of the next example, if it has this label, for an example weight of 1."""
        return self.C if self.class_weight is None else self.costs.of_next(self.C, label, number)

    def costs_now(self, classes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of these classes would have now."""
        return self.costs.now(self.C, classes, self.targets.labels.seen) * weights

    def add_class(self, label: Any) -> None:
        """Add a class, if it is new."""
        if not self.targets.knows(label):
            self.targets = self.targets.with_label(label)

    @property
    def bias(self) -> float:
        """The constant b of the decision function."""
        return self.targets.direction * self.problem.bias

    # Learning

    def learn_rows(self, rows: LabelledRows) -> np.ndarray:
        """Learn rows, of number 0 only predict; return the margins from before each."""
        self.problem.settle()
        x = in_double(rows.x)
        n, margins = len(x), np.zeros(len(x))
        costs = np.zeros(n)
        learnt = np.flatnonzero(rows.numbers > 0)
        if len(learnt):
            labels = rows.labels.take(learnt)
            costs[learnt] = self.costs.of_rows(self.C, rows.y[learnt], labels) * rows.w[learnt]
        for r in range(n):
            margins[r] = self.problem.decisions(x[r : r + 1])[0]
            if rows.numbers[r] > 0:
                self._learn_row(x[r], rows.part(r, r + 1), float(costs[r]))
        return margins

    def _learn_row(self, x: np.ndarray, row: LabelledRows, cost: float) -> None:
        y, n = float(sides_of(row.y)[0]), self.n_examples + 1
        self.add_example(x, y, cost, int(row.numbers[0]), float(row.w[0]), y)
        self.costs.count(row.y)
        if n & (n - 1) == 0 and self.costs.is_balanced and self.costs.counts.min() > 0:
            self.problem = with_costs(self.problem, self.costs_of_kept, self.C)

    def is_negative(self, y: float) -> bool:
        """Tell whether the coefficient of an example is 0 or less."""
        return y < 0.0

    def costs_of_kept(self, problem: ExactProblem, C: float) -> np.ndarray:
        """Return the C_i that all examples of a problem would have now, for a weight of 1."""
        y = problem.facts["y"][: problem.n]
        return self.costs.now(C, np.maximum(0.0, y), self.targets.labels.seen)

    # Looking at examples

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
        targets = self.targets
        alpha = targets.direction * alpha
        return in_order(names, rows, alpha, self.numbers.copy(), targets.label_of_decision)

    def left_out(self, problem: ExactProblem, estimate: bool) -> LeaveOneOut:
        """Return the result of `leave_one_out` of a problem that may change."""
        problem.settle()
        n = problem.n
        y, numbers = problem.facts["y"][:n].copy(), problem.facts["number"][:n].copy()
        margins = y * without.decisions_without(problem, exact=not estimate)
        wrong = np.where(y > 0.0, margins <= 0.0, margins < 0.0)
        error = float(wrong.mean()) if n else float("nan")
        return LeaveOneOut(error, numbers, margins)

    @guarded
    def influence(self, ids: Iterable[int] | None = None) -> dict[int, Influence]:
        """Return how much examples move the decision and the objective: see `Influence`.

        Parameters
        ----------
        ids
            Numbers or ids; None, the default: of all support vectors.

        Returns
        -------
        dict[int, Influence]
            By id.

        """
        wanted = None if ids is None else checked_ids(ids)
        problem = copy.deepcopy(self.problem)
        problem.settle()
        numbers = problem.facts["number"][: problem.n]
        slots = np.flatnonzero(problem.state.beta[: problem.n])
        if wanted is not None:
            self.check_kept(wanted)
            slots = np.flatnonzero(np.isin(numbers, wanted))
        found = {}
        for s in slots.tolist():
            state = problem.state
            y, h, beta = (float(a[s]) for a in (state.target, state.h, state.beta))
            gamma = without.sensitivity(problem, s) if beta else 0.0
            label = self.targets.labels.seen[int(y > 0.0)]
            margin = y * (y - h)
            objective = beta * h + 0.5 * gamma * beta * beta
            own = Influence(label, margin, margin - y * gamma * beta, objective)
            found[int(numbers[s])] = own
        return found

    def _y_of_kept(self) -> Iterable[tuple[Any, ...]]:
        seen, sides = self.targets.labels.seen, self.problem.facts["y"][: self.problem.n].tolist()
        return ((seen[y > 0.0],) for y in sides)

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel, C, class weights, window."""
        weights = "" if self.class_weight is None else f", class_weight={self.class_weight!r}"
        window = "" if self.window is None else f", window={self.window}"
        return f"{self.problem.kernel!r}, C={self.C:g}{weights}{window}"


register_learner(
    IncrementalSVMClassifier,
    "incremental",
    more=exact_file.as_file,
    read_more=exact_file.read,
)
