"""The functions of the stochastic batch perceptron that learn and predict one event."""

from __future__ import annotations

from streamsvm._compile import compiled
from streamsvm.solvers.kernel_events import learn_binary
from streamsvm.solvers.registry import register_solver
from streamsvm.solvers.sbp import step
from streamsvm.solvers.sbp.state import SBPState


@compiled
def _margins(state, kernel, schedule, x, out):
    step.margins_of(state, kernel, schedule, x, out[0])
    # The scratch now has the kernel values of this row.
    state.info[0].ready = state.active.counts[0].n


register_solver(SBPState, learn_binary, _margins, step.learn_rows)
