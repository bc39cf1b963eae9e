"""What all tabular sources share: target, columns, shuffling, snapshots."""

import json
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

from connectors import (
    ArrowSource,
    CSVSource,
    MissingColumnError,
    NoFeaturesError,
    NotReadableError,
    Position,
    SnapshotError,
    SourceError,
)

TABLE = pa.table(
    {
        "n": pa.array([i if i % 4 else None for i in range(20)]),
        "t": [("a", "b", None, "c", "d")[i % 5] for i in range(20)],
        "when": pa.array(range(20), pa.timestamp("s")),
        "y": [i % 3 for i in range(20)],
    }
)


@pytest.mark.parametrize("wrong", ["filters", "colums", "start", "late_files"])
def test_arguments_that_a_source_does_not_know_are_refused(wrong, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n,y\n1,0\n")
    for source, data in ((ArrowSource, TABLE), (CSVSource, path)):
        with pytest.raises(TypeError, match=wrong):
            source(data, "y", **{wrong: [("n", ">", 3)]})


@pytest.mark.parametrize(
    "labels",
    [[1, None, 0], [True, None, False], ["a", None, "b"], [0.5, None, 1.5]],
    ids=["int", "bool", "text", "float"],
)
def test_labels_keep_their_type(labels):
    columns = [pa.array(labels), pa.array(labels).dictionary_encode()]
    if "a" in labels:
        columns.append(columns[0].cast(pa.string_view()).dictionary_encode())
    for column in columns:
        source = ArrowSource(pa.table({"a": [1, 2, 3], "y": column}), "y")
        given_back = [y for _, y, _ in source.events()]
        assert given_back == labels
        assert [type(y) for y in given_back] == [type(y) for y in labels]
        source.rewind()
        assert next(source.batches()).labels.equals(pa.array(labels))


@pytest.mark.parametrize(
    ("options", "features"),
    [
        ({}, ["n", "t", "when"]),
        ({"timestamp": "when"}, ["n", "t"]),
        ({"target": None}, ["n", "t", "when", "y"]),
        ({"columns": ["t", "n", "t"]}, ["t", "n"]),
        ({"timestamp": "when", "columns": ["when"]}, ["when"]),
        ({"exclude": ["n"]}, ["t", "when"]),
        ({"columns": ["n", "t"], "exclude": ["n"]}, ["t"]),
    ],
)
def test_which_columns_are_features_and_their_order(options, features):
    source = ArrowSource(TABLE, **{"target": "y"} | options)
    assert source.features == features
    _, event = islice(source.events(), 2)
    assert event.y == (None if "target" in options else 1)
    assert [name.partition("=")[0] for name in event.x] == features
    batch = next(source.batches(3))
    assert batch.labels.null_count == (3 if "target" in options else 0)
    if "timestamp" in options:
        assert batch.timestamps.tolist() == [2.0, 3.0, 4.0]


def test_the_index_that_pandas_stores_is_no_feature_unless_listed():
    table = pa.table({"a": [1], "__index_level_0__": [7], "y": [1]})
    assert ArrowSource(table, "y").features == ["a"]
    assert ArrowSource(table, "y", columns=["__index_level_0__"]).features == ["__index_level_0__"]


NESTED = {"a": [1], "y": [{"a": 1}]}
TWICE = pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "a", "y"])
ALONE = {"y": [1]}
UNCLEAR = {"t": ["b"], "t=a": [1], "y": [1]}


