"""What all tabular sources share: target, columns, shuffling, snapshots."""

import json
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

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
    for column in (pa.array(labels), pa.array(labels).dictionary_encode()):
        source = ArrowSource(pa.table({"a": [1, 2, 3], "y": column}), "y")
        given_back = [y for _, y, _ in source.events()]
        assert given_back == labels
        assert [type(y) for y in given_back] == [type(y) for y in labels]
        source.rewind()
        assert next(source.batches()).labels.equals(pa.array(labels))


def test_without_a_target_there_are_no_labels():
    source = ArrowSource(pa.table({"a": [1, 2]}), None)
    assert [(x, y) for x, y, _ in source.events()] == [({"a": 1.0}, None), ({"a": 2.0}, None)]
    source.rewind()
    assert next(source.batches()).labels.null_count == 2


def test_columns_choose_and_order_the_features():
    source = ArrowSource(TABLE, "y", columns=["t", "n"])
    assert [list(x) for x, _, _ in islice(source.events(), 2)] == [["t=a"], ["t=b", "n"]]


def test_the_timestamp_is_a_feature_only_if_listed():
    assert ArrowSource(TABLE, "y", timestamp="when").features == ["n", "t"]
    assert ArrowSource(TABLE, "y").features == ["n", "t", "when"]
    listed = ArrowSource(TABLE, "y", timestamp="when", columns=["when"])
    assert next(listed.events()).x == {"when": 0.0}
    assert next(listed.batches(3)).timestamps.tolist() == [1.0, 2.0, 3.0]


def test_the_index_that_pandas_stores_is_no_feature_unless_listed():
    table = pa.table({"a": [1], "__index_level_0__": [7], "y": [1]})
    assert ArrowSource(table, "y").features == ["a"]
    assert ArrowSource(table, "y", columns=["__index_level_0__"]).features == ["__index_level_0__"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"target": "Y"}, MissingColumnError, "target `Y` is not a column of `Table` (columns:"),
        ({"timestamp": "whn"}, MissingColumnError, "timestamp `whn` .*did you mean `when`?"),
        ({"columns": ["n", "z"]}, MissingColumnError, "feature `z` is not a column of `Table`"),
        ({"columns": "n"}, SourceError, "columns must be a list of names, not the text 'n'"),
        ({"columns": ["y"]}, SourceError, "target `y` is also listed in columns="),
        ({"columns": []}, NoFeaturesError, "no column can be a feature"),
        (
            {"timestamp": "t"},
            NotReadableError,
            "timestamp `t` has type string; it must be a timest",
        ),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, not 0"),
        ({"shuffle_buffer": -1}, ValueError, "shuffle_buffer must be at least 0, not -1"),
        ({"seed": -1}, ValueError, "seed must be at least 0, not -1"),
        ({"max_categories": 0}, ValueError, "max_categories must be at least 1, not 0"),
    ],
)
def test_wrong_options(options, error, text):
    with pytest.raises(error) as caught:
        ArrowSource(TABLE, **{"target": "y", **options})
    for part in text.split(".*"):
        assert part in str(caught.value)


def test_a_nested_target_is_refused():
    table = pa.table({"a": [1], "y": [{"a": 1}]})
    with pytest.raises(NotReadableError, match="target `y` has type struct.*cannot be a label"):
        ArrowSource(table, "y")


def test_columns_that_share_a_name_are_refused():
    table = pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "a", "y"])
    with pytest.raises(NotReadableError, match="several columns named `a`; rename them"):
        ArrowSource(table, "y")


def test_size_must_be_positive():
    with pytest.raises(ValueError, match="size must be at least 1, not 0"):
        ArrowSource(TABLE, "y").batches(0)


def test_an_event_counts_as_read_when_it_is_handed_out():
    source = ArrowSource(TABLE, "y")
    for k, _ in enumerate(source.events()):
        assert source.snapshot()["row"] == k + 1
    assert list(source.events()) == []
    source.rewind()
    assert source.snapshot()["row"] == 0
    assert len(list(source.events())) == 20


