"""Kernel perceptrons, passive-aggressive learning, Pegasos and the Huller as learners."""

import numpy as np
import pytest

from streamsvm import (
    HullerClassifier,
    KernelPAClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    TrackingMonitor,
    kernels,
)
from tests.learners.test_support_vectors import FAMILY, rings

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
    expected = losses.mean()
    if cls is KernelPegasosClassifier:
        expected += 0.5 * model.l2 * model.squared_norm
    classes = np.array([model.targets.number_of(label) for label in y.tolist()])
    assert model.objective_of(x, classes, np.ones(len(y))) == pytest.approx(expected, rel=1e-6)
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
