"""What a learner saves it can load, however unequal the weights of its examples are."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.learners.test_all_learners import CASES, all_learners, saved

N, AT_ONCE = 90, 45
"""Rows, and how many are learnt together; then the model is saved."""


def rows(n_classes, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 3)).astype(np.float32)
    noisy = np.abs(x[:, 0]) + 0.3 * rng.normal(size=N)
    return x, np.clip(2.0 * noisy, 0, n_classes - 1).astype(int)


def check(model, x, path):
    """Save and load a model, which decides the same."""
    other = saved(model, path)
    decisions = model.decision_function_many(x)
    assert np.isfinite(decisions).all()
    np.testing.assert_array_equal(other.decision_function_many(x), decisions)
    assert other.predict_proba_one({0: 0.5}) == model.predict_proba_one({0: 0.5})
    return other


def learns_and_is_saved(cls, parameters, exponents, path):
    model = cls(**parameters)
    x, y = rows(min(4, model.most_classes or 4), len(exponents))
    w = 10.0 ** np.resize(exponents, N)
    for start in range(0, N, AT_ONCE):
        some = slice(start, start + AT_ONCE)
        model.learn_many(x[some], y[some], w[some])
        check(model, x, path)
    if hasattr(model, "unlearn"):
        model.unlearn([1, 7, N - 30, N - 2])
        check(model, x, path)
    if hasattr(model, "finish"):
        model.finish()
        check(model, x, path)


FADING = list(np.log10(0.8) * np.arange(N))


@all_learners
@settings(max_examples=3)
@given(exponents=st.lists(st.floats(-12.0, 12.0), min_size=2, max_size=7))
@example(exponents=[0.0, -12.0, 0.0])
@example(exponents=FADING)
@example(exponents=[0.0, 12.0])
def test_what_was_learnt_of_unequal_weights_can_be_loaded(
    cls, parameters, tmp_path_factory, exponents
):
    learns_and_is_saved(cls, parameters, exponents, tmp_path_factory.mktemp("m") / "m.svm")


@pytest.mark.parametrize("name", ["lasvm", "larank", "tracking"])
def test_a_window_from_which_heavy_examples_have_gone(name, tmp_path):
    cls = next(case.values[0] for case in CASES if case.id.startswith(f"{name}-"))
    model, rng = cls(window=30, seed=1), np.random.default_rng(0)
    x = rng.normal(size=(240, 3)).astype(np.float32)
    y = (np.abs(x[:, 0]) + 0.3 * rng.normal(size=240) > 0.5).astype(int)
    for start in range(0, 240, 40):
        some = slice(start, start + 40)
        model.learn_many(x[some], y[some], 0.8 ** np.arange(240.0)[some])
        check(model, x, tmp_path / "m.svm")
    assert model.finish() is None
    check(model, x, tmp_path / "m.svm")
