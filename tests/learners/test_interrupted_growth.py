"""Ctrl-C while a class or a feature comes: the stream goes on as if it had come before or after."""

import copy
import itertools

import numpy as np
import pytest

import streamsvm
from streamsvm import AdaptiveSVMClassifier, LASVMClassifier, kernels
from streamsvm.models.kernel.feature_scales import FeatureScales
from tests.interruptions import interrupted

MAKE = {
    "lasvm": lambda: LASVMClassifier(kernels.RBF(gamma=0.5), scale=False),
    "trial": lambda: LASVMClassifier(),
    "adaptive": lambda: AdaptiveSVMClassifier(seed=1),
}
FILES = ("/lasvm_pairs/", "/lasvm_solver.py", "/kernel_solver.py", "/event_path.py")


def is_traced(code):
    return any(name in code.co_filename for name in FILES) and code.co_name != "__del__"


def events_of(n, names, n_classes):
    draws = np.random.default_rng(len(names) + n_classes)
    rows = draws.normal(size=(n, len(names))).tolist()
    return [(dict(zip(names, row, strict=True)), i % n_classes) for i, row in enumerate(rows)]


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("names", ["abcd", "abcde"])
def test_the_stream_goes_on_wherever_it_was_interrupted(name, names, tmp_path):
    n_classes = 3 if names == "abcd" else 2
    model, ends = MAKE[name](), set()
    for x, y in events_of(60, "abcd", 2):
        model.learn_one(x, y)
    later = events_of(30, names, n_classes)
    x, y = later[2]  # the first of its class
    for at in itertools.count(1, 1 if name == "lasvm" else 7):
        one = copy.deepcopy(model)
        if not interrupted(lambda m=one: m.learn_one(x, y), at, is_traced):
            break
        if one.n_examples == model.n_examples:
            one.learn_one(x, y)
        for event, label in later:
            one.predict_one(event)
            one.learn_one(event, label)
        one.save(tmp_path / "m.svm")
        margins = [one.decision_function_one(event) for event, _ in later]
        loaded = streamsvm.load(tmp_path / "m.svm")
        assert margins == [loaded.decision_function_one(event) for event, _ in later]
        ends.add(str(margins))
    assert at > 10
    # The event was learnt, or not at all and once more: the same, but that its number differs.
    assert len(ends) <= 2 or name != "lasvm"


def test_scales_know_a_feature_as_a_whole_or_not_at_all():
    scales = FeatureScales()
    scales.learn_first(np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32))
    for at in itertools.count(1):
        one = copy.deepcopy(scales)
        stopped = interrupted(lambda s=one: s.grow(5), at, FeatureScales.grow.__code__.__eq__)
        one.grow(5)
        assert {one.statistics.shape[1], one.limits.shape[1], one.is_flag.size} == {5}
        if not stopped:
            break
    assert at > 5
