"""Averaged tracking as the solver of a model: with gradients of the examples kept, or with w."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.models.kernel import loaded
from streamsvm.models.kernel.kernel_solver import DualSolver, KernelState, Sizes
from streamsvm.models.model import Kernel
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.tracking import budget, finish
from streamsvm.solvers.tracking import linear as tracking_linear
from streamsvm.solvers.tracking import state as tracking_state
from streamsvm.solvers.tracking import step as tracking
from streamsvm.solvers.tracking.linear import LinearTrackingState
from streamsvm.solvers.tracking.state import TrackingState
from streamsvm.support import states
from streamsvm.support.rows import Rows, SparseRows, shape
from streamsvm.support.states import new_state


class TrackingSolver(DualSolver):
    """Averaged tracking with gradients of the examples kept.

    `window` is how many are kept at most, 0 for any number. The seed None draws otherwise each
    time.
    """

    step, states = tracking, tracking_state
    state_type: type = TrackingState

    def __init__(
        self,
        kernel: Kernel | None,
        schedule: tracking.Schedule,
        cache_mb: float,
        window: int,
        seed: int | None,
    ) -> None:
        super().__init__(kernel, schedule, cache_mb)
        self._window, self._seed = window, seed

    @property
    def is_averaged(self) -> bool:
        """Whether the averaged coefficients predict."""
        return bool(self.schedule.averaged)

    def set_averaged(self, is_averaged: bool) -> None:
        """Set whether the averaged coefficients predict."""
        if self.is_averaged != is_averaged:
            self.schedule = self.schedule._replace(averaged=float(is_averaged))

    def new_state(self, sizes: Sizes) -> KernelState:
        """Return an empty state."""
        own = sizes.n_features, self.cache_bytes, self._seed, sizes.is_sparse
        return new_state(self.state_type, *own, window=self._window)

    def remove(self, slots: np.ndarray, n_features: int) -> None:
        """Remove the examples in some slots; the averages begin anew."""
        state = self.state
        tracking_state.settle(state, True)
        self._take_out(slots, n_features)
        # Free slots are in files, too.
        for array in (state.cost, state.diagonal, state.active.arrival):
            array[slots] = 0
        state.y[slots] = 1.0
        self.drop_numbers()

    def drop_numbers(self) -> None:
        """Forget numbers of examples that are not kept."""
        if self.state is not None:
            # A larger number is looked for in no slot.
            self.state.info[0].last_number = self.kept_numbers().max(initial=0)

    def _take_out(self, slots: np.ndarray, n_features: int) -> None:
        kernel = self.bound_kernel(self.state)
        for s in slots.tolist():
            budget.remove(self.state, kernel, s, n_features)
        self.state.f[slots] = 0.0

    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the n slots in use."""
        return np.asarray((self.state.average if self.is_averaged else self.state.alpha)[:n])

    def squared_norm(self, n_features: int) -> float:
        """Return the square of |w|, of the average if that predicts."""
        if not self.is_averaged:
            return super().squared_norm(n_features)
        rows, coefficients, _ = self.expansion(n_features)
        margins = np.zeros(len(coefficients))
        self.write_margins(self.state, rows, margins)
        return max(0.0, float(coefficients @ margins))

    @property
    def n_kept(self) -> int:
        """Number of examples kept."""
        return 0 if self.state is None else int(self.state.active.counts[0].n_members)

    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept, int64 (n_kept,)."""
        members = self.state.active.members[: self.n_kept]
        return np.asarray(self.state.store.entered[members])

    def kept_gap(self, n_features: int) -> KeptGap:
        """Return the gap on the examples kept, not normalised."""
        kernel = self.bound_kernel(self.state)
        return finish.tracking_gap(self.state, kernel, n_features, self.is_averaged)

    def at_bound(self) -> np.ndarray:
        """Return whether each nonzero coefficient is at its upper bound C_i."""
        alpha = self.state.alpha
        return np.asarray((np.abs(alpha) >= self.state.cost)[alpha != 0.0])

    def mend_gradients(self, x: Rows, rows: Rows, at: np.ndarray, coefficients: np.ndarray) -> bool:
        """Tell whether the margins of the rows in the slots `at` are right."""
        state, f = self.state, np.zeros(len(at))
        self.write_margins_by(self.schedule._replace(averaged=0.0), state, rows, f)
        return loaded.is_close(f, state.f[at], state.alpha, state.diagonal)


class LinearTrackingSolver(TrackingSolver):
    """Averaged tracking that keeps w itself: for the linear kernel."""

    step, states, state_type = tracking_linear, tracking_linear, LinearTrackingState
    has_cache = False

    def bound_kernel(self, state: KernelState) -> Any:
        """Return the kernel, of which only the scale is used."""
        return self.kernel

    def write_margins(self, state: Any, x: Rows, out: np.ndarray) -> None:
        """Write the margins of rows into `out`."""
        w = state.w_average if self.is_averaged else state.w
        tracking_linear.margins_of(self.kernel, w, x, out)

    def _take_out(self, slots: np.ndarray, n_features: int) -> None:
        state, info, kernel = self.state, self.state.info[0], self.bound_kernel(self.state)
        state.alpha[slots] = state.average[slots] = 0.0
        for s in slots.tolist():
            tracking_state.leave(state, s)
        # Anew, so that not even a rounding error of what was removed is left.
        rows, alpha, _ = self.expansion(states.n_columns(state))
        state.w[:] = state.w_average[:] = _weighted_sum(rows, alpha)
        info.alpha_sum = np.abs(alpha).sum()
        dual = info.alpha_sum - 0.5 * kernel.scale * float(state.w @ state.w)
        info.lost += info.dual - dual
        info.dual = dual

    def kept_gap(self, n_features: int) -> KeptGap:
        """Return the gap on the examples kept, not normalised."""
        kernel = self.bound_kernel(self.state)
        return finish.linear_gap(self.state, kernel, n_features, self.is_averaged)

    def mend_gradients(self, x: Rows, rows: Rows, at: np.ndarray, coefficients: np.ndarray) -> bool:
        """Mend w where it is wrong; there are no gradients."""
        _mend_weights(self.state, x)
        return True


def _weighted_sum(rows: Rows, coefficients: np.ndarray) -> np.ndarray:
    """Return the sum of rows, each times its coefficient, float64 (features,)."""
    if not isinstance(rows, SparseRows):
        return np.asarray(coefficients @ rows)
    terms = rows.values * np.repeat(coefficients, np.diff(rows.start))
    return np.bincount(rows.columns, terms, rows.d)


def _mend_weights(state: tracking_linear.LinearTrackingState, rows: Rows) -> None:
    """Compute w from the examples kept, and replace it if it differs by more than rounding."""
    n, d = shape(rows)
    sizes: Rows
    if isinstance(rows, SparseRows):
        sizes = rows._replace(values=np.abs(rows.values))
    else:
        sizes = np.abs(rows)
    for w, coefficients in ((state.w, state.alpha[:n]), (state.w_average, state.average[:n])):
        wanted, size = np.zeros(w.size), np.zeros(w.size)
        wanted[:d] = _weighted_sum(rows, coefficients)
        size[:d] = _weighted_sum(sizes, np.abs(coefficients))
        # Of examples that have left the window a rounding error stays.
        if (np.abs(w - wanted) > 1e-5 * (1.0 + size.max(initial=0.0))).any():
            w[:] = wanted
