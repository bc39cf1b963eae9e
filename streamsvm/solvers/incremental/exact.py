"""An exact SVM under changes: examples added, taken back, or given other bounds, one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.errors import StreamSVMError
from streamsvm.solvers.incremental import margin, path
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

FACTS = np.dtype([("number", np.int64), ("arrived", np.int64), ("weight", np.float64)])
"""The number of an example, how many were added before it, and its weight."""

_MOST_INVERSES = 100
"""So many times Q^-1 is computed anew on a path at most: then too few digits are left."""

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
    columns, facts
        The rows by their features, float64 (features, slots), and FACTS (slots,) of the examples.
    n, n_added
        How many examples there are, and how many were added so far.

    """

    def __init__(self, kernel: Any, cache_bytes: int) -> None:
        self.kernel, self.cache_bytes = kernel, cache_bytes
        self.columns = np.zeros((0, _LEAST_SLOTS))
        self.facts = np.zeros(_LEAST_SLOTS, FACTS)
        self.n_changes = self.n_added = self.n = 0
        # The slot that is on its way, and where to; then the bounds that slots are to be given.
        # After an interruption it goes on from there.
        self._open: tuple[int, float] | None = None
        self._waiting: list[tuple[int, float, float]] = []
        self.state = self._new_state(_LEAST_SLOTS, _LEAST_MARGIN)

    def _new_state(self, n_slots: int, n_margin: int) -> ExactState:
        most = self.cache_bytes // (8 * n_slots)
        return new_state(n_slots, min(n_slots, max(most, n_margin + _SPARE_ROWS)), n_margin)

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
        changed: dict[str, Any] = {"state": new}
        if n_slots > self.facts.size:
            more = np.zeros(n_slots - self.facts.size, FACTS)
            changed |= {"columns": np.pad(self.columns, ((0, 0), (0, len(more))))}
            changed |= {"facts": np.concatenate([self.facts, more])}
        # In one step, so that they match after an interruption.
        self.__dict__.update(changed)
        for s in new.members[: m - 1].tolist():
            if new.row_of[s] < 0:
                self._fetch(s)

    def make_room(self, n_slots: int, n_margin: int, n_features: int) -> None:
        """Make room for so many examples, margin vectors and features."""
        slots, margin = self.facts.size, self.state.members.size
        while slots <= n_slots:
            slots *= 2
        while margin <= n_margin:
            margin *= 2
        if (slots, margin) != (self.facts.size, self.state.members.size):
            self._grow(slots, margin)
        self.widen(n_features)

    def widen(self, n_features: int) -> None:
        """Make room for features: they were 0 so far."""
        d, n_slots = self.columns.shape
        if n_features > d:
            self.columns = np.concatenate([self.columns, np.zeros((n_features - d, n_slots))])

    def rows(self, n_features: int) -> np.ndarray:
        """Return the rows of all examples, float32 (n, features)."""
        rows, d = np.zeros((self.n, n_features), np.float32), min(n_features, len(self.columns))
        rows[:, :d] = self.columns[:d, : self.n].T
        return rows

    # Kernel rows

    def row_of(self, x: np.ndarray) -> np.ndarray:
        """Return the kernel values of x, float64 (features,), with all examples, float64 (n,)."""
        out = np.empty(self.n)
        write_row(self.kernel, self.columns, self.n, x, out)
        return out

    def own_value(self, s: int) -> float:
        """Return k(x, x) of the example of slot s."""
        x, out = self.columns[:, s].copy(), np.empty(1)
        write_row(self.kernel, x[:, None].copy(), 1, x, out)
        return float(out[0])

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
            moving = s if self._open is None else self._open[0]
            held = state.row_of[[*state.members[: state.info[0].m].tolist(), moving]]
            used[held[held >= 0]] = np.iinfo(np.int64).max
            r = int(used.argmin())
            state.row_of[state.owner[r]] = state.owner[r] = -1
        write_row(self.kernel, self.columns, n, self.columns[:, s].copy(), state.rows[r])
        self._own(r, s)

    def have_rows(self, slots: list[int]) -> None:
        """Let the kernel rows of some slots, and of the margin set, be there."""
        state = self.state
        # Those of the margin set stay when another one is fetched.
        for s in [*state.members[: state.info[0].m].tolist(), *slots]:
            if state.row_of[s] < 0:
                self._fetch(s)

    def _own(self, r: int, s: int) -> None:
        state = self.state
        state.owner[r], state.row_of[s] = s, r
        state.info[0].tick += 1
        state.used[r] = state.info[0].tick

    # Changes

    def add(
        self,
        x: np.ndarray,
        target: float,
        low: float,
        high: float,
        number: int,
        weight: float = 1.0,
    ) -> None:
        """Add an example, x float64 (features,), with the bounds of its coefficient.

        Its number and its example weight are kept with it.
        """
        self.settle()
        c = self.n
        if c == self.facts.size:
            self._grow(2 * c, self.state.members.size)
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
        self.facts[c] = number, self.n_added, weight
        state.info[0].n = c + 1
        self.catch_up()
        self._finish()

    def catch_up(self) -> None:
        """Take note that a slot was added or dropped, which an interruption may have prevented."""
        n = self.state.info.item(0)[0]
        if n > self.n:
            self.n, self._open, self.n_added = n, (n - 1, np.nan), self.n_added + 1
        elif n < self.n:
            self.n, self._open = n, None

    def remove(self, s: int) -> None:
        """Take an example back: the solution is that of the others."""
        self.settle()
        self._open = s, 0.0
        self._finish()

    def settle(self) -> None:
        """Finish what an interruption has left."""
        self.catch_up()
        if self._open is not None:
            self._finish()
        while self._waiting:
            s, low, high = self._waiting[0]
            self._set_bounds(s, low, high)
            del self._waiting[0]

    def set_bounds(self, slots: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Give examples, int64 (k,), other bounds, float64 (k,): the solution follows exactly."""
        self.settle()
        self._waiting = list(zip(slots.tolist(), low.tolist(), high.tolist(), strict=True))
        self.settle()

    def _set_bounds(self, s: int, low: float, high: float) -> None:
        """Give a slot other bounds; after an interruption it is done again from the start."""
        beta = float(self.state.beta[s])
        if self.state.kind[s] != MARGIN or not low < beta < high:
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
        if target == target and not self._waiting:
            margin.drop(self.state, self.columns, self.facts, s)
            self.catch_up()
        self._open = None
        self._count()
        for _ in range(margin.MOST_REPAIRS):
            if left > 2.0 * self.state.info[0].near:
                left = self._repair()

    def _repair(self) -> float:
        """Compute gradients anew; settle slots whose coefficients do not fit; return the errors."""
        self.refresh()
        state, n, left = self.state, self.n, 0.0
        h, kind = state.h[:n], state.kind[:n]
        wrong = np.select([kind == AT_LOW, kind == AT_HIGH], [h, -h]) > state.info[0].near
        for s in np.flatnonzero(wrong).tolist():
            if self.state.kind[s] != MARGIN:
                self._open = s, np.nan
                left = self._advance()
                self._open = None
        return left

    def _advance(self) -> float:
        """Follow the path of the slot on its way; return the errors that were left."""
        assert self._open is not None
        s, target = self._open
        if self.state.kind[s] == MARGIN:
            margin.leave(self.state, s, PENDING)
        self.state.kind[s] = PENDING
        n_inexact = 0
        while (code := path.follow(self.state, s, target)) != path.DONE:
            if code == path.MISSING_ROW:
                self._fetch(int(self.state.info[0].wanted))
            elif code == path.INEXACT and n_inexact < _MOST_INVERSES:
                n_inexact += 1
                margin.invert(self.state)
            elif code == path.MARGIN_FULL:
                self._grow(self.facts.size, 2 * self.state.members.size)
            else:
                # It stays as it is; what comes later does not fail for it.
                self._open = None
                raise StreamSVMError(
                    "the exact solution could not be followed: scale the features (StandardScaler) "
                    "or lower C; if that does not help, please report it with the data"
                )
        return float(margin.refine(self.state))

    def _count(self) -> None:
        self.n_changes += 1
        if self.n_changes % _REFRESH == 0:
            self.refresh()

    def fresh_gradients(self) -> np.ndarray:
        """Return the gradients, float64 (n,), from coefficients and kernel values."""
        state, n = self.state, self.n
        f = np.full(n, self.bias)
        for s in np.flatnonzero(state.beta[:n]).tolist():
            r = state.row_of[s]
            f += state.beta[s] * (state.rows[r, :n] if r >= 0 else self.row_of(self.columns[:, s]))
        return np.asarray(state.target[:n] - f)

    def refresh(self) -> None:
        """Compute the gradients of all examples anew."""
        state, n = self.state, self.n
        state.h[:n] = np.where(state.kind[:n] != MARGIN, self.fresh_gradients(), 0.0)
        self.have_rows([])
        margin.refine(state)

    def begin_anew(self, kernel: Any) -> None:
        """Solve the problem with another kernel."""
        self.settle()
        state, n = self.state, self.n
        fresh = ExactProblem(kernel, self.cache_bytes)
        fresh.make_room(n, state.members.size - 1, len(self.columns))
        for s in range(n):
            fresh.add(self.columns[:, s], state.target[s], state.low[s], state.high[s], 0)
        fresh.facts[:n], fresh.n_added = self.facts[:n], self.n_added
        # Only now: what interrupts it leaves the solution with the old kernel.
        vars(self).update(vars(fresh))

    def exchange_signs(self) -> None:
        """Let all targets, and with them coefficients, gradients and bias, have the other sign."""
        self.settle()
        state = self.state
        for name in ("beta", "target", "h"):
            np.negative(getattr(state, name), out=getattr(state, name))
        state.low[:], state.high[:] = -state.high, -state.low
        at_low, at_high = state.kind == AT_LOW, state.kind == AT_HIGH
        state.kind[at_low], state.kind[at_high] = AT_HIGH, AT_LOW
        state.info[0].b = -state.info[0].b

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

    def violation(self, h: np.ndarray) -> float:
        """Return by how much gradients, float64 (n,), violate optimality, at most."""
        beta, low, high = (a[: self.n] for a in (self.state.beta, self.state.low, self.state.high))
        return float(max(h[beta < high].max(initial=0.0), -h[beta > low].min(initial=0.0)))

    @property
    def dual(self) -> float:
        """The dual objective."""
        state, n = self.state, self.n
        # sum beta q - 1/2 sum beta (q - h - b), as f - b = q - h - b, and the sum of beta is known.
        beta, q, h = state.beta[:n], state.target[:n], state.h[:n]
        return float(0.5 * beta @ (q + h) + 0.5 * self.bias * beta.sum())