@pytest.mark.parametrize(
    ("columns", "options", "error", "text"),
    [
        (TABLE, {"target": "Y"}, MissingColumnError, "target `Y` is not a column of `Table` (col"),
        (TABLE, {"timestamp": "whn"}, MissingColumnError, "timestamp `whn` .*did you mean `when`?"),
        (TABLE, {"columns": ["n", "z"]}, MissingColumnError, "feature `z` is not a column of `Tab"),
        (TABLE, {"exclude": ["tt"]}, MissingColumnError, "exclude `tt` .* did you mean `t`"),
        (TABLE, {"columns": "n"}, SourceError, "columns must be a list of names, not the text 'n'"),
        (TABLE, {"exclude": "n"}, SourceError, "exclude must be a list of names, not the text 'n'"),
        (TABLE, {"columns": ["y"]}, SourceError, "target `y` is also listed in columns="),
        (TABLE, {"columns": []}, NoFeaturesError, "no column can be a feature"),
        (TABLE, {"timestamp": "t"}, NotReadableError, "`t` has type string; it must be a timest"),
        (TABLE, {"batch_size": 0}, ValueError, "batch_size must be at least 1, not 0"),
        (TABLE, {"shuffle_buffer": -1}, ValueError, "shuffle_buffer must be at least 0, not -1"),
        (TABLE, {"seed": -1}, ValueError, "seed must be at least 0, not -1"),
        (TABLE, {"max_categories": 0}, ValueError, "max_categories must be at least 1, not 0"),
        (NESTED, {}, NotReadableError, "target `y` has type struct.*cannot be a label"),
        (TWICE, {}, NotReadableError, "`Table` has several columns named `a`; rename them"),
        (ALONE, {}, NoFeaturesError, "columns beside the target: none"),
        (
            ALONE | {"nothing": pa.nulls(1)},
            {},
            NoFeaturesError,
            "can be .*`nothing` null",
        ),
        (UNCLEAR, {}, NotReadableError, "`t=a` could be mistaken for a value of the text"),
    ],
)
def test_wrong_options(columns, options, error, text):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    with pytest.raises(error) as caught:
        ArrowSource(table, **{"target": "y", **options})
    for part in text.split(".*"):
        assert part in str(caught.value)


def test_a_name_that_is_there_twice_is_refused_only_if_it_is_used():
    table = TWICE.append_column("b", pa.array([2]))
    assert [x for x, *_ in ArrowSource(table, "y", columns=["b"]).events()] == [{"b": 2.0}]


@pytest.mark.parametrize(
    "type_",
    [
        pa.list_(pa.string()),
        pa.struct({"a": pa.int8()}),
        pa.binary(),
        pa.map_(pa.string(), pa.int8()),
    ],
    ids=str,
)
def test_nested_and_binary_columns_are_refused_by_name_unless_left_out(type_):
    table = pa.table({"ok": pa.array([1]), "odd": pa.nulls(1, type_), "y": [1]})
    with pytest.raises(NotReadableError) as caught:
        ArrowSource(table, "y")
    assert str(caught.value) == (
        f"column `odd` has type {type_}, which cannot be a feature "
        "(numbers, booleans, times and text can); leave it out with exclude= (--exclude)"
    )
    for options in ({"columns": ["ok"]}, {"exclude": ["odd"]}):
        assert ArrowSource(table, "y", **options).features == ["ok"]


def test_an_iterator_follows_when_the_source_is_moved_under_it():
    source = ArrowSource(TABLE, "y")
    events = source.events()
    assert next(events).position.row == 0
    next(source.batches(5))
    assert next(events).position.row == 6
    source.rewind()
    assert next(events).position.row == 0


def test_a_shuffled_block_that_shrank_is_refused():
    first = ArrowSource(TABLE, "y", shuffle_buffer=8, seed=3)
    next(first.batches(8))
    next(first.batches(3))
    second = ArrowSource(TABLE.slice(0, 10), "y", shuffle_buffer=8, seed=3)
    second.resume(first.snapshot())
    with pytest.raises(SnapshotError, match="shuffled block of 8 rows from row 8, which has f"):
        next(second.batches())


def test_a_drawn_seed_travels_in_the_snapshot():
    first = ArrowSource(TABLE, "y", shuffle_buffer=20)
    head = list(islice(first.events(), 7))
    snapshot = json.loads(json.dumps(first.snapshot()))
    second = ArrowSource(TABLE, "y", shuffle_buffer=20)
    second.resume(snapshot)
    tail = list(second.events())
    assert tail == list(first.events())
    second.rewind()
    assert list(second.events()) == head + tail
    one, two = (ArrowSource(TABLE, "y", shuffle_buffer=8, seed=seed) for seed in (1, 2))
    assert list(one.events()) != list(two.events())


