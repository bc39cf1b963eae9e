"""The state of an exact incremental SVM: coefficients, gradients, and the margin set's inverse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.support import states
from streamsvm.support.declaration import Record, field
from streamsvm.support.states import declare

AT_LOW, AT_HIGH, MARGIN, PENDING = range(4)
"""What a slot is: at a bound of its coefficient; between them, with gradient 0; or not settled: its
coefficient is held while those of others change, whatever its gradient is."""

INFO = np.dtype(
    [
        ("n", np.int64),  # slots in use
        ("m", np.int64),  # members of the margin set
        ("b", np.float64),  # bias
        ("tick", np.int64),  # counts the uses of kernel rows
        ("n_steps", np.int64),  # steps of paths so far
        ("n_still", np.int64),  # steps of a path, one after the other, of hardly any length
        ("n_null", np.int64),  # steps, not among these, along which no gradient changes
        ("drift", np.float64),  # the largest residual by Q^-1 since it was computed, or FRESH
        ("is_inexact", np.bool_),  # whether Q^-1 should be computed anew
        ("near", np.float64),  # gradients within this of 0 are 0
        ("wanted", np.int64),  # the slot whose kernel row is missing, after `MISSING_ROW`
        ("total", np.float64),  # what the coefficients sum up to
        ("tube", np.float64),  # within 0 and -tube (0 and tube) a gradient asks for coefficient 0
        ("left", np.float64),  # how much of the line is left
        ("mass", np.float64),  # what the sum of settled coefficients falls by along the line
        ("scale", np.float64),  # what targets and tube are multiplied by, along the line; 1
        ("scale_rate", np.float64),  # its change along the line
    ]
)


class ExactState(NamedTuple):
    """Arrays over `slots` examples, of which the first n are in use, and over the margin set."""

    beta: np.ndarray = field("slots")  # signed coefficients
    low: np.ndarray = field("slots")  # their lower bounds
    high: np.ndarray = field("slots")  # their upper bounds
    target: np.ndarray = field("slots")  # q_i
    h: np.ndarray = field("slots")  # gradients, target - f
    kind: np.ndarray = field("slots", dtype=np.int64)
    place: np.ndarray = field("slots", dtype=np.int64, fill=-1)  # number in the margin set, or -1
    diagonal: np.ndarray = field("slots")  # k(x, x)
    row_of: np.ndarray = field("slots", dtype=np.int64, fill=-1)  # number in `rows`, or -1
    rows: np.ndarray = field("rows", "slots")  # kernel values of some slots with all
    owner: np.ndarray = field("rows", dtype=np.int64, fill=-1)  # the slot of each row, or -1
    used: np.ndarray = field("rows", dtype=np.int64)  # tick of the last use
    members: np.ndarray = field("margin", dtype=np.int64)  # slots of the margin set
    inverse: np.ndarray = field("margin + 1", "margin + 1")  # of Q
    v: np.ndarray = field("margin + 1", scratch=True)  # sensitivities of b and the margin set
    residual: np.ndarray = field("margin + 1", scratch=True)
    gamma: np.ndarray = field("slots", scratch=True)  # of the gradients, with changed sign
    line: np.ndarray = field("slots")  # the same along the line, if no coefficient followed
    info: Any = Record(INFO, initial={"tube": np.inf, "scale": 1.0})


declare(ExactState)


def new_state(n_slots: int, n_rows: int, n_margin: int) -> ExactState:
    """Return an empty state with room for so many slots, kernel rows, and margin vectors."""
    sizes = {"slots": n_slots, "rows": n_rows, "margin": n_margin, "margin + 1": n_margin + 1}
    state: ExactState = states.new(ExactState, sizes)
    return state


@compiled_inner
def touch(state, s):
    """Return the number of slot s's kernel row, and note its use; -1: there is none."""
    r = state.row_of[s]
    if r >= 0:
        state.info[0].tick += 1
        state.used[r] = state.info[0].tick
    return r
