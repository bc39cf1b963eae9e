"""The ambiguous SVM as a River classifier: labels are bags of candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import (
    MOST_STEPS,
    check_number,
    check_seed,
    check_size,
)
from streamsvm.errors import ParameterError
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT
from streamsvm.labels.bag_labels import BAGS, BagTargets, bag_of, bags_of
from streamsvm.labels.label_column import LabelColumn
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.learners.bases import bag_events
from streamsvm.learners.bases.kernel import bag_finishing, kernel_batches, remains, unlearning
from streamsvm.learners.bases.kernel.ambiguous_solver import (
    AmbiguousSolver,
    LinearAmbiguousSolver,
)
from streamsvm.learners.bases.kernel.availability import of_examples, of_primal
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.kernel.support_vectors import SupportPatterns, as_matrix
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.learners.bases.registry import register_learner
from streamsvm.monitor.certificate import Certificate
from streamsvm.support.locked import locked
from streamsvm.support.rows import Rows, shape


class AmbiguousSVMClassifier(KernelLearner):
    """Online SVM of many classes that learns from bags of candidate labels.

    The label of an example is one label, or a bag of them: a set, frozenset, list or array, of
    which at least one should be correct; it is not known which. In a batch a list column of Arrow
    has bags, too. A bag does not count votes. All labels in the bag are ranked above all others:
    with scores s_y the loss of an example is the mean of max(0, 1 - s_y + s_z) over the
    pairs of a label y in the bag and a label z outside, and |w|^2 / 2 + C (sum of losses) is
    minimised. If the other candidates are there by chance, the model with the least loss predicts
    the correct labels, even if some bags lack them (Theorem 12 of the thesis).

    Without a kernel there is a weight for each feature and label, and each example is learnt by one
    step in the dual (Algorithm 23): memory grows with features times labels. Scale the features
    first (`StandardScaler` in front): otherwise those with the largest values decide. With a kernel
    the examples with a loss are kept, so that memory and time grow with the stream (set
    `max_support_vectors` if it has no end), and `reprocess` looks at some of them again after each
    example.

    Labels may appear at any time, in any bag; an example says that its bag is above the labels
    known so far. A bag of all labels known changes nothing, an empty one raises `LabelError`. A
    bag may shrink later: learn the example again, by its id in `learn_many`, with the smaller bag.
    With a kernel what the first bag did is taken back, without one this is simply a further step.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`, with which examples are kept. None, the default: explicit
        weights and a bias.
    C
        Positive: the largest step on an example. None, the default: .03 without a kernel, .1 with
        one.
    reprocess
        How many steps on random examples kept follow each example, at least 0; 0 by default. It
        needs a kernel.
    sparse, hashing, max_features, cache_mb, n_jobs, missing
        As in `LASVMClassifier`.
    seed
        Seed of the random draws of examples; None: different ones each time.
    max_classes
        At least 2, 1000 by default: one more label is refused. None: no limit.
    max_support_vectors
        Keep at most this many examples, at least 2: the one with the smallest coefficients is
        removed, and they are added to those of its nearest neighbour with the same bag, if there is
        one. It needs a kernel. None, the default: no limit.
    averaged
        True, the default: without a kernel, predict by the mean of the weights after each example,
        which takes 16 bytes a weight. False, for streams that drift: by the last weights, 8 bytes.
    bias_rate
        Without a kernel, the rate of the bias divided by that of the weights, at least 0; .1 by
        default, 1 as that of a feature that is always 1. 0: no bias.

    Attributes
    ----------
    weights, intercept
        {label: {feature: weight}}, {label: bias}: those that predict; without a kernel only.
    regret_bound
        The mean loss so far exceeds that of any w with the present norm by at most this; None with
        `max_support_vectors`.
    mean_loss
        The mean loss of the examples so far, each before it was learnt. With a kernel an example
        counts once more when labels came since and `reprocess` or `finish` takes them into its
        loss.
    n_uninformative
        How many bags had all labels known.
    kernel_, n_support_vectors, classes, feature_names, memory_usage
        As in `LASVMClassifier`.

    References
    ----------
    Bordes, New Algorithms for Large-Scale Support Vector Machines, thesis (2010), 6.1, Algorithm
    23; Lacoste-Julien, Jaggi, Schmidt, Pletscher, Block-Coordinate Frank-Wolfe Optimization for
    Structural SVMs, ICML (2013).

    Examples
    --------
    >>> from streamsvm import AmbiguousSVMClassifier
    >>> model = AmbiguousSVMClassifier()
    >>> for _ in range(20):
    ...     model.learn_one({"round": 1.0, "red": 1.0}, {"apple", "pear"})
    ...     model.learn_one({"round": 1.0, "red": 1.0}, {"apple", "plum"})
    ...     model.learn_one({"red": 1.0, "long": 1.0}, ["plum", "pear"])
    >>> model.predict_one({"round": 1.0, "red": 1.0})
    'apple'

    """

    new_targets, new_event_path = BagTargets, bag_events.BagPath
    solver: AmbiguousSolver
    has_dual = True  # of the class: a learner without a kernel has none that can be measured
    window = None
    chooses_gamma = False  # no kernel is no RBF here, as the command has to know

    def __init__(
        self,
        kernel: Any = None,
        C: float | None = None,
        reprocess: int = 0,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
        max_classes: int | None = 1000,
        missing: str = "mean",
        max_support_vectors: int | None = None,
        averaged: bool = True,
        bias_rate: float = 0.1,
    ) -> None:
        steps = check_number("reprocess", reprocess, 0, MOST_STEPS)
        limit = check_size("max_support_vectors", max_support_vectors, 2)
        for name, value in {"reprocess": steps, "max_support_vectors": limit}.items():
            if kernel is None and value:
                raise ParameterError(
                    f"{name}={value:g} without a kernel: no example is kept; leave it out, or use "
                    "kernel=kernels.Linear()"
                )
        bias_rate = check_number("bias_rate", bias_rate, 0.0, 1e6)
        solver: AmbiguousSolver = LinearAmbiguousSolver(bool(averaged), bias_rate)
        if kernel is not None:
            solver = AmbiguousSolver(kernel, steps, cache_mb, seed, limit)
        super().__init__(
            solver,
            solver.kernel,
            KernelParameters(sparse, hashing, max_features, missing, cache_mb, n_jobs, None),
            C=C if C is not None else 0.03 if kernel is None else 0.1,
        )
        self.kernel, self.has_dual, self.C = kernel, kernel is not None, cast(Any, C)
        self.averaged, self.bias_rate = bool(averaged), bias_rate
        self.reprocess, self.seed = reprocess, check_seed(seed)
        self.max_classes, self.max_support_vectors = max_classes, max_support_vectors
        self.targets.labels.most = check_size("max_classes", max_classes, 2)

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel and C."""
        return super().description if self.has_dual else f"explicit weights, C={self.C_:g}"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"kernel": kernels.RBF(gamma=0.5), "C": 1.0, "reprocess": 2, "seed": 42}

    @property
    def _bags(self) -> BagTargets:
        return cast(BagTargets, self.targets)

    # Learning

    def learn_one(self, x: Mapping[Name, Any], y: Any, w: float = 1.0) -> None:
        """See `Learner.learn_one`; `y` is a text, number or boolean, or a bag of them."""
        if isinstance(y, BAGS):
            with self.lock:
                if bag_events.learn(self, x, y, w):
                    return
            y = bag_of(y)
        super().learn_one(x, y, w)

    def learn_batch(
        self, X: Any, y: Any, w: Any = 1.0, ids: Any = None, late: LateRows | None = None
    ) -> LabelColumn:
        """See `Learner.learn_batch`; labels may be bags."""
        return super().learn_batch(X, bags_of(y), w, ids, late)

    def add_class(self, label: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Add a label, or those of a bag that are new; the numbers of others never change."""
        for one in self._bags.labels.new_in(label):
            super().add_class(one)
        return None

    def margins_of_learning(self, rows: LabelledRows) -> np.ndarray:
        """Return what the solver reads of bags, and replaces by the scores of rows."""
        margins = super().margins_of_learning(rows)
        self._bags.in_bags(rows.labels, margins)
        return margins

    def learn_rows(self, rows: LabelledRows) -> np.ndarray:
        """Learn rows; the signs of bags become those of their best candidates."""
        margins = kernel_batches.learn_rows(self, rows)
        of_bags = np.flatnonzero(rows.y < 0.0)
        if len(of_bags):
            bags = np.zeros_like(margins)
            self._bags.in_bags(rows.labels, bags)
            best = np.where(bags[of_bags] > 0.0, margins[of_bags], -np.inf).argmax(axis=1)
            rows.y[of_bags] = -1.0 - best
        return margins

    finish, best_candidates = bag_finishing.finish, bag_finishing.best_candidates
    unlearn, audit, keeps = map(of_examples, (unlearning.unlearn, remains.audit, remains.keeps))

    # Inspection

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean normalised gap so far, with 95 % probability; by `reprocess`."""
        value = self.looks.bound()
        return Certificate(value, _NO_CERTIFICATE if value is None else _CERTIFIED)

    @property
    def covers(self) -> str:
        """What the gap is about: "kept" examples, or "merged" ones."""
        return "kept" if self.max_support_vectors is None else "merged"

    @property
    @locked
    def mean_loss(self) -> float | None:
        """The mean loss so far, each before learning, by C_i; None before the first example."""
        info = None if self.state is None else self.state.info[0]
        return float(info.losses / info.costs) if info is not None and info.costs else None

    @property
    @locked
    def regret_bound(self) -> float | None:
        """A bound on the mean loss so far less that of the best w with the norm of the present one.

        It is (sum C_i L_i - D + |w|^2 / 2) / sum C_i, with the dual D that was reached, and the w
        that predicts. It is about the losses that `mean_loss` is about. None before the first
        example, and with `max_support_vectors`: the dual is not about those of the stream then.
        """
        info = None if self.state is None else self.state.info[0]
        if info is None or not info.costs or self.max_support_vectors is not None:
            return None
        return float((info.losses - info.dual + 0.5 * self.squared_norm) / info.costs)

    @property
    @locked
    def papers_regret_bound(self) -> float | None:
        """The bound of Proposition 13 for the norm of the present w, |w|^2 / (2 n C) + rho C / 2.

        It is proved, and at least `regret_bound`, if each example counts once: with a kernel, none
        was learnt again, and none kept got a step since labels came. None as for `regret_bound`.
        """
        info = None if self.state is None else self.state.info[0]
        if info is None or not info.costs or self.max_support_vectors is not None:
            return None
        return float((0.5 * info.widths + 0.5 * self.squared_norm) / info.costs)

    @property
    def n_uninformative(self) -> int:
        """How many bags had all labels known: they change nothing."""
        return 0 if self.state is None else int(self.state.info[0].n_all)

    @property
    def dual(self) -> float:
        """The value of the dual objective, also without a kernel.

        Steps raise it. It may fall when an example is learnt again with another bag or weight, and
        at the first step on an example since labels came, whose coefficients shrink before.
        """
        return 0.0 if self.state is None else float(self.state.info[0].dual)

    @property
    @locked
    def weights(self) -> dict[Any, dict[Name, float]]:
        """{label: {feature: weight}}, those that predict; without a kernel only."""
        names, (weights, _) = self.schema.names, self.solver.predicting_weights(len(self.schema))
        columns = [dict(zip(names, column, strict=False)) for column in weights.T.tolist()]
        return dict(zip(self.classes, columns, strict=False))

    @property
    @locked
    def intercept(self) -> dict[Any, float]:
        """{label: bias}, those that predict; without a kernel only."""
        _, biases = self.solver.predicting_weights(len(self.schema))
        return dict(zip(self.classes, biases.tolist(), strict=False))

    @locked
    def support_vectors(self) -> SupportPatterns:
        """Return copies of the examples kept; the label of a bag is a frozenset."""
        names, seen = self.feature_names, self.classes
        if self.state is None or not self.has_dual:
            rows = as_matrix(np.zeros((0, len(names)), np.float32))
            return SupportPatterns(names, rows, np.zeros((0, len(seen))), [], seen)
        rows, coefficients, _ = self.unscaled_expansion()
        kept = np.flatnonzero(self.state.alpha[: len(coefficients)])
        labels = [bag_of([seen[y] for y in np.flatnonzero(bag)]) for bag in self.state.bag.T[kept]]
        return SupportPatterns(names, as_matrix(rows)[kept], coefficients[kept], labels, seen)

    def _objective_of(self, x: Rows, signs: np.ndarray, weights: np.ndarray) -> float:
        """Return |w|^2 / (2 n C) plus the mean loss over rows, after n examples."""
        norm = 0.5 * self.squared_norm / (self.C_ * max(1, self.n_examples))
        if not shape(x)[0]:
            return norm
        return norm + float((weights * self.losses_of(signs, self.margins_of(x))).mean())

    objective_of = of_primal(_objective_of)


_NO_CERTIFICATE = (
    "no certificate: it needs steps on random examples kept, by kernel and reprocess; the regret "
    "bound is about all examples so far"
)
_CERTIFIED = "of the examples kept at each moment"

_RBF = {"kernel": kernels.RBF(gamma=0.5)}

register_learner(
    AmbiguousSVMClassifier,
    "ambiguous",
    variants=({}, _RBF, _RBF | {"max_support_vectors": 100}),
    older={"averaged": False, "bias_rate": 0.0},
)
