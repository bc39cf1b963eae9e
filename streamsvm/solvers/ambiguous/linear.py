"""The ambiguous SVM with explicit weights: problem, symbols and algorithm are those of `step`.

Each example is learnt by one dual step, and not kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, chosen_by, compiled
from streamsvm.solvers.ambiguous.state import LinearState, note_example, read_bag
from streamsvm.solvers.ambiguous.step import dual_step, scores
from streamsvm.solvers.kernel_events import learn_multiclass
from streamsvm.solvers.registry import register_solver
from streamsvm.support.rows import SparseRows, count


class Schedule(NamedTuple):
    """There is nothing to choose."""

    reprocess: float = 0.0


@compiled
def _dense_entries(x, r):
    return np.arange(x.shape[1]), x[r]


@compiled
def _sparse_entries(x, r):
    start, stop = x.start[r], x.start[r + 1]
    return x.columns[start:stop], x.values[start:stop]


_entries: Any = chosen_by(0, {np.ndarray: _dense_entries, SparseRows: _sparse_entries})
"""_entries(x, r): the columns and values of row r."""


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `kernel_events`.

    y is the number of a label; or negative, and the row of `margins` has 1.0 for each candidate.
    """
    state = borrowed(state)
    info = state.info[0]
    k = info.n_classes
    for r in range(count(x)):
        n_in = read_bag(state, y[r], margins[r])
        columns, values = _entries(x, r)
        if cost[r] > 0.0:
            loss, alpha, gain = dual_step(
                state.weights, columns, values, state.in_bag, k, cost[r], state.scores, state.u
            )
            note_example(info, cost[r], loss, np.float64(diagonal[r]))
            info.n_all += n_in == k
            info.dual += gain
            info.n_steps += alpha > 0.0
            info.n_null += alpha == 0.0
        else:
            scores(state.weights, columns, values, k, state.scores)
        for c in range(margins.shape[1]):
            margins[r, c] = state.scores[c]
    return count(x)


@compiled
def margins_of(state, kernel, x, out):
    """Write the scores of rows x into out, float64 (n, classes)."""
    for r in range(count(x)):
        columns, values = _entries(x, r)
        scores(state.weights, columns, values, out.shape[1], out[r])


@compiled
def _event_margins(state, kernel, schedule, x, out):
    margins_of(state, kernel, x, out)


def rebuild(state: LinearState, kernel: Any, d: int) -> None:
    """Do nothing: weights do not depend on a kernel."""


register_solver(LinearState, learn_multiclass, _event_margins, learn_rows)
