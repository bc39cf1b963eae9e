"""LASVM as a River classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.learners import lasvm_file, model_file, width
from streamsvm.learners.binary import BinaryLearner, check_number, check_positive
from streamsvm.learners.support_vectors import SupportVectors, arrays_of
from streamsvm.solvers import boxes, lasvm, lasvm_finish, lasvm_state
from streamsvm.support import dense_store

_FINISH_STEPS = 20_000
_LARGEST_DIAGONAL = 1e30


class LASVMClassifier(BinaryLearner):
    """Online soft-margin SVM with kernels and a bias: as accurate as a batch SVM after one pass.

    Every example is tried once as a support vector (PROCESS); then pairs of support vectors are
    improved, and those that turned out useless removed (REPROCESS). The problem solved, over the
    examples kept, is that of a batch SVM: maximise
    ``sum_s a_s y_s - 1/2 sum_st a_s a_t k(x_s, x_t)`` with ``sum_s a_s = 0`` and
    ``0 <= a_s y_s <= C``. Support vectors are not bounded in number: on noisy data they grow with
    the stream (about twice the share of errors of all examples), and memory with them.

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
    cache_mb
        Megabytes for cached kernel rows; 200 by default. Less is slower, never less exact.
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
    Accuracy: 89.4...%

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
        cache_mb: float = 200.0,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        if kernel is not None:
            kernels.check_kernel(kernel)
        self.kernel = kernel
        self.C = C
        self.tau = tau
        self.reprocess = reprocess
        self.delta_max = delta_max
        self.max_reprocess = max_reprocess
        self.second_order = second_order
        self.class_weight = class_weight
        self.cache_mb = cache_mb
        self.seed = seed
        self.kernel_ = kernel if kernel is not None else kernels.RBF(gamma=1.0)
        self._C = check_positive("C", C)
        self._schedule = lasvm.Schedule(
            tau=check_positive("tau", tau),
            reprocess=check_number("reprocess", reprocess, 0),
            delta_max=np.inf if delta_max is None else check_positive("delta_max", delta_max),
            max_reprocess=check_number("max_reprocess", max_reprocess, 0),
            second_order=float(bool(second_order)),
        )
        self._cache_bytes = int(check_number("cache_mb", cache_mb, 0) * 1e6)
        _check_class_weight(class_weight)
        self._counts = np.zeros(2)  # examples of the negative and the positive class
        self._moments = width.new_moments(0)
        # Arrays are made with the first example: clones are cheap.
        self._state: lasvm_state.LASVMState | None = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"kernel": kernels.Linear(), "C": 0.1, "class_weight": "balanced", "seed": 42}

    # The solver

    def _learn_rows(
        self,
        x: np.ndarray,
        y: np.ndarray,
        labels: list[Any],
        w: np.ndarray,
        numbers: np.ndarray,
        diagonal: np.ndarray,
    ) -> np.ndarray:
        margins = np.empty(len(y))
        start = 0
        while start < len(y):
            # Width and class weights change at powers of two, however the stream is cut.
            seen = self._n_examples + start
            stop = min(len(y), start + _next_power_of_two(seen) - seen)
            part = slice(start, stop)
            box = self._c_of(y[part], labels[part]) * w[part]
            self._learn_some(
                x[part], y[part], box, w[part], numbers[part], diagonal[part], margins[part]
            )
            if self.kernel is None and seen < width.LAST_SET:
                self._widen_moments(x.shape[1])
                width.update_moments(self._moments, seen, x[part])
            start = stop
            if self._n_examples + stop == _next_power_of_two(seen):
                self._adapt(self._n_examples + stop)
        return margins

    def _learn_some(
        self,
        x: np.ndarray,
        y: np.ndarray,
        box: np.ndarray,
        w: np.ndarray,
        numbers: np.ndarray,
        diagonal: np.ndarray,
        margins: np.ndarray,
    ) -> None:
        """Learn rows between two changes of width and weights, growing the store as needed."""
        state = self._state_for(x.shape[1])
        done = 0
        while True:
            done += lasvm.learn_rows(
                state,
                self.kernel_,
                x[done:],
                y[done:],
                box[done:],
                w[done:],
                numbers[done:],
                diagonal[done:],
                self._schedule,
                margins[done:],
            )
            if done == len(y):
                return
            capacity, n_features = 2 * state.alpha.size, state.store.panels.shape[1]
            state = lasvm_state.grown(state, capacity, n_features, self._cache_bytes)
            self._state = state

    def _state_for(self, n_features: int) -> lasvm_state.LASVMState:
        """Return the state, made or widened to hold so many features."""
        if self._state is None:
            self._state = lasvm_state.new_state(n_features, self._cache_bytes)
        elif self._state.store.panels.shape[1] < n_features:
            room = max(n_features, 2 * self._state.store.panels.shape[1])
            capacity = self._state.alpha.size
            self._state = lasvm_state.grown(self._state, capacity, room, self._cache_bytes)
            if kernels.product_of(type(self.kernel_)) == "vectors":
                lasvm_state.rebuild(self._state, self.kernel_, n_features)
        return self._state

    def _diagonal(self, x: np.ndarray) -> np.ndarray:
        if kernels.product_of(type(self.kernel_)) == "distance":
            # All rows are at distance 0 from themselves.
            return np.full(len(x), kernels.value_of_product(self.kernel_, 0.0), np.float32)
        diagonal = np.empty(len(x), np.float32)
        store = dense_store.new_store(1, x.shape[1])
        row = np.empty((1, store.entered.size), np.float32)
        lasvm.diagonal_of(self.kernel_, store, x, row, diagonal)
        good = (diagonal >= 0.0) & (diagonal < _LARGEST_DIAGONAL)
        if not good.all():
            r = int(np.argmin(good))
            raise FeatureError(
                f"row {r}: {self.kernel_!r} of the row with itself is {diagonal[r]!r}, which must "
                "be a moderate number of at least 0; scale the features"
            )
        return diagonal

    def _margins(self, x: np.ndarray) -> np.ndarray:
        margins = np.zeros(len(x))
        if self._state is not None:
            lasvm.margins_of(self._state_for(x.shape[1]), self.kernel_, x, margins)
        return margins

    def _turn_signs(self) -> None:
        self._counts = self._counts[::-1].copy()
        if self._state is not None:
            boxes.turn_signs(self._state)

    # Class weights and kernel width

    def _c_of(self, y: np.ndarray, labels: list[Any]) -> np.ndarray:
        """Return C times the class weight of each row, and count the rows if that depends on it."""
        if self.class_weight is None:
            return np.full(len(y), self._C)
        if isinstance(self.class_weight, dict):
            return self._C * np.array([float(self.class_weight.get(v, 1.0)) for v in labels])
        positive = np.cumsum(y > 0.0) + self._counts[1]
        negative = np.cumsum(y < 0.0) + self._counts[0]
        self._counts = np.array([negative[-1], positive[-1]])
        own = np.where(y > 0.0, positive, negative)
        return self._C * (positive + negative) / (2.0 * own)

    def _adapt(self, n: int) -> None:
        """Set the width and the boxes anew after n examples, a power of two."""
        assert self._state is not None
        if self.kernel is None and n <= width.LAST_SET:
            gamma = width.gamma_of(self._moments, n)
            if width.is_worth_it(self.kernel_.gamma, gamma):
                self.kernel_ = kernels.RBF(gamma=gamma)
                lasvm_state.rebuild(self._state, self.kernel_, len(self._schema))
        self._rebalance()

    def _rebalance(self) -> None:
        if self.class_weight != "balanced" or self._state is None or self._counts.min() == 0:
            return
        c = self._C * self._counts.sum() / (2.0 * self._counts)
        boxes.set_boxes(self._state, self.kernel_, c[0], c[1], len(self._schema))

    def _widen_moments(self, n_features: int) -> None:
        missing = n_features - self._moments.shape[1]
        if missing:
            self._moments = np.pad(self._moments, ((0, 0), (0, missing)))

    def finish(self, progress: Callable[[float, int], None] | None = None) -> None:
        """Run REPROCESS until delta <= tau: the optimum over the examples kept.

        Removes what is no support vector at that optimum. The stream can go on afterwards.

        Parameters
        ----------
        progress
            Called now and then with (delta, number of support vectors). An exception in it, or
            Ctrl-C, leaves a whole model behind.

        """
        self._rebalance()
        while self._state is not None and not lasvm_finish.finish_some(
            self._state, self.kernel_, self._schedule, len(self._schema), _FINISH_STEPS
        ):
            if progress is not None:
                progress(self.delta, self.n_support_vectors)

    # Looking inside

    @property
    def n_support_vectors(self) -> int:
        """How many examples have a coefficient other than 0."""
        return 0 if self._state is None else int(np.count_nonzero(self._state.alpha))

    @property
    def bias(self) -> float:
        """The constant b of the decision function."""
        return 0.0 if self._state is None else float(lasvm.bias(self._state))

    @property
    def delta(self) -> float:
        """The gradient gap of the worst pair: how far b is from certain. At most tau = optimal."""
        return 0.0 if self._state is None else float(lasvm.delta(self._state))

    @property
    def dual(self) -> float:
        """The dual objective."""
        return 0.0 if self._state is None else float(self._state.info[0].dual)

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays, cached kernel rows and scratch included."""
        return sum(array.nbytes for array in arrays_of(self._state))

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps, kernel values, how cached rows were found."""
        if self._state is None:
            return dict.fromkeys(_COUNTERS, 0)
        info, cache = self._state.info[0], self._state.cache.counts
        values = (info.n_steps, info.n_null, info.n_values + cache[3], cache[0], cache[1], cache[2])
        return dict(zip(_COUNTERS, map(int, values), strict=True))

    def support_vectors(self) -> SupportVectors:
        """Return the support vectors, in the order in which they entered."""
        width_ = len(self._schema)
        if self._state is None:
            empty = np.zeros(0)
            rows = np.zeros((0, width_), np.float32)
            return SupportVectors(self.feature_names, rows, empty, [], empty.astype(np.int64))
        n = int(self._state.info[0].n)
        kept = np.flatnonzero(self._state.alpha[:n])
        kept = kept[np.argsort(self._state.store.entered[kept], kind="stable")]
        alpha = self._state.alpha[kept]
        return SupportVectors(
            features=self.feature_names,
            rows=dense_store.rows_of(self._state.store, n, width_)[kept],
            coefficients=alpha,
            labels=[self._labels.label(a) for a in alpha.tolist()],
            entered=self._state.store.entered[kept],
        )

    # Copies

    def __getstate__(self) -> dict[str, Any]:
        # Cached rows are recomputed to the last bit: they need not travel.
        contents = self.__dict__.copy()
        if self._state is not None:
            contents["_state"] = lasvm_state.without_cache(self._state)
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update(contents)
        if self._state is not None:
            self._state = lasvm_state.with_cache(self._state, self._cache_bytes)


_COUNTERS = (
    "steps",
    "null_steps",
    "kernel_values",
    "cached_rows_hit",
    "cached_rows_missed",
    "cached_rows_extended",
)


def _next_power_of_two(n: int) -> int:
    """Return the smallest power of two above n."""
    return 1 << int(n).bit_length()


def _check_class_weight(class_weight: Any) -> None:
    if class_weight is None or class_weight == "balanced":
        return
    if not isinstance(class_weight, dict):
        raise ParameterError(
            f"class_weight={class_weight!r}: use None, 'balanced' or a dict {{label: factor}}"
        )
    for label, factor in class_weight.items():
        check_number(f"class_weight[{label!r}]", factor, 0)


model_file.register(LASVMClassifier, lasvm_file)
