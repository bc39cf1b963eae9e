"""Columns to features, vectorised and one by one."""

import json
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import Batch, Encoder, NoFeaturesError, NotReadableError, SnapshotError
from connectors.encoding import OTHER


def encoder_of(batch, **options):
    return Encoder(batch.schema, **options)


def test_text_becomes_one_hot_and_numbers_stay():
    batch = pa.record_batch({"n": [1, None, 3], "t": ["a", "b", None]})
    assert encoder_of(batch).encode(batch).to_pydict() == {
        "n": [1.0, None, 3.0],
        "t=a": [1.0, 0.0, 0.0],
        "t=b": [0.0, 1.0, 0.0],
    }
    assert list(encoder_of(batch).events(batch)) == [
        {"n": 1.0, "t=a": 1.0},
        {"t=b": 1.0},
        {"n": 3.0},
    ]


def test_columns_come_by_first_appearance_then_by_column():
    batch = pa.record_batch(
        {"late": [None, None, 1], "t": [None, "x", "y"], "n": [1, 2, 3], "m": [None, 5, 6]}
    )
    assert encoder_of(batch).encode(batch).schema.names == ["n", "t=x", "m", "late", "t=y"]


def test_what_no_row_has_is_left_out():
    batch = pa.record_batch(
        {"n": pa.array([None, None], pa.int8()), "t": pa.array([None, None], pa.string())}
    )
    encoded = encoder_of(batch).encode(batch)
    assert encoded.num_columns == 0
    assert encoded.num_rows == 2
    assert list(encoder_of(batch).events(batch)) == [{}, {}]


def test_values_beyond_the_cap_share_one_feature():
    batch = pa.record_batch({"t": ["a", "b", "c", "a", "d"]})
    encoder = encoder_of(batch, max_categories=2)
    assert encoder.encode(batch).to_pydict() == {
        "t=a": [1.0, 0.0, 0.0, 1.0, 0.0],
        "t=b": [0.0, 1.0, 0.0, 0.0, 0.0],
        f"t={OTHER}": [0.0, 0.0, 1.0, 0.0, 1.0],
    }
    assert encoder.snapshot() == {"t": ["a", "b"]}


def test_a_value_that_reads_like_the_overflow_shares_its_feature():
    batch = pa.record_batch({"t": [OTHER, "b", "c"]})
    encoder = encoder_of(batch, max_categories=1)
    assert encoder.encode(batch).to_pydict() == {f"t={OTHER}": [1.0, 1.0, 1.0]}


def test_empty_text_is_a_value():
    batch = pa.record_batch({"t": ["", None]})
    assert list(encoder_of(batch).events(batch)) == [{"t=": 1.0}, {}]


def test_a_category_is_noted_when_its_row_is_handed_out():
    batch = pa.record_batch({"t": ["a", "b"]})
    encoder = encoder_of(batch)
    events = encoder.events(batch)
    next(events)
    assert encoder.snapshot() == {"t": ["a"]}


def test_resume_takes_the_vocabulary_over():
    batch = pa.record_batch({"t": ["a", "b"]})
    first = encoder_of(batch, max_categories=1)
    first.encode(batch)
    second = encoder_of(batch, max_categories=1)
    second.resume(json.loads(json.dumps(first.snapshot())))
    assert list(second.events(batch.slice(1))) == [{f"t={OTHER}": 1.0}]
    second.rewind()
    assert list(second.events(batch.slice(1))) == [{"t=b": 1.0}]


def test_resume_refuses_other_text_columns():
    encoder = encoder_of(pa.record_batch({"t": ["a"]}))
    with pytest.raises(SnapshotError, match=r"text columns \['s'\], this one has \['t'\]"):
        encoder.resume({"s": []})


@pytest.mark.parametrize(
    "type_",
    [
        pa.list_(pa.int8()),
        pa.struct({"a": pa.int8()}),
        pa.binary(),
        pa.map_(pa.string(), pa.int8()),
    ],
    ids=str,
)
def test_nested_and_binary_columns_are_refused_by_name(type_):
    schema = pa.schema({"ok": pa.int8(), "odd": type_})
    with pytest.raises(NotReadableError) as caught:
        Encoder(schema)
    assert str(caught.value) == (
        f"column `odd` has type {type_}, which cannot be a feature "
        "(numbers, booleans, times and text can); leave it out with exclude= (--exclude)"
    )


