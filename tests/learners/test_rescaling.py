"""Kernel learners whose scales change after the trial, or whose rows have outliers."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier
from streamsvm.models.kernel.feature_scales import (
    HALF,
    HIGH,
    LOW,
    NO_LIMIT,
    FeatureScales,
    differ,
    limits_of,
)
from streamsvm.models.rows import scaled_rows
from streamsvm.support.feature_statistics import COUNT, VARIANCE
from tests.learners.test_trial import LEARNERS, learnt, stream
from tests.reference.slow_scales import SlowScale
from tests.slow import slow_but


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


def test_steady_scales_are_left_alone_and_raw_and_sparse_rows_have_none():
    x, y = stream(2100, noise_scale=100.0)
    model = learnt(new(LASVMClassifier), x[:1030], y[:1030])
    before = model.preparation.factors
    learnt(model, x[1030:], y[1030:])
    assert model.preparation.factors is before and model.preparation.scales is not None
    assert not differ(np.array([1.2, 0.9])) and differ(np.array([1.0, 0.6]))
    model.model.become_sparse()
    learnt(model, *changing(1000))
    assert model.preparation.scales is None
    raw = learnt(LASVMClassifier(scale=False), x, y)
    assert raw.preparation.scales is None and raw.preparation.factors is None


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


# Outliers, and rows that were best as they are and then change


ALL = pytest.mark.parametrize("cls", [LASVMClassifier, LaRankClassifier, AdaptiveSVMClassifier])


def three_features(n, seed=0):
    """Return rows of three features of one scale, and labels that depend on all."""
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x.astype(np.float32), x[:, 0] * x[:, 1] + x[:, 2] > 0.0


def right(model, x, y, last=None):
    """Return the share of the last rows that are predicted before they are learnt."""
    predicted = np.array(model.predict_then_learn_many(x, y.tolist()))
    return np.mean((predicted == y)[-(last or len(y)) :])


@ALL
@pytest.mark.parametrize("at", slow_but([5, 300, 1100], 300))
def test_one_outlier_does_no_harm(cls, at):
    x, y = three_features(2200)
    clean = right(cls(seed=1), x, y)
    x[at, 0] = 1000.0
    assert right(cls(seed=1), x, y) > clean - 0.02


@LEARNERS
@pytest.mark.parametrize("first", [0, 1024])
def test_many_outliers_cost_little(cls, first):
    x, y = three_features(3000)
    clean = right(cls(seed=1), x, y)
    is_outlier = np.random.default_rng(1).random(x.shape) < 0.01
    is_outlier[:first] = False
    x[is_outlier] *= 1000.0
    # Three of a hundred rows have one, of which half may be taken for the other class.
    assert right(cls(seed=1), x, y) > clean - 0.05


@ALL
def test_rows_that_were_best_as_they_are_keep_their_weights_when_a_unit_changes(cls):
    x, y = three_features(4000)
    clean = right(cls(seed=1), x, y, 1500)
    x[1300:, 1] *= 1000.0
    model = cls(seed=1)
    # Once the 2,048th example is learnt.
    assert right(model, x, y, 1500) > clean - 0.04
    if cls is not AdaptiveSVMClassifier:
        assert model.chosen.startswith("raw rows, ") and model.preparation.factors[1] < 0.01


@LEARNERS
def test_a_feature_that_was_constant_weighs_as_the_others_do(cls):
    x, y = three_features(4000)
    x[:, 1] *= 50.0
    clean = right(cls(seed=1, scale=True), x, y, 1500)
    x[:1300, 1], y[:1300] = 7.0, x[:1300, 2] > 0.0
    model = cls(seed=1)
    assert right(model, x, y, 1500) > clean - 0.04
    assert model.chosen.startswith("raw rows, ")
    assert (
        model.preparation.factors[1] == pytest.approx(1 / 30, rel=0.5)
        and model.preparation.factors[0] == 1.0
    )


def test_a_feature_that_is_seldom_another_value_is_not_made_larger():
    x, y = three_features(4200)
    x = np.hstack([x, np.zeros((4200, 1), np.float32)])
    x[1500::200, 3] = 0.01
    model = learnt(LASVMClassifier(), x, y)
    assert model.chosen.startswith("raw rows, ") and model.preparation.factors is None


def changing_units(n):
    x, y = three_features(n)
    x[1300:, 1] *= 1000.0
    # A feature that comes when the trial is over.
    return np.hstack([x, 100.0 * (np.arange(n) > 1500)[:, None] * x[:, :1]]), y


@LEARNERS
@pytest.mark.parametrize("n_classes", [2, 3])
def test_support_vectors_are_rows_as_they_came_where_a_unit_has_changed(cls, n_classes):
    x, y = changing_units(2300)
    y = y + (n_classes > 2) * (x[:, 0] > 1.0)
    model = learnt(cls(seed=1, window=500), x, y, parts=(300, 1400, 1700))
    assert model.preparation.factors[1] < 0.02 and model.preparation.factors[3] < 0.1
    found, scale = model.support_vectors(), x.std(axis=0)
    off = np.abs(found.rows[:, None] / scale - x / scale).max(axis=2)
    assert off.min(axis=1).max() < 1e-4
    assert found.labels == y[off.argmin(axis=1)].tolist()


def test_statistics_are_those_of_the_slow_twin():
    draws = np.random.default_rng(0)
    x = draws.normal(size=(600, 4)).astype(np.float32)
    x[draws.random(x.shape) < 0.01] *= 1000.0
    x[300:, 1] += 300.0
    x[:, 3] = draws.random(600) < 0.01
    scales = FeatureScales()
    scales.learn_first(x[:200])
    scales.learn(x[200:])
    for c in range(4):
        slow = SlowScale(x[:200, c])
        for value in x[:, c].tolist():
            slow.learn(value)
        assert scales.statistics[VARIANCE, c] == pytest.approx(slow.variance, rel=1e-6)
        limits = np.clip([slow.low, slow.high], -NO_LIMIT, NO_LIMIT)
        np.testing.assert_allclose(scales.limits[[LOW, HIGH], c], limits, rtol=1e-6)
    assert (scales.limits[HIGH] < NO_LIMIT).tolist() == [True, True, True, False]
    assert scales.statistics[VARIANCE, 0] < 2.0 < 1e4 < scales.statistics[VARIANCE, 1]


def test_few_values_are_all_within_their_limits():
    for n in (1, 4, 49):
        x = np.random.default_rng(n).standard_cauchy(size=(n, 2)).astype(np.float32)
        limits = limits_of(x)
        assert (x >= limits[LOW]).all() and (x <= limits[HIGH]).all()


def test_outliers_of_a_feature_that_is_mostly_zero_leave_the_scaled_rows_to_choose():
    x, y = three_features(1500)
    amounts = np.random.default_rng(2).random(1500)
    x = np.hstack([x, np.where(amounts < 0.1, amounts, 0.0)[:, None]]).astype(np.float32)
    clean = right(LASVMClassifier(), x, y)
    x[300, 3] = 1e6
    model = LASVMClassifier()
    assert right(model, x, y) > clean - 0.05
    assert model.chosen.startswith("scaled rows, ")
