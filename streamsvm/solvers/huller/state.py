"""The state of the Huller: two points, each a convex combination of vectors of a class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_leaf
from streamsvm.support.active_set import ACTIVE, ActiveSet
from streamsvm.support.declaration import DRAWS, NOT_NEGATIVE, Range, Record, field
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import FreshBlock, values_of_slot
from streamsvm.support.kernel_rows.row_cache import RowCache
from streamsvm.support.states import BLOCK_SCRATCH, CACHE, STORE, declare
from streamsvm.support.stores import Store

INFO = np.dtype(
    [
        ("n_positive", np.int64),  # examples of the positive class so far
        ("n_negative", np.int64),  # examples of the negative class so far
        ("n_steps", np.int64),  # updates that changed a coefficient
        ("n_null", np.int64),  # updates that did not
        ("n_values", np.int64),  # kernel values computed for fresh examples
        ("last_number", np.int64),  # largest number of an example so far
        ("pp", np.float64),  # |X_P|^2
        ("pn", np.float64),  # <X_P, X_N>
        ("nn", np.float64),  # |X_N|^2
        ("ready", np.int64),  # n or -n: the scratch has the kernel values of rows with n slots
    ]
)


class HullerState(NamedTuple):
    """The arrays of the Huller; a slot is a position in arrays of length `capacity`."""

    store: Store = STORE
    cache: RowCache = CACHE
    active: ActiveSet = ACTIVE
    block: FreshBlock = BLOCK_SCRATCH
    # Coefficients of X_P, and minus those of X_N; 0 in free slots.
    alpha: np.ndarray = field("slots", range=Range(-1.5, 1.5))
    diagonal: np.ndarray = field("slots", dtype=np.float32, range=NOT_NEGATIVE)  # k(x_s, x_s)
    draws: np.ndarray = DRAWS  # state of the random generator, see `support.draws`
    info: Any = Record(INFO, reset=("ready",))


declare(HullerState)


@compiled_leaf
def products(alpha, row, n):
    """Return <x, X_P> and <x, X_N> of the example with these kernel values."""
    difference, total = 0.0, 0.0
    for s in range(n):
        k = np.float64(row[s])
        difference += alpha[s] * k
        total += abs(alpha[s]) * k
    return 0.5 * (total + difference), 0.5 * (total - difference)


@compiled
def squared_distance(state):
    """Return |X_P - X_N|^2; rounding may make it negative."""
    info = state.info[0]
    return info.pp + info.nn - 2.0 * info.pn


@compiled
def scale_of(state):
    """Return the factor of f at which support vectors of the optimum have the margin 1.

    Where the hulls meet, the distance is 0 but for rounding, and the sign of f is all there is.
    """
    info = state.info[0]
    least = 1e-9 * (info.pp + info.nn) + 1e-300
    return 2.0 / max(squared_distance(state), least)


@compiled
def margin_of(state, p, q):
    """Return the margin, scaled (4.5), from <x, X_P> and <x, X_N>; of one class only, its sign."""
    info = state.info[0]
    if info.n_positive == 0 or info.n_negative == 0:
        return np.sign(np.float64(info.n_positive - info.n_negative))
    return scale_of(state) * (p - q + 0.5 * (info.nn - info.pp))


@compiled
def rebuild(state, kernel, d):
    """Recompute diagonal and scalars after a change of the kernel."""
    state, kernel = borrowed((state, kernel))
    n, info = state.active.counts[0].n, state.info[0]
    row_cache.clear(state.cache, n)
    info.pp = info.pn = info.nn = 0.0
    for s in range(n):
        if state.alpha[s] == 0.0:
            continue
        row = values_of_slot(state, kernel, s, n, d)
        p, q = products(state.alpha, row, n)
        state.diagonal[s] = row[s]
        if state.alpha[s] > 0.0:
            info.pp += state.alpha[s] * p
            info.pn += state.alpha[s] * q
        else:
            info.nn -= state.alpha[s] * q
