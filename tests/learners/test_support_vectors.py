"""Small kernel learners (perceptrons, Pegasos, the Huller, SBP), and support vectors of all."""

import numpy as np
import pytest

import streamsvm
from streamsvm import (
    HullerClassifier,
    KernelPAClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LASVMClassifier,
    SBPClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
)
from tests.kernels.test_values import expected
from tests.slow import compiles

FAMILY = (KernelPerceptronClassifier, KernelPAClassifier, KernelPegasosClassifier)
OF_AVERAGES = [{"averaged": True}, {"averaged": False}]
CASES = [
    (LASVMClassifier, {}),
    (TrackingSVMClassifier, {}),
    (TrackingSVMClassifier, {"kernel": kernels.Linear()}),
    (SBPClassifier, {}),
    (SBPClassifier, {"bias": False, "averaged": False}),
    (SBPClassifier, {"window": 60}),
    (HullerClassifier, {}),
    # Gamma changes within the first examples: what depends on it is kept right.
    *(
        (KernelPerceptronClassifier, {"kernel": None, "budget": budget, "max_support_vectors": 20})
        for budget in ("project", "remove", "merge")
    ),
    *((cls, given) for cls in FAMILY for given in OF_AVERAGES),
    *((cls, given | {"max_support_vectors": 30}) for cls in FAMILY for given in OF_AVERAGES),
    *(
        (KernelPAClassifier, {"kernel": kernel, "budget": budget, "max_support_vectors": 10})
        for kernel in (kernels.Linear(), kernels.Polynomial(degree=2))
        for budget in ("merge", "project")
    ),
]


def rings(n, seed=0):
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(n, 2)).astype(np.float32)
    return x, (x**2).sum(axis=1) + 0.2 * draws.normal(size=n) < 1.4


@pytest.mark.parametrize(
    ("cls", "parameters"), CASES, ids=[f"{cls.__name__}-{given}" for cls, given in CASES]
)
def test_the_support_vectors_are_the_model(cls, parameters):
    x, y = rings(400)
    model = cls(**{"kernel": kernels.RBF(gamma=1.0), "seed": 0} | parameters)
    assert model.support_vectors().labels == []
    model.learn_many(x, y)
    found, kernel = model.support_vectors(), model.kernel_
    # The bias of an SBP is the parameter whether there is one.
    bias = getattr(model, "bias_", getattr(model, "bias", 0.0))
    assert (bias == 0.0) == (cls in (*FAMILY, TrackingSVMClassifier) or "bias" in parameters)
    by_hand = expected(kernel, x[:20], found.rows) @ found.coefficients + bias
    np.testing.assert_allclose(model.decision_function_many(x[:20]), by_hand, rtol=1e-3, atol=1e-3)
    assert hasattr(model, "squared_norm") is (cls not in (SBPClassifier, HullerClassifier))
    if hasattr(model, "squared_norm"):
        gram = expected(kernel, found.rows, found.rows)
        norm = found.coefficients @ gram @ found.coefficients
        assert model.squared_norm == pytest.approx(norm, rel=1e-3)
    if "kernel" not in parameters:
        # A window of 60 leaves an iteration for each of its examples, and a circle of few of them.
        least = 0.75 if "window" in parameters else 0.9
        assert np.mean(np.array(model.predict_many(x)) == y) > least
    limit = parameters.get("max_support_vectors", parameters.get("window", 400))
    assert len(found.rows) == len(found.labels) == model.n_support_vectors <= limit
    assert model.memory_usage > found.rows.nbytes and any(model.counters.values())
    if parameters.get("budget") != "merge":
        assert (np.diff(found.entered) > 0).all()
        np.testing.assert_array_equal(found.rows, x[found.entered - 1])
        if "max_support_vectors" not in parameters:
            assert found.labels == y[found.entered - 1].tolist()
    if cls is HullerClassifier:
        # Scaled so that the margin is 1: coefficients of each class sum to 2 / distance^2.
        own = found.coefficients
        assert own.sum() == pytest.approx(0.0, abs=1e-6 * np.abs(own).sum())
        assert own[own > 0].sum() == pytest.approx(2.0 / model.distance**2, rel=1e-6)


# Perceptrons, passive-aggressive learning and Pegasos


RBF = kernels.RBF(gamma=1.0)


