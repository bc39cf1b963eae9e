"""What the solution would be without one example: exactly, or as far as no other changes sides.

While the margin set M does not change, taking c back moves f(x_c) by gamma_c beta_c, with
gamma_c = 1 / (Q^-1)_cc of a member, and of others as in `path`; the dual falls by
beta_c h_c + gamma_c beta_c^2 / 2. (The first is the span estimate of Vapnik and Chapelle, 2000.)
"""

from __future__ import annotations

import numpy as np

from streamsvm.solvers.incremental import margin
from streamsvm.solvers.incremental.exact import ExactProblem

_CHANGED = ("beta", "low", "high", "target", "h", "kind", "place", "members", "inverse", "info")


def sensitivity(problem: ExactProblem, s: int) -> float:
    """Return gamma of a slot with a coefficient.

    Without others on the margin b alone would change: then it is what the exact solution tells.
    """
    state = problem.state
    place = state.place[s] + 1
    if state.info[0].m <= min(place, 1):
        f, beta = float(state.target[s] - state.h[s]), float(state.beta[s])
        return (f - decision_without(problem, s)) / beta
    if place:
        return float(1.0 / state.inverse[place, place])
    problem.have_rows([s])
    gamma, _ = margin.sensitivities(
        state, float(state.diagonal[s]), 1.0, state.rows[state.row_of[s]]
    )
    return max(0.0, float(gamma))


def decision_without(problem: ExactProblem, s: int) -> float:
    """Return f(x_s) of the exact solution without the example of slot s; nothing is changed."""
    state = problem.state
    if state.beta[s] == 0.0:
        return float(state.target[s] - state.h[s])
    before = [getattr(state, name).copy() for name in _CHANGED]
    try:
        problem.release(s)
        return float(problem.state.target[s] - problem.state.h[s])
    finally:
        problem.put_back(dict(zip(_CHANGED, before, strict=True)))


def decisions_without(problem: ExactProblem, exact: bool = True) -> np.ndarray:
    """Return f(x_s), float64 (n,), of each example, of the solution without it."""
    problem.settle()
    state, n = problem.state, problem.n
    # A copy, as the arrays may be replaced by larger ones.
    found, beta = state.target[:n] - state.h[:n], state.beta[:n].copy()
    for s in np.flatnonzero(beta).tolist():
        if exact:
            found[s] = decision_without(problem, s)
        else:
            found[s] -= sensitivity(problem, s) * beta[s]
    return found
