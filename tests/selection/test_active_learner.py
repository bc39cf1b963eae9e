"""ActiveLearner: the share of labels that it asks for, and what it makes of the answers."""

import numpy as np
import pytest
from river import active, datasets, linear_model, preprocessing

from streamsvm import ActiveLearner, LASVMClassifier, SVMSGDClassifier, kernels
from streamsvm.selection.asking import STRATEGIES, Asking
from tests.selection.test_selection import stream

RBF = kernels.RBF(gamma=1.0)


def run(model, events):
    """Return the accuracy, and after how many events each label was asked for."""
    right, asked = 0, []
    for n, (x, y) in enumerate(events, 1):
        predicted, ask = model.predict_one(x)
        right += predicted == y
        if ask:
            asked.append(n)
            model.learn_one(x, y)
    return right / n, asked


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("budget", [0.05, 0.2])
def test_asks_for_about_the_share_given(strategy, budget):
    events = list(stream(4000, seed=2))
    model = ActiveLearner(LASVMClassifier(RBF), budget, strategy, seed=1)
    accuracy, asked = run(model, events)
    assert accuracy > 0.7
    assert model.n_seen == 4000
    assert model.n_asked == model.n_answered == model.classifier.n_examples == len(asked)
    assert abs(len(asked) / 4000 - budget) < 0.25 * budget
    # At all moments, not just at the end.
    for n in range(500, 4001, 500):
        assert abs(sum(one <= n for one in asked) - budget * n) < 0.3 * budget * n + 15


def test_uncertain_events_are_worth_more_than_random_ones():
    accuracies = {"quantile": [], "random": []}
    for strategy, found in accuracies.items():
        for seed in range(4):
            model = ActiveLearner(LASVMClassifier(RBF), 0.05, strategy, seed=seed)
            found.append(run(model, stream(3000, noise=0.0, seed=seed))[0])
    assert np.mean(accuracies["quantile"]) > np.mean(accuracies["random"]) + 0.005, accuracies


def test_quantile_keeps_the_budget_on_any_numbers():
    rng = np.random.default_rng(0)
    for distances in (
        np.zeros(3000),
        np.ones(3000),
        np.linspace(0, 1, 3000),
        np.linspace(1, 0, 3000),
        rng.random(3000) ** 8,
        np.tile([0.0, 1.0], 1500),
        np.minimum(1.0, 0.3 + (np.arange(3000) % 100) / 100),
        # Of probabilities that are no numbers nothing is known.
        np.where(np.arange(3000) % 10 == 0, np.nan, 0.5),
    ):
        asking = Asking(0.1)
        for distance in distances.tolist():
            asking.wants({0: (1 + distance) / 2, 1: (1 - distance) / 2})
        assert 250 <= asking.n_asked <= 330, (distances[:3], asking.n_asked)


def test_an_oracle_is_asked_for_the_best_of_the_last_events():
    events = list(stream(2000, seed=4))
    label_of = {(x["a"], x["b"]): y for x, y in events}
    asked = []

    def oracle(x):
        asked.append(x)
        return None if len(asked) % 7 == 0 else label_of[x["a"], x["b"]]

    model = ActiveLearner(LASVMClassifier(RBF), 0.1, candidates=20, oracle=oracle)
    accuracy, told = run(model, events)
    assert accuracy > 0.8
    assert not told
    assert model.n_asked == len(asked)
    assert 190 <= len(asked) <= 211
    assert model.n_answered == model.classifier.n_examples == len(asked) - len(asked) // 7
    places = {(x["a"], x["b"]): n for n, (x, _) in enumerate(events)}
    order = [places[x["a"], x["b"]] for x in asked]
    # Each is one of the last 20, and not always the newest one.
    assert order != sorted(order)
    model = ActiveLearner(LASVMClassifier(RBF), 0.1, oracle=lambda x: label_of[x["a"], x["b"]])
    accuracy, told = run(model, events)
    assert accuracy > 0.8
    assert not told
    assert model.n_answered == model.n_asked


def test_wraps_classifiers_and_pipelines_of_river():
    assert issubclass(ActiveLearner, active.base.ActiveLearningClassifier)
    for classifier in (
        preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        SVMSGDClassifier(),
    ):
        model = ActiveLearner(classifier, 0.2, seed=1)
        accuracy, asked = run(model, datasets.Phishing())
        assert accuracy > 0.75
        assert 200 <= len(asked) <= 320
        p, ask = model.predict_proba_one(next(iter(datasets.Phishing()))[0])
        assert sum(p.values()) == pytest.approx(1.0)
        assert isinstance(ask, bool)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_answers_that_never_come_are_not_asked_for_without_end(strategy):
    for budget in (0.01, 0.1):
        model = ActiveLearner(LASVMClassifier(RBF), budget, strategy, seed=1)
        for x, _ in stream(3000):
            model.predict_one(x)
        assert model.n_asked <= budget * 3000 + 80


def test_one_event_waits_at_most_if_one_may():
    model = ActiveLearner(LASVMClassifier(RBF), 0.1, candidates=1, oracle=lambda x: x["a"] > 0)
    for x, _ in stream(300):
        model.predict_one(x)
        assert len(model.asking.waiting) <= 1
    assert 25 <= model.n_answered <= 35
