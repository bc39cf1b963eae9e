"""Kernel values of the rows of a batch, computed by several threads, if possible in advance.

While the solver learns a block of rows, other threads compute the values of the next block with the
slots that are in use then. When the solver comes to it, it computes those with later slots only.
Which thread computes a value, and when, changes none of its bits.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from streamsvm.models.kernel import threads
from streamsvm.models.kernel.kernel_solver import KernelSolver, KernelState, values_in
from streamsvm.support import sparse_store, states, stores
from streamsvm.support.dense_store import RowStore
from streamsvm.support.kernel_rows.fresh_block import fill_values
from streamsvm.support.rows import Rows, cut, shape
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.stores import Store
from streamsvm.support.tiles import PANEL

_WORTH = 200_000
"""Work for a fresh row above which a block of them is shared out among threads; see `work_of`."""

_FEWEST_FEATURES = 32
"""With fewer features it takes as long to compute a value as to get it from another core."""

_PART = 300_000
"""Work for a fresh row in each part of a block that is shared out."""

_PER_VALUE = 30
"""Work for a kernel value beside that of its features: that of each feature is 1."""

_PER_NONZERO = 4
"""Work for a stored nonzero value of sparse rows."""


def work_of(store: Store | RowStore, n_slots: int, d: int) -> int:
    """Return the work for a row of a block, in multiplications: 1,000 take 10 ns in a block."""
    if isinstance(store, SparseStore):
        return _PER_NONZERO * int(store.counts[sparse_store.LIVE]) if n_slots else 0
    return n_slots * (d + _PER_VALUE)


def are_worth_threads(solver: KernelSolver, n_threads: int, state: KernelState, d: int) -> bool:
    """Tell whether the values of a block of rows are to be computed by several threads."""
    return (
        n_threads > 1
        and (d >= _FEWEST_FEATURES or isinstance(state.store, SparseStore))
        and solver.may_be_shared(d)
        and work_of(state.store, states.n_computed(state), d) > _WORTH
    )


class FreshValues:
    """The kernel values of rows x with the slots of a solver's state, block by block.

    The caller holds the learner's lock, and calls `stop` at the end, whatever happens.
    """

    def __init__(self, solver: KernelSolver, n_threads: int, x: Rows) -> None:
        state = solver.state
        self._state, self._x, self._n_threads = state, x, n_threads
        self._kernel = solver.bound_kernel(state)
        self._counts = states.counts_of(state)
        # With scratch of its own for each thread that computes values at the same time.
        self._stores = deque(stores.with_scratch(state.store) for _ in range(n_threads))
        # Where the next block begins, with how many slots its values are, and who computes them.
        self._ahead: tuple[int, int, threads.SharedCalls] | None = None
        # Not the state's own scratch: the solver reads one while others write to the other.
        own = values_in(state)
        self._values, self._spare = np.empty_like(own), np.empty_like(own)

    def of(self, start: int, stop: int) -> np.ndarray:
        """Return the values of rows start .. stop-1, at most `BLOCK`.

        `info.ready` tells the solver with how many slots.
        """
        if self._ahead is not None and self._ahead[0] == start:
            _, n, shared = self._ahead
            shared.finish()
            self._ahead = None
            self._values, self._spare = self._spare, self._values
        else:
            self.stop()
            n = self._counts["n"].item()
            calls = self._calls(start, stop, n, self._values)
            threads.make_calls(self._fill, calls, self._n_threads)
        self._state.info[0].ready = -n
        return self._values

    def begin(self, start: int, stop: int) -> None:
        """Let other threads compute the values of rows start .. stop-1 meanwhile."""
        n = self._counts["n"].item()
        calls = self._calls(start, stop, n, self._spare)
        shared = threads.SharedCalls(self._fill, calls, self._n_threads)
        self._ahead = start, n, shared
        shared.begin()

    def stop(self) -> None:
        """Let no thread compute values any more, nor read the store."""
        if self._ahead is not None:
            self._ahead[2].stop()
            self._ahead = None

    def _calls(
        self, start: int, stop: int, n: int, out: np.ndarray
    ) -> list[tuple[Rows, int, int, np.ndarray]]:
        """Return the arguments of `_fill` for each part of a block."""
        x = cut(self._x, start, stop)
        n_parts = self._n_threads
        if not isinstance(self._state.store, SparseStore):
            # Not for sparse rows, which are made dense for each part.
            n_parts = max(n_parts, work_of(self._state.store, n, shape(x)[1]) // _PART)
        return [(x, first, last, out) for first, last in threads.ranges(n, n_parts, PANEL)]

    def _fill(self, x: Rows, first: int, stop: int, out: np.ndarray) -> None:
        store = self._stores.pop()
        fill_values(self._kernel, store, x, first, stop, out)
        self._stores.append(store)
