"""LASVM within bounds: a window over the last examples, a budget of support vectors.

The constraint sum_s alpha_s = 0 always holds. An example is therefore removed by pair steps of
fixed length, which transfer its coefficient to the partners for which the dual gains most (or loses
least). A budget merges the cheapest pair, or removes the example whose removal costs the dual
nothing. The part of the coefficients that a merged vector does not get is first transferred to the
best partners, so that the sum stays 0. The loss in the dual is added to `lost`.

Fading. Vectors that stand for many examples have large costs, and after a drift newer examples are
no match for them. So when errors have become more, all alpha_s and all C_s are multiplied once by
`RHO`, and errors are counted anew. From then on an older example counts `RHO` times as much as one
that comes. Zero sum and boxes stay valid, and but for the bias predictions stay as they are, until
new examples change them: a false alarm costs little. While errors do not become more, nothing
fades. They have when the share of late, e <- FADE e + (1 - FADE) [wrong], is above that of all
examples since the last fading by `LIMIT` standard deviations of e (an EWMA control chart: Ross,
Adams, Tasoulis, Hand, Pattern Recognition Letters 33, 2012).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamsvm._compile import borrowed, chosen_by, compiled, compiled_inner, compiled_leaf, nothing
from streamsvm.solvers.bounds import Budget, Unbounded, Window
from streamsvm.solvers.lasvm.extremes import update_gradient
from streamsvm.solvers.lasvm.state import bias, refresh_extremes
from streamsvm.solvers.merging import CANDIDATES, are_as_one, pair_cost, weight_of
from streamsvm.solvers.window import last_too_old, note_class
from streamsvm.support import stores
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import renew_column
from streamsvm.support.kernel_rows.kernel_diagonal import own_value
from streamsvm.support.kernel_rows.kernel_values import expansion
from streamsvm.support.looks import note_cost
from streamsvm.support.rows import count, part, width

NONE = -1
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)


FADE = 0.997
LIMIT = 4.0
RHO = 0.1

LEAST_COST = 1e-100
"""Smaller costs do not shrink: a cost of 0 marks a dead slot."""


@compiled_inner
def note_error(info, is_wrong):
    """Count an example, and whether it was predicted wrong before it was learnt."""
    info.n_watched += 1
    info.n_wrong += is_wrong
    info.wrong_of_late = FADE * info.wrong_of_late + (1.0 - FADE) * is_wrong


@compiled_inner
def errs_more(info):
    """Tell whether errors have become more than chance explains."""
    # At most 1, whatever the counts in a file are.
    mean = min(1.0, (info.n_wrong + 1.0) / (info.n_watched + 2.0))
    deviation = math.sqrt(mean * (1.0 - mean) * (1.0 - FADE) / (1.0 + FADE))
    return info.wrong_of_late > mean + LIMIT * deviation


@compiled_inner
def fade(state, rho):
    """Multiply coefficients, costs and weights by rho, and begin to count errors anew."""
    info = state.info[0]
    info.n_watched, info.n_wrong, info.wrong_of_late = 0, 0, 0.0
    dual = 0.0
    info.n_over = 0
    info.n_zero = 0
    for s in range(info.n):
        cost = state.upper[s] - state.lower[s]
        if cost == 0.0:
            continue
        state.alpha[s] *= rho
        if cost > LEAST_COST:
            state.lower[s] *= rho
            state.upper[s] *= rho
            state.store.weight[s] *= rho
            note_cost(info, state.upper[s] - state.lower[s])
        # g = y - f, and f is a sum over coefficients.
        state.gradient[s] = state.y[s] - rho * (state.y[s] - state.gradient[s])
        dual += 0.5 * state.alpha[s] * (state.y[s] + state.gradient[s])
        info.n_zero += int(state.alpha[s] == 0.0)
    info.lost += info.dual - dual
    info.dual = dual
    refresh_extremes(state)


@compiled_inner
def mark_dead(state, s):
    """Mark a slot, whose alpha is 0, as dead."""
    info = state.info[0]
    info.n_zero -= 1
    info.n_dead += 1
    state.lower[s] = state.upper[s] = 0.0
    state.store.entered[s] = 0
    stores.release(state.store, s)
    row_cache.free(state.cache, s)


@compiled_inner
def _fixed_step(state, kernel, i, j, step, n, d):
    """Add `step` to alpha_i and subtract it from alpha_j, even if the dual falls."""
    cache, info = state.cache, state.info[0]
    row_i = cache.values[row_cache.kernel_row(cache, kernel, state.store, i, n, d)]
    row_j = cache.values[row_cache.kernel_row(cache, kernel, state.store, j, n, d)]
    diagonals = np.float64(state.diagonal[i]) + np.float64(state.diagonal[j])
    eta = diagonals - 2.0 * np.float64(row_i[j])
    info.n_zero -= int(state.alpha[i] == 0.0) + int(state.alpha[j] == 0.0)
    change = step * (state.gradient[i] - state.gradient[j] - 0.5 * step * eta)
    room_i, room_j = state.upper[i] - state.alpha[i], state.alpha[j] - state.lower[j]
    state.alpha[i] = state.upper[i] if step == room_i else state.alpha[i] + step
    state.alpha[j] = state.lower[j] if step == room_j else state.alpha[j] - step
    info.n_zero += int(state.alpha[i] == 0.0) + int(state.alpha[j] == 0.0)
    info.dual += change
    info.lost -= change
    update_gradient(state, row_i, row_j, step, n)


@compiled_inner
def _transfer(state, kernel, s, amount, d):
    """Lower |alpha_s| by `amount`, by pair steps with the partners that raise the dual most."""
    info = state.info[0]
    lower, upper = state.lower[s], state.upper[s]
    left = min(amount, abs(state.alpha[s]))
    while left > 0.0:
        # A box that only lets alpha_s move towards 0, so that s is never chosen as the partner.
        falls = state.alpha[s] > 0.0
        if falls:
            state.lower[s], state.upper[s] = 0.0, state.alpha[s]
        else:
            state.lower[s], state.upper[s] = state.alpha[s], 0.0
        refresh_extremes(state)
        partner = info.i if falls else info.j
        if partner < 0:
            # No partner: what is left is the rounding error of the sum.
            state.alpha[s] -= left if falls else -left
            info.n_zero += int(state.alpha[s] == 0.0)
            break
        if falls:
            step = min(left, state.upper[partner] - state.alpha[partner])
            _fixed_step(state, kernel, partner, s, step, info.n, d)
        else:
            step = min(left, state.alpha[partner] - state.lower[partner])
            _fixed_step(state, kernel, s, partner, step, info.n, d)
        left -= step
    state.lower[s], state.upper[s] = lower, upper


@compiled
def remove(state, kernel, s, d):
    """Remove the example in slot s and its coefficient from S."""
    state, kernel = borrowed((state, kernel))
    _transfer(state, kernel, s, abs(state.alpha[s]), d)
    mark_dead(state, s)
    refresh_extremes(state)


@compiled_inner
def cheapest_to_remove(state):
    """Return the slot that is cheapest to remove, and the cost."""
    found, least, b = np.int64(NONE), np.inf, bias(state)
    for s in range(state.info[0].n):
        if state.lower[s] == state.upper[s]:
            continue
        a = abs(state.alpha[s])
        violation = state.y[s] * (state.gradient[s] - b)
        loss = a * violation + 0.5 * a * a * np.float64(state.diagonal[s])
        if loss < least:
            found, least = np.int64(s), loss
    return found, least


@compiled_leaf
def _projection_scores(row, diagonal, y, y_i, lower, upper, n, out):
    """Write k_j^2 / k_jj of slots j < n in use with label y_i and k_j > 0, else 0."""
    for j in range(n):
        k = row[j] if y[j] == y_i else np.float32(0.0)
        k = k if lower[j] < upper[j] else np.float32(0.0)
        k = max(k, np.float32(0.0))
        out[j] = k * k / max(diagonal[j], np.float32(1e-30))


@compiled_inner
def _nearest(state, row, i):
    """Return the slot of the same label with the largest k_ij^2 / k_jj, k_ij > 0, or -1."""
    n = state.info[0].n
    scores = np.empty(n, np.float32)
    _projection_scores(
        row, state.diagonal, state.y, state.y[i], state.lower, state.upper, n, scores
    )
    scores[i] = 0.0
    found, most = np.int64(NONE), np.float32(0.0)
    for j in range(n):
        if scores[j] > most:
            found, most = np.int64(j), scores[j]
    return found


@compiled_inner
def _equal_one(state, kernel, i, d):
    """Return a slot of the same label whose example is that of slot i, or nearly; or -1."""
    row = state.cache.values[
        row_cache.kernel_row(state.cache, kernel, state.store, i, state.info[0].n, d)
    ]
    j = _nearest(state, row, i)
    if j == NONE or not are_as_one(state.diagonal[i], state.diagonal[j], row[j]):
        return np.int64(NONE)
    return j


@compiled_inner
def _cheapest_pair(state, kernel, first, d):
    """Return the pair of one label that is cheapest to merge.

    The first of the pair is `first` or one of some other slots; the second is its neighbour. The
    other slots are spread by multiples of the golden ratio, in the place of random draws.
    """
    info = state.info[0]
    least, best_i, best_j = np.inf, first, np.int64(NONE)
    for c in range(CANDIDATES + 1):
        i = first
        if c > 0:
            place = (info.n_seen * CANDIDATES + c) * _GOLDEN
            i = np.int64((place - np.floor(place)) * info.n)
            if state.lower[i] == state.upper[i]:
                continue
        line = row_cache.kernel_row(state.cache, kernel, state.store, i, info.n, d)
        row = state.cache.values[line]
        j = _nearest(state, row, i)
        if j == NONE:
            continue
        cost = pair_cost(state.alpha, state.diagonal, i, j, row[j])
        if cost < least:
            least, best_i, best_j = cost, i, j
    return best_i, best_j


@compiled_inner
def _widen_cost(state, j, i):
    """Add the box and the weight of i to those of j."""
    state.lower[j] += state.lower[i]
    state.upper[j] += state.upper[i]
    note_cost(state.info[0], state.upper[j] - state.lower[j])
    state.store.weight[j] += state.store.weight[i]


@compiled_inner
def _merge(state, kernel, i, j, policy, d):
    """Replace i and j by one vector between them, in slot j."""
    info, cache = state.info[0], state.cache
    n, y = info.n, state.y[j]
    row_i = cache.values[row_cache.kernel_row(cache, kernel, state.store, i, n, d)]
    a_i, a_j = abs(state.alpha[i]), abs(state.alpha[j])
    h = weight_of(policy, np.float64(row_i[j]), a_i, a_j)
    z = stores.between(state.store, i, j, h, d)
    row = np.zeros((1, state.alpha.size), np.float32)
    stores.values(kernel, state.store, z, np.int64(1), d, np.int64(0), n, row)
    k_iz, k_jz = np.float64(row[0, i]), np.float64(row[0, j])
    k_zz = np.float64(own_value(kernel, stores.spare_of(state.store, np.int64(1), d), z))
    # The part of the coefficients that z does not get is first transferred to the best partners.
    _widen_cost(state, j, i)
    spare = a_i + a_j - (a_i * k_iz + a_j * k_jz) / max(k_zz, 1e-30)
    _transfer(state, kernel, i, spare, d)
    _transfer(state, kernel, j, spare - a_i, d)
    row_i = cache.values[row_cache.kernel_row(cache, kernel, state.store, i, n, d)]
    row_j = cache.values[row_cache.kernel_row(cache, kernel, state.store, j, n, d)]
    alpha_i, alpha_j = state.alpha[i], state.alpha[j]
    g_z = y - expansion(state.alpha, row[0], n)
    row[0, j] = k_zz
    stores.release(state.store, i)
    stores.put(state.store, j, z)
    alpha_z = alpha_i + alpha_j
    # The change of the dual: a linear part from the gradients, and half the squared change of w.
    square = (
        alpha_i * alpha_i * np.float64(state.diagonal[i])
        + alpha_j * alpha_j * np.float64(state.diagonal[j])
        + alpha_z * alpha_z * k_zz
        + 2.0 * alpha_i * alpha_j * np.float64(row_i[j])
        - 2.0 * alpha_z * (alpha_i * k_iz + alpha_j * k_jz)
    )
    slope = alpha_z * g_z - alpha_i * state.gradient[i] - alpha_j * state.gradient[j]
    info.dual += slope - 0.5 * square
    info.lost -= slope - 0.5 * square
    for s in range(n):
        f_gone = alpha_i * np.float64(row_i[s]) + alpha_j * np.float64(row_j[s])
        state.gradient[s] += f_gone - alpha_z * np.float64(row[0, s])
    state.gradient[j] = g_z + alpha_i * k_iz + alpha_j * k_jz - alpha_z * k_zz
    state.diagonal[j] = k_zz
    # The number of the newer one; negative, since z is no example of the stream.
    state.store.entered[j] = -max(abs(state.store.entered[i]), abs(state.store.entered[j]))
    info.n_zero += 1 - int(alpha_i == 0.0) - int(alpha_j == 0.0) + int(alpha_z == 0.0)
    # Clipped, since alpha_z may be outside the box by rounding.
    state.alpha[i] = 0.0
    state.alpha[j] = min(state.upper[j], max(state.lower[j], alpha_z))
    mark_dead(state, i)
    row_cache.free(cache, j)
    row_cache.set_column(cache, j, row[0])
    row_cache.keep(cache, j, row[0], n)
    refresh_extremes(state)


@compiled_inner
def make_room(state, kernel, policy, d):
    """Free one slot by a policy of a `Budget`; return the slot of a merged vector, or -1."""
    i, loss = cheapest_to_remove(state)
    j = np.int64(NONE)
    if loss > 0.0:
        i, j = _cheapest_pair(state, kernel, i, d)
    elif state.alpha[i] == 0.0:
        equal = _equal_one(state, kernel, i, d)
        if equal != NONE:
            # Its equal gets its box, or b would not be bounded by how many rows there were.
            _widen_cost(state, equal, i)
            mark_dead(state, i)
            refresh_extremes(state)
            return j
    if j == NONE:
        remove(state, kernel, i, d)
        return j
    _merge(state, kernel, i, j, policy, d)
    return j


@compiled_inner
def _slide_unbounded(bounds, state, kernel, y, cost, number, d):
    return False


@compiled_leaf
def _has_too_old(entered, y, falling, rising):
    """Tell whether an example of y = -1 has a number up to `falling`, or of y = +1 to `rising`."""
    found = 0
    for s in range(entered.size):
        number = abs(entered[s])
        found += (number > 0) & (number <= (rising if y[s] > 0.0 else falling))
    return found > 0


@compiled_inner
def _slide_window(bounds, state, kernel, y, cost, number, d):
    if bounds.window <= 0.0:
        return False
    if cost > 0.0:
        note_class(bounds, state.recent, np.int64(y > 0.0), 2, number)
    falling = last_too_old(bounds, state.recent, 0, number)
    rising = last_too_old(bounds, state.recent, 1, number)
    n, entered = state.info[0].n, state.store.entered
    if not _has_too_old(entered[:n], state.y[:n], falling, rising):
        return False
    for s in range(n):
        # Of merged vectors that of the newest part.
        if 0 < abs(entered[s]) <= (rising if state.y[s] > 0.0 else falling):
            remove(state, kernel, s, d)
    return True


slide: Any = chosen_by(
    0, {Unbounded: _slide_unbounded, Window: _slide_window, Budget: _slide_window}
)
"""slide(bounds, state, kernel, y, cost, number, d): remove the examples that leave the window when
example `number` comes, with this y and C (0: it is not learnt); return whether there were any."""


@compiled_inner
def _whole(bounds, info):
    return 1.0


@compiled_inner
def _share_within_budget(bounds, info):
    return np.sqrt(bounds.limit / (bounds.limit + info.n_over))


share: Any = chosen_by(0, {Unbounded: _whole, Window: _whole, Budget: _share_within_budget})
"""share(bounds, info): what the box and the weight of the next example are multiplied by.

