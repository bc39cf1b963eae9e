"""ConformalSets: coverage on streams, its twin, events and batches, files, late labels, numbers."""

import copy
import math
import pickle
import random

import numpy as np
import pytest
from river import datasets, linear_model, naive_bayes, preprocessing, tree

import streamsvm
from streamsvm import (
    ActiveLearner,
    ConformalSets,
    LASVMClassifier,
    OSPASParser,
    StandardScaler,
    SVMSGDClassifier,
    kernels,
)
from streamsvm.errors import ParameterError
from streamsvm.labels.prediction_sets import LabelSets
from tests.reference import slow_conformal


def probabilities(n, k, seed):
    """Yield {label: probability} and a label drawn by it; later the model is wrong about all."""
    draw = np.random.default_rng(seed)
    for i in range(n):
        p = draw.dirichlet(np.full(k, 0.4))
        y = int(draw.choice(k, p=p)) if i < n // 2 else int(draw.integers(k))
        yield {c: float(p[c]) for c in range(k)}, y


@pytest.mark.parametrize("score", ["least_ambiguous", "adaptive"])
@pytest.mark.parametrize("by_class", [False, True])
def test_sets_are_those_of_the_twin(by_class, score):
    # Label 9 is one that the model never knows.
    stream = [(p, 9 if i % 97 == 50 else y) for i, (p, y) in enumerate(probabilities(700, 4, 1))]
    sets, found = LabelSets(0.8, by_class, score), []
    for p, y in stream:
        found.append(sets.of(p))
        assert list(found[-1]) == sorted(found[-1], key=lambda y: -p.get(y, -1.0))
        sets.learn(y, p, found[-1])
    assert [set(one) for one in found] == slow_conformal.sets_of(stream, 0.8, by_class, score)


def test_a_label_never_met_is_a_miss_and_the_bound_says_so():
    sets = LabelSets(0.9)
    for i in range(400):  # each label is new
        sets.learn(i, {}, sets.of({}))
    assert sets.n_missed == sets.n_new == 400
    assert sets.least_coverage() == 0.0
    for _ in range(200):
        found = sets.of({"a": 0.5, "b": 0.5})
        sets.learn(3, {"a": 0.5, "b": 0.5}, found)
    # Met before, so that sets of all labels have it; misses of new ones are not made up for.
    assert sets.n_new == 400
    assert sets.n_missed < 400 + 0.1 * 600 + 5
    figures = sets.figures()
    assert figures["coverage_least"] <= figures["coverage"]
    assert figures["set_whole"] > 0


def test_sets_that_are_never_empty_are_right_more_often():
    stream = list(probabilities(2000, 3, 3))[:1000]
    misses = {}
    for may_be_empty in (True, False):
        sets = LabelSets(0.4, may_be_empty=may_be_empty)
        for p, y in stream:
            sets.learn(y, p, sets.of(p))
        misses[may_be_empty] = sets.n_missed
        assert (sets.n_empty > 0) is may_be_empty
    assert abs(misses[True] - 600) < 9
    assert misses[False] < 600 + 5


def rare(n, seed=1):
    draw = random.Random(seed)
    for _ in range(n):
        y = draw.random() < 1 / 100
        yield {"a": draw.gauss(1.5 if y else 0.0, 1.0), "b": draw.gauss(0.0, 1.0)}, y


def test_by_class_the_rare_class_is_covered_too():
    coverage = {}
    for by_class in (False, True):
        model = ConformalSets(naive_bayes.GaussianNB(), 0.9, by_class=by_class)
        for x, y in rare(6000):
            model.learn_one(x, y)
        coverage[by_class] = model.sets.coverage_by_class()
        assert abs(1 - model.sets.n_missed / model.sets.n - 0.9) < (18 if by_class else 9) / 6000
    assert coverage[False][True] < 0.5
    n = model.sets.met[True][0]
    assert abs(coverage[True][True] - 0.9) < 9 / n


