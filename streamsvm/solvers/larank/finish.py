"""The finishing of LaRank, by sweeps of exact block steps over the support patterns; its gap.

It is for several classes, without bias, and with a_i^c = -beta_i^c >= 0 for c other than y_i::

    gap = sum_i [ C_i max(0, max_c h_i(c)) - sum_c a_i^c h_i(c) ],   h_i(c) = g_{i,y_i} - g_{i,c}
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.larank.state import beta, forget, set_beta
from streamsvm.solvers.larank.uniform import block_step

_SHARE = 0.1
"""A sweep leaves out patterns whose violation is below this share of the largest one."""

_REPEATS = 30
"""How often a sweep returns to the patterns that violated more than that when it began."""

_FARTHEST = 1000.0
"""How many times as far as a sweep went its direction is followed: rounding grows with it."""


@compiled_inner
def violation(state, i):
    """Return by how much slot i violates optimality, over all classes; 0 for dead slots."""
    if state.cost[i] == 0.0:
        return 0.0
    most, least = -np.inf, np.inf
    for c in range(state.info[0].n_classes):
        g = state.gradient[c, i]
        least = min(least, g)
        bound = state.cost[i] if c == state.y[i] else 0.0
        if g > most and beta(state, c, i) < bound:
            most = g
    return max(0.0, most - least)


@compiled_inner
def worst_violation(state):
    """Return the largest violation of any support pattern."""
    worst = 0.0
    for i in range(state.info[0].n):
        worst = max(worst, violation(state, i))
    return worst


@compiled_inner
def _go_on(state, n_active, before, gradients):
    """Go on in the direction of a sweep as far as the dual grows, within the bounds.

    A step on one pattern is as short as its gradient: without this, coefficients that grow to a
    large C_i need as many steps. `before`, float64 (n_active, classes), are the coefficients of the
    patterns in `order` when the sweep began, and `gradients`, float64 (classes, n), those of all.
    """
    info, slope, curvature, most = state.info[0], 0.0, 0.0, _FARTHEST
    for j in range(n_active):
        i = state.order[j]
        for c in range(info.n_classes):
            now, g = beta(state, c, i), state.gradient[c, i]
            change = now - before[j, c]
            slope += change * g
            curvature -= change * (g - gradients[c, i])
            if change > 0.0:
                bound = state.cost[i] if c == state.y[i] else 0.0
                most = min(most, (bound - now) / change)
    if slope <= 0.0 or curvature <= 0.0 or most <= 0.0:
        return
    t = min(most, slope / curvature)
    for j in range(n_active):
        i = state.order[j]
        for c in range(info.n_classes):
            now = beta(state, c, i)
            change = now - before[j, c]
            if change != 0.0:
                bound = state.cost[i] if c == state.y[i] else 0.0
                set_beta(state, c, i, min(bound, now + t * change))
    for c in range(info.n_classes):
        for s in range(info.n):
            state.gradient[c, s] += t * (state.gradient[c, s] - gradients[c, s])
    info.dual += t * (slope - 0.5 * t * curvature)


@compiled
def finish_some(state, kernel, schedule, d):
    """Improve the patterns that violate most; return the largest violation left.

    There may be few of them, and to look for them takes as long as many steps: so several steps are
    made on each.
    """
    state = borrowed(state)
    # Large violations first: their steps would undo the steps on the others.
    enough = max(schedule.tau, _SHARE * worst_violation(state))
    n_active = 0
    for i in range(state.info[0].n):
        if violation(state, i) > enough:
            state.order[n_active] = i
            n_active += 1
    before = np.empty((n_active, state.info[0].n_classes))
    for j in range(n_active):
        for c in range(state.info[0].n_classes):
            before[j, c] = beta(state, c, state.order[j])
    gradients = state.gradient[: state.info[0].n_classes, : state.info[0].n].copy()
    for _ in range(_REPEATS):
        n_made = 0
        for j in range(n_active):
            i = state.order[j]
            if violation(state, i) > enough:
                n_before = state.info[0].n_steps
                block_step(state, kernel, i, 0.0, d)
                n_made += state.info[0].n_steps - n_before
                if state.n_own[i] == 0 and schedule.uniform == 0.0:
                    forget(state, i)
        if n_made == 0:
            break
    _go_on(state, n_active, before, gradients)
    return worst_violation(state)


@compiled
def _larank(state):
    total, costs = 0.0, 0.0
    for s in range(state.info[0].n):
        cost = state.cost[s]
        if cost == 0.0:
            continue
        own, most = state.gradient[state.y[s], s], 0.0
        for c in range(state.info[0].n_classes):
            h = own - state.gradient[c, s]
            most = max(most, h)
            at = state.place[c, s]
            if c != state.y[s] and at >= 0:
                total += state.coefficient[c, at] * h
        total += cost * most
        costs += cost
    return total, costs


def larank_gap(state) -> KeptGap:
    """Return the gap over the support patterns of a `LaRankState`."""
    total, cost = _larank(state)
    return KeptGap(total, cost)
