"""Batches of kernel learners: split where gamma or class weights change, run by several threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases.kernel import auto_gamma, threads
from streamsvm.learners.bases.kernel.trials import trial
from streamsvm.learners.bases.late_rows import row_after, rows_where
from streamsvm.learners.bases.scaled_rows import scaled_rows
from streamsvm.support import states, stores
from streamsvm.support.kernel_rows.fresh_block import BLOCK, fill_block
from streamsvm.support.rows import Rows, cut, shape, sparse
from streamsvm.support.tiles import PANEL


def learn_rows(
    learner: Any,
    x: Rows,
    y: np.ndarray,
    labels: LabelColumn,
    w: np.ndarray,
    numbers: np.ndarray,
    diagonal: np.ndarray,
) -> np.ndarray:
    """Learn rows; return the margins from before each was learnt.

    Gamma and class weights are updated when the number of examples is a power of two. The batch is
    split there, so that the model does not depend on how the stream is cut into batches.

    Parameters
    ----------
    learner
        A `KernelLearner`; the caller holds its lock.
    x
        n rows over the features of its schema.
    y
        float64 (n,): +1 or -1; for several classes their numbers 0, 1, ...
    labels
        The n labels.
    w, numbers, diagonal
        float64, int64 and float32 (n,): example weights, example numbers, and k(x, x). Rows of
        number 0 are only predicted.

    Returns
    -------
    float64 (n,), or (n, classes).

    """
    margins = learner._margins_of_learning(len(y))
    start = 0
    while start < len(y):
        seen = learner._n_examples
        until = auto_gamma.next_power_of_two(seen) - seen
        if learner._trial is not None and learner._trial.begun is not None:
            # Candidates learn a little after each event.
            until = 1
        stop = row_after(numbers, start, until)
        part = slice(start, stop)
        learnt = np.flatnonzero(numbers[part] > 0)
        box = np.zeros(stop - start)
        if len(learnt):
            costs = learner._costs_of(y[part][learnt], labels[part].take(learnt))
            box[learnt] = costs * w[part][learnt]
        fresh = cut(x, start, stop)
        learner._become_sparse_if_large(shape(x)[1], seen)
        if learner._sparse:
            # The learner may have become sparse after the batch was read.
            fresh = sparse(fresh)
        scaled = scaled_rows(fresh, learner._factors)
        rows = (scaled, y[part], box, w[part], numbers[part], diagonal[part])
        counts: list[int] = []
        try:
            learn_part(learner, rows, margins[part], counts)
        finally:
            done = slice(start, start + sum(counts))
            n = done.stop - done.start
            targets = y[done], labels[done], w[done], numbers[done], margins[done]
            _count(learner, cut(fresh, 0, n), cut(scaled, 0, n), *targets)
        start = stop
    return margins


def _count(
    learner: Any,
    x: Rows,
    scaled: Rows,
    y: np.ndarray,
    labels: LabelColumn,
    w: np.ndarray,
    numbers: np.ndarray,
    margins: np.ndarray,
) -> None:
    """Count rows that were learnt, and adapt the learner to them."""
    seen, learnt = learner._n_examples, np.flatnonzero(numbers > 0)
    # First, so that no other example gets these numbers, whatever interrupts the rest.
    learner._n_examples = n = seen + len(learnt)
    learner._note(scaled, y, w, numbers, margins, seen)
    if learner.kernel is None and seen < auto_gamma.LAST_SET and len(learnt):
        examples = rows_where(x, numbers > 0)
        learner._moments = auto_gamma.updated(learner._moments, seen, examples)
    if learner._trial is not None and len(learnt):
        classes = labels.take(learnt).places_in(learner._labels.seen)
        learner._trial.add(rows_where(x, numbers > 0), classes, w[learnt], numbers[learnt])
    elif learner._scales is not None:
        learner._scales.learn_some(rows_where(x, numbers > 0), seen)
    if seen < n == auto_gamma.next_power_of_two(seen):
        learner._adapt(n)
    elif seen < n and learner._trial is not None:
        trial.step(learner, n)


def learn_part(learner: Any, rows: tuple[Any, ...], margins: np.ndarray, counts: list[int]) -> None:
    """Learn rows between two changes of gamma and class weights, growing the state as needed.

    Parameters
    ----------
    learner
        A `KernelLearner`; the caller holds its lock.
    rows
        Rows x, y, C_i, example weights, numbers, and k(x, x): see `learn_rows` of the solver.
    margins
        float64 (n,), or (n, classes), written: from before each was learnt.
    counts
        The number of rows learnt by each call of compiled code is appended. After an interruption,
        too, it tells how many the state has learnt.

    """
    x, *others = rows
    n, d = shape(x)
    state = learner._state_for(d)
    done = 0
    while done < n:
        is_parallel = (
            n > 1
            and learner._n_threads > 1
            and threads.are_worth_it(state.store, states.n_computed(state), d)
        )
        stop = min(n, done + BLOCK) if is_parallel else n
        fresh = cut(x, done, stop)
        if is_parallel:
            _fill_block(learner, state, fresh)
        arguments = (fresh, *(part[done:stop] for part in others))
        learner._solve(state, arguments, margins[done:stop], counts)
        done += counts[-1]
        if done < stop:
            capacity = state.store.entered.size * (1 if stores.wants_pairs(state.store) else 2)
            learner._grow(capacity, states.n_columns(state))
            state = learner._state


def _fill_block(learner: Any, state: Any, x: Rows) -> None:
    """Compute the kernel values of at most `BLOCK` fresh rows with several threads."""
    n, kernel = states.n_computed(state), learner._bound_kernel(state)
    parts = threads.ranges(n, learner._n_threads, PANEL)
    thread_states = [state] + [states.with_scratch(state, False) for _ in parts[1:]]
    threads.run(
        fill_block,
        [
            (thread_state, kernel, x, *part)
            for thread_state, part in zip(thread_states, parts, strict=True)
        ],
    )
    state.info[0].ready = -n


def margins_of(learner: Any, x: Rows) -> np.ndarray:
    """Return the margins of rows, computed by several threads if the batch is large enough.

    Parameters
    ----------
    learner
        A `KernelLearner`; the caller holds its lock.
    x
        n rows over the features of its schema, scaled as those that it keeps.

    Returns
    -------
    float64 (n,), or (n, classes); all 0 before the first example.

    """
    if learner._sparse:
        # A monitor's sample may be of rows from before the learner became sparse.
        x = sparse(x)
    n, d = shape(x)
    margins = learner._new_margins(n)
    if learner._state is None or n == 0:
        return margins
    state = learner._state_for(d)
    is_parallel = (
        n > BLOCK
        and learner._n_threads > 1
        and threads.are_worth_it(state.store, states.n_computed(state), d)
    )
    parts = threads.ranges(n, learner._n_threads if is_parallel else 1, BLOCK)
    thread_states = [state] + [states.with_scratch(state, True) for _ in parts[1:]]
    threads.run(
        learner._write_margins,
        [
            (thread_state, cut(x, *part), margins[slice(*part)])
            for thread_state, part in zip(thread_states, parts, strict=True)
        ],
    )
    return margins
