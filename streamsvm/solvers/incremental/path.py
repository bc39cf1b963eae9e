"""Exact incremental SVM: the solution is followed while one coefficient changes.

The problem, for targets q_i (+1 and -1 of two classes):

    maximise  sum_i beta_i q_i - 1/2 sum_ij beta_i beta_j k(x_i, x_j)
    subject to  sum_i beta_i = total,  low_i <= beta_i <= high_i

(Of classes the total is 0, low_i = min(0, y_i C_i), high_i = max(0, y_i C_i), and beta_i = y_i
alpha_i; of one class q_i = 0, and the total is nu n; of regression: see `breakpoints`.) With the
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

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.incremental.breakpoints import (
    LEAST_RATE,
    cross,
    first_by_bias,
    first_of_margin,
    first_of_others,
    is_beyond,
)
from streamsvm.solvers.incremental.margin import (
    add_gammas,
    bound_of,
    enter,
    leave,
    note_tolerance,
    put_at_bound,
    sensitivities,
)
from streamsvm.solvers.incremental.state import AT_HIGH, touch

DONE, MISSING_ROW, MARGIN_FULL, INEXACT, STUCK = range(5)
"""Why `follow` returned: the path is at its end; the kernel row of slot `info.wanted` is needed;
there is no room in the margin set; Q^-1 must be computed anew; or the path does not end."""

PIVOT = 1e-13
"""A slot depends on the margin set if its Schur complement is at most this share of its terms."""

_SUM_ROUNDING = 1e-9
"""What rounding can leave of a sum of coefficients, as a share of the largest range."""

_SHORT, _STILL = 1e-9, 5
"""After so many steps of at most this share of what is left (of no length) one of the slots that
end a step is chosen in turn: ties could cycle."""

_STEPS_A_SLOT = 20
"""With more steps for each slot in use the path is given up."""


@compiled_inner
def move(state, c, change):
    """Change beta_c, and with it those of the margin set, b, and all gradients.

    If c is -1, go along the line.
    """
    info, v = state.info[0], state.v
    if c >= 0:
        state.beta[c] += change
    else:
        info.left -= change
        info.scale += change * info.scale_rate
    for j in range(info.m):
        state.beta[state.members[j]] += change * v[j + 1]
    info.b += change * v[0]
    for i in range(info.n):
        state.h[i] -= change * state.gamma[i]


@compiled_inner
def join(state, s):
    """Let slot s, with h 0, enter the margin set, whatever is needed for that.

    Returns `DONE`, or why it cannot go on, as `follow`. If s depends on the margin set, its
    coefficient is moved where no gradient changes until it is at its other bound, or a member at
    one.
    """
    info = state.info[0]
    r = touch(state, s)
    if r < 0:
        info.wanted = s
        return MISSING_ROW
    row, n_null = state.rows[r], info.n_null
    while info.m > 0:
        gamma, size = sensitivities(state, state.diagonal[s], 1.0, row)
        if info.is_inexact and info.n_null == n_null:
            return INEXACT
        if gamma > PIVOT * size:
            break
        sign = -1.0 if state.kind[s] == AT_HIGH else 1.0
        own = bound_of(state, s, sign)
        length, found = first_of_margin(state, sign, 0, own)
        info.n_null += 1
        add_gammas(state, row, state.gamma)
        move(state, s, sign * length)
        if found < 0:
            state.kind[s] = put_at_bound(state, s)
            return DONE
        leave(state, found, put_at_bound(state, found))
    else:
        gamma = 0.0
    if info.m >= state.members.size:
        return MARGIN_FULL
    enter(state, s, gamma)
    return DONE


@compiled_inner
def _largest_range(state):
    """Return the largest range between the bounds of a coefficient."""
    largest = 0.0
    for i in range(state.info[0].n):
        largest = max(largest, state.high[i] - state.low[i])
    return largest


@compiled_inner
def _step_of_bias(state, c, row, sign, most, target):
    """Change the bias alone, as the margin set is empty: until a slot has h 0, or c has.

    Returns a code as `follow`, and the slot, -1: c, or that nothing was left to do.
    """
    info = state.info[0]
    length, found = first_by_bias(state, c, sign, np.inf if target == target else abs(state.h[c]))
    if length == np.inf:
        # No coefficient can make up for it: all that is left is what rounding has left.
        if most > _SUM_ROUNDING * _largest_range(state):
            return STUCK, -1
        for i in range(info.n):
            state.h[i] -= (info.left if c < 0 else target - state.beta[c]) * row[i]
        if c < 0:
            info.left = 0.0
        else:
            state.beta[c] = target
        return DONE, -1
    if found >= 0 and state.row_of[found] < 0:
        info.wanted = found
        return MISSING_ROW, found
    info.n_steps += 1
    info.b += sign * length
    for i in range(info.n):
        state.h[i] -= sign * length
    if found < 0:
        state.h[c] = 0.0
    return DONE, found


@compiled_inner
def _settled(state, c):
    """Give slot c, whose gradient fits its coefficient, its kind; return as `follow`."""
    if state.low[c] == state.high[c]:
        # Its coefficient is held: pending is what it stays.
        return DONE
    if not state.low[c] < state.beta[c] < state.high[c]:
        state.kind[c] = put_at_bound(state, c)
        return DONE
    return join(state, c)


@compiled_inner
def _wanted_sign(state, c, target):
    """Return the sign of the change that is wanted of beta_c, and the largest change; 0: none."""
    if c < 0:
        return (1.0 if state.info[0].left > 0.0 else 0.0), state.info[0].left
    beta = state.beta[c]
    if target == target:
        return (1.0 if target > beta else -1.0 if target < beta else 0.0), abs(target - beta)
    info = state.info[0]
    near, tube = info.near, info.tube
    if beta == 0.0 and tube < np.inf:
        h = state.h[c]
        if (state.low[c] == 0.0 and h < -tube - near) or (state.high[c] == 0.0 and h > tube + near):
            cross(state, c)
    h = state.h[c]
    if h > near and beta < state.high[c]:
        return 1.0, state.high[c] - beta
    if h < -near and beta > state.low[c]:
        return -1.0, beta - state.low[c]
    return 0.0, 0.0


@compiled_inner
def _are_margin_rows_there(state):
    """Tell whether the kernel rows of all members are there; if not, note which one is wanted."""
    for j in range(state.info[0].m):
        if state.row_of[state.members[j]] < 0:
            state.info[0].wanted = state.members[j]
            return False
    return True


@compiled_inner
def _step(state, c, row, sign, most, target):
    """Go along the path until a slot joins or leaves the margin set, or c is at an end.

    Returns a code as `follow`, and the slot that is to join, -1: none.
    """
    info = state.info[0]
    if c < 0:
        own, mass = 0.0, info.mass
    else:
        own, mass = state.diagonal[c], 1.0
    gamma, size = sensitivities(state, own, mass, row)
    if info.is_inexact:
        return INEXACT, -1
    if c < 0:
        size = abs(state.v[0])
        for j in range(info.m):
            s = state.members[j]
            size = max(size, abs(row[s]), abs(state.v[j + 1]) * state.diagonal[s])
    add_gammas(state, row, state.gamma)
    is_own = False
    if target != target and gamma > 0.0 and abs(state.h[c]) <= most * gamma:
        most, is_own = abs(state.h[c]) / gamma, True
    which = info.n_steps + 1 if info.n_still > _STILL else 0
    length, leaving = first_of_margin(state, sign, which, most)
    length, found = first_of_others(state, c, sign, which, LEAST_RATE * size, length)
    if found >= 0 and state.row_of[found] < 0:
        info.wanted = found
        return MISSING_ROW, found
    info.n_steps += 1
    info.n_still = info.n_still + 1 if length <= _SHORT * most else 0
    move(state, c, sign * length)
    if found < 0 and leaving >= 0:
        leave(state, leaving, put_at_bound(state, leaving))
    elif found < 0 and is_own:
        state.h[c] = 0.0
    elif found < 0 and c < 0:
        info.left = 0.0
    elif found < 0:
        end = state.high[c] if sign > 0.0 else state.low[c]
        state.beta[c] = target if target == target else end
    return DONE, found


@compiled
def follow(state, c, target):
    """Change the coefficient of slot c, which is `PENDING`, while all settled ones stay optimal.

    Until it is `target`; then it is still pending. Or, if that is NaN, until c is optimal, too:
    then it is settled. Of c -1 go along the line to its end; `target` is 0. Returns `DONE`, or why
    it cannot go on: after what it needs is there, it goes on when it is called again.
    """
    state = borrowed(state)
    info = state.info[0]
    if not _are_margin_rows_there(state):
        return MISSING_ROW
    row, has_row = state.line, c < 0
    note_tolerance(state)
    for _ in range(_STEPS_A_SLOT * (info.n + 10)):
        sign, most = _wanted_sign(state, c, target)
        if sign == 0.0:
            return DONE if target == target else _settled(state, c)
        if not has_row:
            r = touch(state, c)
            if r < 0:
                info.wanted = c
                return MISSING_ROW
            row, has_row = state.rows[r], True
        if info.m == 0 and not (c < 0 and info.mass == 0.0):
            change = most if c >= 0 else most * info.mass
            way = sign if change >= 0.0 else -sign
            code, found = _step_of_bias(state, c, row, way, abs(change), target)
            rate = way
        else:
            code, found = _step(state, c, row, sign, most, target)
            rate = sign * state.gamma[max(0, found)]
        if code != DONE:
            return code
        if found >= 0:
            if is_beyond(state, found, rate):
                cross(state, found)
            code = join(state, found)
            if code != DONE:
                return code
    return STUCK
