"""Rows of a linear learner, learnt and predicted, and the rate search in the middle of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsvm.features import absent, density
from streamsvm.labels.labelled_rows import LabelledRows
from streamsvm.learners.bases.late_rows import row_after, rows_where
from streamsvm.learners.bases.linear import rate_search
from streamsvm.learners.bases.linear.linear_solver import FEWEST_SPARSE
from streamsvm.solvers.linear import state as linear_state
from streamsvm.support.rows import Rows, cut, dense, shape, sparse

if TYPE_CHECKING:
    from streamsvm.learners.bases.linear.linear_learner import LinearLearner


def learn_rows(model: LinearLearner, rows: LabelledRows) -> np.ndarray:
    """Learn rows, of number 0 only predict; return margins before."""
    w, y = rows.w, rows.y
    if model.class_weight is not None:
        w = w * rows.labels.numbers(lambda label: model.cost_of(label, 0.0))
    margins = model.targets.zeros(len(y))
    of_outputs = margins.reshape(len(y), model.n_outputs)
    start, seen, is_example, solver = 0, model.n_examples, rows.numbers > 0, model.solver
    while start < len(y):
        kept, stop = solver.first_rows, len(y)
        if kept is not None:
            stop = row_after(rows.numbers, start, max(1, kept.due_at - seen))
        part = slice(start, stop)
        # They may have become sparse since the batch was read.
        fresh = cut(rows.x, start, stop)
        fresh = sparse(fresh) if model.is_sparse else fresh
        model.make_room(shape(fresh)[1])
        learnt = np.flatnonzero(is_example[part])
        done: list[Any] = []
        try:
            solver.learn((fresh, y[part], w[part]), of_outputs[part], done)
        finally:
            # After an interruption, too, all that were learnt are counted.
            n = model.n_learnt[0] = seen + len(done) * len(learnt)
            if kept is not None and n > seen:
                kept.add(rows_where(fresh, is_example[part]), y[part][learnt], w[part][learnt])
                if n >= kept.due_at:
                    model.search_rate(n)
        start, seen = stop, n
    return margins


def search_rate(model: LinearLearner, n: int) -> None:
    """Choose the rate by the first n examples, and decide whether rows are sparse."""
    kept = model.solver.first_rows
    if kept is None:
        return
    kept.due_at = rate_search.next_search(n)
    x, y, weight = kept.all(len(model.schema))
    if model.sparse is None and not model.is_sparse and density.are_sparse(dense(x)):
        model.is_sparse, x = True, sparse(x)
        kept.become_sparse(x)
        model.make_room(min(FEWEST_SPARSE, model.schema.limit))
    if model.t0 is None:
        model.solver.choose_rate(model.make_room(0), x, y, weight)
    if n >= rate_search.LAST:
        model.solver.first_rows = None
        absent.notice(model)


def margins_of(model: LinearLearner, x: Rows) -> np.ndarray:
    """Return the margins of rows, float64 (n,) or (n, classes)."""
    n, d = shape(x)
    margins = model.targets.zeros(n)
    if model.state is not None:
        out = margins.reshape(n, model.n_outputs)
        linear_state.margins_of(model.make_room(d), x, model.solver.schedule, out)
    return margins
