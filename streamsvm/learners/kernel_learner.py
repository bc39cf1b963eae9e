"""What binary kernel learners share: the kernel and its width, class weights, growing states."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.learners import width
from streamsvm.learners.binary import BinaryLearner, check_number, check_positive
from streamsvm.learners.support_vectors import SupportVectors, arrays_of
from streamsvm.monitor.certificate import Certificate
from streamsvm.monitor.gap import KeptGap
from streamsvm.support import kernel_diagonal

_LARGEST_DIAGONAL = 1e30


class KernelLearner(BinaryLearner):
    """A binary classifier on a kernel expansion; a subclass adds the solver's state.

    Its `_state` is None before the first example, so that clones are cheap. All states hold rows
    by slot in a panel store.
    """

    def __init__(self, kernel: Any, C: float, class_weight: Any, cache_mb: float) -> None:
        super().__init__()
        if kernel is not None:
            kernels.check_kernel(kernel)
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.cache_mb = cache_mb
        self.kernel_ = kernel if kernel is not None else kernels.RBF(gamma=1.0)
        self._C = check_positive("C", C)
        self._cache_bytes = int(check_number("cache_mb", cache_mb, 0) * 1e6)
        _check_class_weight(class_weight)
        self._moments = width.new_moments(0)
        self._state: Any = None

    # What a subclass gives

    _states: Any
    """The module of the state: `grown`, `rebuild`, `without_cache` and `with_cache`."""

    @abc.abstractmethod
    def _new_state(self, n_features: int) -> Any:
        """Return an empty state."""

    @abc.abstractmethod
    def _solve(self, state: Any, rows: tuple[np.ndarray, ...], margins: np.ndarray) -> int:
        """Learn (x, y, box, weight, numbers, diagonal); return how many fitted into the state."""

    @abc.abstractmethod
    def _expansion(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, coefficients and numbers of the slots in use."""

    @property
    @abc.abstractmethod
    def _covers(self) -> str:
        """What the problem is about: the "kept" examples, the whole "stream", or its "window"."""

    @abc.abstractmethod
    def _kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept; there is a state."""

    @abc.abstractmethod
    def _kept_gap(self) -> KeptGap:
        """Return the measured gap on the examples kept; there is a state."""

    @property
    @abc.abstractmethod
    def certificate(self) -> Certificate:
        """The bound on the mean normalised gap over the stream so far, or why there is none."""

    @property
    @abc.abstractmethod
    def kappa(self) -> float:
        """The share of steps that changed nothing; 0 before any step."""

    @property
    @abc.abstractmethod
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps, kernel values, how cached rows were found."""

    @abc.abstractmethod
    def _bounded(self) -> np.ndarray:
        """Return, for all coefficients that are not 0, whether they are at their bound."""

    def _rebalance(self) -> None:
        """Set the boxes anew if they follow the stream."""

    # Learning

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
            rows = (x[part], y[part], box, w[part], numbers[part], diagonal[part])
            self._learn_some(rows, margins[part])
            if self.kernel is None and seen < width.LAST_SET:
                self._widen_moments(x.shape[1])
                width.update_moments(self._moments, seen, x[part])
            start = stop
            if self._n_examples + stop == _next_power_of_two(seen):
                self._adapt(self._n_examples + stop)
        return margins

    def _learn_some(self, rows: tuple[np.ndarray, ...], margins: np.ndarray) -> None:
        """Learn rows between two changes of width and weights, growing the state as needed."""
        state = self._state_for(rows[0].shape[1])
        done = 0
        while True:
            done += self._solve(state, tuple(part[done:] for part in rows), margins[done:])
            if done == len(margins):
                return
            self._grow(2 * state.alpha.size, self._states.n_columns(state))
            state = self._state

    def _state_for(self, n_features: int) -> Any:
        """Return the state, made or widened to hold so many features."""
        if self._state is None:
            self._state = self._new_state(n_features)
        elif self._states.n_columns(self._state) < n_features:
            room = max(n_features, 2 * self._states.n_columns(self._state))
            self._grow(self._state.alpha.size, room)
            if kernels.product_of(type(self.kernel_)) == "vectors":
                self._rebuild()
        return self._state

    def _grow(self, capacity: int, n_features: int) -> None:
        self._state = self._states.grown(self._state, capacity, n_features, self._cache_bytes)

    def _rebuild(self) -> None:
        """Compute everything that depends on the kernel anew."""
        if self._state is not None:
            self._states.rebuild(self._state, self.kernel_, len(self._schema))

    def _diagonal(self, x: np.ndarray) -> np.ndarray:
        if kernels.product_of(type(self.kernel_)) == "distance":
            # All rows are at distance 0 from themselves.
            return np.full(len(x), kernels.value_of_product(self.kernel_, 0.0), np.float32)
        diagonal = kernel_diagonal.diagonal_of(self.kernel_, x)
        good = (diagonal >= 0.0) & (diagonal < _LARGEST_DIAGONAL)
        if not good.all():
            r = int(np.argmin(good))
            raise FeatureError(
                f"row {r}: {self.kernel_!r} of the row with itself is {diagonal[r]!r}, which must "
                "be a moderate number of at least 0; scale the features"
            )
        return diagonal

    # Class weights and kernel width

    def _boxes_now(self, signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of these signs and weights would have now."""
        if not isinstance(self.class_weight, dict):
            return self._C * weights
        factors = [float(self.class_weight.get(self._labels.label(s), 1.0)) for s in signs.tolist()]
        return self._C * np.array(factors) * weights

    def _c_of(self, y: np.ndarray, labels: list[Any]) -> np.ndarray:
        """Return C times the class weight of each row."""
        if self.class_weight is None:
            return np.full(len(y), self._C)
        return self._C * np.array([float(self.class_weight.get(v, 1.0)) for v in labels])

    def _adapt(self, n: int) -> None:
        """Set the width and the boxes anew after n examples, a power of two."""
        if self.kernel is None and n <= width.LAST_SET:
            gamma = width.gamma_of(self._moments, n)
            if width.is_worth_it(self.kernel_.gamma, gamma):
                self.kernel_ = kernels.RBF(gamma=gamma)
                self._rebuild()
        self._rebalance()

    def _widen_moments(self, n_features: int) -> None:
        missing = n_features - self._moments.shape[1]
        if missing:
            self._moments = np.pad(self._moments, ((0, 0), (0, missing)))

    # Looking inside

    @property
    def n_support_vectors(self) -> int:
        """How many examples have a coefficient other than 0."""
        return 0 if self._state is None else int(np.count_nonzero(self._state.alpha))

    @property
    def dual(self) -> float:
        """The dual objective."""
        return 0.0 if self._state is None else float(self._state.info[0].dual)

    def duality_gap(self) -> float:
        """Return the measured duality gap on the examples kept, over the sum of their C_i.

        How far primal and dual are from their common optimum at this moment, at most; 0 before any
        example.
        """
        if self._state is None:
            return 0.0
        gap = self._kept_gap()
        return gap.total / gap.box if gap.box > 0.0 else 0.0

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays, cached kernel rows and scratch included."""
        return sum(array.nbytes for array in arrays_of(self._state))

    def support_vectors(self) -> SupportVectors:
        """Return the support vectors, in the order in which they entered."""
        if self._state is None:
            empty = np.zeros(0)
            rows = np.zeros((0, len(self._schema)), np.float32)
            return SupportVectors(self.feature_names, rows, empty, [], empty.astype(np.int64))
        rows, alpha, entered = self._expansion()
        kept = np.flatnonzero(alpha)
        kept = kept[np.argsort(np.abs(entered[kept]), kind="stable")]
        return SupportVectors(
            features=self.feature_names,
            rows=rows[kept],
            coefficients=alpha[kept],
            labels=[self._labels.label(a) for a in alpha[kept].tolist()],
            entered=entered[kept],
        )

    # Copies

    def __getstate__(self) -> dict[str, Any]:
        # Cached rows are recomputed to the last bit: they need not travel.
        contents = super().__getstate__()
        if self._state is not None:
            contents["_state"] = self._states.without_cache(self._state)
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update(contents)
        if self._state is not None:
            self._state = self._states.with_cache(self._state, self._cache_bytes)


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
