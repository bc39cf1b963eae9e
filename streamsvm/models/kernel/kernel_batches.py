"""Rows of a batch, learnt and predicted by a solver, in several threads where that pays.

Callers hold the learner's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.errors import FeatureError
from streamsvm.models.kernel import threads
from streamsvm.models.kernel.fresh_values import FreshValues, are_worth_threads, work_of
from streamsvm.models.kernel.kernel_solver import KernelSolver, KernelState, Sizes
from streamsvm.models.model import Kernel
from streamsvm.support import states
from streamsvm.support.kernel_rows.fresh_block import BLOCK
from streamsvm.support.kernel_rows.kernel_diagonal import LARGEST_DIAGONAL
from streamsvm.support.rows import Rows, cut, shape

_ALONE = 1024
"""Rows that one thread learns before it is asked again whether several are worth it."""

_PART = 50_000_000
"""Work for rows to predict of each part that a thread takes: see `work_of`; some 500 us."""


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
    """Write the margins of rows by a state into `out`, in several threads if that pays."""

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
        n_parts = min(-(-n // BLOCK), work // _PART)
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
