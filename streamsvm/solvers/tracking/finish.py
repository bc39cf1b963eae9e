"""Finishing averaged tracking: coordinate steps on the active set until it is at its optimum.

For kernels the member that gains most is stepped on (f is at hand for all); for explicit w all
members in turn, in a random order. These are no uniform steps of the stream: what they add to the
dual is booked against `lost`, so that the certificate of the stream stays what it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import compiled
from streamsvm.solvers.tracking import linear as tracking_linear
from streamsvm.solvers.tracking import step as tracking
from streamsvm.solvers.tracking.state import settle
from streamsvm.solvers.tracking.step import exact_step
from streamsvm.support.draws import below

STEPS = 20_000
"""Steps between two reports of progress."""


@compiled
def _steepest(state):
    """Return the member whose step gains most, and the largest error of a margin that can fall."""
    found, most, worst = np.int64(-1), 0.0, 0.0
    for m in range(state.active.counts[0].n_members):
        i = state.active.members[m]
        y, diagonal = state.y[i], np.float64(state.diagonal[i])
        g = 1.0 - y * state.f[i]
        step = exact_step(y * state.alpha[i], g, state.box[i], diagonal)
        if step == 0.0:
            continue
        worst = max(worst, abs(g))
        gain = step * (g - 0.5 * step * diagonal)
        if gain > most:
            found, most = i, gain
    return found, worst


@compiled
def finish_kernel(state, kernel, tau, d, keep_zeros, max_steps):
    """Make up to `max_steps` steps; return the largest |g_i| of those that can still move."""
    settle(state, True)
    info = state.info[0]
    n_steps, worst = info.n_steps, 0.0
    for _ in range(max_steps):
        i, worst = _steepest(state)
        if worst <= tau:
            break
        info.lost -= tracking.reprocess(state, kernel, i, 1.0, 0.0, d)
    settle(state, keep_zeros)
    info.n_steps = n_steps
    return worst


@compiled
def finish_linear(state, kernel, tau, d, max_steps):
    """Pass over the members in random orders; return the largest |g_i| that could be stepped on."""
    settle(state, True)
    state.w_average[:] = state.w
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
            gain, stepped = tracking_linear.step_on(state, kernel.scale, i, 1.0, 0.0, d)
            if stepped:
                worst = max(worst, abs(g))
                info.lost -= gain
        made += n
    settle(state, True)
    state.w_average[:] = state.w
    return worst


def finish_some(solver: Any, state: Any, kernel: Any, schedule: tracking.Schedule, d: int) -> float:
    """Make some steps with the solver's kind of state; return how far off the worst margin is.

    The aim is `tau_of` the schedule.
    """
    tau, steps = tau_of(schedule), np.int64(STEPS)
    if solver is tracking_linear:
        return float(finish_linear(state, kernel, tau, d, steps))
    return float(finish_kernel(state, kernel, tau, d, schedule.keep_zeros > 0.0, steps))


def tau_of(schedule: tracking.Schedule) -> float:
    """Return how far off a margin may be at the end: tau, but no less than rounding allows."""
    return max(schedule.tau, 1e-9)
