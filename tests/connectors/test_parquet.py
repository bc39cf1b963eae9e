"""Parquet files and folders."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import MissingColumnError, ParquetSource, Position, SnapshotError, SourceError
from connectors.parquet_files import find_parts

N = 50
TABLE = pa.table(
    {
        "n": pa.array([i if i % 7 else None for i in range(N)], pa.int32()),
        "t": [("a", "b", None, "c")[i * i % 4] for i in range(N)],
        "f": [i / 4 for i in range(N)],
        "y": [i % 3 == 0 for i in range(N)],
    }
)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def read(monkeypatch):
    """What is read of files: the most rows at once, row groups, and columns."""
    found, original = [], pq.ParquetFile.iter_batches

    def spy(self, size, **kwargs):
        found.append((size, kwargs["row_groups"], {*kwargs["columns"]}))
        return original(self, size, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    return found


def rows(source):
    return [position.row for _, _, position in source.events()]


def groups_in(read):
    return [group for _, groups, _ in read for group in groups]


@pytest.mark.parametrize("row_group_size", [1, 7, 8, 20, N])
def test_batches_have_their_size_whatever_the_row_groups(write, row_group_size):
    path = write("a.parquet", TABLE, row_group_size=row_group_size)
    source = ParquetSource(path, "y", batch_size=8)
    event = next(source.events())
    assert event == ({"t=a": 1.0, "f": 0.0}, True, Position("a.parquet", 0))
    assert (source.name, source.n_rows) == ("a.parquet", N)
    source.rewind()
    assert [len(batch) for batch in source.batches()] == [8] * 6 + [2]
    source.rewind()
    assert [len(batch) for batch in source.batches(30)] == [30, 20]


def test_folder_in_sorted_order_without_hidden_files(write, tmp_path):
    for name in ("b.parquet", "a.parquet", "sub/c.parquet", "_meta.parquet", ".x/d.parquet"):
        write(name, TABLE.slice(0, 3))
    write("readme.txt", TABLE)
    source = ParquetSource(tmp_path, "y")
    assert [str(p) for _, _, p in source.events()][::3] == [
        "a.parquet: row 0",
        "b.parquet: row 0",
        "sub/c.parquet: row 0",
    ]
    assert source.n_rows == 9
    source.rewind()
    assert [(batch.file, len(batch)) for batch in source.batches()] == [
        ("a.parquet", 3),
        ("b.parquet", 3),
        ("sub/c.parquet", 3),
    ]


def test_folders_tell_columns(write, tmp_path):
    for year, land in ((2021, "it"), (2020, "de"), (2020, "__HIVE_DEFAULT_PARTITION__")):
        write(f"year={year}/land={land}/part.parquet", TABLE.slice(1, 1))
    events = list(ParquetSource(tmp_path, "y", columns=["f", "year", "land"]).events())
    assert [x for x, _, _ in events] == [
        {"f": 0.25, "year": 2020.0},
        {"f": 0.25, "year": 2020.0, "land=de": 1.0},
        {"f": 0.25, "year": 2021.0, "land=it": 1.0},
    ]
    assert [y for _, y, _ in ParquetSource(tmp_path, "year").events()] == [2020, 2020, 2021]
    filtered = ParquetSource(tmp_path, "y", columns=["f"], filters=[("year", "=", 2021)])
    assert [str(p) for _, _, p in filtered.events()] == ["year=2021/land=it/part.parquet: row 0"]
    # A stored column wins over that of its folder.
    write("year=1999/a.parquet", {"year": [2021, 2022], "y": [True, False]})
    source = ParquetSource(tmp_path / "year=1999", "y")
    assert [x for x, *_ in source.events()] == [{"year": 2021.0}, {"year": 2022.0}]
    source = ParquetSource(tmp_path, "y", columns=["year"], filters=[("year", ">", 2021)])
    assert [x for x, _, _ in source.events()] == [{"year": 2022.0}]


@pytest.mark.parametrize("buffer", [0, 4])
def test_an_interrupted_read_loses_nothing(write, monkeypatch, buffer):
    write("in/a.parquet", TABLE, row_group_size=3)
    write("in/b.parquet", TABLE.slice(0, 7))
    folder = write("in/c.parquet", TABLE.slice(0, 0)).parent
    options = {"shuffle_buffer": buffer, "seed": 0, "batch_size": 4}
    whole = [str(p) for _, _, p in ParquetSource(folder, "y", **options).events()]
    original, countdown = pq.ParquetFile.iter_batches, [9]

    def interrupted(self, size, **kwargs):
        for batch in original(self, size, **kwargs):
            countdown[0] -= 1
            if countdown[0] == 0:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", interrupted)
    source, found = ParquetSource(folder, "y", **options), []
    with pytest.raises(KeyboardInterrupt):
        for event in source.events():
            found.append(str(event.position))
    assert 0 < len(found) < len(whole)
    assert found + [str(p) for _, _, p in source.events()] == whole
    # Blocks are shuffled within files, each in an order of its own.
    rows = [int(place.rpartition(" ")[2]) for place in whole]
    assert [sorted(rows[i : i + 4]) for i in (0, N)] == [[0, 1, 2, 3]] * 2
    assert buffer == 0 or rows[:4] != rows[N : N + 4]


FILTERS = [
    [("f", ">", 6.0)],
    [("n", "in", [3, 20, 33])],
    [[("t", "==", "a"), ("f", "<", 4)], [("t", "==", "c")]],
    ds.field("n").is_null() & (ds.field("f") > 2),
    [("f", ">", 1000)],
]


@pytest.mark.parametrize("filters", FILTERS, ids=range(len(FILTERS)))
@pytest.mark.parametrize("row_group_size", [1, 7, N])
def test_filters_keep_exactly_the_rows_that_pyarrow_keeps(write, filters, row_group_size):
    numbered = TABLE.append_column("row", pa.array(range(N)))
    path = write("a.parquet", numbered, row_group_size=row_group_size)
    expected = pq.read_table(path, filters=filters)["row"].to_pylist()
    source = ParquetSource(path, "y", columns=["f"], filters=filters, batch_size=8)
    assert rows(source) == expected
    assert source.n_rows is None
    source.rewind()
    batches = list(source.batches())
    assert [row for batch in batches for row in batch.rows.tolist()] == expected
    assert [len(batch) for batch in batches[:-1]] == [8] * (len(batches) - 1)


def test_row_groups_are_skipped_by_their_statistics_and_by_a_resume(write, read):
    path = write("a.parquet", TABLE, row_group_size=10)
    rows(ParquetSource(path, "y", filters=[("f", ">=", 10.0)]))
    # Of the first one a single row is read, to see whether columns are encrypted.
    assert groups_in(read) == [0, 4]
    first = ParquetSource(path, "y")
    next(first.batches(34))
    kept = first.snapshot()
    # It reads ahead, in a thread.
    first.close()
    second = ParquetSource(path, "y")
    second.resume(kept)
    read.clear()
    assert rows(second) == list(range(34, N))
    assert groups_in(read) == [3, 4]


def test_only_the_columns_in_use_are_read(write, read):
    path = write("a.parquet", TABLE)
    for filters, columns in ((None, {"f", "y"}), ([("n", ">", 3)], {"f", "y", "n"})):
        read.clear()
        list(ParquetSource(path, "y", columns=["f"], filters=filters).events())
        assert read and all(found == columns for *_, found in read)


@pytest.mark.parametrize("filters", [None, [("f", "<", 3.0)], [("n", "!=", 31)]])
def test_some_rows_of_files(write, read, filters):
    a, b = write("in/a.parquet", TABLE, row_group_size=10), write("in/b.parquet", TABLE)
    parts = [
        replace(find_parts(a)[0], rows=range(23, 31)),
        replace(find_parts(b)[0], rows=range(2, 5)),
    ]
    allowed = set(rows(ParquetSource(b, "y", filters=filters)))
    wanted = [row for row in [*range(23, 31), 2, 3, 4] if row in allowed]
    first = ParquetSource(a.parent, "y", parts=parts, filters=filters, batch_size=4)
    assert first.n_rows in (11, None) and str(first).endswith("at a.parquet: row 23>")
    for _ in range(2):
        assert rows(first) == wanted
        first.rewind()
    assert {group for size, groups, _ in read for group in groups if size > 1} <= {2, 3, 0}
    for n in range(len(wanted)):
        second = ParquetSource(a.parent, "y", parts=parts, filters=filters)
        second.resume(taken(ParquetSource(a.parent, "y", parts=parts, filters=filters), n))
        assert rows(second) == wanted[n:]


def test_filters_on_dictionary_columns(write):
    table = TABLE.set_column(1, "t", TABLE["t"].combine_chunks().dictionary_encode())
    source = ParquetSource(write("a.parquet", table), "y", filters=[("t", "==", "b")])
    assert {name for x, _, _ in source.events() for name in x if "=" in name} == {"t=b"}


def test_wrong_filters(write):
    path = write("a.parquet", TABLE)
    with pytest.raises(MissingColumnError, match="filter column `tt` is not a column of `a.parq"):
        ParquetSource(path, "y", filters=[("tt", ">", 1)])
    for filters in (ds.field("zz") > 1, [("t", ">", 1)], [("n", "~", 1)], [("n", ">")], []):
        with pytest.raises(
            SourceError, match="(?s)the filters cannot be applied to `a.parquet`: .*acc"
        ):
            ParquetSource(path, "y", filters=filters)


def test_numbers_may_change_kind_and_columns_may_be_missing_between_files(write, tmp_path):
    labels = pa.array(["p"]).dictionary_encode()
    write("a.parquet", {"n": pa.array([1], pa.int32()), "t": ["u"], "y": labels})
    write("b.parquet", {"n": [0.5], "y": pa.array(["q"], pa.large_string())})
    write("c.parquet", {"n": pa.nulls(1), "t": pa.array(["v"]).dictionary_encode()})
    source = ParquetSource(tmp_path, "y", filters=[[("n", "<", 5)], [("t", "==", "v")]])
    expected = [({"n": 1.0, "t=u": 1.0}, "p"), ({"n": 0.5}, "q"), ({"t=v": 1.0}, None)]
    assert [(x, y) for x, y, _ in source.events()] == expected
    source.rewind()
    batches = list(source.batches())
    assert [(x, y) for batch in batches for x, y, _ in batch.events()] == expected
    # Labels of a file that has none are of the type of the others.
    assert batches[-1].labels.type == pa.string()


def test_a_file_without_any_of_the_columns_gives_empty_events(write, tmp_path):
    write("a.parquet", {"n": [1], "y": [True]})
    write("b.parquet", {"other": [1, 2]}, row_group_size=1)
    source = ParquetSource(tmp_path, "y", columns=["n"])
    assert [x for x, _, _ in source.events()] == [{"n": 1.0}, {}, {}]
    for buffer in (0, 2):
        shuffled = ParquetSource(tmp_path, "y", columns=["n"], shuffle_buffer=buffer)
        assert [len(batch) for batch in shuffled.batches()] == [1, 2]
    filtered = ParquetSource(tmp_path, "y", columns=["n"], filters=ds.field("n").is_null())
    assert [str(p) for _, _, p in filtered.events()] == ["b.parquet: row 0", "b.parquet: row 1"]


def test_a_snapshot_of_another_file_is_refused(write):
    first, second = write("a.parquet", TABLE), write("b.parquet", TABLE.slice(0, 5))
    source = ParquetSource(first, "y")
    next(source.batches(9))
    with pytest.raises(
        SnapshotError, match="continues in `a.parquet`, which is not a file of `b.p"
    ):
        ParquetSource(second, "y").resume(source.snapshot())
    write("a.parquet", TABLE.slice(0, 5))
    with pytest.raises(
        SnapshotError, match="row 9 of `a.parquet`, which has 5 rows: the data have"
    ):
        ParquetSource(first, "y").resume(source.snapshot())


def taken(source, n):
    """Read n events; return the snapshot as a file keeps it."""
    list(islice(source.events(), n))
    return json.loads(json.dumps(source.snapshot()))


def names(source):
    return list(dict.fromkeys(position.file for _, _, position in source.events()))


def test_a_folder_that_grew(write, tmp_path):
    for name in "bd":
        write(f"in/{name}.parquet", TABLE)
    folder = tmp_path / "in"
    first = ParquetSource(folder, "y")
    early, late = taken(first, 9), taken(first, N)
    write("in/e.parquet", TABLE)
    write("in/c.parquet", TABLE)
    # Files after the position are taken, in their order.
    source = ParquetSource(folder, "y")
    source.resume(early)
    assert names(source) == ["b.parquet", "c.parquet", "d.parquet", "e.parquet"]
    # Those before it are refused, or read next.
    with pytest.raises(SnapshotError, match=r"1 files .* sort before `d.parquet`.*`c.parquet`"):
        ParquetSource(folder, "y").resume(late)
    source = ParquetSource(folder, "y", late_files="read")
    source.resume(late)
    snapshot = taken(source, N - 9)
    assert snapshot["file"] == "d.parquet"
    snapshot = taken(source, 1)
    again = ParquetSource(folder, "y", late_files="refuse")
    again.resume(snapshot)
    assert names(again) == ["c.parquet", "e.parquet"]
    again.rewind()
    assert names(again) == ["b.parquet", "d.parquet", "c.parquet", "e.parquet"]
    with pytest.raises(ValueError, match="late_files='never': use 'refuse' or 'read'"):
        ParquetSource(folder, "y", late_files="never")


def test_files_that_were_read_stay_what_they_were(write, tmp_path):
    for name in "abc":
        write(f"in/{name}.parquet", TABLE)
    folder = tmp_path / "in"
    source = ParquetSource(folder, "y")
    first = taken(source, N + 1)
    source.rewind()
    second = taken(source, 1)
    # In the first epoch c is still to be read; in the second, it was.
    write("in/c.parquet", TABLE.slice(3))
    again = ParquetSource(folder, "y")
    again.resume(first)
    assert len(list(again.events())) == 2 * N - 1 - 3
    with pytest.raises(SnapshotError, match="`c.parquet` is not the file"):
        ParquetSource(folder, "y").resume(second)
    (folder / "a.parquet").unlink()
    with pytest.raises(SnapshotError, match="`a.parquet`, which was read, is no file"):
        ParquetSource(folder, "y").resume(first)


TURNS = st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=8)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same rows in three files, in row groups of several sizes."""
    made = {}
    for size in (1, 7, N):
        made[size] = tmp_path_factory.mktemp(f"groups{size}")
        for name, offset, length in (("a", 0, 23), ("b", 23, 0), ("c", 23, N)):
            table = TABLE.slice(offset, length)
            pq.write_table(table, made[size] / f"{name}.parquet", row_group_size=size)
    return made


