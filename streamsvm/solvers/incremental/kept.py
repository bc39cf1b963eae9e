"""The examples of an exact SVM, with their kernel rows: room for them, and values computed.

Kernel values are in double precision. In single precision the margin set's matrix would not be
positive definite where vectors are close. The sums of a value are made in one order, whatever the
number of rows is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import compiled
from streamsvm.kernels.registry import product_of, value_of_product, value_of_vectors
from streamsvm.solvers.incremental.margin import FRESH
from streamsvm.solvers.incremental.state import ExactState, new_state

LEAST_SLOTS, LEAST_MARGIN, _SPARE_ROWS = 64, 32, 8

FACTS = np.dtype(
    [("number", np.int64), ("arrived", np.int64), ("weight", np.float64), ("y", np.float64)]
)
"""The number of an example, how many were added before it, its weight, and its sign or number."""

OF_SLOTS = ("beta", "low", "high", "target", "h", "kind", "place", "diagonal")
"""The arrays of the state that say what a slot is; all else follows from them, or is a cache."""


@compiled
def _products(columns, n, x, is_distance, out):
    """Write dot products, or squared distances, of x, float64 (d,), and n rows to `out`.

    `columns`, float64 (features, slots), are the rows by their features.
    """
    out[:n] = 0.0
    for k in range(x.size):
        column, value = columns[k], x[k]
        if is_distance:
            for i in range(n):
                difference = value - column[i]
                out[i] += difference * difference
        elif value != 0.0:
            for i in range(n):
                out[i] += value * column[i]


@compiled
def _values_of_products(kernel, products):
    for i in range(products.size):
        products[i] = value_of_product(kernel, products[i])


@compiled
def _values_of_vectors(kernel, columns, n, x, out):
    row = np.empty(x.size)
    for i in range(n):
        for k in range(x.size):
            row[k] = columns[k, i]
        out[i] = value_of_vectors(kernel, x, row)


def write_row(kernel: Any, columns: np.ndarray, n: int, x: np.ndarray, out: np.ndarray) -> None:
    """Write the kernel values of x, float64 (d,), with the first n of the kept rows to `out`.

    A kernel type may have a method ``in_double(products)``, where the registered function computes
    in single precision.
    """
    product = product_of(type(kernel))
    if product == "vectors":
        _values_of_vectors(kernel, columns, n, x, out)
        return
    _products(columns, n, x, product == "distance", out)
    if hasattr(kernel, "in_double"):
        out[:n] = kernel.in_double(out[:n])
    else:
        _values_of_products(kernel, out[:n])


class KeptExamples:
    """Rows, facts and cached kernel rows of the examples of an exact SVM.

    Attributes
    ----------
    kernel
        The kernel.
    state
        The arrays of the solution; the first `n` slots are in use.
    columns, facts
        The rows by their features, float64 (features, slots), and FACTS (slots,) of the examples.
    n
        How many examples there are.
    moving
        The slot whose coefficient changes, whose kernel row stays; -1: none.

    """

    def __init__(self, kernel: Any, cache_bytes: int) -> None:
        self.kernel, self.cache_bytes = kernel, cache_bytes
        self.columns = np.zeros((0, LEAST_SLOTS))
        self.facts = np.zeros(LEAST_SLOTS, FACTS)
        self.n = 0
        self.row_of_new: np.ndarray | None = None  # the kernel row of the example that is added
        self.state = self._new_state(LEAST_SLOTS, LEAST_MARGIN)

    @property
    def moving(self) -> int:
        """No slot."""
        return -1

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

    def grow(self, n_slots: int, n_margin: int) -> None:
        """Make room for so many slots and margin vectors; cached rows are kept if they fit."""
        old, n = self.state, self.n
        new = self._new_state(n_slots, n_margin)
        for name in OF_SLOTS:
            getattr(new, name)[:n] = getattr(old, name)[:n]
        m = old.info[0].m + 1
        new.members[: m - 1], new.inverse[:m, :m] = old.members[: m - 1], old.inverse[:m, :m]
        new.info[:], new.line[:n] = old.info, old.line[:n]
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
                self.fetch(s)

    def make_room(self, n_slots: int, n_margin: int, n_features: int) -> None:
        """Make room for so many examples, margin vectors and features."""
        slots, margin = self.facts.size, self.state.members.size
        while slots <= n_slots:
            slots *= 2
        while margin <= n_margin:
            margin *= 2
        if (slots, margin) != (self.facts.size, self.state.members.size):
            self.grow(slots, margin)
        self.widen(n_features)

    def take_columns(self, columns: np.ndarray) -> None:
        """Keep these features only, int64 (k,): the others are 0 in all rows."""
        self.columns = np.ascontiguousarray(self.columns[columns])

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

    def kernel_row(self, s: int) -> np.ndarray:
        """Return the kernel values of the example of slot s with all, float64 (n,)."""
        r = self.state.row_of[s]
        return self.state.rows[r, : self.n] if r >= 0 else self.row_of(self.columns[:, s].copy())

    def change_kernel(self, kernel: Any, own: np.ndarray) -> None:
        """Take another kernel, k(x, x) being `own`: without kernel rows and margin set."""
        self.kernel, self.row_of_new, state = kernel, None, self.state
        state.owner[:], state.used[:], state.row_of[:], state.place[:] = -1, 0, -1, -1
        state.info[0].m, state.info[0].drift = 0, FRESH
        state.diagonal[: self.n] = own

    def own_value(self, s: int, kernel: Any = None) -> float:
        """Return k(x, x) of the example of slot s, by another kernel if one is given."""
        x, out = self.columns[:, s].copy(), np.empty(1)
        write_row(self.kernel if kernel is None else kernel, x[:, None].copy(), 1, x, out)
        return float(out[0])

    def fetch(self, s: int) -> None:
        """Compute the kernel row of slot s, in the place of the one that was not used for longest.

        Rows of the margin set, and of the slot on its way, stay.
        """
        state, n = self.state, self.n
        free = np.flatnonzero(state.owner < 0)
        if free.size:
            r = int(free[0])
        else:
            used = state.used.copy()
            moving = s if self.moving < 0 else self.moving
            held = state.row_of[[*state.members[: state.info[0].m].tolist(), moving]]
            used[held[held >= 0]] = np.iinfo(np.int64).max
            r = int(used.argmin())
            state.row_of[state.owner[r]] = state.owner[r] = -1
        new = self.row_of_new
        if new is not None and s == n - 1 == len(new) - 1:
            state.rows[r, :n] = new
        else:
            write_row(self.kernel, self.columns, n, self.columns[:, s].copy(), state.rows[r])
        self._own(r, s)

    def have_rows(self, slots: list[int]) -> None:
        """Let the kernel rows of some slots, and of the margin set, be there."""
        state = self.state
        # Those of the margin set stay when another one is fetched.
        for s in [*state.members[: state.info[0].m].tolist(), *slots]:
            if state.row_of[s] < 0:
                self.fetch(s)

    def _own(self, r: int, s: int) -> None:
        state = self.state
        state.owner[r], state.row_of[s] = s, r
        state.info[0].tick += 1
        state.used[r] = state.info[0].tick
