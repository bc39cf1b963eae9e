"""The stochastic batch perceptron (Cotter, Shalev-Shwartz, Srebro, ICML 2012), on a stream.

Problem (2.3), over the rows kept, with weights s_i::

    max over |w| <= 1, b, xi >= 0 of   min_i (y_i (<w, x_i> + b) + xi_i)
    with   sum_i s_i xi_i <= nu sum_i s_i

b is 0 without a bias. An iteration (Algorithm 1) finds the water levels over the responses
c_i = y_i <w, x_i> (`water`), draws an example i below the level of its class, with a probability in
proportion to s_i (to the part of it that is covered, where water covers a part), and makes the step

    w <- project(w + eta_t y_i x_i),   eta_t = 1 / sqrt(max_i k(x_i, x_i) t)

onto |w| <= 1. The mean of the iterates predicts, divided by the level over its own responses, so
that the margins of most rows are 1 or more. All responses are kept up to date, which takes one row
of the kernel matrix an iteration.

On a stream, each example is added to the rows kept, and some iterations follow. What is added to
the paper for this:

* iteration t has the weight t in the mean, so that early ones, of fewer rows, count less;
* within a window or a sample, t stays at the iterations of one window: neither do steps vanish, nor
  does the mean go back further; a row that leaves takes its part of w and of the mean with it.

With a bias water covers the same width in both classes, so that each is drawn half of the times, as
it must be (appendix B), however many rows and weights it has.

Draws are rejections: rows are drawn from all those kept until one is below the water. If none is
for long, as where one row has a thousand times the weight of others, one pass over all rows draws.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.solvers.bounds import UNBOUNDED, Bounds
from streamsvm.solvers.registry import BINARY, register_kernel_solver, side_of
from streamsvm.solvers.sbp.state import (
    LAST,
    MEAN,
    SBPState,
    add_row,
    enter,
    project,
    remove,
    write_heights,
)
from streamsvm.solvers.sbp.water import bias_of, find_levels, level_of
from streamsvm.support import active_set, stores
from streamsvm.support.averages import summed
from streamsvm.support.draws import uniform
from streamsvm.support.kernel_rows import fresh_block, row_cache
from streamsvm.support.kernel_rows.kernel_values import expansion
from streamsvm.support.rows import count, part, width

_TRIALS = 4
"""The number of rejections before a pass draws is this for each row kept."""


class Numbers(NamedTuple):
    """Parameters of the steps; functions that take these only are compiled once for all bounds."""

    steps: float  # iterations after each example
    nu: float  # the mean slack
    bias: float  # 1: with a bias, 0: without
    averaged: float  # 1: the mean of the iterates predicts, 0: the last one
    horizon: float  # t of an example's iterations is at most this


class Schedule(NamedTuple):
    """Parameters; `learn_rows` is compiled once for each type of `bounds`."""

    numbers: Numbers
    bounds: Bounds = UNBOUNDED  # which rows are kept


@compiled_inner
def can_step(state, p):
    """Tell whether there are rows to make iterations on; for a bias, of both classes."""
    info = state.info[0]
    least = min(info.cost_positive, info.cost_negative)
    most = max(info.cost_positive, info.cost_negative)
    return (least if p.bias > 0.0 else most) > 0.0


@compiled_inner
def _levels(state, p, which):
    info, n = state.info[0], state.active.counts[0].n
    volume = p.nu * (info.cost_positive + info.cost_negative)
    find_levels(
        state.heights, state.cost, state.y, p.bias > 0.0, volume, state.levels[which], state.tops, n
    )


@compiled_inner
def find_water(state, p):
    """Find the levels over the responses of the last iterate, which stay in `heights`."""
    n = state.active.counts[0].n
    write_heights(state.heights, state.y, state.f, state.late_f, state.info[0].scale, 0.0, n)
    _levels(state, p, LAST)


@compiled_inner
def find_mean_water(state, p):
    """Find the levels over the responses of what predicts: the mean, or the last iterate."""
    info, n = state.info[0], state.active.counts[0].n
    factor, late_factor = info.scale, 0.0
    if p.averaged > 0.0 and info.sum_weight > 0.0:
        factor, late_factor = info.sum_scale / info.sum_weight, -1.0 / info.sum_weight
    write_heights(state.heights, state.y, state.f, state.late_f, factor, late_factor, n)
    _levels(state, p, MEAN)


@compiled_within
def draw_candidate(state, draws):
    """Draw one of the rows kept, uniformly, and a number below the largest weight.

    The row is drawn if its weight, or the part of it that is covered, is above that number.
    """
    # Both from one draw: the place is its integer part, and the rest is uniform, too.
    n = state.active.counts[0].n_members
    u = uniform(draws) * n
    place = np.int64(u)
    return state.active.members[place], (u - place) * state.info[0].cost_most


@compiled_within
def is_near(state, s, margin):
    """Tell whether the response of a row is at most `margin` above the level of its class."""
    level = state.levels[LAST, 0] if state.y[s] > 0.0 else state.levels[LAST, 1]
    return state.heights[s] <= level + margin


@compiled_within
def covered_weight(state, s):
    """Return the weight of a row, as far as water covers it."""
    c = 0 if state.y[s] > 0.0 else 1
    height, top = state.heights[s], state.tops[c, 0]
    if height > top:
        return 0.0
    return state.cost[s] if height < top else state.cost[s] * state.tops[c, 1]


@compiled_inner
def _draw_by_pass(state):
    """Return a row with a probability in proportion to its covered weight, by adding them up."""
    n, total = state.active.counts[0].n, 0.0
    for s in range(n):
        total += covered_weight(state, s)
    left = uniform(state.draws) * total
    # Only if responses have overflowed is no row covered.
    found = state.active.members[0]
    for s in range(n):
        weight = covered_weight(state, s)
        if weight > 0.0:
            found = s
            left -= weight
            if left < 0.0:
                break
    return found


@compiled_inner
def draw(state):
    """Return a row below the water, with a probability in proportion to its covered weight."""
    for _ in range(_TRIALS * state.active.counts[0].n_members):
        s, least = draw_candidate(state, state.draws)
        if least < covered_weight(state, s):
            return s
        state.info[0].n_null += 1
    return _draw_by_pass(state)


@compiled_inner
def step_on(state, s, row):
    """Make the step along a row, whose kernel values are given; take the iterate into the mean."""
    info, n = state.info[0], state.active.counts[0].n
    info.t += 1
    info.n_steps += 1
    eta = 1.0 / math.sqrt(max(info.r2, 1e-300) * info.t)
    change = eta * state.y[s] / info.scale
    info.square += eta * (2.0 * state.heights[s] + eta * np.float64(state.diagonal[s]))
    late = change * info.sum_scale
    state.alpha[s] += change
    state.late[s] += late
    add_row(state.f, state.late_f, row, change, late, n)
    project(state)
    # The share of the last of t iterates with the weights 1, 2, ..., t.
    share = 2.0 / (info.t + 1.0)
    weight = 1.0 if info.sum_weight == 0.0 else info.sum_weight * share / (1.0 - share)
    info.sum_scale += weight * info.scale
    info.sum_weight += weight


@compiled_inner
def _steps(state, kernel, p, d):
    """Make the iterations after an example."""
    info, n = state.info[0], state.active.counts[0].n
    if p.steps == 0.0 or not can_step(state, p):
        return
    k = 0.0
    while k < p.steps:
        info.t = min(info.t, np.int64(p.horizon))
        find_water(state, p)
        s = draw(state)
        line = row_cache.kernel_row(state.cache, kernel, state.store, s, n, d)
        step_on(state, s, state.cache.values[line])
        k += 1.0
    find_mean_water(state, p)


@compiled_inner
def margin_of(state, p, row):
    """Return the margin, given kernel values; with a bias and rows of one class only, its sign."""
    info, n = state.info[0], state.active.counts[0].n
    if not can_step(state, p):
        return np.sign(info.cost_positive - info.cost_negative)
    if info.sum_weight == 0.0:
        return 0.0
    if p.averaged > 0.0:
        f = summed(state.alpha, state.late, info.sum_scale, row, n) / info.sum_weight
    else:
        f = info.scale * expansion(state.alpha, row, n)
    return margin_scale(state) * (f + bias_of(state.levels[MEAN]))


@compiled
def margin_scale(state):
    """Return 1 over the level; where that is not positive, no factor makes the margins 1."""
    level = level_of(state.levels[MEAN])
    return 1.0 / level if level > 1e-12 else 1.0


@compiled_inner
def _learn_row(state, kernel, x, r, y, cost, weight, number, diagonal, schedule):
    """Learn row r of the block x; return its margin from before."""
    d = width(x)
    row = fresh_block.values_of(state.block, kernel, state.store, x, r)
    margin = margin_of(state, schedule.numbers, row)
    # An example of weight 0 is not learnt.
    if cost <= 0.0:
        return margin
    if stores.slot_of(state, number, state.active.counts[0].n) == active_set.NONE:
        state.active.counts[0].n_offered += 1
        none, limit = np.int64(active_set.NONE), schedule.bounds.limit
        old = active_set.leaving(state.active, none, state.draws, limit)
        if old >= 0:
            remove(state, kernel, old, d)
        if old != active_set.REFUSED:
            slot = enter(state, part(x, r, r + 1), y, cost, weight, number, diagonal, row)
            fresh_block.note(state.block, slot, r)
    _steps(state, kernel, schedule.numbers, d)
    return margin


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `registry`.

    cost is the class weight times the example weight; a row that is kept already is not added
    again.
    """
    state = borrowed(state)
    n_rows, start = count(x), 0
    while start < n_rows:
        # Kernel values with rows that only are kept would be multiplied by 0.
        are_only_kept = schedule.numbers.steps == 0.0 and state.info[0].n_steps == 0
        n = np.int64(0) if are_only_kept else state.active.counts[0].n
        rows = fresh_block.next_rows(state, kernel, x, start, n)
        if are_only_kept:
            state.block.counts[0] = 0
        else:
            fresh_block.begin(state.block, kernel, rows)
        for r in range(count(rows)):
            at = start + r
            if active_set.is_full(state.active, schedule.bounds.limit) or not stores.has_room(
                state.store, part(x, at, at + 1)
            ):
                return at
            state.info[0].n_values += 0 if are_only_kept else state.active.counts[0].n
            margins[at] = _learn_row(
                state, kernel, rows, r, side_of(y[at]), cost[at], weight[at], numbers[at],
                diagonal[at], schedule,
            )  # fmt: skip
        start += count(rows)
    return n_rows


@compiled_inner
def _write_margin(state, schedule, row, out, at):
    out[at] = margin_of(state, schedule.numbers, row)


register_kernel_solver(SBPState, BINARY, _write_margin, learn_rows)
