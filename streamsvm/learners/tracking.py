"""Averaged tracking as a River classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamsvm import kernels
from streamsvm._parameter_checks import MOST_STEPS, check_cost, check_number, check_seed, check_size
from streamsvm.errors import ParameterError
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.kernel import finishing
from streamsvm.models.kernel.kernel_solver import merging_by
from streamsvm.models.kernel.tracking_solver import LinearTrackingSolver, TrackingSolver
from streamsvm.models.model import Kernel
from streamsvm.monitor.certificate import Certificate, papers_bound, steps_for
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.bounds import bounds_of
from streamsvm.solvers.tracking import finish as tracking_finish
from streamsvm.solvers.tracking import step as tracking

_DEFAULT_STEPS = 10
_GRADIENTS = ("all", "support", "fresh")


class TrackingSVMClassifier(KernelLearner):
    """Online soft-margin SVM that tracks the batch optimum, with a bound on its distance.

    After each example K coordinate steps are made on examples drawn uniformly from those seen, and
    the classifier that predicts is the mean of the K iterates. On average over the stream it is
    provably near the optimum of the batch SVM (without bias) over the examples so far:

        max_a  sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j k(x_i, x_j)     with  0 <= a_i <= C

    `certificate` is this bound as a number, at no cost; `TrackingMonitor` shows it beside the
    measured gap. By default all examples are kept, as the theory requires, and memory grows with
    the stream. For streams without end set `window`, `reservoir` or `max_support_vectors`: the
    bound then holds for the examples kept. Where the stream drifts, set `window`, too: the bound is
    about all examples so far alike, and the model near their optimum is one of the past as well.

    Features and labels are treated as in `LASVMClassifier`.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`. None, the default: an RBF whose gamma follows the data, as
        in `LASVMClassifier`.
    C
        Positive: the cost of a margin error, and the largest coefficient. 1 by default.
    K
        Steps after each example, at least 1; 10 by default. The gap falls about like 1 / K.
    epsilon
        Instead of K: the wanted mean normalised gap, above 0. K is then ceil(8 C R2 / epsilon^2),
        with R2 the largest k(x, x) so far: enough in the worst case, usually far more than needed.
        K is a million at most, however large R2 becomes.
        C is multiplied by the largest factor in `class_weight`. Example weights above 1 are not
        taken into account: with them the `certificate` says what K achieves.
    process
        True, the default: make a step on the new example first (Algorithm 2). False: do not
        (Algorithm 1).
    averaged
        True, the default: predict with the mean of the K iterates. False: with the last iterate.
        The attribute may be changed at any time.
    gradients
        "all": the value f(x_i) of every example is kept up to date, so that steps that change
        nothing cost nothing. "support": as "all", but examples whose coefficient is 0 are dropped
        (the papers' link to LASVM), which needs less memory; the bound is then for the examples
        kept. "fresh": for linear kernels only, the weight vector w is stored and f(x_i) computed
        when needed; a step costs one dot product, however many examples there are. None, the
        default, is "fresh" for linear kernels without `max_support_vectors`, otherwise "all".
    window
        Keep only the last `window` examples, at least 1; None, the default, keeps all.
    reservoir
        Keep a uniform sample of this many examples, at least 1; None, the default, keeps all.
    max_support_vectors
        Keep at most this many examples, at least 2: when there are more, two near ones of one label
        are replaced by one vector between them. None, the default, keeps all.
    tau
        A step on an example is skipped if its margin differs from 1 by at most this; the
        certificate counts it as if it were made. At least 0, .001 by default.
    class_weight
        None or a dict {label: factor of C} (1 for labels not named).
    sparse, hashing, max_features, cache_mb, n_jobs, missing, selection
        As in `LASVMClassifier`.
    seed
        Seed of the uniform draws; None: a different one each time.

    Attributes
    ----------
    kernel_, n_support_vectors, classes, feature_names, memory_usage
        As in `LASVMClassifier`.

    References
    ----------
    Usunier, Bordes, Bottou, Guarantees for Approximate Incremental SVMs, AISTATS (2010), sections 4
    and 5; Bordes, thesis (2010), 4.4.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import TrackingSVMClassifier
    >>> model = TrackingSVMClassifier(max_support_vectors=500, seed=1)
    >>> evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
    Accuracy: 88...%
    >>> model.certificate.value < 0.4
    True

    """

    has_dual = gives_back = True
    solver: TrackingSolver

    def __init__(
        self,
        kernel: Kernel | None = None,
        C: float = 1.0,
        K: int | None = None,
        epsilon: float | None = None,
        process: bool = True,
        averaged: bool = True,
        gradients: str | None = None,
        window: int | None = None,
        reservoir: int | None = None,
        max_support_vectors: int | None = None,
        tau: float = 1e-3,
        class_weight: ClassWeight | str | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
        missing: str = "mean",
        selection: Selection | None = None,
    ) -> None:
        self.K, self.epsilon, self.process, self.gradients = K, epsilon, process, gradients
        self.kernel, self.C, self._class_weight = kernel, C, class_weight
        self.window = check_size("window", window)
        self.reservoir = check_size("reservoir", reservoir)
        self.max_support_vectors = check_size("max_support_vectors", max_support_vectors, 2)
        self.tau, self.seed = tau, check_seed(seed)
        self._averaged = averaged
        self._gradients = _chosen_gradients(self)
        schedule = _schedule_of(self, self._gradients)
        kind = LinearTrackingSolver if self._gradients == "fresh" else TrackingSolver
        super().__init__(
            kind(kernel, schedule, cache_mb, self.window or 0, self.seed),
            kernel,
            KernelParameters(sparse, hashing, max_features, missing, cache_mb, n_jobs, selection),
            C=check_cost(C),
            class_weight=class_weight,
        )

    @property
    def averaged(self) -> bool:
        """Whether the mean of the iterates predicts; it can be changed at any time."""
        return self._averaged

    @averaged.setter
    def averaged(self, averaged: bool) -> None:
        self._averaged = averaged
        self.solver.set_averaged(bool(averaged))

    def _weigh(self, class_weight: ClassWeight | str | None) -> None:
        super()._weigh(class_weight)
        if self.epsilon is not None:
            # The number of steps depends on the largest C_i.
            self.solver.schedule = _schedule_of(self, self._gradients)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"kernel": kernels.Linear(), "C": 0.1, "process": False, "seed": 42}
        yield {"max_support_vectors": 50, "K": 2, "seed": 42}
        yield {"window": 100, "gradients": "support", "seed": 42}

    def finish(
        self,
        progress: Callable[[float, int], None] | None = None,
        seconds: float | None = None,
    ) -> None:
        """Make steps on the examples kept until they are at their optimum, up to `tau`.

        The averaged classifier is set to this optimum. The learner can go on learning afterwards.

        Parameters
        ----------
        progress
            Called every 20,000 steps with (largest error of a margin, number of support vectors).
            An exception in it, or Ctrl-C, leaves a model that can be used.
        seconds
            As in `LASVMClassifier`.

        Raises
        ------
        ParameterError
            `seconds` is out of range.

        Notes
        -----
        It ends at the latest as `finish` of `LASVMClassifier` does; the log then says so. A step
        that changes no coefficient in double precision is none.

        """

        def some() -> tuple[bool, float, int]:
            solver, state, d = self.solver, self.state, self.model.n_features
            kernel, schedule = solver.bound_kernel(state), solver.schedule
            worst = tracking_finish.finish_some(solver.step, state, kernel, schedule, d)
            return worst <= tracking_finish.tau_of(schedule), worst, tracking_finish.STEPS

        finishing.improve(self.model, some, finishing.Asked(seconds, progress, self.alone))

    # Inspection

    @property
    def n_kept(self) -> int:
        """Number of examples kept, which the papers call the active set."""
        return self.solver.n_kept

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean normalised gap so far, with 95 % probability at all times."""
        value = self.looks.bound()
        if value is None:
            return Certificate(None, "no example was looked at yet")
        if self._gradients == "support":
            return Certificate(value, _CERTIFIED["support"])
        bounded = self.window or self.reservoir or self.max_support_vectors
        return Certificate(value, _CERTIFIED["kept" if bounded else "all"])

    @property
    def papers_certificate(self) -> Certificate:
        """The bound in the papers' form, in expectation: several times as large, for equal C_i."""
        value = None if self.state is None else papers_bound(self.state.info[0])
        return Certificate(value, "" if value is not None else _UNEQUAL)

    @property
    def kappa(self) -> float:
        """The share of uniform steps that changed nothing; 0 before any step."""
        counts = self.solver.counters
        return counts["null_steps"] / counts["steps"] if counts["steps"] else 0.0

    @property
    def covers(self) -> str:
        """What the gap is about: "kept" examples, the "stream", its "window", or "merged" ones."""
        if self._gradients != "support" and self.max_support_vectors is None:
            return "kept"
        return self.solver.covers


_CERTIFIED = {
    "all": "of all examples so far",
    "kept": "of the examples kept at each moment",
    "support": "of the support vectors kept at each moment, as other examples are dropped",
}

_UNEQUAL = "the papers' bound is for equal C_i, from the first example on"


def _chosen_gradients(given: TrackingSVMClassifier) -> str:
    """Return the parameter `gradients`, or the default for the kernel if it is None.

    A `ParameterError` says that it is none of the values, or does not go with kernel or bounds.
    """
    is_linear = isinstance(given.kernel, kernels.Linear)
    gradients = given.gradients
    if gradients is None:
        gradients = "fresh" if is_linear and given.max_support_vectors is None else "all"
    if gradients not in _GRADIENTS:
        names = ", ".join(map(repr, _GRADIENTS))
        raise ParameterError(f"gradients={gradients!r}: use None or one of {names}")
    if gradients == "fresh" and not is_linear:
        raise ParameterError("gradients='fresh' keeps w itself: use it with kernels.Linear")
    _check_bounds(given, gradients)
    return gradients


def _check_bounds(given: TrackingSVMClassifier, gradients: str) -> None:
    if given.reservoir is not None and (given.window or given.max_support_vectors):
        raise ParameterError("reservoir: a uniform sample has no window or budget; use one only")
    if given.reservoir is not None and gradients == "support":
        raise ParameterError("reservoir: a sample that drops examples is not uniform; use 'all'")
    if given.max_support_vectors is not None and gradients == "fresh":
        raise ParameterError(
            "max_support_vectors: explicit w does not know which example is least harmful; "
            "use window or reservoir, or gradients='all'"
        )


def _schedule_of(given: TrackingSVMClassifier, gradients: str) -> tracking.Schedule:
    """Return the schedule for the parameters, which are checked."""
    if given.K is not None and given.epsilon is not None:
        raise ParameterError(f"K={given.K!r}, epsilon={given.epsilon!r}: give one of them")
    steps, per_r2 = float(_DEFAULT_STEPS), 0.0
    if given.epsilon is not None:
        check_number("epsilon", given.epsilon, 0.0)
        factors = given.class_weight.values() if isinstance(given.class_weight, dict) else ()
        largest = check_cost(given.C) * max([1.0, *map(float, factors)])
        steps = float(steps_for(given.epsilon, largest, 0.0))
        per_r2 = 8.0 * largest / given.epsilon**2
    elif given.K is not None:
        steps = float(check_size("K", given.K, most=MOST_STEPS) or 1)
    policy, limit = merging_by(given.kernel), given.max_support_vectors
    return tracking.Schedule(
        steps=steps,
        steps_per_r2=per_r2,
        process=float(bool(given.process)),
        keep_zeros=float(gradients != "support"),
        averaged=float(bool(given.averaged)),
        tau=check_number("tau", given.tau, 0.0),
        bounds=bounds_of(given.window, limit, policy, given.reservoir),
    )


register_learner(TrackingSVMClassifier, "tracking")
