"""The ambiguous SVM as the solver of a model: with explicit weights, or with a kernel."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from streamsvm import kernels
from streamsvm.models.kernel import loaded
from streamsvm.models.kernel.kernel_solver import DualSolver, KernelState, Sizes
from streamsvm.models.model import Kernel
from streamsvm.solvers.ambiguous import blocks, linear
from streamsvm.solvers.ambiguous import state as ambiguous_state
from streamsvm.solvers.ambiguous.state import AmbiguousState, LinearState
from streamsvm.solvers.bounds import UNBOUNDED, Budget
from streamsvm.solvers.gap import KeptGap
from streamsvm.support import states
from streamsvm.support.rows import Rows

_FEWEST = 4
"""The smallest room for labels."""


class AmbiguousSolver(DualSolver):
    """The ambiguous SVM with a kernel: examples with a loss are kept, at most `limit`."""

    step: ModuleType = blocks
    states: ModuleType = ambiguous_state

    def __init__(
        self,
        kernel: Kernel | None,
        reprocess: float,
        cache_mb: float,
        seed: int | None,
        limit: int | None = None,
    ) -> None:
        bounds = UNBOUNDED if limit is None else Budget(float(limit))
        schedule = blocks.Schedule(reprocess, bounds)
        super().__init__(kernel, schedule, cache_mb)
        self._seed = seed

    def new_state(self, sizes: Sizes) -> KernelState:
        """Return an empty state."""
        room = max(_FEWEST, 2 * sizes.n_classes)
        own = sizes.n_features, self.cache_bytes, self._seed, sizes.is_sparse
        return states.new_state(AmbiguousState, *own, classes=room)

    def state_for(self, sizes: Sizes) -> AmbiguousState | LinearState:
        """Return the state, created or grown to hold so many features and labels."""
        state = super().state_for(sizes)
        if sizes.n_classes > state.u.size:
            capacity, d = state.store.entered.size, states.n_columns(state)
            room = 2 * sizes.n_classes
            state = self.state = states.grown(state, capacity, d, self.cache_bytes, room)
        state.info[0].n_classes = sizes.n_classes
        return state

    def remove(self, slots: np.ndarray, n_features: int) -> None:
        """Remove the examples in some slots, and what they have done."""
        kernel, n = self.bound_kernel(self.state), int(self.state.info[0].n)
        for s in slots.tolist():
            blocks.remove(self.state, kernel, s, n_features)
        kept = np.setdiff1d(np.arange(n), slots)
        ambiguous_state.keep_only(self.state, kept, len(kept))

    def classes_of(self, slots: np.ndarray) -> np.ndarray:
        """Return the numbers of labels; of a bag -1 - the number of its best candidate now."""
        k = int(self.state.info[0].n_classes)
        bags = self.state.bag[:k, slots] > 0
        best = np.where(bags, self.state.f[:k, slots], -np.inf).argmax(axis=0)
        return np.where(bags.sum(axis=0) > 1, -1.0 - best, best)

    # Inspection

    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the n slots in use, float64 (n, labels)."""
        return np.ascontiguousarray(self.state.beta[: int(self.state.info[0].n_classes), :n].T)

    def own_scores(self, numbers: np.ndarray, n_classes: int) -> np.ndarray:
        """Return what examples add to their own scores, float64 (n, labels); 0 if not kept."""
        found = np.zeros((len(numbers), n_classes))
        if not len(numbers) or not self.n_support_vectors:
            return found
        beta = self.coefficients(int(self.state.info[0].n))
        entered, order = self.state.store.entered[: len(beta)], np.argsort(numbers, kind="stable")
        at = np.searchsorted(numbers[order], entered)
        is_there = numbers[order[np.minimum(at, len(numbers) - 1)]] == entered
        rows = order[at[is_there]]
        found[rows] = (beta * self.state.diagonal[: len(beta), None])[is_there]
        return found

    def squared_norm(self, n_features: int) -> float:
        """Return the square of |w|, over all labels."""
        return max(0.0, 2.0 * (float(self.state.info[0].delta_sum) - self.dual))

    def predicting_weights(self, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        """Raise an error: there are no weights."""
        raise AttributeError("with a kernel there are no explicit weights")

    def kept_gap(self, n_features: int) -> KeptGap:
        """Return the gap on the examples kept, not normalised."""
        return blocks.kept_gap(self.state)

    def at_bound(self) -> np.ndarray:
        """Return whether each example with coefficients has as many as its C_i allows."""
        used = self.state.alpha > 0.0
        return np.asarray((self.state.alpha >= self.state.cost * (1.0 - 1e-12))[used])

    def mend_gradients(self, x: Rows, rows: Rows, at: np.ndarray, coefficients: np.ndarray) -> bool:
        """Tell whether the scores of the rows in the slots `at` are right."""
        state, k = self.state, int(self.state.info[0].n_classes)
        f = np.zeros((len(at), k))
        self.write_margins(state, rows, f)
        return loaded.is_close(f, state.f[:k, at].T, coefficients, state.diagonal)


class LinearAmbiguousSolver(AmbiguousSolver):
    """The ambiguous SVM with explicit weights: no example is kept."""

    step, states = linear, linear
    has_cache = False

    def __init__(self, is_averaged: bool, bias_rate: float) -> None:
        super().__init__(kernels.Linear(), 0.0, 0.0, None)
        self.schedule = linear.Schedule(float(is_averaged), bias_rate)

    def bound_kernel(self, state: KernelState) -> Kernel:
        """Return the kernel, which is not used."""
        return self.kernel

    def new_state(self, sizes: Sizes) -> KernelState:
        """Return an empty state."""
        room = {"slots": 1, "features": sizes.n_features, "classes": 2 * sizes.n_classes}
        room["parts"] = int(self.schedule.averaged)
        return states.new(LinearState, room, sparse=sizes.is_sparse)

    def write_margins(self, state: KernelState, x: Rows, out: np.ndarray) -> None:
        """Write the scores of rows into `out`."""
        linear.margins_of(state, self.kernel, self.schedule, x, out)

    def predicting_weights(self, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights that predict, float64 (features, labels), and the biases (labels,)."""
        if self.state is None:
            return np.zeros((n_features, 0)), np.zeros(0)
        state, k = self.state, int(self.state.info[0].n_classes)
        weights, bias = state.weights[:n_features, :k], state.bias[0, :k]
        n = int(state.info[0].n_seen)
        if not self.schedule.averaged or not n:
            return weights, bias
        return weights - state.sums[0, :n_features, :k] / n, bias - state.bias[1, :k] / n

    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of no example."""
        return np.zeros((0, int(self.state.info[0].n_classes)))

    def squared_norm(self, n_features: int) -> float:
        """Return the square of |w| of the weights that predict, over all labels."""
        weights, bias = self.predicting_weights(n_features)
        of_bias = float((bias**2).sum())
        return float((weights**2).sum()) + of_bias / (self.schedule.bias_rate or 1.0)

    def mend_gradients(self, x: Rows, rows: Rows, at: np.ndarray, coefficients: np.ndarray) -> bool:
        """Nothing can be computed from examples, as none is kept."""
        return True

    @property
    def n_support_vectors(self) -> int:
        """None is kept."""
        return 0
