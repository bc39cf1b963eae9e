"""An exact SVM after every example, which can take examples back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import check_number, check_positive, check_size
from streamsvm.errors import ParameterError
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.learners.bases.exact import exact_file, unlearning
from streamsvm.learners.bases.exact.exact_learner import ExactLearner, in_double
from streamsvm.learners.bases.exact.results import Influence, LeaveOneOut
from streamsvm.learners.bases.kernel import auto_gamma
from streamsvm.learners.bases.kernel.class_costs import ClassCosts
from streamsvm.learners.bases.registry import register_learner
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.incremental import without
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.support.locked import locked

LARGEST_C = 1e8
LEAST_COST = 1e-12
"""An example with a lower cost is not kept, as one of weight 0."""

Where = Callable[[dict[Name, float], Any], bool]


class IncrementalSVMClassifier(ExactLearner):
    """Exact SVM with kernels and a bias: the optimum after each example, and after taking any back.

    The solution is followed while the coefficient of an example grows from 0, or falls to 0, so
    that the conditions of optimality hold at each moment (Cauwenberghs and Poggio). All examples
    are kept, with a matrix over those on the margin: it is for up to some 10,000 examples, of which
    some may have to be forgotten, or where the exact answer matters. For more take
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
        Megabytes for kernel rows of examples that are not on the margin; 200 by default: all of
        5,000 examples.
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
        if kernel is not None:
            kernels.check_kernel(kernel)
        self.kernel, self.C, self.max_features = kernel, _checked_C(C), max_features
        self.class_weight = class_weight
        self.window, self.cache_mb = check_size("window", window, 2), cache_mb
        self.choose_by(selection)
        self.costs = ClassCosts(class_weight, takes_balanced=True)
        cache_bytes = int(check_number("cache_mb", cache_mb, 0) * 1e6)
        self.n_passed = 0
        self.problem = ExactProblem(
            kernels.RBF(gamma=1.0) if kernel is None else kernel, cache_bytes
        )
        self.moments = auto_gamma.new_moments(0)
        self.state = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"kernel": kernels.Linear(), "C": 10.0, "class_weight": "balanced", "window": 40}

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
        problem, y, number = self.problem, float(row.y[0]), int(row.numbers[0])
        n = self.n_examples + 1
        if cost >= LEAST_COST and not np.any(self.numbers == number):
            low, high = min(0.0, y * cost), max(0.0, y * cost)
            problem.add(x, y, low, high, number, float(row.w[0]))
        else:
            self.n_passed += 1
        self.costs.count(row.y)
        while self.window is not None and problem.n > self.window:
            problem.remove(int(problem.facts["arrived"][: problem.n].argmin()))
        if self.kernel is None and n <= auto_gamma.LAST_SET:
            self.moments = auto_gamma.updated(self.moments, n - 1, row.x)
        if n & (n - 1) == 0:
            self._adapt(n)

    def _adapt(self, n: int) -> None:
        """Set gamma and class weights by the examples so far: their number is a power of two."""
        problem = self.problem
        if self.kernel is None and n <= auto_gamma.LAST_SET:
            gamma = auto_gamma.gamma_of(self.moments, n)
            if auto_gamma.is_worth_it(problem.kernel.gamma, gamma):
                problem.begin_anew(kernels.RBF(gamma=gamma))
        if self.costs.is_balanced and self.costs.counts.min() > 0:
            self.problem = self._with_costs(self.C)

    def _with_costs(self, C: float) -> ExactProblem:
        """Return the problem with the costs that all examples would have now."""
        problem = copy.deepcopy(self.problem)
        problem.settle()
        n = problem.n
        y = problem.state.target[:n].copy()
        costs = self.costs.now(C, y, self.targets) * problem.facts["weight"][:n]
        costs = np.maximum(costs, LEAST_COST)
        low, high = np.minimum(0.0, y * costs), np.maximum(0.0, y * costs)
        problem.set_bounds(np.arange(n), low, high)
        return problem

    @locked
    def set_C(self, C: float) -> None:  # noqa: N802
        """Change the cost of margin errors; the solution is the exact one for it.

        Parameters
        ----------
        C
            The new cost, above 0 and at most 1e8.

        """
        C = _checked_C(C)
        # On a copy: what interrupts it leaves the solution for the old cost.
        self.problem = self._with_costs(C)
        self.C = C

    # Taking examples back

    unlearn, audit = unlearning.unlearn, unlearning.audit

    def unlearn_one(self, id: int) -> None:
        """Take an example back: the solution is that of the others, as if it had never come.

        Scale, gamma, class weights and calibration keep what they were told of it.

        Parameters
        ----------
        id
            Its number, counted from 1, or the id that it was learnt with.

        Raises
        ------
        ParameterError
            No example with this id is kept; nothing has changed.

        """
        self.unlearn_many([id])

    @locked
    def unlearn_many(self, ids: Iterable[int]) -> None:
        """Take examples back: see `unlearn_one`.

        Parameters
        ----------
        ids
            Their numbers or ids.

        Raises
        ------
        ParameterError
            An id is not kept; nothing has changed.

        """
        # An interrupted change is finished first: it may move slots.
        self.problem.settle()
        wanted = np.unique(self._checked_ids(ids))
        # Of several on a copy: what interrupts it takes none of them back.
        problem = self.problem if wanted.size < 2 else copy.deepcopy(self.problem)
        for number in wanted.tolist():
            numbers = problem.facts["number"][: problem.n]
            problem.remove(int(np.flatnonzero(numbers == number)[0]))
        self.problem = problem

    def _checked_ids(self, ids: Any) -> np.ndarray:
        """Return ids as an array; raise ParameterError if no example has one of them."""
        wanted = np.array([*ids] if isinstance(ids, Iterable) else [ids]).reshape(-1)
        unknown = wanted[~np.isin(wanted, self.numbers)]
        if unknown.size:
            first = ", ".join(map(repr, unknown[:5].tolist()))
            raise ParameterError(
                f"ids {first}{', ...' if unknown.size > 5 else ''}: no such example is kept; ids "
                "are those given to learn_many, or count the examples from 1"
            )
        return wanted

    def forget(self, where: Where) -> int:
        """Take all examples back for which a function says so.

        Parameters
        ----------
        where
            where(x, y) of the features by name, as the learner gets them (standardised behind a
            scaler), and the label.

        Returns
        -------
        int
            How many they were.

        """
        with self.lock:
            self.problem.settle()
            names, signs = self.schema.names, self.problem.state.target[: self.problem.n].tolist()
            labels = map(self.targets.labels.label_of_sign, signs)
            rows, numbers = self.problem.rows(len(names)).tolist(), self.numbers.tolist()
            found = [
                number
                for row, y, number in zip(rows, labels, numbers, strict=True)
                if where(dict(zip(names, row, strict=True)), y)
            ]
            self.unlearn_many(found)
        return len(found)

    @locked
    def leave_one_out(self, estimate: bool = False) -> LeaveOneOut:
        """Predict each example by the model of all others.

        Parameters
        ----------
        estimate
            False, the default: exactly, by taking each support vector back in turn. True: as far as
            no other example changes sides (the span estimate), which costs hardly anything.

        Returns
        -------
        LeaveOneOut
            The error, and the margin of each example.

        """
        # Of a copy: looking changes nothing, whatever interrupts it.
        problem = copy.deepcopy(self.problem)
        problem.settle()
        n = problem.n
        y, numbers = problem.state.target[:n].copy(), problem.facts["number"][:n].copy()
        margins = y * without.decisions_without(problem, exact=not estimate)
        wrong = np.where(y > 0.0, margins <= 0.0, margins < 0.0)
        error = float(wrong.mean()) if n else float("nan")
        return LeaveOneOut(error, numbers, margins)

    @locked
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
        problem = copy.deepcopy(self.problem)
        problem.settle()
        numbers = problem.facts["number"][: problem.n]
        slots = np.flatnonzero(problem.state.beta[: problem.n])
        if ids is not None:
            slots = np.flatnonzero(np.isin(numbers, self._checked_ids(ids)))
        found = {}
        for s in slots.tolist():
            state = problem.state
            y, h, beta = (float(a[s]) for a in (state.target, state.h, state.beta))
            gamma = without.sensitivity(problem, s) if beta else 0.0
            label = self.targets.labels.label_of_sign(y)
            margin = y * (y - h)
            objective = beta * h + 0.5 * gamma * beta * beta
            own = Influence(label, margin, margin - y * gamma * beta, objective)
            found[int(numbers[s])] = own
        return found

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel, C, class weights, window."""
        weights = "" if self.class_weight is None else f", class_weight={self.class_weight!r}"
        window = "" if self.window is None else f", window={self.window}"
        return f"{self.problem.kernel!r}, C={self.C:g}{weights}{window}"


def _checked_C(C: float) -> float:  # noqa: N802
    """Return a cost; with larger ones too few digits of the solution are left."""
    if check_positive("C", C) > LARGEST_C:
        raise ParameterError(f"C={C!r}: use a number of at most {LARGEST_C:g}")
    return C


register_learner(
    IncrementalSVMClassifier,
    "incremental",
    more=exact_file.as_file,
    read_more=exact_file.read,
)
