"""What a report advises, and that it says nothing where nothing is wrong."""

import ast
import re

import numpy as np
import pytest

from streamsvm import (
    AdaptiveSVMClassifier,
    LaRankClassifier,
    LASVMClassifier,
    SVMSGDClassifier,
    kernels,
)
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.run.advice import advice_of
from streamsvm.run.report import RunReport


def report(**changed):
    found = {
        "rows": 20_000,
        "learnt": 20_000,
        "scored": 20_000,
        "taken": 20_000,
        "epochs": 1,
        "labels": {"a": 10_000, "b": 10_000},
        "accuracy": 0.9,
        "balanced_accuracy": 0.9,
        "n_support_vectors": 3000,
    }
    return RunReport(**found | changed)


MANY = {"n_support_vectors": 17_600, "accuracy": 0.6}
LETTERS = dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 769)


def test_nothing_is_said_of_a_good_run():
    better = {"balanced_accuracy": 0.505, "comparison": {"decision": "b", "record": None}}
    for changed in (
        {},
        better,  # a candidate shows that features say something
        MANY | {"labels": LETTERS, "accuracy": 0.87},  # most predictions are right
        # Nothing was scored: every label came before the first prediction.
        {"scored": 0, "accuracy": 0.0, "balanced_accuracy": 0.0},
        # The model has learnt in an earlier run, too.
        MANY | {"n_support_vectors": 24_000, "model_examples": 40_000},
        # Events that wait for labels were read, and so were labels that came apart.
        {"learnt": 2000, "taken": 50_000, "bad": {"NaN": 400}},
    ):
        assert advice_of(report(**changed), LASVMClassifier()) == []
    assert advice_of(report(n_support_vectors=None), SVMSGDClassifier()) == []
    # A rare class that has a weight.
    weighted = LASVMClassifier(class_weight="balanced")
    assert advice_of(report(labels={"a": 19_998, "b": 2}), weighted) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"labels": {"a": 20_000}}, "all labels are a"),
        ({"labels": {"a": 19_998, "b": 2}}, "b is 1 example in 10,000"),
        ({"balanced_accuracy": 0.505}, "a balanced accuracy of 50.5% is what guessing gives"),
        (MANY, "88% of all examples are support vectors"),
        (MANY | {"learnt": 40_000, "epochs": 2}, "88% of all examples"),
        ({"counters": {"cached_rows_missed": 30_000, "cached_rows_hit": 10_000}}, "75% of kernel"),
        ({"bad": {"NaN": 5_000}, "taken": 25_000}, "20.0% of what was read could not be used"),
        ({"late": {"too_late": 7}}, "7 labels came after their events were given up"),
        ({"late": {"held_since_labels": 70}, "learnt": 0}, "70 events wait that are older than"),
    ],
)
def test_what_looks_wrong_is_said(changed, said):
    (sentence,) = advice_of(report(**changed), LASVMClassifier())
    assert said in sentence
    if "late" not in changed:
        assert advice_of(report(**changed | {"learnt": 900}), LASVMClassifier()) == []


def test_a_weight_of_no_label_is_named():
    learner = LASVMClassifier(class_weight={"a": 2.0, "aunt": 5.0})
    learner.learn_one({"x": 1.0}, "a")
    learner.learn_one({"x": 2.0}, "b")
    (sentence,) = advice_of(report(), learner)
    assert sentence == "class_weight names 'aunt', which no example is labelled"


@pytest.mark.parametrize("learner", registered_learners("rows"), ids=lambda learner: learner.name)
def test_the_learner_takes_the_class_weight_that_is_advised(learner):
    model = learner.cls()
    for a, y in ((1.0, True), (-1.0, False)):
        model.learn_one({"a": a}, y)
    (sentence,) = advice_of(report(labels={"False": 19_998, "True": 2}), model)
    if learner.name in ("huller", "ambiguous"):
        assert f"{learner.cls.__name__} has no class weights" in sentence
        return
    advised = ast.literal_eval(re.search(r"class_weight=('\w+'|{.*?})", sentence)[1])
    assert learner.cls(class_weight=advised).class_weight == advised
    assert advised in ("balanced", {True: 10.0})