@pytest.mark.parametrize(
    "make",
    [
        lambda: LASVMClassifier(kernels.RBF(1.0)),
        lambda: StandardScaler() | SVMSGDClassifier(),
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    ],
)
def test_events_batches_copies_and_files_are_one(make, tmp_path):
    draw = np.random.default_rng(4)
    x = draw.normal(size=(600, 3)).astype(np.float32)
    y = (x[:, 0] + draw.normal(size=600) > 0).tolist()
    rows = [dict(enumerate(row)) for row in x.tolist()]
    events, batches = ConformalSets(make(), 0.8), ConformalSets(make(), 0.8)
    for row, label in zip(rows[:400], y[:400], strict=True):
        if label:  # with and without a prediction before
            events.predict_set_one(row)
        events.learn_one(row, label)
    batches.learn_many(x[:150], y[:150])
    batches.learn_many(x[150:400], y[150:400])
    models = [batches, copy.deepcopy(events), pickle.loads(pickle.dumps(events))]
    if not isinstance(list(events.steps.values())[-1], linear_model.LogisticRegression):
        streamsvm.save(events, tmp_path / "m.svm")
        models.append(streamsvm.load(tmp_path / "m.svm"))
    expected = [events.predict_set_one(row) for row in rows[400:]]
    assert len({*expected}) > 2
    for model in models:
        assert model.predict_set_many(x[400:]) == expected
        assert model.sets.figures() == events.sets.figures()
        assert model.sets.as_json() == events.sets.as_json()


def test_the_set_that_was_given_counts():
    x = {"a": 1.0}
    model = ConformalSets(SVMSGDClassifier(), 0.9)
    for i in range(200):
        model.learn_one({"a": float(i % 2)}, bool(i % 2))
    before = model.sets.n_missed
    model.learn_one(x, True, given=(False,))
    assert model.sets.n_missed == before + 1
    # The same dict filled with another event is not the event that was predicted.
    first = model.predict_set_one(x)
    x["a"] = 0.0
    model.learn_one(x, False)
    assert first == (True,)
    assert model.sets.n_missed == before + 1


def test_an_event_that_the_model_refuses_is_not_counted():
    model = ConformalSets(SVMSGDClassifier())
    model.learn_one({"a": 1.0}, True)
    state = model.sets.as_json()
    with pytest.raises(streamsvm.errors.FeatureError):
        model.learn_one({"a": math.inf}, True)
    assert model.sets.as_json() == state


def test_intervals_of_a_regressor_survive_a_change_of_unit():
    model = ConformalSets(preprocessing.StandardScaler() | linear_model.LinearRegression(), 0.9)
    events = list(datasets.TrumpApproval())
    assert model.predict_set_one(events[0][0]) == (-math.inf, math.inf)
    for i, (x, y) in enumerate(events):
        low, high = model.predict_set_one(x)
        assert low <= model.predict_one(x) <= high
        model.learn_one(x, y * (1000 if i > 500 else 1))
    n, missed = model.sets.n, model.sets.n_missed
    assert 0.1 * n - 9 < missed < 0.1 * n + 5
    again = type(model.sets).from_json(model.sets.as_json())
    assert again.as_json() == model.sets.as_json()
    assert again.figures() == model.sets.figures()


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (OSPASParser(), {}),
        (ActiveLearner(SVMSGDClassifier()), {}),
        (SVMSGDClassifier, {}),
        (SVMSGDClassifier(), {"coverage": 1.0}),
        (SVMSGDClassifier(), {"coverage": True}),
        (SVMSGDClassifier(), {"score": "margin"}),
        (tree.HoeffdingTreeRegressor(), {"by_class": True}),
    ],
)
def test_what_cannot_be_done_is_refused(model, given):
    with pytest.raises(ParameterError):
        ConformalSets(model, **given)


@pytest.mark.parametrize(
    "change",
    [
        {"n_missed": 10**6}, {"kind": "x"}, {"thresholds": []}, {"labels": [1, 1]}, {"lately": 3},
        {"size": "a"}, {"coverage": 2}, {"thresholds": [[0.1, 0.0, [None]]]}, {"counts": [[1, 0]]},
    ],
)  # fmt: skip
def test_content_that_does_not_hold_together_is_refused(change):
    sets = LabelSets(0.9)
    for p, y in probabilities(50, 3, 1):
        sets.learn(y, p, sets.of(p))
    content = sets.as_json()
    assert LabelSets.from_json(content).as_json() == content
    with pytest.raises(ValueError):
        LabelSets.from_json(content | change)
