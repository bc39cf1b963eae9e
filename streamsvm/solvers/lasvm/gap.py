"""The measured duality gap of LASVM, on the examples kept.

With a bias, for any b (sum_s alpha_s = 0)::

    gap(b) = sum_s [ C_s max(0, y_s (g_s - b)) - alpha_s (g_s - b) ]

which is convex and piecewise linear in b; its minimum is at one of the g_s between g_min and g_max.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.lasvm.state import bias


@compiled
def _hinge_at(state, b):
    """Return sum_s C_s max(0, y_s (g_s - b)) and sum_s C_s."""
    hinge, boxes = 0.0, 0.0
    for s in range(state.info[0].n):
        box = state.upper[s] - state.lower[s]
        hinge += box * max(0.0, state.y[s] * (state.gradient[s] - b))
        boxes += box
    return hinge, boxes


@compiled
def best_bias(state):
    """Return the b for which the gap of a LASVM state is smallest."""
    info = state.info[0]
    if info.i < 0 or info.j < 0 or info.g_max <= info.g_min:
        return bias(state)
    # The slope just right of b: C of the negatives below, less C of the positives above.
    slope, n_between = 0.0, 0
    between = np.empty(info.n)
    boxes = np.empty(info.n)
    for s in range(info.n):
        box = state.upper[s] - state.lower[s]
        if box == 0.0:
            continue
        g = state.gradient[s]
        if g > info.g_max:
            slope -= box if state.y[s] > 0.0 else 0.0
        elif g <= info.g_min:
            slope += box if state.y[s] < 0.0 else 0.0
        else:
            between[n_between], boxes[n_between] = g, box
            n_between += 1
            slope -= box if state.y[s] > 0.0 else 0.0
    b = info.g_min
    # The slope rises by C_s at g_s, for both labels.
    order = np.argsort(between[:n_between])
    for p in range(n_between):
        if slope >= 0.0:
            break
        b = between[order[p]]
        slope += boxes[order[p]]
    return b


@compiled
def _lasvm(state):
    b = best_bias(state)
    hinge, boxes = _hinge_at(state, b)
    pull = 0.0
    for s in range(state.info[0].n):
        pull += state.alpha[s] * (state.gradient[s] - b)
    return hinge - pull, boxes, b


def lasvm_gap(state, own_bias: float) -> KeptGap:
    """Return the gap of a LASVM state at the best b; `own_bias` is the b of its margins."""
    total, box, b = _lasvm(state)
    return KeptGap(total, box, b - own_bias)
