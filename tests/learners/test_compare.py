"""Compare: decisions are those of a bettor who looks at each event; a candidate takes over."""

import copy
import json
import pickle

import numpy as np
import pytest
from river import datasets, dummy, linear_model, preprocessing, stats

import streamsvm
from streamsvm import Compare, LASVMClassifier, StandardScaler, SVMSGDClassifier, kernels
from streamsvm.confidence.comparison import Comparison
from streamsvm.confidence.sequence import BETS, LOG_SHARES
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.comparison_file import comparison_of
from tests.learners.test_all_learners import saved

BANANAS = [(dict(x), bool(y)) for x, y in datasets.Bananas().take(1500)]


def bettor(losses, largest, level):
    """Return when each model is first known to be better, by a capital counted at each event."""
    capital = {"a": np.exp(LOG_SHARES), "b": np.exp(LOG_SHARES)}
    first = {}
    for n, (a, b) in enumerate(losses, 1):
        for name, gain in (("a", b - a), ("b", a - b)):
            capital[name] = capital[name] * (1 + BETS * (1 + gain / largest) / 2) / (1 + BETS / 2)
            if capital[name].sum() >= 2 / (1 - level):
                first.setdefault(name, n)
    return first, {name: np.log(found.sum()) for name, found in capital.items()}


@pytest.mark.parametrize("largest", [None, 3.0])
def test_decisions_are_those_of_a_bettor_who_looks_at_each_event(largest):
    draw, decided = np.random.default_rng(1), set()
    for seed in range(20):
        p = draw.uniform(0.1, 0.4, 2)
        p = np.where(np.arange(700)[:, None] < 300, p, p[::-1])  # what is better changes
        losses = (draw.random((700, 2)) < p).astype(float)
        if largest is not None:
            losses *= draw.uniform(0.0, largest, losses.shape)
        found = Comparison(0.9, largest)
        known = {}
        for n, (a, b) in enumerate(losses.tolist(), 1):
            if (name := found.add(a, b)) is not None:
                known[name] = n
            if n in (200, 699):
                # As read from a file, which looks again.
                found = comparison_of(json.loads(json.dumps(found.as_json())))
        first, logs = bettor(losses, largest or 1.0, 0.9)
        assert known == found.first == first, seed
        for name, log in logs.items():
            assert found.log_evidence(name) == pytest.approx(log, abs=1e-6)
        low, high = found.interval()
        expected = "b" if low > 0 else "a" if high < 0 else None
        assert found.decision == found.figures()["decision"] == expected
        assert found.difference == pytest.approx(losses.mean(0) @ [1, -1])
        assert low <= found.difference <= high
        decided |= first.keys()
    assert decided == {"a", "b"}


def make(**given):
    a = StandardScaler() | SVMSGDClassifier()
    return Compare(a, LASVMClassifier(kernels.RBF(1.0)), on_decision="promote", **given)


def test_the_candidate_takes_over_and_events_batches_copies_and_files_are_one(tmp_path):
    model, n = make(), None
    for i, (x, y) in enumerate(BANANAS):
        name = "a" if model.record is None else "b"
        own = getattr(model, name)
        assert model.predict_one(x) == own.predict_one(x)
        model.learn_one(x, y)
        if n is None and model.record is not None:
            n, replaced = i + 1, copy.deepcopy(model.a)
    record = model.record
    assert 50 < n == record["n"] == record["first_known"]["b"] < 1000
    assert record["decision"] == record["in_use"] == "b" and record["why"] == "b is better"
    assert record["e_value"] >= record["needed"] == pytest.approx(40)
    assert record["difference_low"] > 0
    assert model.comparison.n == n
    # The replaced model is as it was, and the other one has learnt on.
    last = [list(one.steps.values())[-1].n_examples for one in (model.a, replaced)]
    assert last == [n, n]
    assert model.model.n_examples == 1500
    # The same in batches, with a file and copies before and after.
    names = list(BANANAS[0][0])
    x = np.array([[v[name] for name in names] for v, _ in BANANAS])
    rows = [dict(enumerate(row)) for row in x.tolist()]
    y = [label for _, label in BANANAS]
    events, batches = make(), make()
    for row, label in zip(rows, y, strict=True):
        events.learn_one(row, label)
    for start, end in ((0, 40), (40, n - 1), (n - 1, n + 7), (n + 7, 1500)):
        batches.learn_many(x[start:end], y[start:end])
        streamsvm.save(batches, tmp_path / "m.svm")
        batches = pickle.loads(pickle.dumps(copy.deepcopy(streamsvm.load(tmp_path / "m.svm"))))
        assert (batches.model is batches.b) == (end >= n)
    assert batches.comparison.as_json() == events.comparison.as_json()
    assert batches.predict_many(x[:200]).tolist() == [events.predict_one(row) for row in rows[:200]]
    assert batches.predict_proba_one(rows[0]) == events.predict_proba_one(rows[0])


