"""Names of features take bounded memory: long ones, and those beyond some bytes, are left out."""

import numpy as np
import pyarrow as pa
import pytest

from streamsvm import LASVMClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.features import names as names_module
from streamsvm.features.names import LONGEST_NAME, HashedColumns, is_long

LONG, SHORT = "x" * (LONGEST_NAME + 1), "x" * LONGEST_NAME
LEARNERS = {
    "lasvm": lambda: LASVMClassifier(),
    "sparse": lambda: LASVMClassifier(sparse=True),
    "sgd": lambda: SVMSGDClassifier(),
}


def test_what_is_long():
    assert all(map(is_long, (LONG, LONG.encode(), ("a", LONG), 10**3000)))
    assert not any(map(is_long, (SHORT, 3, -(10**300), None, ("a", SHORT), 1.5)))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("warm", [0, 1100])
def test_long_names_of_events_are_left_out(name, warm):
    model = StandardScaler() | LEARNERS[name]()
    for i in range(warm):
        model.learn_one({"a": i % 7, "b": i % 3}, i % 7 > 3)
    for i in range(30):
        x = {"a": i % 7, SHORT: i % 3, f"{i}{LONG}": 1.0, f"text={i}{LONG}": 1.0}
        model.predict_one(x)
        model.learn_one(x, i % 7 > 3)
        assert model.predict_proba_one(x) == model.predict_proba_one({"a": i % 7, SHORT: i % 3})
    learner = list(model.steps.values())[-1]
    assert set(learner.feature_names) == {"a", SHORT} | ({"b"} if warm else set())
    assert learner.counters["features_ignored"] == 60
    assert not any(map(is_long, model["StandardScaler"].statistics))


def test_events_of_words_leave_long_names_out():
    model = SVMSGDClassifier()
    for i in range(3000):
        model.learn_one({f"word {j}": 1.0 for j in range(i % 50, i % 50 + 5)}, i % 2)
    for i in range(50):
        model.learn_one({f"word {i}": 1.0, f"{i}{LONG}": 1.0, f"new {i}": 1.0}, i % 2)
    assert not any(map(is_long, model.feature_names))
    assert "new 49" in model.feature_names
    assert model.n_examples == 3050


@pytest.mark.parametrize("name", LEARNERS)
def test_long_names_of_batches_are_left_out(name):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 3))
    frame = pa.RecordBatch.from_arrays(list(map(pa.array, x.T)), ["a", LONG, "b"])
    plain = pa.RecordBatch.from_arrays([pa.array(x[:, 0]), pa.array(x[:, 2])], ["a", "b"])
    y = (x[:, 0] * x[:, 2] > 0).tolist()
    model, same = LEARNERS[name](), LEARNERS[name]()
    model.learn_many(frame, y)
    same.learn_many(plain, y)
    assert model.feature_names == same.feature_names == ["a", "b"]
    np.testing.assert_array_equal(
        model.decision_function_many(frame), same.decision_function_many(plain)
    )
    assert model.counters["features_ignored"] == 1


@pytest.mark.parametrize("name", LEARNERS)
def test_names_take_bounded_bytes(name, monkeypatch):
    monkeypatch.setattr(names_module, "MOST_BYTES", 60_000)
    model = StandardScaler() | LEARNERS[name]()
    for i in range(2000):
        model.learn_one({"a": i % 7, f"{i}{'y' * 100}": 1.0}, i % 7 > 3)
    scaler, learner = model.steps.values()
    for schema in (learner.schema, scaler.schema):
        assert 100 < len(schema.names) < 400
        assert schema.nbytes < 60_000
    assert learner.counters["features_ignored"] == 2001 - len(learner.feature_names)
    assert learner.n_examples == 2000
    model.learn_one({"a": 1.0}, True)


@pytest.mark.parametrize("name", LEARNERS)
def test_memory_usage_counts_names(name):
    short, long = LEARNERS[name](), LEARNERS[name]()
    for i in range(200):
        short.learn_one({f"{i:03}": 1.0}, i % 2)
        long.learn_one({f"{i:03}{'z' * 900}": 1.0}, i % 2)
    assert long.memory_usage - short.memory_usage >= 200 * 900
    assert long.memory_parts["names"] == long.schema.memory_usage
    assert sum(long.memory_parts.values()) == long.memory_usage


def test_no_cache_holds_long_names():
    columns = HashedColumns(64)
    assert columns[LONG] == columns[LONG]
    assert columns[SHORT] >= 0
    assert list(columns) == [SHORT]
    scaler = StandardScaler()
    scaler.learn_one({"a": 1.0, f"text={LONG}": 1.0})
    scaler.transform_one({"a": 1.0, f"text={LONG}": 1.0})
    assert not any(is_long(name) for names in scaler._layouts for name in names)
