"""Chunks, counted as conlleval counts them."""

import numpy as np
import pytest

from streamsvm.structured.chunks import ChunkScore, chunks_of

STARTS = {"BB", "IB", "OB", "EB", "SB", "EE", "EI", "OE", "OI", "SE", "SI"}
STARTS |= {before + single for before in "BIEOS[]" for single in "S[]"} | {"]E", "]I", "[E", "[I"}
STARTS |= {"]B", "[B"}
ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO", "EB"}
ENDS |= {before + "S" for before in "BIE"} | {s + after for s in "S[]" for after in "BIEOS[]"}
ENDS |= {before + bracket for before in "BIE" for bracket in "[]"}


def parts(*labels):
    return [label.partition("-")[::2] for label in labels]


def starts(before, label):
    """Tell whether a chunk starts at a label, by the table of conlleval, with S and brackets."""
    (p, a), (q, b) = parts(before, label)
    return p + q in STARTS or (q != "O" and a != b)


def ends(label, after):
    """Tell whether a chunk ends at a label."""
    (p, a), (q, b) = parts(label, after)
    return p + q in ENDS or (p != "O" and a != b)


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
    assert chunks_of(["B-A", "E-A", "S-A", "S-A", "I-A", "E-A", "E-A", "E-B", "B-B", "I-B"]) == {
        ("A", 0, 2), ("A", 2, 3), ("A", 3, 4), ("A", 4, 6), ("A", 6, 7), ("B", 7, 8), ("B", 8, 10),
    }  # fmt: skip
    assert chunks_of(["U-A", "B-A", "I-A", "L-A", "[", "]"]) == {
        ("A", 0, 1), ("A", 1, 4), ("", 4, 5), ("", 5, 6),
    }  # fmt: skip


@pytest.mark.parametrize("letters", ["BI", "BIES", "BIES[]", "IE", "BILU"])
def test_it_counts_as_conlleval_does(letters):
    random, score, expected = np.random.default_rng(0), ChunkScore(), np.zeros(3, int)
    labels = ["O", *(f"{letter}-{kind}" for letter in letters for kind in ("NP", "VP"))]
    as_conlleval = str.maketrans("LU", "ES")
    for _ in range(2000):
        true = random.choice(labels, random.integers(0, 8)).tolist()
        predicted = [
            label if random.random() < 0.7 else str(random.choice(labels)) for label in true
        ]
        score.update(true, predicted)
        expected += counted(
            *([y[0].translate(as_conlleval) + y[1:] for y in row] for row in (true, predicted))
        )
    assert [score.n_right, score.n_predicted, score.n_true] == expected.tolist()
    assert score.f1 == pytest.approx(
        2 * score.precision * score.recall / (score.precision + score.recall)
    )
    assert 0.6 < score.accuracy < 1.0 and 0.0 < score.sentence_accuracy < score.accuracy


def test_nothing_was_counted():
    score = ChunkScore()
    found = (score.precision, score.recall, score.f1, score.accuracy, score.sentence_accuracy)
    assert found == (0.0,) * 5
    with pytest.raises(ValueError, match="1 true labels, 0 predicted"):
        score.update(["O"], [])
