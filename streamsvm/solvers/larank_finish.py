"""LaRank run to the optimum over the support patterns: sweeps of PROCESSOLD over the violating."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled
from streamsvm.solvers.larank import process_old
from streamsvm.solvers.larank_state import beta

_TRIES = 20
"""Steps on one pattern before the next one has its turn."""


@compiled
def violation(state, i):  # type: ignore[no-untyped-def]
    """Return by how much slot i violates optimality, over all classes; 0 for dead slots."""
    if state.box[i] == 0.0:
        return 0.0
    most, least = -np.inf, np.inf
    for c in range(state.info[0].n_classes):
        g = state.gradient[c, i]
        least = min(least, g)
        bound = state.box[i] if c == state.y[i] else 0.0
        if g > most and beta(state, c, i) < bound:
            most = g
    return max(0.0, most - least)


@compiled
def worst_violation(state):  # type: ignore[no-untyped-def]
    """Return the largest violation of any support pattern."""
    worst = 0.0
    for i in range(state.info[0].n):
        worst = max(worst, violation(state, i))
    return worst


@compiled
def finish_some(state, kernel, schedule, d):  # type: ignore[no-untyped-def]
    """Sweep once over the patterns that violate most; return the largest violation left.

    Parameters
    ----------
    state, kernel, schedule, d
        A `LaRankState`, its kernel and `Schedule`, the number of features.

    """
    state = borrowed(state)
    # Those near the worst first: a step on the others would be undone by these.
    enough = max(schedule.tau, 0.1 * worst_violation(state))
    for i in range(state.info[0].n):
        tries = 0
        while tries < _TRIES and violation(state, i) > enough:
            if not process_old(state, kernel, np.int64(i), schedule.tau, d):
                break
            tries += 1
    return worst_violation(state)
