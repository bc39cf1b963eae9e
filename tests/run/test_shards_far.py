"""Shards: values far away do not ruin the scale of a feature, whoever has them, and are counted."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamsvm import LASVMClassifier, StandardScaler, SVMSGDClassifier, kernels
from streamsvm.run.shards import LocalWorkers, train_on_shards

KERNEL = kernels.RBF(gamma=0.5)
PIPELINE = StandardScaler() | LASVMClassifier(KERNEL, C=1.0)


def drawn(n=1200, seed=0):
    """Rows whose label needs both features, one of which is near 60, and labels."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 2))
    y = (x**2).sum(axis=1) + 0.3 * random.normal(size=n) > 1.4
    return x * [8.0, 2.0] + [60.0, 5.0], y


def write(path, x, y):
    columns = {f"x{c}": column for c, column in enumerate(x.T)} | {"label": y}
    pq.write_table(pa.table(columns), path)
    return path


def trained(tmp_path, x, y, template=PIPELINE, **options):
    path = write(tmp_path / "d.parquet", x, y)
    return train_on_shards(template, path, "label", **{"shards": 4} | options)


def accuracy(model):
    x, y = drawn(2000, seed=1)
    return float(np.mean(np.array(model.predict_many(table(x))) == y))


def table(x):
    return pa.table({f"x{c}": column for c, column in enumerate(x.T)})


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
    agree = np.array(model.predict_many(table(x))) == np.array(clean.predict_many(table(x)))
    assert agree.mean() > 0.97


def test_the_model_is_the_same_with_any_workers_and_rows_of_any_shard(tmp_path):
    x, y = drawn()
    x[[3, 900], 1] = 1e30, 1e5
    x[::7, 0] = np.nan
    models = [trained(tmp_path, x, y, workers=w)[0] for w in (None, Forgetful())]
    for other in models[1:]:
        for name, own in models[0]["StandardScaler"].statistics.items():
            assert other["StandardScaler"].statistics[name] == own
        a, b = (m["LASVMClassifier"].support_vectors() for m in (models[0], other))
        assert (a.entered == b.entered).all() and (a.coefficients == b.coefficients).all()
    assert models[0]["StandardScaler"].statistics["x0"][0] == np.isfinite(x[:, 0]).sum()
    differently = trained(tmp_path, x, y, shards=9)[0]["StandardScaler"].statistics["x1"]
    assert differently == pytest.approx(models[0]["StandardScaler"].statistics["x1"], rel=1e-12)


class Forgetful(LocalWorkers):
    """All of them read their rows again at each question."""

    def open(self, *given):
        self.given = given
        super().open(*given)

    def ask(self, task, which, *given):
        self.open(*self.given)
        yield from super().ask(task, which, *given)


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
    template = StandardScaler() | LASVMClassifier(KERNEL, C=10.0)
    plain = StandardScaler(clip=None) | LASVMClassifier(KERNEL, C=10.0)
    correct = []
    for pipeline in (template, plain):
        model, report = trained(tmp_path, x, y, pipeline, gap=0.01)
        correct.append(np.mean(np.array(model.predict_many(table(x))) == y))
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


def test_without_a_limit_moments_are_plain(tmp_path):
    x, y = drawn()
    x[5, 0] = 1e4
    model, report = trained(tmp_path, x, y, StandardScaler(clip=None) | LASVMClassifier(KERNEL))
    _, mean, variance = model["StandardScaler"].statistics["x0"]
    assert [mean, variance] == pytest.approx([x[:, 0].mean(), x[:, 0].var()], rel=1e-9)
    assert not report.clipped


def test_a_feature_that_is_the_same_in_all_rows_has_no_variance(tmp_path):
    x, y = drawn()
    x = np.c_[x, np.full(len(x), 0.1)]
    model, _ = trained(tmp_path, x, y)
    assert model["StandardScaler"].statistics["x2"] == (len(x), 0.1, 0.0)


def test_a_small_clip_leaves_usual_values_alone(tmp_path):
    x, y = drawn()
    model, report = trained(tmp_path, x, y, StandardScaler(clip=1.0) | LASVMClassifier(KERNEL))
    assert model["StandardScaler"].statistics["x0"][2] == pytest.approx(x[:, 0].var(), rel=1e-9)
    assert not report.clipped
