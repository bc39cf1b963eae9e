"""Kernel learners of scaled rows when the scales change after the trial."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from streamsvm import LaRankClassifier, LASVMClassifier
from streamsvm.models.kernel.feature_scales import HALF, FeatureScales, differ
from streamsvm.models.rows import scaled_rows
from streamsvm.support.feature_statistics import COUNT
from tests.learners.test_trial import learnt, stream


def changing(n, at=1100, factor=300.0):
    """Return rows whose two features of noise grow after `at` rows, and labels."""
    x, y = stream(n, noise_scale=10.0)
    x[at:, 2:4] *= factor
    return x, y


def new(cls, **parameters):
    return cls(scale=True, seed=1, **parameters)


def test_the_model_is_that_of_the_rescaled_rows():
    x, y = changing(2100)
    y ^= np.random.default_rng(1).random(len(y)) < 0.1
    model = learnt(new(LASVMClassifier, C=10.0, reserve=400), x, y)
    found = model.support_vectors()
    np.testing.assert_allclose(found.rows, x[found.entered - 1], rtol=1e-5)
    assert model.preparation.factors[2] < 1e-3
    assert model.memory_parts["scratch"] > model.preparation.scales.nbytes > 0
    scaled = scaled_rows(x, model.preparation.factors)
    held, facts = model.solver.kept_rows.rows()
    np.testing.assert_allclose(held, scaled[facts["number"] - 1], rtol=1e-5)
    gram = np.exp(-model.kernel_.gamma * cdist(scaled, scaled, "sqeuclidean"))
    margins = gram[:, found.entered - 1] @ found.coefficients + model.bias
    np.testing.assert_allclose(model.decision_function_many(x), margins, atol=1e-3)
    before = model.dual
    model.finish()
    assert model.dual > before
    found = model.support_vectors()
    signs = np.where(found.labels, 1.0, -1.0)
    part = gram[np.ix_(found.entered - 1, found.entered - 1)]
    dual = signs @ found.coefficients - 0.5 * found.coefficients @ part @ found.coefficients
    assert model.dual == pytest.approx(dual, rel=1e-3)


def test_statistics_are_those_of_all_rows():
    draws = np.random.default_rng(0)
    x = (draws.normal(size=(16384, 3)) * [1.0, 5.0, 0.0]).astype(np.float32)
    x[3000:, 1] *= 3.0
    x[:, 2] = draws.random(16384) < 0.1
    scales = FeatureScales()
    scales.learn(x[: 2 * HALF])
    for n in (1024, 2048, 4096, 8192):
        scales.begin_half()
        middle = n + 77
        scales.learn_some(x[n:middle], n)
        scales.learn_some(x[middle : 2 * n], middle)
    np.testing.assert_allclose(scales.factors()[:2], 1.0 / x[:, :2].std(axis=0), rtol=0.1)
    assert scales.factors()[2] == 1.0
    assert scales.statistics[COUNT].tolist() == [2 * HALF] * 3


def test_a_feature_that_comes_later_is_scaled_when_the_stream_has_doubled():
    x, y = stream(2100, noise_scale=100.0)
    one = new(LASVMClassifier)
    for i, row in enumerate(x.tolist()):
        one.learn_one(dict(enumerate(row[: 2 if i < 1400 else 5])), bool(y[i]))
    assert len(one.preparation.factors) == 5 and one.preparation.factors[2] == pytest.approx(
        0.0178, rel=0.1
    )
    assert one.preparation.factors[4] == 1.0


def test_steady_scales_are_left_alone():
    x, y = stream(2100, noise_scale=100.0)
    model = learnt(new(LASVMClassifier), x[:1030], y[:1030])
    before = model.preparation.factors
    learnt(model, x[1030:], y[1030:])
    assert model.preparation.factors is before
    assert not differ(np.array([1.2, 0.9])) and differ(np.array([1.0, 0.6]))


def test_raw_rows_and_sparse_rows_keep_no_statistics():
    x, y = stream(1100)
    raw = learnt(LASVMClassifier(scale=False), x, y)
    assert raw.preparation.scales is None and raw.preparation.factors is None
    model = learnt(new(LASVMClassifier), x, y)
    assert model.preparation.scales is not None
    model.model.become_sparse()
    learnt(model, *changing(1000))
    assert model.preparation.scales is None


@pytest.mark.parametrize("is_rebuilt", [False, True])
@pytest.mark.parametrize(
    ("cls", "n_classes"), [(LASVMClassifier, 2), (LASVMClassifier, 3), (LaRankClassifier, 3)]
)
@pytest.mark.parametrize(
    ("parameters", "n"), [({"scale": False, "gamma": "scale"}, 8), ({"scale": True}, 2048)]
)
def test_an_interruption_leaves_scale_and_width_as_the_model_has_them(
    cls, n_classes, parameters, n, is_rebuilt, monkeypatch
):
    x, y = changing(n)
    x[4:] *= 9.0
    y = y * 1 + (x[:, 0] > 1.0) * (n_classes > 2)
    y[:n_classes] = range(n_classes)
    model = learnt(cls(C=1.0, seed=1, **parameters), x[:-1], y[:-1])
    gamma, factors = model.kernel_.gamma, model.preparation.factors
    states = model.solver.states
    rebuild = states.rebuild

    def interrupted(*arguments):
        if is_rebuilt:
            rebuild(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(states, "rebuild", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn_one(dict(enumerate(x[-1].tolist())), y[-1].item())
    assert model.n_examples == n
    assert model.kernel_.gamma == gamma and model.preparation.factors is factors
    dual = model.dual
    model.solver.rebuild(len(model.schema))
    assert model.dual == pytest.approx(dual)


def test_with_a_limit_of_support_vectors_a_narrower_kernel_must_be_better_by_more_than_chance():
    errors = []
    for seed in (2, 5):
        # Two classes that overlap.
        draws = np.random.default_rng(seed)
        y = draws.random(6000) < 0.5
        x = draws.normal(size=(6000, 2))
        x[:, 0] += 2.0 * y - 1.0
        model = LaRankClassifier(max_support_vectors=200, seed=1)
        predicted = model.predict_then_learn_many(x.astype(np.float32), y.tolist())
        errors.append(np.mean(np.array(predicted)[-2000:] != y[-2000:]))
    assert max(errors) < 0.24


@pytest.mark.parametrize("cls", [LASVMClassifier, LaRankClassifier])
@pytest.mark.parametrize("scale", ["auto", True])
@pytest.mark.parametrize(("factor", "rise"), [(1.0, 50.0), (0.01, 0.0)])
def test_a_change_of_level_or_to_a_smaller_scale_does_no_lasting_harm(cls, scale, factor, rise):
    draws = np.random.default_rng(5)
    x = draws.normal(size=(5500, 3))
    y = x[:, 0] + x[:, 1] * x[:, 2] > 0.0
    x[2000:] = x[2000:] * factor + rise
    model = cls(scale=scale, seed=1)
    wrong = np.array(model.predict_then_learn_many(x.astype(np.float32), y.tolist())) != y
    assert wrong[4600:].mean() < wrong[1500:2000].mean() + 0.03
