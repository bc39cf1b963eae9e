"""Outliers, and rows that were best as they are and then change, in kernel learners by default."""

import numpy as np
import pytest

from streamsvm import AdaptiveSVMClassifier, LaRankClassifier, LASVMClassifier
from streamsvm.models.kernel.feature_scales import HIGH, LOW, NO_LIMIT, FeatureScales, limits_of
from streamsvm.support.feature_statistics import VARIANCE
from tests.learners.test_trial import learnt
from tests.reference.slow_scales import SlowScale
from tests.slow import slow_but

ALL = pytest.mark.parametrize("cls", [LASVMClassifier, LaRankClassifier, AdaptiveSVMClassifier])
TWO = pytest.mark.parametrize("cls", [LASVMClassifier, LaRankClassifier])


def stream(n, seed=0):
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
    x, y = stream(2200)
    clean = right(cls(seed=1), x, y)
    x[at, 0] = 1000.0
    assert right(cls(seed=1), x, y) > clean - 0.02


@TWO
@pytest.mark.parametrize("first", [0, 1024])
def test_many_outliers_cost_little(cls, first):
    x, y = stream(3000)
    clean = right(cls(seed=1), x, y)
    is_outlier = np.random.default_rng(1).random(x.shape) < 0.01
    is_outlier[:first] = False
    x[is_outlier] *= 1000.0
    # Three of a hundred rows have one, of which half may be taken for the other class.
    assert right(cls(seed=1), x, y) > clean - 0.05


@ALL
def test_rows_that_were_best_as_they_are_keep_their_weights_when_a_unit_changes(cls):
    x, y = stream(4000)
    clean = right(cls(seed=1), x, y, 1500)
    x[1300:, 1] *= 1000.0
    model = cls(seed=1)
    # Once the 2,048th example is learnt.
    assert right(model, x, y, 1500) > clean - 0.04
    if cls is not AdaptiveSVMClassifier:
        assert model.chosen.startswith("raw rows, ") and model.preparation.factors[1] < 0.01


@TWO
def test_a_feature_that_was_constant_weighs_as_the_others_do(cls):
    x, y = stream(4000)
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
    x, y = stream(4200)
    x = np.hstack([x, np.zeros((4200, 1), np.float32)])
    x[1500::200, 3] = 0.01
    model = learnt(LASVMClassifier(), x, y)
    assert model.chosen.startswith("raw rows, ") and model.preparation.factors is None


def changing(n):
    x, y = stream(n)
    x[1300:, 1] *= 1000.0
    # A feature that comes when the trial is over.
    return np.hstack([x, 100.0 * (np.arange(n) > 1500)[:, None] * x[:, :1]]), y


@TWO
@pytest.mark.parametrize("n_classes", [2, 3])
def test_support_vectors_are_rows_as_they_came_where_a_unit_has_changed(cls, n_classes):
    x, y = changing(2300)
    y = y + (n_classes > 2) * (x[:, 0] > 1.0)
    model = learnt(cls(seed=1, window=500), x, y, parts=(300, 1400, 1700))
    assert model.preparation.factors[1] < 0.02 and model.preparation.factors[3] < 0.1
    found = model.support_vectors()
    np.testing.assert_allclose(found.rows, x[found.entered - 1], rtol=1e-5)
    assert found.labels == y[found.entered - 1].tolist()


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
    x, y = stream(1500)
    amounts = np.random.default_rng(2).random(1500)
    x = np.hstack([x, np.where(amounts < 0.1, amounts, 0.0)[:, None]]).astype(np.float32)
    clean = right(LASVMClassifier(), x, y)
    x[300, 3] = 1e6
    model = LASVMClassifier()
    assert right(model, x, y) > clean - 0.05
    assert model.chosen.startswith("scaled rows, ")
