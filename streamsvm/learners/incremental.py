"""An exact SVM after every example, which can take examples back."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import check_size
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.labels.label_column import Label
from streamsvm.learners.bases.exact.cost_changes import CostedLearner, checked_C
from streamsvm.learners.bases.exact.results import Influence, LeaveOneOut
from streamsvm.learners.bases.kernel.remains import checked_ids
from streamsvm.learners.bases.kernel.support_vectors import SupportVectors, in_order
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.exact.exact_classes import ExactClasses
from streamsvm.models.model import Kernel
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.incremental import whole
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.support.locked import guarded, locked


class IncrementalSVMClassifier(CostedLearner, Learner):
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
    takes_balanced = True
    tau = 1e-6
    averages = (
        "labels, means that stand for missing values, gamma if it follows the data, balanced class "
        "weights, and the calibration of probabilities"
    )

    model: ExactClasses

    def __init__(
        self,
        kernel: Kernel | None = None,
        C: float = 1.0,
        class_weight: ClassWeight | str | None = None,
        window: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        missing: str = "mean",
        selection: Selection | None = None,
    ) -> None:
        self.window = check_size("window", window, 2)
        model = ExactClasses(kernel, checked_C(C), self.window, cache_mb)
        super().__init__(model, check_size("max_features", max_features) or LIMIT, None, missing)
        self.kernel, self.max_features, self.cache_mb = kernel, max_features, cache_mb
        self.class_weight = class_weight
        self.choose_by(selection)

    @property
    def C(self) -> float:  # type: ignore[override]  # noqa: N802
        """The cost of errors."""
        return self.model.C

    @C.setter
    def C(self, C: float) -> None:  # noqa: N802
        self.model.C = C

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"kernel": kernels.Linear(), "C": 10.0, "class_weight": "balanced", "window": 40}

    def costs_now(self, classes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of these classes would have now."""
        return self.model.costs.now(self.C, classes) * weights

    def costs_of_kept(self, problem: ExactProblem, C: float) -> np.ndarray:
        """Return the C_i that all examples of a problem would have now, for a weight of 1."""
        return self.model.costs_of_kept(problem, C)

    def _facts(self) -> dict[str, object]:
        return super()._facts() | {
            "support vectors": self.n_support_vectors,
            "bias": self.bias,
            "dual objective": self.dual,
            "delta": self.delta,
            "duality gap": self.duality_gap(),
        }

    @property
    def bias(self) -> float:
        """The constant b of the decision function."""
        return self.targets.direction * self.problem.bias

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
        margins = y * whole.decisions_without(problem, exact=not estimate)
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
            gamma = whole.sensitivity(problem, s) if beta else 0.0
            label = self.targets.labels.seen[int(y > 0.0)]
            margin = y * (y - h)
            objective = beta * h + 0.5 * gamma * beta * beta
            own = Influence(label, margin, margin - y * gamma * beta, objective)
            found[int(numbers[s])] = own
        return found

    def _y_of_kept(self) -> Iterable[tuple[Label, ...]]:
        seen, sides = self.targets.labels.seen, self.problem.facts["y"][: self.problem.n].tolist()
        return ((seen[y > 0.0],) for y in sides)

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel, C, class weights, window."""
        window = "" if self.window is None else f", window={self.window}"
        return f"{self.problem.kernel!r}, C={self.C:g}{self._weights_in_words}{window}"


register_learner(IncrementalSVMClassifier, "incremental")
