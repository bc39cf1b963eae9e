"""The state of the perceptron family: its arrays, and the changes of single coefficients.

The model is f(x) = scale sum_s alpha_s k(x_s, x). The scale is 1, but for Pegasos, whose shrinking
at each example would otherwise change all coefficients. For the average of the models after each of
T examples see `support.averages`: the weight of each model is 1, so that A_t is t, if older ones
do not fade (`fade_average`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.support import stores
from streamsvm.support.declaration import DRAWS, NOT_NEGATIVE, Record, field
from streamsvm.support.kernel_rows import row_cache
from streamsvm.support.kernel_rows.fresh_block import FreshBlock, values_of_slot
from streamsvm.support.kernel_rows.kernel_values import expansion
from streamsvm.support.kernel_rows.row_cache import RowCache
from streamsvm.support.states import BLOCK_SCRATCH, CACHE, STORE, declare
from streamsvm.support.stores import Store

INFO = np.dtype(
    [
        ("n", np.int64),  # slots in use
        ("n_seen", np.int64),  # T: examples of a weight above 0
        ("n_steps", np.int64),  # examples that changed the model
        ("n_null", np.int64),  # examples that did not
        ("n_values", np.int64),  # kernel values computed for fresh examples
        ("n_room", np.int64),  # examples for which room was made
        ("last_number", np.int64),  # largest number of an example so far
        ("n_faded", np.int64),  # T - A_T, see `fade_average`
        ("sum_faded", np.float64),  # sum of t up to T, less that of each t times its model's weight
        ("ready", np.int64),  # n or -n: the scratch has the kernel values of rows with n slots
    ]
)

DEPENDENT = 1e-3
"""A row whose squared distance from the span is below this share of k(x, x) counts as within it:
the inverse of the kernel matrix loses digits with smaller ones."""


class PerceptronState(NamedTuple):
    """The arrays of the family; a slot is a position in all arrays of length `capacity`."""

    store: Store = STORE
    cache: RowCache = CACHE
    block: FreshBlock = BLOCK_SCRATCH
    alpha: np.ndarray = field("slots")  # signed coefficients, before the scale
    late: np.ndarray = field("slots")  # sum of (change of alpha) A_(t - 1)
    f: np.ndarray = field("slots")  # sum_t alpha_t k(x_t, x_s), up to date under REMOVE only
    diagonal: np.ndarray = field("slots", dtype=np.float32, range=NOT_NEGATIVE)  # k(x_s, x_s)
    # Of the kernel matrix of the slots, under PROJECT only.
    inverse: np.ndarray = field("basis", "basis")
    draws: np.ndarray = DRAWS  # state of the random generator, see `support.draws`
    info: Any = Record(INFO, reset=("ready",))


def _check_room(state: Any, sizes: dict[str, int]) -> None:
    """Raise ValueError if there are more support vectors than `inverse` has rows for."""
    if 0 < len(state.inverse) < state.info[0].n:
        raise ValueError("more slots than the inverse of the kernel matrix has rows")


declare(PerceptronState, _check_room)


@compiled_within
def change(state, s, delta):
    """Add `delta` to a coefficient, from the present example on."""
    state.alpha[s] += delta
    state.late[s] += delta * (state.info[0].n_seen - 1 - state.info[0].n_faded)


@compiled_inner
def fade_average(state):
    """Let all models so far count half in the average, compared with those to come."""
    info = state.info[0]
    T = info.n_seen - 1
    total = T - info.n_faded
    half = total // 2
    share = np.float64(half) / np.float64(total)
    for s in range(info.n):
        state.late[s] *= share
    info.n_faded = T - half
    all_t = 0.5 * np.float64(T) * (np.float64(T) + 1.0)
    info.sum_faded = all_t - share * (all_t - info.sum_faded)


@compiled_inner
def put(state, s, x, weight, number, diagonal):
    """Put an example with coefficient 0 into a slot; what was in it is overwritten."""
    stores.release(state.store, s)
    stores.put(state.store, s, x)
    state.store.entered[s], state.store.weight[s] = number, weight
    state.alpha[s] = state.late[s] = 0.0
    state.diagonal[s] = diagonal
    row_cache.free(state.cache, s)


@compiled_inner
def kernel_row_of(state, kernel, s, d):
    """Return the kernel values of a slot with all slots, float32; valid until the next call."""
    n = state.info[0].n
    return state.cache.values[row_cache.kernel_row(state.cache, kernel, state.store, s, n, d)]


@compiled_inner
def extend_inverse(state, solved, distance, m):
    """Add row and column m to the inverse of the kernel matrix of the first m slots.

    `solved`, float64 (>= m,), is the inverse times the kernel values of the new row, and `distance`
    its squared distance from the span of the others, above 0.
    """
    inverse = state.inverse
    for i in range(m):
        part = solved[i] / distance
        for j in range(m):
            inverse[i, j] += part * solved[j]
        inverse[i, m] = inverse[m, i] = -part
    inverse[m, m] = 1.0 / distance


@compiled_inner
def solve(state, row, diagonal, solved, n):
    """Write the coefficients of a row's projection on the first n slots; return its distance.

    row ~ sum_s solved_s x_s, float64 (>= n,); the distance is squared, and at least 0.
    """
    for s in range(n):
        solved[s] = expansion(state.inverse[s], row, n)
    return max(0.0, np.float64(diagonal) - expansion(solved, row, n))


@compiled
def rebuild(state, kernel, d):
    """Recompute what depends on the kernel, after its change; needed with a budget only.

    Vectors may depend on each other by the new kernel: the inverse is then that of a matrix with
    somewhat larger diagonal, and a projection on their span somewhat short.
    """
    state, kernel = borrowed((state, kernel))
    n = state.info[0].n
    row_cache.clear(state.cache, n)
    solved = np.zeros(n)
    for s in range(n):
        row = values_of_slot(state, kernel, s, n, d)
        state.diagonal[s] = row[s]
        state.f[s] = expansion(state.alpha, row, n)
        if state.inverse.shape[0] > 0:
            distance = solve(state, row, row[s], solved, s)
            extend_inverse(state, solved, max(distance, DEPENDENT * np.float64(row[s]) + 1e-30), s)
