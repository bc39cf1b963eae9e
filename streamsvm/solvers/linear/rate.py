"""The rate of a linear learner, chosen by passes over some examples (thesis 2010, 3.2.3).

The 10 % rule: of several t0 that one whose pass gives the lowest primal objective. All passes are
made in one call, as getting into compiled code costs more than the pass over a few examples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_inner
from streamsvm.solvers.linear.state import LinearState, Schedule, cleared, primal
from streamsvm.solvers.linear.step import Step, learn_rows
from streamsvm.support.assigning import assign
from streamsvm.support.rows import count

SLOWEST, FASTEST = -12, 3
"""Steps that are tried: of step k the rate is 2^k over the mean of ||x||^2."""

COST, STEP, T0 = range(3)

_FEW, _MANY = 8, 256


class Search(NamedTuple):
    """What passes are made of, and the best of them so far."""

    solver: Step
    second: float  # where the second part of the weights begins, if there is one
    x: Any  # n rows: float32 (n, d), finite, or `SparseRows`
    y: np.ndarray  # float64 (n,): numbers of classes
    weight: np.ndarray  # float64 (n,), at least 0
    schedule: Schedule  # but for its t0
    square: float  # the mean of ||x||^2, above 0
    margins: np.ndarray  # float64 (n, outputs), written over
    trial: LinearState  # written over
    found: LinearState  # that of the best pass
    best: np.ndarray  # float64 (3,): its objective, step and t0; at first the former are infinite


@compiled_inner
def _improves(search, step):
    """Pass over the rows from nothing, and keep what became of it if it is the best so far."""
    own, best = search.schedule, search.best
    t0 = max(1.0, search.square / (2.0**step * own.lam))
    own = Schedule(
        own.loss, own.lam, t0, own.power, own.skip, own.averaged, own.choose, own.bias_rate
    )
    x, y, weight, trial = search.x, search.y, search.weight, search.trial
    cleared(trial, search.second)
    learn_rows(trial, search.solver, x, y, weight, own, search.margins)
    cost = primal(trial, x, y, weight, own)
    if not np.isfinite(cost):
        cost = np.inf
    # Of equals the slower rate.
    if cost > best[COST] or (cost == best[COST] and step > best[STEP]):
        return False
    best[COST], best[STEP], best[T0] = cost, step, t0
    for o in range(trial.info.shape[0]):
        assign(search.found.info[o], trial.info[o])
        for part in range(trial.weights.shape[1]):
            assign(search.found.weights[o, part], trial.weights[o, part])
    return True


@compiled
def choose_rate(search, last):
    """Find the best pass, beside the step that was chosen before: its numbers are in the search.

    Every other step is tried, then those beside the best of these; of more than 256 examples those
    beside the last choice, and on from there while the objective falls.
    """
    n, best = count(search.x), search.best
    if n < _FEW:
        _improves(search, 0)
        return
    if n <= _MANY:
        for step in range(SLOWEST, FASTEST + 1, 2):
            _improves(search, step)
    else:
        _improves(search, min(max(last, SLOWEST), FASTEST))
    middle = int(best[STEP])
    for side in (-1, 1):
        step = middle + side
        goes_on = n <= _MANY or best[STEP] == middle
        while goes_on and SLOWEST <= step <= FASTEST:
            goes_on = _improves(search, step) and n > _MANY
            step += side
