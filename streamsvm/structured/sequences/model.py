"""The weights of a linear model of label sequences.

Label c of token x, after the k labels before it, has the score

    sum_f weights[f, c] x_f  +  sum_{s < k} moves[s, past_s, c]

where past_s is 1 + the label s + 1 tokens before, or 0 where the sentence has no such token. This
is <w, Phi_g> of the thesis, 5.3.1.

Weights are float32: a pass over them is bound by the memory that it reads. An averaged learner has
the mean of the weights after each example, w - late / n: an update of example i is in the weights
of examples i .. n, so `late` gets i - 1 times the update.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner, compiled_within, prefetch
from streamsvm.support import looks, states
from streamsvm.support.declaration import NOT_NEGATIVE, Record, field
from streamsvm.support.states import declare

LANES = 8
"""The number of labels to have room for is a multiple of it, so that loops are vectorised."""

INFO = np.dtype(
    [
        ("n_sentences", np.int64),  # learnt so far
        ("n_tokens", np.int64),
        ("n_steps", np.int64),  # steps that were tried
        ("n_moved", np.int64),  # steps that changed coefficients
        ("n_forgotten", np.int64),  # support patterns removed by a bound
        ("square_norm", np.float64),  # |w|^2, summed step by step; of LaRank only
        ("reach", np.float64),  # largest |Phi(i, c) - Phi(i, c')| of a pattern so far
        ("loss_most", np.float64),  # largest loss that a pattern so far can have
        *looks.SCALARS,
    ]
)


class Model(NamedTuple):
    """Weights, with room for more features and labels."""

    weights: np.ndarray = field("features", "classes", dtype=np.float32)
    # Pasts are classes + 1.
    moves: np.ndarray = field("orders", "pasts", "classes", dtype=np.float32)
    # As these; without rows if the learner is not averaged.
    late: np.ndarray = field("late_features", "classes", dtype=np.float32)
    late_moves: np.ndarray = field("late_orders", "pasts", "classes", dtype=np.float32)
    # What a wrong label costs at a token with this label.
    cost: np.ndarray = field("classes", fill=1, range=NOT_NEGATIVE)
    look_draws: np.ndarray = looks.DRAWS  # the state of the generator of looks
    info: Any = Record(INFO)


declare(Model)


def new_model(orders: int, is_averaged: bool) -> Model:
    """Return a model without features."""
    orders = max(1, orders)
    sizes = {"features": 0, "classes": LANES, "orders": orders, "pasts": LANES + 1}
    late = {"late_features": 0, "late_orders": orders if is_averaged else 0}
    return states.new(Model, sizes | late)


def grown(model: Model, features: int, classes: int, most_features: int) -> Model:
    """Return a model with room for at least so many features and classes; maybe the same."""
    rows, lanes = model.weights.shape
    if features > rows:
        rows = max(features, min(2 * rows, most_features))
    if classes > lanes:
        lanes = -(-max(classes, 2 * lanes) // LANES) * LANES
    if (rows, lanes) == model.weights.shape:
        return model
    late_orders = len(model.late_moves)
    sizes = {"features": rows, "classes": lanes, "orders": len(model.moves), "pasts": lanes + 1}
    late = {"late_features": rows if late_orders else 0, "late_orders": late_orders}
    return states.grown_arrays(model, sizes | late)


class Schedule(NamedTuple):
    """How to learn; all numbers are int64."""

    method: int  # LARANK, PASSIVE_AGGRESSIVE or PERCEPTRON
    order: int  # labels before a token that its label depends on
    n_reprocess: int  # n_R: how often PROCESSOLD and OPTIMIZE follow each PROCESSNEW
    n_optimize: int  # OPTIMIZE steps after each PROCESSOLD
    limit: int  # most support patterns


LARANK, PASSIVE_AGGRESSIVE, PERCEPTRON = range(3)


@compiled_within
def add_scores(weights, columns, values, begin, stop, out):
    """Add the scores of all labels for entries begin .. stop-1."""
    j = begin
    # Four rows at a time: the loop over a few labels costs more to enter than to run.
    while j + 4 <= stop:
        a, b = weights[columns[j]], weights[columns[j + 1]]
        c, d = weights[columns[j + 2]], weights[columns[j + 3]]
        p, q, r, s = values[j], values[j + 1], values[j + 2], values[j + 3]
        for k in range(out.size):
            out[k] += (a[k] * p + b[k] * q) + (c[k] * r + d[k] * s)
        j += 4
    while j < stop:
        row, value = weights[columns[j]], values[j]
        for k in range(out.size):
            out[k] += row[k] * value
        j += 1


@compiled_within
def add_moves(moves, order, past, out):
    """Add the scores of all labels after the labels in `past`."""
    for s in range(order):
        row = moves[s, past[s]]
        for c in range(out.size):
            out[c] += row[c]


@compiled_within
def change(weights, columns, values, begin, stop, up, down, step):
    """Add step times the features begin .. stop-1 to the weights of a label, from another's."""
    for j in range(begin, stop):
        add = np.float32(step * values[j])
        weights[columns[j], up] += add
        weights[columns[j], down] -= add


