"""The stochastic batch perceptron as a learner."""

import numpy as np
import pytest

import streamsvm
from streamsvm import SBPClassifier, kernels
from tests.slow import compiles

RBF = kernels.RBF(gamma=1.0)


def rings(n=200, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    return x, (x * x).sum(axis=1) < 1.4


def test_rows_that_are_only_kept_are_learnt_by_finish():
    x, y = rings()
    model = SBPClassifier(RBF, nu=0.01, iterations=0, seed=0)
    model.learn_many(x, y)
    assert model.n_support_vectors == 0 and model.counters["kernel_values"] == 0
    assert model.decision_function_many(x).tolist() == [0.0] * 200
    seen = []
    model.finish(lambda level, n: seen.append((level, n)), iterations=2500)
    assert len(seen) == 3 and seen[-1] == (model.level, model.n_support_vectors)
    assert model.counters["steps"] == 2500 and 0.0 < model.level < 1.0
    assert np.mean(np.array(model.predict_many(x)) == y) > 0.97
    # Most margins are 1 or more, but for the slack.
    margins = np.where(y, 1.0, -1.0) * model.decision_function_many(x)
    assert np.maximum(0.0, 1.0 - margins).mean() * model.level == pytest.approx(0.01, rel=1e-3)
    model.learn_many(x[:5], y[:5])
    assert model.counters["steps"] == 2500 and model.n_kept == 205


def test_with_ids_a_row_is_kept_once():
    x, y = rings()
    model = SBPClassifier(RBF, seed=0)
    for _ in range(2):
        model.learn_many(x, y, ids=np.arange(1, 201))
    assert model.n_kept == 200 and model.n_examples == 400


@pytest.mark.parametrize(
    "parameters", [{"window": 100}, pytest.param({"reservoir": 100}, marks=compiles("sbp-3"))]
)
def test_a_row_that_has_left_does_not_matter_any_more(parameters, tmp_path):
    x, y = rings(1000)
    weights = np.ones(1000)
    x[0], weights[0] = 1e3, 1e12
    model = SBPClassifier(kernels.Linear(), seed=4, **parameters)
    model.learn_many(x, y, w=weights)
    assert len(model.support_vectors()[1]) <= 100
    model.save(tmp_path / "m.svm")
    for info in (model.state.info[0], streamsvm.load(tmp_path / "m.svm").state.info[0]):
        assert info.cost_most == 1.0 and info.cost_positive + info.cost_negative == 100.0
        assert 1.0 < info.r2 < 50.0
