"""Raw rows from anywhere become the features that a model learnt from a file."""

import datetime as dt
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from connectors import ArrowSource, NotReadableError, one_hot

UTC = dt.UTC
TABLE = pa.table(
    {
        "age": [39, None, 7],
        "sex": ["f", "m", None],
        "colour": pa.array(["red", "blue", "red"]).dictionary_encode(),
        "day": [dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)],
        "at": [dt.datetime(2024, 1, 1, 12, tzinfo=UTC), dt.datetime(1970, 1, 1, tzinfo=UTC), None],
        "plain": [dt.datetime(2024, 1, 1, 12), None, None],
        "took": [dt.timedelta(seconds=1.5), None, dt.timedelta(days=-1)],
        "price": [Decimal("12.50"), Decimal("0.01"), None],
        "ok": [True, False, None],
    }
)
EVENTS = [x for x, _, _ in ArrowSource(TABLE, None).events()]


def test_events_are_those_of_a_file():
    assert [one_hot(row) for row in TABLE.to_pylist()] == EVENTS
    assert EVENTS[0]["sex=f"] == 1.0 and "sex" not in EVENTS[2]


FRAMES = {
    "table": TABLE,
    "batch": TABLE.combine_chunks().to_batches()[0],
    "chunks": pa.concat_tables([TABLE[:1], TABLE[1:]]),
    "polars": pl.from_arrow(TABLE),
    "pandas": TABLE.to_pandas(),
    "pandas, filtered": TABLE.to_pandas()[lambda frame: frame.index >= 0].set_index([[5, 3, 9]]),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_those_of_a_file(kind):
    batch = one_hot(FRAMES[kind])
    rows = [
        {n: v for n, v in row.items() if v is not None and (v or "=" not in n)}
        for row in batch.to_pylist()
    ]
    if kind.startswith("pandas"):
        # pandas has made objects or floats of these columns.
        rows = [{n: v for n, v in row.items() if n != "ok"} for row in rows]
        assert rows == [{n: v for n, v in x.items() if n != "ok"} for x in EVENTS]
    else:
        assert rows == EVENTS
    assert one_hot(TABLE[:0]).num_rows == 0


def test_values_that_the_model_does_not_know_share_a_feature():
    many = pa.table({"t": [f"v{i}" for i in range(1200)]})
    model = set(one_hot(many).schema.names)
    assert len(model) == 1001
    assert one_hot({"t": "v5"}, model) == {"t=v5": 1.0}
    assert one_hot({"t": "v1100"}, model) == one_hot({"t": "new"}, model) == {"t=<other>": 1.0}
    assert one_hot({"s": "new"}, model) == {"s=new": 1.0}
    rows = one_hot(pa.table({"t": ["v5", "new", None], "s": ["x", "y", "x"]}), model).to_pylist()
    assert rows[0] == {"t=v5": 1.0, "t=<other>": 0.0, "s=x": 1.0, "s=y": 0.0}
    assert rows[1] == {"t=v5": 0.0, "t=<other>": 1.0, "s=x": 0.0, "s=y": 1.0}


def test_what_cannot_be_a_feature_is_said():
    for value in ({"b": 1}, [1.0], b"bytes", object()):
        with pytest.raises(NotReadableError, match=f"feature `a` is a {type(value).__name__}"):
            one_hot({"a": value})
    assert one_hot({"a": pd.NaT, "b": 1}) == {"b": 1.0}
    with pytest.raises(NotReadableError, match="column `a` has type list"):
        one_hot(pa.table({"a": [[1.0]]}))
    with pytest.raises(NotReadableError, match="a list is neither an event nor a frame"):
        one_hot([{"a": 1.0}])
