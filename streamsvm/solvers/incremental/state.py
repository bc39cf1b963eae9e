"""The state of an exact incremental SVM: coefficients, gradients, and the margin set's inverse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled

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

    beta: np.ndarray  # float64 (slots,): signed coefficients
    low: np.ndarray  # float64 (slots,): their lower bounds
    high: np.ndarray  # float64 (slots,): their upper bounds
    target: np.ndarray  # float64 (slots,): q_i
    h: np.ndarray  # float64 (slots,): gradients, target - f
    kind: np.ndarray  # int64 (slots,)
    place: np.ndarray  # int64 (slots,): number in the margin set, or -1
    diagonal: np.ndarray  # float64 (slots,): k(x, x)
    row_of: np.ndarray  # int64 (slots,): the number of its row in `rows`, or -1
    rows: np.ndarray  # float64 (rows, slots): kernel values of some slots with all
    owner: np.ndarray  # int64 (rows,): the slot of each row, or -1
    used: np.ndarray  # int64 (rows,): tick of the last use
    members: np.ndarray  # int64 (margin,): slots of the margin set
    inverse: np.ndarray  # float64 (margin + 1, margin + 1): of Q
    v: np.ndarray  # float64 (margin + 1,): sensitivities of b and the margin set; scratch
    residual: np.ndarray  # float64 (margin + 1,): scratch
    gamma: np.ndarray  # float64 (slots,): of the gradients, with changed sign; scratch
    line: np.ndarray  # float64 (slots,): the same along the line, if no coefficient followed
    info: Any  # record array (1,) of INFO


def new_state(n_slots: int, n_rows: int, n_margin: int) -> ExactState:
    """Return an empty state with room for so many slots, kernel rows, and margin vectors."""
    info: Any = np.zeros(1, INFO).view(np.recarray)
    info.tube, info.scale = np.inf, 1.0
    return ExactState(
        beta=np.zeros(n_slots),
        low=np.zeros(n_slots),
        high=np.zeros(n_slots),
        target=np.zeros(n_slots),
        h=np.zeros(n_slots),
        kind=np.zeros(n_slots, np.int64),
        place=np.full(n_slots, -1),
        diagonal=np.zeros(n_slots),
        row_of=np.full(n_slots, -1),
        rows=np.zeros((n_rows, n_slots)),
        owner=np.full(n_rows, -1),
        used=np.zeros(n_rows, np.int64),
        members=np.zeros(n_margin, np.int64),
        inverse=np.zeros((n_margin + 1, n_margin + 1)),
        v=np.zeros(n_margin + 1),
        residual=np.zeros(n_margin + 1),
        gamma=np.zeros(n_slots),
        line=np.zeros(n_slots),
        info=info,
    )


@compiled
def touch(state, s):
    """Return the number of slot s's kernel row, and note its use; -1: there is none."""
    r = state.row_of[s]
    if r >= 0:
        state.info[0].tick += 1
        state.used[r] = state.info[0].tick
    return r
