"""The perceptron (Rosenblatt 1958; thesis 2010, Algorithm 2) in the primal, with a bias.

Given examples (x, y), y = +1 or -1, with weights c: if y (<w, x> + b) <= 0, then w += c y x and
b += c y.
"""

from __future__ import annotations

from streamsvm._compile import compiled, compiled_inner
from streamsvm.solvers.linear.state import add, dot
from streamsvm.solvers.registry import register_solver, side_of
from streamsvm.support.rows import count
from tests.new_learner.perceptron.state import BIAS, N_UPDATES, PerceptronState


@compiled
def learn_rows(state, x, y, weight, margins):
    """Learn rows one after the other.

    Parameters
    ----------
    state
        A `PerceptronState`.
    x
        n rows: float32 (n, d), finite, or `SparseRows`.
    y, weight
        float64 (n,): the numbers of the classes, 0 or 1; the example weights.
    margins
        float64 (n,), written: from before each row was learnt.

    """
    for r in range(count(x)):
        margins[r] = dot(state.weights, x, r) + state.info[BIAS]
        side = side_of(y[r])
        if weight[r] > 0.0 and side * margins[r] <= 0.0:
            add(state.weights, x, r, weight[r] * side)
            state.info[BIAS] += weight[r] * side
            state.info[N_UPDATES] += 1.0


@compiled
def margins_of(state, x, out):
    """Write the margins of rows x into out, float64 (n,)."""
    for r in range(count(x)):
        out[r] = dot(state.weights, x, r) + state.info[BIAS]


@compiled_inner
def _learn(state, kernel, schedule, spare, x, is_last, y, cost, weight, numbers, margins, solver):
    learn_rows(state, x, y, cost, margins[0])
    return 1


@compiled_inner
def _margins(state, kernel, schedule, x, out):
    margins_of(state, x, out[0])


register_solver(PerceptronState, _learn, _margins)