@settings(deadline=None, max_examples=60)
@given(
    turns=st.tuples(TURNS, TURNS),
    groups=st.tuples(*[st.sampled_from([1, 7, N])] * 2),
    buffer=st.sampled_from([0, 5, 40]),
    filters=st.sampled_from([None, *FILTERS[:3]]),
    size=st.integers(1, 15),
    cap=st.integers(1, 3),
)
def test_a_resumed_stream_is_the_stream_that_never_stopped(
    folders, read_mixed, turns, groups, buffer, filters, size, cap
):
    options = {"shuffle_buffer": buffer, "filters": filters, "max_categories": cap, "seed": 0}
    whole = read_mixed(ParquetSource(folders[N], "y", **options))
    stopped = ParquetSource(folders[groups[0]], "y", batch_size=size, **options)
    taken = 0
    for one_by_one, count in turns[0]:
        if one_by_one:
            taken += len(list(islice(stopped.events(), count)))
        else:
            taken += len(next(stopped.batches(count), ()))
    resumed = ParquetSource(folders[groups[1]], "y", **options)
    # Without "content": the files are others, their rows are the same.
    resumed.resume(json.loads(json.dumps(stopped.snapshot() | {"content": None})))
    assert read_mixed(resumed, turns[1]) == whole[taken:]
    assert read_mixed(stopped, turns[1]) == whole[taken:]


