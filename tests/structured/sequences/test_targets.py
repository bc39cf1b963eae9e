"""The labels of sentences: read as numbers, in targets that never change."""

import numpy as np
import pytest

from streamsvm.errors import LabelError
from streamsvm.labels.class_labels import ClassLabels
from streamsvm.structured.sentences import read_sentences
from streamsvm.structured.sequences.targets import SequenceTargets

SENTENCES = read_sentences([["the", "cat"], ["sat"], ["a", "cat", "sat"]])
LABELS = [["D", "N"], ["V"], ("D", "N", np.str_("V"))]


def test_labels_have_numbers_in_the_order_in_which_they_come():
    empty = SequenceTargets(ClassLabels())
    codes, known, targets = empty.read(LABELS, SENTENCES)
    assert codes.tolist() == [0, 1, 2, 0, 1, 2] and codes.dtype == np.int32
    assert known.tolist() == [2, 3, 3]
    assert targets.labels.seen == ["D", "N", "V"] and targets.n_classes == 3
    assert targets.labels_of(np.array([2, -1, 0], np.int32)) == ["V", None, "D"]


def test_targets_never_change():
    empty = SequenceTargets(ClassLabels())
    targets = empty.read(LABELS, SENTENCES)[2]
    assert empty.n_classes == 0 and not empty.labels.numbers
    assert targets.read(LABELS, SENTENCES)[2] is targets
    more = targets.read([["D", "X"], ["V"], ["D", "V", "N"]], SENTENCES)[2]
    assert (targets.n_classes, more.labels.seen) == (3, ["D", "N", "V", "X"])


def test_there_are_at_most_so_many():
    targets = SequenceTargets(ClassLabels(["D", "N"], most=2))
    assert targets.having(["D"]).labels.most == 2
    with pytest.raises(LabelError, match="class number 3"):
        targets.read(LABELS, SENTENCES)
    assert targets.n_classes == 2


@pytest.mark.parametrize("wrong", [[["D"], ["V"], "abc"], [["D", None], ["V"], ["D", "N", "V"]]])
def test_labels_that_cannot_be_used_are_refused(wrong):
    targets = SequenceTargets(ClassLabels())
    with pytest.raises(LabelError):
        targets.read(wrong, SENTENCES)
    assert targets.n_classes == 0
