"""Chunks, counted as conlleval counts them."""

import numpy as np
import pytest

from streamsvm.structured.chunks import ChunkScore, chunks_of


def starts(before, label):
    """Tell whether a chunk starts at a label, by the table of conlleval."""
    (p, a), (q, b) = (x.split("-") if "-" in x else (x, "") for x in (before, label))
    return q == "B" or (q == "I" and (p == "O" or a != b))


def ends(label, after):
    (p, a), (q, b) = (x.split("-") if "-" in x else (x, "") for x in (label, after))
    return p in "BI" and (q in ("B", "O") or a != b)


def counted(true, predicted):
    """Return right, predicted and true chunks, token by token as conlleval goes."""
    right = n_predicted = n_true = 0
    inside = False
    true, predicted = ["O", *true, "O"], ["O", *predicted, "O"]
    for t in range(1, len(true)):
        end_true, end_guess = ends(true[t - 1], true[t]), ends(predicted[t - 1], predicted[t])
        if inside:
            if end_true and end_guess:
                right, inside = right + 1, False
            elif end_true != end_guess or true[t][2:] != predicted[t][2:]:
                inside = False
        start_true, start_guess = (starts(labels[t - 1], labels[t]) for labels in (true, predicted))
        inside = inside or (start_true and start_guess and true[t][2:] == predicted[t][2:])
        n_true += start_true
        n_predicted += start_guess
    return right, n_predicted, n_true


def test_chunks():
    assert chunks_of(["B-NP", "I-NP", "B-NP", "O", "I-VP", "I-NP"]) == {
        ("NP", 0, 2), ("NP", 2, 3), ("VP", 4, 5), ("NP", 5, 6),
    }  # fmt: skip
    assert chunks_of([]) == set() and chunks_of([None, 3, "O", "x"]) == set()
    assert chunks_of(["B", "I", "O"]) == {("", 0, 2)}


def test_it_counts_as_conlleval_does():
    random, score, expected = np.random.default_rng(0), ChunkScore(), np.zeros(3, int)
    labels = ["O", "B-NP", "I-NP", "B-VP", "I-VP"]
    for _ in range(2000):
        true = random.choice(labels, random.integers(0, 8)).tolist()
        predicted = [
            label if random.random() < 0.7 else str(random.choice(labels)) for label in true
        ]
        score.update(true, predicted)
        expected += counted(true, predicted)
    assert [score.n_right, score.n_predicted, score.n_true] == expected.tolist()
    assert score.f1 == pytest.approx(
        2 * score.precision * score.recall / (score.precision + score.recall)
    )
    assert 0.6 < score.accuracy < 0.9 and 0.0 < score.sentence_accuracy < score.accuracy


def test_nothing_was_counted():
    score = ChunkScore()
    found = (score.precision, score.recall, score.f1, score.accuracy, score.sentence_accuracy)
    assert found == (0.0,) * 5
    with pytest.raises(ValueError, match="1 true labels, 0 predicted"):
        score.update(["O"], [])
