"""Compiled methods that predict and learn one event of a linear learner, dense or sparse.

The interpreter passes the event and its label as objects; all else that a method needs is in a
table of addresses. No other Python code runs during a call. A method falls back while another
thread uses the model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from streamsvm._compile import array_at, compiled_for_c, compiled_within
from streamsvm._parameter_checks import LARGEST_FACTOR
from streamsvm.features.missing import N_ROWS, fill, note
from streamsvm.native_events import python_objects as py
from streamsvm.native_events.event_block import keep, room_of
from streamsvm.native_events.event_rows import read_any, read_dense, read_known
from streamsvm.native_events.fast_path import N_HEAD, READER, is_open, table_at
from streamsvm.native_events.python_methods import argument, methods_of, new_reference
from streamsvm.solvers.linear.state import N_INFO, LinearState, Schedule, margin_of, sign_of
from streamsvm.solvers.linear.step import Step, learn_row
from streamsvm.support.calibration import update_temperature_one, update_thinned_one

# The fields of the table, int64 (N_TABLE,), after those that all tables begin with. The address of
# the numbers, float64 (9,): the schedule, then 0 for SGD or 1 for SGD-QN. The addresses of the
# count of examples, of the weights and of info. The shape of the weights.
NUMBERS, N_LEARNT, WEIGHTS, INFO, N_OUTPUTS, N_PARTS, N_COLUMNS = range(N_HEAD, N_HEAD + 7)
# The addresses of the calibration, and of the head of a block that keeps the first events, or 0.
CALIBRATION, BLOCK = N_HEAD + 7, N_HEAD + 8
# The number of labels, and the addresses of: the labels, int64, which are addresses of objects, the
# negative one of two first; their weights, float64; the last margins, one for each output. Then the
# index of the label that was learnt last.
N_LABELS, LABELS, FACTORS, MARGINS, LAST_LABEL = range(N_HEAD + 9, N_HEAD + 14)
# For missing values in dense rows: the address of the statistics, how many features these have room
# for, what takes the place of missing values, and the address of the filled row.
STATISTICS, N_STATISTICS, POLICY, FILLED = range(N_HEAD + 14, N_HEAD + 18)
# The objects that the methods return.
LEARNT, BUFFER_FULL, FALL_BACK = range(N_HEAD + 18, N_HEAD + 21)
N_TABLE = N_HEAD + 21
N_NUMBERS = 9
_STEP = 8


@compiled_within
def _state_of(table):
    """Return the state, the schedule and the step."""
    shape = (table[N_OUTPUTS], table[N_PARTS], table[N_COLUMNS])
    weights = array_at(table[WEIGHTS], shape, np.float64)
    info = array_at(table[INFO], (table[N_OUTPUTS], N_INFO), np.float64)
    s = array_at(table[NUMBERS], (N_NUMBERS,), np.float64)
    schedule = Schedule(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
    return LinearState(weights, info), schedule, Step(s[_STEP])


@compiled_within
def _statistics(table):
    return array_at(table[STATISTICS], (N_ROWS, table[N_STATISTICS]), np.float64)


@compiled_within
def _filled(table, row):
    """Return a copy of a dense row without missing values."""
    filled = array_at(table[FILLED], (row.size,), np.float32)
    fill(row[0], filled, _statistics(table), table[POLICY])
    return filled.reshape(1, row.size)


@compiled_within
def _predicted(table, row):
    """Return the predicted label of a row, one of the objects in the table."""
    state, schedule, _ = _state_of(table)
    outputs = table[N_OUTPUTS]
    margins = array_at(table[MARGINS], (outputs,), np.float64)
    best, most = 0, 0.0
    for o in range(outputs):
        f = margins[o] = margin_of(state, row, 0, o, schedule)
        if np.isnan(f):
            # Comparisons below would be meaningless.
            return table[FALL_BACK]
        if outputs == 1:
            best = 1 if f > 0.0 else 0
        elif o == 0 or f > most:
            best, most = o, f
    return array_at(table[LABELS], (table[N_LABELS],), np.int64)[best]


@compiled_within
def _class_of(table, y):
    """Return the index of label y; -1 if it is none of the table's, or of a type not read here."""
    n = table[N_LABELS]
    labels = array_at(table[LABELS], (n,), np.int64)
    for c in range(n):
        if labels[c] == y:
            return c
    kinds = array_at(table[READER], (py.N_KINDS,), np.int64)
    if py.is_simple(y, kinds):
        for c in range(n):
            if py.is_simple(labels[c], kinds) and py.are_equal(labels[c], y, kinds):
                return c
    return -1


