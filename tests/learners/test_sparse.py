"""Sparse rows through whole learners: against dense ones, their files, names, threads."""

import random

import numpy as np
import pytest
import scipy.sparse as sp
from river import feature_extraction

from streamsvm import (
    KernelPerceptronClassifier,
    LASVMClassifier,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    _compile,
    kernels,
)
from streamsvm.errors import FeatureError
from streamsvm.support import sparse_store
from tests.learners.test_all_learners import by_events, content
from tests.slow import compiles, slow_but

N, D = 300, 200
LEARNERS = {
    "lasvm": lambda **p: LASVMClassifier(kernels.RBF(gamma=0.5), C=2.0, **p),
    "lasvm linear": lambda **p: LASVMClassifier(kernels.Linear(), C=0.5, **p),
    "lasvm auto": lambda **p: LASVMClassifier(**p),
    "lasvm window": lambda **p: LASVMClassifier(kernels.RBF(gamma=0.5), window=60, **p),
    "lasvm merge": lambda **p: LASVMClassifier(kernels.RBF(gamma=0.5), max_support_vectors=40, **p),
    "lasvm merge polynomial": lambda **p: LASVMClassifier(
        kernels.Polynomial(degree=2), max_support_vectors=40, **p
    ),
    "tracking": lambda **p: TrackingSVMClassifier(kernels.RBF(gamma=0.5), seed=1, **p),
    "tracking linear": lambda **p: TrackingSVMClassifier(kernels.Linear(), C=0.5, seed=1, **p),
    "tracking merge": lambda **p: TrackingSVMClassifier(
        kernels.RBF(gamma=0.5), max_support_vectors=40, seed=1, **p
    ),
    "tracking window": lambda **p: TrackingSVMClassifier(
        kernels.RBF(gamma=0.5), window=60, gradients="support", seed=1, **p
    ),
}


def compiling(name):
    return "LASVMClassifier sparse" if "lasvm" in name else "TrackingSVMClassifier sparse"


SPARSE = slow_but(LEARNERS, "lasvm", "lasvm linear", compiling=compiling)


def text_like(seed=0, n=N, d=D):
    """Return rows of unit length with 8 features or so, some far more frequent than others."""
    rng = np.random.default_rng(seed)
    popular = 1.0 / np.arange(1, d + 1)
    x = (rng.random((n, d)) < 8 * popular / popular.sum()) * rng.uniform(0.5, 1.5, (n, d))
    x[np.arange(n), rng.integers(d, size=n)] += 0.1
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    y = x[:, : d // 2 : 3].sum(axis=1) + 0.2 * rng.normal(size=n) > 0.3
    return x, y


def events(x):
    """Return the rows as dicts of what is not 0, in an order of no meaning."""
    rng = np.random.default_rng(5)
    for row in x:
        names = rng.permutation(np.flatnonzero(row))
        yield {int(name): float(row[name]) for name in names}


def learnt(make, **parameters):
    x, y = text_like()
    model = make(**parameters)
    model.learn_many(sp.csr_array(x), y)
    return model


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_is_dense(name):
    x, y = text_like()
    # Sparse rows are never scaled.
    rule = {"scale": False} if name == "lasvm auto" else {}
    thin, thick = LEARNERS[name](sparse=True, **rule), LEARNERS[name](sparse=False, **rule)
    predicted = np.array(thin.predict_then_learn_many(sp.csr_array(x), y))
    # Kernel values differ in their last bit, and LASVM's choice among near equal pairs with them.
    assert np.mean(predicted != thick.predict_then_learn_many(x, y)) <= 0.03
    other, _ = text_like(9)
    if "merge" not in name and "window" not in name:
        thin.finish()
        thick.finish()
        assert thin.dual == pytest.approx(thick.dual, rel=2e-3)
        assert thin.duality_gap() == pytest.approx(thick.duality_gap(), abs=1e-3)
    agree = thin.predict_many(sp.csr_array(other)) == thick.predict_many(other)
    assert np.mean(agree) >= 0.95
    rows = thin.support_vectors().rows
    assert sp.issparse(rows) and rows.shape[1] == D
    if "merge" not in name:
        kept = thin.support_vectors().entered - 1
        np.testing.assert_array_equal(rows.toarray(), x[kept])


def test_it_is_found_out_by_itself():
    x, y = text_like()
    one, some, many = found = [LASVMClassifier(kernels.RBF(gamma=0.5)) for _ in range(3)]
    by_events(one, x, y)
    some.learn_many(x[:100], y[:100])
    some.learn_many(x[100:], y[100:])
    many.learn_many(x, y)
    assert all(model.is_sparse for model in found)
    for other in (some, many):
        np.testing.assert_array_equal(other.state.alpha, one.state.alpha)
        margins = [model.decision_function_many(sp.csr_array(x)) for model in (other, one)]
        np.testing.assert_array_equal(*margins)


def test_dense_data_stay_dense():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 150)), rng.random(300) < 0.5
    model = LASVMClassifier(kernels.RBF(gamma=0.01))
    model.learn_many(x, y)
    assert not model.is_sparse
    # A sparse matrix of dense data is what its owner wants it to be.
    predicted = model.decision_function_many(sp.csr_array(x))
    np.testing.assert_array_equal(predicted, model.decision_function_many(x))
    assert not model.is_sparse
    model.learn_many(sp.csr_array(x), y)
    assert model.is_sparse


