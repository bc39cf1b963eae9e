"""LaRankClassifier: probabilities, classes that appear, bounds, threads."""

import numpy as np
import pyarrow as pa
import pytest

from connectors import MemorySource
from streamsvm import LaRankClassifier, kernels
from streamsvm.errors import LabelError
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.runner import Run


def problem(n=400, k=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    x = rng.normal(size=(k, 4))[y] + rng.normal(scale=0.5, size=(n, 4))
    return x.astype(np.float32), [f"class {c}" for c in y.tolist()]


def test_probabilities():
    x, y = problem(1500)
    model = LaRankClassifier(seed=1)
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_one({"a": 1.0}) is None
    losses = []
    for row, label in zip(x.tolist(), y, strict=True):
        p = model.predict_proba_one(dict(enumerate(row)))
        assert not p or sum(p.values()) == pytest.approx(1.0)
        losses.append(-np.log(max(p.get(label, 0.2), 1e-9)))
        model.learn_one(dict(enumerate(row)), label)
    assert list(model.decision_function_one(dict(enumerate(x[0].tolist())))) == model.classes
    # Well below the entropy of five classes, and below that of the share of errors made.
    assert np.mean(losses[500:]) < 0.6 * np.log(5)
    table = model.predict_proba_many(
        pa.RecordBatch.from_arrays(list(map(pa.array, x[:7].T)), list("abcd"))
    )
    assert table.num_rows == 7
    assert set(table.schema.names) == set(model.classes)


def test_classes_may_appear_at_any_time_in_any_number():
    rng = np.random.default_rng(0)
    model = LaRankClassifier(kernels.RBF(gamma=1.0), seed=1)
    for k in range(1, 40):
        x = rng.normal(size=(20, 2)) * 0.1 + [k % 7, k // 7]
        model.learn_many(x.astype(np.float32), [k] * 20)
        # And again with the others, as a class alone has nothing to be told from.
        model.learn_many(x.astype(np.float32), [k] * 20)
    assert model.classes == list(range(1, 40))
    centres = np.array([[k % 7, k // 7] for k in range(1, 40)], np.float32)
    assert np.mean(np.array(model.predict_many(centres)) == np.arange(1, 40)) > 0.9


def test_a_clock_may_decide_what_is_done():
    x, y = problem(600)
    model = LaRankClassifier(clock=True, seed=0)
    model.learn_many(x, y)
    assert model.counters["argmax_old"] > 20 and model.counters["optimize_steps"] > 200
    assert np.mean(np.array(model.predict_many(x)) == y) > 0.85
    model.finish()
    # Of so many features, kernel values of a new example take most of the time; PROCESSNEW must
    # not seem cheap without them.
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(600, 2000)).astype(np.float32), rng.integers(0, 4, 600).tolist()
    model = LaRankClassifier(kernels.RBF(gamma=0.0005), clock=True, seed=0)
    model.learn_many(x, y)
    assert model.counters["argmax_old"] + model.counters["optimize_steps"] / 10 > 150


def test_finish_reaches_the_optimum_over_what_is_kept():
    x, y = problem(600)
    model = LaRankClassifier(C=10.0, tau=1e-4, seed=0)
    model.learn_many(x, y)
    dual, told = model.dual, []
    model.finish(lambda worst, n: told.append(worst))
    assert model.dual > dual
    gap = model.kept_gap()
    assert gap.total <= max(10.0, 0.01 * model.dual)
    model.finish(share=0.0)
    assert model.duality_gap() < model.kept_gap().total < gap.total
    assert model.duality_gap() < 1e-3


# Thousands of classes


def test_the_limit_of_classes_is_1000_and_may_be_left_out():
    x, y = np.arange(1100, dtype=np.float32).reshape(1100, 1), np.arange(1100)
    LaRankClassifier(max_classes=None).learn_many(x, y)
    with pytest.raises(LabelError, match="class number 1,001"):
        LaRankClassifier().learn_many(x, y)
    # There is room for no more than these.
    rooms = []
    for most in (None, 130):
        model = LaRankClassifier(max_classes=most, seed=1)
        model.learn_many(x[:130], y[:130])
        rooms.append(model.state.n_vectors.size)
    assert rooms[0] > rooms[1] == 130


def test_a_run_makes_dead_letters_of_further_classes_and_refuses_a_target_of_them():
    events = [({"a": float(i % 7)}, str(i % 3 if i < 50 else i)) for i in range(60)]
    bad = BadEvents("skip")
    source = MemorySource(events)
    batches, source.batches = source.batches, lambda: batches(10)
    report = Run(source, LaRankClassifier(max_classes=5, seed=1), bad_events=bad).execute()
    assert (report.learnt, bad.counts) == (52, {"too many classes": 8})
    assert "max_classes" in bad.summary
    with pytest.raises(LabelError, match="the label '5' is class number 6"):
        events = [({"a": 1.0}, str(i)) for i in range(60)]
        Run(MemorySource(events), LaRankClassifier(max_classes=5)).execute()
