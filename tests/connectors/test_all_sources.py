"""What every source of files and of memory must do: go on from its snapshots, and no others."""

import gzip
import json
from contextlib import ExitStack
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, ipc

from connectors import (
    ArrowSource,
    ConllSource,
    CSVSource,
    JSONLinesSource,
    MemorySource,
    ParquetSource,
    SentenceSource,
    SimulatedStream,
    SnapshotError,
    Source,
)

N = 7
ROWS = [{"a": i, "t": "abc"[i % 3], "y": i % 2} for i in range(N)]
TABLE = pa.Table.from_pylist(ROWS)
EVENTS = [({"a": float(i), f"t={'abc'[i % 3]}": 1.0}, i % 2, i) for i in range(N)]


def csv(rows):
    lines = [",".join(map(str, row.values())) for row in rows]
    return "\n".join(["a,t,y", *lines, ""]).encode()


def lines(rows):
    return "\n".join(map(json.dumps, rows)).encode()


def parquet(path, rows, schema=TABLE.schema):
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=3)


def arrow(path, rows):
    table = pa.Table.from_pylist(rows, TABLE.schema)
    if path.suffix == ".feather":
        feather.write_feather(table, str(path))
        return
    with (ipc.new_file if path.suffix == ".arrow" else ipc.new_stream)(path, table.schema) as sink:
        sink.write_table(table, max_chunksize=3)


def conll(rows):
    return "\n".join(f"{row['t']} {row['a']}\n" for row in rows).encode()


def sentences(path, rows):
    parquet(path, [{"t": [row["t"]] * 2, "y": [str(row["a"])] * 2} for row in rows], None)


OF_SENTENCES = {
    "rows.txt": (conll, ConllSource),
    "sentences.parquet": (sentences, lambda path: SentenceSource(path, ["t"], "y")),
}
FILES = {
    "rows.arrow": (arrow, lambda path: ArrowSource(path, "y")),
    "rows.arrows": (arrow, lambda path: ArrowSource(str(path), "y")),
    "rows.feather": (arrow, lambda path: ArrowSource(path, "y")),
    "rows.parquet": (parquet, lambda path: ParquetSource(path, "y")),
    "folder/rows.parquet": (parquet, lambda path: ParquetSource(path.parent, "y")),
    "rows.csv": (csv, lambda path: CSVSource(path, "y")),
    "rows.csv.gz": (lambda rows: gzip.compress(csv(rows)), lambda path: CSVSource(path, "y")),
    "rows.jsonl": (lines, lambda path: JSONLinesSource(path, "y")),
} | OF_SENTENCES


def of_data(data, **options):
    return lambda: ArrowSource(data, "y", **options)


IN_MEMORY = {
    "table": of_data(TABLE),
    "chunks": of_data(pa.concat_tables([TABLE.slice(i, 1) for i in range(N)])),
    "batch": of_data(TABLE.to_batches()[0]),
    "shuffled": of_data(TABLE, shuffle_buffer=4, seed=1),
    "frame": of_data(TABLE.to_pandas()),
    "categories": of_data(TABLE.to_pandas().astype({"t": "category"})),
    "events": lambda: MemorySource([(x, y) for x, y, _ in EVENTS]),
    "simulated": lambda: SimulatedStream(of_data(TABLE)(), rate=1e9),
}
UNCOUNTED = {"rows.arrows", "rows.csv", "rows.csv.gz", "rows.jsonl", "rows.txt"}
"""What has to be read to know how many rows it has."""


def write(name, folder, rows=ROWS):
    write_file, path = FILES[name][0], folder / name
    if write_file in (arrow, parquet, sentences):
        write_file(path, rows)
    else:
        path.write_bytes(write_file(rows))
    return path


@pytest.fixture(params=[*FILES, *IN_MEMORY])
def name(request):
    return request.param


@pytest.fixture
def opened(name, tmp_path):
    """Return a function that opens the source anew."""
    if name in IN_MEMORY:
        yield IN_MEMORY[name]
        return
    path = write(name, tmp_path)
    with ExitStack() as stack:
        yield lambda: stack.enter_context(FILES[name][1](path))


def rest_of(source):
    return [(event.x, event.y, event.position.row) for event in source.events()]


def after(source, n):
    """Read n events; return the snapshot as a file keeps it."""
    assert len(list(islice(source.events(), n))) == n
    return json.loads(json.dumps(source.snapshot()))


