"""Files that cannot be read are refused by name, with what is wrong or what to give instead."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from connectors import (
    ArrowSource,
    ConllSource,
    CSVSource,
    JSONLinesSource,
    NotReadableError,
    ParquetSource,
    SentenceSource,
    SourceNotFoundError,
)

TABLE = pa.table({"a": [1, 2], "y": [True, False]})


def content_of(write):
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def ipc_content(new):
    def write(sink):
        with new(sink, TABLE.schema) as writer:
            writer.write_table(TABLE)

    return content_of(write)


PARQUET = content_of(lambda sink: pq.write_table(TABLE, sink))
FOLDER = object()


def sentences(path, target):
    return SentenceSource(path, ["a"], target)


def conll(path, target):
    return ConllSource(path)


REFUSED = [
    (ArrowSource, "x", None, r"Arrow file `.*x` does not exist; give"),
    (ArrowSource, "x", FOLDER, "is a folder; give the path of an IPC file"),
    (ArrowSource, "x", b"", r"is empty \(0 bytes\)"),
    (ArrowSource, "x", b"PAR1....", "it is a Parquet file: use ParquetSource"),
    (ArrowSource, "x", b"FEA1....", "it is in the old Feather V1 format"),
    (ArrowSource, "x", b"a,b\n1,2\n", "is not an Arrow IPC file or stream"),
    (ArrowSource, "x", b"ARROW1\0\0abc", "is damaged or truncated"),
    (ArrowSource, "x", b"\xff\xff\xff\xff\x10\0\0\0", "is damaged or truncated"),
    (ArrowSource, "x", ipc_content(ipc.new_file)[:-30], "x` is damaged or truncated"),
    (ParquetSource, "x.parquet", None, "x.parquet` does not exist; give a Parquet"),
    (ParquetSource, "x", FOLDER, r"has no file named \*.parquet \(names starting"),
    (CSVSource, "x", b"", "x"),
    (CSVSource, "x", b"a,a\n1,2\n", "x"),
    (CSVSource, "x", PARQUET, "is a Parquet file: give it a name that ends in"),
    (JSONLinesSource, "x", b"x\n", "x"),
    (conll, "x", None, "x"),
    (sentences, "x.parquet", None, "x"),
    (sentences, "x.parquet", b"no Parquet", "x.parquet` is not a Parquet file"),
]
for inside in ("x.parquet", "folder/x.parquet"):
    REFUSED += [
        (ParquetSource, inside, content, f"{inside}` {words}")
        for content, words in (
            (b"", r"is empty \(0 bytes\)"),
            (b"a,b\n1,2\n", r"is not a Parquet file \(it does not start with PAR1\)"),
            (PARQUET[:-20], "is truncated: it starts as a Parquet file but has no end"),
            (PARQUET[:8] + b"PAR1", "is a damaged Parquet file"),
        )
    ]


@pytest.mark.parametrize(("make", "inside", "content", "words"), REFUSED)
def test_what_cannot_be_read_is_refused(make, inside, content, words, tmp_path):
    (tmp_path / "folder").mkdir()
    path = tmp_path / inside
    if content is FOLDER:
        path.mkdir()
        (path / "_hidden.parquet").write_bytes(PARQUET)
    elif content is not None:
        path.write_bytes(content)
    error = NotReadableError if isinstance(content, bytes) else SourceNotFoundError
    with pytest.raises((error, FileNotFoundError) if make is conll else error, match=words):
        make(tmp_path / inside.split("/")[0], "y")


def test_a_stream_that_is_cut_off_ends_in_an_error(tmp_path):
    path = tmp_path / "cut.arrows"
    path.write_bytes(ipc_content(ipc.new_stream)[:-100])
    source = ArrowSource(path, "y")
    with pytest.raises(NotReadableError, match="cut.arrows` is damaged or truncated"):
        list(source.events())
