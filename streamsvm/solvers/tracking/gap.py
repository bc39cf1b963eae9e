"""The measured duality gap of averaged tracking, on the active set.

Without bias (Usunier, Bordes, Bottou 2010, equation 4)::

    gap = sum_i max((C_i - a_i) g_i, -a_i g_i)
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.tracking.linear import product, row_at
from streamsvm.support.kernel_rows.kernel_values import add_scaled
from streamsvm.support.kernel_rows.row_cache import kernel_row

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
