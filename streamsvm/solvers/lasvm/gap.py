"""The measured duality gap of LASVM, on the examples kept.

With a bias b (sum_s alpha_s = 0)::

    gap(b) = sum_s [ C_s max(0, y_s (g_s - b)) - alpha_s (g_s - b) ]

at the b by which the model predicts. Some other b may be better, but it is not the model's. It is
measured now and then: NumPy is fast enough, and takes no seconds to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.solvers.gap import KeptGap


def lasvm_gap(state: Any, b: float) -> KeptGap:
    """Return the gap of a model with the bias b."""
    n = int(state.info[0].n)
    cost, g, y = state.upper[:n] - state.lower[:n], state.gradient[:n] - b, state.y[:n]
    return KeptGap(float(cost @ np.maximum(0.0, y * g) - state.alpha[:n] @ g), float(cost.sum()))