@compiled_within
def _learn(table, row, c, w):
    """Learn a row of class c, and append it to the block, if any.

    Returns
    -------
    The object `LEARNT` or `BUFFER_FULL`; `FALL_BACK` if the block has no room for the row.

    """
    state, schedule, step = _state_of(table)
    outputs = table[N_OUTPUTS]
    weight = w * array_at(table[FACTORS], (table[N_LABELS],), np.float64)[c]
    margins = array_at(table[MARGINS], (outputs,), np.float64)
    y = np.float64(c) if outputs > 1 else 2.0 * c - 1.0
    # First, as nothing may be learnt that is not kept.
    if table[BLOCK] != 0 and not keep(table[BLOCK], row, y, weight):
        return table[FALL_BACK]
    for o in range(outputs):
        side = sign_of(y, o, outputs)
        margins[o] = learn_row(state, step, row, 0, o, side, weight, schedule)
    if outputs == 1:
        update_thinned_one(array_at(table[CALIBRATION], (6,), np.float64), margins[0], y)
    else:
        update_temperature_one(array_at(table[CALIBRATION], (2,), np.float64), margins, c)
    table[LAST_LABEL] = c
    array_at(table[N_LEARNT], (1,), np.int64)[0] += 1
    if table[BLOCK] != 0 and room_of(table[BLOCK]) == 0:
        return table[BUFFER_FULL]
    return table[LEARNT]


@compiled_within
def _example_of(table, arguments, n):
    """Return class and weight of the arguments (event, label[, weight]); class -1 to fall back."""
    if n != 2 and n != 3:
        return -1, 0.0
    w = 1.0
    if n == 3:
        kinds = array_at(table[READER], (py.N_KINDS,), np.int64)
        w = py.number(argument(arguments, 2), kinds)
    # The general path refuses other weights, NaN included.
    usable = 0.0 <= w <= LARGEST_FACTOR
    return (_class_of(table, argument(arguments, 1)) if usable else -1), w


@compiled_within
def _may_learn(owner, table):
    if not is_open(owner, table):
        return False
    return table[BLOCK] == 0 or room_of(table[BLOCK]) != 0


@compiled_for_c
def predict_dense(owner, x):
    """Predict an event as a dense row; return its label, or the object `FALL_BACK`."""
    table = table_at(owner, N_TABLE)
    found = table[FALL_BACK]
    if is_open(owner, table):
        row, is_read = read_dense(table[READER], x, 0.0)
        if is_read:
            found = _predicted(table, _filled(table, row))
    return new_reference(found)


@compiled_for_c
def learn_dense(owner, arguments, n):
    """Learn an event as a dense row; return the object `LEARNT`, `BUFFER_FULL` or `FALL_BACK`."""
    table = table_at(owner, N_TABLE)
    found = table[FALL_BACK]
    if _may_learn(owner, table):
        c, w = _example_of(table, arguments, n)
        if c >= 0:
            row, is_read = read_dense(table[READER], argument(arguments, 0), 1.0)
            if is_read:
                found = _learn(table, _filled(table, row), c, w)
                if found != table[FALL_BACK]:
                    note(row[0], _statistics(table))
    return new_reference(found)


@compiled_for_c
def predict_sparse(owner, x):
    """Predict an event as a sparse row; return its label, or the object `FALL_BACK`."""
    table = table_at(owner, N_TABLE)
    found = table[FALL_BACK]
    if is_open(owner, table):
        row = read_known(table[READER], x)
        if row.start[1] >= 0:
            found = _predicted(table, row)
    return new_reference(found)


@compiled_for_c
def learn_sparse(owner, arguments, n):
    """Learn an event as a sparse row; return the object `LEARNT`, `BUFFER_FULL` or `FALL_BACK`."""
    table = table_at(owner, N_TABLE)
    found = table[FALL_BACK]
    if _may_learn(owner, table):
        c, w = _example_of(table, arguments, n)
        if c >= 0:
            row = read_any(table[READER], argument(arguments, 0))
            if row.start[1] >= 0:
                found = _learn(table, row, c, w)
    return new_reference(found)


@cache
def methods(is_sparse: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the factories of methods that predict and that learn: see `methods_of`."""
    functions = (predict_sparse, learn_sparse) if is_sparse else (predict_dense, learn_dense)
    return methods_of(functions[0]), methods_of(functions[1])
