"""LaRank in bounded memory: examples that leave, and who takes over their coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import chosen_by, compiled
from streamsvm.solvers.bounds import Budget, Unbounded, Window
from streamsvm.solvers.larank.state import beta, forget, set_beta
from streamsvm.solvers.tracking.state import add_scaled
from streamsvm.support.row_cache import kernel_row


@compiled
def remove(state, kernel, s, d):
    """Take an example out of the expansion, whatever its coefficients."""
    info = state.info[0]
    row = state.cache.values[kernel_row(state.cache, kernel, state.store, s, info.n, d)]
    k = np.float64(state.diagonal[s])
    for c in range(info.n_classes):
        b = beta(state, c, s)
        if b != 0.0:
            # The dual along this coefficient: its slope here, and its curvature.
            loss = b * state.gradient[c, s] + 0.5 * b * b * k
            info.dual -= loss
            info.lost += loss
            add_scaled(state.gradient[c], row, b, info.n)
            set_beta(state, c, s, 0.0)
    forget(state, s)


@compiled
def hand_over(state, kernel, s, d):
    """Remove an example; the nearest of its class takes over what it can: projection, and box."""
    info = state.info[0]
    row = state.cache.values[kernel_row(state.cache, kernel, state.store, s, info.n, d)]
    heir, nearest = np.int64(-1), 0.0
    for j in range(info.n_alive):
        t = state.alive[j]
        if t != s and state.y[t] == state.y[s] and row[t] > nearest:
            heir, nearest = t, np.float64(row[t])
    own = np.empty(info.n_classes)
    for c in range(info.n_classes):
        own[c] = beta(state, c, s)
    box = state.box[s]
    remove(state, kernel, s, d)
    if heir < 0:
        return
    k = np.float64(state.diagonal[heir])
    share = min(1.0, nearest / k)
    state.box[heir] += box
    row = state.cache.values[kernel_row(state.cache, kernel, state.store, heir, info.n, d)]
    for c in range(info.n_classes):
        step = share * own[c]
        if step != 0.0:
            gain = step * (state.gradient[c, heir] - 0.5 * step * k)
            info.dual += gain
            info.lost -= gain
            add_scaled(state.gradient[c], row, -step, info.n)
            set_beta(state, c, heir, beta(state, c, heir) + step)


@compiled
def _remove_none(bounds, state, kernel, number, d):
    pass


@compiled
def remove_older(state, kernel, oldest, d):
    """Remove examples with a number of at most `oldest`."""
    j = 0
    while j < state.info[0].n_alive:
        s = state.alive[j]
        if state.store.entered[s] <= oldest:
            remove(state, kernel, s, d)
        else:
            j += 1


@compiled
def _remove_old(bounds, state, kernel, number, d):
    remove_older(state, kernel, number - bounds.size, d)


@compiled
def _make_room(bounds, state, kernel, number, d):
    info = state.info[0]
    if bounds.window > 0.0:
        remove_older(state, kernel, number - bounds.window, d)
    while info.n_alive > bounds.limit:
        least, size = state.alive[0], np.inf
        for j in range(info.n_alive):
            s = state.alive[j]
            norm = 0.0
            for c in range(info.n_classes):
                norm += beta(state, c, s) ** 2
            norm *= np.float64(state.diagonal[s])
            # The newest one stays: it has just been learnt.
            if norm < size and state.store.entered[s] != number:
                least, size = s, norm
        hand_over(state, kernel, least, d)


stay_within: Any = chosen_by(0, {Unbounded: _remove_none, Window: _remove_old, Budget: _make_room})
"""stay_within(bounds, state, kernel, number, d): remove examples that left the window when example
`number` came, and the least ones beyond the limit (`hand_over`, whatever the policy)."""
