"""Changes of an exact SVM as a whole: of costs, of the kernel; without some of the examples.

Along a line of the state (see `path`) targets or the coefficients of held slots change evenly, and
all others follow. An exact solution between two slots at bounds changes linearly with what changes
along it, so the steps are those where a slot joins or leaves the margin set. The costs of all are
multiplied by a factor so (Hastie, Rosset, Tibshirani, Zhu, The Entire Regularization Path for the
Support Vector Machine, JMLR 5, 2004): in units of the costs the bounds stay, and targets change.

The caller works on a copy: what interrupts a change leaves the problem as it is, in the middle.

What the solution would be without one example is told exactly, or as far as no other changes sides.
While the margin set M does not change, taking c back moves f(x_c) by gamma_c beta_c, with
gamma_c = 1 / (Q^-1)_cc of a member, and of others as in `path`; the dual falls by
beta_c h_c + gamma_c beta_c^2 / 2. (The first is the span estimate of Vapnik and Chapelle, 2000.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamsvm.solvers.incremental import margin
from streamsvm.solvers.incremental.exact import LINE, ExactProblem
from streamsvm.solvers.incremental.state import AT_HIGH, AT_LOW, MARGIN, PENDING

_MOST_FACTOR = 10.0
"""Costs change by at most this factor at once: errors of gradients are multiplied by it, too."""

_ALL_OF_A_SIZE = 1e-9


def set_costs(problem: ExactProblem, costs: np.ndarray) -> None:
    """Give all examples other costs, float64 (n,): if all change by one factor, along a line."""
    problem.settle()
    state, n = problem.state, problem.n
    factors = costs / (state.high[:n] - state.low[:n])
    if not n or np.ptp(factors) > _ALL_OF_A_SIZE * factors.max():
        problem.set_costs(np.arange(n), costs)
        return
    factor = float(np.median(factors))
    k = max(1, math.ceil(abs(math.log(factor, _MOST_FACTOR))))
    for _ in range(k if factor != 1.0 else 0):
        _scale_costs(problem, factor ** (1.0 / k))
    # Without the rounding errors of the factors.
    state = problem.state
    low, high = state.low[:n], state.high[:n]
    low[:], high[:] = np.where(low < 0.0, -costs, 0.0), np.where(high > 0.0, costs, 0.0)
    for kind, bound in ((AT_LOW, low), (AT_HIGH, high)):
        there = state.kind[:n] == kind
        state.beta[:n][there] = bound[there]
    np.clip(state.beta[:n], low, high, out=state.beta[:n])
    # Errors of cached gradients grew with the costs.
    problem.mend(np.inf)


def _scale_costs(problem: ExactProblem, factor: float) -> None:
    """Multiply the costs of all examples by a factor."""
    state, n = problem.state, problem.n
    info = state.info[0]
    change = 1.0 / factor - 1.0
    state.line[:n] = -change * state.target[:n]
    info.mass, info.left, info.scale, info.scale_rate = 0.0, 1.0, 1.0, change
    problem.follow(LINE, 0.0)
    # The arrays may be others now.
    state = problem.state
    info = state.info[0]
    info.scale, info.scale_rate = 1.0, 0.0
    for array in (state.beta, state.low, state.high, state.h):
        array[:n] *= factor
    info.b *= factor
    problem.mend(float(margin.refine(problem.state)))


def remove_many(problem: ExactProblem, slots: list[int]) -> None:
    """Take examples back together: their coefficients fall to 0 at the same time."""
    problem.settle()
    problem.balance(without=slots)
    state, n = problem.state, problem.n
    numbers = problem.facts["number"][slots].tolist()
    for s in slots:
        problem.hold(s)
    line = np.zeros(n)
    for s in np.array(slots)[state.beta[slots] != 0.0].tolist():
        line -= state.beta[s] * problem.kernel_row(s)
    state.line[:n] = line
    info = state.info[0]
    info.mass, info.left = -float(state.beta[slots].sum()), 1.0
    problem.follow(LINE, 0.0)
    problem.state.beta[slots] = 0.0
    for number in numbers:
        problem.drop(int(np.flatnonzero(problem.facts["number"][: problem.n] == number)[0]))
    problem.mend(float(margin.refine(problem.state)))


def set_kernel(problem: ExactProblem, kernel: Any, own: np.ndarray) -> None:
    """Solve the problem with another kernel, k(x, x) being `own`, from the coefficients it has."""
    problem.settle()
    problem.change_kernel(kernel, own)
    state, n = problem.state, problem.n
    state.h[:n] = problem.fresh_gradients()
    margin.note_tolerance(state)
    for s in range(n):
        if state.kind[s] == MARGIN or margin.excess(state, s) > state.info[0].near:
            state.kind[s] = PENDING
    for s in np.flatnonzero(state.kind[:n] == PENDING).tolist():
        problem.seek(s)
    problem.mend(float(margin.refine(problem.state)))


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
