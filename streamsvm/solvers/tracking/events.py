"""The functions of averaged tracking that learn and predict one event."""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.solvers.registry import call_learn_rows, register_solver
from streamsvm.solvers.tracking import linear, step
from streamsvm.solvers.tracking.linear import LinearTrackingState
from streamsvm.solvers.tracking.state import TrackingState
from streamsvm.support.fresh_block import reuse_values
from streamsvm.support.kernel_diagonal import diagonal_of_event


@compiled
def _margins(state, kernel, schedule, x, out):
    coefficients = state.average if schedule.averaged > 0.0 else state.alpha
    step.margins_of(state, kernel, coefficients, x, out[0])
    # The scratch now has the kernel values of this row.
    state.info[0].ready = state.active.counts[0].n


@compiled
def _learn(state, kernel, schedule, spare, x, is_last, y, box, weight, numbers, margins, solver):
    diagonal = diagonal_of_event(kernel, spare, x)
    if np.isnan(diagonal[0]):
        return 0
    reuse_values(state.info[0], is_last)
    return call_learn_rows(
        solver, state, kernel, x, y, box, weight, numbers, diagonal, schedule, margins[0]
    )


@compiled
def _margins_linear(state, kernel, schedule, x, out):
    w = state.w_average if schedule.averaged > 0.0 else state.w
    linear.margins_of(kernel, w, x, out[0])


@compiled
def _learn_linear(
    state, kernel, schedule, spare, x, is_last, y, box, weight, numbers, margins, solver
):
    diagonal = diagonal_of_event(kernel, spare, x)
    if np.isnan(diagonal[0]):
        return 0
    return call_learn_rows(
        solver, state, kernel, x, y, box, weight, numbers, diagonal, schedule, margins[0]
    )


register_solver(TrackingState, _learn, _margins, step.learn_rows)
register_solver(LinearTrackingState, _learn_linear, _margins_linear, linear.learn_rows)
