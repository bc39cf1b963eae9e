"""The ambiguous SVM with explicit weights: problem, symbols and algorithm are those of `step`.

Each example is learnt by one dual step, and not kept. The last weights have the loss, and take the
step; by default the mean of the weights after each example predicts. The bias of a label is the
weight of a feature that is always sqrt(bias_rate), times that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, chosen_by, compiled, compiled_inner, compiled_within
from streamsvm.solvers.ambiguous.state import LinearState, note_example, read_bag
from streamsvm.solvers.ambiguous.step import coefficients, step_length
from streamsvm.solvers.registry import learn_multiclass, register_solver
from streamsvm.support.rows import SparseRows, count


class Schedule(NamedTuple):
    """What predicts, and how the bias is learnt."""

    averaged: float  # 1: the mean of the weights after each example; 0: the last weights
    bias_rate: float  # the rate of the bias over that of the weights; 0: there is none


@compiled_inner
def _dense_entries(x, r):
    return np.arange(x.shape[1]), x[r]


@compiled_inner
def _sparse_entries(x, r):
    start, stop = x.start[r], x.start[r + 1]
    return x.columns[start:stop], x.values[start:stop]


_entries: Any = chosen_by(0, {np.ndarray: _dense_entries, SparseRows: _sparse_entries})
"""_entries(x, r): the columns and values of row r."""


@compiled_within
def _score(state, schedule, columns, values, k, out):
    """Write the scores of the last weights into `scores`, and those that predict into `out`."""
    n, last, late = state.info[0].n_seen, state.scores, state.late
    if schedule.averaged == 0.0 or n == 0:
        for y in range(k):
            last[y] = state.bias[0, y]
        for j in range(columns.size):
            row, value = state.weights[columns[j]], values[j]
            for y in range(k):
                last[y] += value * row[y]
        for y in range(k):
            out[y] = last[y]
        return
    for y in range(k):
        last[y], late[y] = state.bias[0, y], state.bias[1, y]
    for j in range(columns.size):
        row, more, value = state.weights[columns[j]], state.sums[0, columns[j]], values[j]
        for y in range(k):
            last[y] += value * row[y]
            late[y] += value * more[y]
    share = 1.0 / n
    for y in range(k):
        out[y] = last[y] - share * late[y]


@compiled_within
def _step(state, schedule, columns, values, k, C):
    """Learn an example whose last scores and bag are in the scratch: Algorithm 23, with a bias.

    Return its loss before, the step, and the gain in the dual; before it is counted.
    """
    u, m = state.u, state.info[0].n_seen
    loss, square = coefficients(state.scores, state.in_bag, k, u)
    if loss <= 0.0:
        return 0.0, 0.0, 0.0
    diagonal = schedule.bias_rate
    for j in range(columns.size):
        # In double precision: `float` of numba leaves single precision as it is.
        diagonal += np.float64(values[j]) * np.float64(values[j])
    alpha, gain = step_length(loss, square * diagonal, C)
    for y in range(k):
        amount = alpha * schedule.bias_rate * u[y]
        state.bias[0, y] += amount
        state.bias[1, y] += m * amount
    for j in range(columns.size):
        row, value = state.weights[columns[j]], alpha * values[j]
        for y in range(k):
            row[y] += value * u[y]
        if schedule.averaged > 0.0:
            more, value = state.sums[0, columns[j]], m * value
            for y in range(k):
                more[y] += value * u[y]
    return loss, alpha, gain


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `registry`.

    y is the number of a label; or negative, and the row of `margins` has 1.0 for each candidate.
    """
    state = borrowed(state)
    info = state.info[0]
    k = info.n_classes
    for r in range(count(x)):
        n_in = read_bag(state, y[r], margins[r])
        columns, values = _entries(x, r)
        _score(state, schedule, columns, values, margins.shape[1], margins[r])
        if cost[r] > 0.0:
            loss, alpha, gain = _step(state, schedule, columns, values, k, cost[r])
            note_example(info, cost[r], loss, np.float64(diagonal[r]) + schedule.bias_rate)
            info.n_all += n_in == k
            info.dual += gain
            info.n_steps += alpha > 0.0
            info.n_null += alpha == 0.0
    return count(x)


@compiled
def margins_of(state, kernel, schedule, x, out):
    """Write the scores of rows x that predict into out, float64 (n, classes)."""
    for r in range(count(x)):
        columns, values = _entries(x, r)
        _score(state, schedule, columns, values, out.shape[1], out[r])


@compiled_inner
def _event_margins(state, kernel, schedule, x, out):
    margins_of(state, kernel, schedule, x, out)


def rebuild(state: LinearState, kernel: Any, d: int) -> None:
    """Do nothing: weights do not depend on a kernel."""


register_solver(LinearState, learn_multiclass, _event_margins, learn_rows)