@pytest.mark.parametrize("far", [None, 1e6])
def test_a_mean_that_a_far_value_misleads_is_named(far):
    random = np.random.default_rng(0)
    x = random.normal(50.0, 10.0, (2000, 2)).astype(np.float32)
    y = x.sum(axis=1) + random.normal(0.0, 10.0, 2000) > 100.0
    x[::10, 0] = np.nan
    if far is not None:
        x[301, 0] = far
    model = LASVMClassifier(kernels.RBF(gamma=0.005), C=1.0)
    model.learn_many(x, y)
    sentences = advice_of(report(n_support_vectors=None), model)
    if far is None:
        assert sentences == []
    else:
        assert "missing values of 0 count as 605.4" in sentences[0] and "(--scale)" in sentences[0]


@pytest.mark.parametrize(
    ("learner", "said"),
    [(LASVMClassifier(), "--learner adaptive"), (AdaptiveSVMClassifier(), "shorter window=")],
)
def test_accuracy_that_falls_is_drift(learner, said):
    found = report(n_support_vectors=None)
    rows = np.arange(1, 21) * 1000
    right = np.cumsum(np.where(rows <= 15_000, 900, 600))
    for n, correct in zip(rows.tolist(), right.tolist(), strict=True):
        found.history.add({"rows": n, "n_scored": n, "n_right": correct})
    (sentence,) = advice_of(found, learner)
    assert "accuracy fell from 90.0% to 60.0% in the last quarter" in sentence
    assert said in sentence


def test_late_labels_are_no_drift():
    """The accuracy is of what was scored: of rows or of what was learnt it would be above 100 %."""
    found = report(n_support_vectors=None)
    for n in range(1000, 21_000, 1000):
        learnt = max(0, n - 3000)
        scored = max(0, learnt - 5000)
        right = {"n_scored": scored, "n_right": 0.9 * scored} if scored else {}
        found.history.add({"rows": n, "learnt": learnt, "accuracy": 0.9} | right)
    assert advice_of(found, SVMSGDClassifier()) == []


def test_values_of_which_few_digits_are_left_are_named():
    x = 5.4e6 + 0.3 * np.random.default_rng(0).normal(size=(1200, 2))
    model = LASVMClassifier(kernels.RBF(gamma=1.0))
    model.learn_many(x, x.sum(axis=1) > 2.0 * 5.4e6)
    sentences = [s for s in advice_of(report(epochs=1), model) if "seven digits" in s]
    assert len(sentences) == 2 and "around 5.4e+06" in sentences[0]


def test_a_large_number_beside_very_many_one_hot_features_is_named():
    random = np.random.default_rng(0)
    model = LASVMClassifier(kernels.RBF(gamma=1.0), sparse=True)
    for i in range(300):
        x = {"a": random.normal(), "t": 1e6 + random.normal(), f"city=c{i % 150}": 1.0}
        model.learn_one(x, x["a"] > 0.0)
    (sentence,) = [s for s in advice_of(report(epochs=1), model) if "one-hot" in s]
    assert sentence.startswith("t is 1e+06 in the mean")


@pytest.mark.parametrize("cls", [LASVMClassifier, LaRankClassifier, AdaptiveSVMClassifier])
def test_a_feature_that_only_grows_is_named(cls):
    x = np.random.default_rng(0).normal(size=(1200, 3))
    x[:, 1] = 1e6 + 10.0 * np.arange(1200)
    # Two values only: this one may be a change that matters.
    x[:, 2] = np.arange(1200) > 600
    model = cls(seed=1)
    names = ["a", "time", "later"]
    y = (x[:, 0] ** 2 > 1.0).tolist()
    for row, label in zip(x.tolist(), y, strict=True):
        model.learn_one(dict(zip(names, row, strict=True)), label)
    (sentence,) = advice_of(report(epochs=1), model)
    assert sentence.startswith("time only grows along the stream")
    assert advice_of(report(epochs=2), model) == []
