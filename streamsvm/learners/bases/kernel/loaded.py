"""What a model file holds, but can be computed: checked on loading, and computed again if wrong.

Solvers rely on it: with a wrong k(x, x) or gradient their steps may lead away from the optimum, and
never end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.errors import FeatureError
from streamsvm.solvers.bounds import REMOVE
from streamsvm.solvers.huller.state import HullerState
from streamsvm.solvers.larank.state import LaRankState
from streamsvm.solvers.lasvm.state import LASVMState, refresh_extremes
from streamsvm.solvers.lasvm_pairs import step as pairs
from streamsvm.solvers.lasvm_pairs.problems import members_of
from streamsvm.solvers.lasvm_pairs.state import PairsState
from streamsvm.solvers.perceptron.state import PerceptronState
from streamsvm.solvers.sbp.state import SBPState
from streamsvm.solvers.tracking import step as tracking
from streamsvm.solvers.tracking.linear import LinearTrackingState
from streamsvm.solvers.tracking.state import TrackingState
from streamsvm.support import states, stores
from streamsvm.support.rows import Rows, SparseRows, taken

_SAMPLE = 64
"""Number of examples whose gradients are computed: a file of many is read in the same time."""

_MOST_SUMMED = 4096
"""Sums over all pairs of examples are computed again for so many at most: it is 0.2 s of work."""


def mend_diagonal(learner: Any) -> None:
    """Compute k(x, x) of the examples kept, and replace those that are wrong.

    Raises
    ------
    ValueError
        The kernel cannot take a row.

    """
    state = learner.state
    if not hasattr(state, "diagonal"):
        return
    n = states.n_slots(state)
    live = np.flatnonzero(state.store.entered[:n])
    if not live.size:
        return
    try:
        own = learner.diagonal_of(taken(stores.rows_of(state.store, n, len(learner.schema)), live))
    except FeatureError as error:
        raise ValueError(str(error)) from error
    # Otherwise not one bit is changed: other releases may have computed in another order.
    wrong = ~np.isclose(state.diagonal[live], own, rtol=1e-4, atol=0.0)
    state.diagonal[live[wrong]] = own[wrong]


def mend_gradients(learner: Any) -> None:
    """Compare the gradients of some examples with their rows; if they differ, compute all anew."""
    state, kernel = learner.state, learner.bound_kernel(learner.state)
    if isinstance(state, LASVMState) and not _are_extremes(state.info, state.gradient):
        refresh_extremes(state)
    n = states.n_slots(state)
    if isinstance(state, LinearTrackingState):
        _mend_weights(state, stores.rows_of(state.store, n, len(learner.schema)))
    elif isinstance(state, HullerState | SBPState) or _keeps_responses(learner):
        if n <= _MOST_SUMMED:
            _mend_sums(learner, state)
    if not isinstance(state, LASVMState | PairsState | LaRankState | TrackingState) or n == 0:
        return
    x, coefficients, entered = learner.expansion()
    live = np.flatnonzero(entered)
    at = live[:: max(1, len(live) // _SAMPLE)]
    rows, out = taken(x, at), learner.targets.zeros(len(at))
    if isinstance(state, PairsState):
        is_right = _are_right(learner, state, rows, at)
    elif isinstance(state, TrackingState):
        tracking.margins_of(state, kernel, state.alpha, rows, out)
        is_right = _is_close(out, state.f[at], state.alpha, state.diagonal)
    else:
        learner.solver.write_margins(state, rows, out)
        if isinstance(state, LaRankState):
            k = int(state.info[0].n_classes)
            f, target = out[:, :k], np.arange(k) == state.y[at, None]
            is_right = _is_close(target - f, state.gradient[:k, at].T, coefficients, state.diagonal)
        else:
            f = out - learner.solver.biases[0]
            is_right = _is_close(state.y[at] - f, state.gradient[at], coefficients, state.diagonal)
    if not is_right:
        learner.solver.rebuild(len(learner.schema))


def _keeps_responses(learner: Any) -> bool:
    """Tell whether it is a perceptron that keeps f of its support vectors up to date."""
    is_perceptron = isinstance(learner.state, PerceptronState)
    return is_perceptron and getattr(learner.solver.schedule.bounds, "policy", None) == REMOVE


def _mend_weights(state: LinearTrackingState, rows: Rows) -> None:
    """Compute w from the examples kept, and replace it if it differs by more than rounding."""
    n = len(rows.start) - 1 if isinstance(rows, SparseRows) else len(rows)
    wanted: np.ndarray
    size: np.ndarray
    for w, coefficients in ((state.w, state.alpha[:n]), (state.w_average, state.average[:n])):
        if isinstance(rows, SparseRows):
            terms = rows.values * np.repeat(coefficients, np.diff(rows.start))
            wanted = np.bincount(rows.columns, terms, w.size)
            size = np.bincount(rows.columns, np.abs(terms), w.size)
        else:
            wanted, size = np.zeros(w.size), np.zeros(w.size)
            wanted[: rows.shape[1]] = coefficients @ rows
            size[: rows.shape[1]] = np.abs(coefficients) @ np.abs(rows)
        # Of examples that have left the window a rounding error stays.
        if (np.abs(w - wanted) > 1e-5 * (1.0 + size.max(initial=0.0))).any():
            w[:] = wanted


def _mend_sums(learner: Any, state: Any) -> None:
    """Compute sums of kernel values again, and keep them only where the file's are wrong."""
    names = [name for name in state._fields if isinstance(getattr(state, name), np.ndarray)]
    before = {name: getattr(state, name).copy() for name in names}
    learner.solver.rebuild(len(learner.schema))
    largest = 1.0 + float(state.diagonal.max(initial=0.0))
    info, old = state.info[0], before["info"][0]
    if isinstance(state, HullerState):
        pairs = [(info[name], old[name], 1.0) for name in ("pp", "pn", "nn")]
    else:
        pairs = [(state.f, before["f"], np.abs(before["alpha"]).sum())]
    if isinstance(state, SBPState):
        pairs += [(state.late_f, before["late_f"], np.abs(before["late"]).sum())]
        pairs += [(info["square"], old["square"], 1.0)]
    if all((np.abs(a - b) <= 1e-5 * (1.0 + most) * largest).all() for a, b, most in pairs):
        # Not one bit is changed: the model goes on as the one that was saved.
        for name, values in before.items():
            getattr(state, name)[...] = values


