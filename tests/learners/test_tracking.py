import numpy as np
import pytest

from streamsvm import TrackingSVMClassifier, kernels
from streamsvm.errors import FeatureError, ParameterError
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


def same(a, b):
    for averaged in (True, False):
        a.averaged = b.averaged = averaged
        sv, other = a.support_vectors(), b.support_vectors()
        np.testing.assert_array_equal(sv.coefficients, other.coefficients)
        np.testing.assert_array_equal(sv.entered, other.entered)
        np.testing.assert_array_equal(sv.rows, other.rows)
    assert (a.dual, a.kernel_, a.certificate) == (b.dual, b.kernel_, b.certificate)
    np.testing.assert_array_equal(a.targets.calibration, b.targets.calibration)


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


def test_seeds():
    x, y = rows(200)
    a, b, c = (TrackingSVMClassifier(seed=s) for s in (1, 1, 2))
    for m in (a, b, c):
        m.learn_many(x, y)
    same(a, b)
    assert a.dual != c.dual


def test_weights_scale_the_boxes():
    x, y = rows(200)
    model = TrackingSVMClassifier(C=0.1, class_weight={True: 3.0}, seed=1)
    w = np.where(np.arange(200) % 2 == 0, 1.0, 0.0)
    model.learn_many(x, y, w=w)
    sv = model.support_vectors()
    assert set(sv.entered % 2) == {1}
    assert sv.coefficients.max() == pytest.approx(0.3) and sv.coefficients.min() >= -0.1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"K": 0}, "K=0: use a whole number of at least 1"),
        ({"K": 2.5}, "K=2.5"),
        ({"K": 3, "epsilon": 0.1}, "give one of them"),
        ({"epsilon": 0.0}, "epsilon=0.0: use a number above 0"),
        ({"epsilon": "small"}, "epsilon='small'"),
        ({"window": 0}, "window=0: use a whole number of at least 1, or None"),
        ({"reservoir": -1}, "reservoir=-1"),
        ({"reservoir": 5, "window": 5}, "use one only"),
        ({"reservoir": 5, "gradients": "support"}, "is not uniform"),
        ({"max_support_vectors": 1}, "of at least 2"),
        ({"gradients": "fresh"}, "use it with kernels.Linear"),
        ({"gradients": "some"}, "use None or one of 'all', 'support', 'fresh'"),
        (
            {"kernel": kernels.Linear(), "gradients": "fresh", "max_support_vectors": 5},
            "use window or reservoir",
        ),
        ({"class_weight": "balanced"}, "class_weight='balanced'"),
        ({"tau": -1.0}, "tau=-1.0"),
        ({"C": 0.0}, "C=0.0"),
        ({"C": "auto"}, "C='auto'"),
    ],
)
def test_refused_parameters(parameters, words):
    with pytest.raises(ParameterError, match=words):
        TrackingSVMClassifier(**parameters)


def test_a_kernel_with_a_negative_diagonal_is_refused_and_changes_nothing():
    model = TrackingSVMClassifier(Cosine(-1.0), seed=1)
    model.learn_many(np.full((2, 2), 0.1), [True, False])
    before = model.dual
    with pytest.raises(FeatureError, match=r"of the row with itself is .*-0\.[89]"):
        model.learn_many(np.full((1, 2), np.sqrt(0.95)), [True])
    assert model.dual == before and model.n_examples == 2


@pytest.mark.parametrize("kernel", [kernels.RBF(gamma=0.5), kernels.Linear()])
def test_the_norm_is_that_of_the_average_that_predicts(kernel):
    draws = np.random.default_rng(0)
    x = draws.normal(size=(300, 3)).astype(np.float32)
    model = TrackingSVMClassifier(kernel)
    model.learn_many(x, (x[:, 0] * x[:, 1] > 0.0).tolist())
    vectors = model.support_vectors()
    z, own = np.asarray(vectors.rows, np.float64), vectors.coefficients
    squares = ((z[:, None] - z[None]) ** 2).sum(axis=2)
    k = z @ z.T if isinstance(kernel, kernels.Linear) else np.exp(-0.5 * squares)
    assert model.squared_norm == pytest.approx(own @ k @ own, rel=1e-3)
