"""One event through any solver, by addresses, or rows: compiled once for each type of state.

What reads an event, scores it and calibrates is the same for all solvers (the event calls of
`learners.bases`), and is compiled once. It calls the solver by two addresses, and gives it another
one: that of its `Parts`, which Python has written as words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types

from streamsvm._compile import JIT, borrowed, compiled, reference_at, words_of
from streamsvm.solvers import registry
from streamsvm.solvers.registry import learn_event, margins_of_event, write_margins
from streamsvm.support.kernel_rows.bound_kernels import DENSE_ROWS, SPARSE_ROWS
from streamsvm.support.kernel_rows.code_addresses import address_of_code, caller_of

USES = "solvers/*/*.py"
"""Files with what `learn_event` and `margins_of_event` call: an edit of one recompiles this one."""


class Parts(NamedTuple):
    """What a solver needs for an event beside the row and its label."""

    state: Any
    kernel: Any
    schedule: Any
    spare: Any  # a store of one row, that may be overwritten
    learn_rows: Any  # what `learn_event` calls: see `registry`


class Solver(NamedTuple):
    """What event calls know of a solver: three addresses, or without the compiler what is there."""

    margins: Any
    learn: Any
    parts: Any
    kept: Any  # what is at the address `parts`


_addresses: dict[Any, tuple[int, int]] = {}
_DOUBLES, _OUTPUTS = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
_NUMBERS = types.Array(types.int64, 1, "C")


@compiled
def margins_of(state, kernel, schedule, x, out):
    """Write the margins of rows x, by a solver with a kernel: see `registry.write_margins`."""
    write_margins(borrowed(state), kernel, schedule, borrowed(x), out)


@compiled
def _margins_at(parts, kind, x, out):
    parts = reference_at(parts, kind)
    margins_of_event(parts.state, parts.kernel, parts.schedule, x, out)


@compiled
def _learn_at(parts, kind, x, is_last, y, cost, weight, numbers, margins):
    parts = reference_at(parts, kind)
    return np.int64(
        learn_event(
            parts.state, parts.kernel, parts.schedule, parts.spare, x, is_last, y, cost, weight,
            numbers, margins, parts.learn_rows,
        )
    )  # fmt: skip


def _margins_signature(parts: Any, kind: Any, x: Any, out: Any) -> Any:
    return types.none(types.int64, kind, x, _OUTPUTS)


def _learn_signature(parts: Any, kind: Any, x: Any, *more: Any) -> Any:
    arrays = (_DOUBLES, _DOUBLES, _DOUBLES, _NUMBERS, _OUTPUTS)
    return types.int64(types.int64, kind, x, types.boolean, *arrays)


def _called(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


# Both take None for the type, which only the function at the address knows.
call_margins: Any = caller_of(_margins_signature) if JIT else _called
"""Write the margins of a row: call_margins(solver.margins, solver.parts, None, x, out).

x is float32 (1, d), finite, or `SparseRows`; out is float64 (1, outputs).
"""

call_learn: Any = caller_of(_learn_signature) if JIT else _called
"""Learn a row: call_learn(solver.learn, solver.parts, None, x, is_last, y, cost, weight, numbers,
margins), with the arguments and the result of `registry.learn_event`."""


def solver_for(
    state: Any, kernel: Any, schedule: Any, spare: Any, n_dimensions: int, is_sparse: bool
) -> Solver:
    """Return what event calls need for a state, compiled if need be.

    `n_dimensions` is that of the margins that `learn_rows` writes: 1, or 2 of several outputs.
    """
    rows = registry.learn_rows_for(state, kernel, schedule, n_dimensions, is_sparse)
    parts = Parts(state, kernel, schedule, spare, rows)
    if not JIT:
        return Solver(_margins_at, _learn_at, parts, None)
    # States grow, and models take turns: numba would take a millisecond each time.
    key = is_sparse, registry.kind_of(parts)
    if key not in _addresses:
        x, kind = SPARSE_ROWS if is_sparse else DENSE_ROWS, types.TypeRef(typeof(parts))
        _addresses[key] = (
            address_of_code(_margins_at, _margins_signature(None, kind, x, None)),
            address_of_code(_learn_at, _learn_signature(None, kind, x)),
        )
    words = np.array(words_of(parts), np.int64)
    return Solver(*_addresses[key], words.ctypes.data, (parts, words))
