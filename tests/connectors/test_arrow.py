"""Arrow data in memory and in IPC files: see also what all sources do."""

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import ipc

from connectors import ArrowSource, NotReadableError, Position, SourceError

TABLE = pa.table({"a": range(10), "t": list("abcabcabca"), "y": [i % 2 for i in range(10)]})


def reader():
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=3))


def events_of(source):
    return [(x, y, position.row) for x, y, position in source.events()]


def test_positions_name_the_file(tmp_path):
    path = tmp_path / "table.arrow"
    with ipc.new_file(path, TABLE.schema) as sink:
        sink.write_table(TABLE)
    source = ArrowSource(str(path), "y")
    assert source.name == "table.arrow"
    assert next(source.events()).position == Position("table.arrow", 0)


def test_a_filtered_frame_does_not_turn_its_index_into_a_feature():
    frame = TABLE.to_pandas()
    assert ArrowSource(frame[frame.a > 5], "y", columns=None).features == ["a", "t"]


def test_a_reader_can_only_go_forward():
    expected = events_of(ArrowSource(TABLE, "y"))
    assert events_of(ArrowSource(reader(), "y")) == expected
    batches = ArrowSource(reader(), "y").batches(4)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    first = ArrowSource(TABLE, "y")
    next(first.batches(4))
    source = ArrowSource(reader(), "y")
    assert source.n_rows is None
    source.rewind()
    source.resume({**first.snapshot()})
    assert events_of(source) == expected[4:]
    with pytest.raises(SourceError) as caught:
        source.rewind()
    assert str(caught.value) == (
        "a RecordBatchReader can be read only once: 10 rows have been taken from it, so it cannot "
        "go back to row 0; give ArrowSource a table (reader.read_all()) or a file instead"
    )


def test_chunks_with_different_dictionaries_are_joined():
    chunks = [pa.array(list(values)).dictionary_encode() for values in ("ab", "cb", "a")]
    table = pa.table({"t": pa.chunked_array(chunks), "y": pa.chunked_array(chunks)})
    batch = next(ArrowSource(table, "y").batches())
    assert batch.features.schema.names == ["t=a", "t=b", "t=c"]
    assert batch.labels.to_pylist() == ["a", "b", "c", "b", "a"]


def test_string_views_can_be_shuffled():
    table = pa.table({"t": pa.array(["a", "b", None], pa.string_view()), "y": [1, 2, 3]})
    events = ArrowSource(table, "y", shuffle_buffer=3, seed=0).events()
    assert sorted((y, list(x)) for x, y, _ in events) == [(1, ["t=a"]), (2, ["t=b"]), (3, [])]


def test_other_objects_are_refused_with_what_is_accepted():
    with pytest.raises(NotReadableError, match="cannot read events from a list; accepted are a py"):
        ArrowSource([1, 2], "y")


def test_pandas_times_and_missing_values():
    frame = pd.DataFrame({"when": pd.to_datetime(["1970-01-02", None]), "y": [True, False]})
    assert [x for x, _, _ in ArrowSource(frame, "y").events()] == [{"when": 86400.0}, {}]