@compiled_within
def change_moves(moves, order, past, up, down, step):
    """Add a step to the moves from the labels in `past` to a label, from those to another one."""
    for s in range(order):
        moves[s, past[s], up] += np.float32(step)
        moves[s, past[s], down] -= np.float32(step)


@compiled_within
def load_early(weights, columns, begin, stop):
    """Ask for the weights of features that are needed soon."""
    for j in range(begin, stop):
        prefetch(weights, columns[j], 0)
        # A line of the processor's cache holds 16 weights.
        if weights.shape[1] > 16:
            prefetch(weights, columns[j], 16)


@compiled_within
def square_of(values, begin, stop):
    """Return the sum of the squares of values begin .. stop-1."""
    total = 0.0
    for j in range(begin, stop):
        total += np.float64(values[j]) * np.float64(values[j])
    return total


@compiled_inner
def mean_weights(weights, late, n, columns, values, begin, stop, out):
    """Add the scores by the mean of the weights after each of n examples."""
    for j in range(begin, stop):
        value = values[j]
        for c in range(out.size):
            out[c] += (weights[columns[j], c] - late[columns[j], c] / n) * value


@compiled_within
def note_step(info, rise, step, square):
    """Update |w|^2 for a step along a direction, of which `square` is the square of the length.

    `rise` is the product of w, before the step, and the direction.
    """
    info.square_norm += step * (2.0 * rise + step * square)


@compiled_within
def note_pattern(info, cost, square, loss):
    """Take C_i, the largest |Phi(i, c) - Phi(i, c')|^2 and the largest loss of a new pattern."""
    looks.note_cost(info, cost)
    info.reach = max(info.reach, np.sqrt(square))
    info.loss_most = max(info.loss_most, loss)


@compiled_inner
def drawn_pattern(model, patterns):
    """Return the slot of a pattern, drawn in proportion to C_i; -1 if there is none."""
    active = patterns.active
    n = active.counts[0].n_members
    if n == 0:
        return np.int64(-1)
    return looks.heavy_member(
        model.look_draws, active.members, n, patterns.cost, model.info[0].cost_most
    )


@compiled_within
def note_look(info, part):
    """Take a look at a pattern, whose part of the gap is C_i times `part`.

    Two classes differ in score by |w| times `reach`, at most, and in loss by `loss_most`.
    """
    bound = info.loss_most + info.reach * np.sqrt(max(0.0, info.square_norm))
    # Not outside of its bounds by rounding.
    looks.record(info, min(bound, max(0.0, part)), bound, 1.0)
    info.n_looked += 1


@compiled_within
def shift(past, label):
    """Put a label in front of those before the next token."""
    for s in range(past.size - 1, 0, -1):
        past[s] = past[s - 1]
    past[0] = label + 1
