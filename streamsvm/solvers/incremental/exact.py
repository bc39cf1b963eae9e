"""An exact SVM under changes: examples added, taken back, or given other bounds, one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.errors import StreamSVMError
from streamsvm.solvers.incremental import path
from streamsvm.solvers.incremental.kernel_row import write_row
from streamsvm.solvers.incremental.state import (
    AT_HIGH,
    AT_LOW,
    MARGIN,
    PENDING,
    ExactState,
    new_state,
)

_LEAST_SLOTS, _LEAST_MARGIN, _SPARE_ROWS = 64, 32, 8

_REFRESH = 256
"""After so many changes all gradients are computed anew: rounding errors add up."""

OF_SLOTS = ("beta", "low", "high", "target", "h", "kind", "place", "diagonal")
"""The arrays of the state that say what a slot is; all else follows from them, or is a cache."""


class ExactProblem:
    """The examples of an exact SVM, and its solution.

    Attributes
    ----------
    kernel
        The kernel.
    state
        The arrays of the solution; the first `n` slots are in use.
    columns, numbers
        The rows by their features, float64 (features, slots), and the numbers of the examples.

    """

    def __init__(self, kernel: Any, cache_bytes: int) -> None:
        self.kernel, self.cache_bytes = kernel, cache_bytes
        self.columns = np.zeros((0, _LEAST_SLOTS))
        self.numbers = np.zeros(_LEAST_SLOTS, np.int64)
        self.n_changes = 0
        # The slot that is on its way, and where to: after an interruption it goes on from there.
        self._open: tuple[int, float] | None = None
        self.state = self._new_state(_LEAST_SLOTS, _LEAST_MARGIN)

    def _new_state(self, n_slots: int, n_margin: int) -> ExactState:
        most = self.cache_bytes // (8 * n_slots)
        return new_state(n_slots, min(n_slots, max(most, n_margin + _SPARE_ROWS)), n_margin)

    @property
    def n(self) -> int:
        """How many examples there are."""
        return int(self.state.info[0].n)

    @property
    def bias(self) -> float:
        """The constant b of the decision function."""
        return float(self.state.info[0].b)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.columns.nbytes + sum(array.nbytes for array in self.state)

    # Room

    def _grow(self, n_slots: int, n_margin: int) -> None:
        """Make room for so many slots and margin vectors; cached rows are kept if they fit."""
        old, n = self.state, self.n
        new = self._new_state(n_slots, n_margin)
        for name in OF_SLOTS:
            getattr(new, name)[:n] = getattr(old, name)[:n]
        m = old.info[0].m + 1
        new.members[: m - 1], new.inverse[:m, :m] = old.members[: m - 1], old.inverse[:m, :m]
        new.info[:] = old.info
        # Rows in use last come first: margin vectors are among them, or are fetched again.
        order = np.argsort(-old.used)[: len(new.owner)]
        order = order[old.owner[order] >= 0]
        new.rows[: len(order), :n] = old.rows[order, :n]
        new.owner[: len(order)], new.used[: len(order)] = old.owner[order], old.used[order]
        new.row_of[old.owner[order]] = np.arange(len(order))
        if n_slots > self.numbers.size:
            self.columns = _widened(self.columns, n_slots)
            self.numbers = np.resize(self.numbers, n_slots)
        self.state = new
        for s in new.members[: m - 1].tolist():
            if new.row_of[s] < 0:
                self._fetch(s)

    def widen(self, n_features: int) -> None:
        """Make room for features: they were 0 so far."""
        d, n_slots = self.columns.shape
        if n_features > d:
            self.columns = np.concatenate([self.columns, np.zeros((n_features - d, n_slots))])

    # Kernel rows

    def row_of(self, x: np.ndarray) -> np.ndarray:
        """Return the kernel values of x, float64 (features,), with all examples, float64 (n,)."""
        out = np.empty(self.n)
        write_row(self.kernel, self.columns, self.n, x, out)
        return out

    def _fetch(self, s: int) -> None:
        """Compute the kernel row of slot s, in the place of the one that was not used for longest.

        Rows of the margin set, and of the slot on its way, stay.
        """
        state, n = self.state, self.n
        free = np.flatnonzero(state.owner < 0)
        if free.size:
            r = int(free[0])
        else:
            used = state.used.copy()
            kept = [
                *state.members[: state.info[0].m].tolist(),
                s if self._open is None else self._open[0],
            ]
            held = state.row_of[kept]
            used[held[held >= 0]] = np.iinfo(np.int64).max
            r = int(used.argmin())
            state.row_of[state.owner[r]] = -1
        write_row(self.kernel, self.columns, n, self.columns[:, s].copy(), state.rows[r])
        self._own(r, s)

    def _own(self, r: int, s: int) -> None:
        state = self.state
        state.owner[r], state.row_of[s] = s, r
        state.info[0].tick += 1
        state.used[r] = state.info[0].tick

    # Changes

    def add(
        self, x: np.ndarray, target: float, low: float, high: float, number: int, beta: float = 0.0
    ) -> None:
        """Add an example, x float64 (features,), with the bounds of its coefficient.

        `beta` is by how much the sum of the coefficients grows with it.
        """
        self.settle()
        c = self.n
        if c == self.numbers.size:
            self._grow(2 * c, self.state.members.size)
        state = self.state
        self.widen(x.size)
        self.columns[:, c] = 0.0
        self.columns[: x.size, c] = x
        self.numbers[c] = number
        state.info[0].n = c + 1
        row = np.empty(c + 1)
        write_row(self.kernel, self.columns, c + 1, self.columns[:, c].copy(), row)
        owned = np.flatnonzero(state.owner >= 0)
        state.rows[owned, c] = row[state.owner[owned]]
        state.beta[c], state.low[c], state.high[c], state.target[c] = 0.0, low, high, target
        state.diagonal[c], state.place[c], state.row_of[c] = row[c], -1, -1
        state.h[c] = target - row[:c] @ state.beta[:c] - self.bias
        state.kind[c] = PENDING
        self._open = c, np.nan
        self._advance()

    def remove(self, s: int) -> None:
        """Take an example back: the solution is that of the others."""
        self.settle()
        self._release(s, 0.0)
        self._drop(s)
        self._count()

    def settle(self) -> None:
        """Finish what an interruption has left."""
        if self._open is not None:
            s, target = self._open
            self._advance()
            if target == target:
                self._drop(s)

    def set_bounds(self, slots: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Give examples, int64 (k,), other bounds, float64 (k,): the solution follows exactly."""
        self.settle()
        state = self.state
        for s, new_low, new_high in zip(slots.tolist(), low.tolist(), high.tolist(), strict=True):
            beta = float(state.beta[s])
            if beta < new_low or beta > new_high:
                self._release(s, min(new_high, max(new_low, beta)))
            elif state.kind[s] != MARGIN or beta in (new_low, new_high):
                self._release(s, beta)
            state.low[s], state.high[s] = new_low, new_high
            if state.kind[s] == PENDING:
                self._open = s, np.nan
                self._advance()

    def _release(self, s: int, target: float) -> None:
        """Move the coefficient of a slot to `target`; it is pending then."""
        state = self.state
        if state.kind[s] == MARGIN:
            path.leave(state, s, PENDING)
        state.kind[s] = PENDING
        self._open = s, target
        self._advance()

    def _advance(self) -> None:
        """Follow the path of the slot on its way to its end."""
        assert self._open is not None
        s, target = self._open
        code = path.DONE
        while True:
            was_inexact, code = code == path.INEXACT, path.follow(self.state, s, target)
            if code == path.DONE:
                break
            if code == path.MISSING_ROW:
                self._fetch(int(self.state.info[0].wanted))
            elif code == path.INEXACT and not was_inexact:
                self._invert()
            elif code == path.MARGIN_FULL:
                self._grow(self.numbers.size, 2 * self.state.members.size)
            else:
                raise StreamSVMError(
                    "the exact solution could not be followed: examples depend on each other in a "
                    "way that is not resolved; please report it with the data"
                )
        path.refine(self.state)
        self._open = None
        self._count()

    def _invert(self) -> None:
        """Compute Q^-1 anew."""
        state = self.state
        m = int(state.info[0].m)
        members = state.members[:m]
        Q = np.ones((m + 1, m + 1))
        Q[0, 0] = 0.0
        Q[1:, 1:] = state.rows[np.ix_(state.row_of[members], members)]
        if m:
            state.inverse[: m + 1, : m + 1] = np.linalg.inv(Q)
        state.info[0].drift = 0.0

    def _count(self) -> None:
        self.n_changes += 1
        if self.n_changes % _REFRESH == 0:
            self.refresh()

    def _drop(self, s: int) -> None:
        """Remove a slot whose coefficient is 0; the last one takes its place."""
        state, last = self.state, self.n - 1
        if state.row_of[s] >= 0:
            state.owner[state.row_of[s]], state.used[state.row_of[s]] = -1, 0
        if s != last:
            for name in OF_SLOTS:
                array = getattr(state, name)
                array[s] = array[last]
            state.row_of[s] = state.row_of[last]
            self.columns[:, s], self.numbers[s] = self.columns[:, last], self.numbers[last]
            state.rows[:, s] = state.rows[:, last]
            if state.row_of[s] >= 0:
                state.owner[state.row_of[s]] = s
            if state.place[s] >= 0:
                state.members[state.place[s]] = s
        state.row_of[last] = -1
        state.info[0].n = last
        self._open = None

    def refresh(self) -> None:
        """Compute the gradients of all examples anew."""
        state, n = self.state, self.n
        f = np.full(n, self.bias)
        for s in np.flatnonzero(state.beta[:n]).tolist():
            r = state.row_of[s]
            f += state.beta[s] * (state.rows[r, :n] if r >= 0 else self.row_of(self.columns[:, s]))
        settled = state.kind[:n] != MARGIN
        state.h[:n] = np.where(settled, state.target[:n] - f, 0.0)
        path.refine(state)

    def begin_anew(self, kernel: Any) -> None:
        """Solve the problem with another kernel."""
        self.settle()
        old, n = self.state, self.n
        columns, numbers = self.columns, self.numbers.copy()
        self.kernel = kernel
        self.state = self._new_state(self.numbers.size, old.members.size)
        self.columns = np.zeros_like(columns)
        for s in range(n):
            self.add(columns[:, s], old.target[s], old.low[s], old.high[s], int(numbers[s]))

    # Looking at it

    def decisions(self, x: np.ndarray) -> np.ndarray:
        """Return f of rows, float64 (rows, features)."""
        state, n = self.state, self.n
        kept = np.flatnonzero(state.beta[:n])
        columns, beta = np.ascontiguousarray(self.columns[:, kept]), state.beta[kept]
        out, values = np.empty(len(x)), np.empty(len(kept))
        d = len(columns)
        for r in range(len(x)):
            row = np.zeros(d)
            row[: min(d, x.shape[1])] = x[r, :d]
            write_row(self.kernel, columns, len(kept), row, values)
            out[r] = values @ beta + self.bias
        return out

    @property
    def dual(self) -> float:
        """The dual objective."""
        state, n = self.state, self.n
        # sum beta q - 1/2 sum beta (q - h - b), as f - b = q - h - b, and the sum of beta is known.
        beta, q, h = state.beta[:n], state.target[:n], state.h[:n]
        return float(0.5 * beta @ (q + h) + 0.5 * self.bias * beta.sum())


def _widened(columns: np.ndarray, n_slots: int) -> np.ndarray:
    out = np.zeros((len(columns), n_slots))
    out[:, : columns.shape[1]] = columns
    return out


__all__ = ["AT_HIGH", "AT_LOW", "MARGIN", "PENDING", "ExactProblem"]
