"""SVMSGDClassifier and SGDQNClassifier: events, batches, classes, the choice of the rate, files."""

import copy

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse as scipy_sparse
from sklearn.svm import LinearSVC

from streamsvm import SGDQNClassifier, SVMSGDClassifier, TrackingMonitor
from streamsvm.errors import FeatureError, LabelError
from streamsvm.models.linear import rate_search
from streamsvm.solvers.linear import state as linear_state
from streamsvm.solvers.linear import step
from streamsvm.support import calibration
from streamsvm.support.rows import sparse as rows_of
from tests.learners.test_all_learners import by_events

SETTINGS = [
    (SVMSGDClassifier, {}),
    (SVMSGDClassifier, {"averaged": False, "loss": "log", "t0": 100.0}),
    (SVMSGDClassifier, {"averaged": 50, "skip": "auto", "class_weight": {True: 2.0}}),
    (SGDQNClassifier, {}),
    (SGDQNClassifier, {"loss": "huber", "power": 0.0}),
]


def problem(n=1500, d=6, k=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    if k == 2:
        return x, (x[:, 0] + 0.5 * x[:, 1] + 0.3 * rng.normal(size=n) > 0.2).tolist()
    centres = 2.0 * np.random.default_rng(1).normal(size=(k, d))
    y = rng.integers(0, k, n)
    return (x + centres[y]).astype(np.float32), [f"class {c}" for c in y.tolist()]


def same(a, b):
    assert (a.n_examples, a.classes, a.rate) == (b.n_examples, b.classes, b.rate)
    assert (a.weights, a.intercept) == (b.weights, b.intercept)
    np.testing.assert_array_equal(a.targets.calibration, b.targets.calibration)
    np.testing.assert_array_equal(a.state.info, b.state.info)


@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
def test_weights_are_seldom_copied_for_further_classes(cls):
    """For each of 5,000 classes that came, all weights were copied."""
    model, addresses = cls(), set()

    def learn(one, labels):
        for label in labels:
            one.learn_one({"a": float(label % 7), "b": 1.0}, label)

    for label in range(150):
        learn(model, [label])
        addresses.add(model.state.weights.ctypes.data)
    assert len(addresses) < 20 and len(model.state.info) == 150
    # A copy has no room for further classes, and shares none.
    copied = copy.deepcopy(model)
    learn(model, range(150, 200))
    learn(copied, range(150, 200))
    same(model, copied)
    assert not np.shares_memory(model.state.weights, copied.state.weights)


def test_the_rate_is_that_with_the_lowest_objective():
    """And the model is that of the pass: as if that t0 had been given from the start."""
    x, y = problem(1024)
    found = SVMSGDClassifier(averaged=False)
    found.learn_many(x, y)
    given = {}
    square = rate_search.mean_square(x)
    for k in range(-12, 4):
        t0 = max(1.0, square / (2.0**k * 1e-4))
        model = SVMSGDClassifier(averaged=False, t0=t0)
        model.learn_many(x, y)
        given[t0] = model.objective(x, y), model
    t0 = min(given, key=lambda t: given[t][0])
    assert found.model.schedule.t0 == t0
    assert found.weights == given[t0][1].weights
    assert found.objective(x, y) == given[t0][0]
    # It stays.
    found.learn_many(x, y)
    assert found.model.schedule.t0 == t0


@pytest.mark.parametrize("cls", [SVMSGDClassifier, SGDQNClassifier])
@pytest.mark.parametrize("params", [{}, {"loss": "log"}, {"power": 0.0}, {"t0": 1e4}], ids=str)
@pytest.mark.parametrize(("at", "value"), [(3000, 1e6), (3000, -1e6), (3000, 1e3), (300, 1e30)])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_outlier_does_not_ruin_a_stream_that_is_not_scaled(cls, params, at, value, sparse):
    x, y = problem(8000, d=2)
    x[at] = value
    predicted = cls(sparse=sparse, **params).predict_then_learn_many(x, y)
    right = np.array(predicted) == np.array(y)
    assert right[at + 1 :][:2000].mean() > right[1000:3000].mean() - 0.05
    assert right[-2000:].mean() > right[1000:3000].mean() - 0.03


def test_an_outlier_leaves_the_mean_of_squares_within_reach():
    x, _ = problem(1024)
    assert rate_search.mean_square(x) == rate_search.mean_square(rows_of(x))
    clean = rate_search.mean_square(x)
    x[300] *= np.float32(1e6)
    assert clean < rate_search.mean_square(x) < 30.0 * clean
    assert rate_search.mean_square(x) == rate_search.mean_square(rows_of(x))
    assert rate_search.mean_square(np.zeros((5, 3), np.float32)) == 1.0


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_rate_follows_the_size_of_the_features(size):
    x, y = problem(3000)
    # The bias has no size that could be known.
    model = SVMSGDClassifier(l2=1e-4 * size**2, bias_rate=0.0)
    predicted = model.predict_then_learn_many(x * np.float32(size), y)
    assert np.mean(np.array(predicted) == np.array(y)) > 0.88


def test_some_epochs_reach_liblinears_optimum():
    x, y = problem(2000)
    best = LinearSVC(C=1.0 / (1e-3 * 2000), loss="hinge", dual=True, max_iter=200_000, tol=1e-6)
    best.fit(x, y)
    signs = np.where(y, 1.0, -1.0)
    margins = np.maximum(0.0, 1.0 - signs * best.decision_function(x))
    optimum = 0.5e-3 * float((best.coef_**2).sum()) + margins.mean()
    for model in (
        SVMSGDClassifier(l2=1e-3, bias_rate=1.0, averaged=True),
        SGDQNClassifier(l2=1e-3, loss="hinge", bias_rate=1.0),
    ):
        for _ in range(20):
            model.learn_many(x, y)
        assert model.objective(x, y) == pytest.approx(optimum, rel=0.02)


def test_C_is_lambda_for_so_many_examples():
    x, y = problem(500)
    a, b = SVMSGDClassifier(C=2.0, n_expected=5000), SVMSGDClassifier(l2=1e-4)
    for model in (a, b):
        model.learn_many(x, y)
    same(a, b)


def test_weights_are_those_that_predict():
    for cls, params, k in (*((*pair, 2) for pair in SETTINGS), (SVMSGDClassifier, {}, 3)):
        x, y = problem(1500, k=k)
        model = cls(**params)
        model.learn_many(x, y)
        scores = model.decision_function_one(dict(enumerate(x[0].tolist())))
        w, b, scores = [
            {0: one} if k == 2 else one for one in (model.weights, model.intercept, scores)
        ]
        for label, score in scores.items():
            own = sum(w[label][c] * float(v) for c, v in enumerate(x[0]))
            assert score == pytest.approx(own + b[label])


def test_a_third_class_late():
    """The first two go on from where they were; the new one begins with a rate of its own."""
    x, y = problem(6000, k=3)
    late = [label for label in y[:2000] if label != "class 2"] + y[2000:]
    rows = [i for i, label in enumerate(y[:2000]) if label != "class 2"] + list(range(2000, 6000))
    model = SVMSGDClassifier()
    n = len(late) - 4000
    model.learn_many(x[rows[:n]], late[:n])
    before = model.decision_function_many(x[:50])
    assert before.ndim == 1
    positive = model.classes.index(max(model.classes))
    model.learn_many(x[rows[n : n + 1]], ["class 2"])
    after = model.decision_function_many(x[:50])
    assert after.shape == (50, 3)
    np.testing.assert_allclose(after[:, positive], before, atol=0.2)
    predicted = model.predict_then_learn_many(x[2000:], y[2000:])
    assert np.mean(np.array(predicted)[1000:] == np.array(y[3000:])) > 0.8
    p = model.predict_proba_one(dict(enumerate(x[0].tolist())))
    assert set(p) == {"class 0", "class 1", "class 2"} and sum(p.values()) == pytest.approx(1.0)
    assert max(p, key=p.get) == model.predict_one(dict(enumerate(x[0].tolist())))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.floats(0.02, 0.5))
