"""An exact SVM under changes: examples added, taken back, or given other bounds, one at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamsvm.errors import StreamSVMError
from streamsvm.solvers.incremental import margin, path
from streamsvm.solvers.incremental.kept import KeptExamples, write_row
from streamsvm.solvers.incremental.state import AT_HIGH, AT_LOW, INFO, MARGIN, PENDING

LINE = -1
"""In the place of a slot: the path is along the line of the state."""

_LEFT = (INFO.names or ()).index("left")

_MOST_INVERSES = 100
"""So many times Q^-1 is computed anew on a path at most: then too few digits are left."""

_REFRESH = 256
"""After so many changes all gradients are computed anew: rounding errors add up."""


class ExactProblem(KeptExamples):
    """The examples of an exact SVM, and its solution.

    Attributes
    ----------
    n_added, highest
        How many examples were added so far, and the largest of their numbers.
    share
        What each example adds to the sum of the coefficients, for a weight of 1: nu of one class.

    """

    def __init__(self, kernel: Any, cache_bytes: int, tube: float = np.inf) -> None:
        super().__init__(kernel, cache_bytes)
        self.state.info[0].tube = tube
        self.n_changes = self.n_added = self.highest = 0
        self.share = 0.0
        # The slot that is on its way, or `LINE`, and where to; then the costs that slots are to be
        # given. After an interruption it goes on from there.
        self._open: tuple[int, float] | None = None
        self._waiting: list[tuple[int, float]] = []

    def emptied(self, kernel: Any) -> ExactProblem:
        """Return a problem of the same kind without examples."""
        empty = ExactProblem(kernel, self.cache_bytes, float(self.state.info[0].tube))
        empty.share = self.share
        return empty

    @property
    def moving(self) -> int:
        """The slot that is on its way; -1: none."""
        return LINE if self._open is None else self._open[0]

    # Changes

    def add(
        self,
        x: np.ndarray,
        target: float,
        low: float,
        high: float,
        number: int,
        weight: float = 1.0,
        y: float = 0.0,
    ) -> None:
        """Add an example, x float64 (features,), with the bounds of its coefficient.

        Its number, its example weight, and what it was learnt with are kept with it.
        """
        self.settle()
        c = self.n
        if c == self.facts.size:
            self.grow(2 * c, self.state.members.size)
        state = self.state
        self.widen(x.size)
        self.columns[:, c] = 0.0
        self.columns[: x.size, c] = x
        row = np.empty(c + 1)
        write_row(self.kernel, self.columns, c + 1, self.columns[:, c].copy(), row)
        owned = np.flatnonzero(state.owner >= 0)
        state.rows[owned, c] = row[state.owner[owned]]
        state.beta[c], state.low[c], state.high[c], state.target[c] = 0.0, low, high, target
        state.diagonal[c], state.place[c], state.row_of[c] = row[c], -1, -1
        state.h[c] = target - row[:c] @ state.beta[:c] - self.bias
        state.kind[c] = PENDING
        self.facts[c] = number, self.n_added, weight, y
        self.row_of_new = row
        state.info[0].n = c + 1
        self.catch_up()
        try:
            self._finish()
        finally:
            self.row_of_new = None
        self.balance()

    def catch_up(self) -> None:
        """Take note that a slot was added or dropped, which an interruption may have prevented."""
        n = self.state.info.item(0)[0]
        if n > self.n:
            highest = max(self.highest, self.facts.item(n - 1)[0])
            self.__dict__.update(
                n=n, _open=(n - 1, np.nan), n_added=self.n_added + 1, highest=highest
            )
        elif n < self.n:
            self.n, self._open = n, None

    def remove(self, s: int) -> None:
        """Take an example back: the solution is that of the others."""
        self.settle()
        self.balance(without=[s])
        self._open = s, 0.0
        self._finish()

    def settle(self) -> None:
        """Finish what an interruption has left."""
        self.catch_up()
        if self._open is None and self.state.info.item(0)[_LEFT] > 0.0:
            self._open = LINE, 0.0
        if self._open is not None:
            self._finish()
        while self._waiting:
            self._set_cost(*self._waiting[0])
            del self._waiting[0]
        self.balance()

    def balance(self, without: list[int] | None = None) -> None:
        """Let the coefficients sum up to the share of all examples, or of all but some."""
        if self.share == 0.0:
            return
        weights = self.facts["weight"][: self.n].copy()
        weights[without or []] = 0.0
        change = self.share * math.fsum(weights) - float(self.state.info[0].total)
        if change:
            margin.begin_line(self.state, -math.copysign(1.0, change), abs(change))
            self._open = LINE, 0.0
            self._finish()

    def set_costs(self, slots: np.ndarray, costs: np.ndarray) -> None:
        """Give examples, int64 (k,), other largest coefficients, float64 (k,), above 0."""
        self.settle()
        self._waiting = list(zip(slots.tolist(), costs.tolist(), strict=True))
        self.settle()

    def _set_cost(self, s: int, cost: float) -> None:
        """Give a slot another cost; after an interruption it is done again from the start."""
        state = self.state
        beta = float(state.beta[s])
        low, high = (-cost, 0.0) if state.low[s] < 0.0 else (0.0, cost)
        if state.kind[s] != MARGIN or not low < beta < high:
            self._open = s, min(high, max(low, beta))
            self._advance()
            self._open = None
        self.state.low[s], self.state.high[s] = low, high
        if self.state.kind[s] == PENDING:
            self._open = s, np.nan
            self._finish()

    def release(self, s: int) -> None:
        """Move the coefficient of a slot to 0; `put_back` undoes it."""
        self._open = s, 0.0
        self._advance()

    def put_back(self, before: dict[str, np.ndarray]) -> None:
        """Set arrays of the state to what they were before `release`."""
        state, tick = self.state, self.state.info[0].tick
        for name, values in before.items():
            getattr(state, name)[tuple(slice(k) for k in values.shape)] = values
        state.info[0].tick = tick
        self._open = None

    def _finish(self) -> None:
        """Follow the slot on its way to its end; it is settled then, or taken back."""
        assert self._open is not None
        s, target = self._open
        left = self._advance()
        if target == target and s != LINE and not self._waiting:
            self.drop(s)
        self._open = None
        self._count()
        self.mend(left)

    def drop(self, s: int) -> None:
        """Remove a slot whose coefficient is 0; the last one takes its place."""
        margin.drop(self.state, self.columns, self.facts, s)
        self.catch_up()

    def mend(self, left: float) -> None:
        """Settle what rounding has made wrong, given the errors that were left."""
        for _ in range(margin.MOST_REPAIRS):
            if left > 2.0 * self.state.info[0].near:
                left = self._repair()

    def _repair(self) -> float:
        """Compute gradients anew; settle slots whose coefficients do not fit; return the errors."""
        self.refresh()
        state, left = self.state, 0.0
        at_bound = (state.kind[: self.n] == AT_LOW) | (state.kind[: self.n] == AT_HIGH)
        wrong = self.violations(state.h[: self.n]) > state.info[0].near
        for s in np.flatnonzero(at_bound & wrong).tolist():
            left = self.seek(s)
        return left

    def seek(self, s: int) -> float:
        """Let a slot that is not on the margin become optimal; return the errors that were left."""
        if self.state.kind[s] == MARGIN:
            return 0.0
        self._open = s, np.nan
        left = self._advance()
        self._open = None
        return left

    def _advance(self) -> float:
        """Follow the path of the slot on its way; return the errors that were left."""
        assert self._open is not None
        s, target = self._open
        if s != LINE:
            self.hold(s)
        self.follow(s, target)
        return float(margin.refine(self.state))

    def hold(self, s: int) -> None:
        """Let a slot not be settled: its coefficient stays while those of others change."""
        if self.state.kind[s] == MARGIN:
            margin.leave(self.state, s, PENDING)
        self.state.kind[s] = PENDING

    def follow(self, s: int, target: float) -> None:
        """Follow a path to its end, see `path.follow`, and provide what it needs."""
        n_inexact = self.state.info[0].n_still = 0
        while (code := path.follow(self.state, s, target)) != path.DONE:
            if code == path.MISSING_ROW:
                self.fetch(int(self.state.info[0].wanted))
            elif code == path.INEXACT and n_inexact < _MOST_INVERSES:
                n_inexact += 1
                margin.invert(self.state)
            elif code == path.MARGIN_FULL:
                self.grow(self.facts.size, 2 * self.state.members.size)
            else:
                # It stays as it is; what comes later does not fail for it.
                self._open, self.state.info[0].left = None, 0.0
                raise StreamSVMError(
                    "the exact solution could not be followed: scale the features (StandardScaler) "
                    "or lower C; if that does not help, please report it with the data"
                )

    def _count(self) -> None:
        self.n_changes += 1
        if self.n_changes % _REFRESH == 0:
            self.refresh()

    def fresh_gradients(self) -> np.ndarray:
        """Return the gradients, float64 (n,), from coefficients and kernel values."""
        state, n = self.state, self.n
        f = np.full(n, self.bias)
        for s in np.flatnonzero(state.beta[:n]).tolist():
            f += state.beta[s] * self.kernel_row(s)
        return np.asarray(state.target[:n] - f)

    def refresh(self) -> None:
        """Compute the gradients of all examples anew."""
        state, n = self.state, self.n
        state.h[:n] = np.where(state.kind[:n] != MARGIN, self.fresh_gradients(), 0.0)
        self.have_rows([])
        margin.refine(state)

    # Looking at it

    def decisions(self, x: np.ndarray) -> np.ndarray:
        """Return f of rows, float64 (rows, features)."""
        kept = np.flatnonzero(self.state.beta[: self.n])
        columns, beta = np.ascontiguousarray(self.columns[:, kept]), self.state.beta[kept]
        out, values, d = np.empty(len(x)), np.empty(len(kept)), len(columns)
        if x.shape[1] != d:
            # A new feature was 0 in all rows so far.
            columns = np.concatenate([columns, np.zeros((max(0, x.shape[1] - d), len(kept)))])
            x = np.concatenate([x, np.zeros((len(x), max(0, d - x.shape[1])))], axis=1)
        for r in range(len(x)):
            write_row(self.kernel, columns, len(kept), x[r], values)
            out[r] = values @ beta + self.bias
        return out

    def violations(self, h: np.ndarray) -> np.ndarray:
        """Return by how much gradients, float64 (n,), violate optimality; 0 or less: not."""
        state, n = self.state, self.n
        beta, low, high, tube = state.beta[:n], state.low[:n], state.high[:n], state.info[0].tube
        up = np.where(beta < high, h, np.where((beta == 0.0) & (high == 0.0), h - tube, -np.inf))
        down = np.where(beta > low, -h, np.where((beta == 0.0) & (low == 0.0), -h - tube, -np.inf))
        return np.maximum(up, down)

    def violation(self, h: np.ndarray) -> float:
        """Return by how much gradients, float64 (n,), violate optimality, at most."""
        return float(self.violations(h).max(initial=0.0))

    def losses(self) -> np.ndarray:
        """Return what margin errors, or those beyond epsilon, cost: float64 (n,)."""
        state, n = self.state, self.n
        h, low, high, tube = state.h[:n], state.low[:n], state.high[:n], state.info[0].tube
        own, other = np.where(low < 0.0, -h, h), np.where(low < 0.0, h, -h) - tube
        return np.asarray((high - low) * np.maximum(0.0, np.maximum(own, other)))

    @property
    def dual(self) -> float:
        """The dual objective."""
        state, n = self.state, self.n
        # sum beta q - 1/2 sum beta (q - h - b), as f - b = q - h - b, and the sum of beta is known.
        beta, q, h = state.beta[:n], state.target[:n], state.h[:n]
        return float(0.5 * beta @ (q + h) + 0.5 * self.bias * beta.sum())