With m vectors gone over into others, sqrt(limit / (limit + m)): steps that became no smaller would
make the model follow every wrong label, as each merge errs by as much as a newcomer counts. It is 1
again after fading.
"""


@compiled_inner
def _no_rows(bounds, state, x):
    return state.store


@compiled_inner
def _rows_in_store(bounds, state, x):
    size, n_live = count(x), state.info[0].n - state.info[0].n_dead
    n = size if size > 1 and n_live + size > bounds.limit else np.int64(0)
    spare = stores.spare_of(state.store, n, width(x))
    return stores.of_rows(spare, part(x, np.int64(0), n))


kept_rows: Any = chosen_by(0, {Unbounded: _no_rows, Window: _no_rows, Budget: _rows_in_store})
"""kept_rows(bounds, state, x): return the rows x of a block as a store, for `stay_within`; without
rows if S cannot exceed its limit within this block."""


@compiled_inner
def _stay_within_budget(bounds, state, kernel, fresh, r, size, n_block, d, is_wrong):
    info = state.info[0]
    note_error(info, is_wrong)
    is_full = info.n - info.n_dead >= bounds.limit
    if is_full and errs_more(info):
        fade(state, RHO)
    while info.n - info.n_dead > bounds.limit:
        slot = make_room(state, kernel, bounds.policy, d)
        info.n_over += 1
        if slot >= 0 and slot < n_block:
            z = stores.row_of(state.store, slot, state.cache.row, d)
            renew_column(state.block, kernel, fresh, z, slot, r + 1, size, d)


stay_within: Any = chosen_by(0, {Unbounded: nothing, Window: nothing, Budget: _stay_within_budget})
"""stay_within(bounds, state, kernel, fresh, r, size, n_block, d, is_wrong): make room while S is
over its limit, and update the kernel values of the rows of the block after row r. If errors have
become more, what was learnt so far fades (`solvers.lasvm.bounds`).

`fresh` is the result of `kept_rows` for the `size` rows of the block; `state.block` holds the
kernel values of these rows with the first `n_block` slots. `is_wrong` is 1 if row r was predicted
wrong, else 0.
"""
