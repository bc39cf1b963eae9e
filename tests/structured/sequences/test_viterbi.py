"""Viterbi and max-marginals against all sequences of labels."""

from itertools import product

import numpy as np
import pytest

from streamsvm.structured.sequences.pairs import max_marginals, viterbi


def scratch(scores):
    return np.zeros_like(scores), np.zeros(scores.shape, np.int32)


def score_of(scores, moves, labels):
    before = [0, *(c + 1 for c in labels)]
    return sum(scores[t, c] + moves[before[t], c] for t, c in enumerate(labels))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_the_best_of_all_sequences(n, length):
    random = np.random.default_rng(10 * n + length)
    for _ in range(20):
        # Room for more labels, whose scores must not matter.
        scores = random.normal(size=(length, n + 3)).astype(np.float32)
        moves = random.normal(size=(n + 4, n + 3)).astype(np.float32)
        scores[:, n:] = moves[:, n:] = 100.0
        labels, margins = np.zeros(length, np.int32), np.zeros((length, n))
        viterbi(scores, moves, n, *scratch(scores), labels)
        max_marginals(scores, moves, n, *scratch(scores), margins)
        every = [(score_of(scores, moves, s), s) for s in product(range(n), repeat=length)]
        assert tuple(labels) == max(every)[1]
        for t in range(length):
            for c in range(n):
                assert margins[t, c] == pytest.approx(
                    max(score for score, s in every if s[t] == c), abs=1e-4
                )


def test_of_equally_good_labels_the_first():
    scores, labels = np.zeros((4, 8), np.float32), np.ones(4, np.int32)
    viterbi(scores, np.zeros((9, 8), np.float32), 8, *scratch(scores), labels)
    assert labels.tolist() == [0, 0, 0, 0]
