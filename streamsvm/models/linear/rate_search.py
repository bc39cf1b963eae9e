"""The rate search: the first examples of a stream choose the rate t0.

The 10 % rule (thesis 2010, 3.2.3): learn some examples with several values of t0, and take the
value with the lowest primal objective. Here these are the first 1, 4, 16, ..., 1024 examples. The
model then continues with the weights of the best pass, as if it had used its t0 from the start.
"""

from __future__ import annotations

import math

import numpy as np

from streamsvm._compile import compiled
from streamsvm.solvers.linear.rate import T0, Search, choose_rate
from streamsvm.solvers.linear.state import LinearState, Schedule
from streamsvm.solvers.linear.step import Step
from streamsvm.support.rows import Rows, SparseRows, shape

LAST = 1024
"""The number of examples at the last search; no more are kept."""


def next_search(n: int) -> int:
    """Return the number of examples at the first search after n examples: a power of 4."""
    return 1 << 2 * ((n.bit_length() + 1) // 2)


@compiled
def _sum_of_squares(values):
    # One by one, so that dense and sparse rows give the same bits: adding zeros changes nothing.
    total = 0.0
    for t in range(values.size):
        total += np.float64(values[t]) * np.float64(values[t])
    return total


@compiled
def _squares(values, start, squares):
    for r in range(squares.size):
        squares[r] = _sum_of_squares(values[start[r] : start[r + 1]])


def mean_square(x: Rows) -> float:
    """Return the mean of ||x||^2 over rows; 1 if all are 0.

    A row counts as at most 10,000 times the median: otherwise all rates would follow one outlier.
    """
    n, d = shape(x)
    if isinstance(x, SparseRows):
        start, values = x.start, x.values
    else:
        start, values = np.arange(n + 1) * d, x.ravel()
    squares = np.empty(n)
    _squares(values, start, squares)
    limit = 1e4 * float(np.median(squares))
    if squares.max() > limit > 0.0:
        return float(np.minimum(squares, limit).mean())
    total = _sum_of_squares(values[int(start[0]) : int(start[-1])])
    return total / n if total > 0.0 else 1.0


def learn_best(
    x: Rows,
    y: np.ndarray,
    weight: np.ndarray,
    schedule: Schedule,
    state: LinearState,
    second: float | None,
    step: Step,
) -> Schedule:
    """Return the schedule with the t0 whose pass over all rows has the lowest primal objective.

    `x`, `y` and `weight` are the rows learnt so far, their classes and weights; `state`
    is overwritten with that after the best pass. `second` is as of `linear_state.new_state`,
    `step` as of `LinearModel`.
    """
    square, outputs, d = mean_square(x), len(state.info), shape(x)[1]
    # SGD changes only the weights of features in the rows, few of 2^18 hashed ones: the passes are
    # made on these columns alone.
    narrow = None if second or schedule.skip <= 0.0 else _narrowed(x, d)
    rows, width = (x, d) if narrow is None else (narrow[1], len(narrow[0]))
    room = (outputs, state.weights.shape[1], max(1, width))
    trial, found = (LinearState(np.empty(room), np.empty_like(state.info)) for _ in range(2))
    margins, best = np.zeros((len(y), outputs)), np.array([np.inf, np.inf, 1.0])
    search = Search(
        step, second or 0.0, rows, y, weight, schedule, square, margins, trial, found, best
    )
    choose_rate(search, round(math.log2(square / (schedule.t0 * schedule.lam))))
    columns = slice(d) if narrow is None else narrow[0]
    state.weights[:, :, columns] = found.weights[:, :, :width]
    state.info[:] = found.info
    return schedule._replace(t0=float(best[T0]))


def _narrowed(x: Rows, d: int) -> tuple[np.ndarray, SparseRows] | None:
    """Return the columns that occur in sparse rows, and the rows with only these columns.

    None if the rows are dense, or if more than a quarter of the d columns may occur.
    """
    if not isinstance(x, SparseRows):
        return None
    first, stop = int(x.start[0]), int(x.start[-1])
    if 4 * (stop - first) > d:
        return None
    used, columns = np.unique(x.columns[first:stop], return_inverse=True)
    return used, SparseRows(
        x.start - first, columns.astype(np.int32), x.values[first:stop], len(used)
    )
