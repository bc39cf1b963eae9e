import numpy as np
import pyarrow as pa
import pytest
from river import datasets, preprocessing

from streamsvm import StandardScaler
from streamsvm.errors import FeatureError
from streamsvm.learners import frames


def test_event_by_event_it_is_rivers():
    ours, rivers = StandardScaler(), preprocessing.StandardScaler()
    for i, (x, _) in enumerate(datasets.Phishing().take(300)):
        x = {k: v for j, (k, v) in enumerate(x.items()) if (i + j) % 5}
        ours.learn_one(x)
        rivers.learn_one(x)
        assert ours.transform_one(x) == pytest.approx(rivers.transform_one(x), abs=1e-12)


def test_a_batch_is_its_rows_one_by_one():
    rng = np.random.default_rng(0)
    columns = {
        "a": [None if v < -1 else v for v in rng.normal(size=90).tolist()],
        "b": rng.normal(5.0, 3.0, 90).tolist(),
        "t=x": rng.integers(0, 2, 90).astype(float).tolist(),
    }
    table = pa.table(columns)
    one, many, both = StandardScaler(), StandardScaler(), StandardScaler()
    expected = []
    for row in table.to_pylist():
        event = {k: v for k, v in row.items() if v is not None}
        one.learn_one(event)
        expected.append(one.transform_one(event))
    for start in (0, 40):
        many.learn_many(table.slice(start, 40 if start == 0 else 50))
    assert many.statistics == one.statistics
    scaled = both.learn_transform_many(frames.matrix_of(table, both._schema))
    for event, values in zip(expected, scaled.values.tolist(), strict=True):
        got = dict(zip(scaled.names, values, strict=True))
        assert {name: got[name] for name in event} == event
    assert both.statistics == one.statistics and "t=x" not in one.statistics


@pytest.mark.parametrize("value", ["1", None, float("nan"), float("inf")])
def test_refused_values_change_nothing(value):
    scaler = StandardScaler()
    scaler.learn_one({"a": 1.0})
    before = scaler.statistics
    with pytest.raises(FeatureError, match="'b'"):
        scaler.learn_one({"a": 2.0, "b": value})
    assert scaler.statistics == before


def test_containers_come_back_in_kind():
    x = np.arange(8.0).reshape(4, 2)
    scaler = StandardScaler()
    scaler.learn_many(x)
    np.testing.assert_allclose(scaler.transform_many(x).mean(axis=0), 0.0, atol=1e-12)
    batch = pa.RecordBatch.from_arrays([pa.array([1.0]), pa.array([2.0])], ["a", "b"])
    assert isinstance(StandardScaler().transform_many(batch), pa.RecordBatch)
