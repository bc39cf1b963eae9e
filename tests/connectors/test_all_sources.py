"""What every source of files and of memory must do: go on from its snapshots, and no others."""

import gzip
import json
from contextlib import ExitStack
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

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
)

N = 7
ROWS = [{"a": i, "t": "abc"[i % 3], "y": i % 2} for i in range(N)]


def csv(rows):
    lines = [",".join(map(str, row.values())) for row in rows]
    return "\n".join(["a,t,y", *lines, ""]).encode()


def lines(rows):
    return "\n".join(map(json.dumps, rows)).encode()


def parquet(path, rows):
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)


def arrow(path, rows):
    table = pa.Table.from_pylist(rows)
    with (ipc.new_file if path.suffix == ".arrow" else ipc.new_stream)(path, table.schema) as sink:
        sink.write_table(table, max_chunksize=3)


def conll(rows):
    return "\n".join(f"{row['t']} {row['a']}\n" for row in rows).encode()


def sentences(path, rows):
    parquet(path, [{"t": [row["t"]] * 2, "y": [str(row["a"])] * 2} for row in rows])


FILES = {
    "rows.arrow": (arrow, lambda path: ArrowSource(path, "y")),
    "rows.arrows": (arrow, lambda path: ArrowSource(path, "y")),
    "rows.parquet": (parquet, lambda path: ParquetSource(path, "y")),
    "folder/rows.parquet": (parquet, lambda path: ParquetSource(path.parent, "y")),
    "rows.csv": (csv, lambda path: CSVSource(path, "y")),
    "rows.csv.gz": (lambda rows: gzip.compress(csv(rows)), lambda path: CSVSource(path, "y")),
    "rows.jsonl": (lines, lambda path: JSONLinesSource(path, "y")),
    "rows.txt": (conll, ConllSource),
    "sentences.parquet": (sentences, lambda path: SentenceSource(path, ["t"], "y")),
}
IN_MEMORY = {
    "table": lambda: ArrowSource(pa.Table.from_pylist(ROWS), "y"),
    "shuffled": lambda: ArrowSource(pa.Table.from_pylist(ROWS), "y", shuffle_buffer=4, seed=1),
    "frame": lambda: ArrowSource(pa.Table.from_pylist(ROWS).to_pandas(), "y"),
    "events": lambda: MemorySource([({"a": float(row["a"])}, row["y"]) for row in ROWS]),
    "simulated": lambda: SimulatedStream(ArrowSource(pa.Table.from_pylist(ROWS), "y"), rate=1e9),
}


def write(name, folder, rows=ROWS):
    write_file, path = FILES[name][0], folder / name
    if write_file in (arrow, parquet, sentences):
        write_file(path, rows)
    else:
        path.write_bytes(write_file(rows))
    return path


@pytest.fixture(params=[*FILES, *IN_MEMORY])
def opened(request, tmp_path):
    """Return a function that opens the source anew."""
    if request.param in IN_MEMORY:
        yield IN_MEMORY[request.param]
        return
    path = write(request.param, tmp_path)
    with ExitStack() as stack:
        yield lambda: stack.enter_context(FILES[request.param][1](path))


def rest_of(source):
    return [(event.x, event.y, event.position.row) for event in source.events()]


def after(source, n):
    """Read n events; return the snapshot as a file keeps it."""
    assert len(list(islice(source.events(), n))) == n
    return json.loads(json.dumps(source.snapshot()))


def test_it_goes_on_from_a_snapshot_after_any_event(opened):
    whole = rest_of(opened())
    assert sorted(row for *_, row in whole) == list(range(N))
    for n in range(N + 1):
        first, second = opened(), opened()
        second.resume(after(first, n))
        assert rest_of(first) == rest_of(second) == whole[n:]
        second.rewind()
        assert rest_of(second) == whole and second.n_rows in (N, None)


def test_snapshots_of_something_else_are_refused(opened):
    snapshot = after(opened(), 2)
    for other in ({}, snapshot | {"source": "Another"}):
        with pytest.raises(SnapshotError):
            opened().resume(other)


@pytest.mark.parametrize("name", FILES)
def test_another_file_of_the_same_name_is_refused(name, tmp_path):
    path, make = write(name, tmp_path), FILES[name][1]
    with make(path) as source:
        snapshot = after(source, 2)
    write(name, tmp_path, [ROWS[0], *ROWS[-2:0:-1], ROWS[-1]])
    with make(path) as source, pytest.raises(SnapshotError, match="is not the file|another file"):
        source.resume(snapshot)
