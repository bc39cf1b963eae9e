"""The measured duality gap of LASVM: on the examples kept, and on others beside them.

With a bias, for any b (sum_s alpha_s = 0)::

    gap(b) = sum_s [ C_s max(0, y_s (g_s - b)) - alpha_s (g_s - b) ]

which is convex and piecewise linear in b; the least is at one of the g_s. An example that was left
out has alpha_s = 0. It is measured now and then, over a few thousand examples: NumPy is fast
enough, and takes no seconds to compile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.solvers.gap import KeptGap


class Outside(NamedTuple):
    """Examples that are not kept, and count for the best bias as well."""

    signs: np.ndarray  # float64 (n,): -1 or +1
    margins: np.ndarray  # float64 (n,): f with the model's own bias
    costs: np.ndarray  # float64 (n,): C_i, times the number of examples that each stands for


NONE_OUTSIDE = Outside(*(np.zeros(0) for _ in range(3)))


def lasvm_gap(state: Any, own_bias: float, outside: Outside = NONE_OUTSIDE) -> KeptGap:
    """Return the gap at the best b, and by how much that differs from `own_bias`, of the margins.

    b is the best for examples `outside`, too; their losses are not in the gap.
    """
    n = int(state.info[0].n)
    cost, g, y = state.upper[:n] - state.lower[:n], state.gradient[:n], state.y[:n]
    b = _best_bias(
        np.append(g, outside.signs - outside.margins + own_bias),
        np.append(y, outside.signs),
        np.append(cost, outside.costs),
    )
    b = own_bias if b is None else b
    hinge = cost @ np.maximum(0.0, y * (g - b))
    return KeptGap(float(hinge - state.alpha[:n] @ (g - b)), float(cost.sum()), b - own_bias)


def _best_bias(g: np.ndarray, y: np.ndarray, cost: np.ndarray) -> float | None:
    """Return the b that minimises sum cost max(0, y (g - b)); None: all b are as good."""
    of_positives = cost[y > 0.0].sum()
    if not 0.0 < of_positives < cost.sum():
        return None
    order = np.argsort(g)
    # Passing any g raises the slope by its C, whichever its label.
    slopes = np.cumsum(cost[order]) - of_positives
    return float(g[order[int(np.searchsorted(slopes, 0.0))]])
