"""Shards: the gap is that of all rows, the optimum that of one SVM, however rows are dealt.

Whatever the data, rounds end, and the model is whole: saved, resumed, calibrated.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.svm import SVC, LinearSVC

import streamsvm
from streamsvm import LASVMClassifier, SVMSGDClassifier, kernels
from streamsvm.errors import CheckpointError
from streamsvm.run.shards import LocalWorkers, train_on_shards
from tests.run.shard_rows import KERNEL, are_same, drawn, interrupt, table_of, write


def rows(n=600, classes=2):
    """Return rows sorted by label, with duplicates, and weights."""
    x, y = drawn(n, classes)
    x[100:140], y[100:140] = x[50:90], 1 - y[50:90] % 2
    order = np.argsort(y, kind="stable")
    return x[order], y[order], np.random.default_rng(1).integers(0, 4, n) / 2.0


def gap_of(model, x, y, w, C):
    """Primal minus dual, over the dual, of a model of two labels, by NumPy."""
    found = model.support_vectors()
    alpha = np.zeros(len(y))
    alpha[found.entered - 1] = found.coefficients
    x = x.astype(float)
    K = np.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(axis=2))
    signs, f = np.where(y == y.max(), 1.0, -1.0), K @ alpha
    costs = C * w * np.where(y == y.max(), 2.0, 1.0)
    assert abs(alpha.sum()) < 1e-9 * costs.sum() and (alpha * signs >= 0.0).all()
    assert (np.abs(alpha) <= costs * (1 + 1e-12)).all()
    primal = 0.5 * alpha @ f + costs @ np.maximum(0.0, 1.0 - signs * (f + model.bias))
    dual = alpha @ signs - 0.5 * alpha @ f
    return (primal - dual) / dual, dual


@pytest.mark.parametrize("ends", [[7, 7, 400, 401], []], ids=["odd", "one"])
def test_gap_is_that_of_all_rows_and_optimum_that_of_libsvm(tmp_path, ends):
    x, y, w = rows()
    if not ends:
        # The larger label comes first.
        x, y, w = x[::-1], y[::-1], w[::-1]
    folder = write(tmp_path / "d", x, y, w, ends)
    template = LASVMClassifier(KERNEL, C=10.0, class_weight={1: 2.0})
    model, report = train_on_shards(template, folder, "label", weight="w", gap=1e-4)
    gap, dual = gap_of(model, x, y, w, 10.0)
    assert report.reached and report.gap <= 1e-4 and report.shards == len(ends) + 1
    assert abs(gap - report.gap) <= 2.0 * report.rounding + 1e-6
    assert report.rounds[-1].dual == pytest.approx(dual, rel=1e-6)
    svc = SVC(C=10.0, gamma=0.5, class_weight={1: 2.0}, tol=1e-6)
    svc.fit(x[w > 0.0], y[w > 0.0], sample_weight=w[w > 0.0])
    of_svc, s = svc.dual_coef_[0], svc.support_vectors_
    K = np.exp(-0.5 * ((s[:, None] - s[None]).astype(float) ** 2).sum(axis=2))
    best = np.abs(of_svc).sum() - 0.5 * of_svc @ K @ of_svc
    assert dual == pytest.approx(best, rel=1e-3) and dual <= best * (1 + 1e-6)
    # It is an ordinary learner, whose next example is none of these.
    before = model.n_examples
    model.learn_one({"x0": 0.0, "x1": 0.0}, 1)
    assert before == len(y) and model.n_examples == len(y) + 1


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [3, 5])
def test_several_classes_are_the_sum_of_their_problems(tmp_path, classes, multiclass):
    x, y, w = (part[::-1] for part in rows(400, classes))
    template = LASVMClassifier(KERNEL, C=5.0, multiclass=multiclass, class_weight="balanced")
    folder = write(tmp_path / "d", x, y, w, [50, 300])
    given = {"exclude": ["w"], "gap": 1e-4, "folder": tmp_path / "work"}
    with pytest.raises(KeyboardInterrupt):
        train_on_shards(template, folder, "label", on_round=interrupt, **given)
    for _ in range(2):  # resumed, and called again after the end
        model, report = train_on_shards(template, folder, "label", **given)
        assert report.reached
    factors = {k: len(y) / (classes * n) for k, n in enumerate(np.bincount(y).tolist())}
    alone = LASVMClassifier(KERNEL, C=5.0, multiclass=multiclass, class_weight=factors, tau=1e-5)
    table = table_of(x)
    alone.learn_many(table, y)
    alone.finish(seconds=60)
    assert report.rounds[-1].dual == pytest.approx(alone.dual, rel=1e-3)
    assert np.mean(np.array(model.predict_many(table)) == alone.predict_many(table)) > 0.99
    streamsvm.save(model, tmp_path / "m.svm")
    assert streamsvm.load(tmp_path / "m.svm").predict_many(table).equals(model.predict_many(table))


def test_rows_that_list_their_features(tmp_path):
    random = np.random.default_rng(0)
    listed = [sorted(random.choice(300, 5, replace=False).tolist()) for _ in range(300)]
    y = [int(sum(own) % 300 > 150) for own in listed]
    columns = {"i": listed, "v": [[1.0] * 5] * 300, "label": y}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    template = LASVMClassifier(kernels.RBF(gamma=0.1), C=10.0)
    model, report = train_on_shards(template, tmp_path / "d.parquet", "label", shards=5)
    assert report.reached and report.shards == 5 and model.is_sparse


@pytest.mark.parametrize("is_sparse", [False, True])
def test_linear_optimum_is_that_of_liblinear(tmp_path, is_sparse):
    random = np.random.default_rng(0)
    x = (random.normal(size=(400, 20)) * (random.random((400, 20)) < 0.5)).astype(np.float32)
    y = x[:, 0] - x[:, 1] + 0.7 * random.normal(size=400) > 0.3
    path, names = write(tmp_path / "d.parquet", x, y), [f"x{i}" for i in range(20)]
    template = SVMSGDClassifier(C=0.1, n_expected=400, class_weight={True: 2.0}, sparse=is_sparse)
    given = {"shards": 7, "folder": tmp_path / "work"}
    with pytest.raises(KeyboardInterrupt):
        train_on_shards(template, path, "label", on_round=interrupt, **given)
    model, report = train_on_shards(template, path, "label", **given)
    w = np.array([model.weights[name] for name in names] + [model.intercept])
    signs, costs = np.where(y, 1.0, -1.0), np.where(y, 0.2, 0.1)
    f = np.hstack([x, np.ones((400, 1))]) @ w
    primal = 0.5 * w @ w + costs @ np.maximum(0.0, 1.0 - signs * f)
    assert primal == pytest.approx(report.rounds[-1].primal, rel=1e-9)
    svc = LinearSVC(C=0.1, loss="hinge", class_weight={True: 2.0}, tol=1e-8, max_iter=10**6)
    svc.fit(x, y)
    best = np.append(svc.coef_[0], svc.intercept_)
    losses = np.maximum(0.0, 1.0 - signs * (x @ best[:-1] + best[-1]))
    lowest = 0.5 * best @ best + costs @ losses
    assert report.reached and lowest * 0.999999 <= primal <= lowest * 1.001
    assert report.rounds[-1].dual <= lowest * 1.000001
    assert model.decision_function_many(table_of(x)) == pytest.approx(f, abs=1e-5)
    streamsvm.save(model, tmp_path / "m.svm")
    same = streamsvm.load(tmp_path / "m.svm")
    if not is_sparse:  # which compiles for a minute
        same.learn_one(dict(zip(names, x[0].tolist(), strict=True)), True)
    assert np.mean(np.array(same.predict_many(table_of(x))) == (f > 0.0)) > 0.98


class TwoLearn(LocalWorkers):
    """Ctrl-C comes when two shards have learnt."""

    def ask(self, task, which, *given):
        for n, answer in enumerate(super().ask(task, which, *given)):
            if task == "learn" and n == 2:
                raise KeyboardInterrupt
            yield answer


def test_it_continues_in_its_folder_to_the_last_bit(tmp_path):
    x, y, w = rows()
    folder = write(tmp_path / "d", x, y, w, [7, 200, 401])
    template = LASVMClassifier(KERNEL, C=10.0)
    given = {"exclude": ["w"], "gap": 1e-4, "folder": tmp_path / "work"}
    whole, report = train_on_shards(template, folder, "label", **given | {"folder": None})
    assert len(report.rounds) > 1
    with pytest.raises(KeyboardInterrupt):
        train_on_shards(template, folder, "label", workers=TwoLearn(), **given)
    assert len(list((tmp_path / "work").glob("shard-*"))) == 2
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train_on_shards(template, folder, "label", on_round=interrupt, **given)
    model, again = train_on_shards(template, folder, "label", **given)
    assert are_same(model, whole) and model.bias == whole.bias
    assert [r.gap for r in again.rounds] == [r.gap for r in report.rounds]
    with pytest.raises(CheckpointError, match="model changed"):
        train_on_shards(LASVMClassifier(KERNEL, C=1.0), folder, "label", **given)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_do_not_depend_on_the_order_of_rows(tmp_path, classes):
    x, y = drawn(3000, classes)
    new, label = drawn(1000, classes, seed=1)
    losses = []
    for name, order in [("as", np.arange(len(y))), ("sorted", np.argsort(-y, kind="stable"))]:
        path = write(tmp_path / f"{name}.parquet", x[order], y[order])
        model, _ = train_on_shards(LASVMClassifier(KERNEL, C=1.0), path, "label", shards=4)
        found = model.predict_proba_many(table_of(new))
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
        assert same.predict_one({"x0": 0.0, "x1": 0.0}) == 1


def test_equal_rows_need_few_rounds_without_a_reserve(tmp_path):
    path = write(tmp_path / "d.parquet", np.zeros((600, 2), np.float32), np.arange(600) % 5 < 2)
    template = LASVMClassifier(KERNEL, C=1.0, reserve=0)  # it forgets what was sent
    model, report = train_on_shards(template, path, "label", shards=2, max_rounds=50)
    assert report.reached and len(report.rounds) <= 15
    assert model.predict_one({"x0": 0.0, "x1": 0.0}) is False


def test_a_gap_below_the_rounding_is_not_reached(tmp_path, caplog):
    path = write(tmp_path / "d.parquet", *drawn(600))
    _, report = train_on_shards(LASVMClassifier(KERNEL, C=1.0), path, "label", gap=1e-9)
    assert report.rounding > 1e-9
    assert not report.reached and report.reason in caplog.text
