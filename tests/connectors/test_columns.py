"""Choosing columns, without a source around it (messages: see test_tabular)."""

import pyarrow as pa
import pytest

from connectors import MissingColumnError, NotReadableError, Position
from connectors.columns import feature_columns, plain_batch, target_type

SCHEMA = pa.schema({"a": pa.int8(), "b": pa.string(), "when": pa.date32(), "y": pa.bool_()})


@pytest.mark.parametrize(
    ("target", "columns", "timestamp", "features"),
    [
        ("y", None, None, ["a", "b", "when"]),
        ("y", None, "when", ["a", "b"]),
        (None, None, None, ["a", "b", "when", "y"]),
        ("y", ["b", "a", "b"], None, ["b", "a"]),
        ("y", ["when"], "when", ["when"]),
    ],
)
def test_features(target, columns, timestamp, features):
    assert feature_columns(SCHEMA, "s", target, columns, timestamp) == features


def test_a_missing_column_tells_what_it_was_asked_for():
    with pytest.raises(MissingColumnError, match="timestamp `whn` .*did you mean `when`") as caught:
        feature_columns(SCHEMA, "s", "y", None, "whn")
    assert caught.value.role == "timestamp"
    assert caught.value.columns == ("a", "b", "when", "y")


def test_an_unused_column_may_share_its_name():
    schema = pa.schema([("a", pa.int8()), ("b", pa.int8()), ("b", pa.int8()), ("y", pa.int8())])
    assert feature_columns(schema, "s", "y", ["a"], None) == ["a"]
    with pytest.raises(NotReadableError, match="`s` has several columns named `b`; rename them"):
        feature_columns(schema, "s", "y", ["b"], None)


def test_type_of_the_labels():
    assert target_type(SCHEMA, "y") == pa.bool_()
    assert target_type(SCHEMA, None) == pa.null()
    coded = pa.schema({"y": pa.dictionary(pa.int8(), pa.string_view())})
    assert target_type(coded, "y") == pa.string()


def test_plain_batches_are_not_copied():
    batch = pa.record_batch({"a": [1], "t": ["x"]})
    assert plain_batch(batch, Position(None, 0)) is batch
    coded = pa.record_batch({"t": pa.array(["x", None]).dictionary_encode()})
    assert plain_batch(coded, Position(None, 0)).to_pydict() == {"t": ["x", None]}
