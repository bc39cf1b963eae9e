"""The functions of LaRank that learn and predict one event."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.solvers.larank import step
from streamsvm.solvers.larank.state import LaRankState
from streamsvm.solvers.registry import call_learn_rows, register_solver
from streamsvm.support.fresh_block import reuse_values
from streamsvm.support.kernel_diagonal import diagonal_of_event


@compiled
def _margins(state, kernel, schedule, x, out):
    step.margins_of(state, kernel, x, out)
    # The scratch now has the kernel values of this row.
    state.info[0].ready = state.info[0].n


@compiled
def _learn(state, kernel, schedule, spare, x, is_last, y, box, weight, numbers, margins, solver):
    diagonal = diagonal_of_event(kernel, spare, x)
    if np.isnan(diagonal[0]):
        return 0
    reuse_values(state.info[0], is_last)
    return call_learn_rows(
        solver, state, kernel, x, y, box, weight, numbers, diagonal, schedule, margins
    )


register_solver(LaRankState, _learn, _margins, step.learn_rows)
