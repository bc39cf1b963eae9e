"""The compiled functions of `EventPath`: they predict or learn the event in a buffer."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numba import typeof

from streamsvm._compile import JIT, compiled, compiled_inner, reference_at, words_of
from streamsvm.features.missing import fill, note
from streamsvm.features.packing import list_event
from streamsvm.models.rows import scaled_value
from streamsvm.solvers.adaptive import combination
from streamsvm.solvers.adaptive.combination import CombinationState, Scratch
from streamsvm.solvers.adaptive.last_label import IS_LATE, digest, is_next, note_learnt
from streamsvm.solvers.one_event import call_learn, call_margins
from streamsvm.support.calibration import (
    label_index,
    update_one,
    update_temperature_one,
    update_thinned_one,
)
from streamsvm.support.rows import SparseRows

_THINNED_SIZE = 6
"""Size of the calibration array of `new_thinned`."""

_FIELDS: dict[str, Any] = {
    "margins_of": int,  # see `solvers.one_event.Solver`
    "learn": int,
    "parts": int,
    "policy": int,  # what takes the place of missing values
    "calibration": (float, 1),  # see `support.calibration`
    "event_values": (float, 1),  # (room,): the event's values, written by Python; NaN: missing
    "row_values": (np.float32, 1),  # (room,): those of the row; if it is sparse, by column
    "last_values": (np.float32, 1),  # (room,): those of the row that was predicted last
    "statistics": (float, 2),  # (N_ROWS, at least room): see `features.missing`
    "factors": (np.float32, 1),  # (room,): features are multiplied by them; (0,): they are not
    "scaled_values": (np.float32, 1),  # (room,): the values of a row, multiplied
    "columns": (np.int32, 2),  # (4, room): columns of sparse events, see `EVENT_COLUMNS`
    "sort_keys": (np.uint32, 1),  # (room,): scratch of `list_event`
    "start": (np.int64, 1),  # (2,): `start` of a sparse row
    "numbers": (np.int64, 1),  # (3,): see below
    "n_learnt": (np.int64, 1),  # (1,): number of examples learnt; `_learn` increases it
    "targets": (float, 2),  # (3, 1): number of the class, C_i, weight
    "margins": (float, 2),  # (1, outputs): of the last event, as the solver wrote them
    "scores": (float, 1),  # (labels,), (1,): margins, combined
    "asked": (np.int64, 1),  # (3,), (0,): see `adaptive.last_label`
    # A `CombinationState` and its `Scratch`, of size 0 if scores are not combined.
    "weights": (float, 1),
    "curvature": (float, 2),
    "leads": (float, 1),
    "linear": (float, 3),
    "moments": (float, 2),
    "errors": (float, 1),
    "info": (np.int64, 1),
    "inputs": (float, 2),
    "row": (float, 1),
    "matrix": (float, 2),
    "factors_of_classes": (float, 1),
    "p": (float, 1),
    "z": (float, 1),
}
"""The arguments of all calls: numbers, and the type and dimensions of arrays, which are in C order.

