"""The measured duality gap of LASVM, on the examples kept.

With a bias, for any b (sum_s alpha_s = 0)::

    gap(b) = sum_s [ C_s max(0, y_s (g_s - b)) - alpha_s (g_s - b) ]

which is convex and piecewise linear in b; the least is at one of the g_s between g_min and g_max.
It is measured now and then, over a few thousand examples: NumPy is fast enough, and takes no
seconds to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.lasvm.state import bias


def best_bias(state: Any) -> float:
    """Return the b at which the gap of a LASVM state is least.

    Parameters
    ----------
    state
        A `LasvmState`.

    Returns
    -------
    float
        The b; the middle of the interval of the bias if that is empty.

    """
    info = state.info[0]
    if info.i < 0 or info.j < 0 or info.g_max <= info.g_min:
        return float(bias(state))
    n = int(info.n)
    box, g = state.upper[:n] - state.lower[:n], state.gradient[:n]
    is_positive = state.y[:n] > 0.0
    between = (g > info.g_min) & (g <= info.g_max) & (box != 0.0)
    # The slope just right of g_min: C of the negatives up to there, less C of the positives above.
    first = box[(g <= info.g_min) & ~is_positive].sum() - box[(g > info.g_min) & is_positive].sum()
    order = np.argsort(g[between])
    # Passing any g raises the slope by its C, whichever its label.
    slopes = first + np.cumsum(box[between][order])
    passed = g[between][order][: 1 + int(np.searchsorted(slopes, 0.0))]
    return float(passed[-1]) if first < 0.0 and len(passed) else float(info.g_min)


def lasvm_gap(state: Any, own_bias: float) -> KeptGap:
    """Return the gap at the best b.

    Parameters
    ----------
    state
        A `LasvmState`.
    own_bias
        The bias of its margins.

    Returns
    -------
    KeptGap
        The gap, and by how much the best b differs from `own_bias`.

    """
    n, b = int(state.info[0].n), best_bias(state)
    box, g = state.upper[:n] - state.lower[:n], state.gradient[:n] - b
    hinge = box @ np.maximum(0.0, state.y[:n] * g)
    return KeptGap(float(hinge - state.alpha[:n] @ g), float(box.sum()), b - own_bias)
