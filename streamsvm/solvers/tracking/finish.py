"""Finishing averaged tracking: coordinate steps on the active set until it is at its optimum.

With kernel values, where f is known for all members, each step is made on the member that gains
most. With explicit w, sweeps are made over all members in random order. These are not the uniform
steps that the certificate counts: their gain is subtracted from `lost`, so that the certificate
does not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.tracking import linear as tracking_linear
from streamsvm.solvers.tracking import step as tracking
from streamsvm.solvers.tracking.state import settle
from streamsvm.solvers.tracking.step import exact_step
from streamsvm.support.assigning import assign
from streamsvm.support.draws import below

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