They are written to memory once (`words_of`), and calls get their address.
"""
EVENT_COLUMNS, SORT_RANKS, SORTED_COLUMNS, LAST_COLUMNS = range(4)
"""Rows of the field `columns`: the columns of an event, written by Python; scratch of `list_event`;
the columns of the row in increasing order; the columns of the row that was predicted last."""
EXAMPLE, LAST_LENGTH, N_SCORES = range(3)
"""Entries of the field `numbers`: the number of the example; the length of the row that was
predicted last, or -1; how many margins are scores."""

_Arguments: Any = namedtuple("_Arguments", _FIELDS)  # type: ignore[misc]
_KIND = typeof(
    _Arguments(
        *(0 if kind is int else np.zeros((1,) * kind[1], kind[0]) for kind in _FIELDS.values())
    )
)


class Arguments:
    """Values of `_FIELDS` for the functions below, which take its `address`."""

    def __init__(self, **values: Any) -> None:
        for name, kind in _FIELDS.items():
            value = values[name]
            if kind is not int and not (
                value.dtype == kind[0] and value.ndim == kind[1] and value.flags.c_contiguous
            ):
                raise TypeError(f"{name}: {value.dtype}, {value.shape}, not {kind}")
        self.values = _Arguments(**values)
        self.address: Any = self.values
        if JIT:
            self._words = np.array(words_of(self.values), np.int64)
            self.address = self._words.ctypes.data


# Compiled code


@compiled_inner
def _scores(args):
    """Return the scores, or the margin, of the model."""
    # LASVM writes probabilities behind the scores: see `outputs.ProblemOutputs`.
    return args.margins[0, : args.numbers[N_SCORES]]


@compiled_inner
def _combination(args):
    state = CombinationState(
        args.weights, args.curvature, args.leads, args.linear, args.moments, args.errors, args.info
    )
    return state, Scratch(
        args.inputs, args.row, args.matrix, args.factors_of_classes, args.p, args.z
    )


@compiled_inner
def _predicted(args, n, is_sparse):
    """Return the index of the label that the margins predict; -1 if they are not finite.

    The row has n of the `last_values`.
    """
    for o in range(args.margins.size):
        # The general path refuses the event.
        if not np.isfinite(args.margins[0, o]):
            return -1
    if args.weights.size == 0:
        return label_index(_scores(args))
    columns, knows_last = args.columns[LAST_COLUMNS], False
    if args.asked.size > 0:
        knows_last = is_next(args.asked, digest(columns, args.last_values, n, is_sparse))
    state, scratch = _combination(args)
    combination.combine(
        state, _scores(args), args.last_values, columns, n, is_sparse, knows_last, scratch,
        args.scores,
    )  # fmt: skip
    return label_index(args.scores)


@compiled_inner
def _learn(args, x, is_last, number, cost, weight, values, columns, n, is_sparse):
    """Learn a row; return the index of the label predicted before, or -1 if it was not learnt.

    `values` and `columns` are those of the row before it was multiplied, n of them.
    """
    margins = args.margins
    y, costs, weights = args.targets[0], args.targets[1], args.targets[2]
    y[0], costs[0], weights[0], args.numbers[EXAMPLE] = number, cost, weight, args.n_learnt[0] + 1
    done = call_learn(
        args.learn, args.parts, None, x, is_last, y, costs, weights, args.numbers, margins
    )
    if done == 0:
        return -1
    # Here, not in Python, where an interruption may come first.
    args.n_learnt[0] += 1
    scores, label = _scores(args), np.int64(number)
    if args.weights.size > 0:
        # First, as for a batch of one row: whether labels come late is known of this event, too.
        if args.asked.size > 0:
            note_learnt(args.asked, digest(columns, values, n, is_sparse))
        knows_last = args.asked.size > 0 and args.asked[IS_LATE] == 0
        state, scratch = _combination(args)
        combination.learn(
            state, scores, values, columns, n, is_sparse, knows_last, label, weight, scratch,
            args.scores,
        )  # fmt: skip
        scores = args.scores
    predicted = label_index(scores)
    if margins.size > 1:
        if args.calibration.size > 0:
            update_temperature_one(args.calibration, scores, label)
    elif args.calibration.size == _THINNED_SIZE:
        update_thinned_one(args.calibration, scores[0], number)
    else:
        update_one(args.calibration, scores[0], number)
    return predicted


@compiled_inner
def _scaled(args, values, d):
    """Return the first d values, multiplied by the factors, if there are any."""
    if args.factors.size == 0:
        return values[:d]
    for c in range(d):
        args.scaled_values[c] = scaled_value(values[c], args.factors[c])
    return args.scaled_values[:d]


@compiled_inner
def _scaled_listed(args, x):
    """Return a sparse row, multiplied by the factors, if there are any."""
    if args.factors.size == 0:
        return x
    for t in range(x.start[1]):
        args.scaled_values[t] = scaled_value(x.values[t], args.factors[x.columns[t]])
    return SparseRows(x.start, x.columns, args.scaled_values, x.d)


@compiled
def predict_dense(address, d):
    """Predict a dense event of d features; return the index of the label, or -1."""
    args = reference_at(address, _KIND)
    args.numbers[LAST_LENGTH] = -1
    if fill(args.event_values[:d], args.row_values[:d], args.statistics, args.policy) >= 0:
        return -1
    for c in range(d):
        args.last_values[c] = args.row_values[c]
    row = _scaled(args, args.last_values, d).reshape(1, d)
    call_margins(args.margins_of, args.parts, None, row, args.margins)
    args.numbers[LAST_LENGTH] = d
    return _predicted(args, d, False)


@compiled
def learn_dense(address, d, number, cost, weight):
    """Learn a dense event of d features; return the index of the label predicted before, or -1."""
    args = reference_at(address, _KIND)
    if fill(args.event_values[:d], args.row_values[:d], args.statistics, args.policy) >= 0:
        return -1
    is_last = args.numbers[LAST_LENGTH] == d
    for c in range(d):
        is_last &= args.row_values[c] == args.last_values[c]
    row = _scaled(args, args.row_values, d).reshape(1, d)
    columns = args.columns[LAST_COLUMNS]
    label_index = _learn(
        args, row, is_last, number, cost, weight, args.row_values, columns, d, False
    )
    if label_index >= 0:
        note(args.event_values[:d], args.statistics)
    return label_index


@compiled_inner
def _sparse_row(args, n, d, is_hashed):
    """Return n values as a sparse row of d features; `start[1]` is -1 if one is out of range."""
    columns = args.columns[EVENT_COLUMNS]
    if is_hashed:
        # A hashed column is encoded as 2 * column, plus 1 if the sign of the value changes.
        for t in range(n):
            args.event_values[t] *= 1.0 - 2.0 * (columns[t] & 1)
            columns[t] >>= 1
    args.start[1] = list_event(
        columns,
        args.event_values,
        n,
        args.sort_keys,
        args.columns[SORT_RANKS],
        args.columns[SORTED_COLUMNS],
        args.row_values,
    )
    return SparseRows(args.start, args.columns[SORTED_COLUMNS], args.row_values, d)


@compiled_inner
def _is_last(args, x, last_length):
    """Tell whether a sparse row is the one that was predicted last, of this length."""
    is_last = last_length == x.start[1]
    if is_last:
        for t in range(x.start[1]):
            is_last &= (
                args.columns[LAST_COLUMNS, t] == x.columns[t] and args.last_values[t] == x.values[t]
            )
    return is_last


@compiled
def predict_sparse(address, n, d, is_hashed):
    """Predict a sparse event of n values; return the index of the label, or -1."""
    args = reference_at(address, _KIND)
    args.numbers[LAST_LENGTH] = -1
    x = _sparse_row(args, n, d, is_hashed)
    if x.start[1] < 0:
        return -1
    row = _scaled_listed(args, x)
    call_margins(args.margins_of, args.parts, None, row, args.margins)
    args.numbers[LAST_LENGTH] = x.start[1]
    for t in range(x.start[1]):
        args.columns[LAST_COLUMNS, t], args.last_values[t] = x.columns[t], x.values[t]
    return _predicted(args, x.start[1], True)


@compiled
def learn_sparse(address, n, d, is_hashed, number, cost, weight):
    """Learn a sparse event of n values; return the index of the label predicted before, or -1."""
    args = reference_at(address, _KIND)
    x = _sparse_row(args, n, d, is_hashed)
    if x.start[1] < 0:
        return -1
    is_last = _is_last(args, x, args.numbers[LAST_LENGTH])
    row, n = _scaled_listed(args, x), x.start[1]
    return _learn(args, row, is_last, number, cost, weight, x.values, x.columns, n, True)
