"""Changes of the boxes of a LASVM state: new class weights, and exchanged classes."""

from __future__ import annotations

from streamsvm._compile import borrowed, compiled, compiled_inner
from streamsvm.solvers.lasvm.state import rebuild
from streamsvm.support.looks import note_cost


@compiled_inner
def set_cost(state, s, cost):
    """Set the box of an example, and clip its coefficient."""
    note_cost(state.info[0], cost)
    state.upper[s] = cost if state.y[s] > 0.0 else 0.0
    state.lower[s] = -cost if state.y[s] < 0.0 else 0.0
    state.alpha[s] = min(state.upper[s], max(state.lower[s], state.alpha[s]))


@compiled_inner
def restore_sum(state, rising, falling):
    """Scale down the coefficients of the sign with the larger sum: the sum of all is 0 again."""
    for s in range(state.info[0].n):
        if state.alpha[s] > 0.0 and rising > falling:
            state.alpha[s] *= falling / rising
        elif state.alpha[s] < 0.0 and falling > rising:
            state.alpha[s] *= rising / falling


@compiled
def set_costs(state, kernel, c_negative, c_positive, d):
    """Set C_s of every example kept to C_y times its weight; return whether any has changed.

    Coefficients outside their new box are clipped. To restore sum_s alpha_s = 0, the coefficients
    of the class with the larger sum are then scaled down, which keeps them inside their boxes.
    Gradients are recomputed.
    """
    state, kernel = borrowed((state, kernel))
    changed = False
    rising, falling = 0.0, 0.0
    for s in range(state.info[0].n):
        if state.lower[s] == state.upper[s]:
            continue
        c = c_positive if state.y[s] > 0.0 else c_negative
        cost = c * state.store.weight[s]
        old = state.upper[s] - state.lower[s]
        changed |= abs(cost - old) > 1e-9 * old
        set_cost(state, s, cost)
        rising += max(0.0, state.alpha[s])
        falling -= min(0.0, state.alpha[s])
    if not changed:
        return False
    restore_sum(state, rising, falling)
    rebuild(state, kernel, d)
    return True
