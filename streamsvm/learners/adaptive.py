"""Several SVMs that learn the same stream, and predict together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from streamsvm._parameter_checks import (
    check_cost,
    check_number,
    check_seed,
    check_size,
)
from streamsvm.features.names import Name
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.labels.targets import GrowingTargets
from streamsvm.learners.bases import words
from streamsvm.learners.bases.kernel.availability import of_dual
from streamsvm.learners.bases.kernel.support_vectors import Vectors, vectors_of
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.contest.adaptive_model import AdaptiveModel
from streamsvm.models.contest.errors import LAST_DRIFT, N_DRIFTS
from streamsvm.models.contest.members import FIRST, Settings
from streamsvm.models.kernel import threads
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.solvers.gap import KeptGap
from streamsvm.support import density
from streamsvm.support.locked import guarded, locked


class AdaptiveSVMClassifier(Learner):
    """Online SVM for streams that drift: several models learn, and predict together.

    Up to three kernel models learn each example, by LASVM (the second and third of several classes
    by LaRank, as the first of more than 50):

    * the first from all examples (of the window); it finds scale, gamma and C of its RBF kernel
      itself;
    * one from the ranks of the features, as up to 120 bits that are shared out by how much each
      feature matters, which is learnt: it sees borders along the axes, as trees do, and no
      outliers. It is for dense rows of at most 120 features;
    * one, as the first, from the last 250 examples only.

    Their scores are combined with those of two passive-aggressive linear models, which follow fast
    and slowly, with counts of words (of sparse rows), and with the last label, by weights that are
    learnt online: a logistic regression, in Newton steps that forget.

    When the errors of the first or the second model become more, a fresh one learns the older half
    of the last 256, and later of the last 1,024, examples. If it errs clearly less on the newer
    half, the model begins anew with these, and finds scale and width, or bits, again. This is a
    drift, which is logged. What fresh models take is bounded by a share of the examples so far. The
    second and the third model sleep while the combination is as good without them; they wake, with
    the last examples, when the number of examples is a power of two, or errors become more.

    It takes about twice as long as one model, up to some four times. Its memory is
    bounded, for any stream: kernel rows take `cache_mb` at most, and each example that a model
    keeps about 8 d + 900 bytes (d features; with K > 2 classes 120 K more; sparse rows 24 bytes a
    nonzero feature instead of 8 d, and 3 kB, with K > 2 classes 24 K bytes more, for each feature
    name). The models keep 4 `window` + 1,000 examples at most, of which on noisy streams most are
    support vectors: `max_support_vectors` bounds those of each. While scale and width are tried
    there are two models more, of up to 1,024 examples and each with a third of `cache_mb`. Strings
    and infinities raise `FeatureError` and do not change the model.

    Parameters
    ----------
    C
        "auto", the default: the first model tries 1 and 10, the second has 1. Or a positive number:
        the cost of a margin error of all models.
    scale
        "auto", the default: the first model tries whether rows are taken as they are or features
        are divided by their standard deviations; True: they are divided; False: they are not.
    window
        The models learn from the last `window` examples, at least 1, and from a few older ones of
        rare classes, as `LASVMClassifier`; 20,000 by default. None: from all since the last drift.
    max_support_vectors
        Each of the models keeps at most this many examples as support vectors, at least 2, and
        makes room as `LASVMClassifier` and `LaRankClassifier` do by default. None, the default:
        only `window` limits them.
    class_weight
        None, or a dict {label: factor of C} (1 for labels not named).
    sparse
        True: rows are stored as their nonzero features (text, one-hot); False: as dense rows.
        None, the default: dense until mostly zeros are found.
    hashing
        None, the default: each feature name gets its own column, in the order of first appearance.
        Or the number of columns that names are hashed to (2**18, for example).
    missing
        As in `LASVMClassifier`.
    max_features
        The largest number of feature names, at least 1; later names are ignored. 1,048,576 by
        default.
    cache_mb
        Megabytes for cached kernel rows, in all; 200 by default.
    n_jobs
        Threads that compute the kernel values of large batches: None, the default, is 1; -1 is all
        usable cores.
    last_label
        True, the default: `predict_one` and the like take into account which label was learnt last,
        for the first event after it, if the one that was learnt had been predicted last: labels do
        not come late. `predict_many` does not, as its rows need not follow. False: they never do.
    max_classes
        The largest number of classes, at least 2; 200 by default, None: any number. An example of
        one more is refused: with K classes each example that a model keeps takes 120 K bytes more.
    seed
        Seed of the models' random numbers. There are none with two classes; with more, None gives
        slightly other models, and predictions, each time.

    Attributes
    ----------
    in_use
        The first model, a `KernelModel`, to be looked at only: support vectors, gap and certificate
        are its own.
    n_drifts, last_drift
        How many drifts were noticed: errors became far more, or a model began anew; and the number
        of the last example before the latest one, 0: none.

    References
    ----------
    Ross, Adams, Tasoulis, Hand, Exponentially weighted moving average charts for detecting concept
    drift, Pattern Recognition Letters 33 (2012); Bach, Maloof, Paired learners for concept drift,
    ICDM (2008); Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online Passive-Aggressive
    Algorithms, JMLR 7 (2006).

    Examples
    --------
    >>> import random
    >>> from streamsvm import AdaptiveSVMClassifier
    >>> draw, model, n_right = random.Random(1).random, AdaptiveSVMClassifier(), 0
    >>> for i in range(4000):
    ...     x = {"a": 2.0 * draw() - 1.0, "b": 2.0 * draw() - 1.0}
    ...     # After 2,000 events all labels turn round.
    ...     y = (x["a"] ** 2 + x["b"] ** 2 < 0.6) == (i < 2000)
    ...     n_right += model.predict_one(x) == y
    ...     model.learn_one(x, y)
    >>> n_right > 3600
    True
    >>> model.drifts
    '1, the last at example 2,...'

    """

    new_targets = GrowingTargets
    has_dual, covers = True, "kept"
    compiles_classes_apart = True
    refuses_ids = "the models learn the last examples, whatever they are; leave the ids out"

    model: AdaptiveModel

    def __init__(
        self,
        C: float | str = "auto",
        scale: bool | str = "auto",
        window: int | None = 20_000,
        max_support_vectors: int | None = None,
        class_weight: ClassWeight | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
        missing: str = "mean",
        last_label: bool = True,
        max_classes: int | None = 200,
    ) -> None:
        limit = check_size("max_features", max_features) or LIMIT
        if C != "auto":
            check_cost(C)
        check_number("cache_mb", cache_mb, 0)
        settings = Settings(
            C,
            scale,
            check_size("window", window),
            check_size("max_support_vectors", max_support_vectors, 2),
            sparse,
            limit,
            cache_mb,
            threads.check_n_jobs(n_jobs),
            check_seed(seed),
            max_classes,
        )
        is_sparse = density.check_sparse(sparse, hashing)
        model = AdaptiveModel(settings, is_sparse, last_label)
        super().__init__(model, limit, check_size("hashing", hashing), missing)
        self.C, self.scale, self.class_weight = C, scale, class_weight
        self.window, self.max_support_vectors = window, max_support_vectors
        self.sparse, self.hashing, self.max_features = sparse, hashing, max_features
        self.cache_mb, self.n_jobs, self.seed = cache_mb, n_jobs, seed
        self.last_label = last_label
        self.limit_classes(max_classes)
        # Of merged vectors there is no gap.
        self.has_dual = max_support_vectors is None
        # Checks the other parameters.
        model.new_first([])

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"window": 200, "scale": False, "C": 0.5, "seed": 42}
        yield {"max_support_vectors": 50, "seed": 42}

    @guarded
    def finish(
        self,
        progress: Callable[[float, int], None] | None = None,
        seconds: float | None = None,
    ) -> None:
        """Lead each model to the optimum over the examples that it keeps, and the last 1,024.

        Parameters
        ----------
        progress
            As in `LASVMClassifier`.
        seconds
            As in `LASVMClassifier`, for each of the models.

        Raises
        ------
        ParameterError
            `seconds` is out of range.
        ModelBusyError
            As for `learn_one`.

        """
        if seconds is not None:
            check_number("seconds", seconds, 0)
        self.model.finish(progress, seconds)

    # Inspection

    @property
    def models(self) -> list[KernelModel]:
        """The models that learn at present, the first one first."""
        return self.model.models

    @property
    def in_use(self) -> KernelModel | None:
        """The first model; None before the first example."""
        return self.model.first

    @property
    def n_drifts(self) -> int:
        """How often a drift was noticed: errors became far more, or a model began anew."""
        return int(self.model.state.info[N_DRIFTS])

    @property
    def last_drift(self) -> int:
        """The number of the last example before the latest drift was noticed; 0: none was."""
        return int(self.model.state.info[LAST_DRIFT])

    @property
    def drifts(self) -> str:
        """The drifts noticed so far, in words."""
        if not self.n_drifts:
            return "none noticed"
        return f"{self.n_drifts}, the last at example {self.last_drift:,}"

    @property
    def description(self) -> str:
        """The parameters of the first model."""
        model = self.in_use
        used = f"C={self.C}" if model is None else f"{model.kernel}, C={model.C:g}"
        return f"{used}{self._weights_in_words}"

    @property
    def chosen(self) -> str | None:
        """Scale, width and C of the first model in words, and which features decide."""
        chosen = None if self.in_use is None else self.in_use.chosen
        return None if chosen is None else chosen + words.deciding(self.relevance)

    @property
    @locked
    def relevance(self) -> dict[Name, float] | None:
        """How much each feature weighs in distances of rows, those that weigh most first.

        Those of ranks, if their model weighs more than the first one; else of the first, see
        `KernelLearner.relevance`.
        """
        return words.relevance_of(self.model.shares, self.schema.names)

    def _facts(self) -> dict[str, object]:
        own = {"support vectors": self.n_support_vectors, "drifts": self.drifts}
        return super()._facts() | own

    @property
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient in the first model."""
        return 0 if self.in_use is None else self.in_use.solver.n_vectors

    @locked
    def support_vectors(self) -> Vectors:
        """Return those of the first model: see `KernelLearner.support_vectors`."""
        return vectors_of(self.in_use, self.schema, self.targets)

    # The gap: of the first model

    @property
    def looks(self) -> Looks:
        """The sums of looks at the gap of the first model, which estimate and bound its mean."""
        return self.model.looks

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean gap of the first model, with 95 % probability; or why there is none.

        It is of the examples kept at each moment, also of those before a drift. A model that the
        trial of scale and width chose has learnt the examples before anew: the mean is of its gaps
        there, not of those of the model that it took the place of.
        """
        if not self.has_dual:
            return Certificate(None, "no certificate: vectors that are merged are no examples")
        value = self.model.looks.bound()
        if value is None:
            return Certificate(None, "no example was learnt yet")
        since = int(self.model.state.begun[FIRST]) + 1
        of = f", of those since example {since:,}" if since > 1 else ""
        return Certificate(value, f"of the examples that its first SVM keeps{of}")

    @property
    @locked
    def dual(self) -> float:
        """The value of the dual objective of the first model."""
        return 0.0 if self.in_use is None else self._first.dual

    @of_dual
    def kept_gap(self) -> KeptGap:
        """Return the duality gap of the first model on the examples that it keeps."""
        return self._first.kept_gap()

    @of_dual
    def duality_gap(self) -> float:
        """Return the measured duality gap of the first model, divided by the sum of the C_i.

        It is that on the examples kept, as `LASVMClassifier.duality_gap`; 0 before the first one.
        """
        return 0.0 if self.in_use is None else self.in_use.duality_gap()

    @of_dual
    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples that the first model keeps, int64 (n_kept,)."""
        begun = int(self.model.state.begun[FIRST])
        return self._first.kept_numbers() + begun

    @of_dual
    def at_bound(self) -> np.ndarray:
        """Return whether each support vector of the first model is at its upper bound C_i."""
        return self._first.dual_solver().at_bound()

    @property
    def _first(self) -> KernelModel:
        """The first model; the learner has learnt an example."""
        assert self.in_use is not None
        return self.in_use

    @property
    def counters(self) -> dict[str, int]:
        """Counts of all models since they began: steps, kernel values, hits of the cache."""
        return self.model.counters | self._ignored()

    @property
    def kappa(self) -> float:
        """The share of the steps of the first model that changed nothing."""
        return 0.0 if self.in_use is None else self.in_use.kappa


register_learner(AdaptiveSVMClassifier, "adaptive")