def test_null_columns_are_all_missing():
    batch = pa.record_batch({"n": [1], "nothing": pa.nulls(1)})
    assert encoder_of(batch).encode(batch).schema.names == ["n"]
    assert list(encoder_of(batch).events(batch)) == [{"n": 1.0}]


def test_no_usable_column():
    with pytest.raises(NoFeaturesError, match=r"no column can be a feature .*`nothing` null"):
        Encoder(pa.schema({"nothing": pa.null()}))
    with pytest.raises(NoFeaturesError, match="columns beside the target: none"):
        Encoder(pa.schema({}))


def test_names_that_could_be_taken_for_a_category_are_refused():
    with pytest.raises(NotReadableError, match="`t=a` could be mistaken for a value of the text"):
        Encoder(pa.schema({"t": pa.string(), "t=a": pa.int8()}))


def test_max_categories_must_be_positive():
    with pytest.raises(ValueError, match="max_categories must be at least 1, not 0"):
        Encoder(pa.schema({"a": pa.int8()}), max_categories=0)


def test_columns_that_a_batch_lacks_are_missing():
    encoder = Encoder(pa.schema({"a": pa.int8(), "t": pa.string()}))
    batch = pa.record_batch({"a": [1.5]})
    assert encoder.encode(batch).to_pydict() == {"a": [1.5]}
    assert list(encoder.events(batch)) == [{"a": 1.5}]


NUMBERS = st.none() | st.sampled_from([0.0, 1.0, -2.5, float("inf")])
TEXTS = st.none() | st.sampled_from(["", "a", "b", "=", OTHER, "é", "a=b"])
FLAGS = st.none() | st.booleans()


@st.composite
def batches(draw):
    n = draw(st.integers(0, 12))
    columns = {}
    for i, kind in enumerate(draw(st.lists(st.sampled_from("ntbdk"), min_size=1, max_size=5))):
        values, type_ = {
            "n": (NUMBERS, pa.float64()),
            "t": (TEXTS, pa.string()),
            "b": (FLAGS, pa.bool_()),
            "d": (TEXTS, pa.dictionary(pa.int32(), pa.string())),
            "k": (st.none() | st.integers(-5, 5), pa.timestamp("ms")),
        }[kind]
        cells = draw(st.lists(values, min_size=n, max_size=n))
        columns[f"{kind}{i}"] = pa.array(cells, pa.string() if kind == "d" else type_)
        if kind == "d":
            columns[f"{kind}{i}"] = columns[f"{kind}{i}"].dictionary_encode()
    return pa.record_batch(columns)


@settings(deadline=None, max_examples=200)
@given(batch=batches(), cap=st.integers(1, 4), cut=st.integers(0, 12))
def test_both_paths_agree_in_values_and_in_the_order_of_features(batch, cap, cut):
    one, many = encoder_of(batch, max_categories=cap), encoder_of(batch, max_categories=cap)
    events = list(one.events(batch))
    met = list(dict.fromkeys(name for x in events for name in x))
    order = []
    back = []
    for part in (batch.slice(0, cut), batch.slice(cut)):
        features = many.encode(part)
        assert features.num_rows == part.num_rows
        order += [name for name in features.schema.names if name not in order]
        rows = np.arange(part.num_rows)
        back += Batch(features, pa.nulls(part.num_rows), rows, None).events()
    assert order == met
    assert [list(event.x.items()) for event in back] == [list(x.items()) for x in events]
    assert one.snapshot() == many.snapshot()


def test_batches_are_encoded_far_faster_than_half_a_million_rows_a_second():
    rng = np.random.default_rng(0)
    batch = pa.record_batch({f"c{i}": rng.standard_normal(4096).astype("f4") for i in range(20)})
    encoder = encoder_of(batch)
    encoder.encode(batch)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        encoder.encode(batch)
        times.append(time.perf_counter() - start)
    assert 4096 / min(times) > 500_000


def test_what_was_encoded_before_changes_nothing():
    whole = pa.record_batch({"y": [1, 0], "b": [1.0, 2.0], "a": pa.array([3.0, 4.0], pa.float32())})
    gaps = whole.set_column(1, "b", pa.array([None, 2.0]))
    counts = whole.set_column(1, "b", pa.array([1, 2]))
    features = whole.select(["b", "a"]).schema
    encoder = Encoder(features)
    for batch in (whole, whole, whole[:0], gaps, whole, counts, whole.select(["a", "y"]), whole):
        found, fresh = encoder.encode(batch), Encoder(features).encode(batch)
        assert found.equals(fresh, check_metadata=True)
