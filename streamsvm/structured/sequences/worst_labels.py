"""The sequence of labels of a sentence that violates most, by Viterbi."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled_inner
from streamsvm.structured.sequences.model import add_scores
from streamsvm.structured.sequences.pairs import loss_of, rise_of
from streamsvm.structured.sequences.viterbi import viterbi


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
def best_labels(model, columns, values, offsets, truth, n, scratch):
    """Return the labels of the largest score plus Delta; of the largest score if truth is empty."""
    n_tokens = offsets.size - 1
    scores = scratch.scores[:n_tokens]
    scores[:] = 0.0
    for t in range(n_tokens):
        add_scores(model.weights, columns, values, offsets[t], offsets[t + 1], scores[t])
    for t in range(truth.size):
        cost = np.float32(model.cost[truth[t]])
        for c in range(n):
            if c != truth[t]:
                scores[t, c] += cost
    labels = np.empty(n_tokens, np.int32)
    viterbi(scores, model.moves[0], n, scratch.best, scratch.back, labels)
    return labels


@compiled_inner
def violation(model, order, columns, values, offsets, truth, labels):
    """Return h(labels) - h(truth): the loss of labels, and how much more they score."""
    rise = rise_of(model.weights, model.moves, order, columns, values, offsets, labels, truth)
    return loss_of(model.cost, truth, labels) + rise
