"""Batches of kernel learners: split where gamma or class weights change, run by several threads.

Callers hold the learner's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsvm.errors import FeatureError
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.learners.bases.kernel import adapting, threads
from streamsvm.learners.bases.kernel.fresh_values import FreshValues, are_worth_threads, work_of
from streamsvm.learners.bases.kernel.reserves.reserving_solver import ReservingSolver
from streamsvm.learners.bases.late_rows import row_after
from streamsvm.support import states, stores
from streamsvm.support.kernel_rows import kernel_diagonal
from streamsvm.support.kernel_rows.fresh_block import BLOCK
from streamsvm.support.kernel_rows.kernel_diagonal import LARGEST_DIAGONAL
from streamsvm.support.rows import Rows, SparseRows, cut, dense, shape, sparse
from streamsvm.support.sparse_store import SparseStore

if TYPE_CHECKING:
    from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner

_ALONE = 1024
"""Rows that one thread learns before it is asked again whether several are worth it."""

_PART = 50_000_000
"""Work for rows to predict of each part that a thread takes: see `work_of`; some 500 us."""


def learn_rows(learner: KernelLearner, rows: LabelledRows) -> np.ndarray:
    """Learn n rows over the features of the schema; return the margins from before each was learnt.

    Gamma and class weights are updated when the number of examples is a power of two. The batch is
    split there, so that the model does not depend on how the stream is cut into batches.

    The margins are float64 (n,), or (n, classes).
    """
    n_rows, start = len(rows.y), 0
    margins = learner.margins_of_learning(rows)
    while start < n_rows:
        seen = learner.n_examples
        until = max(1, learner.preparation.adapts_at - seen)
        if learner.preparation.is_racing:
            until = 1
        stop = row_after(rows.numbers, start, until)
        part = rows.part(start, stop)
        cost = _costs_of(learner, part)
        adapting.become_sparse_if_large(learner, shape(rows.x)[1], seen)
        if learner.is_sparse:
            # The learner may have become sparse after the batch was read.
            part = part._replace(x=sparse(part.x))
        scaled = learner.preparation.scaled(part.x)
        counts: list[int] = []
        try:
            arguments = (scaled, part.y, cost, part.w, part.numbers, part.diagonal)
            learn_part(learner, arguments, margins[start:stop], counts)
        finally:
            n = sum(counts)
            # First, so that no other example gets these numbers, whatever interrupts the rest.
            learner.n_learnt[0] = seen + np.count_nonzero(part.numbers[:n])
            _count(learner, seen, part.part(0, n), cut(scaled, 0, n), margins[start : start + n])
        start = stop
    return margins


def _costs_of(learner: KernelLearner, rows: LabelledRows) -> np.ndarray:
    """Return the C_i of rows, 0 of those that are only predicted."""
    cost, learnt = np.zeros(len(rows.y)), np.flatnonzero(rows.numbers > 0)
    if len(learnt):
        costs = learner.costs.of_rows(learner.C_, rows.y[learnt], rows.labels.take(learnt))
        cost[learnt] = costs * rows.w[learnt]
    return cost


def _count(
    learner: KernelLearner, seen: int, rows: LabelledRows, scaled: Rows, margins: np.ndarray
) -> None:
    """Take note of rows that were learnt after `seen` examples, and adapt the learner to them."""
    n = learner.n_examples
    learner.costs.count(rows.y[rows.numbers > 0])
    if isinstance(learner.solver, ReservingSolver):
        learner.solver.note(scaled, (rows.y, rows.w, rows.numbers, margins), seen)
    learner.preparation.note(learner, rows, seen)
    if seen < n:
        adapting.adapt(learner, n)


def learn_part(
    learner: KernelLearner, rows: tuple[Any, ...], margins: np.ndarray, counts: list[int]
) -> None:
    """Learn rows between two changes of gamma and class weights, growing the state as needed.

    `rows` are x, y, C_i, example weights, numbers, and k(x, x): see `learn_rows` of the solver. The
    `margins` from before are written. The number of rows learnt by each call of compiled code is
    appended to `counts`: after an interruption, too, it tells how many the state has learnt.
    """
    n, d = shape(rows[0])
    solver, done = learner.solver, 0
    state = solver.state_for(learner.sizes(d))
    while done < n:
        if n > 1 and are_worth_threads(learner, state, d):
            done = _learn_blocks(learner, rows, done, margins, counts)
            stop = n
        else:
            # With more rows kept, threads may be worth it.
            stop = n if learner.n_threads == 1 else min(n, done + _ALONE)
            arguments = tuple(cut(part, done, stop) for part in rows)
            solver.learn(arguments, margins[done:stop], counts)
            done += counts[-1]
        if done < stop:
            solver.make_room()
            state = solver.state


def _learn_blocks(
    learner: KernelLearner,
    rows: tuple[Any, ...],
    done: int,
    margins: np.ndarray,
    counts: list[int],
) -> int:
    """Learn rows from number `done` on, with kernel values that several threads compute.

    Return how many were learnt when the state must grow, else all.
    """
    n, solver = shape(rows[0])[0], learner.solver
    values = FreshValues(learner, solver.state, rows[0])
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


def margins_of(learner: KernelLearner, x: Rows) -> np.ndarray:
    """Return the margins of rows, computed by several threads if the batch is large enough.

    The n rows are over the features of the schema, and scaled as those kept. The result is float64
    (n,) or (n, classes), 0 before the first example.
    """
    if learner.is_sparse:
        # A monitor's sample may be of rows from before the learner became sparse.
        x = sparse(x)
    n, d = shape(x)
    margins = learner.targets.zeros(n)
    if learner.state is None or n == 0:
        return margins
    state = learner.solver.state_for(learner.sizes(d))
    write_margins(learner, state, x, margins)
    return margins


def write_margins(learner: KernelLearner, state: Any, x: Rows, out: np.ndarray) -> None:
    """Write the margins of rows by a state into `out`, in several threads if that pays."""

    def write(state: Any, start: int, stop: int) -> None:
        learner.solver.write_margins(state, cut(x, start, stop), out[start:stop])

    share_rows(learner, state, *shape(x), write)


def share_rows(
    learner: KernelLearner, state: Any, n: int, d: int, do: Callable[[Any, int, int], None]
) -> None:
    """Call do(state, start, stop) for parts of n rows of d features, in threads if that pays.

    Each thread has a state with scratch of its own.
    """
    n_parts, n_threads = 1, learner.n_threads
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


def checked_margins(learner: KernelLearner, x: Rows) -> np.ndarray:
    """Return the margins of n rows over the features seen, float64 (n,) or (n, classes).

    Raises FeatureError if a margin is too large for single precision.
    """
    margins = margins_of(learner, learner.preparation.scaled(x))
    if not np.isfinite(margins).all():
        r = int(np.flatnonzero(~np.isfinite(margins.reshape(len(margins), -1)).all(axis=1))[0])
        raise FeatureError(
            f"row {r}: {learner.kernel_!r} of it is too large for single precision; scale the "
            "features"
        )
    return margins


def diagonal_of(learner: KernelLearner, x: Rows) -> np.ndarray:
    """Return k(x, x) of rows, float32 (n,); raise `FeatureError` if the kernel cannot take one."""
    store = learner.state.store if learner.state is not None and isinstance(x, SparseRows) else None
    # A sparse store lends its scratch, if it has room for all features.
    has_room = isinstance(store, SparseStore) and stores.n_columns(store) >= shape(x)[1]
    diagonal = kernel_diagonal.diagonal_of(learner.kernel_, x, store if has_room else None)
    return checked_diagonal(learner.kernel_, diagonal)


def checked_diagonal(kernel: Any, diagonal: np.ndarray) -> np.ndarray:
    """Return k(x, x) of rows, float32 (n,); raise `FeatureError` if one is out of range."""
    good = (diagonal >= 0.0) & (diagonal < LARGEST_DIAGONAL)
    if not good.all():
        r = int(np.argmin(good))
        raise FeatureError(
            f"row {r}: {kernel!r} of the row with itself is {diagonal[r]!r}, which must "
            "be a moderate number of at least 0; scale the features"
        )
    return diagonal


def dense_rows(learner: KernelLearner) -> np.ndarray:
    """Return the rows kept, as they are compared; without coefficients, which may be many."""
    state = learner.state
    return dense(stores.rows_of(state.store, states.n_slots(state), len(learner.schema)))


def objective_of(learner: KernelLearner, x: Rows, signs: np.ndarray, weights: np.ndarray) -> float:
    """Return the regularisation, where there is one, plus the mean hinge loss over rows.

    `signs` and `weights` are those of the n rows, which are over the features seen.
    """
    margins = learner.margins_of(x) if shape(x)[0] else np.zeros(0)
    losses = np.maximum(0.0, learner.solver.loss_margin - signs * margins)
    factors = learner.costs_now(signs, weights) / learner.C_
    of_norm = learner.solver.regularisation
    more = 0.5 * of_norm * learner.squared_norm if of_norm else 0.0
    return more + (float((factors * losses).mean()) if len(losses) else 0.0)
