"""Frames: what is missing in them, in each library, is what is missing in an event."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamsvm import LASVMClassifier, StandardScaler
from streamsvm.errors import FeatureError
from streamsvm.features.batches import matrix_of, rows_of
from streamsvm.features.missing import MissingValues
from streamsvm.features.schema import Schema


def test_other_values_that_are_not_finite_are_refused():
    for frame in (
        pd.DataFrame({"a": [1.0, np.inf]}),
        pl.DataFrame({"a": [1.0, float("inf")]}),
        pa.table({"a": [1.0, float("-inf")]}),
    ):
        with pytest.raises(FeatureError):
            LASVMClassifier().learn_many(frame, [True, False])


def test_hidden_values_of_masked_arrays_are_missing():
    values = np.arange(20.0).reshape(10, 2)
    mask = np.zeros((10, 2), bool)
    mask[3:5, 1] = True
    hidden = np.where(mask, 1e6, values)
    for given in (np.ma.array(hidden, mask=mask), np.ma.array(hidden.astype(int), mask=mask)):
        found = matrix_of(given, Schema())
        assert np.array_equal(found.values, np.where(mask, np.nan, values), equal_nan=True)
        scaler = StandardScaler()
        scaler.learn_many(given)
        assert scaler.statistics[1][0] == 8 and scaler.statistics[1][1] < 20.0
    matrix = matrix_of(values.view(np.matrix), Schema())
    assert np.array_equal(matrix.values, values) and type(matrix.values) is np.ndarray


@pytest.mark.parametrize(
    "null", [None, np.nan, pd.NA, pd.NaT, pa.scalar(None), np.ma.masked, Decimal("NaN")]
)
def test_nulls_of_libraries_are_missing_in_events(null):
    schema = Schema()
    assert schema.checked({"a": null, "b": 1}) == {"b": 1.0}
    assert schema.wider_row({"a": null, "b": 1})[1] == ["b"]
    scaler = StandardScaler()
    for _ in range(2):
        scaler.learn_one({"a": null, "b": 1.0})
        assert scaler.transform_one({"a": null, "b": 1.0}) == {"b": 0.0}
    assert list(scaler.statistics) == ["b"] and scaler.statistics["b"][0] == 2


def test_a_missing_boolean_is_missing():
    table = pa.table({"flag": [True, False, True, True, None, True, None]})
    x, new = rows_of(Schema(), matrix_of(table, Schema()), False)
    filled, statistics = MissingValues("mean").filled(x.copy(), new, True)
    assert filled[:, 0].tolist() == pytest.approx([1.0, 0.0, 1.0, 1.0, 0.75, 1.0, 0.8])
    missing = MissingValues("mean")
    missing.keep(statistics)
    assert missing.counts(new) == {"flag": 2}
    with pytest.raises(FeatureError, match="row 4: feature 'flag' is missing"):
        MissingValues("reject").filled(x.copy(), new, True)
    # Where 0 is never given, as of one-hot features, it is what is missing.
    table = pa.table({"is_a": [1.0, None, 1.0, 1.0, 1.0, None]})
    x, new = rows_of(Schema(), matrix_of(table, Schema()), False)
    assert MissingValues("reject").filled(x, new, True)[0][:, 0].tolist() == [1, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("kind", ["Sparse[uint8]", "Sparse[float64]", "Sparse[bool]"])
def test_sparse_columns_of_pandas(kind):
    dense = pd.DataFrame({"a": [1, 0, 0, 1], "b": [0, 0, 1, 0]})
    found = matrix_of(dense.astype(kind), Schema())
    assert np.array_equal(found.values, dense) and found.names == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ([1.0, pd.NA, 2.0], [1.0, np.nan, 2.0]),
        ([True, None, False], [1.0, np.nan, 0.0]),
        ([3, None, Decimal("2.5")], [3.0, np.nan, 2.5]),
        ([None, None, None], [np.nan] * 3),
    ],
)
def test_objects_of_pandas_are_numbers_with_nulls(given, values):
    frame = pd.DataFrame({"a": pd.Series(given, dtype=object), "b": [1.0, 2.0, 3.0]})
    matrix = matrix_of(frame, Schema())
    np.testing.assert_array_equal(matrix.values[:, 0], values)


@pytest.mark.parametrize("given", [[1.0, "x", None], ["x", None, "y"], [[1], None, 2.0]])
def test_other_objects_of_pandas_are_refused(given):
    frame = pd.DataFrame({"a": pd.Series(given, dtype=object)})
    with pytest.raises(FeatureError, match="'a'"):
        matrix_of(frame, Schema())
