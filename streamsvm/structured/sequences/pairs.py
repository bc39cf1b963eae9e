"""Sequences of labels of one sentence: what two differ in, a step along it; the most violating one.

Only tokens at which the labels differ, and moves that differ, count: the rest cancels out.
`rows` are the features of the tokens, `SparseRows`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner, compiled_within
from streamsvm.structured.sequences.model import add_scores
from streamsvm.structured.sequences.viterbi import viterbi


@compiled_within
def _before(labels, t):
    """Return the row of `moves` for the label before token t."""
    return labels[t - 1] + 1 if t > 0 else 0


@compiled_inner
def rise_of(model, order, rows, up, down):
    """Return the score of the labels `up` less that of `down`."""
    weights, moves, rise = model.weights, model.moves, 0.0
    for t in range(up.size):
        a, b = up[t], down[t]
        if a != b:
            for j in range(rows.start[t], rows.start[t + 1]):
                row = weights[rows.columns[j]]
                rise += (np.float64(row[a]) - np.float64(row[b])) * rows.values[j]
        if order > 0:
            p, q = _before(up, t), _before(down, t)
            if a != b or p != q:
                rise += np.float64(moves[0, p, a]) - np.float64(moves[0, q, b])
    return rise


@compiled_inner
def loss_of(cost, truth, labels):
    """Return the Hamming loss of labels: the costs of the tokens at which they are wrong."""
    loss = 0.0
    for t in range(truth.size):
        if labels[t] != truth[t]:
            loss += cost[truth[t]]
    return loss


@compiled_inner
def distance_of(order, rows, up, down, scratch):
    """Return |Phi_e(x, up) - Phi_e(x, down)|^2."""
    columns, values, spread, steps = rows.columns, rows.values, scratch.spread, scratch.steps
    square = 0.0
    for c in range(steps.shape[1]):
        for t in range(up.size):
            if up[t] != down[t] and (up[t] == c or down[t] == c):
                sign = 1.0 if up[t] == c else -1.0
                for j in range(rows.start[t], rows.start[t + 1]):
                    add = sign * values[j]
                    # (s + a)^2 = s^2 + a (2 s + a)
                    square += add * (2.0 * spread[columns[j]] + add)
                    spread[columns[j]] += add
        for t in range(up.size):
            if up[t] != down[t] and (up[t] == c or down[t] == c):
                for j in range(rows.start[t], rows.start[t + 1]):
                    spread[columns[j]] = 0.0
    if order == 0:
        return square
    for t in range(up.size):
        p, q = _before(up, t), _before(down, t)
        square += 2.0 * steps[p, up[t]] + 1.0
        steps[p, up[t]] += 1.0
        square += 1.0 - 2.0 * steps[q, down[t]]
        steps[q, down[t]] -= 1.0
    for t in range(up.size):
        steps[_before(up, t), up[t]] = 0.0
        steps[_before(down, t), down[t]] = 0.0
    return square


@compiled_inner
def move_weights(weights, moves, order, rows, up, down, step):
    """Add step (Phi_e(x, up) - Phi_e(x, down)) to the weights."""
    for t in range(up.size):
        a, b = up[t], down[t]
        if a != b:
            for j in range(rows.start[t], rows.start[t + 1]):
                add = np.float32(step * rows.values[j])
                weights[rows.columns[j], a] += add
                weights[rows.columns[j], b] -= add
        if order > 0:
            p, q = _before(up, t), _before(down, t)
            if a != b or p != q:
                moves[0, p, a] += np.float32(step)
                moves[0, q, b] -= np.float32(step)


class Scratch(NamedTuple):
    """Arrays whose content is not needed after a call."""

    scores: np.ndarray  # float32 (tokens, classes)
    best: np.ndarray  # float32, the same
    back: np.ndarray  # int32, the same
    spread: np.ndarray  # float64 (features,), 0 between calls
    steps: np.ndarray  # float64 (pasts, classes), 0 between calls


def new_scratch(n_tokens: int, n_features: int, classes: int) -> Scratch:
    """Return scratch for sentences of up to so many tokens."""
    shape = (n_tokens, classes)
    return Scratch(
        np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros(shape, np.int32),
        np.zeros(n_features), np.zeros((classes + 1, classes)),
    )  # fmt: skip


@compiled_inner
def best_labels(model, rows, truth, n, scratch):
    """Return the labels of the largest score plus Delta; of the largest score if truth is empty."""
    n_tokens, start = rows.start.size - 1, rows.start
    scores = scratch.scores[:n_tokens]
    scores[:] = 0.0
    for t in range(n_tokens):
        add_scores(model.weights, rows.columns, rows.values, start[t], start[t + 1], scores[t])
    for t in range(truth.size):
        cost = np.float32(model.cost[truth[t]])
        for c in range(n):
            if c != truth[t]:
                scores[t, c] += cost
    labels = np.empty(n_tokens, np.int32)
    viterbi(scores, model.moves[0], n, scratch.best, scratch.back, labels)
    return labels


@compiled_inner
def violation(model, order, rows, truth, labels):
    """Return h(labels) - h(truth): the loss of labels, and how much more they score."""
    return loss_of(model.cost, truth, labels) + rise_of(model, order, rows, labels, truth)
