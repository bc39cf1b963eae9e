"""The functions of averaged tracking that learn and predict one event."""

from __future__ import annotations

from streamsvm._compile import compiled
from streamsvm.solvers.kernel_events import learn_binary
from streamsvm.solvers.registry import register_solver
from streamsvm.solvers.tracking import linear, step
from streamsvm.solvers.tracking.linear import LinearTrackingState
from streamsvm.solvers.tracking.state import TrackingState


@compiled
def _margins(state, kernel, schedule, x, out):
    coefficients = state.average if schedule.averaged > 0.0 else state.alpha
    step.margins_of(state, kernel, coefficients, x, out[0])
    # The scratch now has the kernel values of this row.
    state.info[0].ready = state.active.counts[0].n


@compiled
def _margins_linear(state, kernel, schedule, x, out):
    w = state.w_average if schedule.averaged > 0.0 else state.w
    linear.margins_of(kernel, w, x, out[0])


register_solver(TrackingState, learn_binary, _margins, step.learn_rows)
register_solver(LinearTrackingState, learn_binary, _margins_linear, linear.learn_rows)
