"""Batches of kernel learners: split where gamma or class weights change, run by several threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.labels.label_column import LabelColumn
from streamsvm.learners.bases import auto_gamma, threads
from streamsvm.learners.bases.scaled_rows import scaled_rows
from streamsvm.support import states, stores
from streamsvm.support.fresh_block import BLOCK
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
        float64, int64 and float32 (n,): example weights, example numbers, and k(x, x).

    Returns
    -------
    float64 (n,), or (n, classes).

    """
    margins = learner._new_margins(len(y))
    start = 0
    while start < len(y):
        seen = learner._n_examples + start
        stop = min(len(y), start + auto_gamma.next_power_of_two(seen) - seen)
        part = slice(start, stop)
        box = learner._costs_of(y[part], labels[part]) * w[part]
        fresh = cut(x, start, stop)
        learner._become_sparse_if_large(shape(x)[1], seen)
        if learner._sparse:
            # The learner may have become sparse after the batch was read.
            fresh = sparse(fresh)
        scaled = scaled_rows(fresh, learner._factors)
        rows = (scaled, y[part], box, w[part], numbers[part], diagonal[part])
        _learn_part(learner, rows, margins[part])
        if learner.kernel is None and seen < auto_gamma.LAST_SET:
            learner._moments = auto_gamma.updated(learner._moments, seen, fresh)
            if learner._trial is not None:
                learner._trial.add(fresh, learner._places_of(labels[part]), w[part], numbers[part])
        start = stop
        if learner._n_examples + stop == auto_gamma.next_power_of_two(seen):
            learner._adapt(learner._n_examples + stop)
    return margins


def _learn_part(learner: Any, rows: tuple[Any, ...], margins: np.ndarray) -> None:
    """Learn rows between two changes of gamma and class weights, growing the state as needed."""
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
        done += learner._solve(state, arguments, margins[done:stop])
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
        learner._solver.fill_block,
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
        n rows over the features of its schema.

    Returns
    -------
    float64 (n,), or (n, classes); all 0 before the first example.

    """
    if learner._sparse:
        # A monitor's sample may be of rows from before the learner became sparse.
        x = sparse(x)
    x = scaled_rows(x, learner._factors)
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
