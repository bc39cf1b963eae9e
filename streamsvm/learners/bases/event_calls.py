"""The compiled functions of `EventPath`: they predict or learn the event in a buffer."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numba import typeof

from streamsvm._compile import (
    JIT,
    chosen_by,
    compiled,
    compiled_inner,
    reference_at,
    words_of,
)
from streamsvm.features.missing import fill, note
from streamsvm.features.packing import list_event
from streamsvm.models.rank_bits import write_bits
from streamsvm.models.rows import scaled_value
from streamsvm.solvers.adaptive import combination
from streamsvm.solvers.adaptive.combination import CombinationState, Scratch
from streamsvm.solvers.adaptive.last_label import (
    IS_LATE,
    LAST_ROW,
    N_PREDICTED,
    digest,
    is_next,
    knows_last,
    note_learnt,
)
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
    "values": (np.float32, 1),  # (room,): the values of a row, multiplied
    "columns": (np.int32, 2),  # (4, room): columns of sparse events, see `EVENT_COLUMNS`
    "sort_keys": (np.uint32, 1),  # (room,): scratch of `list_event`
    "start": (np.int64, 1),  # (2,): `start` of a sparse row
    "numbers": (np.int64, 1),  # (7,): see below
    "n_learnt": (np.int64, 1),  # (1,): number of examples learnt; `_learn` increases it
    "targets": (float, 2),  # (3, 1): number of the class, C_i, weight
    "margins": (float, 2),  # (1, outputs): of the last event, as the solver wrote them
    # Of a model that combines others, else of size 0.
    "further": int,  # the address of `_FURTHER` of the next model, 0: there is none
    "scores": (float, 2),  # (models, outputs): of all models
    "combined": (float, 1),  # (outputs,): what is predicted
    "asked": (np.int64, 1),  # (4,): see `adaptive.last_label`
    # A `CombinationState` and its `Scratch`.
    "weights": (float, 1),
    "curvature": (float, 2),
    "leads": (float, 1),
    "linear": (float, 3),
    "moments": (float, 2),
    "counts": (float, 2),
    "known": (float, 1),
    "totals": (float, 1),
    "normals": (float, 3),
    "n_of_class": (float, 2),
    "errors": (float, 1),
    "info": (np.int64, 1),
    "digests": (np.int64, 1),
    "stamps": (np.int64, 1),
    "waiting": (float, 3),
    "inputs": (float, 2),
    "row": (float, 1),
    "matrix": (float, 2),
    "factors_of_classes": (float, 1),
    "p": (float, 1),
    "z": (float, 1),
    "raw": (float, 2),
}
"""The arguments of all calls: numbers, and the type and dimensions of arrays, which are in C order.

They are written to memory once (`words_of`), and calls get their address.
"""
_FURTHER: dict[str, Any] = {
    "margins_of": int,
    "learn": int,
    "parts": int,
    "factors": (np.float32, 1),
    "edges": (np.float32, 1),  # (bits,): its rows are bits, see `rank_bits`; (0,): they are not
    "bit_columns": (np.int32, 1),  # (bits,)
    "values": (np.float32, 1),  # (bits,), (room,): its row
    "costs": (float, 1),  # (classes,): C_i of an example of each class that weighs 1
    "targets": (float, 2),
    "numbers": (np.int64, 1),
    "n_learnt": (np.int64, 1),
    "margins": (float, 2),
    "further": int,
}
"""The same of each further model whose scores are combined: see `_FIELDS`."""
EVENT_COLUMNS, SORT_RANKS, SORTED_COLUMNS, LAST_COLUMNS = range(4)
"""Rows of the field `columns`: the columns of an event, written by Python; scratch of `list_event`;
the columns of the row in increasing order; the columns of the row that was predicted last."""
EXAMPLE, LAST_LENGTH, N_SCORES, FIRST_SCORE, SLOT, MARKS, BEHIND = range(7)
"""Entries of the field `numbers`: the number of the example; the length of the row that was
predicted last, or -1; how many margins are scores, and where these begin; the number of the model
among those that are combined; which of these erred on the event learnt last, as bits, and the
combination after them; and which could not learn it, as there was no room."""


def _kind_of(name: str, fields: dict[str, Any]) -> Any:
    """Return a NamedTuple of fields, and numba's type of it."""
    made = namedtuple(name, fields)  # type: ignore[misc]
    kinds = fields.values()
    return made, typeof(
        made(*(0 if kind is int else np.zeros((1,) * kind[1], kind[0]) for kind in kinds))
    )


_Arguments, _KIND = _kind_of("_Arguments", _FIELDS)
_Further, _FURTHER_KIND = _kind_of("_Further", _FURTHER)