def test_it_goes_on_from_a_snapshot_after_any_event(opened, name):
    whole = rest_of(opened())
    assert sorted(row for *_, row in whole) == list(range(N))
    assert name in OF_SENTENCES or sorted(whole, key=lambda event: event[2]) == EVENTS
    assert isinstance(opened(), Source)
    assert opened().n_rows == (None if name in UNCOUNTED else N)
    for n in range(N + 1):
        first, second, by_batch = opened(), opened(), opened()
        second.resume(after(first, n))
        taken = 0
        while taken < n:
            taken += len(next(by_batch.batches(n - taken)))
        assert json.dumps(by_batch.snapshot()) == json.dumps(first.snapshot())
        assert rest_of(first) == rest_of(second) == rest_of(by_batch) == whole[n:]
        second.rewind()
        assert second.snapshot().get("vocabulary") == opened().snapshot().get("vocabulary")
        assert rest_of(second) == whole and second.n_rows in (N, None)


def test_batches_hold_the_events_and_have_the_size_asked_for(opened):
    batches = list(opened().batches(4))
    assert [len(batch) for batch in batches] == [4, 3]
    found = [event for batch in batches for event in batch.events()]
    assert [(x, y, position.row) for x, y, position in found] == rest_of(opened())
    with pytest.raises(ValueError, match="size must be at least 1, not 0"):
        next(opened().batches(0))


def test_snapshots_of_something_else_are_refused(opened):
    snapshot = after(opened(), 2)
    for other in ({}, snapshot | {"source": "Another"}):
        with pytest.raises(SnapshotError, match="not a snapshot of a"):
            opened().resume(other)


@pytest.mark.parametrize("name", FILES)
def test_another_file_of_the_same_name_is_refused(name, tmp_path):
    path, make = write(name, tmp_path), FILES[name][1]
    with make(path) as source:
        snapshot = after(source, 2)
    write(name, tmp_path, [ROWS[0], *ROWS[-2:0:-1], ROWS[-1]])
    with make(path) as source, pytest.raises(SnapshotError, match="is not the file|another file"):
        source.resume(snapshot)


@pytest.mark.parametrize("name", ["rows.arrow", "rows.parquet", "folder/rows.parquet"])
def test_a_file_without_rows_is_an_empty_source(name, tmp_path):
    source = FILES[name][1](write(name, tmp_path, []))
    assert list(source.events()) == list(source.batches()) == []
    assert source.n_rows == source.snapshot()["row"] == 0
    parquet(tmp_path / "folder" / "more.parquet", ROWS)
    assert len(list(ParquetSource(tmp_path / "folder", "y").events())) == N


def sentence_source(path, **options):
    return SentenceSource(path, options.pop("tokens", ["t"]), "y", **options)


TABULAR = {"target": "y", "shuffle_buffer": 4, "seed": 1}


@pytest.mark.parametrize(
    ("file", "make", "base", "changed", "words"),
    [
        ("rows.arrow", ArrowSource, TABULAR, changed, f"taken with {words}")
        for changed, words in (
            ({"target": "t"}, "target='y', this source has target='t'"),
            ({"columns": ["a"]}, "columns=None, this source has columns=['a']"),
            ({"shuffle_buffer": 5}, "shuffle_buffer=4, this source has shuffle_buffer=5"),
            ({"seed": 2}, "seed=1, this source has seed=2: give it the same seed"),
            ({"max_categories": 9}, "max_categories=1000, this source has max_categories=9"),
        )
    ]
    + [
        ("rows.csv", CSVSource, {"target": "y"}, {"decimal": ","}, "decimal"),
        ("rows.parquet", ParquetSource, {"target": "y"}, {"filters": [("a", ">", 1)]},
         "taken with filters=None, this source has filters="),
        ("rows.txt", ConllSource, {}, {"label": 0}, "label=0"),
        ("rows.txt", ConllSource, {}, {"separator": " "}, "separator=' '"),
        ("sentences.parquet", sentence_source, {}, {"tokens": ["y"]}, "tokens"),
    ],
)  # fmt: skip
def test_a_snapshot_with_other_settings_is_refused(file, make, base, changed, words, tmp_path):
    path = write(file, tmp_path)
    with make(path, **base) as source:
        snapshot = source.snapshot()
    with make(path, **base | changed) as source, pytest.raises(SnapshotError) as caught:
        source.resume(snapshot)
    assert words in str(caught.value)


def test_numpy_integers_as_options_leave_the_snapshot_json():
    source = of_data(TABLE, shuffle_buffer=np.int64(4), seed=np.int64(3))()
    assert json.loads(json.dumps(source.snapshot()))["seed"] == 3
