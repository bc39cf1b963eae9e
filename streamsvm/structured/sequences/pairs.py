"""Sequences of labels of one sentence: what two differ in, a step along it; the most violating one.

Only tokens at which the labels differ, and moves that differ, count: the rest cancels out.
`rows` are the features of the tokens, `SparseRows`.

The best sequence is found by the Viterbi algorithm, for a chain of order 1. A sequence y of T
labels has the score sum_t (scores[t, y_t] + moves[y_{t-1} + 1, y_t]); row 0 of `moves` is for the
first token, which has no label before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner, compiled_within
from streamsvm.structured.sequences.model import add_scores


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


@compiled_inner
def _forward(scores, moves, n, best, back):
    """Set best[t, c] to the best score of labels 0 .. t that end in c, back[t, c] to its label t-1.

    Of equally good labels the first is taken.
    """
    for c in range(n):
        best[0, c] = scores[0, c] + moves[0, c]
        back[0, c] = 0
    for t in range(1, scores.shape[0]):
        before, now, came = best[t - 1], best[t], back[t]
        for c in range(n):
            now[c] = before[0] + moves[1, c]
            came[c] = 0
        for p in range(1, n):
            score = before[p]
            for c in range(n):
                # Two selections and no branch, so that the loop is vectorised.
                along = score + moves[p + 1, c]
                better = along > now[c]
                now[c] = along if better else now[c]
                came[c] = p if better else came[c]
        for c in range(n):
            now[c] += scores[t, c]


@compiled_inner
def viterbi(scores, moves, n, best, back, labels):
    """Set `labels` to the best sequence of labels below n.

    Parameters
    ----------
    scores
        float32 (T, >= n): the score of each label at each token; T is at least 1.
    moves
        float32 (> n, >= n): the score of a label after another one.
    n
        Number of labels, at least 1.
    best, back
        Scratch: float32 and int32 (T, >= n).
    labels
        int32 (T,): the result.

    """
    _forward(scores, moves, n, best, back)
    last = scores.shape[0] - 1
    c = 0
    for other in range(1, n):
        if best[last, other] > best[last, c]:
            c = other
    for t in range(last, -1, -1):
        labels[t] = c
        c = back[t, c]


@compiled_inner
def max_marginals(scores, moves, n, best, back, margins):
    """Set margins[t, c] to the score of the best sequence that has label c at token t.

    Parameters
    ----------
    scores, moves, n, best, back
        As for `viterbi`.
    margins
        float64 (T, n): the result.

    """
    _forward(scores, moves, n, best, back)
    after, later = np.zeros(n), np.zeros(n)
    for t in range(scores.shape[0] - 1, -1, -1):
        for c in range(n):
            margins[t, c] = best[t, c] + after[c]
            later[c] = after[c] + scores[t, c]
        for p in range(n):
            after[p] = later[0] + moves[p + 1, 0]
            for c in range(1, n):
                after[p] = max(after[p], later[c] + moves[p + 1, c])
