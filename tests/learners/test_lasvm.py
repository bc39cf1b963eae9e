import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.svm import SVC

from streamsvm import LASVMClassifier, kernels
from streamsvm.errors import FeatureError
from streamsvm.models.kernel import kernel_batches, lasvm_solver

NAMES = ["a", "b", "c"]


def rows(n=200, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).astype(np.float32).astype(float)
    return x, x[:, 0] * x[:, 1] + noise * rng.normal(size=n) > 0


def events(x, y):
    return [
        (dict(zip(NAMES, row, strict=True)), bool(label)) for row, label in zip(x, y, strict=False)
    ]


def learnt(x, y, model=None):
    model = model or LASVMClassifier()
    for event, label in events(x, y):
        model.learn_one(event, label)
    return model


CONTAINERS = {
    "pandas": lambda x: pd.DataFrame(x, columns=NAMES),
    "polars": lambda x: pl.DataFrame(dict(zip(NAMES, x.T, strict=True))),
    "table": lambda x: pa.table(dict(zip(NAMES, x.T, strict=True))),
    "batch": lambda x: pa.RecordBatch.from_arrays([pa.array(c) for c in x.T], NAMES),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_predictions_come_back_in_kind(container):
    x, y = rows()
    model, X = learnt(x, y), CONTAINERS[container](x)
    got = model.predict_many(X)
    assert isinstance(got, {"pandas": pd.Series, "polars": pl.Series}.get(container, pa.Array))
    ones = [model.predict_one(event) for event, _ in events(x, y)]
    assert (got.to_pylist() if hasattr(got, "to_pylist") else got.to_list()) == ones
    proba = model.predict_proba_many(X)
    column = proba[True if container == "pandas" else "True"]
    column = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    assert column == [model.predict_proba_one(event)[True] for event, _ in events(x, y)]
    with pytest.raises(FeatureError, match="knows its features by name"):
        model.predict_many(x)


def test_with_one_of_false_and_true():
    model = LASVMClassifier()
    for _ in range(30):
        model.learn_one({"a": 1.0}, True)
    assert model.predict_one({"a": -5.0}) is True
    assert model.predict_proba_one({"a": 1.0}) == {False: 1 / 32, True: 31 / 32}
    assert model.labels == (None, True) and model.n_support_vectors == 0


@pytest.mark.parametrize(
    ("negative", "positive"), [(False, True), (0, 1), (-1, 1), ("no", "yes"), (3, 8), (-2.0, -1.0)]
)
@pytest.mark.parametrize("positive_first", [True, False])
def test_the_larger_label_is_positive(negative, positive, positive_first):
    model = LASVMClassifier()
    pair = [({"a": 1.0}, positive), ({"a": -1.0}, negative)]
    for event, label in (pair if positive_first else pair[::-1]) * 20:
        model.learn_one(event, label)
    assert model.labels == (negative, positive)
    assert model.decision_function_one({"a": 1.0}) > 0.5
    assert model.decision_function_one({"a": -1.0}) < -0.5
    assert model.predict_one({"a": 1.0}) == positive
    assert set(model.predict_proba_one({"a": 1.0})) == {negative, positive}


def test_values_that_the_kernel_cannot_take_are_refused():
    model = LASVMClassifier(kernel=kernels.Polynomial())
    with pytest.raises(FeatureError, match="scale the features"):
        model.learn_one({"a": 1e30}, True)
    assert model.n_examples == 0 and model.feature_names == []


def optimum(x, y, gram, C, **fit):
    svc = SVC(C=C, kernel="precomputed", tol=1e-6, **fit.pop("new", {})).fit(gram, y, **fit)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = svc.dual_coef_[0]
    return alpha @ np.where(y, 1.0, -1.0) - 0.5 * alpha @ gram @ alpha


@pytest.mark.parametrize("is_weighted", [True, False])
def test_epochs_of_rows_with_ids_reach_libsvms_optimum(is_weighted):
    x, y = rows(150, seed=3)
    y[:30] = False
    gram = np.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(axis=2))
    w = np.random.default_rng(1).uniform(0.1, 3.0, 150) if is_weighted else np.ones(150)
    new = {} if is_weighted else {"class_weight": {True: 4.0}}
    model = LASVMClassifier(kernel=kernels.RBF(gamma=0.5), C=2.0, **new)
    for _ in range(8):
        model.learn_many(x, y, ids=np.arange(1, 151), w=w)
        model.finish()
    best = optimum(x, y, gram, 2.0, sample_weight=w, new=new)
    assert model.dual == pytest.approx(best, rel=1e-4)
    assert model.predict_many(x).dtype == bool


def test_finish_reports_and_may_be_interrupted(monkeypatch):
    x, y = rows(400, noise=2.0)
    model = LASVMClassifier(C=1000.0, kernel=kernels.RBF(gamma=5.0), delta_max=None, reprocess=0)
    model.learn_many(x, y)
    assert model.delta > model.tau
    calls = []

    def stop(delta, n):
        calls.append((delta, n))
        raise KeyboardInterrupt

    monkeypatch.setattr(lasvm_solver, "_FINISH_STEPS", 50)
    with pytest.raises(KeyboardInterrupt):
        model.finish(stop)
    assert len(calls) == 1
    model.finish()
    assert model.delta <= model.tau


def test_rows_wider_than_the_state_are_refused():
    x, y = rows(50)
    model = LASVMClassifier(kernel=kernels.RBF(gamma=0.5))
    model.learn_many(x, y)
    solver, wide = model.model.solver, np.zeros((3, 4096), np.float32)
    with pytest.raises(ValueError, match="4096 features, and room for"):
        kernel_batches.write_margins(solver, 1, solver.state, wide, np.zeros((3, 1)))


def test_probabilities_are_calibrated():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    truth = 1.0 / (1.0 + np.exp(-3.0 * x[:, 0]))
    y = rng.random(4000) < truth
    model = LASVMClassifier(C=0.1)
    said = []
    for event, label in events(x, y):
        said.append(model.predict_proba_one(event).get(True, 0.5))
        model.learn_one(event, label)
    said, late = np.array(said[2000:]), y[2000:]
    loss = -np.mean(np.log(np.where(late, said, 1 - said)))
    assert loss < 0.9 * -np.log(0.5)
    for low in np.arange(0, 1, 0.2):
        near = (said >= low) & (said < low + 0.2)
        if near.sum() > 100:
            assert abs(late[near].mean() - said[near].mean()) < 0.12