def test_a_frozen_model_and_late_labels():
    a = SVMSGDClassifier()
    for x, y in BANANAS[:300]:
        a.learn_one(x, y)
    model, weights = Compare(a, copy.deepcopy(a), learns=("b",), warm_up=100), a.weights.copy()
    held = []
    for i, (x, _) in enumerate(BANANAS[300:1000]):
        held.append(model.predict_both_one(x))
        if i >= 50:
            model.learn_one(*BANANAS[300 + i - 50], given=held[i - 50])
    assert np.array_equal(model.a.weights, weights) and model.b.n_examples == 950
    hits = np.array(
        [[p == y for p in both] for both, (_, y) in zip(held, BANANAS[300:], strict=False)]
    )
    hits = hits[100:650]
    found = model.comparison.figures()
    assert (found["n"], found["n_seen"]) == (550, 650)
    assert found["only_b"] == np.sum(~hits[:, 0] & hits[:, 1])
    assert found["both_right"] == np.sum(hits.all(axis=1))
    assert (
        "not known yet" in model.comparison.in_words() or "is better" in model.comparison.in_words()
    )


def test_numbers_by_a_loss_that_is_cut_off_and_functions_that_decide(tmp_path):
    def loss(y, p):
        return min(abs(y - p), 20.0)

    said = []

    def stop(figures):
        said.append(figures)
        return "stop"

    good = preprocessing.StandardScaler() | linear_model.LinearRegression()
    mean = dummy.StatisticRegressor(stats.Mean())
    model = Compare(good, mean, on_decision=stop, loss=loss, largest_loss=20)
    for x, y in datasets.TrumpApproval():
        model.learn_one(x, y)
    # Before it has learnt its weights, the linear model is worse than the mean.
    assert model.record["in_use"] == "b" and len(said) == 1 and said[0]["decision"] == "b"
    assert 0 < said[0]["difference_low"] < said[0]["difference_high"] < 20
    assert model.record["loss_b"] < model.record["loss_a"]
    assert (
        "b is better, clear evidence (42.3, needed 40), first known after 19"
        in model.comparison.in_words()
    )
    # A file does not hold the function.
    costs = Compare(SVMSGDClassifier(), SVMSGDClassifier(), loss=lambda y, p: 5.0 * (y != p))
    costs.learn_one({"a": 1.0}, True, given=(True, None))
    with pytest.raises(ParameterError, match="largest_loss=1"):
        costs.learn_one({"a": 1.0}, True, given=(True, False))
    assert costs.comparison.n == costs.a.n_examples == 1
    costs = saved(costs, tmp_path / "m.svm")
    with pytest.raises(ParameterError, match=r"set model\.loss"):
        costs.learn_one({"a": 1.0}, True)
    costs.loss = lambda y, p: float(y != p)
    costs.learn_one({"a": 1.0}, True)
    costs.end()
    assert costs.model is costs.b and costs.record["why"] == "by hand"


def test_both_learn_an_event_or_none():
    model = Compare(LASVMClassifier(max_classes=3), LASVMClassifier(max_classes=2))
    for y in (0, 1, 0, 1):
        model.learn_one({"a": float(y)}, y)
    with pytest.raises(streamsvm.errors.LabelError):
        model.learn_one({"a": 2.0}, 2)
    assert model.a.n_examples == model.b.n_examples == model.comparison.n == 4


def test_a_function_that_fails_is_asked_again_and_one_that_a_file_lost_is_missed(tmp_path):
    asked = []

    def decide(figures):
        asked.append(figures["n"])
        if len(asked) == 1:
            raise OSError("the network is down")
        return "promote"

    model = make()
    model.on_decision = decide
    for x, y in BANANAS[:300]:
        try:
            model.learn_one(x, y)
        except OSError:
            first = model.comparison.n
    assert asked == [first, first + 1] and model.record["in_use"] == "b"
    with pytest.raises(ParameterError, match="has ended"):
        model.end("a")
    assert model.record["in_use"] == "b"
    lost = Compare(SVMSGDClassifier(), SVMSGDClassifier(), on_decision=decide)
    lost = saved(lost, tmp_path / "m.svm")
    with pytest.raises(ParameterError, match=r"set model\.on_decision"):
        lost.learn_one({"a": 1.0}, True)
    lost.on_decision = None
    lost.learn_one({"a": 1.0}, True)
    assert lost.a.n_examples == 1
