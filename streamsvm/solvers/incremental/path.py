"""Exact incremental SVM: the solution is followed while one coefficient changes.

The problem, for targets q_i (+1 and -1 of two classes):

    maximise  sum_i beta_i q_i - 1/2 sum_ij beta_i beta_j k(x_i, x_j)
    subject to  sum_i beta_i = 0,  low_i <= beta_i <= high_i

(Of classes low_i = min(0, y_i C_i), high_i = max(0, y_i C_i), and beta_i = y_i alpha_i.) With the
bias b, h_i = q_i - sum_j beta_j k(x_i, x_j) - b. At the optimum

    beta_i = low_i and h_i <= 0  ("at low"),   beta_i = high_i and h_i >= 0  ("at high"),
    low_i < beta_i < high_i and h_i = 0  (the margin set M).

Let beta_c change by t, slot c being in none of the three. The others stay optimal if

    [db, dbeta_M] = v t,   v = -Q^-1 [1, k_Mc],   Q = [[0, 1'], [1, K_MM]],
    dh_i = -gamma_i t,     gamma_i = k_ic + sum_M k_iM v_M + v_b,

until a slot reaches or leaves a bound. So an example is learnt (beta_c from 0 until h_c = 0 or the
bound is reached), taken back (beta_c to 0) or given another bound. Q^-1 is changed by rank-one
updates when M changes.

Degenerate cases. If M is empty only b changes, until a slot has h = 0. If a slot k that reaches
h = 0 depends on M (the Schur complement of Q is 0: a duplicate, few features), its coefficient and
those of M are moved along the direction in which no h changes, until one of them reaches a bound.
Of steps of nearly the same length the one with the fastest change is taken (Harris), and the others
may pass their limits by the tolerance.

Cauwenberghs, Poggio, Incremental and Decremental Support Vector Machine Learning, NIPS 13 (2000);
Laskov, Gehl, Krueger, Mueller, Incremental Support Vector Learning, JMLR 7 (2006).
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.solvers.incremental.state import AT_HIGH, AT_LOW, MARGIN, PENDING, touch

DONE, MISSING_ROW, MARGIN_FULL, INEXACT, STUCK = range(5)
"""Why `follow` returned: the path is at its end; the kernel row of slot `info.wanted` is needed;
there is no room in the margin set; Q^-1 must be computed anew; or the path does not end."""

MOST_DRIFT = 1e-9
"""The largest residual of Q^-1 on a path."""

H_TOLERANCE = 1e-9
"""Gradients within this of 0 are 0."""

BETA_TOLERANCE = 1e-12
"""The same of coefficients, as a share of the range between their bounds."""

PIVOT = 1e-11
"""A slot depends on the margin set if its Schur complement is at most this share of its terms."""

LEAST_RATE = 1e-11
"""Gradients and coefficients that change by less, for their scale, do not change."""

_STILL = 5
"""After so many steps of no length one that ends a step is chosen in turn: ties could cycle."""

_STEPS_A_SLOT = 20
"""With more steps for each slot in use the path is given up."""


@compiled
def _residual(state, s, row, out):
    """Write Q v + [1, k_Ms] to `out`, float64 (margin + 1,); return its largest magnitude."""
    m, members, v = state.info[0].m, state.members, state.v
    out[0], worst = 1.0, 0.0
    for j in range(m):
        out[0] += v[j + 1]
    for i in range(m):
        values = state.rows[state.row_of[members[i]]]
        total = v[0] + row[members[i]]
        for j in range(m):
            total += values[members[j]] * v[j + 1]
        out[i + 1] = total
    for i in range(m + 1):
        worst = max(worst, abs(out[i]))
    return worst


@compiled
def sensitivities(state, s, row):
    """Write v of slot s, whose kernel row is `row`, float64 (slots,), to `state.v`.

    Returns gamma_s, and the size of what it is a sum of: rounding errors are a share of that. As
    Q^-1 loses digits with each update, v is improved by its residual, whose size is noted.
    """
    info = state.info[0]
    m = info.m
    inverse, members, v, rest = state.inverse, state.members, state.v, state.residual
    for i in range(m + 1):
        total = inverse[i, 0]
        for j in range(m):
            total += inverse[i, j + 1] * row[members[j]]
        v[i] = -total
    info.drift = max(info.drift, _residual(state, s, row, rest))
    for i in range(m + 1):
        for j in range(m + 1):
            v[i] -= inverse[i, j] * rest[j]
    gamma, size, largest = state.diagonal[s] + v[0], state.diagonal[s] + abs(v[0]), 0.0
    for j in range(m):
        term = row[members[j]] * v[j + 1]
        gamma += term
        size += abs(term)
        largest = max(largest, state.diagonal[members[j]])
    return gamma, size + largest


@compiled
def add_gammas(state, row, gamma):
    """Write gamma of all slots, given v and the kernel row of the slot that moves."""
    n, m = state.info[0].n, state.info[0].m
    v = state.v
    for i in range(n):
        gamma[i] = row[i] + v[0]
    for j in range(m):
        values, factor = state.rows[state.row_of[state.members[j]]], v[j + 1]
        for i in range(n):
            gamma[i] += factor * values[i]


@compiled
def enter(state, s, gamma):
    """Let slot s enter the margin set; v is that of s, and `gamma` its Schur complement."""
    info = state.info[0]
    m, v, inverse = info.m, state.v, state.inverse
    if m == 0:
        inverse[0, 0], inverse[0, 1], inverse[1, 0], inverse[1, 1] = (
            -state.diagonal[s],
            1.0,
            1.0,
            0.0,
        )
    else:
        inverse[m + 1, : m + 2] = 0.0
        inverse[: m + 2, m + 1] = 0.0
        v[m + 1] = 1.0
        for i in range(m + 2):
            factor = v[i] / gamma
            for j in range(m + 2):
                inverse[i, j] += factor * v[j]
    state.members[m] = s
    state.place[s], state.kind[s], state.h[s] = m, MARGIN, 0.0
    info.m = m + 1


@compiled
def leave(state, s, kind):
    """Let slot s leave the margin set; it is of another kind then."""
    info = state.info[0]
    last, k, inverse = info.m, state.place[s] + 1, state.inverse
    if last > 1:
        # The last member takes its place.
        if k != last:
            for j in range(last + 1):
                inverse[k, j], inverse[last, j] = inverse[last, j], inverse[k, j]
            for i in range(last + 1):
                inverse[i, k], inverse[i, last] = inverse[i, last], inverse[i, k]
        pivot = inverse[last, last]
        for i in range(last):
            factor = inverse[i, last] / pivot
            for j in range(last):
                inverse[i, j] -= factor * inverse[last, j]
    moved = state.members[last - 1]
    state.members[k - 1], state.place[moved] = moved, k - 1
    state.place[s], state.kind[s] = -1, kind
    info.m = last - 1


@compiled
def _bound_of(state, s, rate):
    """Return how far slot s is from the bound that it moves to."""
    return state.high[s] - state.beta[s] if rate > 0.0 else state.beta[s] - state.low[s]


@compiled
def _priority(rate, s, turn):
    """Return the priority of slot s among those that end a step: the fastest, or in turn any."""
    return rate if turn == 0 else float((s + 1) * 40503 * turn % 65521 + 1)


@compiled
def first_of_margin(state, sign, turn, most):
    """Return how far a path goes until a member reaches a bound, and which; -1: beyond `most`."""
    length, found, best = most, -1, 0.0
    for j in range(state.info[0].m):
        s = state.members[j]
        r = sign * state.v[j + 1]
        if abs(r) <= LEAST_RATE:
            continue
        left = _bound_of(state, s, r) + BETA_TOLERANCE * (state.high[s] - state.low[s])
        length = min(length, left / abs(r))
    for j in range(state.info[0].m):
        s = state.members[j]
        r = sign * state.v[j + 1]
        if abs(r) > LEAST_RATE and _bound_of(state, s, r) <= length * abs(r):
            if _priority(abs(r), s, turn) > best:
                best, found = _priority(abs(r), s, turn), s
    if found >= 0:
        r = sign * state.v[state.place[found] + 1]
        length = max(0.0, _bound_of(state, found, r) / abs(r))
    return length, found


@compiled
def first_of_others(state, c, sign, turn, least, most):
    """Return how far a path goes until the gradient of a slot at a bound is 0, and which slot.

    Gradients that change by at most `least` do not change.
    """
    n, length, found, best = state.info[0].n, most, -1, 0.0
    for i in range(n):
        r = sign * state.gamma[i]
        kind = state.kind[i]
        if (kind == AT_LOW and r < 0.0 or kind == AT_HIGH and r > 0.0) and i != c:
            if abs(r) > least:
                length = min(length, (abs(state.h[i]) + H_TOLERANCE) / abs(r))
    for i in range(n):
        r = sign * state.gamma[i]
        kind = state.kind[i]
        if (kind == AT_LOW and r < 0.0 or kind == AT_HIGH and r > 0.0) and i != c:
            if abs(r) > least and abs(state.h[i]) <= length * abs(r):
                if _priority(abs(r), i, turn) > best:
                    best, found = _priority(abs(r), i, turn), i
    if found >= 0:
        length = abs(state.h[found] / state.gamma[found])
    return length, found


@compiled
def move(state, c, change):
    """Change beta_c, and with it those of the margin set, b, and all gradients."""
    info, v = state.info[0], state.v
    state.beta[c] += change
    for j in range(info.m):
        state.beta[state.members[j]] += change * v[j + 1]
    info.b += change * v[0]
    for i in range(info.n):
        state.h[i] -= change * state.gamma[i]
    for j in range(info.m):
        state.h[state.members[j]] = 0.0


@compiled
def put_at_bound(state, s):
    """Set the coefficient of a slot to the bound that it is nearer to; return the kind."""
    if state.high[s] - state.beta[s] < state.beta[s] - state.low[s]:
        state.beta[s] = state.high[s]
        return AT_HIGH
    state.beta[s] = state.low[s]
    return AT_LOW


@compiled
def join(state, s):
    """Let slot s, with h 0, enter the margin set, whatever is needed for that.

    Returns `DONE`, `MISSING_ROW` or `MARGIN_FULL`. If s depends on the margin set, its coefficient
    is moved where no gradient changes until it is at its other bound, or a member at one.
    """
    info = state.info[0]
    r = touch(state, s)
    if r < 0:
        info.wanted = s
        return MISSING_ROW
    row = state.rows[r]
    while info.m > 0:
        gamma, size = sensitivities(state, s, row)
        if gamma > PIVOT * size:
            break
        sign = -1.0 if state.kind[s] == AT_HIGH else 1.0
        own = _bound_of(state, s, sign)
        length, found = first_of_margin(state, sign, 0, own)
        info.n_null += 1
        state.beta[s] += sign * length
        for j in range(info.m):
            state.beta[state.members[j]] += sign * length * state.v[j + 1]
        info.b += sign * length * state.v[0]
        if found < 0:
            state.kind[s] = put_at_bound(state, s)
            state.h[s] = 0.0
            return DONE
        leave(state, found, put_at_bound(state, found))
        state.h[found] = 0.0
    else:
        gamma = 0.0
    if info.m >= state.members.size:
        return MARGIN_FULL
    enter(state, s, gamma)
    return DONE


@compiled
def _only_bias(state, c, sign, most):
    """Return how far the bias goes until a slot has h 0, and which, if the margin set is empty.

    `sign` is that of the change, and at most `most` is returned; slot c is not looked at.
    """
    length, found = most, -1
    for i in range(state.info[0].n):
        kind = state.kind[i]
        if i != c and (kind == AT_LOW and sign < 0.0 or kind == AT_HIGH and sign > 0.0):
            if abs(state.h[i]) < length:
                length, found = abs(state.h[i]), i
    return length, found


@compiled
def _settled(state, c):
    """Give slot c, whose gradient fits its coefficient, its kind; return as `follow`."""
    margin = BETA_TOLERANCE * (state.high[c] - state.low[c])
    inside = state.low[c] + margin < state.beta[c] < state.high[c] - margin
    if not inside:
        state.kind[c] = put_at_bound(state, c)
        return DONE
    return join(state, c)


@compiled
def _wanted_sign(state, c, target):
    """Return the sign of the change of beta_c that is wanted, and the largest change; 0: none."""
    beta = state.beta[c]
    if target == target:
        return (1.0 if target > beta else -1.0 if target < beta else 0.0), abs(target - beta)
    h = state.h[c]
    margin = BETA_TOLERANCE * (state.high[c] - state.low[c])
    if h > H_TOLERANCE and beta < state.high[c] - margin:
        return 1.0, state.high[c] - beta
    if h < -H_TOLERANCE and beta > state.low[c] + margin:
        return -1.0, beta - state.low[c]
    return 0.0, 0.0


@compiled
def follow(state, c, target):
    """Change the coefficient of slot c, which is `PENDING`, while all settled ones stay optimal.

    Until it is `target`; then it is still pending. Or, if that is NaN, until c is optimal, too:
    then it is settled. Returns `DONE`, or why it cannot go on: after what it needs is there, it
    goes on when it is called again.
    """
    info = state.info[0]
    r = touch(state, c)
    if r < 0:
        info.wanted = c
        return MISSING_ROW
    row, n_still = state.rows[r], 0
    for _ in range(_STEPS_A_SLOT * (info.n + 10)):
        sign, most = _wanted_sign(state, c, target)
        if sign == 0.0:
            return DONE if target == target else _settled(state, c)
        info.n_steps += 1
        is_open = target != target
        if info.m == 0:
            limit = abs(state.h[c]) if is_open else np.inf
            length, found = _only_bias(state, c, sign, limit)
            if length == np.inf:
                return STUCK
            if found >= 0 and state.row_of[found] < 0:
                info.wanted = found
                return MISSING_ROW
            info.b += sign * length
            for i in range(info.n):
                state.h[i] -= sign * length
            if found < 0:
                state.h[c] = 0.0
                continue
        else:
            gamma, size = sensitivities(state, c, row)
            if info.drift > MOST_DRIFT * max(1.0, size):
                return INEXACT
            add_gammas(state, row, state.gamma)
            is_own = False
            if is_open and gamma > PIVOT * size and abs(state.h[c]) <= most * gamma:
                most, is_own = abs(state.h[c]) / gamma, True
            turn = info.n_steps if n_still > _STILL else 0
            length, leaving = first_of_margin(state, sign, turn, most)
            length, found = first_of_others(state, c, sign, turn, LEAST_RATE * size, length)
            n_still = n_still + 1 if length <= H_TOLERANCE * most else 0
            if found >= 0 and state.row_of[found] < 0:
                info.wanted = found
                return MISSING_ROW
            move(state, c, sign * length)
            if found < 0 and leaving >= 0:
                leave(state, leaving, put_at_bound(state, leaving))
                continue
            if found < 0:
                if is_own:
                    state.h[c] = 0.0
                else:
                    state.beta[c] = (
                        target
                        if target == target
                        else (state.high[c] if sign > 0.0 else state.low[c])
                    )
                continue
        state.h[found] = 0.0
        code = join(state, found)
        if code != DONE:
            return code
    return STUCK


@compiled
def refine(state):
    """Remove what rounding has left of sum beta and of the margin set's gradients; return its size.

    Their sums are made anew, and Q^-1 tells how b and the coefficients must change.
    """
    info = state.info[0]
    n, m, inverse, v = info.n, info.m, state.inverse, state.v
    if m == 0:
        return 0.0
    # The right side is in the scratch for gradients, which has room for it: m <= n.
    right = state.gamma
    total, worst = 0.0, 0.0
    for i in range(n):
        total += state.beta[i]
    for j in range(m):
        s = state.members[j]
        values, f = state.rows[state.row_of[s]], info.b
        for i in range(n):
            f += values[i] * state.beta[i]
        right[j] = state.target[s] - f
        worst = max(worst, abs(right[j]))
    for i in range(m + 1):
        change = -inverse[i, 0] * total
        for j in range(m):
            change += inverse[i, j + 1] * right[j]
        v[i] = change
    info.b += v[0]
    for i in range(n):
        state.h[i] -= v[0]
    for j in range(m):
        s = state.members[j]
        values, change = state.rows[state.row_of[s]], v[j + 1]
        state.beta[s] = min(state.high[s], max(state.low[s], state.beta[s] + change))
        for i in range(n):
            state.h[i] -= change * values[i]
    for j in range(m):
        state.h[state.members[j]] = 0.0
    return worst
