"""Which types can be features, and their values."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from connectors.kinds import cells, kind_of, number_in, numbers_in, plain, to_float64

UTC = dt.UTC


@pytest.mark.parametrize(
    ("values", "type_", "kind", "expected"),
    [
        ([1, None, -3], pa.int8(), "number", [1.0, None, -3.0]),
        ([2**64 - 1], pa.uint64(), "number", [2.0**64]),
        ([2**53 + 1], pa.int64(), "number", [2.0**53]),
        ([True, None, False], pa.bool_(), "number", [1.0, None, 0.0]),
        ([0.5, None], pa.float16(), "number", [0.5, None]),
        ([0.5, None], pa.float32(), "number", [0.5, None]),
        ([Decimal("1.25"), None], pa.decimal128(9, 2), "number", [1.25, None]),
        ([Decimal("1.25"), None], pa.decimal256(40, 2), "number", [1.25, None]),
        ([dt.date(1970, 1, 3), None], pa.date32(), "time", [172800.0, None]),
        ([dt.date(1970, 1, 3), None], pa.date64(), "time", [172800.0, None]),
        ([1500, None], pa.timestamp("ms"), "time", [1.5, None]),
        ([-1], pa.timestamp("s"), "time", [-1.0]),
        ([1_600_000_000_250_000], pa.timestamp("us", "UTC"), "time", [1_600_000_000.25]),
        ([250_000_000], pa.timestamp("ns"), "time", [0.25]),
        ([90], pa.time32("s"), "duration", [90.0]),
        ([90_500_000], pa.time64("us"), "duration", [90.5]),
        ([1500], pa.duration("ms"), "duration", [1.5]),
        ([None], pa.null(), "null", [None]),
        (["a"], pa.large_string(), "text", None),
        (["a"], pa.string_view(), "text", None),
        (["a"], pa.dictionary(pa.int8(), pa.string()), "text", None),
        ([0.5], pa.dictionary(pa.int8(), pa.float32()), "number", None),
        ([b"a"], pa.binary(), None, None),
        ([[1]], pa.list_(pa.int8()), None, None),
        ([{"a": 1}], pa.struct({"a": pa.int8()}), None, None),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_kinds_of_types_and_values_as_floats(values, type_, kind, expected):
    assert kind_of(type_) == kind
    if expected is not None:
        floats = to_float64(pa.array(values, type_))
        assert floats.type == pa.float64()
        assert cells(floats) == expected


def test_nan_is_not_null():
    first, second = cells(pa.array([float("nan"), None]))
    assert math.isnan(first)
    assert second is None


def test_plain_columns_are_left_alone_and_others_decoded():
    column = pa.array(["a", None])
    assert plain(column) is column
    assert plain(column.dictionary_encode()).equals(column)
    assert plain(column.cast(pa.string_view())).equals(column)
    assert plain(column.cast(pa.string_view()).dictionary_encode()).equals(column)


def test_texts_that_are_numbers_or_times_are_the_same_by_column_and_one_by_one():
    texts = """1 +1 1. .5 -2e-3 1e999 nan 0x1 1_0 x 2024-01-02 2024-13-02 2024-01-02T03:04:05.5
    2024-01-02T03:04Z 2024-01-02T03:04+01:00 2024-01-02T25:04""".split()
    texts += ["", "  ", " 7\t", "2024-01-02 03:04:05", "1,5", "٣"]
    for type_ in (pa.string(), pa.large_string()):
        numbers, wrong = numbers_in(pa.array([*texts, None], type_))
        assert numbers.to_pylist() == [*map(number_in, texts), None]
        assert np.flatnonzero(wrong).tolist() == [6, 7, 8, 9, 11, 15, 20, 21]
    assert number_in("2024-01-02T03:04+01:00") == 1704161040.0
