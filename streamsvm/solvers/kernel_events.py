"""One event through a solver with a kernel: k(x, x) of its row, then the solver's `learn_rows`.

Solvers register one of the two functions: see `registry.learn_event` for their arguments. Both have
the same lines, as a function for both would take a second more to compile with each kernel.

The `learn_rows` of all these solvers learns rows one after the other, with the kernel values of a
block computed together. It returns how many rows were learnt: fewer than n when the arrays are full
and must grow first. Its arguments:

    state, kernel   the state and its kernel
    x               n rows: float32 (n, d), finite, or `SparseRows`
    y               float64 (n,): classes, whole numbers below how many; see `side_of`
    cost, weight     float64 (n,): C_i of each row, and its example weight
    numbers         int64 (n,), positive: the numbers of the examples
    diagonal        float32 (n,): k(x, x) of each row
    schedule        the solver's `Schedule`
    margins         float64 (n,), or (n, columns), written: of each row before it was learnt

Their `margins_of` overwrites the state's scratch, too: two threads must not call it with the same
state.
"""

from __future__ import annotations

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.solvers.registry import call_learn_rows
from streamsvm.support.kernel_rows.fresh_block import reuse_values
from streamsvm.support.kernel_rows.kernel_diagonal import diagonal_of_event


@compiled_inner
def side_of(number):
    """Return y of a class of two, given by number: -1 of class 0, +1 of class 1."""
    return 1.0 if number > 0.0 else -1.0


@compiled_inner
def learn_binary(
    state, kernel, schedule, spare, x, is_last, y, cost, weight, numbers, margins, solver
):
    """Learn one row by a solver whose `learn_rows` writes margins float64 (n,)."""
    diagonal = diagonal_of_event(kernel, spare, x)
    if np.isnan(diagonal[0]):
        return 0
    reuse_values(state.info[0], is_last)
    return call_learn_rows(
        solver, state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins[0]
    )


@compiled_inner
def learn_multiclass(
    state, kernel, schedule, spare, x, is_last, y, cost, weight, numbers, margins, solver
):
    """Learn one row by a solver whose `learn_rows` writes margins float64 (n, classes)."""
    diagonal = diagonal_of_event(kernel, spare, x)
    if np.isnan(diagonal[0]):
        return 0
    reuse_values(state.info[0], is_last)
    return call_learn_rows(
        solver, state, kernel, x, y, cost, weight, numbers, diagonal, schedule, margins
    )