class Arguments:
    """Values of `_FIELDS`, or `_FURTHER`, for the functions below, which take its `address`."""

    _fields, _made = _FIELDS, _Arguments

    def __init__(self, **values: Any) -> None:
        for name, kind in self._fields.items():
            value = values[name]
            if kind is not int and not (
                value.dtype == kind[0] and value.ndim == kind[1] and value.flags.c_contiguous
            ):
                raise TypeError(f"{name}: {value.dtype}, {value.shape}, not {kind}")
        self.values = self._made(**values)
        self.address: Any = self.values
        if JIT:
            self._words = np.array(words_of(self.values), np.int64)
            self.address = self._words.ctypes.data


class FurtherArguments(Arguments):
    """Values of `_FURTHER`."""

    _fields, _made = _FURTHER, _Further


# Compiled code


@compiled_inner
def _scores(args):
    """Return the scores, or the margin, of a model."""
    # LASVM writes probabilities behind the scores: see `outputs.ProblemOutputs`.
    first = args.numbers[FIRST_SCORE]
    return args.margins[0, first : first + args.numbers[N_SCORES]]


@compiled_inner
def _combination(args):
    state = CombinationState(
        args.weights, args.curvature, args.leads, args.linear, args.moments, args.counts,
        args.known, args.totals, args.normals, args.n_of_class, args.errors, args.info,
        args.digests, args.stamps, args.waiting,
    )  # fmt: skip
    return state, Scratch(
        args.inputs, args.row, args.matrix, args.factors_of_classes, args.p, args.z, args.raw
    )


@compiled_inner
def _scaled(args, x):
    """Return a dense row, float32 (1, d), multiplied by the factors, if there are any."""
    if args.factors.size == 0:
        return x
    d = x.shape[1]
    for c in range(d):
        args.values[c] = scaled_value(x[0, c], args.factors[c])
    return args.values[:d].reshape(1, d)


@compiled_inner
def _scaled_listed(args, x):
    """Return a sparse row, multiplied by the factors, if there are any."""
    if args.factors.size == 0:
        return x
    for t in range(x.start[1]):
        args.values[t] = scaled_value(x.values[t], args.factors[x.columns[t]])
    return SparseRows(x.start, x.columns, args.values, x.d)


@compiled_inner
def _dense_row_of(more, x):
    if more.edges.size > 0:
        write_bits(more.edges, more.bit_columns, x[0], more.values)
        return more.values.reshape(1, more.values.size)
    return _scaled(more, x)


@compiled_inner
def _sparse_row_of(more, x):
    return _scaled_listed(more, x)


# _row_of(more, x): a row as a further model sees it.
_row_of: Any = chosen_by(1, {np.ndarray: _dense_row_of, SparseRows: _sparse_row_of})


@compiled_inner
def _are_finite(margins):
    for o in range(margins.size):
        if not np.isfinite(margins[0, o]):
            return False
    return True


@compiled_inner
def _note_scores(args, one):
    """Note the scores of one of the models."""
    scores = _scores(one)
    for o in range(scores.size):
        args.scores[one.numbers[SLOT], o] = scores[o]


@compiled_inner
def _predict_further(args, x):
    """Let the further models predict a row as it came; tell whether all margins are finite."""
    at, are_finite = args.further, True
    while at != 0:
        more = reference_at(at, _FURTHER_KIND)
        row = _row_of(more, x)
        call_margins(more.margins_of, more.parts, None, row, more.margins)
        are_finite &= _are_finite(more.margins)
        _note_scores(args, more)
        at = more.further
    return are_finite


@compiled_inner
def _learn_further(args, x, is_last):
    """Let the further models learn a row as it came.

    One whose state is full only predicts it, and is in `BEHIND`.
    """
    args.numbers[BEHIND] = 0
    at, number, weight = args.further, args.targets[0, 0], args.targets[2, 0]
    while at != 0:
        more = reference_at(at, _FURTHER_KIND)
        row = _row_of(more, x)
        y, costs, weights = more.targets[0], more.targets[1], more.targets[2]
        y[0], costs[0], weights[0] = number, more.costs[np.int64(number)] * weight, weight
        more.numbers[EXAMPLE] = more.n_learnt[0] + 1
        done = call_learn(
            more.learn, more.parts, None, row, is_last, y, costs, weights, more.numbers,
            more.margins,
        )  # fmt: skip
        if done == 0:
            call_margins(more.margins_of, more.parts, None, row, more.margins)
            args.numbers[BEHIND] |= 1 << more.numbers[SLOT]
        else:
            more.n_learnt[0] += 1
        _note_scores(args, more)
        at = more.further


