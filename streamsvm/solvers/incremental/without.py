"""What the solution would be without one example: exactly, or as far as no other changes sides.

While the margin set M does not change, taking c back moves f(x_c) by gamma_c beta_c, with
gamma_c = 1 / (Q^-1)_cc of a member, and of others as in `path`; the dual falls by
beta_c h_c + gamma_c beta_c^2 / 2. (The first is the span estimate of Vapnik and Chapelle, 2000.)
"""

from __future__ import annotations

import numpy as np

from streamsvm.solvers.incremental import margin
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.solvers.incremental.state import MARGIN

_CHANGED = ("beta", "h", "kind", "place", "members", "inverse", "info")


def sensitivity(problem: ExactProblem, s: int) -> float:
    """Return gamma of a slot with a coefficient; NaN if it is the only member of the margin set."""
    state = problem.state
    if state.kind[s] == MARGIN:
        place = state.place[s] + 1
        return 1.0 / state.inverse[place, place] if state.info[0].m > 1 else np.nan
    if state.info[0].m == 0:
        return np.nan
    problem.have_rows([s])
    gamma, _ = margin.sensitivities(state, s, state.rows[state.row_of[s]])
    return max(0.0, float(gamma))


def decision_without(problem: ExactProblem, s: int) -> float:
    """Return f(x_s) of the exact solution without the example of slot s; nothing is changed."""
    state = problem.state
    if state.beta[s] == 0.0:
        return float(state.target[s] - state.h[s])
    before = [getattr(state, name).copy() for name in _CHANGED]
    counts = problem.n_changes
    try:
        problem.release(s)
        return float(problem.state.target[s] - problem.state.h[s])
    finally:
        problem.put_back(dict(zip(_CHANGED, before, strict=True)), counts)


def decisions_without(problem: ExactProblem, exact: bool = True) -> np.ndarray:
    """Return f(x_s), float64 (n,), of each example, of the solution without it."""
    problem.settle()
    state, n = problem.state, problem.n
    found = state.target[:n] - state.h[:n]
    for s in np.flatnonzero(state.beta[:n]).tolist():
        gamma = np.nan if exact else sensitivity(problem, s)
        if gamma == gamma:
            found[s] -= gamma * state.beta[s]
        else:
            found[s] = decision_without(problem, s)
    return found
