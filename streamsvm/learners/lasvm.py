"""LASVM as a River classifier."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.features.event_reader import Event
from streamsvm.features.schema import LIMIT
from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases.bounds import policy_of
from streamsvm.learners.bases.event_path import EventPath
from streamsvm.learners.bases.kernel_learner import KernelLearner
from streamsvm.learners.bases.parameter_checks import check_number, check_positive, check_size
from streamsvm.learners.bases.registry import register_learner
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.bounds import bounds_of
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.lasvm import boxes
from streamsvm.solvers.lasvm import events as events
from streamsvm.solvers.lasvm import finish as lasvm_finish
from streamsvm.solvers.lasvm import state as lasvm_state
from streamsvm.solvers.lasvm import step as lasvm
from streamsvm.solvers.lasvm.gap import lasvm_gap
from streamsvm.solvers.lasvm.state import LASVMState
from streamsvm.support import stores
from streamsvm.support.declaration import NOT_NEGATIVE, Field
from streamsvm.support.rows import Rows

_FINISH_STEPS = 20_000


class LASVMClassifier(KernelLearner):
    """Online soft-margin SVM with kernels and a bias: as accurate as a batch SVM after one pass.

    Every example is tried once as a support vector (PROCESS); then pairs of support vectors are
    improved, and those that turned out useless removed (REPROCESS). The problem solved, over the
    examples kept, is that of a batch SVM: maximise
    ``sum_s a_s y_s - 1/2 sum_st a_s a_t k(x_s, x_t)`` with ``sum_s a_s = 0`` and
    ``0 <= a_s y_s <= C``. Without a bound, support vectors grow with the stream on noisy data
    (about twice the share of errors of all examples), and memory with them: streams without end
    want `max_support_vectors` or `window`.

    Before the first label `predict_one` returns False; with one class so far, that class.
    A feature that an event lacks counts 0, as does one never seen; booleans are 0 and 1; strings,
    None, NaN and infinities are refused, and change nothing.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`. None, the default, is an RBF whose gamma follows the data:
        1 / (sum of the features' variances), set again when 2, 4, 8, ... up to 1024 examples were
        seen (see the attribute `kernel_`). Features should be of one scale
        (`streamsvm.StandardScaler`).
    C
        Positive: the cost of a margin error, and the largest coefficient. 1 by default.
    tau
        Positive: pairs that violate optimality by less are left alone; .001 by default, the
        papers' value, far below what changes a prediction.
    reprocess
        How many REPROCESS steps follow each example; 1 by default, the papers' value.
    delta_max
        Further steps follow until delta, the uncertainty of the bias, is below this, so that the
        model is near its optimum at every event. The default, 1, half the width of the margin,
        costs nothing on easy data, and is what keeps up on hard data (large C). None: never.
    max_reprocess
        At most so many further steps an example; 1000 by default.
    second_order
        True, the default: choose the partner in a pair by the gain of the step, which needs fewer
        steps; False: by the gradient, as in the papers.
    class_weight
        None, a dict {label: factor of C} (1 for labels not named), or "balanced":
        n / (2 n_label) with the counts so far, applied anew to all support vectors when 2, 4, 8,
        ... examples were seen and by `finish`.
    window
        Keep the last so many examples only, at least 1; older support vectors leave, and what they
        carried goes to others. None, the default: no example leaves for its age.
    max_support_vectors
        Keep at most so many, at least 2. None, the default: as many as the data ask for; memory
        and time then grow with the stream.
    budget
        What makes room within `max_support_vectors`: "merge" two near vectors of one label into
        one between them that stands for both; "project": the nearest of the same label takes over
        coefficient and box; "remove" the one that costs the dual least; "smallest": remove the
        smallest coefficient (for comparison). None, the default, is "merge": by far the best in our
        measurements.
    sparse
        True: rows are kept by their nonzero features (text, one-hot); False: with all of them.
        None, the default: as the data turn out; looked at when 1, 2, 4, 8, ... examples were seen.
    hashing
        None, the default: each feature name gets a column of its own, in the order of their coming.
        Or the number of columns that names are hashed to (2**18, say): no name is kept, and none is
        ever left out; names that meet in a column add up, with random signs.
    max_features
        At most so many names are known; later ones are left out, and counted as
        ``features_ignored``. An event with more features than this is refused. 1,048,576 by
        default.
    cache_mb
        Megabytes for cached kernel rows; 200 by default. Less is slower, never less exact.
    n_jobs
        Threads for the kernel values of batches, where they pay: None, the default, is 1; -1 is one
        a core. The model and its predictions are the same, to the last bit, for any number.
    seed
        Accepted like everywhere, without effect: LASVM draws nothing.

    Attributes
    ----------
    kernel_
        The kernel in use.

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

    def __init__(
        self,
        kernel: Any = None,
        C: float = 1.0,
        tau: float = 1e-3,
        reprocess: int = 1,
        delta_max: float | None = 1.0,
        max_reprocess: int = 1000,
        second_order: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        window: int | None = None,
        max_support_vectors: int | None = None,
        budget: str | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(kernel, C, class_weight, sparse, hashing, max_features, cache_mb, n_jobs)
        self.tau = tau
        self.reprocess = reprocess
        self.delta_max = delta_max
        self.max_reprocess = max_reprocess
        self.second_order = second_order
        self.window = window
        self.max_support_vectors = max_support_vectors
        self.budget = budget
        self.seed = seed
        self._schedule = lasvm.Schedule(
            tau=check_positive("tau", tau),
            reprocess=check_number("reprocess", reprocess, 0),
            delta_max=np.inf if delta_max is None else check_positive("delta_max", delta_max),
            max_reprocess=check_number("max_reprocess", max_reprocess, 0),
            second_order=float(bool(second_order)),
            bounds=bounds_of(
                check_size("window", window),
                check_size("max_support_vectors", max_support_vectors, 2),
                policy_of(budget, kernel),
            ),
        )
        self._counts = np.zeros(2)  # examples of the negative and the positive class

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"kernel": kernels.Linear(), "C": 0.1, "class_weight": "balanced", "seed": 42}
        yield {"max_support_vectors": 50, "seed": 42}
        yield {"window": 200, "seed": 42}

    # The solver

    _states = lasvm_state
    _solver = lasvm

    def _new_state(self, n_features: int) -> LASVMState:
        return lasvm_state.new_state(n_features, self._cache_bytes, sparse=self._sparse)

    def _solve(self, state: LASVMState, rows: tuple[Any, ...], margins: np.ndarray) -> int:
        kernel = self._bound_kernel(state)
        done: int = lasvm.learn_rows(state, kernel, *rows, self._schedule, margins)  # type: ignore[call-arg]
        return done

    def _schedule_now(self) -> lasvm.Schedule:
        return self._schedule

    def _expansion(self) -> tuple[Rows, np.ndarray, np.ndarray]:
        store, n = self._state.store, int(self._state.info[0].n)
        rows = stores.rows_of(store, n, len(self._schema))
        return rows, self._state.alpha[:n], store.entered[:n]

    def _write_margins(self, state: Any, x: Rows, out: np.ndarray) -> None:
        lasvm.margins_of(state, self._bound_kernel(state), x, out)

    def _turned(self) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]:
        state = copy.deepcopy(self._state)
        if state is not None:
            boxes.turn_signs(state)
        return {"_state": state, "_counts": self._counts[::-1].copy()}, np.negative

    # Class weights

    def _c_of(self, y: np.ndarray, labels: LabelColumn) -> np.ndarray:
        """Return C times the class weight of each row, and count the rows if that depends on it."""
        if self.class_weight != "balanced":
            return super()._c_of(y, labels)
        positive = np.cumsum(y > 0.0) + self._counts[1]
        negative = np.cumsum(y < 0.0) + self._counts[0]
        self._counts = np.array([negative[-1], positive[-1]])
        own = np.where(y > 0.0, positive, negative)
        return self._C * (positive + negative) / (2.0 * own)

    def _box_of(self, label: Any, sign: float) -> float:
        if self.class_weight != "balanced":
            return super()._box_of(label, sign)
        counts = self._counts + np.array([sign < 0.0, sign > 0.0])
        return float(self._C * counts.sum() / (2.0 * counts[int(sign > 0.0)]))

    def _after_event(self, path: EventPath, event: Event, sign: float, box: float) -> None:
        if self.class_weight == "balanced":
            self._counts[int(sign > 0.0)] += 1.0
        super()._after_event(path, event, sign, box)

    def boxes_now(self, signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of these signs and weights would have now."""
        if self.class_weight != "balanced":
            return super().boxes_now(signs, weights)
        c = self._C * self._counts.sum() / (2.0 * np.maximum(self._counts, 1.0))
        return np.where(signs > 0.0, c[1], c[0]) * weights

    def _rebalance(self) -> None:
        if self.class_weight != "balanced" or self._state is None or self._counts.min() == 0:
            return
        c = self._C * self._counts.sum() / (2.0 * self._counts)
        boxes.set_boxes(self._state, self._bound_kernel(self._state), c[0], c[1], len(self._schema))

    def finish(self, progress: Callable[[float, int], None] | None = None) -> None:
        """Run REPROCESS until delta <= tau: the optimum over the examples kept.

        Removes what is no support vector at that optimum. The stream can go on afterwards. Partners
        are chosen by the gain here whatever `second_order` says: the optimum is the same, and hard
        problems (large C) are there ten times sooner.

        Parameters
        ----------
        progress
            Called now and then with (delta, number of support vectors). An exception in it, or
            Ctrl-C, leaves a whole model behind.

        """
        with self._lock:
            self._rebalance()
        schedule = self._schedule._replace(second_order=1.0)
        while not self._finish_some(schedule):
            if progress is not None:
                progress(self.delta, self.n_support_vectors)

    def _finish_some(self, schedule: Any) -> bool:
        """Make some steps, between which others may predict; return whether that was all."""
        with self._lock:
            if self._state is None:
                return True
            d = len(self._schema)
            is_over: bool = lasvm_finish.finish_some(
                self._state, self._bound_kernel(self._state), schedule, d, _FINISH_STEPS
            )
            return is_over

    # Looking inside

    @property
    def bias(self) -> float:
        """The constant b of the decision function."""
        return 0.0 if self._state is None else float(lasvm_state.bias(self._state))

    @property
    def delta(self) -> float:
        """The gradient gap of the worst pair: how far b is from certain. At most tau = optimal."""
        return 0.0 if self._state is None else float(lasvm.delta(self._state))

    @property
    def certificate(self) -> Certificate:
        """Always absent: LASVM has a bias, and picks pairs by their gradients, not uniformly."""
        return Certificate(None, _NO_CERTIFICATE)

    @property
    def covers(self) -> str:
        """What the problem is about: the "kept" examples, the whole "stream", or its "window"."""
        if self.max_support_vectors is not None:
            return "kept"
        return "stream" if self.window is None else "window"

    def kept_gap(self) -> KeptGap:
        """Return the measured gap on the examples kept; there was an example."""
        return lasvm_gap(self._state, self.bias)

    def at_bound(self) -> np.ndarray:
        """Return, for all coefficients that are not 0, whether they are at their bound."""
        alpha = self._state.alpha
        at_bound = (alpha == self._state.lower) | (alpha == self._state.upper)
        return at_bound[alpha != 0.0]


_NO_CERTIFICATE = (
    "no certificate: because LASVM has a bias and picks the steepest pairs, while the theorems "
    "want no bias and uniform steps (TrackingSVMClassifier); see the measured gap"
)


register_learner(
    LASVMClassifier,
    "lasvm",
    variants=({}, {"class_weight": "balanced", "max_support_vectors": 100}),
    attributes={"counts": ("_counts", Field((2,), range=NOT_NEGATIVE))},
)
