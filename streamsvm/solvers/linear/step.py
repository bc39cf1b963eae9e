"""One event, or rows, through SGD or SGD-QN."""

from __future__ import annotations

from typing import NamedTuple

from streamsvm._compile import borrowed, compiled, compiled_inner, compiled_within
from streamsvm.solvers.linear import sgd, sgdqn
from streamsvm.solvers.linear.state import LinearState, margins_of, sign_of
from streamsvm.solvers.registry import register_solver
from streamsvm.support.rows import count


class Step(NamedTuple):
    """Which step is made, in the place of a kernel."""

    is_sgdqn: float  # 0: SGD, 1: SGD-QN


SGD, SGDQN = Step(0.0), Step(1.0)


@compiled_within
def learn_row(state, step, x, r, o, y, weight, schedule):
    """Learn row r for one output; return its margin from before: see `sgd.learn_row`."""
    if step.is_sgdqn > 0.0:
        return sgdqn.learn_row(state, x, r, o, y, weight, schedule)
    return sgd.learn_row(state, x, r, o, y, weight, schedule)


@compiled
def learn_rows(state, step, x, y, weight, schedule, margins):
    """Learn rows one after the other, for all outputs.

    x: float32 (n, d), finite, or `SparseRows`; y: float64 (n,), numbers of classes; weight: float64
    (n,), at least 0; margins: float64 (n, outputs), written: f from before.
    """
    state, x = borrowed(state), borrowed(x)
    outputs = state.info.shape[0]
    for r in range(count(x)):
        for o in range(outputs):
            side = sign_of(y[r], o, outputs)
            margins[r, o] = learn_row(state, step, x, r, o, side, weight[r], schedule)


@compiled_inner
def _margins(state, step, schedule, x, out):
    margins_of(state, x, schedule, out)


@compiled_inner
def _learn(state, step, schedule, spare, x, is_last, y, cost, weight, numbers, margins, solver):
    learn_rows(state, step, x, y, cost, schedule, margins)
    return 1


register_solver(LinearState, _learn, _margins)
