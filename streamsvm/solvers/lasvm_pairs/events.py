"""The functions of LASVM for several classes that learn and predict one event."""

from __future__ import annotations

from streamsvm._compile import compiled
from streamsvm.solvers.kernel_events import learn_multiclass
from streamsvm.solvers.lasvm_pairs import step
from streamsvm.solvers.lasvm_pairs.state import PairsState
from streamsvm.solvers.registry import register_solver


@compiled
def _margins(state, kernel, schedule, x, out):
    step.margins_of(state, kernel, x, out)
    # The scratch now has the kernel values of this row.
    state.info[0].ready = state.info[0].n


register_solver(PairsState, learn_multiclass, _margins, step.learn_rows)
