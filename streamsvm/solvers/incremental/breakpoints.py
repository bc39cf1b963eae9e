"""Where a step of a path ends: the first slot that joins or leaves the margin set (see `path`).

In regression a slot has the bounds 0 and C_i, and the target y - epsilon; or the bounds -C_i and 0,
and the target y + epsilon. With coefficient 0 it is at either end of a tube that is 2 epsilon wide.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.solvers.incremental.margin import bound_of
from streamsvm.solvers.incremental.state import AT_HIGH, AT_LOW, PENDING

BETA_TOLERANCE = 1e-12
"""Coefficients may pass their bounds by this share of the range between them, or of 1 / k(x, x)."""

LEAST_RATE = 1e-11
"""Gradients and coefficients that change by less, for their scale, do not change."""


@compiled_inner
def _approach(state, i, r):
    """Return how far slot i, at a bound, is from the margin set, and by how much it comes nearer.

    Its gradient falls by r for each unit of the path. A slot at the bound 0 of regression joins at
    either end of the tube.
    """
    info, h, kind = state.info[0], state.h[i], state.kind[i]
    if kind == AT_LOW:
        own, rate, is_zero = -h, -r, state.low[i] == 0.0
    elif kind == AT_HIGH:
        own, rate, is_zero = h, r, state.high[i] == 0.0
    else:
        return np.inf, 0.0
    if is_zero and info.tube < np.inf:
        other, speed = info.tube * info.scale - own, -rate
        speed -= info.tube * info.scale_rate
        if speed > 0.0 and (rate <= 0.0 or other * rate < own * speed):
            return other, speed
    return own, rate


@compiled_inner
def cross(state, i):
    """Let slot i, whose coefficient is 0, be at the other end of the tube."""
    info = state.info[0]
    sign = 1.0 if state.low[i] == 0.0 else -1.0
    state.low[i], state.high[i] = 0.0 - state.high[i], 0.0 - state.low[i]
    if state.kind[i] != PENDING:
        state.kind[i] = AT_HIGH if sign > 0.0 else AT_LOW
    state.target[i] += sign * info.tube
    state.h[i] += sign * info.tube * info.scale
    state.line[i] -= sign * info.tube * info.scale_rate


@compiled_inner
def is_beyond(state, i, r):
    """Tell whether slot i, at the bound 0, is at the other end of the tube than its bounds say."""
    info, kind = state.info[0], state.kind[i]
    if not info.tube < np.inf:
        return False
    tube, h = info.tube * info.scale, state.h[i]
    if kind == AT_LOW and state.low[i] == 0.0:
        other, moves_there = abs(h + tube), r > 0.0
    elif kind == AT_HIGH and state.high[i] == 0.0:
        other, moves_there = abs(h - tube), r < 0.0
    else:
        return False
    if max(other, abs(h)) <= info.near:
        # The tube has no width that counts.
        return moves_there
    return other < abs(h)


@compiled_inner
def _slack(state, s):
    """Return within what a coefficient is at its bound."""
    width, values = state.high[s] - state.low[s], state.diagonal[s]
    return BETA_TOLERANCE * (1.0 / values if width * values > 1.0 else width)


@compiled_inner
def _priority(rate, s, which):
    """Return the priority of slot s among those that end a step: the fastest, or in turn any."""
    return rate if which == 0 else float((s + 1) * 40503 * which % 65521 + 1)


@compiled_inner
def first_of_margin(state, sign, which, most):
    """Return how far a path goes until a member reaches a bound, and which; -1: beyond `most`."""
    length, found, best = most, -1, 0.0
    for j in range(state.info[0].m):
        s = state.members[j]
        r = sign * state.v[j + 1]
        if abs(r) <= LEAST_RATE:
            continue
        left = max(0.0, bound_of(state, s, r) + _slack(state, s)) / abs(r)
        if left < length:
            # It is the one if rounding lets none pass below.
            length, found = left, s
    for j in range(state.info[0].m):
        s = state.members[j]
        r = sign * state.v[j + 1]
        if abs(r) > LEAST_RATE and bound_of(state, s, r) <= length * abs(r):
            if _priority(abs(r), s, which) > best:
                best, found = _priority(abs(r), s, which), s
    if found >= 0:
        r = sign * state.v[state.place[found] + 1]
        length = max(0.0, bound_of(state, found, r) / abs(r))
    return length, found


@compiled_inner
def first_of_others(state, c, sign, which, least, most):
    """Return how far a path goes until the gradient of a slot at a bound is 0, and which slot.

    Gradients that change by at most `least` do not change.
    """
    n, length, found, best = state.info[0].n, most, -1, 0.0
    for i in range(n):
        r = sign * state.gamma[i]
        if i != c:
            short, speed = _approach(state, i, r)
            if speed > least:
                left = max(0.0, short + state.info[0].near) / speed
                if left < length:
                    length, found = left, i
    if which > 0 and found < 0:
        # None passes 0 by the tolerance: it need not join, and ties end so.
        return length, found
    for i in range(n):
        r = sign * state.gamma[i]
        if i != c:
            short, speed = _approach(state, i, r)
            if speed > least and short <= length * speed:
                if _priority(speed, i, which) > best:
                    best, found = _priority(speed, i, which), i
    if found >= 0:
        short, speed = _approach(state, found, sign * state.gamma[found])
        length = max(0.0, short) / speed
    return length, found


@compiled_inner
def first_by_bias(state, c, sign, most):
    """Return how far the bias goes until a slot has h 0, and which, if the margin set is empty.

    `sign` is that of the change, and at most `most` is returned; slot c is not looked at.
    """
    length, found = most, -1
    for i in range(state.info[0].n):
        short, speed = _approach(state, i, sign)
        if i != c and speed > 0.0 and short < length:
            length, found = max(0.0, short), i
    return length, found
