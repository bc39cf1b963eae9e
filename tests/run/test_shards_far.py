"""Shards: values far away do not ruin the scale of a feature, whoever has them, and are counted."""

import numpy as np
import pytest

import streamsvm
from streamsvm import LASVMClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.run.shards import train_on_shards
from tests.run.shard_rows import KERNEL, Forgetful, are_same, table_of, write

PIPELINE = StandardScaler() | LASVMClassifier(KERNEL, C=1.0)


def drawn(n=1200):
    """Rows whose label needs both features, one of which is near 60, and labels."""
    random = np.random.default_rng(0)
    x = random.normal(size=(n, 2))
    y = (x**2).sum(axis=1) + 0.3 * random.normal(size=n) > 1.4
    return x * [8.0, 2.0] + [60.0, 5.0], y


def trained(tmp_path, x, y, template=PIPELINE, **options):
    path = write(tmp_path / "d.parquet", x, y)
    return train_on_shards(template, path, "label", **{"shards": 4} | options)


def predicted(model, x):
    return np.array(model.predict_many(table_of(x)))


FAR = {
    "one of 1e4": ([700], [1e4]),
    "one of 1e30": ([0], [-1e30]),
    "several in one shard": ([1, 5, 6, 90], [1e4, 1e4, 1e9, -3e38]),
    "one of each shard": ([100, 500, 700, 1100], [9999.0] * 4),
}


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("learner", [LASVMClassifier(KERNEL, C=1.0), None], ids=["rbf", "linear"])
def test_far_values_change_next_to_nothing_and_are_counted(tmp_path, caplog, name, learner):
    x, y = drawn()
    if learner is None:
        learner, y = SVMSGDClassifier(l2=0.01), x[:, 0] - 60.0 > 4.0 * (x[:, 1] - 5.0)
    template, dirty = StandardScaler() | learner, x.copy()
    clean, before = trained(tmp_path, x, y, template)
    caplog.clear()
    assert not before.clipped and "far" not in str(before)
    rows, values = FAR[name]
    dirty[rows, 0] = values
    model, report = trained(tmp_path, dirty, y, template)
    assert report.reached and report.gap <= 1e-3
    scaler = model["StandardScaler"]
    assert report.clipped == scaler.n_clipped == {"x0": len(rows)}
    levels = [r.levelname for r in caplog.records if "shards" in r.name]
    assert levels == ["WARNING"]
    assert f"x0 ({len(rows)})" in caplog.text and f"x0 ({len(rows)})" in str(report)
    n, mean, variance = scaler.statistics["x0"]
    assert n == len(y) and abs(mean - 60.0) < 2.0
    assert 64.0 * 0.9 < variance < 64.0 * (1.1 + 400.0 * len(rows) / n)
    assert scaler.statistics["x1"] == clean["StandardScaler"].statistics["x1"]
    assert (predicted(model, x) == predicted(clean, x)).mean() > 0.97


def test_the_model_is_the_same_with_any_workers_and_rows_of_any_shard(tmp_path):
    x, y = drawn()
    x[[3, 900], 1] = 1e30, 1e5
    x[::7, 0] = np.nan
    one, other = (trained(tmp_path, x, y, workers=w)[0] for w in (None, Forgetful()))
    statistics = one["StandardScaler"].statistics
    assert other["StandardScaler"].statistics == statistics
    assert are_same(one["LASVMClassifier"], other["LASVMClassifier"])
    assert statistics["x0"][0] == np.isfinite(x[:, 0]).sum()
    differently = trained(tmp_path, x, y, shards=9)[0]["StandardScaler"].statistics["x1"]
    assert differently == pytest.approx(statistics["x1"], rel=1e-12)


def features(n=6000):
    random = np.random.default_rng(3)
    rare = random.random(n) < 0.004
    return {
        "long tail": random.standard_t(1.5, size=n),
        "of large ones": random.lognormal(sigma=2.0, size=n),
        "rare": np.where(rare, 1.0, 0.0),
        "rare sizes": np.where(rare, random.exponential(size=n), 0.1),
        "two places": np.where(random.random(n) < 0.03, 1000.0, 0.0) + random.normal(size=n),
    }


@pytest.mark.parametrize("name", features())
def test_features_with_long_tails_keep_what_they_say(tmp_path, name):
    values = features()[name]
    random = np.random.default_rng(4)
    y = (values > np.quantile(values, 0.7)) ^ (random.random(len(values)) < 0.02)
    x = np.c_[values, random.normal(size=len(values))]
    correct = []
    for scaler in (StandardScaler(), StandardScaler(clip=None)):
        pipeline = scaler | LASVMClassifier(KERNEL, C=10.0)
        model, report = trained(tmp_path, x, y, pipeline, gap=0.01)
        correct.append(np.mean(predicted(model, x) == y))
        assert report.reached
    assert correct[0] >= correct[1] - 0.005


@pytest.mark.parametrize("usual", [0.0, 0.1, -300.0])
def test_a_feature_that_is_mostly_the_same_is_scaled_by_its_other_values(tmp_path, usual):
    x, y = drawn(4000)
    rare = np.arange(4000) % 150 == 3
    x[:, 1] = np.where(rare, np.random.default_rng(2).normal(50.0, 5.0, 4000), usual)
    x[~rare, 0] = np.where(y[~rare], 50.0, 70.0)
    clean, report = trained(tmp_path, x, y)
    _, mean, variance = clean["StandardScaler"].statistics["x1"]
    assert [mean, variance] == pytest.approx([x[:, 1].mean(), x[:, 1].var()], rel=1e-9)
    assert not report.clipped
    x[153, 1] = 1e30  # of 27 other values
    model, report = trained(tmp_path, x, y)
    assert report.clipped == {"x1": 1}
    assert 0.9 < model["StandardScaler"].statistics["x1"][2] / variance < 2.5


@pytest.mark.parametrize("clip", [None, 1.0])
def test_without_a_limit_and_with_a_small_one_moments_are_plain(tmp_path, clip):
    x, y = drawn()
    if clip is None:
        x[5, 0] = 1e4
    x = np.c_[x, np.full(len(x), 0.1)]
    template = StandardScaler(clip=clip) | LASVMClassifier(KERNEL)
    model, report = trained(tmp_path, x, y, template)
    for c in range(2):
        n, mean, variance = model["StandardScaler"].statistics[f"x{c}"]
        assert n == len(y)
        assert [mean, variance] == pytest.approx([x[:, c].mean(), x[:, c].var()], rel=1e-9)
    assert report.reached and not report.clipped and "rounding" in str(report)
    assert not template["StandardScaler"].statistics and not template["LASVMClassifier"].classes
    # That of a feature that is the same in all rows is exact.
    assert model["StandardScaler"].statistics["x2"] == (len(x), 0.1, 0.0)
    streamsvm.save(model, tmp_path / "m.svm")
    assert (predicted(streamsvm.load(tmp_path / "m.svm"), x) == predicted(model, x)).all()
