"""Rows of a batch, learnt and predicted by a solver, in several threads where that pays.

While the solver learns a block of rows, other threads compute the kernel values of the next block
with the slots that are in use then. When the solver comes to it, it computes those with later slots
only. Which thread computes a value, and when, changes none of its bits. Callers hold the learner's
lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.errors import FeatureError
from streamsvm.models.kernel import threads
from streamsvm.models.kernel.kernel_solver import KernelSolver, KernelState, Sizes, values_in
from streamsvm.models.model import Kernel
from streamsvm.support import sparse_store, states, stores
from streamsvm.support.dense_store import RowStore
from streamsvm.support.kernel_rows.fresh_block import BLOCK, fill_values
from streamsvm.support.kernel_rows.kernel_diagonal import LARGEST_DIAGONAL
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

_ALONE = 1024
"""Rows that one thread learns before it is asked again whether several are worth it."""

_PREDICTED_PART = 50_000_000
"""Work for rows to predict of each part that a thread takes: see `work_of`; some 500 us."""


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


def learn_part(
    solver: KernelSolver,
    n_threads: int,
    sizes: Sizes,
    rows: tuple[Rows, ...],
    margins: np.ndarray,
    counts: list[int],
) -> None:
    """Learn rows between two changes of gamma and class weights, growing the state as needed.

    The state has room for `sizes`. `rows` are x, y, C_i, example weights, numbers, and k(x, x): see
    `learn_rows` of the solver. The `margins` from before are written. The number of rows learnt by
    each call of compiled code is appended to `counts`: after an interruption, too, it tells how
    many the state has learnt.
    """
    n, d = shape(rows[0])
    done, state = 0, solver.state_for(sizes)
    while done < n:
        if n > 1 and are_worth_threads(solver, n_threads, state, d):
            done = _learn_blocks(solver, n_threads, rows, done, margins, counts)
            stop = n
        else:
            # With more rows kept, threads may be worth it.
            stop = n if n_threads == 1 else min(n, done + _ALONE)
            arguments = tuple(cut(part, done, stop) for part in rows)
            solver.learn(arguments, margins[done:stop], counts)
            done += counts[-1]
        if done < stop:
            solver.make_room()
            state = solver.state


def _learn_blocks(
    solver: KernelSolver,
    n_threads: int,
    rows: tuple[Rows, ...],
    done: int,
    margins: np.ndarray,
    counts: list[int],
) -> int:
    """Learn rows from number `done` on, with kernel values that several threads compute.

    Return how many were learnt when the state must grow, else all.
    """
    n = shape(rows[0])[0]
    values = FreshValues(solver, n_threads, rows[0])
    # Blocks until values are read ahead again: ever more, while that is always in vain.
    pause, next_pause = 0, 1
    try:
        while done < n:
            stop = min(n, done + BLOCK)
            block = values.of(done, stop)
            is_read = pause == 0 and stop < n and solver.may_be_read(solver.state)
            if is_read:
                values.begin(stop, min(n, stop + BLOCK))
            arguments = tuple(cut(part, done, stop) for part in rows)
            solver.learn(arguments, margins[done:stop], counts, block, is_read)
            done += counts[-1]
            pause = max(0, pause - 1)
            if done == stop:
                next_pause = 1 if is_read else next_pause
            elif is_read:
                # Stored rows must be moved, or there is no room.
                pause, next_pause = next_pause, 2 * next_pause
            else:
                break
    finally:
        values.stop()
    return done


def write_margins(
    solver: KernelSolver, n_threads: int, state: KernelState, x: Rows, out: np.ndarray
) -> None:
    """Write the margins of rows by a state into `out`, in several threads if that pays.

    ValueError: the rows have more features than the state has room for.
    """
    if shape(x)[1] > states.n_columns(state):
        raise ValueError(f"{shape(x)[1]} features, and room for {states.n_columns(state)}")

    def write(state: KernelState, start: int, stop: int) -> None:
        solver.write_margins(state, cut(x, start, stop), out[start:stop])

    share_rows(n_threads, state, *shape(x), write)


def share_rows(
    n_threads: int, state: KernelState, n: int, d: int, do: Callable[[Any, int, int], None]
) -> None:
    """Call do(state, start, stop) for parts of n rows of d features, in threads if that pays.

    Each thread has a state with scratch of its own.
    """
    n_parts = 1
    if n > BLOCK and n_threads > 1:
        work = n * work_of(state.store, states.n_computed(state), d)
        n_parts = min(-(-n // BLOCK), work // _PREDICTED_PART)
    if n_parts < 2:
        do(state, 0, n)
        return
    own = deque([state])
    own.extend(states.with_scratch(state, True) for _ in range(min(n_threads, n_parts) - 1))

    def do_part(start: int, stop: int) -> None:
        one = own.pop()
        do(one, start, stop)
        own.append(one)

    threads.make_calls(do_part, threads.ranges(n, n_parts, BLOCK), n_threads)


def checked_diagonal(kernel: Kernel, diagonal: np.ndarray) -> np.ndarray:
    """Return k(x, x) of rows, float32 (n,); raise `FeatureError` if one is out of range."""
    good = (diagonal >= 0.0) & (diagonal < LARGEST_DIAGONAL)
    if not good.all():
        r = int(np.argmin(good))
        raise FeatureError(
            f"row {r}: {kernel!r} of the row with itself is {diagonal[r]!r}, which must "
            "be a moderate number of at least 0; scale the features"
        )
    return diagonal
