"""The perceptron family: one pass, one update an example, with or without a budget.

Each learner keeps f(x) = sum_s alpha_s k(x_s, x), without bias, and adds a fresh example (x, y) if
its margin y f(x) is too small. C is the learner's C times class weight times example weight.

Kernel perceptron (Aizerman 1964; Freund, Schapire 1998; thesis 2010, Algorithm 2)::

    if y f(x) <= margin:     alpha_x = y C,   with C = the weights alone

Passive-aggressive (Crammer, Dekel, Keshet, Shalev-Shwartz, Singer 2006; thesis, Algorithm 3)::

    if l = 1 - y f(x) > 0:   alpha_x = y l / k(x, x)                     PA
                                       y min(C, l / k(x, x))             PA-I
                                       y l / (k(x, x) + 1 / (2 C))       PA-II

Kernel Pegasos (Shalev-Shwartz, Singer, Srebro, Cotter 2011), for l2/2 |w|^2 + mean C hinge::

    f <- (1 - 1/t) f;  if y f(x) < 1 before:  alpha_x = y C / (l2 t)

Pegasos' coefficients are stored without the factor 1 / (l2 t), which all of them share at each t.

Averages: of all models so far; for Pegasos model t counts t times (Lacoste-Julien, Schmidt, Bach
2012), which converges like 1 / T, and makes the sums the same as those of the others: the model at
t times t is sum_s alpha_s k(x_s, .) / l2.

With a budget: `make_room` in place of the vector that leaves; or, with PROJECT (Projectron:
Orabona, Keshet, Caputo, JMLR 10, 2009), the step is made along the projection P x of the fresh
example on the span of the vectors kept, once there are as many as allowed, or if x almost lies in
that span. |P x|^2 is then in the place of k(x, x).

The voted perceptron (Freund, Schapire 1998): all models so far predict, each with one vote for each
example after which it was the model. An example that comes again enters again; then the models are
those of the first 1, 2, ... slots, and a running sum over a kernel row gives what each says.
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
from streamsvm.solvers.bounds import MERGE, MERGE_MEAN, UNBOUNDED, Budget, Unbounded
from streamsvm.solvers.perceptron.budget import PROJECT, REMOVE, make_room
from streamsvm.solvers.perceptron.state import (
    DEPENDENT,
    PerceptronState,
    change,
    extend_inverse,
    fade_average,
    put,
    solve,
)
from streamsvm.solvers.registry import BINARY, register_kernel_solver, side_of
from streamsvm.support import stores
from streamsvm.support.averages import summed, voted
from streamsvm.support.kernel_rows import fresh_block, row_cache
from streamsvm.support.kernel_rows.kernel_values import add_scaled, expansion
from streamsvm.support.rows import count, part, width

PERCEPTRON, PA, PA_I, PA_II, PEGASOS = 0.0, 1.0, 2.0, 3.0, 4.0
"""The rules of updates."""

LAST, MEAN, VOTED = 0.0, 1.0, 2.0
"""What predicts: the last model, the mean of all models, or their votes (perceptron only)."""

MODELS_A_VECTOR, FEWEST_MODELS = 4.0, 400.0
"""Once vectors are merged, all models so far count half in the mean each time when there are that
many for each vector allowed, or so many if these are few. A model mends by later steps what a merge
took from it, and a mean of all models never would: it got worse for ever."""


class Schedule(NamedTuple):
    """Parameters of the steps; `learn_rows` is compiled once for each type of `bounds`."""

    rule: float  # one of the rules above
    margin: float  # an example with y f(x) above it changes nothing
    l2: float  # l2 of Pegasos; 0 for the others
    averaged: float  # what predicts: `LAST`, `MEAN` or `VOTED`
    bounds: Unbounded | Budget = UNBOUNDED


@compiled
def scale_of(schedule, T):
    """Return the factor of all coefficients of the model after T examples."""
    if schedule.rule != PEGASOS:
        return 1.0
    return 1.0 / (schedule.l2 * T) if T > 0 else 0.0


@compiled
def scale_of_average(schedule, info):
    """Return the factor of the sum of all models: 1 over the sum of their weights."""
    if info.n_seen == 0:
        return 0.0
    if schedule.rule != PEGASOS:
        return 1.0 / (info.n_seen - info.n_faded)
    # Multiplied as floats: as integers they overflow after three billion examples.
    T = np.float64(info.n_seen)
    return 1.0 / (schedule.l2 * (0.5 * T * (T + 1.0) - info.sum_faded))


@compiled_within
def step_of(schedule, y, f, square, cost):
    """Return the coefficient of a fresh example whose margin is too small; square = k(x, x)."""
    if schedule.rule == PERCEPTRON or schedule.rule == PEGASOS:
        return y * cost
    loss = 1.0 - y * f
    if schedule.rule == PA_II:
        return y * loss / (square + 0.5 / cost)
    # A row of k(x, x) = 0 cannot change its own margin.
    step = loss / square if square > 0.0 else 0.0
    return y * (min(cost, step) if schedule.rule == PA_I else step)


@compiled_within
def _enter(state, x, r, size, slot, weight, number, diagonal):
    """Put row r of the block into a slot, with coefficient 0; tell the later rows of the block."""
    put(state, slot, x, weight, number, diagonal)
    state.info[0].last_number = max(state.info[0].last_number, number)
    state.block.values[r, slot] = diagonal
    for later in range(r + 1, size):
        state.block.values[later, slot] = state.block.among[later, r]


@compiled_inner
def _update_unbounded(
    bounds, state, kernel, x, fresh, r, size, y, f, cost, weight, number, diagonal, schedule
):
    slot = np.int64(-1)
    if schedule.averaged != VOTED:
        slot = stores.slot_of(state, number, state.info[0].n)
    if slot < 0:
        slot = state.info[0].n
        state.info[0].n = slot + 1
        _enter(state, x, r, size, slot, weight, number, diagonal)
    change(state, slot, step_of(schedule, y, f, np.float64(diagonal), cost))


@compiled_inner
def _project(state, row, y, f, cost, diagonal, schedule):
    """Make the step along the projection on the slots, if it is to be; tell whether it was."""
    n = state.info[0].n
    solved = np.empty(n)
    distance = solve(state, row, diagonal, solved, n)
    k_xx = np.float64(diagonal)
    if n < schedule.bounds.limit and distance > DEPENDENT * k_xx:
        extend_inverse(state, solved, distance, n)
        return False
    if k_xx - distance > 1e-6 * k_xx:
        step = step_of(schedule, y, f, k_xx - distance, cost)
        for s in range(n):
            change(state, s, step * solved[s])
    return True


@compiled_inner
def _update_budget(
    bounds, state, kernel, x, fresh, r, size, y, f, cost, weight, number, diagonal, schedule
):
    info, row, policy = state.info[0], state.block.values[r], bounds.policy
    slot = stores.slot_of(state, number, info.n)
    step = step_of(schedule, y, f, np.float64(diagonal), cost)
    if slot < 0:
        if policy == PROJECT and _project(state, row, y, f, cost, diagonal, schedule):
            return
        if info.n < bounds.limit:
            slot = info.n
            info.n = slot + 1
        else:
            slot = make_room(state, kernel, policy, fresh, r, size, width(x))
        _enter(state, x, r, size, slot, weight, number, diagonal)
        if policy == REMOVE:
            state.f[slot] = expansion(state.alpha, row, info.n)
        if policy != PROJECT:
            row_cache.set_column(state.cache, slot, row)
            row_cache.keep(state.cache, slot, row, info.n)
    change(state, slot, step)
    if policy == REMOVE:
        add_scaled(state.f, row, step, info.n)


@compiled_within
def _fade_mean(bounds, state):
    if bounds.policy == MERGE or bounds.policy == MERGE_MEAN:
        info, most = state.info[0], max(FEWEST_MODELS, MODELS_A_VECTOR * bounds.limit)
        if info.n_room > 0 and info.n_seen - 1 - info.n_faded >= most:
            fade_average(state)


_fade: Any = chosen_by(0, {Unbounded: nothing, Budget: _fade_mean})
"""_fade(bounds, state): let older models count half in the mean, if it is time; an example was
counted, and not learnt yet."""

_update: Any = chosen_by(0, {Unbounded: _update_unbounded, Budget: _update_budget})
"""_update(bounds, state, kernel, x, fresh, r, size, y, f, cost, weight, number, diagonal,
schedule):
take row r of the block, x, which violates the margin, into the model."""


@compiled_inner
def _predicted(state, schedule, row, n, T, f):
    """Return what predicts; f is what the last model says."""
    if schedule.averaged == LAST:
        return f
    if schedule.averaged == VOTED:
        return voted(state.alpha, state.late, T, row, n) / T if T > 0 else 0.0
    info = state.info[0]
    total = T - info.n_faded
    return scale_of_average(schedule, info) * summed(state.alpha, state.late, total, row, n)


@compiled
def learn_rows(state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins):
    """Learn rows one after the other: arguments and result as in `registry`.

    An example that is a support vector already does not enter again; margins are what predicted
    each row.
    """
    state = borrowed(state)
    n_rows, d = count(x), width(x)
    start = 0
    while start < n_rows:
        rows = fresh_block.next_rows(state, kernel, x, start, state.info[0].n)
        size = count(rows)
        fresh = stores.of_rows(state.block.rows, rows)
        if size > 1:
            stores.values(kernel, fresh, rows, size, d, np.int64(0), size, state.block.among)
        for r in range(size):
            at = start + r
            one = part(x, at, at + 1)
            is_full = state.info[0].n == state.alpha.size < schedule.bounds.limit
            if is_full or not stores.has_room(state.store, one):
                return at
            row, n, T = state.block.values[r], state.info[0].n, state.info[0].n_seen
            state.info[0].n_values += n
            f = scale_of(schedule, T) * expansion(state.alpha, row, n)
            margins[at] = _predicted(state, schedule, row, n, T, f)
            # An example of weight 0 is not learnt.
            if cost[at] <= 0.0:
                continue
            state.info[0].n_seen = T + 1
            _fade(schedule.bounds, state)
            # A margin of 1 is enough for a hinge loss, one of 0 is not for a perceptron.
            side = side_of(y[at])
            margin = side * f
            if margin < schedule.margin or (
                margin == schedule.margin and schedule.rule == PERCEPTRON
            ):
                state.info[0].n_steps += 1
                _update(
                    schedule.bounds, state, kernel, one, fresh, r, size, side, f, cost[at],
                    weight[at], numbers[at], diagonal[at], schedule,
                )  # fmt: skip
            else:
                state.info[0].n_null += 1
        start += size
    return n_rows


@compiled_inner
def _write_margin(state, schedule, row, out, at):
    n, T, f = state.info[0].n, state.info[0].n_seen, 0.0
    if schedule.averaged == LAST:
        f = scale_of(schedule, T) * expansion(state.alpha, row, n)
    out[at] = _predicted(state, schedule, row, n, T, f)


register_kernel_solver(PerceptronState, BINARY, _write_margin, learn_rows)
