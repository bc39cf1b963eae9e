"""Arrow columns of lists as sparse rows: lists of any kind, read where they are if possible."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import ParquetSource
from streamsvm import StandardScaler
from streamsvm.errors import FeatureError
from streamsvm.features.frames import of_lists
from streamsvm.features.schema import Schema
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.runner import Run
from tests.learners.test_sparse import LEARNERS, N, compiling, events, learnt, text_like
from tests.slow import slow_but


def lists(x):
    """Return rows as two Arrow columns of lists, in no order within a row."""
    rows = list(events(x))
    places = pa.array([list(row) for row in rows], pa.list_(pa.int32()))
    values = pa.array([list(row.values()) for row in rows], pa.list_(pa.float32()))
    return pa.table({"indices": places, "values": values})


def test_single_lists_are_read_where_they_are():
    x = sp.random_array((50, 30), density=0.2, rng=0, dtype=np.float32).tocsr()
    start, places, values = map(pa.array, (x.indptr, x.indices, x.data))
    table = pa.table(
        [pa.ListArray.from_arrays(start, column) for column in (places, values)], ["i", "v"]
    )
    for batch, first in ((table, 0), (table.slice(7, 20), 7), (table.to_batches()[0][3:], 3)):
        rows = of_lists(batch, Schema()).rows
        assert np.shares_memory(rows.columns, places.to_numpy())
        assert np.shares_memory(rows.values, values.to_numpy())
        expected = x[first : first + batch.num_rows]
        found = sp.csr_array((rows.values, rows.columns, rows.start), expected.shape)
        np.testing.assert_array_equal(found.toarray(), expected.toarray())
        assert rows.d == expected.indices.max() + 1
    # Code is compiled once for these and for rows that may be written.
    assert rows.columns.flags.writeable and rows.values.flags.writeable


@pytest.mark.parametrize("name", slow_but(LEARNERS, "lasvm", compiling=compiling))
def test_rows_that_were_given_are_not_written(name):
    x, y = text_like()
    rows = sp.csr_array(x, dtype=np.float32)
    before = rows.copy()
    for array in (rows.data, rows.indices, rows.indptr):
        array.flags.writeable = False
    model, other = LEARNERS[name](), LEARNERS[name]()
    assert model.predict_then_learn_many(rows, y) == other.predict_then_learn_many(before, y)
    model.predict_many(rows)
    for kept, own in zip(
        (rows.data, rows.indices, rows.indptr),
        (before.data, before.indices, before.indptr),
        strict=True,
    ):
        np.testing.assert_array_equal(kept, own)


@given(st.data())
@settings(deadline=None)
def test_lists_of_any_kind_are_rows(data):
    event = st.dictionaries(st.integers(0, 9), st.sampled_from([0.0, 1.0, -2.5]), max_size=5)
    events = data.draw(st.lists(st.none() | event, max_size=8))
    whole = data.draw(st.sampled_from([pa.int8(), pa.int32(), pa.int64(), pa.uint32()]))
    number = data.draw(st.sampled_from([pa.float32(), pa.float64()]))
    kind = data.draw(st.sampled_from([pa.list_, pa.large_list]))
    table = pa.table(
        {
            "i": pa.array([e if e is None else list(e) for e in events], kind(whole)),
            "v": pa.array([e if e is None else list(e.values()) for e in events], kind(number)),
        }
    )
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=3))), len(events)]
    parts = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    offset = data.draw(st.integers(0, len(events)))
    rows = of_lists(pa.concat_tables(parts).slice(offset), Schema()).rows
    assert rows.start[-1] <= len(rows.columns) and len(rows.start) == len(events) - offset + 1
    for r, e in enumerate(events[offset:]):
        own = slice(*rows.start[r : r + 2])
        found = list(zip(rows.columns[own].tolist(), rows.values[own].tolist(), strict=True))
        assert found == sorted((c, v) for c, v in (e or {}).items() if v)


@pytest.mark.parametrize(
    ("places", "values"),
    [([[1, 2]], [[1.0]]), ([[-1]], [[1.0]]), ([[2**31 - 1]], [[1.0]]), ([[1, None]], [[1.0, 2.0]])],
)
def test_bad_lists_are_refused(places, values):
    model = learnt(LEARNERS["lasvm"])
    batch = pa.table(
        {
            "indices": pa.array(places, pa.list_(pa.int64())),
            "values": pa.array(values, pa.list_(pa.float64())),
        }
    )
    with pytest.raises(FeatureError):
        model.learn_many(batch, [True])


def test_a_parquet_file_of_lists(tmp_path):
    x, y = text_like()
    table = lists(x).append_column("label", pa.array(y))
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=70)
    model, by_lists, by_matrix = (LEARNERS["lasvm"]() for _ in range(3))
    with ParquetSource(tmp_path / "rows.parquet", "label") as source:
        report = Run(source, StandardScaler() | model).execute()
    by_lists.learn_many(lists(x), y)
    by_matrix.learn_many(sp.csr_array(x), y)
    assert report.learnt == N and not report.bad
    predicted = by_matrix.predict_many(sp.csr_array(x)).tolist()
    for other in (model, by_lists):
        assert other.n_support_vectors == by_matrix.n_support_vectors
        assert other.predict_many(lists(x)).to_pylist() == predicted
    with ParquetSource(tmp_path / "rows.parquet", "label") as source:
        given = [(event.x, event.y) for event in source.events()]
    assert given[7][0] == list(events(x))[7]
    with ParquetSource(tmp_path / "rows.parquet", "label") as source:
        batch = next(source.batches(50))
        assert [event.x for event in batch.events()] == [x for x, _ in given[:50]]


def test_a_bad_row_of_lists_is_put_aside(tmp_path):
    x, y = text_like()
    table = lists(x).to_pydict()
    table["values"][5][0] = float("inf")
    columns = {
        "indices": pa.array(table["indices"], pa.list_(pa.int32())),
        "values": pa.array(table["values"], pa.list_(pa.float32())),
        "label": pa.array(y),
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    taken = []
    with ParquetSource(tmp_path / "rows.parquet", "label") as source:
        report = Run(source, LEARNERS["lasvm"](), bad_events=BadEvents(taken.append)).execute()
    assert report.learnt == N - 1 and report.bad == {"bad feature": 1}
    assert taken[0]["position"]["row"] == 5
