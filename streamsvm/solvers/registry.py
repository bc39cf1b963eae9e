"""Solvers by the type of their state: what compiled code calls for one event.

A solver makes itself known once, in the file of its events. Compiled code chooses its functions by
the type of the state; the largest, `learn_rows`, it calls by an address, so that it need not be
compiled with it once more.

Solvers with a kernel register `learn_binary` or `learn_multiclass`: k(x, x) of the row, then the
solver's `learn_rows`. Both have the same lines, as a function for both would take a second more to
compile with each kernel.

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

They also register ``write_margin(state, schedule, row, out, at)``, which writes what is predicted
for a row, given its kernel values, to out[at]: `write_margins` calls it for many rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof, types

from streamsvm._compile import JIT, chosen_by, compiled_inner, pointee, register_source
from streamsvm.support.kernel_rows.bound_kernels import DENSE_ROWS, SPARSE_ROWS
from streamsvm.support.kernel_rows.code_addresses import address_of_code, caller_of
from streamsvm.support.kernel_rows.fresh_block import array_of, fill_part, reuse_values
from streamsvm.support.kernel_rows.kernel_diagonal import diagonal_of_event
from streamsvm.support.rows import count

_learn: dict[Any, Any] = {}
_margins: dict[Any, Any] = {}
_learn_rows: dict[type, Any] = {}
_write: dict[Any, Any] = {}
_addresses: dict[Any, int] = {}

# `one_event` calls these two, and says so (`USES`): the files of solvers are not imported here.
learn_event: Any = chosen_by(0, _learn)
"""Learn one row; return 1, or 0 if nothing changed: the state is full, or the kernel refuses it.

Its arguments: state, kernel, schedule, spare, x, is_last, y, cost, weight, numbers, margins,
solver. x is the row, float32 (1, d), finite, or `SparseRows`, and `spare` a store of one row that
may be overwritten. `is_last` tells whether `margins_of_event` had this row last. y, cost and weight
are float64 (1,): the number of the class; C_i; the example weight.
numbers, int64 (at least 1,), is that of the example. margins, float64 (1, outputs), are written:
from before the row was learnt. `solver` is what `learn_rows_for` returned.
"""

margins_of_event: Any = chosen_by(0, _margins)
"""Write the margins of one row: margins_of_event(state, kernel, schedule, x, out).

`out` is float64 (1, outputs). The kernel values of the row may stay in the scratch of the state,
where `learn_event` finds them.
"""

_DOUBLES = types.Array(types.float64, 1, "C")
_NUMBERS = types.Array(types.int64, 1, "C")
_DIAGONAL = types.Array(types.float32, 1, "C")


def _signature(
    state: Any, kernel: Any, x: Any, y: Any, cost: Any, weight: Any, numbers: Any, diagonal: Any,
    schedule: Any, margins: Any,
) -> Any:  # fmt: skip
    """Return that of `learn_rows` for the types of its arguments."""
    arrays = (_DOUBLES, _DOUBLES, _DOUBLES, _NUMBERS, _DIAGONAL)
    return types.int64(
        pointee(state), pointee(kernel), pointee(x), *arrays, pointee(schedule), margins
    )


call_learn_rows: Any = (
    caller_of(_signature) if JIT else lambda function, *arguments: function(*arguments)
)
"""Call the solver's `learn_rows`, for compiled code; its arguments are solver and those of it."""


def register_kernel_solver(
    state_type: type, outputs: tuple[Any, Any], write_margin: Any, learn_rows: Any
) -> None:
    """Make a solver with a kernel known; `outputs` are `BINARY` or `MULTICLASS`."""
    _write[state_type] = write_margin
    register_solver(state_type, *outputs, learn_rows)


def register_solver(state_type: type, learn: Any, margins: Any, learn_rows: Any = None) -> None:
    """Make a solver known by the type of its state, a NamedTuple of arrays.

    `learn` and `margins` are compiled functions with the arguments of `learn_event` and of
    `margins_of_event`; `learn_rows` is what `learn` calls by `call_learn_rows`, or None.
    """
    _learn[state_type], _margins[state_type] = learn, margins
    _learn_rows[state_type] = learn_rows
    register_source(state_type, learn, margins)


def learn_rows_for(
    state: Any, kernel: Any, schedule: Any, n_dimensions: int, is_sparse: bool
) -> Any:
    """Return what `learn_event` calls for such arguments, compiled if need be.

    `n_dimensions` is that of the margins that `learn_rows` writes: 1, or 2 of several outputs.
    """
    function = _learn_rows[type(state)]
    if not JIT or function is None:
        return function or 0
    # States grow, and models take turns: numba would take a millisecond each time.
    key = function, n_dimensions, is_sparse, kind_of((state, kernel, schedule))
    if key not in _addresses:
        rows = SPARSE_ROWS if is_sparse else DENSE_ROWS
        margins = types.Array(types.float64, n_dimensions, "C")
        kinds = (typeof(state), typeof(kernel), rows, *[None] * 5, typeof(schedule), margins)
        _addresses[key] = address_of_code(function, _signature(*kinds))
    return _addresses[key]


def kind_of(value: Any) -> Any:
    """Return what numba's type of a value depends on."""
    if isinstance(value, tuple):
        return type(value), *map(kind_of, value)
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.ndim, value.flags.num
    return type(value) if isinstance(value, int | float | np.generic) else value


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


_write_margin: Any = chosen_by(0, _write)


@compiled_inner
def _n_of_info(state):
    return state.info[0].n


@compiled_inner
def _n_of_active(state):
    return state.active.counts[0].n


_n_slots: Any = chosen_by(
    0, {False: _n_of_info, True: _n_of_active}, lambda kind: hasattr(kind, "active")
)
"""_n_slots(state): the number of slots that are in use, or were before."""


@compiled_inner
def write_margins(state, kernel, schedule, x, out):
    """Write the margins of rows x into out, float64 (n,) or (n, outputs), a block at a time.

    It overwrites the state's scratch: two threads must not call it with the same state.
    """
    n, start = _n_slots(state), 0
    while start < count(x):
        size = fill_part(state, kernel, x, start, n)
        values = array_of(state.block)
        for r in range(size):
            _write_margin(state, schedule, values[r], out, start + r)
        start += size


@compiled_inner
def _margins_binary(state, kernel, schedule, x, out):
    write_margins(state, kernel, schedule, x, out[0])
    # The scratch now has the kernel values of this row.
    state.info[0].ready = _n_slots(state)


@compiled_inner
def _margins_multiclass(state, kernel, schedule, x, out):
    write_margins(state, kernel, schedule, x, out)
    state.info[0].ready = _n_slots(state)


BINARY, MULTICLASS = (learn_binary, _margins_binary), (learn_multiclass, _margins_multiclass)
"""What solvers with a kernel register, whose margins are float64 (n,), or (n, outputs)."""
