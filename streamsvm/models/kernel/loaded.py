"""What a model file holds, but can be computed: checked on loading, and computed again if wrong.

Solvers rely on it: with a wrong k(x, x) or gradient their steps may lead away from the optimum, and
never end.
"""

from __future__ import annotations

import numpy as np

from streamsvm.models.kernel.kernel_solver import KernelSolver
from streamsvm.support import states
from streamsvm.support.rows import taken

_SAMPLE = 64
"""Number of examples whose gradients are computed: a file of many is read in the same time."""

_MOST_SUMMED = 4096
"""Sums over all pairs of examples are computed again for so many at most: it is 0.2 s of work."""


def mend_gradients(solver: KernelSolver, d: int) -> None:
    """Compare sums and gradients of a solver with the rows; if they differ, compute all anew."""
    n = states.n_slots(solver.state)
    sums = solver.sums()
    if sums:
        if n <= _MOST_SUMMED:
            _mend_sums(solver, sums, d)
        return
    x, coefficients, entered = solver.expansion(d)
    live = np.flatnonzero(entered)
    at = live[:: max(1, len(live) // _SAMPLE)]
    if not solver.mend_gradients(x, taken(x, at), at, coefficients):
        solver.rebuild(d)


def _mend_sums(solver: KernelSolver, sums: list[tuple[np.ndarray, float]], n_features: int) -> None:
    """Compute sums of kernel values again, and keep them only where the file's are wrong."""
    state = solver.state
    arrays = [array for array in state if isinstance(array, np.ndarray)]
    before = [array.copy() for array in arrays]
    sums = [(np.array(values), most) for values, most in sums]
    solver.rebuild(n_features)
    largest = 1.0 + float(state.diagonal.max(initial=0.0))
    pairs = zip(sums, solver.sums(), strict=True)
    if all(
        (np.abs(new - old) <= 1e-5 * (1.0 + most) * largest).all()
        for (old, most), (new, _) in pairs
    ):
        # Not one bit is changed: the model goes on as the one that was saved.
        for array, values in zip(arrays, before, strict=True):
            array[...] = values


def are_extremes(info: np.ndarray, gradient: np.ndarray) -> bool:
    """Tell whether g_max and g_min are the gradients of their slots."""
    i, j, g_max, g_min = (info[name][0] for name in ("i", "j", "g_max", "g_min"))
    is_most = g_max == (gradient[i] if i >= 0 else -np.inf)
    return bool(is_most and g_min == (gradient[j] if j >= 0 else np.inf))


def is_close(
    wanted: np.ndarray, given: np.ndarray, alpha: np.ndarray, diagonal: np.ndarray
) -> bool:
    """Tell whether gradients differ by rounding only, of sums of alpha_s k(x_s, x) step by step."""
    largest = np.abs(alpha).sum() * max(1.0, float(diagonal.max(initial=0.0)))
    return bool((np.abs(wanted - given) <= 1e-5 * (1.0 + largest)).all())
