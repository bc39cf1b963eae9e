"""What linear learners by stochastic gradients know: weights, and where their schedules stand.

Two classes are one output, more are one output a class, each against the rest. The weights of an
output are w = scale v, so that multiplying all of them costs one multiplication; their average over
the past is p u + q v, so that keeping it costs no more than the features of an example.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import (
    borrowed,
    chosen_by,
    compiled,
    compiled_inner,
    compiled_leaf,
    compiled_within,
)
from streamsvm.losses import SQUARED_HINGE, value
from streamsvm.support import states
from streamsvm.support.declaration import Range, copy_arrays, field
from streamsvm.support.rows import SparseRows, count
from streamsvm.support.states import declare

SCALE, P, Q, BIAS, AVERAGE_BIAS, LOSS, AVERAGE_LOSS = range(7)
T, COUNT, R, UPDATE, N_UPDATES, N_VALUES, WIDTH = range(7, 14)
N_INFO = 14
"""The numbers of an output: w = scale v; average w = p u + q v; the biases; losses of late of both;
t, examples since the output began; count, examples until the next step on the regularisation term;
r, estimations of the rescaling with a head start, and whether the next example is one (SGD-QN);
examples that changed the weights; if `skip` depends on them, nonzero values of the examples seen,
and the last column of any plus 1 (not the columns known, of which a batch may know more)."""

_FARTHEST = 1000.0
"""How far one step may move the margin of its own example, at rates of at most 1."""


class LinearState(NamedTuple):
    """Weights by output and column, and the numbers of each output.

    Plain arrays, as each costs 40 nanoseconds on the way from Python into compiled code, and a
    record array or an object that holds them ten times that.
    """

    # v; u if averaged, or B if QN.
    weights: np.ndarray = field("outputs", "parts", "features", range=Range(infinite=True))
    # The numbers of each output.
    info: np.ndarray = field("outputs", N_INFO, range=Range(infinite=True))


declare(LinearState)


class Schedule(NamedTuple):
    """What each step is like; floats all, so that one compiled version serves every schedule."""

    loss: float  # a number of `streamsvm.losses`
    lam: float  # lambda
    t0: float  # the rate of example t is (t0 / (t0 + t))^power / (lambda t0)
    power: float  # 1: as the theory of strongly convex problems wants; 0: a constant rate
    skip: float  # examples a step on the regularisation term; 0: 16 / share of nonzero features
    averaged: float  # above 0: weights are averaged, the last having at least this share
    choose: float  # 1: predict by the average only while its losses of late are the lower ones
    bias_rate: float  # the rate of the bias over that of the weights; 0: there is none


def new_state(outputs: int, n_features: int, second: float | None = None) -> LinearState:
    """Return weights of 0; `second` is where the second part begins: 0 for u, 1 / lambda for B."""
    sizes = {"outputs": outputs, "parts": 1 if second is None else 2, "features": n_features}
    state: LinearState = states.new(LinearState, sizes)
    weights, info = state
    if second is not None:
        weights[:, 1] = second
    info[:, SCALE] = info[:, P] = 1.0
    return state


@compiled_inner
def cleared(state, second):
    """Make a state that of `new_state` again; without a second part `second` may be anything."""
    weights, info = state.weights, state.info
    weights[:, 0] = 0.0
    if weights.shape[1] > 1:
        weights[:, 1] = second
    info[:] = 0.0
    info[:, SCALE] = 1.0
    info[:, P] = 1.0


def grown(
    state: LinearState, outputs: int, n_features: int, second: float | None = None
) -> LinearState:
    """Return a state with room for more outputs or features, and the same content."""
    new = new_state(outputs, n_features, second)
    copy_arrays(state, new)
    return new


@compiled_leaf
def _dot_dense(w, x, r):
    total = 0.0
    for c in range(x.shape[1]):
        total += w[c] * np.float64(x[r, c])
    return total


# Four sums at a time, as each addition waits for the last one of its own sum. What is read by an
# unsigned number is not looked at for counting from the end: half of the instructions.


@compiled_within
def nonzero(x, t):
    """Return column and value of entry t of sparse rows, as what they are used as."""
    at = np.uint64(t)
    return np.uint32(x.columns[at]), np.float64(x.values[at])


@compiled_within
def _dot_sparse(w, x, r):
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    t, stop = x.start[r], x.start[r + 1]
    while t + 4 <= stop:
        i, value = nonzero(x, t)
        a += w[i] * value
        i, value = nonzero(x, t + 1)
        b += w[i] * value
        i, value = nonzero(x, t + 2)
        c += w[i] * value
        i, value = nonzero(x, t + 3)
        d += w[i] * value
        t += 4
    while t < stop:
        i, value = nonzero(x, t)
        a += w[i] * value
        t += 1
    return (a + b) + (c + d)


@compiled_leaf
def _dots_dense(w, x, r):
    first, second = 0.0, 0.0
    for c in range(x.shape[1]):
        value = np.float64(x[r, c])
        first += w[0, c] * value
        second += w[1, c] * value
    return first, second


@compiled_within
def _dots_sparse(w, x, r):
    v, u = w[0], w[1]
    first, second = 0.0, 0.0
    for t in range(x.start[r], x.start[r + 1]):
        i, value = nonzero(x, t)
        first += v[i] * value
        second += u[i] * value
    return first, second


@compiled_leaf
def _add_dense(w, x, r, amount):
    for c in range(x.shape[1]):
        w[c] += amount * np.float64(x[r, c])


@compiled_within
def _add_sparse(w, x, r, amount):
    for t in range(x.start[r], x.start[r + 1]):
        i, value = nonzero(x, t)
        w[i] += amount * value


@compiled_leaf
def _adds_dense(w, x, r, first, second):
    v, u = w[0], w[1]
    for c in range(x.shape[1]):
        value = np.float64(x[r, c])
        v[c] += first * value
        u[c] += second * value


@compiled_within
def _adds_sparse(w, x, r, first, second):
    v, u = w[0], w[1]
    for t in range(x.start[r], x.start[r + 1]):
        i, value = nonzero(x, t)
        v[i] += first * value
        u[i] += second * value


@compiled_leaf
def _square_dense(x, r):
    total = 0.0
    for c in range(x.shape[1]):
        total += np.float64(x[r, c]) * np.float64(x[r, c])
    return total


@compiled_within
def _square_sparse(x, r):
    total = 0.0
    for t in range(x.start[r], x.start[r + 1]):
        _, value = nonzero(x, t)
        total += value * value
    return total


dot: Any = chosen_by(1, {np.ndarray: _dot_dense, SparseRows: _dot_sparse})
"""dot(w, x, r): <w, x_r>; w float64 (at least d,), x rows: float32 (n, d) or `SparseRows`."""

dots: Any = chosen_by(1, {np.ndarray: _dots_dense, SparseRows: _dots_sparse})
"""dots(w, x, r): the products of x_r with both parts of w, float64 (2, at least d)."""

add: Any = chosen_by(1, {np.ndarray: _add_dense, SparseRows: _add_sparse})
"""add(w, x, r, amount): w += amount x_r, in place."""

adds: Any = chosen_by(1, {np.ndarray: _adds_dense, SparseRows: _adds_sparse})
"""adds(w, x, r, first, second): add so many x_r to the parts of w, float64 (2, at least d)."""

square: Any = chosen_by(0, {np.ndarray: _square_dense, SparseRows: _square_sparse})
"""square(x, r): ||x_r||^2."""


@compiled_leaf
def _count_dense(x, r):
    n, last = 0, x.shape[1]
    for c in range(x.shape[1]):
        n += x[r, c] != 0.0
    while last > 0 and x[r, last - 1] == 0.0:
        last -= 1
    return n, last


@compiled_within
def _count_sparse(x, r):
    n = x.start[r + 1] - x.start[r]
    return n, (np.int64(x.columns[x.start[r + 1] - 1]) + 1 if n > 0 else 0)


_count: Any = chosen_by(0, {np.ndarray: _count_dense, SparseRows: _count_sparse})


@compiled_within
def count_values(schedule, info, x, r):
    """Count the nonzero values of a row, if `skip_of` wants to know."""
    if schedule.skip <= 0.0:
        n, last = _count(x, r)
        info[N_VALUES] += n
        info[WIDTH] = max(info[WIDTH], np.float64(last))


@compiled
def rate(schedule, t):
    """Return the rate of the example after t others, in units of 1 / lambda."""
    if schedule.power == 1.0:
        return 1.0 / (schedule.t0 + t)
    share = schedule.t0 / (schedule.t0 + t)
    return np.power(share, schedule.power) / schedule.t0


@compiled_within
def sign_of(y, output, outputs):
    """Return the side, +1 or -1, of an example of class y for an output: that of class 1 alone."""
    return 1.0 if y == (1.0 if outputs == 1 else output) else -1.0


@compiled_within
def skip_of(schedule, info):
    """Return how many examples go by between two steps on the regularisation term."""
    if schedule.skip > 0.0:
        return schedule.skip
    # Thesis, 3.1.2: c / s with c = 16 and s the share of nonzero features.
    return max(1.0, np.floor(16.0 * info[WIDTH] * max(1.0, info[T]) / max(1.0, info[N_VALUES])))


@compiled_within
def capped_rate(schedule, rate, square):
    """Return the rate of an example, or less if its step would move its own margin too far.

    Its margin moves by rate ||x||^2 times the slope of the loss. Typical examples move it by 8 at
    most when t0 is chosen by the rule of the thesis, or by some multiples of the first rate; one
    whose values are 1e6 times as large would move the weights so far that they never come back.
    """
    most = _FARTHEST * max(1.0, 1.0 / (schedule.lam * schedule.t0))
    return most / square if rate * square > most else rate


@compiled_within
def step_size(schedule, slope, margin, rate, square):
    """Return -rate l'(s), but no more than what brings a margin below 1 to 1.

    Only the squared hinge, whose derivative has no bound, would go further and diverge: at rates
    above 1 / ||x||^2, which an outlier makes of any rate.
    """
    step = -rate * slope
    if schedule.loss == SQUARED_HINGE and step * square > 1.0 - margin:
        return (1.0 - margin) / square
    return step


@compiled
def predicts_average(schedule, info):
    """Tell whether an output predicts by its average."""
    if schedule.averaged == 0.0:
        return False
    return schedule.choose == 0.0 or info[AVERAGE_LOSS] <= info[LOSS]


@compiled_within
def margin_of(state, x, r, o, schedule):
    """Return f_o of row r, by the last weights or by their average."""
    info, weights = state.info[o], state.weights[o]
    if schedule.averaged == 0.0:
        return info[SCALE] * dot(weights[0], x, r) + info[BIAS]
    # To the last bit what learning computes.
    last, old = dots(weights, x, r)
    if predicts_average(schedule, info):
        return info[P] * old + info[Q] * last + info[AVERAGE_BIAS]
    return info[SCALE] * last + info[BIAS]


@compiled
def margins_of(state, x, schedule, out):
    """Write f of rows x into out, float64 (n, outputs)."""
    state, x = borrowed(state), borrowed(x)
    for r in range(count(x)):
        for o in range(state.info.shape[0]):
            out[r, o] = margin_of(state, x, r, o, schedule)


@compiled
def primal(state, x, y, weight, schedule):
    """Return lambda / 2 sum_c ||w_c||^2 + the mean of weight times loss over rows.

    Of the weights that predict. The arguments are those of `step.learn_rows`.
    """
    state, x = borrowed(state), borrowed(x)
    outputs = state.info.shape[0]
    squares, losses = 0.0, 0.0
    for o in range(outputs):
        info, weights = state.info[o], state.weights[o]
        averages = predicts_average(schedule, info)
        for c in range(weights.shape[1]):
            w = info[SCALE] * weights[0, c]
            if averages:
                w = info[P] * weights[1, c] + info[Q] * weights[0, c]
            squares += w * w
    for r in range(count(x)):
        for o in range(outputs):
            s = sign_of(y[r], o, outputs) * margin_of(state, x, r, o, schedule)
            losses += weight[r] * value(schedule.loss, s)
    return 0.5 * schedule.lam * squares + losses / max(1, y.size)