def _are_right(learner: Any, state: PairsState, rows: Any, at: np.ndarray) -> bool:
    """Tell whether the gradients of some slots are right in all problems that they belong to."""
    of = state.problems
    members, owner = members_of(of), np.repeat(np.arange(len(of.table)), of.table["n"])
    if not all(
        _are_extremes(of.table[p : p + 1], of.gradient[start:])
        for p, start in enumerate(of.segments["start"].tolist())
    ):
        return False
    f = np.zeros((len(at), len(of.table)))
    pairs.problem_margins_of(state, learner.bound_kernel(state), rows, f)
    f -= np.array(learner.solver.biases)
    place = np.full(int(state.info[0].n), -1)
    place[at] = np.arange(len(at))
    asked = (place[of.slot[members]] >= 0) & (of.lower[members] != of.upper[members])
    members, owner = members[asked], owner[asked]
    wanted = of.y[members] - f[place[of.slot[members]], owner]
    return _is_close(wanted, of.gradient[members], of.alpha, state.diagonal)


def _are_extremes(info: Any, gradient: np.ndarray) -> bool:
    """Tell whether g_max and g_min are the gradients of their slots."""
    i, j, g_max, g_min = (info[name][0] for name in ("i", "j", "g_max", "g_min"))
    is_most = g_max == (gradient[i] if i >= 0 else -np.inf)
    return bool(is_most and g_min == (gradient[j] if j >= 0 else np.inf))


def _is_close(
    wanted: np.ndarray, given: np.ndarray, alpha: np.ndarray, diagonal: np.ndarray
) -> bool:
    """Tell whether gradients differ by rounding only, of sums of alpha_s k(x_s, x) step by step."""
    largest = np.abs(alpha).sum() * max(1.0, float(diagonal.max(initial=0.0)))
    return bool((np.abs(wanted - given) <= 1e-5 * (1.0 + largest)).all())