@compiled_inner
def _predicted(args, x, n, is_sparse):
    """Return the index of the label that the margins predict; -1 if they are not finite.

    The row, x as it came, has n of the `last_values`.
    """
    # The general path refuses what is not finite.
    if not _are_finite(args.margins):
        return -1
    if args.weights.size == 0:
        return label_index(_scores(args))
    if not _predict_further(args, x):
        return -1
    columns = args.columns[LAST_COLUMNS]
    row = digest(columns, args.last_values, n, is_sparse, args.info[combination.WIDTH])
    is_again = args.asked[N_PREDICTED] > 0 and args.asked[LAST_ROW] == row
    is_next_one = is_next(args.asked, row)
    _note_scores(args, args)
    state, scratch = _combination(args)
    if is_again:
        combination.forget_inputs(state, row)
    combination.combine(
        state, args.scores, args.last_values, columns, n, is_sparse, is_next_one, scratch,
        args.combined,
    )  # fmt: skip
    combination.keep_inputs(state, row, scratch)
    return label_index(args.combined)


@compiled_inner
def _learn_combined(args, x, is_last, values, columns, n, is_sparse):
    """Let the further models, and the combination, learn a row that the first one has learnt."""
    _learn_further(args, x, is_last)
    _note_scores(args, args)
    row = digest(columns, values, n, is_sparse, args.info[combination.WIDTH])
    state, scratch = _combination(args)
    if args.asked[LAST_ROW] == row:
        combination.forget_inputs(state, row)
    # First, as for a batch of one row: whether labels come late is known of this event, too.
    note_learnt(args.asked, row)
    args.info[combination.IS_LATE] = args.asked[IS_LATE]
    label, weight = np.int64(args.targets[0, 0]), args.targets[2, 0]
    combination.learn(
        state, args.scores, values, columns, n, is_sparse, knows_last(args.asked), row, label,
        weight, scratch, args.combined,
    )  # fmt: skip
    args.numbers[MARKS] = combination.marks_of(args.scores, args.combined, label, weight)


@compiled_inner
def _learn(args, x, row, is_last, number, cost, weight, values, columns, n, is_sparse):
    """Learn a row; return the index of the label predicted before, or -1 if it was not learnt.

    `x` is the row as it came, of which `values` and `columns` are n, and `row` as the solver
    compares it.
    """
    margins = args.margins
    y, costs, weights = args.targets[0], args.targets[1], args.targets[2]
    y[0], costs[0], weights[0], args.numbers[EXAMPLE] = number, cost, weight, args.n_learnt[0] + 1
    done = call_learn(
        args.learn, args.parts, None, row, is_last, y, costs, weights, args.numbers, margins
    )
    if done == 0:
        return -1
    # Here, not in Python, where an interruption may come first.
    args.n_learnt[0] += 1
    scores, label = _scores(args), np.int64(number)
    if args.weights.size > 0:
        _learn_combined(args, x, is_last, values, columns, n, is_sparse)
        scores = args.combined
    predicted = label_index(scores)
    if scores.size > 1:
        if args.calibration.size > 0:
            update_temperature_one(args.calibration, scores, label)
    elif args.calibration.size == _THINNED_SIZE:
        update_thinned_one(args.calibration, scores[0], number)
    else:
        update_one(args.calibration, scores[0], number)
    return predicted


@compiled
def predict_dense(address, d):
    """Predict a dense event of d features; return the index of the label, or -1."""
    args = reference_at(address, _KIND)
    args.numbers[LAST_LENGTH] = -1
    if fill(args.event_values[:d], args.row_values[:d], args.statistics, args.policy) >= 0:
        return -1
    for c in range(d):
        args.last_values[c] = args.row_values[c]
    x = args.last_values[:d].reshape(1, d)
    row = _scaled(args, x)
    call_margins(args.margins_of, args.parts, None, row, args.margins)
    args.numbers[LAST_LENGTH] = d
    return _predicted(args, x, d, False)


@compiled
def learn_dense(address, d, number, cost, weight):
    """Learn a dense event of d features; return the index of the label predicted before, or -1."""
    args = reference_at(address, _KIND)
    if fill(args.event_values[:d], args.row_values[:d], args.statistics, args.policy) >= 0:
        return -1
    is_last = args.numbers[LAST_LENGTH] == d
    for c in range(d):
        is_last &= args.row_values[c] == args.last_values[c]
    x = args.row_values[:d].reshape(1, d)
    row = _scaled(args, x)
    columns = args.columns[LAST_COLUMNS]
    label_index = _learn(
        args, x, row, is_last, number, cost, weight, args.row_values, columns, d, False
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
    return _predicted(args, x, x.start[1], True)


@compiled
def learn_sparse(address, n, d, is_hashed, number, cost, weight):
    """Learn a sparse event of n values; return the index of the label predicted before, or -1."""
    args = reference_at(address, _KIND)
    x = _sparse_row(args, n, d, is_hashed)
    if x.start[1] < 0:
        return -1
    is_last = _is_last(args, x, args.numbers[LAST_LENGTH])
    row, n = _scaled_listed(args, x), x.start[1]
    return _learn(args, x, row, is_last, number, cost, weight, x.values, x.columns, n, True)
