"""The short way of one event into compiled code and back.

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
from numba import types
from numba.experimental import structref

from streamsvm._compile import JIT, chosen_by, compiled
from streamsvm.learners.calibration import update_calibration
from streamsvm.learners.schema import narrow
from streamsvm.solvers import lasvm, tracking, tracking_linear
from streamsvm.solvers.lasvm_state import LASVMState
from streamsvm.solvers.tracking_linear import LinearTrackingState
from streamsvm.solvers.tracking_state import TrackingState
from streamsvm.support import dense_store
from streamsvm.support.kernel_diagonal import own_value

LARGEST_DIAGONAL = 1e30

_FIELDS = (
    "state",
    "kernel",
    "schedule",
    "calibration",  # float64: see `calibration`
    "spare",  # a DenseStore of one panel
    "row",  # float32 (1, d): the event
    "last",  # float32 (1, d): the one that was predicted last
    "numbers",  # int64 (1,): the number of the example
    "single",  # float32 (1,): k(x, x)
    "doubles",  # float64 (4, 1): sign, C_i, weight, margin
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
    """The short way to a state, for events of d features."""

    def __init__(
        self, state: Any, kernel: Any, schedule: Any, calibration: np.ndarray, d: int
    ) -> None:
        self._served = state, kernel, schedule
        self._d = d
        self._held = _Held(
            state,
            kernel,
            schedule,
            calibration,
            dense_store.new_store(1, d),
            np.zeros((1, d), np.float32),
            np.zeros((1, d), np.float32),
            np.zeros(1, np.int64),
            np.zeros(1, np.float32),
            np.zeros((4, 1)),
        )

    def serves(self, state: Any, kernel: Any, schedule: Any, d: int) -> bool:
        """Tell whether it is of these, the same objects."""
        own_state, own_kernel, own_schedule = self._served
        return (
            own_state is state
            and own_kernel is kernel
            and own_schedule is schedule
            and self._d == d
        )

    def margin_of(self, values: np.ndarray) -> float:
        """Return the margin of an event, float64 (d,); NaN if a value is not finite."""
        margin: float = _margin_of(self._held, values)
        return margin

    def learn(self, values: np.ndarray, sign: float, box: float, number: int) -> bool:
        """Learn an event.

        Parameters
        ----------
        values
            float64 (d,): the event.
        sign, box, number
            +1.0 or -1.0, C_i, the number of the example.

        Returns
        -------
        Whether it was learnt. If not, nothing changed: a value cannot be used, or the state is
        full; the long way will see.

        """
        learnt: bool = _learn(self._held, values, sign, box, number)
        return learnt


@compiled
def _margin_lasvm(state, kernel, schedule, x, out):  # type: ignore[no-untyped-def]
    lasvm.margins_of(state, kernel, x, out)
    state.info[0].ready = state.info[0].n


@compiled
def _margin_tracking(state, kernel, schedule, x, out):  # type: ignore[no-untyped-def]
    averaged = schedule.averaged > 0.0
    tracking.margins_of(state, kernel, state.average if averaged else state.alpha, x, out)
    state.info[0].ready = state.active.counts[0].n


@compiled
def _margin_linear(state, kernel, schedule, x, out):  # type: ignore[no-untyped-def]
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
_learn_rows: Any = chosen_by(
    0,
    {
        LASVMState: lasvm.learn_rows,
        TrackingState: tracking.learn_rows,
        LinearTrackingState: tracking_linear.learn_rows,
    },
)


@compiled
def _margin_of(handle, values):  # type: ignore[no-untyped-def]
    if not narrow(values, handle.last[0]):
        handle.state.info[0].ready = 0
        return np.nan
    margin = handle.doubles[3]
    _margin(handle.state, handle.kernel, handle.schedule, handle.last, margin)
    return margin[0]


@compiled
def _learn(handle, values, sign, box, number):  # type: ignore[no-untyped-def]
    state, row = handle.state, handle.row
    if not narrow(values, row[0]):
        return False
    same = True
    for c in range(values.size):
        same &= row[0, c] == handle.last[0, c]
    state.info[0].ready = -state.info[0].ready if same and state.info[0].ready > 0 else 0
    y, boxes, weights, margins = (
        handle.doubles[0], handle.doubles[1], handle.doubles[2], handle.doubles[3],
    )  # fmt: skip
    diagonal = own_value(handle.kernel, handle.spare, row)
    if not 0.0 <= diagonal < LARGEST_DIAGONAL:
        return False
    handle.single[0] = diagonal
    handle.numbers[0] = number
    y[0], boxes[0], weights[0] = sign, box, 1.0
    done = _learn_rows(
        state, handle.kernel, row, y, boxes, weights, handle.numbers, handle.single,
        handle.schedule, margins,
    )  # fmt: skip
    if done == 0:
        return False
    update_calibration(handle.calibration, margins, y)
    return True