def test_real_mixed_data(data_file):
    source = ParquetSource(data_file("adult_raw_train.parquet"), "label")
    events = list(source.events())
    assert len(events) == source.n_rows == 32_561
    assert events[0].x["age"] == 39.0
    assert events[0].x["workclass=State-gov"] == 1.0
    source.rewind()
    assert [event for batch in source.batches() for event in batch.events()] == events


READ = """
import sys
from connectors import ParquetSource

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

sum(len(batch) for batch in ParquetSource(sys.argv[1], "y").batches())
before = peak()
print(sum(len(batch) for batch in ParquetSource(sys.argv[2], "y").batches()), peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc (Linux)")
def test_a_huge_row_group_is_read_in_little_memory(write):
    n = 1_000_000
    # One array for all columns: the test itself must not need the memory that it forbids.
    numbers = pa.array(np.random.default_rng(0).standard_normal(n))
    columns = {f"c{i}": numbers for i in range(20)} | {"y": pa.repeat(True, n)}
    big = write("big.parquet", columns, row_group_size=n, use_dictionary=False, compression="none")
    small = write("small.parquet", pa.table(columns).slice(0, 10_000), use_dictionary=False)
    assert big.stat().st_size > 160e6
    command = [sys.executable, "-c", READ, str(small), str(big)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows_read, growth = done.stdout.split()
    assert int(rows_read) == n
    # The row group takes 160 MB.
    assert float(growth) < 64