def test_foreign_snapshots_are_refused():
    source = ArrowSource(TABLE, "y")
    whole = source.snapshot()
    for snapshot, words in (
        ({"source": "ArrowSource", "row": 1}, "not a snapshot of a ArrowSource: it lacks"),
        (whole | {"source": "CSVSource"}, "not a snapshot of a ArrowSource: it is of CSVSource$"),
        (whole | {"row": 21}, "row 21 of `Table`, which has 20 rows"),
        (whole | {"file": "b.arrow"}, "continues in `b.arrow`, this source reads `Table`"),
    ):
        with pytest.raises(SnapshotError, match=words):
            source.resume(snapshot)


def texts(*values):
    """Text, of bytes that need not be UTF-8."""
    return pa.array(values, pa.binary()).view(pa.string())


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("options", [{}, {"shuffle_buffer": 4, "seed": 3}])
def test_rows_whose_text_is_not_utf_8_are_set_apart(size, options):
    columns = {
        "t": texts(b"a", b"caf\xe9", None, b"b", b"a"),
        "u": pa.array([b"", b"c", b"\xff", b"c", b""], pa.large_binary()).view(pa.large_string()),
        "a": [1, 2, 3, 4, 5],
        "y": texts(b"yes", b"no", b"yes", b"no", b"\xff"),
    }
    source = ArrowSource(pa.table(columns), "y", **options)
    batches = list(source.batches(size))
    found = sorted((position.row, x, y) for batch in batches for x, y, position in batch.events())
    assert found == [
        (0, {"t=a": 1.0, "u=": 1.0, "a": 1.0}, "yes"),
        (3, {"t=b": 1.0, "u=c": 1.0, "a": 4.0}, "no"),
    ]
    rejects = {r.position.row: r for batch in batches for r in batch.rejects}
    assert [rejects[row].reason for row in (1, 2, 4)] == [
        "text column `t` is not UTF-8: b'caf\\xe9'",
        "text column `u` is not UTF-8: b'\\xff'",
        "text column `y` is not UTF-8: b'\\xff'",
    ]
    assert json.loads(rejects[1].payload) == {"t": "caf\\xe9", "u": "c", "a": 2, "y": "no"}
    # One by one there is no place for such rows: the error comes where the row does.
    first = {0: 1}.get(options.get("shuffle_buffer", 0))
    events = ArrowSource(pa.table(columns), "y", **options).events()
    with pytest.raises(NotReadableError, match=r"row \d: text column `.` is not UTF-8: b.*batches"):
        for number, event in enumerate(events, 1):
            assert event.position.row in (0, 3)
            assert first is None or number <= first


def test_a_damaged_text_column_is_refused_where_it_is_met():
    offsets = pa.py_buffer(np.array([0, 999, 2], np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    table = pa.table({"t": broken, "a": [1, 2], "y": [1, 0]})
    with pytest.raises(NotReadableError, match="text column `t` is damaged at or after row 0"):
        list(ArrowSource(table, "y").batches())
    assert len(list(ArrowSource(table, "y", columns=["a"]).events())) == 2


def test_close_keeps_the_place():
    with ArrowSource(TABLE, "y") as source:
        next(source.batches(3))
    assert next(source.events()).position == Position(None, 3)
    assert repr(source) == "<ArrowSource 'Table' at row 4>"


def test_upcoming_timestamps_are_left_unread():
    source = ArrowSource(TABLE, "y", timestamp="when")
    next(source.batches(2))
    assert source.upcoming_timestamps(3).tolist() == [2.0, 3.0, 4.0]
    assert next(source.events()).position.row == 2
    list(source.events())
    assert source.upcoming_timestamps(3).tolist() == []
    assert ArrowSource(TABLE, "y").upcoming_timestamps(3) is None
    missing = pa.table({"a": [1, 2], "when": [1.5, None], "y": [1, 0]})
    times = ArrowSource(missing, "y", timestamp="when").upcoming_timestamps(9)
    np.testing.assert_equal(times, [1.5, np.nan])
