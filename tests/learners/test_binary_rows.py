"""Learners whose rows are of 0 and 1 only, at first or always: the models that floats give."""

import numpy as np
import pytest

from streamsvm import (
    KernelPerceptronClassifier,
    LaRankClassifier,
    LASVMClassifier,
    TrackingSVMClassifier,
    kernels,
)
from tests.learners.test_all_learners import by_events, content, saved
from tests.slow import compiles

RBF = kernels.RBF(gamma=0.05)
LEARNERS = {
    "lasvm": lambda: LASVMClassifier(RBF, C=2.0),
    "lasvm merge": lambda: LASVMClassifier(RBF, max_support_vectors=40),
    "lasvm window": lambda: LASVMClassifier(RBF, window=100),
    "lasvm of classes": lambda: LASVMClassifier(RBF, C=2.0),
    "larank": lambda: LaRankClassifier(RBF, seed=1),
    "tracking": lambda: TrackingSVMClassifier(RBF, seed=1),
    "kernel perceptron": lambda: KernelPerceptronClassifier(RBF, max_support_vectors=40),
}
N, D = 400, 130


def problem(n_classes):
    rng = np.random.default_rng(0)
    x = (rng.random((N, D)) < rng.uniform(0.02, 0.6, D)).astype(np.float32)
    score = (x - x.mean(axis=0)) @ rng.normal(size=D) + rng.normal(size=N)
    return x, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def beside(x, value):
    """The same rows with one more feature, which has this value in all of them."""
    return np.column_stack([x, np.full(len(x), value, np.float32)])


def learnt(make, x, y):
    model = make()
    predicted = model.predict_then_learn_many(x[:300], y[:300])
    return model, predicted + by_events(model, x[300:], y[300:])


@pytest.mark.parametrize("mixed_at", [None, 0, 170, 350])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(k, marks=() if k in ("lasvm", "lasvm of classes") else compiles(f"{k} dense"))
        for k in LEARNERS
    ],
)
def test_the_model_is_that_of_rows_that_are_not_binary(name, mixed_at, tmp_path):
    x, y = problem(3 if name in ("lasvm of classes", "larank") else 2)
    if mixed_at is not None:
        x[mixed_at, 100] = 0.5
    # Distances do not depend on a feature that is the same in all rows.
    model, predicted = learnt(LEARNERS[name], beside(x, 1.0), y)
    other, others = learnt(LEARNERS[name], beside(x, 0.5), y)
    assert not other.state.store.binary[0]
    if mixed_at is None and name != "lasvm merge":
        assert model.state.store.binary[0]
    assert predicted == others
    for own, its in zip(model.solver.expansion(D), other.solver.expansion(D), strict=True):
        np.testing.assert_array_equal(own, its)
    if mixed_at is None and name == "lasvm":
        loaded, n = saved(model, tmp_path / "model.svm"), model.state.info[0].n // 32
        assert loaded.state.store.binary[0]
        np.testing.assert_array_equal(loaded.state.store.words[:n], model.state.store.words[:n])
        for one in (model, loaded):
            one.learn_many(beside(x, 1.0)[200:], y[200:])
        assert content(model) == content(loaded)


def test_scaled_features_are_not_bits_and_scaled_back_they_are():
    x, y = problem(2)
    model = LASVMClassifier(RBF, C=2.0)
    model.learn_many(x, y)
    scaled = model.solver.with_rows_scaled(np.full(D, 0.5, np.float32), D)
    assert not scaled.state.store.binary[0] and model.state.store.binary[0]
    again = scaled.with_rows_scaled(np.full(D, 2.0, np.float32), D)
    assert again.state.store.binary[0]
    np.testing.assert_array_equal(again.state.store.words, model.state.store.words)
