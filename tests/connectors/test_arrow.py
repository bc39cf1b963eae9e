"""Arrow data in memory and in IPC files."""

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, ipc

from connectors import (
    ArrowSource,
    NotReadableError,
    Position,
    SourceError,
    SourceNotFoundError,
)

TABLE = pa.table({"a": range(10), "t": list("abcabcabca"), "y": [i % 2 for i in range(10)]})
EXPECTED = [({"a": float(i), f"t={'abc'[i % 3]}": 1.0}, i % 2, i) for i in range(10)]


def reader():
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=3))


def plainly(events):
    return [(x, y, position.row) for x, y, position in events]


@pytest.fixture
def paths(tmp_path):
    """One path for each way of writing the table."""
    with ipc.new_file(tmp_path / "table.arrow", TABLE.schema) as sink:
        sink.write_table(TABLE, max_chunksize=3)
    with ipc.new_stream(tmp_path / "table.arrows", TABLE.schema) as sink:
        sink.write_table(TABLE, max_chunksize=3)
    feather.write_feather(TABLE, str(tmp_path / "table.feather"))
    return tmp_path


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        reader,
        TABLE.to_pandas(),
        TABLE.to_pandas().astype({"t": "category"}),
    ],
    ids=["table", "batch", "reader", "pandas", "pandas categories"],
)
def test_data_in_memory(data):
    make = data if callable(data) else lambda: data
    assert plainly(ArrowSource(make(), "y").events()) == EXPECTED
    batches = ArrowSource(make(), "y").batches(4)
    assert plainly(event for batch in batches for event in batch.events()) == EXPECTED


@pytest.mark.parametrize("name", ["table.arrow", "table.arrows", "table.feather"])
def test_ipc_files(paths, name):
    source = ArrowSource(paths / name, "y")
    assert plainly(source.events()) == EXPECTED
    source.rewind()
    assert [len(batch) for batch in source.batches(4)] == [4, 4, 2]
    assert ArrowSource(str(paths / name), "y").name == name
    source.rewind()
    assert next(source.events()).position == Position(name, 0)


def test_number_of_rows(paths):
    assert ArrowSource(TABLE, "y").n_rows == 10
    assert ArrowSource(TABLE.to_pandas(), "y").n_rows == 10
    assert ArrowSource(paths / "table.arrow", "y").n_rows == 10
    assert ArrowSource(paths / "table.arrows", "y").n_rows is None
    assert ArrowSource(reader(), "y").n_rows is None


def test_a_filtered_frame_does_not_turn_its_index_into_a_feature():
    frame = TABLE.to_pandas()
    assert ArrowSource(frame[frame.a > 5], "y", columns=None).features == ["a", "t"]


def test_a_reader_can_only_go_forward():
    first = ArrowSource(TABLE, "y")
    next(first.batches(4))
    snapshot = {**first.snapshot()}
    source = ArrowSource(reader(), "y")
    source.rewind()
    source.resume(snapshot)
    assert plainly(source.events()) == EXPECTED[4:]
    with pytest.raises(SourceError) as caught:
        source.rewind()
    assert str(caught.value) == (
        "a RecordBatchReader can be read only once: 10 rows have been taken from it, so it cannot "
        "go back to row 0; give ArrowSource a table (reader.read_all()) or a file instead"
    )


def test_tables_of_any_chunking_are_rejoined():
    chunked = pa.concat_tables([TABLE.slice(i, 1) for i in range(10)])
    assert [len(batch) for batch in ArrowSource(chunked, "y").batches(4)] == [4, 4, 2]


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


def test_an_empty_table_is_an_empty_source():
    source = ArrowSource(TABLE.slice(0, 0), "y")
    assert list(source.events()) == list(source.batches()) == []
    assert source.n_rows == 0


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"Arrow file `.*no.arrow` does not exist; give"):
        ArrowSource(tmp_path / "no.arrow", "y")
    with pytest.raises(SourceNotFoundError, match="is a folder; give the path of an IPC file"):
        ArrowSource(tmp_path, "y")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", r"is empty \(0 bytes\)"),
        (b"PAR1....", "it is a Parquet file: use ParquetSource"),
        (b"FEA1....", "it is in the old Feather V1 format"),
        (b"a,b\n1,2\n", "is not an Arrow IPC file or stream"),
        (b"ARROW1\0\0abc", "is damaged or truncated"),
        (b"\xff\xff\xff\xff\x10\0\0\0", "is damaged or truncated"),
    ],
)
def test_files_that_are_not_arrow(tmp_path, content, text):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(NotReadableError, match=text):
        ArrowSource(tmp_path / "bad", "y")


def test_a_truncated_file_is_refused_and_a_truncated_stream_ends_in_an_error(paths):
    whole = (paths / "table.arrow").read_bytes()
    (paths / "cut.arrow").write_bytes(whole[:-30])
    with pytest.raises(NotReadableError, match="cut.arrow` is damaged or truncated"):
        ArrowSource(paths / "cut.arrow", "y")
    whole = (paths / "table.arrows").read_bytes()
    (paths / "cut.arrows").write_bytes(whole[: len(whole) - 100])
    source = ArrowSource(paths / "cut.arrows", "y")
    with pytest.raises(NotReadableError, match="cut.arrows` is damaged or truncated"):
        list(source.events())


def test_other_objects_are_refused_with_what_is_accepted():
    with pytest.raises(NotReadableError, match="cannot read events from a list; accepted are a py"):
        ArrowSource([1, 2], "y")


def test_pandas_times_and_missing_values():
    frame = pd.DataFrame({"when": pd.to_datetime(["1970-01-02", None]), "y": [True, False]})
    assert [x for x, _, _ in ArrowSource(frame, "y").events()] == [{"when": 86400.0}, {}]
