"""What users and monitors ask of LASVM of two classes: `lasvm_pairs.inspection` has the same names.

It is measured now and then: NumPy is fast enough, and takes no seconds to compile.
"""

from __future__ import annotations

import numpy as np

from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.lasvm.gap import NONE_OUTSIDE, Outside, lasvm_gap
from streamsvm.solvers.lasvm.state import LASVMState


def coefficients(state: LASVMState) -> np.ndarray:
    """Return the coefficients of all slots in use, float64 (n,)."""
    return state.alpha[: int(state.info[0].n)]


def n_support_vectors(state: LASVMState) -> int:
    """Return the number of examples with a nonzero coefficient."""
    return int(np.count_nonzero(state.alpha))


def at_bound(state: LASVMState) -> np.ndarray:
    """Tell of each support vector whether its coefficient is at its bound C_i."""
    is_at_bound = (state.alpha == state.lower) | (state.alpha == state.upper)
    return is_at_bound[state.alpha != 0.0]


def dual(state: LASVMState) -> float:
    """Return the value of the dual objective."""
    return float(state.info[0].dual)


def squared_norm(state: LASVMState) -> float:
    """Return the square of |w|."""
    return max(0.0, 2.0 * (float(np.abs(state.alpha).sum()) - dual(state)))


def biases(state: LASVMState) -> list[float]:
    """Return the bias b: of one problem."""
    info = state.info[0]
    if info.i >= 0 and info.j >= 0:
        return [float(0.5 * (info.g_max + info.g_min))]
    return [float(info.g_max if info.i >= 0 else info.g_min if info.j >= 0 else 0.0)]


def delta(state: LASVMState) -> float:
    """Return g_max - g_min; 0 without a pair."""
    info = state.info[0]
    return float(info.g_max - info.g_min) if info.i >= 0 and info.j >= 0 else 0.0


def kept_gap(state: LASVMState, outside: Outside = NONE_OUTSIDE) -> KeptGap:
    """Return the gap on the examples kept, at the b that is best for those `outside`, too."""
    return lasvm_gap(state, biases(state)[0], outside)
