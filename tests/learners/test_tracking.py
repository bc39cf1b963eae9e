import numpy as np
import pytest

from streamsvm import TrackingSVMClassifier, kernels
from streamsvm.errors import FeatureError
from tests.kernels.test_values import Cosine
from tests.learners.test_lasvm import rows

SETTINGS = {
    "default": {},
    "support": {"gradients": "support", "averaged": False},
    "window": {"window": 60},
    "fresh": {"kernel": kernels.Linear(scale=0.5)},
}


def make(name):
    return TrackingSVMClassifier(**{"seed": 7, **SETTINGS[name]})


def test_another_seed_is_another_model():
    x, y = rows(200)
    models = [TrackingSVMClassifier(seed=seed) for seed in (1, 2)]
    for model in models:
        model.learn_many(x, y)
    assert models[0].dual != models[1].dual


def test_the_first_class_alone_may_be_the_positive_one():
    x, y = rows(300)
    order = np.argsort(~y, kind="stable")  # all True first
    for name in ("default", "fresh"):
        a, b = make(name), make(name)
        a.learn_many(x[order], y[order])
        b.learn_many(x[order], ["no" if label else "yes" for label in y[order]])
        np.testing.assert_allclose(
            a.decision_function_many(x), -b.decision_function_many(x), rtol=1e-12, atol=1e-12
        )


def test_epsilon_sets_k_with_the_largest_diagonal():
    x = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    model = TrackingSVMClassifier(kernels.Linear(), epsilon=0.5, C=2.0, tau=0.0, seed=1)
    model.learn_many(x[:1], [True])
    assert model.counters["steps"] == 64  # 8 C R2 / epsilon^2 with R2 = 1
    model.learn_many(x[1:], [False, True])
    assert model.counters["steps"] == 64 + 256 + 576


def test_the_averaged_classifier_is_the_mean_of_the_iterates():
    x, y = rows(40)
    model = TrackingSVMClassifier(K=1, seed=3)
    model.learn_many(x, y)
    averaged = model.decision_function_many(x)
    model.averaged = False
    # The mean of one iterate is that iterate.
    np.testing.assert_array_equal(averaged, model.decision_function_many(x))
    model = TrackingSVMClassifier(kernels.Linear(), K=20, tau=0.0, seed=3)
    model.learn_many(x, y)
    state = model.state
    alpha = state.average[: len(x)]
    np.testing.assert_allclose(alpha @ x, state.w_average, atol=1e-9)
    assert not np.allclose(state.w, state.w_average)


@pytest.mark.parametrize("name", ["default", "support", "fresh", "window"])
def test_finish_reaches_the_optimum_of_what_is_kept(name):
    x, y = rows(200)
    model = make(name)
    model.learn_many(x, y)
    before, certificate, papers = model.duality_gap(), model.certificate, model.papers_certificate
    seen = []
    model.finish(lambda worst, n: seen.append((worst, n)))
    assert model.duality_gap() < 1e-3 < before
    # Both are about the stream, not about finishing.
    assert model.certificate == certificate and model.papers_certificate == papers
    model.learn_many(x, y)


def test_a_kernel_with_a_negative_diagonal_is_refused_and_changes_nothing():
    model = TrackingSVMClassifier(Cosine(-1.0), seed=1)
    model.learn_many(np.full((2, 2), 0.1), [True, False])
    before = model.dual
    with pytest.raises(FeatureError, match=r"of the row with itself is .*-0\.[89]"):
        model.learn_many(np.full((1, 2), np.sqrt(0.95)), [True])
    assert model.dual == before and model.n_examples == 2
