"""The gap of averaged tracking, and steps on the active set until it is at its optimum.

With kernel values, where f is known for all members, each step is made on the member that gains
most. With explicit w, sweeps are made over all members in random order. These are not the uniform
steps that the certificate counts: their gain is subtracted from `lost`, so that the certificate
does not change.

The gap, without bias (Usunier, Bordes, Bottou 2010, equation 4)::

    gap = sum_i max((C_i - a_i) g_i, -a_i g_i)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.tracking import linear as tracking_linear
from streamsvm.solvers.tracking import step as tracking
from streamsvm.solvers.tracking.linear import product, row_at
from streamsvm.solvers.tracking.state import settle
from streamsvm.solvers.tracking.step import exact_step
from streamsvm.support.assigning import assign
from streamsvm.support.draws import below
from streamsvm.support.kernel_rows.kernel_values import add_scaled
from streamsvm.support.kernel_rows.row_cache import kernel_row

STEPS = 20_000
"""Number of steps between two reports of progress."""


@compiled_inner
def _best_member(state):
    """Return the member whose step gains most, and the largest |g_i| that a step can lower."""
    found, most, worst = np.int64(-1), 0.0, 0.0
    for m in range(state.active.counts[0].n_members):
        i = state.active.members[m]
        y, diagonal = state.y[i], np.float64(state.diagonal[i])
        g = 1.0 - y * state.f[i]
        a = y * state.alpha[i]
        step = exact_step(a, g, state.cost[i], diagonal)
        # A step below the last digit of the coefficient is none.
        if a + step == a:
            continue
        gain = step * (g - 0.5 * step * diagonal)
        if gain > 0.0:
            worst = max(worst, abs(g))
        if gain > most:
            found, most = i, gain
    return found, worst


@compiled
def finish_kernel(state, kernel, tau, d, keep_zeros, max_steps):
    """Make up to `max_steps` steps; return the largest |g_i| that a step can still lower."""
    state, kernel = borrowed((state, kernel))
    settle(state, True)
    info = state.info[0]
    n_steps, worst = info.n_steps, 0.0
    for _ in range(max_steps):
        i, worst = _best_member(state)
        if worst <= tau:
            break
        info.lost -= tracking.reprocess(state, kernel, i, 1.0, 0.0, d)
    settle(state, keep_zeros)
    info.n_steps = n_steps
    return worst


@compiled
def finish_linear(state, kernel, tau, d, max_steps):
    """Make sweeps over the members in random orders; return the largest |g_i| of the last one."""
    state, kernel = borrowed((state, kernel))
    settle(state, True)
    assign(state.w_average, state.w)
    info, n = state.info[0], state.active.counts[0].n_members
    order = state.active.members[:n].copy()
    made, worst = 0, np.inf
    while made < max_steps and worst > tau:
        worst = 0.0
        for m in range(n - 1, -1, -1):
            other = below(state.draws, m + 1)
            order[m], order[other] = order[other], order[m]
            i = order[m]
            g = 1.0 - state.y[i] * kernel.scale * tracking_linear.product(
                state.w, tracking_linear.row_at(state.store, i, d)
            )
            a = state.alpha[i]
            gain, stepped = tracking_linear.step_on(state, kernel.scale, i, 1.0, 0.0, d, 0.0)
            # A step below the last digit of the coefficient is none.
            if stepped and state.alpha[i] != a:
                worst = max(worst, abs(g))
                info.lost -= gain
        made += n
    settle(state, True)
    assign(state.w_average, state.w)
    return worst


def finish_some(solver: Any, state: Any, kernel: Any, schedule: tracking.Schedule, d: int) -> float:
    """Make some steps by a module, `step` or `linear`; return the largest error of a margin."""
    tau, steps = tau_of(schedule), np.int64(STEPS)
    if solver is tracking_linear:
        return float(finish_linear(state, kernel, tau, d, steps))
    return float(finish_kernel(state, kernel, tau, d, schedule.keep_zeros > 0.0, steps))


def tau_of(schedule: tracking.Schedule) -> float:
    """Return the largest error of a margin at the end: tau, but at least 1e-9 for rounding."""
    return max(schedule.tau, 1e-9)


SAMPLED_MEMBERS = 4096
"""The gap of a linear model with more members than this is estimated on a sample of this size."""


@compiled_inner
def _gap_of(members, coefficients, f, cost, y):
    """Return the sum of equation 4 and the sum of C_i over members; f[m] is for members[m]."""
    total, costs = 0.0, 0.0
    for m in range(members.size):
        s = members[m]
        a = y[s] * coefficients[s]
        g = 1.0 - y[s] * f[m]
        total += max((cost[s] - a) * g, -a * g)
        costs += cost[s]
    return total, costs


@compiled
def _tracking(state, kernel, averaged, d):
    state, kernel = borrowed((state, kernel))
    n, n_members = state.active.counts[0].n, state.active.counts[0].n_members
    f = state.f[:n].copy()
    if averaged:
        for t in range(state.info[0].n_touched):
            s = state.touched[t]
            change = state.average[s] - state.alpha[s]
            if change != 0.0:
                line = kernel_row(state.cache, kernel, state.store, s, n, d)
                add_scaled(f, state.cache.values[line], change, n)
    members = state.active.members[:n_members]
    own = np.empty(n_members)
    for m in range(n_members):
        own[m] = f[members[m]]
    coefficients = state.average if averaged else state.alpha
    return _gap_of(members, coefficients, own, state.cost, state.y)


def tracking_gap(state, kernel, d, averaged=True) -> KeptGap:
    """Return the gap of the averaged classifier, or of the last iterate."""
    total, cost = _tracking(state, kernel, bool(averaged), d)
    return KeptGap(total, cost)


@compiled
def _linear(state, scale, members, averaged, d):
    w = state.w_average if averaged else state.w
    f = np.empty(members.size)
    for m in range(members.size):
        f[m] = scale * product(w, row_at(state.store, members[m], d))
    coefficients = state.average if averaged else state.alpha
    return _gap_of(members, coefficients, f, state.cost, state.y)


def linear_gap(state, kernel, d, averaged=True, draws=None) -> KeptGap:
    """Return the gap of a model with explicit w; an unbiased estimate for over 4,096 members.

    `draws` is a NumPy Generator that draws the sample of members; None: one with seed 0.
    """
    counts = state.active.counts[0]
    members = state.active.members[: int(counts.n_members)]
    factor = 1.0
    if len(members) > SAMPLED_MEMBERS:
        draws = draws or np.random.default_rng(0)
        factor = len(members) / SAMPLED_MEMBERS
        members = members[draws.integers(0, len(members), SAMPLED_MEMBERS)]
    total, cost = _linear(state, kernel.scale, members, bool(averaged), d)
    return KeptGap(factor * total, factor * cost)
