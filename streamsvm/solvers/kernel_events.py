"""One event through a solver with a kernel: k(x, x) of its row, then the solver's `learn_rows`.

Solvers register one of the two functions: see `registry.learn_event` for their arguments. Both have
the same lines, as a function for both would take a second more to compile with each kernel.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled
from streamsvm.solvers.registry import call_learn_rows
from streamsvm.support.kernel_rows.fresh_block import reuse_values
from streamsvm.support.kernel_rows.kernel_diagonal import diagonal_of_event


@compiled
def learn_binary(
    state, kernel, schedule, spare, x, is_last, y, box, weight, numbers, margins, solver
):
    """Learn one row by a solver whose `learn_rows` writes margins float64 (n,)."""
    diagonal = diagonal_of_event(kernel, spare, x)
    if np.isnan(diagonal[0]):
        return 0
    reuse_values(state.info[0], is_last)
    return call_learn_rows(
        solver, state, kernel, x, y, box, weight, numbers, diagonal, schedule, margins[0]
    )


@compiled
def learn_multiclass(
    state, kernel, schedule, spare, x, is_last, y, box, weight, numbers, margins, solver
):
    """Learn one row by a solver whose `learn_rows` writes margins float64 (n, classes)."""
    diagonal = diagonal_of_event(kernel, spare, x)
    if np.isnan(diagonal[0]):
        return 0
    reuse_values(state.info[0], is_last)
    return call_learn_rows(
        solver, state, kernel, x, y, box, weight, numbers, diagonal, schedule, margins
    )
