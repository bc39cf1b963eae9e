"""ConformalSets: coverage on streams, its twin, events and batches, files, late labels, numbers."""

import math
import random

import numpy as np
import pytest
from river import datasets, linear_model, naive_bayes, preprocessing

from streamsvm import ConformalSets, SVMSGDClassifier
from streamsvm.errors import ParameterError
from streamsvm.labels.counted_sets import Sets, sets_in_words
from streamsvm.labels.prediction_sets import Intervals, LabelSets
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


def good(n, seed=1, k=2, wrong=0.03):
    """Yield probabilities of a model that is mostly right, and labels."""
    draw = random.Random(seed)
    for _ in range(n):
        y, p = draw.randrange(k), draw.uniform(0.6, 1.0)
        top = draw.randrange(k) if draw.random() < wrong else y
        yield {c: p if c == top else (1 - p) / (k - 1) for c in range(k)}, y


def given_to(sets, p):
    """Return the set of an event that waits for its label, as the wrapper does."""
    sets.n_waiting += 1
    sets.wait()
    return sets.of(p)


def come(sets, held):
    """Learn what was held."""
    p, y, given = held
    sets.came_late()
    sets.learn(y, p, given)


@pytest.mark.parametrize("delay", [30, 200, 1000])
def test_late_labels_do_not_make_sets_swing(delay):
    sets, held = LabelSets(0.9), []
    for i, (p, y) in enumerate(good(6000)):
        if i >= delay:
            come(sets, held[i - delay])
        held.append((p, y, given_to(sets, p)))
    later = [given for *_, given in held[2 * delay + 500 :]]
    whole = sum(len(one) == 2 for one in later) / len(later)
    assert whole < 0.03
    assert abs(sets.n_missed / sets.n - 0.1) < 0.01 + delay / 20000
    assert sets.thresholds()[0].forgiven == 0.0
    again = Sets.from_json(sets.as_json())
    assert again.as_json() == sets.as_json()
    assert again.of(p) == sets.of(p)


@pytest.mark.parametrize("is_wrong", [False, True])
def test_labels_that_stop_and_come_together_neither_miss_nor_fill_all(is_wrong):
    sets, held, after, stream = LabelSets(0.9), [], [], list(good(10000))
    for p, y in stream[:3000]:
        sets.learn(y, p, sets.of(p))
    for p, y in stream[3000:5000]:
        held.append((p, 1 - y if is_wrong else y, given_to(sets, p)))
    for one in held:
        come(sets, one)
    if not is_wrong:
        assert 100 < sum(y not in found for _, y, found in held) < 320
    for p, y in stream[5000:]:
        after.append(sets.of(p))
        sets.learn(y, p, after[-1])
    assert sum(len(one) == 2 for one in after[:2000]) < (1500 if is_wrong else 100)
    assert (sets.thresholds()[0].forgiven > 0) is is_wrong
    assert sets.least_coverage() <= 1 - sets.n_missed / sets.n


def test_sets_at_rest_are_those_of_the_quantile():
    model = ConformalSets(naive_bayes.GaussianNB(), 0.9)
    draw = np.random.default_rng(3)
    x = draw.normal(size=(3000, 1))
    y = (x[:, 0] + 0.3 * draw.normal(size=3000) > 0).tolist()
    hits = n = whole = 0
    for start in range(0, 3000, 100):
        model.learn_many(x[start : start + 100], y[start : start + 100])
        if start >= 1000 and start < 2900:
            found = model.predict_set_many(x[start + 100 : start + 200])
            hits += sum(map(tuple.__contains__, found, y[start + 100 : start + 200]))
            n += 100
            whole += {len(one) for one in found} in ({0}, {2})
    assert whole == 0
    assert 0.87 < hits / n < 0.93


def test_the_sets_given_to_learn_many_count():
    model = ConformalSets(SVMSGDClassifier(), 0.9)
    x = np.random.default_rng(1).normal(size=(300, 2))
    y = (x[:, 0] > 0).tolist()
    model.learn_many(x[:100], y[:100])
    before = model.sets.n_missed
    model.learn_many(x[100:], y[100:], given=[()] * 200)
    assert model.sets.n_missed == before + 200
    with pytest.raises(ParameterError, match="99 sets"):
        model.learn_many(x[:100], y[:100], given=[()] * 99)
    with pytest.raises(ParameterError, match="string"):
        model.learn_one({0: 1.0, 1: 0.0}, True, given="True")


def test_a_coverage_above_what_500_scores_say():
    sets, whole = LabelSets(0.999), 0
    for i, (p, y) in enumerate(good(9000, wrong=0.0)):
        found = sets.of(p)
        sets.learn(y, p, found)
        whole += i >= 5000 and len(found) == 2
    assert sets.n_missed > 0
    assert whole < 1000
    assert "of 99.9% " in sets_in_words(sets.figures())
    with pytest.raises(ParameterError, match="10,000"):
        LabelSets(0.9999)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_predictions_that_are_no_numbers_stay_within_the_bound(value):
    intervals, labels = Intervals(0.9), LabelSets(0.9)
    for i in range(800):
        number = value if i % 3 else 1.0
        intervals.learn(1.0, number, intervals.of(number))
        p = {"a": value if i % 3 else 0.5, "b": value if i % 2 else 0.5}
        labels.learn("ab"[i // 7 % 2], p, labels.of(p))
    intervals.learn(math.nan, 1.0, intervals.of(1.0))
    assert intervals.n == 800
    for sets in (intervals, labels):
        assert sets.n_missed - sets.n_new < 80 + 5
        assert sets.least_coverage() <= 1 - sets.n_missed / sets.n
        assert Sets.from_json(sets.as_json()).as_json() == sets.as_json()
    assert labels.n_missed > 80 - 9
    assert intervals.of(math.nan) == (-math.inf, math.inf)


def test_of_many_labels_whole_sets_are_rare():
    sets, sizes = LabelSets(0.95), []
    for p, y in good(5000, k=100):
        sizes.append(len(sets.of(p)))
        sets.learn(y, p, sets.of(p))
    assert sum(sizes[2000:]) / 3000 < 2.5
    assert abs(sets.n_missed - sets.n_new - 250) < 17
    assert Sets.from_json(sets.as_json()).as_json() == sets.as_json()
