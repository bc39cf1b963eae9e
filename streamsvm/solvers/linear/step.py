"""One event through SGD or SGD-QN."""

from __future__ import annotations

from typing import NamedTuple

from streamsvm._compile import compiled
from streamsvm.solvers.linear import sgd, sgdqn
from streamsvm.solvers.linear.state import LinearState, margins_of
from streamsvm.solvers.registry import register_solver


class Step(NamedTuple):
    """Which step is made, in the place of a kernel."""

    is_sgdqn: float  # 0: SGD, 1: SGD-QN


@compiled
def _margins(state, step, schedule, x, out):
    margins_of(state, x, schedule, out)


@compiled
def _learn(state, step, schedule, spare, x, is_last, y, cost, weight, numbers, margins, solver):
    if step.is_sgdqn > 0.0:
        sgdqn.learn_rows(state, x, y, cost, schedule, margins)
    else:
        sgd.learn_rows(state, x, y, cost, schedule, margins)
    return 1


register_solver(LinearState, _learn, _margins)
