"""The exact regressor and the exact one-class SVM as River's users see them."""

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from river import checks, compose, datasets, evaluate, metrics, preprocessing
from sklearn import svm

import streamsvm
from streamsvm import (
    IncrementalOneClassSVM,
    IncrementalSVMClassifier,
    IncrementalSVMRegressor,
    StandardScaler,
    kernels,
)
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.selection import Random
from tests.learners.test_all_learners import saved

RBF = kernels.RBF(gamma=0.5)
CLASSES = [IncrementalSVMRegressor, IncrementalOneClassSVM]
MODELS = [cls(**parameters) for cls in CLASSES for parameters in cls._unit_test_params()]
SLOW = ("check_bounded_memory_growth",)


class Transactions:
    """Stands for River's CreditCard, which is downloaded: most near 0, a few far away."""

    def take(self, n):
        draws = np.random.default_rng(0)
        for i in range(n // 5):
            is_far = i % 40 == 39
            x = draws.normal(scale=4.0 if is_far else 1.0, size=6)
            yield dict(enumerate(x.tolist())), int(is_far)


@pytest.mark.parametrize("kernel", [None, kernels.RBF(gamma=0.03)])
def test_rivers_roc_auc_takes_its_scores(kernel):
    random, metric = np.random.default_rng(1), metrics.ROCAUC()
    model = StandardScaler() | IncrementalOneClassSVM(kernel, nu=0.1)
    truth, scores = [], []
    for _ in range(200):
        is_odd = random.random() < 0.05
        a, b = random.normal(size=2) + (7.0 if is_odd else 0.0) * random.choice([-1, 1], 2)
        x = {"a": float(a), "b": float(b)}
        scores.append(model.score_one(x))
        truth.append(is_odd)
        metric.update(is_odd, scores[-1])
        model.learn_one(x)
    assert 0.0 <= min(scores) and max(scores) <= 1.0
    odd, usual = (np.array(scores)[np.array(truth) == kind] for kind in (True, False))
    exact = (odd[:, None] > usual).mean()
    assert exact > 0.85 and metric.get() == pytest.approx(exact, abs=0.06)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_rivers_checks(model, monkeypatch):
    monkeypatch.setattr(datasets, "CreditCard", Transactions)
    done = [check for check in checks.yield_checks(model) if check.__name__ not in SLOW]
    for check in done:
        check(model.clone())
    assert len(done) > 20


def approvals(n):
    """Standardised events, and the numbers to be predicted."""
    scaler, found = StandardScaler(), []
    for x, y in datasets.TrumpApproval().take(n):
        scaler.learn_one(x)
        found.append((dict(scaler.transform_one(x)), y))
    return found


def matrix(events):
    return np.array([list(x.values()) for x, _ in events], np.float32)


def frame(x):
    return pd.DataFrame(x, columns=list(approvals(1)[0][0]))


def learnt(model, events):
    for x, y in events:
        model.learn_one(x, *([y] if isinstance(model, IncrementalSVMRegressor) else []))
    return model


KINDS = [
    *(
        (IncrementalSVMRegressor, "SVR", given)
        for given in (
            {"C": 0.5, "epsilon": 0.1},
            {"C": 20.0, "epsilon": 0.0},
            {"C": 1000.0, "epsilon": 0.5},
        )
    ),
    *((IncrementalOneClassSVM, "OneClassSVM", {"nu": nu}) for nu in (0.05, 0.4)),
]


@pytest.mark.parametrize(("cls", "of_sklearn", "parameters"), KINDS)
def test_it_is_scikit_learns_after_every_event(cls, of_sklearn, parameters):
    events, model, kept = approvals(120), cls(RBF, **parameters), []
    x, y = matrix(events), np.array([y for _, y in events])
    order = [*range(120), *np.random.default_rng(0).permutation(120)[:100]]
    for step, i in enumerate(order):
        if step < 120:
            learnt(model, events[i : i + 1])
            kept.append(i)
        else:
            model.unlearn_one(i + 1)
            kept.remove(i)
        assert model.delta < 1e-6
        if step % 7 != 3:
            continue
        fresh = getattr(svm, of_sklearn)(gamma=0.5, tol=1e-9, **parameters).fit(x[kept], y[kept])
        if cls is IncrementalSVMRegressor:
            # libsvm has kernel values in single precision.
            off, most = model.predict_many(frame(x)) - fresh.predict(x), 1e-6 * (1 + model.C)
        else:
            off, most = model.decisions_of(frame(x)) - fresh.decision_function(x), 1e-5
        assert np.abs(off).max() <= most


def test_outside_are_at_most_nu():
    events = approvals(400)
    model = learnt(IncrementalOneClassSVM(nu=0.1), events)
    scores = np.array([model.score_one(x) for x, _ in events])
    assert (scores > 0.5 + 1e-9).mean() <= 0.1 <= model.n_support_vectors / 400
    assert model.score_one({name: 50.0 for name in events[0][0]}) > scores.max()
    assert 0.0 <= scores.min() and model.score_one({name: 50.0 for name in events[0][0]}) <= 1.0
    many = model.score_many(pd.DataFrame([x for x, _ in events]))
    np.testing.assert_allclose(many, scores, atol=1e-6)
    decisions = np.array([model.decision_of(x) for x, _ in events])
    assert (
        np.argsort(-decisions, kind="stable") == np.argsort(scores, kind="stable")
    ).mean() > 0.99
    assert model.forget(where=lambda x: x["ordinal_date"] > 0.0) > 100
    assert (model.duality_gap(), model.n_examples) == (pytest.approx(0.0, abs=1e-9), 400)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_batches_files_and_copies_are_the_same_model(model, tmp_path):
    events = approvals(90)
    one = learnt(model.clone(), events)
    many, weights = model.clone(), np.ones(90)
    names = list(events[0][0])
    rows = pd.DataFrame(matrix(events), columns=names)
    y = (pd.Series([y for _, y in events]),) if hasattr(model, "predict_one") else ()
    many.learn_many(rows[:50], *(v[:50] for v in y), weights[:50])
    many = saved(many, tmp_path / "m.svm")
    table = pa.Table.from_pandas(rows[50:], preserve_index=False)
    many.learn_many(table, *(v[50:] for v in y))
    again = copy.deepcopy(many)
    streamsvm.save(StandardScaler() | many, tmp_path / "p.svm")
    ask = "predict" if y else "score"
    for other in (many, again, streamsvm.load(tmp_path / "p.svm")[type(model).__name__]):
        found = [getattr(m, f"{ask}_one")(x) for m in (one, other) for x, _ in events]
        np.testing.assert_allclose(found[:90], found[90:], atol=1e-9)
        assert other.dual == pytest.approx(one.dual, rel=1e-12)
        assert other.counters["kept"] == one.n_kept == (one.window or 90)
        assert repr(other) == repr(model)
    one.unlearn_many(range(60, 80))
    again.unlearn_many(range(60, 80))
    assert one.dual == pytest.approx(again.dual, rel=1e-9)
    np.testing.assert_allclose(getattr(one, f"{ask}_many")(rows), found[:90], atol=50.0)


def test_in_rivers_pipelines():
    model = preprocessing.StandardScaler() | IncrementalSVMRegressor(C=100.0, window=200)
    # The mean so far has 1.57.
    mae = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert mae.get() < 0.6
    pipeline = compose.Select("ordinal_date") | StandardScaler() | IncrementalOneClassSVM()
    for x, _ in datasets.TrumpApproval().take(50):
        assert pipeline.score_one(x) == pipeline.score_one(x)
        pipeline.learn_one(x)


def test_another_cost_and_left_out():
    events = approvals(60)
    x, y = matrix(events), np.array([y for _, y in events])
    model = learnt(IncrementalSVMRegressor(RBF, C=1.0), events)
    model.set_C(50.0)
    expected = learnt(IncrementalSVMRegressor(RBF, C=50.0), events).predict_many(frame(x))
    np.testing.assert_allclose(model.predict_many(frame(x)), expected)
    fresh = svm.SVR(C=50.0, gamma=0.5, tol=1e-9)
    others = [np.delete(np.arange(60), i) for i in range(60)]
    left = [fresh.fit(x[o], y[o]).predict(x)[i] for i, o in enumerate(others)]
    found = model.leave_one_out()
    np.testing.assert_allclose(found.predictions, left, atol=1e-4)
    assert found.error == pytest.approx(np.abs(y - left).mean(), abs=1e-4)
    assert model.leave_one_out(estimate=True).error == pytest.approx(found.error, rel=0.5)


def test_what_cannot_be_learnt_changes_nothing():
    for cls in CLASSES:
        model = learnt(cls(RBF, missing="reject"), approvals(40))
        before, x = model.dual, approvals(1)[0][0]
        y = (1.0,) if cls is IncrementalSVMRegressor else ()
        for bad in ({"a": "text"}, {"a": np.inf}, {}):
            with pytest.raises(FeatureError):
                model.learn_one(bad, *y)
        with pytest.raises(ParameterError):
            model.learn_one(x, *y, w=-1.0)
        with pytest.raises(ParameterError, match="ids"):
            model.learn_many(frame(np.ones((2, 6))), *(np.ones(2) for _ in y), ids=[0, 1])
        with pytest.raises(ParameterError, match="no such example is kept"):
            model.unlearn_one(41)
        assert (model.dual, model.n_examples) == (before, 40)
        model.learn_one(x, *y, w=0.0)
        assert (model.dual, model.n_examples, model.n_kept) == (before, 41, 40)
    model = IncrementalSVMRegressor()
    for y in (np.nan, np.inf, "3", None, [1.0], 1e300):
        with pytest.raises(LabelError, match="use a finite number"):
            model.learn_one({"a": 1.0}, y)
    with pytest.raises(LabelError, match="3 numbers for 2 rows"):
        model.learn_many(np.ones((2, 3)), np.ones(3))


@pytest.mark.parametrize("cls", [IncrementalSVMClassifier, *CLASSES])
def test_nothing_of_what_was_taken_back_is_left_in_memory_or_files(cls):
    draws, model = np.random.default_rng(0), cls(RBF)
    for i in range(40):
        x = {"a": draws.normal(), "b": draws.normal()}
        if i in (7, 9):
            x |= {f"note of Jane Doe {i}": 7.25 + i, "both": 1.0}
        model.learn_one(x, *((i % 2,) if cls is not IncrementalOneClassSVM else ()))
    assert model.audit(8)[8].features == ["note of Jane Doe 7"]
    row = np.float64(7.25 + 7).tobytes()
    assert row in pickle.dumps(model)
    model.unlearn_one(8)
    assert b"Jane Doe 7" not in pickle.dumps(model) and row not in pickle.dumps(model)
    assert set(model.feature_names) == {"a", "b", "note of Jane Doe 9", "both"}
    model.unlearn_many([10, *range(20, 40)])
    assert set(model.feature_names) == {"a", "b"} and model.delta < 1e-9
    assert b"Jane" not in pickle.dumps(model)
    problem = model.problem
    assert not problem.columns[:, problem.n :].any()
    assert not problem.facts[problem.n :].view(np.int64).any()
    model.learn_one({"a": 1.0, "c": 2.0}, *((1,) if cls is not IncrementalOneClassSVM else ()))
    assert (model.n_kept, model.n_examples, model.delta < 1e-9) == (19, 41, True)


@pytest.mark.parametrize("cls", [IncrementalSVMClassifier, *CLASSES])
def test_odd_ids_and_kernels_are_refused(cls):
    draws, model = np.random.default_rng(0), cls(RBF)
    for i in range(40):
        x = {"a": 1000.0 * draws.normal()}
        model.learn_one(x, *((i % 2,) if cls is not IncrementalOneClassSVM else ()))
    before = model.dual
    for ids in ("3", b"12", [True], [1.0], [[1]], [2**63], None):
        with pytest.raises(ParameterError):
            model.unlearn_many(ids)
    for kernel in (kernels.Polynomial(degree=3), kernels.Polynomial(degree=100)):
        with pytest.raises(ParameterError, match="too few digits left"):
            model.set_kernel(kernel)

    model.unlearn_many([1, 40])
    assert set(model.kept_numbers().tolist()) == set(range(2, 40))
    rows = pd.DataFrame({"a": [1.0]})
    y = ([1],) if cls is not IncrementalOneClassSVM else ()
    with pytest.raises(ParameterError, match="ids"):
        model.learn_many(rows, *y, ids=[2**61 + 1])
    assert model.dual != before


def test_without_a_margin_set_the_bias_does_not_depend_on_the_past():
    draws = np.random.default_rng(0)
    x = draws.normal(size=(40, 2)) + np.where(np.arange(40) % 2, 2.0, -2.0)[:, None]
    y = np.arange(40) % 2
    model, rows = IncrementalSVMClassifier(RBF, C=0.001), pd.DataFrame(x, columns=["a", "b"])
    model.learn_many(rows, y)
    model.unlearn_many([1, 2, 3, 4])
    fresh = svm.SVC(C=0.001, gamma=0.5, tol=1e-9).fit(x[4:].astype(np.float32), y[4:])
    assert model.problem.state.info[0].m == 0
    np.testing.assert_allclose(
        model.decision_function_many(rows), fresh.decision_function(x), atol=1e-5
    )


def test_without_examples_it_is_as_at_the_start():
    model = learnt(IncrementalSVMRegressor(RBF), [({"a": i % 5}, 500.0 + i) for i in range(30)])
    model.unlearn_many(range(1, 31))
    assert (model.predict_one({"a": 1.0}), model.bias, model.n_kept) == (0.0, 0.0, 0)


def test_a_forgotten_id_is_not_given_to_another_example(tmp_path):
    rows, model = pd.DataFrame({"a": np.arange(20.0)}), IncrementalOneClassSVM(RBF)
    model.learn_many(rows, ids=range(1000, 1020))
    model.unlearn(1019)
    model.save(tmp_path / "m.svm")
    for one in (model, streamsvm.load(tmp_path / "m.svm")):
        one.learn_one({"a": 3.0})
        assert one.kept_numbers().max() == 1020
        assert one.unlearn([1019]).not_kept == [1019]


def test_names_of_rows_that_wait_to_be_chosen_go_with_them():
    model = IncrementalSVMClassifier(RBF, selection=Random(candidates=20, seed=0))
    draws = np.random.default_rng(0)
    for i in range(1, 101):
        rows = pd.DataFrame({"a": [draws.normal()], **({"secret": [1.0]} if i == 100 else {})})
        model.learn_many(rows, [i % 2], ids=[i])
    assert model.audit(100)[100].is_waiting and model.audit(100)[100].features == ["secret"]
    model.unlearn(100)
    assert model.feature_names == ["a"] and not model.audit(100)[100].is_kept
    chosen = int(model.kept_numbers()[0])
    model.unlearn_one(chosen)
    assert not model.audit(chosen)[chosen].is_kept
