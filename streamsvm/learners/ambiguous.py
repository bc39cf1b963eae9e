"""The ambiguous SVM as a River classifier: labels are bags of candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from streamsvm import kernels
from streamsvm._compiling import working_time
from streamsvm._parameter_checks import (
    LARGEST_FACTOR,
    MOST_STEPS,
    check_cost,
    check_number,
    check_seed,
    check_size,
    numbers_of,
)
from streamsvm.errors import LabelError, ParameterError
from streamsvm.features.events import Event
from streamsvm.features.frames import Batch
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT
from streamsvm.labels.bag_labels import BAGS, BagTargets, bag_of, bags_of, judged_one
from streamsvm.labels.label_column import Label, LabelColumn, Labels
from streamsvm.labels.labelled_rows import Ids, Weights
from streamsvm.learners.bases.bag_events import OF_BAG, BagPath
from streamsvm.learners.bases.event_path import EventPath
from streamsvm.learners.bases.kernel.availability import of_primal
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.kernel.support_vectors import (
    SupportPatterns,
    no_patterns,
    patterns_of,
)
from streamsvm.learners.bases.late_rows import LateRows
from streamsvm.learners.bases.learner import LOOKS
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.kernel import finishing
from streamsvm.models.kernel.ambiguous_solver import (
    AmbiguousSolver,
    LinearAmbiguousSolver,
)
from streamsvm.models.model import Kernel
from streamsvm.monitor.certificate import Certificate
from streamsvm.monitor.learnt import TrainingObserver, learnt_one
from streamsvm.solvers.ambiguous import blocks
from streamsvm.support.locked import locked
from streamsvm.support.rows import Rows, shape

_MOST_SWEEPS = 1000
"""`finish` makes so many steps on each example at most."""

_PART = 2**24
"""So many numbers change in one call of compiled code, about: some hundredths of a second."""

_USUAL_BAGS = frozenset((set, frozenset, list))
"""The types that one compiled call takes; the general path takes others, too."""


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

    new_targets, new_event_path = BagTargets, BagPath
    solver: AmbiguousSolver
    # Of the class: a learner without a kernel has no dual that can be measured, nor examples.
    has_dual = gives_back = has_regret = True
    window = None
    chooses_gamma = False  # no kernel is no RBF here, as the command has to know

    def __init__(
        self,
        kernel: Kernel | None = None,
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
            C=check_cost(C) if C is not None else 0.03 if kernel is None else 0.1,
        )
        self.kernel, self.C = kernel, C  # type: ignore[assignment]
        self.has_dual = self.gives_back = kernel is not None
        self.averaged, self.bias_rate = bool(averaged), bias_rate
        self.reprocess, self.seed = reprocess, check_seed(seed)
        self.max_support_vectors = max_support_vectors
        self.limit_classes(max_classes)

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel and C."""
        return super().description if self.has_dual else f"explicit weights, C={self.C_:g}"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {}
        yield {"kernel": kernels.RBF(gamma=0.5), "C": 1.0, "reprocess": 2, "seed": 42}

    @property
    def _bags(self) -> BagTargets:
        return cast(BagTargets, self.targets)

    # Learning

    def _learn_event(self, x: Event, y: Label, w: float) -> bool:
        if isinstance(y, BAGS):
            return self._learn_bag(x, y, w)
        return super()._learn_event(x, y, w)

    def _learn_generally(self, x: Event, y: Label, w: float) -> None:
        super()._learn_generally(x, bag_of(y) if isinstance(y, BAGS) else y, w)

    def _learn_bag(self, x: Event, y: Label, w: float) -> bool:
        """Learn an event with a bag, as given, of two labels or more: see `_learn_event`."""
        if y.__class__ not in _USUAL_BAGS or w.__class__ not in (float, int):
            return False
        numbers, observer = self.targets.labels.numbers, self.observer
        try:
            bag = {int(numbers[one]) for one in y}
        except (KeyError, TypeError):
            return False
        is_usual = len(bag) > 1 and 0.0 <= w <= LARGEST_FACTOR
        if not is_usual or (observer is not None and observer.asks_probabilities):
            return False
        cost = self.model.cost_of(OF_BAG) * w
        began = working_time() if observer is not None else 0.0
        path, label_index = self.event_path, -1
        if path is not None and x.__class__ is dict:
            label_index = path.learn_bag_plain(self, x, bag, cost, w)
        if label_index < 0:
            target = (bag, cost, float(w))
            label_index, path = self._read_and_learn(x, target, BagPath.learn_bag)
        if label_index < 0 or path is None:
            return False
        self.model.after_event(path, OF_BAG, cost)
        if self.model.n_learnt.item() in LOOKS:
            self._look_ahead()
        if observer is not None:
            self._tell_of_bag(observer, path, bag, label_index, w, working_time() - began)
        return True

    def _tell_of_bag(
        self,
        observer: TrainingObserver,
        path: EventPath,
        bag: set[int],
        label_index: int,
        w: float,
        seconds: float,
    ) -> None:
        """Tell the monitor of the event that a path has learnt; `label_index` was predicted."""
        seen = self.targets.labels.seen
        predicted = seen[label_index]
        label = judged_one(frozenset(seen[number] for number in bag), predicted)
        if not observer.note(label, predicted, seconds):
            margin = path.margin
            number = -1.0 - max(sorted(bag), key=margin.__getitem__)
            n, row = self.n_examples, path.row()
            observer.learnt(learnt_one(row, number, label, predicted, margin, w, n, seconds))

    def _learn_batch(
        self, X: Batch, y: Labels, w: Weights, ids: Ids | None, late: LateRows | None
    ) -> LabelColumn:
        return super()._learn_batch(X, bags_of(y), w, ids, late)

    def finish(
        self,
        progress: Callable[[float, int], None] | None = None,
        share: float = 0.01,
        seconds: float | None = None,
    ) -> None:
        """Make steps on the examples kept until the duality gap over them is small.

        Without a kernel no example is kept, and this does nothing. With a large `C` more than 1,000
        steps on each example may be needed: then it ends there, or when the dual grows by less than
        1e-9 of itself in a sweep, and the log says so, and what gap is left.

        Parameters
        ----------
        progress
            Called after each sweep with (gap, number of support vectors). An exception in it, or
            Ctrl-C, leaves a model that can be used.
        share
            Stop when the gap is below this share of the dual; above 0, .01 by default.
        seconds
            As in `LASVMClassifier`.

        """
        check_number("share", share, 1e-6)
        asked = finishing.Asked(seconds, progress, self.alone, _MOST_SWEEPS)

        def some() -> tuple[bool, float, int]:
            model, state = self.model, self.state
            n, kernel, before = int(state.info[0].n), model.bound_kernel(state), model.kept_gap()
            # Ctrl-C can interrupt between two parts.
            d, size = model.n_features, max(1, _PART // max(1, n * model.n_classes))
            for first in range(0, n, size):
                blocks.sweep(state, kernel, first, min(n, first + size), d)
            gap = model.kept_gap().total
            return gap <= share * model.dual, gap, n if before.total > 0.0 else 0

        if self.has_dual:
            finishing.improve(self.model, some, asked)

    def best_candidates(self, X: Batch, y: Labels, ids: Ids | None = None) -> list[Label]:
        """Return the best candidate of each bag by its score: bags shrunk by the model itself.

        To learn rows again with these labels, under the ids that they had, mends what the other
        candidates did, once the model tells most of them apart.

        Parameters
        ----------
        X, y
            Rows and labels as in `learn_many`.
        ids
            The ids of the rows, each another one: those that are kept are scored without their own
            coefficients.

        Returns
        -------
        n labels; a bag without a label that was seen stays as it is.

        Raises
        ------
        ParameterError
            The ids are no whole numbers from 1, one a row, or one is there twice.
        LabelError
            There are not as many labels as rows.

        """
        scores, bags = self.decision_function_many(X), bags_of(y)
        if len(bags) != len(scores):
            raise LabelError(f"{len(bags)} labels, for {len(scores)} rows")
        if (numbers := numbers_of(ids, len(scores))) is not None:
            if np.unique(numbers).size < numbers.size:
                raise ParameterError("ids: one is there twice")
            scores = scores - self.solver.own_scores(numbers, len(self.classes))
        found: list[Label] = self._bags.best_of(bags, scores)
        return found

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

    def _facts(self) -> dict[str, object]:
        facts = super()._facts() | {"dual objective": self.dual}
        if not self.has_dual:
            facts |= {"bias": self.intercept, "largest weights": self.weights}
        return facts

    @property
    @locked
    def weights(self) -> dict[Label, dict[Name, float]]:
        """{label: {feature: weight}}, those that predict; without a kernel only."""
        names, (weights, _) = self.schema.names, self.solver.predicting_weights(len(self.schema))
        columns = [dict(zip(names, column, strict=False)) for column in weights.T.tolist()]
        return dict(zip(self.classes, columns, strict=False))

    @property
    @locked
    def intercept(self) -> dict[Label, float]:
        """{label: bias}, those that predict; without a kernel only."""
        _, biases = self.solver.predicting_weights(len(self.schema))
        return dict(zip(self.classes, biases.tolist(), strict=False))

    @locked
    def support_vectors(self) -> SupportPatterns:
        """Return copies of the examples kept; the label of a bag is a frozenset."""
        names, seen, d = self.feature_names, self.classes, len(self.schema)
        if self.state is None or not self.has_dual:
            return no_patterns(names, d, seen)

        def label_of(slot: int) -> Label:
            return bag_of([seen[y] for y in np.flatnonzero(self.state.bag[:, slot])])

        expansion = self.model.unscaled_expansion(d)
        kept = np.flatnonzero(self.state.alpha[: len(expansion[1])])
        return patterns_of(names, expansion, kept, label_of, seen)

    @of_primal
    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return |w|^2 / (2 n C) plus the mean loss over rows, after n examples."""
        norm = 0.5 * self.squared_norm / (self.C_ * max(1, self.n_examples))
        if not shape(x)[0]:
            return norm
        return norm + float((weights * self.losses_of(classes, self.margins_of(x))).mean())


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
)
