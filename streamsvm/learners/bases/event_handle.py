"""The fast path of one event into compiled code and back.

Handing a state of thirty arrays to a compiled function takes 3 microseconds, an object that holds
it on the compiled side half a microsecond. It refers to the same arrays, and is made anew when
the learner gets other ones.

A row that was predicted and is learnt next has its kernel values already: `margin_of` notes how
many there are in the scratch of the state (`ready`; all else that uses the scratch sets it to 0),
and `learn`, when the row is the same, turns the sign, which the solver trusts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof, types
from numba.experimental import structref

from streamsvm._compile import JIT, borrowed, chosen_by, compiled
from streamsvm.features.packing import narrow
from streamsvm.labels.calibration import update_calibration
from streamsvm.solvers.lasvm import step as lasvm
from streamsvm.solvers.lasvm.state import LASVMState
from streamsvm.solvers.tracking import linear as tracking_linear
from streamsvm.solvers.tracking import step as tracking
from streamsvm.solvers.tracking.linear import LinearTrackingState
from streamsvm.solvers.tracking.state import TrackingState
from streamsvm.support import dense_store, stores
from streamsvm.support.bound_kernels import DENSE_ROWS, SPARSE_ROWS, bound
from streamsvm.support.code_addresses import address_of_code, caller_of
from streamsvm.support.kernel_diagonal import own_value
from streamsvm.support.sparse_store import SparseStore

LARGEST_DIAGONAL = 1e30

_LONGEST = 256
"""Features of the longest sparse event that is known again when it is learnt."""

_FIELDS = (
    "state",
    "kernel",
    "schedule",
    "calibration",  # float64: see `calibration`
    "spare",  # a store of one row that may be written over
    "row",  # float32 (1, d): the event, if dense
    "last",  # float32 (1, d): the values of the one that was predicted last
    "last_columns",  # int32 (m,): its columns, if sparse
    "numbers",  # int64 (2,): the number of the example; how long the sparse one was
    "single",  # float32 (1,): k(x, x)
    "doubles",  # float64 (4, 1): sign, C_i, weight, margin
    "learn_rows",  # the address of the solver's function
)


class _Plain:
    """What `_Held` is where nothing is compiled."""

    def __init__(self, *values: Any) -> None:
        for name, value in zip(_FIELDS, values, strict=True):
            setattr(self, name, value)


if JIT:

    @structref.register
    class _HeldType(types.StructRef):
        def preprocess_fields(self, fields: Any) -> Any:
            return tuple((name, types.unliteral(kind)) for name, kind in fields)

    class _Held(structref.StructRefProxy):
        def __new__(cls, *values: Any) -> Any:
            return structref.StructRefProxy.__new__(cls, *values)

    structref.define_proxy(_Held, _HeldType, list(_FIELDS))
else:
    _Held = _Plain  # type: ignore[assignment, misc]


class Handle:
    """The fast path to a state, for events of d features."""

    def __init__(
        self, state: Any, kernel: Any, schedule: Any, calibration: np.ndarray, d: int
    ) -> None:
        self._served = state, kernel, schedule
        self._d = d
        self._is_sparse = isinstance(state.store, SparseStore)
        width = _LONGEST if self._is_sparse else d
        self._doubles = np.zeros((4, 1))
        is_linear = isinstance(state, LinearTrackingState)
        own_kernel = kernel if is_linear else bound(kernel, state.store)
        self._held = _Held(
            state,
            own_kernel,
            schedule,
            calibration,
            state.store if self._is_sparse else dense_store.new_store(1, d),
            np.zeros((1, width), np.float32),
            np.zeros((1, width), np.float32),
            np.zeros(width, np.int32),
            np.zeros(2, np.int64),
            np.zeros(1, np.float32),
            self._doubles,
            _learn_rows_of(state, own_kernel, schedule),
        )

    def serves(self, state: Any, kernel: Any, schedule: Any, d: int) -> bool:
        """Tell whether it is of these, the same objects, and for so many features."""
        own_state, own_kernel, own_schedule = self._served
        return (
            own_state is state
            and own_kernel is kernel
            and own_schedule is schedule
            and (self._d == d or (self._is_sparse and d <= stores.n_columns(state.store)))
        )

    def margin_of(self, event: Any) -> float:
        """Return the margin of an event, float64 (d,) or a sparse row; NaN if not finite."""
        margin: float = (_margin_sparse if self._is_sparse else _margin_dense)(self._held, event)
        return margin

    def learn(self, event: Any, sign: float, box: float, number: int) -> bool:
        """Learn an event.

        Parameters
        ----------
        event
            float64 (d,), or `SparseRows` of one.
        sign, box, number
            +1.0 or -1.0, C_i, the number of the example.

        Returns
        -------
        Whether it was learnt. If not, nothing changed: a value cannot be used, or the state is
        full; the general path will see.

        """
        learn = _learn_sparse if self._is_sparse else _learn_dense
        learnt: bool = learn(self._held, event, sign, box, number)
        return learnt

    @property
    def margin(self) -> float:
        """The margin of the last event that was predicted or, from before, learnt."""
        return self._doubles.item(3)


@compiled
def _margin_lasvm(state, kernel, schedule, x, out):
    lasvm.margins_of(state, kernel, x, out)
    state.info[0].ready = state.info[0].n


@compiled
def _margin_tracking(state, kernel, schedule, x, out):
    averaged = schedule.averaged > 0.0
    tracking.margins_of(state, kernel, state.average if averaged else state.alpha, x, out)
    state.info[0].ready = state.active.counts[0].n


@compiled
def _margin_linear(state, kernel, schedule, x, out):
    averaged = schedule.averaged > 0.0
    tracking_linear.margins_of(kernel, state.w_average if averaged else state.w, x, out)


_margin: Any = chosen_by(
    0,
    {
        LASVMState: _margin_lasvm,
        TrackingState: _margin_tracking,
        LinearTrackingState: _margin_linear,
    },
)
_SOLVERS: dict[type, Any] = {
    LASVMState: lasvm,
    TrackingState: tracking,
    LinearTrackingState: tracking_linear,
}


_DOUBLES = types.Array(types.float64, 1, "C")
# y, box, weight, numbers, diagonal, margins: as solvers take them.
_ARRAYS = (
    _DOUBLES, _DOUBLES, _DOUBLES, types.Array(types.int64, 1, "C"),
    types.Array(types.float32, 1, "C"), _DOUBLES,
)  # fmt: skip


def _signature_of_learn_rows(*args: Any) -> Any:
    """Return it for the types of arguments, those of arrays apart from x being what they must."""
    state, kernel, x, schedule = args[0], args[1], args[2], args[8]
    return types.int64(state, kernel, x, *_ARRAYS[:5], schedule, _ARRAYS[5])


def _learn_rows_of(state: Any, kernel: Any, schedule: Any) -> Any:
    """Return the address of the solver's `learn_rows` for such states, compiled if need be.

    Its callers are compiled without it: it would be most of each of them.
    """
    function = _SOLVERS[type(state)].learn_rows
    if not JIT:
        return function
    rows = SPARSE_ROWS if isinstance(state.store, SparseStore) else DENSE_ROWS
    signature = _signature_of_learn_rows(
        typeof(state), typeof(kernel), rows, *_ARRAYS[:5], typeof(schedule), _ARRAYS[5]
    )
    return address_of_code(function, signature)


_learn_at: Any = (
    caller_of(_signature_of_learn_rows) if JIT else lambda function, *args: function(*args)
)


@compiled
def _margin_dense(held, values):
    state = borrowed(held.state)
    if not narrow(values, held.last[0]):
        state.info[0].ready = 0
        return np.nan
    margin = held.doubles[3]
    _margin(state, held.kernel, held.schedule, held.last, margin)
    return margin[0]


@compiled
def _margin_sparse(held, x):
    margin, state = held.doubles[3], borrowed(held.state)
    _margin(state, held.kernel, held.schedule, x, margin)
    first, length = x.start[0], x.start[1] - x.start[0]
    held.numbers[1] = length
    if length > held.last_columns.size:
        state.info[0].ready = 0
        return margin[0]
    for t in range(length):
        held.last_columns[t] = x.columns[first + t]
        held.last[0, t] = x.values[first + t]
    return margin[0]


@compiled
def _learn(held, x, is_last, sign, box, number):
    state = borrowed(held.state)
    info = state.info[0]
    info.ready = -info.ready if is_last and info.ready > 0 else 0
    y, boxes, weights, margins = (
        held.doubles[0], held.doubles[1], held.doubles[2], held.doubles[3],
    )  # fmt: skip
    diagonal = own_value(held.kernel, borrowed(held.spare), x)
    if not 0.0 <= diagonal < LARGEST_DIAGONAL:
        return False
    held.single[0] = diagonal
    held.numbers[0] = number
    y[0], boxes[0], weights[0] = sign, box, 1.0
    done = _learn_at(
        held.learn_rows, state, held.kernel, x, y, boxes, weights, held.numbers, held.single,
        held.schedule, margins,
    )  # fmt: skip
    if done == 0:
        return False
    update_calibration(held.calibration, margins, y)
    return True


@compiled
def _learn_dense(held, values, sign, box, number):
    if not narrow(values, held.row[0]):
        return False
    is_last = True
    for c in range(values.size):
        is_last &= held.row[0, c] == held.last[0, c]
    return _learn(held, held.row, is_last, sign, box, number)


@compiled
def _learn_sparse(held, x, sign, box, number):
    first, length = x.start[0], x.start[1] - x.start[0]
    is_last = length == held.numbers[1] and length <= held.last_columns.size
    if is_last:
        for t in range(length):
            is_last &= held.last_columns[t] == x.columns[first + t]
            is_last &= held.last[0, t] == x.values[first + t]
    return _learn(held, x, is_last, sign, box, number)
