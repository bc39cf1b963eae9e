"""The objective over the stream, of models whose support vectors were merged."""

import numpy as np
import pytest

from streamsvm import LASVMClassifier, TrackingMonitor, kernels
from tests.learners.test_lasvm import rows

RBF = kernels.RBF(gamma=1.0)


@pytest.fixture(scope="module")
def data():
    return rows(700)


@pytest.mark.parametrize("window", [None, 150])
def test_it_is_that_of_all_examples_if_all_are_sampled(data, window):
    x, y = data
    model = LASVMClassifier(kernel=RBF, C=2.0, max_support_vectors=20, window=window)
    monitor = TrackingMonitor(model, sample=1000)
    monitor.learn_many(x, y)
    values, n = monitor.get(), window or 700
    signs = np.where(y[-n:], 1, -1)
    hinge = np.maximum(0.0, 1.0 - signs * model.decision_function_many(x[-n:]))
    assert values["objective"] == pytest.approx(
        model.squared_norm / 2.0 / (2.0 * n) + hinge.mean(), rel=1e-5
    )
    assert values["objective_low"] < values["objective"] < values["objective_high"]
    # Merged vectors are no examples: of the stream's gap nothing is known.
    assert values["gap"] is values["gap_high"] is values["averaged_gap"] is None
    assert values["kept_gap"] < 0.1 < values["objective"]
    assert "not known of all examples" in " ".join(monitor.report().split())


def test_the_interval_of_a_small_sample_covers_it(data):
    x, y = data
    covered = []
    model = LASVMClassifier(kernel=RBF, max_support_vectors=20)
    model.learn_many(x, y)
    hinge = np.maximum(0.0, 1.0 - np.where(y, 1, -1) * model.decision_function_many(x))
    truth = model.squared_norm / 2.0 / 700 + hinge.mean()
    for seed in range(60):
        fresh = LASVMClassifier(kernel=RBF, max_support_vectors=20)
        monitor = TrackingMonitor(fresh, sample=50, seed=seed)
        monitor.learn_many(x, y)
        values = monitor.measure()
        covered.append(values["objective_low"] <= truth <= values["objective_high"])
    assert np.mean(covered) >= 0.85
