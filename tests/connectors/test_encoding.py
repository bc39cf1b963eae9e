"""Columns to features, vectorised and one by one."""

import json
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import Batch, Encoder, SnapshotError
from connectors.encoding import OTHER


def encoder_of(batch, **options):
    return Encoder(batch.schema, **options)


@pytest.mark.parametrize(
    ("columns", "options", "names", "events"),
    [
        # Text becomes one-hot, and numbers stay.
        (
            {"n": [1, None, 3], "t": ["a", "b", None]},
            {},
            ["n", "t=a", "t=b"],
            [{"n": 1.0, "t=a": 1.0}, {"t=b": 1.0}, {"n": 3.0}],
        ),
        # By first appearance, then by column.
        (
            {"late": [None, None, 1], "t": [None, "x", "y"], "n": [1, 2, 3], "m": [None, 5, 6]},
            {},
            ["n", "t=x", "m", "late", "t=y"],
            [
                {"n": 1.0},
                {"t=x": 1.0, "n": 2.0, "m": 5.0},
                {"late": 1.0, "t=y": 1.0, "n": 3.0, "m": 6.0},
            ],
        ),
        # What no row has is left out.
        ({"n": pa.nulls(2, pa.int8()), "t": pa.nulls(2, pa.string())}, {}, [], [{}, {}]),
        ({"n": [1], "nothing": pa.nulls(1)}, {}, ["n"], [{"n": 1.0}]),
        # Values beyond the cap share one feature, as does one that reads like it.
        (
            {"t": ["a", "b", "c", "a", "d"]},
            {"max_categories": 2},
            ["t=a", "t=b", f"t={OTHER}"],
            [{f"t={value}": 1.0} for value in ("a", "b", OTHER, "a", OTHER)],
        ),
        (
            {"t": [OTHER, "b", "c"]},
            {"max_categories": 1},
            [f"t={OTHER}"],
            [{f"t={OTHER}": 1.0}] * 3,
        ),
        # An empty text is a value.
        ({"t": ["", None]}, {}, ["t="], [{"t=": 1.0}, {}]),
    ],
)
def test_features_of_columns(columns, options, names, events):
    batch = pa.record_batch(columns)
    encoded = encoder_of(batch, **options).encode(batch)
    assert encoded.schema.names == names and encoded.num_rows == len(events)
    assert list(encoder_of(batch, **options).events(batch)) == events
    # Categories that a row does not have are 0, numbers null.
    assert encoded.to_pylist() == [
        {name: x.get(name, 0.0 if "=" in name else None) for name in names} for x in events
    ]


def test_values_beyond_the_cap_are_not_noted():
    batch = pa.record_batch({"t": ["a", "b", "c", "a", "d"]})
    encoder = encoder_of(batch, max_categories=2)
    encoder.encode(batch)
    assert encoder.snapshot() == {"t": ["a", "b"]}


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
