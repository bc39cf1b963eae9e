"""Frames: what is missing in them, in each library, is what is missing in an event."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamsvm import LASVMClassifier, StandardScaler
from streamsvm.errors import FeatureError

ROWS = [{"a": float(i % 5), "b": float(i % 3) - 1.0} for i in range(60)]
EVENTS = [{n: v for n, v in x.items() if (i + len(n)) % 4 or n == "a"} for i, x in enumerate(ROWS)]
EVENTS = [x if i % 4 else {n: v for n, v in x.items() if n != "b"} for i, x in enumerate(EVENTS)]
FRAMES = {
    "arrow": pa.Table.from_pylist(EVENTS, pa.schema({"a": pa.float64(), "b": pa.float64()})),
    "pandas": pd.DataFrame(EVENTS, columns=["a", "b"]),
    "pandas, nullable": pd.DataFrame(EVENTS, columns=["a", "b"]).astype("Float64"),
    "polars": pl.DataFrame(EVENTS, schema={"a": pl.Float64, "b": pl.Float64}),
}


@pytest.mark.parametrize("library", FRAMES)
def test_a_missing_value_is_a_missing_feature(library):
    assert any("b" not in x for x in EVENTS) and any("b" in x for x in EVENTS)
    one, many = StandardScaler(), StandardScaler()
    for x in EVENTS:
        one.learn_one(x)
    many.learn_many(FRAMES[library])
    assert many.statistics == one.statistics
    labels = [i % 5 > 2 for i in range(60)]
    single, batch = LASVMClassifier(), LASVMClassifier()
    for x, y in zip(EVENTS, labels, strict=True):
        single.learn_one(x, y)
    batch.learn_many(FRAMES[library], labels)
    assert batch.predict_proba_one({"a": 1.0}) == single.predict_proba_one({"a": 1.0})


def test_other_values_that_are_not_finite_are_refused():
    for frame in (
        pd.DataFrame({"a": [1.0, np.inf]}),
        pl.DataFrame({"a": [1.0, float("inf")]}),
        pa.table({"a": [1.0, float("-inf")]}),
    ):
        with pytest.raises(FeatureError):
            LASVMClassifier().learn_many(frame, [True, False])


def test_columns_of_pandas_may_be_named_by_integers():
    x, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2 == 0
    one, many = LASVMClassifier(), LASVMClassifier()
    one.learn_many(x, y)
    many.learn_many(pd.DataFrame(x), pd.Series(y))
    assert many.predict_proba_one({0: 0.5, 1: -1.0}) == one.predict_proba_one({0: 0.5, 1: -1.0})
