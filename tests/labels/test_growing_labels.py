"""GrowingLabels: which label a sign stands for, with any number of labels seen."""

import numpy as np
import pytest

from streamsvm import SVMSGDClassifier
from streamsvm.labels.growing_labels import GrowingLabels


@pytest.mark.parametrize("seen", [["a"], ["b", "a"], [True], [False], ["b", "a", "c"]])
def test_the_label_of_a_sign_is_the_one_that_has_it(seen):
    labels = GrowingLabels(seen)
    assert [labels.label_of_sign(labels.sign(label)) for label in seen] == seen


@pytest.mark.parametrize(
    ("seen", "sign"), [([], -1.0), ([], 1.0), ([True], -1.0), (["a"], 1.0), (["a", "b", "c"], -1.0)]
)
def test_a_sign_that_no_label_has_stands_for_none(seen, sign):
    assert GrowingLabels(seen).label_of_sign(sign) is None


def test_an_unknown_label_has_not_the_weight_of_the_only_one_known():
    model = SVMSGDClassifier(t0=10.0, class_weight={True: 9.0})
    model.learn_one({0: 1.0}, True)

    def objectives():
        return [model.objective(np.array([[-y]]), [y > 0]) for y in (1.0, -1.0)]

    (known, unknown), model.class_weight = objectives(), None
    assert objectives()[0] < known and objectives()[1] == unknown
