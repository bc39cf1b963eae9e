"""LaRank as a River classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamsvm import kernels
from streamsvm._parameter_checks import (
    MOST_STEPS,
    check_number,
    check_positive,
    check_seed,
    check_size,
)
from streamsvm.errors import ParameterError
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.labels.targets import ClassTargets
from streamsvm.learners.bases.kernel.kernel_learner import IDS_AND_WINDOW, KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.kernel import finishing
from streamsvm.models.kernel.larank_solver import LaRankSolver
from streamsvm.models.kernel.reserve import new_reserve
from streamsvm.models.model import Kernel
from streamsvm.monitor.certificate import Certificate, papers_bound
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.bounds import bounds_of
from streamsvm.solvers.larank import step as larank

_CANDIDATES, _MOST_CANDIDATES = 16, 4096
"""The default of `candidates`, and the most: each step draws so many patterns."""

_MOST_OPERATIONS = 100
"""The largest number of operations that the adaptive schedule makes between two examples."""


class LaRankClassifier(KernelLearner):
    """Online multiclass SVM with kernels: as accurate as a batch SVM after one pass.

    The problem solved, over the examples kept, is the multiclass SVM of Crammer and Singer, without
    bias: maximise ``sum_i b_i^{y_i} - 1/2 sum_c sum_ij b_i^c b_j^c k(x_i, x_j)`` with
    ``sum_c b_i^c = 0`` and ``b_i^c <= C`` if c is the class of example i, else ``<= 0``. Every
    example is tried once (PROCESSNEW). Between examples the coefficients of support patterns, the
    examples with a nonzero coefficient, are improved: over all classes (PROCESSOLD), or over the
    classes for which the pattern has a nonzero coefficient (OPTIMIZE). One kernel row serves all
    classes.

    Classes may appear at any time, in any number. Before the first label `predict_one` returns None
    and `predict_proba_one` an empty dict. In a prediction a feature that was never
    learnt counts as 0; booleans are 0 and 1. Strings and infinities raise `FeatureError` and do not
    change the model.

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
        Positive: pairs that violate optimality by less are left alone; .001 by default.
    reprocess
        How many times one PROCESSOLD and ten OPTIMIZE steps follow each example, at least 0. None,
        the default, is the adaptive schedule: operations are drawn at random, more often those
        whose recent gain in the dual was large for their cost, each at least 1/20 as often as the
        best (mu of the papers, here relative to the best rate), at most 100 between two examples.
    clock
        False, the default: the adaptive schedule computes the cost of an operation from its number
        of kernel values, so that the same seed gives the same model. True: it measures the time,
        as in the papers; operations that are slow on this machine are then made less often.
    K
        None, the default: LaRank. A number of at least 1: instead of the LaRank operations, K exact
        block steps on uniformly random examples follow each example, and all examples are kept
        (set `window` for streams without end). This is slower, but gives a `certificate` for the
        mean duality gap.
    candidates
        How many random patterns OPTIMIZE picks the best from, 1 to 4096; 16 by default. The papers
        use 1, which needs more than twice the time for the same dual.
    class_weight
        None, or a dict {label: factor of C} (1 for labels not named).
    window
        Keep only the last `window` examples, at least 1, and of each of k classes the last
        `window` / 200 k or more, at least one. None, the default: age does not matter.
    max_support_vectors
        Keep at most this many support patterns, at least 2: the pattern with the smallest
        coefficients is removed, and they are added to those of its nearest neighbour of the same
        class. None, the default: no limit; memory and time then grow with the stream.
    sparse, hashing, max_features, cache_mb, n_jobs, scale, gamma, missing, selection
        As in `LASVMClassifier`.
    seed
        Seed of the random draws of patterns and operations; None: a different one each time.
    max_classes
        At least 2, 1000 by default: one more class is refused, since memory and time grow with
        classes times support patterns. None: no limit.
    reserve
        How many rows that are no support patterns are kept for `finish`, which looks at them again,
        so that one pass ends near the optimum of a batch SVM; 0: none. Those with the smallest
        margins when they came are kept, the same number from each stretch of the stream; a margin
        is the score of the row's class less the largest other one. None, the default: as many as
        fit into 64 MB, of which margins above 2.5 leave first; none with `max_support_vectors` or
        `K`.

    Attributes
    ----------
    kernel_, C_, n_support_vectors, classes, feature_names, memory_usage
        As in `LASVMClassifier`.

    References
    ----------
    Bordes, Bottou, Gallinari, Weston, Solving Multiclass Support Vector Machines with LaRank, ICML
    (2007); Bordes, New Algorithms for Large-Scale Support Vector Machines, thesis (2010), 5.1, 5.2.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LaRankClassifier, StandardScaler
    >>> model = StandardScaler() | LaRankClassifier(C=10.0, seed=1)
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    Accuracy: 9...%

    """

    new_targets = ClassTargets
    has_dual = gives_back = True
    solver: LaRankSolver

    def __init__(
        self,
        kernel: Kernel | None = None,
        C: float | str = "auto",
        tau: float = 1e-3,
        reprocess: int | None = None,
        clock: bool = False,
        K: int | None = None,
        candidates: int = _CANDIDATES,
        class_weight: ClassWeight | str | None = None,
        window: int | None = None,
        max_support_vectors: int | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        scale: bool | str = "auto",
        gamma: str = "auto",
        seed: int | None = None,
        max_classes: int | None = 1000,
        reserve: int | None = None,
        missing: str = "mean",
        selection: Selection | None = None,
    ) -> None:
        if K is not None and reserve:
            raise ParameterError(_ALL_KEPT.format(reserve=reserve, K=K))
        schedule = larank.Schedule(
            tau=check_positive("tau", tau),
            reprocess=-1.0
            if reprocess is None
            else check_number("reprocess", reprocess, 0, MOST_STEPS),
            most=float(_MOST_OPERATIONS),
            clock=float(bool(clock)),
            uniform=float(check_size("K", K, most=MOST_STEPS) or 0),
            candidates=float(check_size("candidates", candidates, most=_MOST_CANDIDATES) or 1),
            bounds=bounds_of(
                check_size("window", window),
                check_size("max_support_vectors", max_support_vectors, 2),
            ),
        )
        kept = new_reserve(0 if K is not None else reserve, window, max_support_vectors)
        solver = LaRankSolver(kernel, schedule, cache_mb, kept, check_seed(seed), max_classes)
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
        self.tau, self.reprocess, self.clock = tau, reprocess, clock
        self.K, self.candidates, self.window = K, candidates, window
        self.max_support_vectors = max_support_vectors
        self.limit_classes(max_classes)
        self.seed, self.reserve = seed, reserve

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        # Without a bound, a narrow kernel keeps more patterns than River's check of memory allows.
        yield {"scale": False, "gamma": "scale", "seed": 42}
        yield {"kernel": kernels.Linear(), "C": 0.1, "reprocess": 1, "seed": 42}
        yield {"max_support_vectors": 50, "seed": 42}
        yield {"K": 3, "window": 100, "seed": 42}
        yield {"window": 200, "seed": 42}

    def finish(
        self,
        progress: Callable[[float, int], None] | None = None,
        share: float = 0.01,
        seconds: float | None = None,
    ) -> None:
        """Train until the duality gap over the patterns kept and the reserve is small (LaRankGap).

        Examples whose coefficients are all 0 by then are removed. Rows of the reserve that violate
        optimality are learnt again. The learner can go on learning afterwards.

        Parameters
        ----------
        progress
            Called after each sweep with (the largest violation, number of support vectors). An
            exception in it, or Ctrl-C, leaves a model that can be used.
        share
            Stop when the gap over the patterns kept is below C (the papers' rule) or below this
            share of the dual, whichever is larger, and what the reserve adds to the gap, too; at
            least 0, 0.01 by default. At 0, go on until no violation is above `tau`.
        seconds
            As in `LASVMClassifier`.

        Raises
        ------
        ParameterError
            `share` or `seconds` is out of range.

        Notes
        -----
        It ends at the latest as `finish` of `LASVMClassifier` does; the log then says so, and what
        gap is left.

        """
        check_number("share", share, 0)
        finishing.finish(self.model, finishing.Asked(seconds, progress, self.alone), share)

    # Inspection

    @property
    def n_support_patterns(self) -> int:
        """Number of examples kept: with coefficients, or one of at most 16 whose margin is 1."""
        return self.solver.n_vectors

    def _facts(self) -> dict[str, object]:
        return super()._facts() | {"support patterns": self.n_support_patterns}

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean normalised gap so far, with 95 % probability; None without `K`."""
        if self.K is None:
            return Certificate(None, _NO_CERTIFICATE)
        value = self.looks.bound()
        if value is None:
            return Certificate(None, "no example was looked at yet")
        bounded = self.window or self.max_support_vectors
        about = "the examples kept at each moment" if bounded else "all examples so far"
        return Certificate(value, f"of {about}")

    @property
    def papers_certificate(self) -> Certificate:
        """The bound in the papers' form, in expectation: several times as large, for equal C_i."""
        is_covered = self.K is not None and not self.max_support_vectors and self.state is not None
        value = papers_bound(self.state.info[0], blocks=True) if is_covered else None
        return Certificate(value, "the papers' bound is for uniform steps (K), no budget, one C_i")

    @property
    def covers(self) -> str:
        """What the gap is about: "kept" examples, the "stream", its "window", or "merged" ones."""
        if self.K is not None and self.max_support_vectors is None:
            return "kept"
        return self.solver.covers


_ALL_KEPT = (
    "reserve={reserve!r} with K={K!r}: K keeps all examples, and leaves none for a reserve; leave "
    "one of them out"
)
_NO_CERTIFICATE = (
    "no certificate: because LaRank drops examples; with K= it keeps all, and has a certificate"
)


register_learner(LaRankClassifier, "larank")
