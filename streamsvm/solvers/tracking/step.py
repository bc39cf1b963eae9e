"""Averaged tracking (Usunier, Bordes, Bottou 2010, Algorithms 1 and 2; thesis 2010, 15 and 16).

Problem, over the active set A_t, without bias (section 2)::

    max_a  D_t(a) = sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j k(x_i, x_j)   with   0 <= a_i <= C_i

After each example, K coordinate steps are made on examples drawn uniformly from A_t; the classifier
that predicts is the mean of the K iterates. The exact step on the drawn coordinate is

    step = max(-a_i, min(C_i - a_i, g_i / k(x_i, x_i))),   g_i = 1 - y_i f(x_i)

which adds step (g_i - step k(x_i, x_i) / 2) to the dual. State: signed alpha_i = y_i a_i, and f_i =
f(x_i), both up to date after every step (section 5.1), so that a null step costs nothing.

A_t is all examples, or the last W, or a uniform sample, or limited by a budget; with
``keep_zeros = 0`` only those with a_i > 0 (variants i and ii of section 5.2). The loss in the dual
when an example with a_i > 0 is removed is added to `lost`; the certificate takes it into account.

A step with |g_i| <= tau is skipped; the gain that it would have had is added to `skipped`, and the
certificate counts it as if made. If a fresh example is already in the set (in a further epoch), a
step is made on it, and it is not added again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import (
    borrowed,
    chosen_by,
    compiled,
    compiled_inner,
    compiled_within,
    nothing,
)
from streamsvm._parameter_checks import MOST_STEPS
from streamsvm.solvers.bounds import UNBOUNDED, Bounds, Budget, Reservoir, Unbounded, Window
from streamsvm.solvers.registry import BINARY, register_kernel_solver, side_of
from streamsvm.solvers.tracking import budget
from streamsvm.solvers.tracking.state import TrackingState, account, enter, look_at, settle, touch
from streamsvm.support import active_set, looks, stores
from streamsvm.support.draws import below
from streamsvm.support.kernel_rows import fresh_block, row_cache
from streamsvm.support.kernel_rows.kernel_values import add_scaled, expansion
from streamsvm.support.rows import count, part, width

_LOOKS = 8
"""Looks after an example at the last iterate, if that is what predicts."""

NONE = active_set.NONE
TINY = 1e-30


class Schedule(NamedTuple):
    """Parameters of the steps; `learn_rows` is compiled once for each type of `bounds`."""

    steps: float  # K; with `steps_per_r2` the smallest K
    steps_per_r2: float  # K = ceil(steps_per_r2 R2) if that is larger (Corollary 4); at most 1e6
    process: float  # 1: Algorithm 2, a step on the fresh example first; 0: Algorithm 1
    keep_zeros: float  # 1: examples with a_i = 0 are kept; 0: they are removed
    averaged: float  # 1: margins are from the averaged classifier, 0: from the last iterate
    tau: float  # steps with |g_i| <= tau are skipped
    bounds: Bounds = UNBOUNDED  # which examples are kept; a window has the size of the state's


@compiled_inner
def exact_step(a, g, cost, diagonal):
    """Return the coordinate step of equation (3)."""
    step = g / max(diagonal, TINY)
    return max(-a, min(cost - a, step))


@compiled_within
def _move(state, i, step, row, n):
    """Add `step` to a_i; a coefficient that reaches its bound is set to it, without rounding."""
    y, a = state.y[i], state.y[i] * state.alpha[i]
    if step == state.cost[i] - a:
        state.alpha[i] = y * state.cost[i]
    elif step == -a:
        state.alpha[i] = 0.0
    else:
        state.alpha[i] += y * step
    state.info[0].alpha_sum += step
    add_scaled(state.f, row, y * step, n)


@compiled_within
def reprocess(state, kernel, i, share, tau, d):
    """Make the coordinate step on slot i (Algorithm 1, line 7); return its gain in the dual.

    `share` is the weight of the step in the average: the share of the iterates from this one on. A
    step with |g_i| <= tau is not made; its gain is returned all the same.
    """
    info = state.info[0]
    y = state.y[i]
    g = 1.0 - y * state.f[i]
    diagonal = np.float64(state.diagonal[i])
    step = exact_step(y * state.alpha[i], g, state.cost[i], diagonal)
    info.n_steps += 1
    if step == 0.0:
        info.n_null += 1
        return 0.0
    gain = step * (g - 0.5 * step * diagonal)
    if abs(g) <= tau:
        info.n_null += 1
        info.skipped += gain
        return gain
    n = state.active.counts[0].n
    row = state.cache.values[row_cache.kernel_row(state.cache, kernel, state.store, i, n, d)]
    _move(state, i, step, row, n)
    touch(state, i)
    state.average[i] += share * y * step
    info.dual += gain
    return gain


@compiled_within
def process(state, slot, row):
    """Step on the fresh example (Algorithm 2, line 4), whose kernel values are in `row`."""
    info = state.info[0]
    y = state.y[slot]
    g = 1.0 - y * state.f[slot]
    diagonal = np.float64(state.diagonal[slot])
    step = exact_step(y * state.alpha[slot], g, state.cost[slot], diagonal)
    touch(state, slot)
    if step == 0.0:
        return
    n = state.active.counts[0].n
    before = state.alpha[slot]
    _move(state, slot, step, row, n)
    state.average[slot] += state.alpha[slot] - before
    gain = step * (g - 0.5 * step * diagonal)
    info.dual += gain
    info.process_gain += gain
    if state.cache.line_of[slot] == NONE:
        row_cache.keep(state.cache, slot, row, n)


@compiled_inner
def _always_enter(bounds, state, kernel, wanted, d):
    return True


@compiled_inner
def _enter_sample(bounds, state, kernel, wanted, d):
    old = active_set.leaving(state.active, np.int64(NONE), state.draws, bounds.limit)
    if old >= 0:
        budget.remove(state, kernel, old, d)
    return old != active_set.REFUSED


@compiled_inner
def _enter_budget(bounds, state, kernel, wanted, d):
    if state.active.counts[0].n_members < bounds.limit:
        return True
    return budget.make_room(state, kernel, wanted, bounds.policy, d)


_make_room: Any = chosen_by(
    0,
    {
        Unbounded: _always_enter,
        Window: _always_enter,
        Reservoir: _enter_sample,
        Budget: _enter_budget,
    },
)
"""_make_room(bounds, state, kernel, wanted, d): remove the example that must leave when one more
comes, if any; return whether the new one may enter. `wanted`: a step on it would raise the dual."""


@compiled_inner
def _expire(bounds, state, kernel, slot, d):
    old = active_set.expired(state.active)
    if old != NONE and old != slot:
        budget.remove(state, kernel, old, d)


_slide: Any = chosen_by(
    0, {Unbounded: nothing, Window: _expire, Reservoir: nothing, Budget: _expire}
)
"""_slide(bounds, state, kernel, slot, d): remove the example that leaves the window, if any, unless
it is the example in `slot`, which has just come again."""


@compiled_within
def _enter(state, x, y, cost, weight, number, diagonal, row, r):
    """Enter row r of the block in a slot, with a_i = 0; `row` holds its kernel values."""
    n_before = state.active.counts[0].n
    slot = enter(state, y, cost, weight, number, state.active.counts[0].n_offered, diagonal)
    stores.put(state.store, slot, x)
    row[slot] = diagonal
    if slot < n_before:
        # The slot was used before: cached kernel values of its old example are invalid.
        row_cache.free(state.cache, slot)
        row_cache.set_column(state.cache, slot, row)
    fresh_block.note(state.block, slot, r)
    state.f[slot] = expansion(state.alpha, row, state.active.counts[0].n)
    return slot


@compiled_within
def _look(state, weight):
    """Look at one of the members, which are not none: see `support.looks`."""
    members, n_members = state.active.members, state.active.counts[0].n_members
    most = state.info[0].cost_most
    i = looks.heavy_member(state.look_draws, members, n_members, state.cost, most)
    look_at(state, i, state.f[i], weight)


@compiled_within
def _steps(state, kernel, schedule, d):
    """Make the K uniform steps after an example, and update the sums of the certificate."""
    info, counts = state.info[0], state.active.counts[0]
    info.n_seen += 1
    n_members = counts.n_members
    if n_members == 0:
        return
    steps = max(schedule.steps, np.ceil(schedule.steps_per_r2 * info.r2))
    steps = min(steps, MOST_STEPS)
    # With equal C_i the draw of a step is a look, too, at the iterate after the step before.
    are_looks = looks.are_equal(info)
    gain, k = 0.0, 0.0
    while k < steps:
        i = state.active.members[below(state.draws, n_members)]
        if are_looks and schedule.averaged > 0.0 and k > 0.0:
            look_at(state, i, state.f[i], 1.0 / steps)
        gain += reprocess(state, kernel, i, (steps - k) / steps, schedule.tau, d)
        k += 1.0
        if schedule.averaged > 0.0 and (k == steps or not are_looks):
            _look(state, 1.0 / steps)
    if schedule.averaged == 0.0:
        for _ in range(_LOOKS):
            _look(state, 1.0 / _LOOKS)
    info.n_looked += 1
    account(info, gain, steps, n_members)


@compiled_inner
def margin_of(state, row, averaged):
    """Return f of the example with these kernel values, by the averaged classifier or by alpha."""
    f = expansion(state.alpha, row, state.active.counts[0].n)
    if averaged > 0.0:
        for t in range(state.info[0].n_touched):
            s = state.touched[t]
            f += (state.average[s] - state.alpha[s]) * np.float64(row[s])
    return f


@compiled_within
def _learn_row(state, kernel, x, r, y, cost, weight, number, diagonal, schedule):
    """Learn row r of the block x; return its margin from before."""
    d = width(x)
    row = fresh_block.values_of(state.block, kernel, state.store, x, r)
    state.info[0].n_values += state.active.counts[0].n
    margin = margin_of(state, row, schedule.averaged)
    # An example of weight 0 is not learnt.
    if cost <= 0.0:
        return margin
    settle(state, schedule.keep_zeros > 0.0)
    state.active.counts[0].n_offered += 1
    slot = stores.slot_of(state, number, state.active.counts[0].n)
    _slide(schedule.bounds, state, kernel, slot, d)
    if slot != NONE:
        active_set.renew(state.active, slot)
    else:
        f = expansion(state.alpha, row, state.active.counts[0].n)
        if _make_room(schedule.bounds, state, kernel, y * f < 1.0, d):
            # Again, since a merge may have replaced the row of a slot.
            row = fresh_block.values_of(state.block, kernel, state.store, x, r)
            slot = _enter(state, part(x, r, r + 1), y, cost, weight, number, diagonal, row, r)
    if slot != NONE:
        if schedule.process > 0.0:
            process(state, slot, row)
        elif schedule.keep_zeros == 0.0:
            touch(state, slot)
    _steps(state, kernel, schedule, d)
    return margin


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `registry`.

    Margins are f of each row; examples are recognised by their numbers.
    """
    state = borrowed(state)
    n_rows = count(x)
    start = 0
    while start < n_rows:
        rows = fresh_block.next_rows(state, kernel, x, start, state.active.counts[0].n)
        fresh_block.begin(state.block, kernel, rows)
        r = 0
        while r < count(rows) and fresh_block.has_room(state.block):
            at = start + r
            if active_set.is_full(state.active, schedule.bounds.limit) or not stores.has_room(
                state.store, part(x, at, at + 1)
            ):
                return at
            margins[at] = _learn_row(
                state, kernel, rows, r, side_of(y[at]), cost[at], weight[at], numbers[at],
                diagonal[at], schedule,
            )  # fmt: skip
            r += 1
        start += r
    return n_rows


@compiled_inner
def _write_margin(state, schedule, row, out, at):
    coefficients = state.average if schedule.averaged > 0.0 else state.alpha
    out[at] = expansion(coefficients, row, state.active.counts[0].n)


register_kernel_solver(TrackingState, BINARY, _write_margin, learn_rows)