def test_sparse_and_dense_rows_give_one_model(seed, share):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(1200, 40)) * (rng.random((1200, 40)) < share)).astype(np.float32)
    y = (x[:, :5].sum(axis=1) > 0.0).tolist()
    for cls in (SVMSGDClassifier, SGDQNClassifier):
        a, b = cls(sparse=False, t0=1e4), cls(sparse=True, t0=1e4)
        a.learn_many(x, y)
        b.learn_many(scipy_sparse.csr_matrix(x), y)
        np.testing.assert_allclose(
            list(a.weights.values()), list(b.weights.values()), rtol=1e-6, atol=1e-7
        )


def test_a_monitor_shows_the_objective_and_says_why_there_is_no_certificate():
    x, y = problem(3000)
    for k in (2, 3):
        x, y = problem(3000, k=k)
        model = SVMSGDClassifier()
        monitor = TrackingMonitor(model, every=500)
        monitor.learn_many(x, y)
        values = monitor.get()
        # Estimated on a sample of 500.
        assert values["objective"] == pytest.approx(model.objective(x, y), rel=0.25)
        assert values["certificate"] is None
        assert "no dual coefficients" in monitor.certificate_reason
        assert "objective" in monitor.report()
        assert values["accuracy"] > 0.8


def test_a_constant_rate_follows_drift():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40_000, 4)).astype(np.float32)
    y = np.where(np.arange(40_000) < 20_000, x[:, 0] > 0.0, x[:, 1] > 0.0)
    errors = {}
    for power in (0.0, 1.0):
        model = SVMSGDClassifier(power=power, l2=1e-2, averaged=False, t0=1000.0)
        predicted = model.predict_then_learn_many(x, y.tolist())
        errors[power] = np.mean(np.array(predicted)[21_000:24_000] != y[21_000:24_000])
    assert errors[0.0] < 0.6 * errors[1.0]


