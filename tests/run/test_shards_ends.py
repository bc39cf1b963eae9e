"""Shards: whatever the data, rounds end, and the model is whole: saved, resumed, calibrated."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsvm
from streamsvm import LASVMClassifier, kernels
from streamsvm.run.shards import train_on_shards

KERNEL = kernels.RBF(gamma=0.5)


def write(path, x, y):
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "label": y}), path)
    return path


def drawn(n, classes, seed=0):
    """Rows of overlapping classes."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 2)).astype(np.float32)
    score = x[:, 0] + np.sin(2.0 * x[:, 1]) + 0.5 * random.normal(size=n)
    return x, np.digitize(score, np.linspace(-1.0, 1.0, classes + 1)[1:-1])


def interrupt(made):
    raise KeyboardInterrupt


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [3, 5])
def test_several_classes_are_saved_and_resumed(tmp_path, classes, multiclass):
    x, y = drawn(400, classes)
    order = np.argsort(-y, kind="stable")
    path = write(tmp_path / "d.parquet", x[order], y[order])
    template = LASVMClassifier(KERNEL, C=10.0, multiclass=multiclass)
    given = {"shards": 4, "folder": tmp_path / "work"}
    with pytest.raises(KeyboardInterrupt):
        train_on_shards(template, path, "label", on_round=interrupt, **given)
    for _ in range(2):  # resumed, and called again after the end
        model, report = train_on_shards(template, path, "label", **given)
        assert report.reached
    streamsvm.save(model, tmp_path / "m.svm")
    table = pa.table({"a": x[:, 0], "b": x[:, 1]})
    assert streamsvm.load(tmp_path / "m.svm").predict_many(table).equals(model.predict_many(table))


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_do_not_depend_on_the_order_of_rows(tmp_path, classes):
    x, y = drawn(3000, classes)
    new, label = drawn(1000, classes, seed=1)
    table, losses = pa.table({"a": new[:, 0], "b": new[:, 1]}), []
    for name, order in [("as", np.arange(len(y))), ("sorted", np.argsort(-y, kind="stable"))]:
        path = write(tmp_path / f"{name}.parquet", x[order], y[order])
        model, _ = train_on_shards(LASVMClassifier(KERNEL, C=1.0), path, "label", shards=4)
        found = model.predict_proba_many(table)
        of_each = np.array([found[str(c)].to_numpy() for c in range(classes)])
        losses.append(-np.log(of_each[label, np.arange(len(label))]).mean())
    assert losses[1] == pytest.approx(losses[0], abs=0.02)


@pytest.mark.parametrize("is_third", [False, True])
def test_classes_that_no_feature_separates_get_the_bias_of_all_rows(tmp_path, is_third):
    """All of their support vectors are at their bounds, so that these leave the bias open."""
    random = np.random.default_rng(0)
    y = (random.random(900) < 0.6).astype(int)
    x = np.zeros((900, 2), np.float32)
    if is_third:
        x[600:], y[600:] = random.normal(size=(300, 2)), 2
    path = write(tmp_path / "d.parquet", x, y)
    model, report = train_on_shards(LASVMClassifier(KERNEL, C=1.0), path, "label", shards=3)
    assert report.reached and len(report.rounds) <= 3
    streamsvm.save(model, tmp_path / "m.svm")
    for same in (model, streamsvm.load(tmp_path / "m.svm")):
        assert same.predict_one({"a": 0.0, "b": 0.0}) == 1


def test_equal_rows_need_few_rounds_without_a_reserve(tmp_path):
    x, y = np.zeros((600, 2), np.float32), np.arange(600) % 5 < 2
    path = write(tmp_path / "d.parquet", x, y)
    template = LASVMClassifier(KERNEL, C=1.0, reserve=0)  # it forgets what was sent
    model, report = train_on_shards(template, path, "label", shards=2, max_rounds=50)
    assert report.reached and len(report.rounds) <= 15
    assert model.predict_one({"a": 0.0, "b": 0.0}) is False


def test_a_gap_below_the_rounding_is_not_reached(tmp_path, caplog):
    path = write(tmp_path / "d.parquet", *drawn(600, 2))
    _, report = train_on_shards(LASVMClassifier(KERNEL, C=1.0), path, "label", gap=1e-9)
    assert report.rounding > 1e-9
    assert not report.reached and report.reason in caplog.text
