"""LASVM as a River classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import (
    MOST_STEPS,
    check_number,
    check_positive,
    check_seed,
    check_size,
)
from streamsvm.errors import ParameterError
from streamsvm.features.events import Event
from streamsvm.features.frames import Batch
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.labels.label_column import Label, Labels
from streamsvm.labels.labelled_rows import Ids, Weights
from streamsvm.labels.targets import ProblemTargets
from streamsvm.learners.bases.kernel.kernel_learner import IDS_AND_WINDOW, KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.kernel import finishing
from streamsvm.models.kernel.kernel_solver import merging_by
from streamsvm.models.kernel.lasvm_solver import LASVMSolver, PairsSolver
from streamsvm.models.kernel.reserve import new_reserve
from streamsvm.models.model import Kernel
from streamsvm.models.rows import NumberedRows
from streamsvm.monitor.certificate import Certificate
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.bounds import bounds_of
from streamsvm.solvers.lasvm import step as lasvm
from streamsvm.support.locked import guarded


class LASVMClassifier(KernelLearner):
    """Online soft-margin SVM with kernels and a bias: as accurate as a batch SVM after one pass.

    Every example is tried once as a support vector (PROCESS); then the coefficients of pairs of
    support vectors are improved, and support vectors that are no longer needed are removed
    (REPROCESS). The problem solved, over the examples kept, is that of a batch SVM: maximise
    ``sum_s a_s y_s - 1/2 sum_st a_s a_t k(x_s, x_t)`` with ``sum_s a_s = 0`` and
    ``0 <= a_s y_s <= C``. On noisy data the number of support vectors grows with the stream (to
    about twice the error rate times the number of examples), and memory with it: set
    `max_support_vectors` or `window` for streams without end.

    Two classes are one such problem. When a third one appears, there is a problem for each two
    classes, or for each class against the rest (`multiclass`). All problems share one store of
    examples. "ovo" predicts the class with the most votes; margins decide between equally many.

    Before the first label `predict_one` returns None; with one class so far, that class.
    In a prediction a feature that was never learnt counts as 0; booleans are 0 and 1. Strings and
    infinities raise `FeatureError` and do not change the model.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`. None, the default, is an RBF whose gamma, and whether
        features are scaled, is found on the first 1,024 examples: see `gamma` and `scale`.
    C
        Positive: the cost of a margin error, and the largest coefficient. "auto", the default: 1
        or 10, found with gamma on the first 1,024 examples; with your own `kernel`, or
        ``gamma="scale"``, 1.
    tau
        Positive: pairs that violate optimality by less are left alone; .001 by default, the
        papers' value, far below what changes a prediction.
    reprocess
        How many REPROCESS steps follow each example, at least 0; 1 by default, the papers' value.
    delta_max
        Positive: further REPROCESS steps follow an example until delta, the uncertainty of the
        bias, is at most this, so that the model is near its optimum at every event. The default,
        1, is half the width of the margin: it costs nothing on easy data, and keeps the model near
        the optimum on hard data (large C). None: no further steps.
    max_reprocess
        The largest number of these further steps for one example, at least 0; 1000 by default.
    second_order
        True, the default: choose the second example of a pair by the gain in the dual, which needs
        fewer steps; False: by the gradient, as in the papers.
    class_weight
        None, a dict {label: factor of C} (1 for labels not named), or "balanced":
        n / (n_classes n_label) with the counts so far; the factors of all support vectors are
        updated after 2, 4, 8, ... examples and by `finish`.
    window
        Keep only the last `window` examples, at least 1, and of each of K classes the last
        `window` / 200 K or more, at least one; older support vectors are removed, and their
        coefficients are given to others. None, the default: no example is removed because of its
        age.
    max_support_vectors
        Keep at most this many examples as support vectors, at least 2. None, the default: no limit;
        memory and time then grow with the stream. When there are more, two near vectors of one
        label are replaced by one vector between them; with three or more classes it is in each
        problem that had one of the two. Of two classes, each new example counts less the more
        vectors made room, by sqrt(B / (B + m)) for m of them and B allowed. When errors become
        more, clearly beyond chance, all coefficients and costs so far are divided by ten, once, and
        m is 0 again.
    multiclass
        With three or more classes: "ovo", the default, one problem for each two classes; "ovr", one
        for each class against the rest, of which the largest margin wins.
    max_classes
        The largest number of classes, at least 2; 200 by default. K classes are up to K (K - 1) / 2
        problems: 19,900 for 200. A label beyond them is refused (numbers or ids that were taken for
        labels are noticed so); with 2 a third one is.
    sparse
        True: rows are stored as their nonzero features (text, one-hot); False: as dense rows.
        None, the default: dense until mostly zeros are found, which is checked after 1, 2, 4, 8,
        ... examples.
    hashing
        None, the default: each feature name gets its own column, in the order of first appearance.
        Or the number of columns that names are hashed to (2**18, for example): names are not
        stored and no feature is ignored; features in the same column are added, with random signs.
    max_features
        The largest number of feature names, at least 1; later names are ignored, and counted in
        `counters` as ``features_ignored``. An event with more features than this is refused.
        1,048,576 by default.
    cache_mb
        Megabytes for cached kernel rows. None, the default, is 200 for two classes; for more up to
        a quarter of the memory that the process may use. Less is slower, never less exact.
    n_jobs
        Threads that compute the kernel values of large batches: None, the default, is 1; -1 is all
        usable cores. Model and predictions are the same, to the last bit, for any number.
    scale
        Whether each feature is divided by its standard deviation, computed again after 4, 8, 16,
        ... examples, so that all have one scale; when one has changed, all rows kept are scaled
        anew. Features of only zeros and ones are left as they are, and so are sparse rows. "auto",
        the default: tried, as `gamma` is; and so is letting features that tell nothing of the
        labels count little. With your own `kernel`: False, which "auto" is then, too.
    gamma
        The gamma of the RBF if `kernel` is None. "scale": 1 / (sum of the features' variances),
        computed again after 2, 4, 8, ... up to 1,024 examples. "auto", the default: 1, 4 or 16
        times that. After 4, 8, 16, ... up to 1,024 examples each of these, with features scaled and
        not, learns all examples so far anew; then the best of them does with a quarter of its gamma
        and C 10, unless `C` is given, and of three or more classes with its gamma and C 10. The
        learner goes on with the one that erred least on them, if its gamma, or its C, is not larger
        just by chance (see `chosen`).
        ``scale=False, gamma="scale"`` tries nothing.
    missing
        What takes the place of a value that is missing (None, NaN, a null, a feature that the event
        lacks), if the feature is usually there: it had 4 values or more, in at least half of the
        examples since its first, and not always 1. "mean", the default: the mean of its values
        so far, as 0 may be far from all of them; "zero": 0; "reject": a `FeatureError`, in a run a
        dead letter. Else it is 0, and in sparse rows always.
    seed
        Without effect: the model needs no random numbers. Taken because all learners take it.
    reserve
        How many rows that are no support vectors are kept for `finish`, which looks at them again,
        so that one pass ends at the optimum of a batch SVM; 0: none. Those with the smallest
        margins y f(x) when they came are kept, the same number from each stretch of the stream.
        None, the default: as many as fit into 64 MB, of which margins above 2.5 leave first; none
        with `max_support_vectors`. Of three or more classes it is the least margin of the row's
        problems.
    selection
        The rule of `streamsvm.selection` that chooses what is learnt. None, the default: all is.

    Attributes
    ----------
    kernel_, C_
        The kernel and the C in use.
    n_support_vectors
        Number of nonzero coefficients.
    classes
        The labels seen, in the order of first appearance.
    feature_names
        The features seen, in the order of first appearance.
    memory_usage
        Bytes of all arrays.

    References
    ----------
    Bordes, Ertekin, Weston, Bottou, Fast Kernel Classifiers with Online and Active Learning, JMLR 6
    (2005); Bordes, New Algorithms for Large-Scale Support Vector Machines, thesis (2010), 4.2.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LASVMClassifier
    >>> evaluate.progressive_val_score(datasets.Bananas(), LASVMClassifier(), metrics.Accuracy())
    Accuracy: 89...%

    """

    new_targets = ProblemTargets
    compiles_classes_apart = True
    takes_balanced = True
    has_dual = gives_back = True
    tau: float

    def __init__(
        self,
        kernel: Kernel | None = None,
        C: float | str = "auto",
        tau: float = 1e-3,
        reprocess: int = 1,
        delta_max: float | None = 1.0,
        max_reprocess: int = 1000,
        second_order: bool = True,
        class_weight: ClassWeight | str | None = None,
        window: int | None = None,
        max_support_vectors: int | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float | None = None,
        n_jobs: int | None = None,
        scale: bool | str = "auto",
        gamma: str = "auto",
        seed: int | None = None,
        reserve: int | None = None,
        multiclass: str = "ovo",
        max_classes: int = 200,
        missing: str = "mean",
        selection: Selection | None = None,
    ) -> None:
        schedule = lasvm.Schedule(
            tau=check_positive("tau", tau),
            reprocess=check_number("reprocess", reprocess, 0, MOST_STEPS),
            delta_max=np.inf if delta_max is None else check_positive("delta_max", delta_max),
            max_reprocess=check_number("max_reprocess", max_reprocess, 0, MOST_STEPS),
            second_order=float(bool(second_order)),
            bounds=bounds_of(
                check_size("window", window),
                check_size("max_support_vectors", max_support_vectors, 2),
                merging_by(kernel),
            ),
        )
        if multiclass not in ("ovo", "ovr"):
            raise ParameterError(f"multiclass={multiclass!r}: use 'ovo' or 'ovr'")
        kept = new_reserve(reserve, window, max_support_vectors)
        solver = LASVMSolver(kernel, schedule, cache_mb, kept, multiclass == "ovr")
        super().__init__(
            solver,
            kernel,
            KernelParameters(sparse, hashing, max_features, missing, cache_mb, n_jobs, selection),
            C=C,
            class_weight=class_weight,
            scale=scale,
            gamma=gamma,
        )
        self.refuses_ids = None if window is None else IDS_AND_WINDOW
        self._wants_scores = True  # but while `learn_many` runs
        self.tau, self.reprocess, self.max_reprocess = tau, reprocess, max_reprocess
        self.delta_max, self.second_order = delta_max, second_order
        self.window, self.max_support_vectors = window, max_support_vectors
        self.seed, self.reserve = check_seed(seed), reserve
        self.multiclass = multiclass
        self.limit_classes(max_classes)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"kernel": kernels.Linear(), "C": 0.1, "class_weight": "balanced", "seed": 42}
        yield {"max_support_vectors": 50, "seed": 42}
        yield {"window": 200, "seed": 42}
        yield {"multiclass": "ovr", "class_weight": "balanced", "seed": 42}

    def learn_many(self, X: Batch, y: Labels, w: Weights = 1.0, ids: Ids | None = None) -> None:
        """Learn the rows of a batch in order: see `Learner.learn_many`."""
        with self.lock:
            # Scores take longer than margins.
            before, self._wants_scores = self._wants_scores, False
            try:
                super().learn_many(X, y, w, ids)
            finally:
                self._wants_scores = before

    def _learn_rows(self, rows: NumberedRows) -> np.ndarray:
        return self.model.learn(rows, self._wants_scores or self.observer is not None)

    def finish(
        self,
        progress: Callable[[float, int], None] | None = None,
        seconds: float | None = None,
    ) -> None:
        """Run REPROCESS until delta <= tau: the optimum over the examples kept and the reserve.

        Examples that are no support vectors at that optimum are removed, and those of the reserve
        that violate optimality are learnt again, until none does. The learner can go on learning
        afterwards. Pairs are chosen by the gain, whatever `second_order` is: the optimum
        is the same, and hard problems (large C) reach it ten times faster.

        Parameters
        ----------
        progress
            Called every 100,000 steps with (delta, number of support vectors). An exception in it,
            or Ctrl-C, leaves a model that can be used.
        seconds
            The most seconds that it may take; None, the default: a second for each thousand
            examples kept, times the number of classes, but at least one.

        Raises
        ------
        ParameterError
            `seconds` is out of range.

        Notes
        -----
        It ends at the latest after these seconds (without compiling), after 10 million steps, or
        100 for each example kept, whichever is more, when the dual grows by less than 1e-9 of
        itself in as many steps as examples are kept, or when no step changes a coefficient in
        double precision; the log then says so, and what gap is left, and `delta` is above `tau`.

        """
        asked = finishing.Asked(seconds, progress, self.alone)
        self.alone(self.model.rebalance)
        finishing.finish(self.model, asked)

    # Inspection

    @property
    def _is_several(self) -> bool:
        return isinstance(self.solver, PairsSolver)

    @property
    def bias(self) -> float | dict[tuple[Label, Label], float]:
        """The constant b of the decision function; of several classes {(a, b): b} by problem."""
        if not self._is_several:
            return self._bias
        return dict(zip(self._problems(), self.solver.biases, strict=True))

    def _problems(self) -> list[tuple[Label, Label]]:
        """Return the two labels of each problem of several classes; None: all other labels."""
        return self.solver.labels_of(self.targets.labels.seen)

    def _facts(self) -> dict[str, object]:
        return super()._facts() | {"bias": self.bias, "delta": self.delta}

    @property
    def delta(self) -> float:
        """The gradient gap of the worst pair, the uncertainty of b; at the optimum at most tau."""
        return self.solver.delta

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean gap, of the examples kept at each moment, with 95 % probability."""
        value = self.looks.bound()
        why = (
            "no example was learnt yet" if value is None else "of the examples kept at each moment"
        )
        return Certificate(value, why)

    @property
    def covers(self) -> str:
        """What the gap is about: "stream", "window", "merged", or the "problems" of classes."""
        if self._is_several:
            return "problems"
        return self.solver.covers

    @guarded
    def pair_margins_one(self, x: Event) -> dict[tuple[Label, Label], float]:
        """Return the margin of each binary problem for an event, given as to `predict_one`.

        Returns
        -------
        {(a, b): margin}: above 0 for label a, below 0 for b; b is None for all other labels.

        """
        row = self.schema.known_row(x) if self.is_sparse else self.schema.row(x)
        targets, solver = self.targets, self.solver
        if not isinstance(solver, PairsSolver):
            if targets.n_classes < 2:
                return {}
            negative, positive = targets.ordered
            return {(positive, negative): targets.decision(self.model.margins_of(row)[0])}
        margins = solver.problem_margins(row, self.model.sizes(len(self.schema)))[0]
        return dict(zip(self._problems(), margins.tolist(), strict=True))


register_learner(
    LASVMClassifier,
    "lasvm",
    variants=({}, {"class_weight": "balanced", "max_support_vectors": 100}),
)