def test_zeros_do_not_fill_the_memory():
    rng = np.random.default_rng(0)
    model = LASVMClassifier(kernels.RBF(gamma=0.1))
    for i in range(40):
        model.learn_one({f"f{c}": 1.0 for c in range(20)}, bool(i % 2))
    assert not model.is_sparse
    for i in range(6):
        wide = {f"w{i}-{c}": 1.0 for c in range(100_000)}
        model.learn_one(wide, bool(rng.random() < 0.5))
    assert model.is_sparse and model.memory_usage < 120e6


# Names


def test_hashed_names_need_no_vocabulary():
    x, y = text_like()
    model = LASVMClassifier(kernels.RBF(gamma=0.5), C=2.0, hashing=2**16)
    plain = LASVMClassifier(kernels.RBF(gamma=0.5), C=2.0, sparse=True)
    for event, label in zip(events(x), y.tolist(), strict=True):
        named = {f"word{name}": value for name, value in event.items()}
        # No two names of 200 meet in 65,536 columns with this hash: the same problem.
        assert model.predict_one(named) == plain.predict_one(named)
        model.learn_one(named, label)
        plain.learn_one(named, label)
    assert model.schema.names == [] and model.n_support_vectors == plain.n_support_vectors
    assert model.memory_usage < plain.memory_usage + 12 * 2**16 + 1000


def test_hashing_is_the_same_in_every_process():
    model = LASVMClassifier(hashing=1000)
    row, _ = model.schema.sparse_row({"spam": 2.0, "eggs": 3.0, 5: 1.0})
    assert dict(zip(row.columns.tolist(), row.values.tolist(), strict=True)) == {
        30: -3.0,
        566: -1.0,
        661: 2.0,
    }


@pytest.mark.parametrize("sparse", [True, False])
def test_a_vocabulary_has_an_end(sparse):
    model = LASVMClassifier(kernels.RBF(gamma=0.5), sparse=sparse, max_features=10)
    for i in range(40):
        model.learn_one({f"w{i + c}": 1.0 for c in range(3)}, bool(i % 2))
        model.predict_one({f"z{i}": 1.0})
    assert len(model.feature_names) == 10
    # 120 values in all; w0 .. w9 were known.
    known = sum(i + c < 10 for i in range(40) for c in range(3))
    assert model.counters["features_ignored"] == 120 - known


@pytest.mark.parametrize("hashing", [None, 2**10])
def test_a_million_keys_are_refused(hashing):
    model = learnt(LEARNERS["lasvm"], max_features=100_000) if hashing is None else None
    model = model or LASVMClassifier(kernels.RBF(gamma=0.5), hashing=hashing, max_features=1000)
    attack = {f"key{i}": 1.0 for i in range(1_000_000)}
    before = model.schema.names.copy(), model.n_examples
    with pytest.raises(FeatureError, match="1,000,000 features"):
        model.learn_one(attack, True)
    with pytest.raises(FeatureError):
        model.predict_one(attack)
    assert (model.schema.names, model.n_examples) == before


def test_a_bad_value_of_a_matrix_changes_nothing():
    model = learnt(LEARNERS["lasvm"])
    before = content(model)
    x = sp.csr_array(np.array([[0.0, 1.0], [0.5, np.inf]]))
    with pytest.raises(FeatureError, match="row 1: feature 1"):
        model.learn_many(x, [True, False])
    assert content(model) == before


