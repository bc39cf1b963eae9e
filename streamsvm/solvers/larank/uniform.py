"""LaRank with a certificate: exact block steps on uniformly random examples.

All examples are kept, also those whose coefficients are 0. A step draws one example and sets its
coefficients to their optimum, with all others fixed: a projection of beta_i + g_i / k_ii onto
{sum_c b_c = 0, b_c <= C_i [c = y_i]} (Crammer and Singer 2001, section 6). It raises the dual at
least as much as any other step on these coefficients, for example the Frank-Wolfe step towards a
corner. So the bound from the mean gain of such steps holds: see `streamsvm.monitor.certificate`.
"""

from __future__ import annotations

import math

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.solvers.larank.state import beta, set_beta
from streamsvm.support.draws import below
from streamsvm.support.kernel_rows.kernel_values import add_scaled
from streamsvm.support.kernel_rows.row_cache import kernel_row
from streamsvm.support.looks import heavy_member, record

_LOOKS = 2
"""Looks after the steps of one example."""


@compiled_inner
def shift_onto(v, own, cost):
    """Return theta with sum_c min(v_c - theta, bound_c) = 0; bound = cost for c = own, else 0."""
    theta = v.sum() / v.size
    for _ in range(v.size):
        # Clipping lowers the sum, and so theta: a class that was clipped once remains clipped.
        total, n_free = 0.0, 0
        for c in range(v.size):
            bound = cost if c == own else 0.0
            if v[c] - theta > bound:
                total += bound
            else:
                total += v[c]
                n_free += 1
        if n_free == 0:
            return theta
        new = total / n_free
        if not new < theta:
            return theta
        theta = new
    return theta


@compiled_inner
def block_step(state, kernel, i, tau, d):
    """Set the coefficients of slot i to their optimum; return the gain in the dual.

    A step that would change the gradients by at most tau is not made, but its gain is returned all
    the same, so that the certificate holds.
    """
    info = state.info[0]
    n_classes = info.n_classes
    # Of a row whose k(x, x) is 0 the box alone ends the step.
    k = max(np.float64(state.diagonal[i]), 1e-12 / max(1.0, state.cost[i]))
    old, v = np.empty(n_classes), np.empty(n_classes)
    for c in range(n_classes):
        old[c] = beta(state, c, i)
        v[c] = old[c] + state.gradient[c, i] / k
    theta = shift_onto(v, state.y[i], state.cost[i])
    total, least = 0.0, 0
    for c in range(n_classes):
        bound = state.cost[i] if c == state.y[i] else 0.0
        v[c] = bound if v[c] - theta > bound else v[c] - theta
        total += v[c]
        least = c if v[c] < v[least] else least
    # A small C_i is below the last digits of g / k: the sum is 0 by the largest coefficient.
    v[least] = min(0.0, v[least] - total)
    gain, most = 0.0, 0.0
    for c in range(n_classes):
        # From here on v is the change of the coefficients.
        v[c] -= old[c]
        gain += v[c] * (state.gradient[c, i] - 0.5 * k * v[c])
        most = max(most, abs(v[c]))
    if most * k <= tau:
        info.n_null += 1
        return max(0.0, gain)
    row = state.cache.values[kernel_row(state.cache, kernel, state.store, i, info.n, d)]
    for c in range(n_classes):
        if v[c] != 0.0:
            bound = state.cost[i] if c == state.y[i] else 0.0
            new = old[c] + v[c]
            set_beta(state, c, i, bound if new > bound else new)
            add_scaled(state.gradient[c], row, -v[c], info.n)
    info.dual += gain
    info.n_steps += 1
    return gain


@compiled_inner
def uniform_steps(state, kernel, steps, tau, d):
    """Make K block steps on uniformly random examples; update the sums of the certificate."""
    gain, made = 0.0, 0.0
    while made < steps:
        i = state.alive[below(state.draws, state.info[0].n_alive)]
        gain += block_step(state, kernel, i, tau, d)
        made += 1.0
    account(state, gain / steps)
    for _ in range(_LOOKS):
        look(state, 1.0 / _LOOKS)
    state.info[0].n_looked += 1


@compiled_inner
def account(state, gain):
    """Update the sums of the certificate after one example, given the mean gain of its steps."""
    info = state.info[0]
    costs, squares, r2 = 0.0, 0.0, 0.0
    for j in range(info.n_alive):
        s = state.alive[j]
        costs += state.cost[s]
        squares += state.cost[s] ** 2
        r2 = max(r2, np.float64(state.diagonal[s]))
    info.norm = math.sqrt(max(0.0, 2.0 * (info.own_sum - info.dual)))
    info.r2 = r2
    mean = costs / info.n_alive
    info.mean_gain += gain
    info.scaled_gain += gain / mean
    # rho2 = 2 R2: the squared distance of two feature vectors of one example.
    info.width += 2.0 * r2 * (squares / info.n_alive) / (mean * mean)


@compiled_inner
def look(state, weight):
    """Look at a support pattern: see `support.looks`; its part of the gap is in `larank.finish`."""
    info = state.info[0]
    i = heavy_member(state.look_draws, state.alive, info.n_alive, state.cost, info.cost_most)
    own, most, paid = state.gradient[state.y[i], i], 0.0, 0.0
    for c in range(info.n_classes):
        h = own - state.gradient[c, i]
        most = max(most, h)
        if c != state.y[i]:
            paid -= beta(state, c, i) * h
    # No difference of two scores exceeds sqrt(2) R |w|.
    record(info, most - paid / state.cost[i], 1.0 + math.sqrt(2.0 * info.r2) * info.norm, weight)
