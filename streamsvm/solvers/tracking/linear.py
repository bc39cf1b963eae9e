"""Averaged tracking for the linear kernel with an explicit w; gradients are computed when needed.

Problem, symbols and algorithms are those of `tracking.step`. With k(x, z) = scale <x, z> the
classifier is f(x) = scale <w, x> with w = sum_i alpha_i x_i. A gradient g_i costs one product of d
terms (section 5 of the paper), so that the cost of a step does not depend on the number of
examples. Each step reads one row, so dense rows are contiguous in memory.
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
from streamsvm._parameter_checks import MOST_STEPS
from streamsvm.solvers.registry import learn_binary, register_solver, side_of
from streamsvm.solvers.tracking.state import (
    SCALARS,
    TOUCHED,
    account,
    check_touched,
    enter,
    leave,
    look_at,
    note_most,
    settle,
    touch,
)
from streamsvm.solvers.tracking.step import NONE, exact_step
from streamsvm.support import active_set, looks, sparse_store, stores
from streamsvm.support.active_set import ACTIVE, ActiveSet
from streamsvm.support.assigning import assign
from streamsvm.support.declaration import BOX, DRAWS, FLAG, NOT_NEGATIVE, SIGN, field
from streamsvm.support.dense_store import RowStore
from streamsvm.support.draws import below, uniform
from streamsvm.support.rows import SparseRows, count, part, width
from streamsvm.support.sparse_store import SparseStore
from streamsvm.support.states import ROWS, declare

_AFTER = 0.25
"""The smallest probability of a look after the last step: each costs a product."""


class LinearTrackingState(NamedTuple):
    """The arrays of averaged tracking with explicit w."""

    store: RowStore | SparseStore = ROWS
    active: ActiveSet = ACTIVE
    w: np.ndarray = field("features")  # sum_i alpha_i x_i
    w_average: np.ndarray = field("features")  # the mean of w since the last example
    alpha: np.ndarray = field("slots")  # signed coefficients
    average: np.ndarray = field("slots")  # the mean of alpha since the last example
    cost: np.ndarray = field("slots", range=BOX)  # C_s
    y: np.ndarray = field("slots", range=SIGN)
    diagonal: np.ndarray = field("slots", range=NOT_NEGATIVE)  # k(x_s, x_s)
    touched: np.ndarray = TOUCHED
    is_touched: np.ndarray = field("slots", dtype=np.uint8, range=FLAG)
    draws: np.ndarray = DRAWS  # state of the random generator, see `support.draws`
    look_draws: np.ndarray = looks.DRAWS  # the same of the generator of looks
    info: Any = SCALARS


declare(LinearTrackingState, check_touched)


@compiled_leaf
def _product_dense(w, x):
    total = 0.0
    for c in range(x.size):
        total += w[c] * np.float64(x[c])
    return total


@compiled_inner
def _product_sparse(w, x):
    total = 0.0
    for t in range(x.start[0], x.start[1]):
        total += w[x.columns[t]] * np.float64(x.values[t])
    return total


@compiled_leaf
def _add_dense(w, x, amount):
    for c in range(x.size):
        w[c] += amount * np.float64(x[c])


@compiled_inner
def _add_sparse(w, x, amount):
    for t in range(x.start[0], x.start[1]):
        w[x.columns[t]] += amount * np.float64(x.values[t])


@compiled_leaf
def _square_dense(x):
    total = 0.0
    for c in range(x.size):
        total += np.float64(x[c]) * np.float64(x[c])
    return total


@compiled_inner
def _square_sparse(x):
    total = 0.0
    for t in range(x.start[0], x.start[1]):
        total += np.float64(x.values[t]) * np.float64(x.values[t])
    return total


@compiled_inner
def _first(x):
    return x[0]


@compiled_inner
def _itself(x):
    return x


@compiled_inner
def _row_dense(store, slot, d):
    return store.rows[slot, :d]


@compiled_inner
def _row_sparse(store, slot, d):
    return sparse_store.row_of(store, slot, store.flat, d)


product: Any = chosen_by(1, {np.ndarray: _product_dense, SparseRows: _product_sparse})
"""product(w, x): <w, x>; w float64, x a row: float32 (d,), or `SparseRows` of one."""

_add: Any = chosen_by(1, {np.ndarray: _add_dense, SparseRows: _add_sparse})
_square: Any = chosen_by(0, {np.ndarray: _square_dense, SparseRows: _square_sparse})

_row_of: Any = chosen_by(0, {np.ndarray: _first, SparseRows: _itself})

row_at: Any = chosen_by(0, {RowStore: _row_dense, SparseStore: _row_sparse})
"""row_at(store, slot, d): the row in a slot, valid until the next put."""


@compiled_within
def step_on(state, scale, i, share, tau, d, look_weight):
    """Make the coordinate step on slot i; return its gain and whether it was made.

    The arguments are those of `tracking.step.reprocess`, with the scale of the linear kernel; if
    `look_weight` is above 0, the draw of i is a look, too, with this weight.
    """
    y, x = state.y[i], row_at(state.store, i, d)
    f = scale * product(state.w, x)
    if look_weight > 0.0:
        look_at(state, i, f, look_weight)
    g = 1.0 - y * f
    a = y * state.alpha[i]
    step = exact_step(a, g, state.cost[i], state.diagonal[i])
    gain = step * (g - 0.5 * step * state.diagonal[i])
    if step == 0.0 or abs(g) <= tau:
        return gain, False
    if step == state.cost[i] - a:
        state.alpha[i] = y * state.cost[i]
    elif step == -a:
        state.alpha[i] = 0.0
    else:
        state.alpha[i] += y * step
    _add(state.w, x, y * step)
    _add(state.w_average, x, share * y * step)
    touch(state, i)
    state.average[i] += share * y * step
    state.info[0].dual += gain
    state.info[0].alpha_sum += step
    return gain, True


@compiled_within
def _remove(state, scale, i, d):
    """Remove example i from the active set; the loss in the dual is added to `lost`."""
    a = state.y[i] * state.alpha[i]
    if a != 0.0:
        x = row_at(state.store, i, d)
        g = 1.0 - state.y[i] * scale * product(state.w, x)
        loss = a * g + 0.5 * a * a * state.diagonal[i]
        state.info[0].dual -= loss
        state.info[0].lost += loss
        state.info[0].alpha_sum -= a
        _add(state.w, x, -state.alpha[i])
        _add(state.w_average, x, -state.alpha[i])
    state.alpha[i] = 0.0
    state.average[i] = 0.0
    leave(state, i)


@compiled_within
def _look(state, scale, weight, probability, d):
    """With a probability look at one of the members, which are not none: see `support.looks`."""
    weight /= probability
    # Also without a look: the bound is about all gaps at which there may have been one.
    note_most(state.info[0], weight)
    if probability < 1.0 and uniform(state.look_draws) >= probability:
        return
    members, n_members = state.active.members, state.active.counts[0].n_members
    most = state.info[0].cost_most
    i = looks.heavy_member(state.look_draws, members, n_members, state.cost, most)
    look_at(state, i, scale * product(state.w, row_at(state.store, i, d)), weight)


@compiled_within
def _learn_row(state, scale, block, y, cost, weight, number, schedule):
    d, info, x = width(block), state.info[0], _row_of(block)
    margin = scale * product(state.w_average if schedule.averaged > 0.0 else state.w, x)
    if cost <= 0.0:
        return margin
    settle(state, schedule.keep_zeros > 0.0)
    assign(state.w_average, state.w)
    counts = state.active.counts[0]
    counts.n_offered += 1
    slot = stores.slot_of(state, number, counts.n)
    old = active_set.leaving(state.active, slot, state.draws, schedule.bounds.limit)
    if old >= 0:
        _remove(state, scale, old, d)
    if slot != NONE:
        active_set.renew(state.active, slot)
    elif old != active_set.REFUSED:
        slot = enter(state, y, cost, weight, number, counts.n_offered, scale * _square(x))
        stores.put(state.store, slot, block)
    if slot != NONE:
        touch(state, slot)
        if schedule.process > 0.0:
            gain, made = step_on(state, scale, slot, 1.0, 0.0, d, 0.0)
            info.process_gain += gain if made else 0.0
    info.n_seen += 1
    n_members = counts.n_members
    if n_members == 0:
        return margin
    steps = max(schedule.steps, np.ceil(schedule.steps_per_r2 * info.r2))
    steps = min(steps, MOST_STEPS)
    # With equal C_i the draw of a step is a look, too, at the iterate after the step before.
    # Otherwise there is one look an example on average, since it costs a product.
    are_looks = looks.are_equal(info)
    total, k = 0.0, 0.0
    while k < steps:
        i = state.active.members[below(state.draws, n_members)]
        weight = 1.0 / steps if are_looks and schedule.averaged > 0.0 and k > 0.0 else 0.0
        gain, made = step_on(state, scale, i, (steps - k) / steps, schedule.tau, d, weight)
        info.n_steps += 1
        info.n_null += not made
        info.skipped += 0.0 if made else gain
        total += gain
        k += 1.0
        if schedule.averaged > 0.0 and not are_looks:
            _look(state, scale, 1.0 / steps, 1.0 / steps, d)
    if schedule.averaged == 0.0:
        _look(state, scale, 1.0, 1.0, d)
    elif are_looks:
        _look(state, scale, 1.0 / steps, max(_AFTER, 1.0 / steps), d)
    info.n_looked += 1
    account(info, total, steps, n_members)
    return margin


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: as `tracking.step.learn_rows`; `diagonal` is not used."""
    state = borrowed(state)
    for r in range(count(x)):
        row = part(x, r, r + 1)
        full = active_set.is_full(state.active, schedule.bounds.limit)
        if full or not stores.has_room(state.store, row):
            return r
        margins[r] = _learn_row(
            state, kernel.scale, row, side_of(y[r]), cost[r], weight[r], numbers[r], schedule
        )
    return count(x)


@compiled
def margins_of(kernel, w, x, out):
    """Write f(x) of rows x into out, float64 (n,); w is the state's `w` or `w_average`."""
    for r in range(count(x)):
        out[r] = kernel.scale * product(w, _row_of(part(x, r, r + 1)))


def rebuild(state: LinearTrackingState, kernel: Any, d: int) -> None:
    """Do nothing: a linear kernel has no gamma that could change."""


@compiled_inner
def _event_margins(state, kernel, schedule, x, out):
    w = state.w_average if schedule.averaged > 0.0 else state.w
    margins_of(kernel, w, x, out[0])


register_solver(LinearTrackingState, learn_binary, _event_margins, learn_rows)
