"""Stochastic gradient descent for linear SVMs (Bordes, thesis 2010, chapter 3, Algorithm 7).

Problem (thesis, 3.1), over examples (x_i, y_i), y_i +1 or -1, each with a weight c_i::

    min_w  P(w) = lambda / 2 ||w||^2 + 1/n sum_i c_i l(y_i f(x_i)),      f(x) = <w, x> + b

with a loss l of `losses`; the bias b is not regularised. Kept: w as scale v, b, the count t of
examples. One step an example, of rate eta_t = (t0 / (t0 + t))^power / (lambda t0), which is
1 / (lambda (t + t0)) for power 1::

    w <- (1 - eta_t lambda) w - eta_t c_i l'(y_i f(x_i)) y_i x_i
    b <- b - eta_t bias_rate c_i l'(y_i f(x_i)) y_i

SGD shrinks w at each example; SVMSGD2 every `skip` examples, by skip times as much. Both cost
the nonzero features of the example only, as shrinking changes `scale` alone (Shalev-Shwartz,
Singer, Srebro, ICML 2007). Averaged SGD (Polyak and Juditsky 1992) predicts by the mean of the
iterates, the later ones weighing more (Shamir and Zhang, ICML 2013, polynomial decay with eta = 2),
kept as p u + q v at the same cost (Xu, arXiv:1107.2490).
"""

from __future__ import annotations

from streamsvm._compile import compiled_inner, compiled_within
from streamsvm.losses import derivative
from streamsvm.solvers.linear.state import (
    AVERAGE_BIAS,
    AVERAGE_LOSS,
    BIAS,
    COUNT,
    LOSS,
    N_UPDATES,
    SCALE,
    P,
    Q,
    T,
    add,
    adds,
    capped_rate,
    count_values,
    dot,
    dots,
    predicts_average,
    rate,
    skip_of,
    square,
    step_size,
)

_SMALLEST_SCALE = 1e-6
"""Below, scale or p is multiplied into the weights, long before digits are lost."""

_LATE = 1e-3
"""Share of one example in what the losses of late are."""


@compiled_within
def _hinge(s):
    # One outlier does not decide.
    return min(5.0, max(0.0, 1.0 - s))


@compiled_inner
def _fold(state, o):
    """Make scale, p and q of an output 1, 1 and 0; what they stand for does not change."""
    info, weights = state.info[o], state.weights[o]
    for c in range(weights.shape[1]):
        if weights.shape[0] > 1:
            weights[1, c] = info[P] * weights[1, c] + info[Q] * weights[0, c]
        weights[0, c] *= info[SCALE]
    info[SCALE], info[P], info[Q] = 1.0, 1.0, 0.0


@compiled_within
def _shrink(state, o, factor):
    info = state.info[o]
    info[SCALE] *= max(0.0, factor)
    if info[SCALE] < _SMALLEST_SCALE or info[P] < _SMALLEST_SCALE:
        _fold(state, o)


@compiled_within
def _average(info, least):
    """Let the weights of this moment take part in the average, with a share of at least that."""
    share = min(1.0, max(least, 3.0 / (info[T] + 2.0)))
    if share == 1.0:
        # The first: u is 0.
        info[P], info[Q], info[AVERAGE_BIAS] = 1.0, info[SCALE], info[BIAS]
        return
    info[P] *= 1.0 - share
    info[Q] += share * (info[SCALE] - info[Q])
    info[AVERAGE_BIAS] += share * (info[BIAS] - info[AVERAGE_BIAS])


@compiled_within
def learn_row(state, x, r, o, y, weight, schedule):
    """Learn row r, of sign y, for one output; return its margin from before; weight is c_i >= 0."""
    info, v = state.info[o], state.weights[o, 0]
    if schedule.averaged > 0.0:
        product, old = dots(state.weights[o], x, r)
    else:
        product, old = dot(v, x, r), 0.0
    f = info[SCALE] * product + info[BIAS]
    margin = average = f
    if schedule.averaged > 0.0:
        average = info[P] * old + info[Q] * product + info[AVERAGE_BIAS]
        if predicts_average(schedule, info):
            margin = average
    if weight == 0.0:
        return margin
    info[LOSS] += _LATE * (_hinge(y * f) - info[LOSS])
    info[AVERAGE_LOSS] += _LATE * (_hinge(y * average) - info[AVERAGE_LOSS])
    eta = rate(schedule, info[T]) / schedule.lam
    slope = derivative(schedule.loss, y * f)
    info[T] += 1.0
    count_values(schedule, info, x, r)
    info[COUNT] -= 1.0
    if info[COUNT] <= 0.0:
        # The first examples are followed by a shrinking too small to matter.
        skip = skip_of(schedule, info)
        _shrink(state, o, 1.0 - skip * eta * schedule.lam)
        info[COUNT] = skip
    if slope != 0.0:
        norm = square(x, r)
        own_rate = capped_rate(schedule, eta, norm)
        step = y * step_size(schedule, weight * slope, y * f, own_rate, norm)
        change = step / info[SCALE]
        if schedule.averaged > 0.0:
            adds(state.weights[o], x, r, change, -change * info[Q] / info[P])
        else:
            add(v, x, r, change)
        info[BIAS] += schedule.bias_rate * step
        info[N_UPDATES] += 1.0
    if schedule.averaged > 0.0:
        _average(info, schedule.averaged)
    return margin