def test_the_snapshot_is_the_same_by_both_paths():
    for k in range(21):
        one, many = ArrowSource(TABLE, "y"), ArrowSource(TABLE, "y")
        list(islice(one.events(), k))
        if k:
            next(many.batches(k))
        assert one.snapshot() == many.snapshot()


def test_an_iterator_follows_when_the_source_is_moved_under_it():
    source = ArrowSource(TABLE, "y")
    events = source.events()
    assert next(events).position.row == 0
    next(source.batches(5))
    assert next(events).position.row == 6
    source.rewind()
    assert next(events).position.row == 0


def test_shuffling_is_reproducible_and_keeps_the_row_numbers():
    rows = [
        [p.row for _, _, p in ArrowSource(TABLE, "y", shuffle_buffer=8, seed=s).events()]
        for s in (1, 1, 2)
    ]
    assert rows[0] == rows[1] != rows[2]
    assert sorted(rows[0][:8]) == list(range(8))
    labels = TABLE["y"].to_pylist()
    for _, y, position in ArrowSource(TABLE, "y", shuffle_buffer=8, seed=1).events():
        assert y == labels[position.row]


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


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"target": "n"}, "taken with target='y', this source has target='n'"),
        ({"columns": ["n"]}, "taken with columns=None, this source has columns=['n']"),
        ({"shuffle_buffer": 5}, "taken with shuffle_buffer=4, this source has shuffle_buffer=5"),
        ({"seed": 2}, "taken with seed=1, this source has seed=2: give it the same seed"),
        ({"max_categories": 9}, "taken with max_categories=1000, this source has max_categories=9"),
    ],
)
def test_a_snapshot_with_other_settings_is_refused(options, text):
    base = {"target": "y", "shuffle_buffer": 4, "seed": 1}
    snapshot = ArrowSource(TABLE, **base).snapshot()
    with pytest.raises(SnapshotError) as caught:
        ArrowSource(TABLE, **{**base, **options}).resume(snapshot)
    assert text in str(caught.value)


def test_excluded_columns_are_no_features():
    assert ArrowSource(TABLE, "y", exclude=["n"]).features == [
        name for name in TABLE.schema.names if name not in ("y", "n")
    ]
    assert ArrowSource(TABLE, "y", columns=["n", "t"], exclude=["n"]).features == ["t"]
    with pytest.raises(MissingColumnError, match="exclude `tt` is not a column.* did you mean `t`"):
        ArrowSource(TABLE, "y", exclude=["tt"])
    with pytest.raises(SourceError, match="exclude must be a list of names, not the text 'n'"):
        ArrowSource(TABLE, "y", exclude="n")


def test_foreign_snapshots_are_refused():
    source = ArrowSource(TABLE, "y")
    with pytest.raises(SnapshotError, match="not a snapshot of a ArrowSource: it lacks"):
        source.resume({"source": "ArrowSource", "row": 1})
    with pytest.raises(
        SnapshotError, match="not a snapshot of a ArrowSource: it is of ParquetSource"
    ):
        source.resume({**source.snapshot(), "source": "ParquetSource"})
    with pytest.raises(SnapshotError, match="row 21 of `Table`, which has 20 rows"):
        source.resume({**source.snapshot(), "row": 21})
    with pytest.raises(
        SnapshotError, match="continues in `other.arrow`, this source reads `Table`"
    ):
        source.resume({**source.snapshot(), "file": "other.arrow"})


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


def test_numpy_integers_as_options_leave_the_snapshot_json():
    source = ArrowSource(TABLE, "y", shuffle_buffer=np.int64(4), seed=np.int64(3))
    assert json.loads(json.dumps(source.snapshot()))["seed"] == 3


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


def test_a_missing_time_is_nan():
    table = pa.table({"a": [1, 2], "when": [1.5, None], "y": [1, 0]})
    times = ArrowSource(table, "y", timestamp="when").upcoming_timestamps(9)
    np.testing.assert_equal(times, [1.5, np.nan])


TURNS = st.lists(st.tuples(st.booleans(), st.integers(1, 6)), max_size=8)