def test_zeros_and_unseen_features_count_nothing():
    model = learnt(LEARNERS["lasvm"])
    plain = model.decision_function_one({3: 1.0, 5: 0.5})
    assert model.decision_function_one({5: 0.5, 7: 0.0, "unseen": 4.0, 3: 1.0}) == plain
    wide = sp.csr_array(([1.0, 0.5, 4.0], ([0, 0, 0], [3, 5, D + 9])), shape=(1, D + 10))
    assert model.decision_function_many(wide)[0] == plain
    # Repeats of a matrix add up.
    repeated = sp.coo_array(([0.25, 0.25, 1.0], ([0, 0, 0], [5, 5, 3])), shape=(1, D))
    assert model.decision_function_many(repeated)[0] == plain


# Where they come from


@pytest.mark.parametrize(
    "learner",
    [LASVMClassifier(C=10.0), SVMSGDClassifier(), SVMSGDClassifier(hashing=2**12)],
    ids=repr,
)
def test_words_become_sparse_rows_and_hashing_keeps_no_name(learner):
    words = ["win", "cash", "now", "free", "prize", "hello", "mum", "see", "you", "later"]
    rng, wrong = np.random.default_rng(0), 0
    model = feature_extraction.BagOfWords() | learner
    for i in range(600):
        spam = bool(rng.random() < 0.4)
        chosen = rng.choice(words[:5] if spam else words[5:], 4)
        text = " ".join([*chosen, *(f"noise{w}" for w in rng.integers(500, size=4))])
        wrong += i > 100 and model.predict_one(text) != spam
        model.learn_one(text, spam)
    assert learner.is_sparse and wrong < 10
    assert bool(learner.feature_names) == (learner.hashing is None)


MEASURED = ["lasvm", "tracking", "tracking linear"]


@pytest.mark.parametrize("name", slow_but(MEASURED, "lasvm", compiling=compiling))
def test_a_monitor_measures_sparse_learners(name):
    x, y = text_like()
    model = LEARNERS[name]()
    monitor = TrackingMonitor(model, every=50)
    monitor.learn_many(sp.csr_array(x), y)
    for event, label in zip(events(x[:20]), y[:20].tolist(), strict=True):
        monitor.learn_one(event, label)
    record = monitor.get()
    assert record["n_examples"] == N + 20 and 0.0 <= record["gap_kept"] <= record["gap"] < 1.0


# Threads


def wide(n, first):
    return {f"w{first + j}": 1.0 for j in range(n)}


def merges_of_classes():
    """Two rows of 300 values of a class become one of 600 while little more than both is free."""
    for c in range(3):
        yield wide(3, 5000 + 3 * c), c, 1.0
    for i in range(2):
        yield wide(300, 300 * i), 0, 0.01
    for i in range(30):
        yield wide(8 - (i == 0), 600 + 8 * i), i % 2 + 1, 1.0


def merges_of_mistakes():
    draw = random.Random(0).random
    for _ in range(300):
        y = int(draw() * 2)
        yield {f"w{int(draw() * 4000)}": 1.0 for _ in range(5)}, y, 1.0


# Without the compiler Python itself refuses to write beyond an array.
@(compiles("sparse rows of merged vectors") if _compile.JIT else lambda test: test)
@pytest.mark.parametrize(
    ("model", "stream"),
    [
        (LASVMClassifier(kernels.RBF(1e-4), max_support_vectors=21, seed=1), merges_of_classes),
        (
            KernelPerceptronClassifier(
                kernels.RBF(0.1), max_support_vectors=50, budget="merge", seed=1
            ),
            merges_of_mistakes,
        ),
    ],
    ids=["lasvm of classes", "perceptron"],
)
def test_a_merged_row_stays_within_the_memory_of_sparse_rows(model, stream):
    longest = 0
    for x, y, w in stream():
        model.learn_one(x, y, w)
        store = model.solver.state.store
        if isinstance(store, sparse_store.SparseStore):
            assert store.counts[sparse_store.USED] <= store.columns.size
            assert store.counts[sparse_store.LIVE] == store.length.sum()
            longest = max(longest, store.length.max())
    assert longest >= 100  # of merged ones


def test_events_after_a_linear_model_became_sparse_are_read_as_sparse_rows():
    draws = np.random.default_rng(3)
    model = SVMSGDClassifier(t0=1.0)
    # Room that is enough from then on.
    model.learn_one({f"z{j}": 1.0 for j in range(2100)}, True)
    were_sparse = []
    for _ in range(200):
        words = {f"w{j}": 1.0 for j in draws.integers(0, 300, 3)}
        model.learn_one({"a": float(draws.normal()), **words}, bool(draws.integers(2)))
        model.predict_one(words)
        were_sparse.append(model.is_sparse)
        assert model.event_path is None or model.event_path.is_sparse == model.is_sparse
    assert not were_sparse[0] and were_sparse[-1]