def test_an_average_is_the_default_unless_vectors_are_lost():
    averages = {
        (None, None): True,
        (50, None): True,
        (50, "merge"): True,
        (50, "remove"): False,
        (None, "remove"): True,
    }
    for (limit, budget), is_averaged in averages.items():
        model = KernelPerceptronClassifier(max_support_vectors=limit, budget=budget)
        assert bool(model.solver.schedule.averaged) == is_averaged, (limit, budget)
    assert "last model" in KernelPegasosClassifier(averaged=False).description


@pytest.mark.parametrize("cls", [*FAMILY, HullerClassifier])
def test_a_monitor_follows_the_objective(cls):
    x, y = rings(400)
    monitor = TrackingMonitor(cls(RBF, seed=0), every=100)
    monitor.learn_many(x, y)
    model = monitor.model
    signs = np.where(y, 1.0, -1.0)
    margin = 0.0 if cls is KernelPerceptronClassifier else 1.0
    losses = np.maximum(0.0, margin - signs * model.decision_function_many(x))
    objective = losses.mean()
    if cls is KernelPegasosClassifier:
        objective += 0.5 * model.l2 * model.squared_norm
    classes = np.array([model.targets.number_of(label) for label in y.tolist()])
    assert model.objective_of(x, classes, np.ones(len(y))) == pytest.approx(objective, rel=1e-6)
    assert np.isfinite(monitor.get()["objective"])
    assert model.certificate.value is None and model.certificate.reason.startswith("no certificate")


def test_vectors_that_depend_by_a_new_gamma_still_span_a_projection():
    # Of the first 64 rows all distances are small; of the next, in one column, a thousand times.
    draws = np.random.default_rng(0)
    x = draws.normal(size=(600, 3)).astype(np.float32) * np.float32(1e-3)
    x[64:, 0] += draws.normal(size=536)
    y = x[:, 1] > 0
    model = KernelPAClassifier(max_support_vectors=50, seed=0)
    model.learn_many(x[:64], y[:64])
    before = model.kernel_
    model.learn_many(x[64:], y[64:])
    assert model.kernel_ != before
    assert np.abs(model.support_vectors().coefficients).max() < 1e4
    assert np.abs(model.decision_function_many(x)).max() < 100.0


@pytest.mark.parametrize("cls", FAMILY)
def test_merged_vectors_do_not_get_worse_with_the_stream(cls):
    """With the mean of all models errors rose from .16 to .36 (PA-I), .23 to .60 (perceptron)."""
    centres = np.random.default_rng(81).normal(size=(2, 6)) * 1.2
    draws = np.random.default_rng(5)
    y = draws.integers(0, 2, 12_000)
    x = (centres[y] + draws.normal(size=(len(y), 6))).astype(np.float32)
    model = cls(max_support_vectors=100, budget="merge", seed=1)
    wrong = np.array(model.predict_then_learn_many(x, y.tolist())) != y
    assert wrong[-3000:].mean() < wrong[:3000].mean() + 0.04


# The stochastic batch perceptron


def disc(n=200, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    return x, (x * x).sum(axis=1) < 1.4


def test_rows_that_are_only_kept_are_learnt_by_finish():
    x, y = disc()
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
    x, y = disc()
    model = SBPClassifier(RBF, seed=0)
    for _ in range(2):
        model.learn_many(x, y, ids=np.arange(1, 201))
    assert model.n_kept == 200 and model.n_examples == 400


@pytest.mark.parametrize(
    "parameters", [{"window": 100}, pytest.param({"reservoir": 100}, marks=compiles("sbp-3"))]
)
def test_a_row_that_has_left_does_not_matter_any_more(parameters, tmp_path):
    x, y = disc(1000)
    weights = np.ones(1000)
    x[0], weights[0] = 1e3, 1e12
    model = SBPClassifier(kernels.Linear(), seed=4, **parameters)
    model.learn_many(x, y, w=weights)
    assert len(model.support_vectors()[1]) <= 100
    model.save(tmp_path / "m.svm")
    for info in (model.state.info[0], streamsvm.load(tmp_path / "m.svm").state.info[0]):
        assert info.cost_most == 1.0 and info.cost_positive + info.cost_negative == 100.0
        assert 1.0 < info.r2 < 50.0
