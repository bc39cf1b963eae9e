"""Ranks as bits: a slow twin, events and batches, copies and files, and learners behind."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from river import datasets

from connectors import MemorySource
from streamsvm import RankBits, StandardScaler, SVMSGDClassifier, predict_then_learn_many
from streamsvm.errors import FeatureError
from streamsvm.features import frames
from streamsvm.model_files.codec import to_file
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from tests.preprocessing.test_feature_maps import as_events
from tests.reference.slow_rank_bits import SlowFeature

# Quarters, so that quantiles of few values, 1 / 8 apart, are exact in single precision.
VALUES = st.integers(-40, 40).map(lambda i: i / 4)
EVENTS = st.lists(
    st.dictionaries(st.sampled_from("abc"), VALUES | st.none(), max_size=3), max_size=70
)


def learn_and_transform(transformer, events):
    found = []
    for x in events:
        transformer.learn_one(x)
        found.append(transformer.transform_one(x))
    return found


def names_of(feature, n):
    return [f"{feature}>q{k / (n + 1):.4g}" for k in range(1, n + 1)]


@given(events=EVENTS, n_bits=st.sampled_from([1, 3, 7]), splits=st.lists(st.integers(0, 70)))
@settings(max_examples=100, deadline=None)
def test_events_and_batches_are_those_of_the_twin(events, n_bits, splits):
    twins = {name: SlowFeature(n_bits) for name in "abc"}
    expected = []
    for x in events:
        bits = {}
        for name, value in x.items():
            if value is not None:
                twins[name].learn(value)
                bits |= zip(names_of(name, n_bits), twins[name].bits(value), strict=True)
        expected.append(bits)
    one, many = RankBits(n_bits), RankBits(n_bits)
    assert learn_and_transform(one, events) == expected
    for twin, found in ((twins[name], found) for name, found in one.edges.items()):
        np.testing.assert_array_equal(found, twin.edges().astype(np.float32))
    table = pa.table(
        {name: pa.array([x.get(name) for x in events], pa.float64()) for name in "abc"}
    )
    found, ends = [], sorted({0, len(events), *(s for s in splits if s < len(events))})
    for start, stop in pairwise(ends):
        matrix = frames.matrix_of(table.slice(start, stop - start), many.schema)
        mapped = as_events(many.learn_transform_matrix(matrix))
        found += mapped or [{}] * (stop - start)
    assert found == expected
    assert many.edges == one.edges
    assert [many.transform_one(x) for x in events] == [one.transform_one(x) for x in events]


def test_edges_stay_as_they_are_after_2048_values():
    values = np.random.default_rng(0).lognormal(sigma=3.0, size=5000).astype(np.float32)
    twin, one, many = SlowFeature(15), RankBits(), RankBits()
    many.learn_many(pa.table({"a": values[:3000]}))
    for value in values[:2100].tolist():
        twin.learn(value)
        one.learn_one({"a": value})
    np.testing.assert_allclose(one.edges["a"], twin.edges(), rtol=1e-6)
    assert one.edges == many.edges
    many.learn_many(pa.table({"a": values[3000:] + 1e3}))
    assert one.edges == many.edges
    shares = np.mean(many.transform_many(pd.DataFrame({"a": values})), axis=0)
    np.testing.assert_allclose(shares, 1.0 - np.arange(1, 16) / 16, atol=0.02)
    # The values are not kept any more.
    assert len(to_file(one)[1]["values"]) == 0


def test_the_largest_value_differs_from_others_however_frequent_it_is():
    transformer = RankBits(n_bits=3)
    transformer.learn_many(pa.table({"a": [1.0] * 15 + [0.0], "b": [2.0] * 16}))
    bits = [transformer.transform_one({"a": a, "b": 2.0}) for a in (0.0, 1.0)]
    assert [list(x.values()) for x in bits] == [[0.0] * 6, [1.0] * 3 + [0.0] * 3]
    transformer.learn_many(pa.table({"c": [-3.4e38, 3.4e38]}))
    assert transformer.edges["c"] == [float(np.float32(-3.4e38))] * 3


def test_numbers_of_bits():
    for d, n in ((1, 15), (8, 15), (9, 13), (60, 2), (500, 1)):
        one, many = RankBits(), RankBits()
        x = np.random.default_rng(1).normal(size=(5, d))
        one.learn_one({f"f{i}": value for i, value in enumerate(x[0])} | {"t=x": 1.0})
        many.learn_many(x)
        assert len(one.transform_one({"f0": 1.0})) == n
        found = many.transform_many(x)
        assert found.shape == (5, n * d) and found.dtype == np.float32
        assert many.gamma == one.gamma == 6.0 / (n * d)
    # A column that was never learnt keeps its place.
    many = RankBits(n_bits=2)
    many.learn_one({1: 0.5})
    assert np.isnan(many.transform_many(np.ones((5, 2)))[:, :2]).all()
    # Features that come later have as many; of the first row those that it has count.
    many = RankBits()
    many.learn_many(pa.table({"t=x": [1.0, 1.0], "a": [None, 3.0]}))
    many.learn_one({f"f{i}": 1.0 for i in range(100)})
    assert len(many.transform_one({"f7": 1.0, "f8": 1.0})) == 30
    assert RankBits().gamma == RankBits(n_bits=3).gamma == 0.05


def test_names_of_any_kind_have_bits_of_their_own():
    names = ["a", "a>q0.5", "1", 1, -1, 1.5, "1.5", ("a", 2), "('a', 2)", b"a", "b'a'"]
    transformer = RankBits(n_bits=1)
    transformer.learn_one(dict.fromkeys(names, 1.0))
    assert len(transformer.transform_one(dict.fromkeys(names, 1.0))) == len(names)
    assert list(transformer.transform_one({True: 5.0})) == [1]


def test_one_hot_features_pass():
    transformer = RankBits(n_bits=1, one_hot="^job_")
    transformer.learn_one({"colour=red": 1.0, "job_x": 1.0, "a": 2.0})
    transformer.learn_one({"a": 3.0})
    x = {"colour=blue": 1.0, "job_x": 0.0, "a": 3.0, "never": 1.0}
    expected = {"colour=blue": 1.0, "job_x": 0.0, "a>q0.5": 1.0}
    assert transformer.transform_one(x) == expected
    assert as_events(transformer.transform_many(pd.DataFrame([x]))) == [expected]
    assert transformer.schema.names == ["colour=red", "job_x", "a"]


def test_arrays_after_names_and_sparse_rows_are_refused():
    transformer = RankBits()
    transformer.learn_one({"a": 1.0})
    with pytest.raises(FeatureError, match="an array has no feature names"):
        transformer.learn_many(np.ones((2, 2)))
    for method in (RankBits().learn_many, RankBits().transform_many):
        with pytest.raises(FeatureError, match="RankBits takes no sparse rows"):
            method(sp.csr_array(np.eye(3)))
    assert set(transformer.edges) == {"a"} and set(transformer.edges["a"]) == {1.0}


@pytest.mark.parametrize("delay", [1, 30])
def test_late_labels_give_the_model_of_single_events(delay):
    items = [(x, y == "path") for x, y in datasets.ImageSegments().take(500)]
    model, bits, learner = RankBits() | SVMSGDClassifier(), RankBits(), SVMSGDClassifier()
    report = Run(MemorySource(items), model, late=LateLabels(delay=delay)).execute()
    assert report.rows == 500 and report.accuracy > 0.9
    for i in range(500 + delay):
        # Bits are learnt as an event comes, and are those of now as its label comes.
        if i >= delay:
            x, y = items[i - delay]
            learner.learn_one(bits.transform_one(x), y)
        if i < 500:
            bits.learn_one(items[i][0])
    assert model[0].edges == bits.edges
    for x, _ in items[:50]:
        expected = learner.decision_function_one(bits.transform_one(x))
        assert model[-1].decision_function_one(model[0].transform_one(x)) == expected


def test_room_for_bits_is_bounded(monkeypatch):
    monkeypatch.setattr("streamsvm.preprocessing.rank_bits.LIMIT", 7)
    transformer = RankBits(n_bits=3)
    transformer.learn_one({"a": 1.0, "b": 1.0, "c": 1.0})
    assert list(transformer.edges) == ["a", "b"]
    assert len(transformer.transform_one({"a": 1.0, "b": 1.0, "c": 1.0})) == 6


def test_a_pipeline_that_learnt_arrays_predicts_arrays_and_events():
    x, y = np.random.default_rng(4).normal(size=(300, 3)), np.arange(300) % 2 == 0
    model = RankBits() | SVMSGDClassifier()
    predict_then_learn_many(model, x, y)
    events = [dict(enumerate(row)) for row in x.tolist()]
    assert [model.predict_one(x) for x in events] == model.predict_many(x).tolist()


def test_skewed_features_with_outliers():
    """A linear learner behind `RankBits` errs less than behind `StandardScaler`."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(4000, 4))
    x, y = np.exp(4.0 * z), np.abs(z[:, 0]) + z[:, 1] > 0.7
    errors = []
    for first in (StandardScaler(), RankBits()):
        predicted = predict_then_learn_many(first | SVMSGDClassifier(), x, y)
        errors.append(np.mean(np.array(predicted[1000:]) != y[1000:]))
    assert errors[1] < 0.15 < 0.3 < errors[0]