@pytest.mark.parametrize("sparse", [False, True])
def test_nothing_is_learnt_into_arrays_that_were_replaced(sparse):
    x, y = problem(1500, d=2)
    model = SVMSGDClassifier(sparse=sparse)
    by_events(model, x, y)
    # Wider rows, to look at only; and a batch without rows.
    assert model.objective(np.ones((3, 5)), [True, False, True]) > 0.0
    model.predict_many(np.ones((3, 50)))
    model.learn_many(np.zeros((0, 100_000)), [])
    assert len(model.feature_names) == 2
    before = model.state.weights.copy()
    for _ in range(200):
        model.learn_one({0: -1.0, 1: 0.5}, True)
    assert (model.state.weights != before).any()
    row = np.array([[-1.0, 0.5]])
    assert model.predict_one({0: -1.0, 1: 0.5}) == model.predict_many(row)[0]
    for c in range(1000, 100_000, 500):
        model.predict_one({c: 1.0})


@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (SVMSGDClassifier, {}),
        (SVMSGDClassifier, {"averaged": False, "skip": 3}),
        (SVMSGDClassifier, {"averaged": True, "loss": "log", "skip": "auto"}),
        (SGDQNClassifier, {"skip": 4}),
    ],
)
@pytest.mark.parametrize("k", [2, 3])
def test_the_rate_is_chosen_by_the_columns_in_use(cls, params, k, monkeypatch):
    """Which is faster with many hashed columns, and the same to the bit."""
    x, y = problem(600, k=k)
    rows = scipy_sparse.csr_matrix(np.where(np.abs(x) > 0.7, x, 0.0))
    rows = scipy_sparse.vstack([scipy_sparse.csr_matrix((9, 6)), rows]).tocsr()
    models = [cls(hashing=2**16, **params) for _ in range(2)]
    models[0].learn_many(rows, y[:9] + y)
    assert models[0].rate != cls(hashing=2**16, **params).rate
    monkeypatch.setattr(rate_search, "_narrowed", lambda x, d: None)
    models[1].learn_many(rows, y[:9] + y)
    same(*models)


@pytest.mark.parametrize("kind", [np.asarray, scipy_sparse.csr_matrix])
def test_arrays_that_cannot_be_written_to_are_rows_like_others(kind):
    """As pandas gives them: nothing is compiled again for them."""
    x, y = problem(2000)
    rows = kind(np.where(np.abs(x) > 0.7, x, np.float32(0.0)))
    models = [SVMSGDClassifier(), SVMSGDClassifier()]
    models[0].learn_many(rows, y)
    expected = models[0].predict_many(rows)
    compiled = len(step.learn_rows.signatures), len(linear_state.margins_of.signatures)
    parts = [rows] if kind is np.asarray else [rows.data, rows.indices, rows.indptr]
    for part in parts:
        part.flags.writeable = False
    models[1].learn_many(rows, y)
    np.testing.assert_array_equal(models[1].predict_many(rows), expected)
    same(*models)
    assert (len(step.learn_rows.signatures), len(linear_state.margins_of.signatures)) == compiled


@given(st.lists(st.integers(0, 1500), min_size=1, max_size=6), st.integers(0, 2**31))
@settings(deadline=None, max_examples=40)
def test_margins_of_batches_are_learnt_as_one_by_one(sizes, seed):
    rng = np.random.default_rng(seed)
    one, many = calibration.new_thinned(), calibration.new_thinned()
    for size in sizes:
        margins, y = rng.normal(size=size), rng.choice([-1.0, 1.0], size)
        calibration.update_thinned(many, margins, y)
        for margin, side in zip(margins, y, strict=True):
            calibration.update_thinned_one(one, margin, side)
        np.testing.assert_array_equal(one, many)


def test_labels_and_columns_that_cannot_be():
    x, y = problem(100, k=3)
    model = SVMSGDClassifier()
    model.learn_many(x, y)
    # A class that was never learnt is an error of all outputs.
    assert model.objective(x, ["other"] * 100) != model.objective(x, [model.classes[0]] * 100)
    with pytest.raises(LabelError):
        model.objective(x, [None] * 100)
    with pytest.raises(FeatureError, match="100 rows"):
        model.objective(x, y[:5])
    batch = pa.record_batch([[1.0, 2.0], [3.0, 4.0]], names=["a", "a"])
    with pytest.raises(FeatureError, match="two columns are named 'a'"):
        SVMSGDClassifier().learn_many(batch, [0, 1])
