"""Looking ahead and knowing the place."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import Position, SnapshotError
from connectors.cursor import Chunk, Cursor, Place, ShuffledCursor


def reader(sizes):
    """Files of so many rows each, given in chunks of three."""

    def read(start):
        for name, size in sizes.items():
            if name < start.file:
                continue
            first = start.row if name == start.file else 0
            for row in range(first, size, 3):
                rows = np.arange(row, min(row + 3, size))
                yield Chunk(pa.record_batch({"a": rows}), rows, name)

    return read


def drain(cursor, size):
    taken = []
    while (chunk := cursor.peek(size)) is not None:
        cursor.advance(chunk.num_rows)
        assert chunk.data.column(0).to_pylist() == chunk.rows.tolist()
        taken.append((chunk.file, chunk.rows.tolist()))
    return taken


def test_pieces_join_chunks_but_not_files():
    cursor = Cursor(reader({"a": 7, "b": 2}), Position("a", 0))
    assert drain(cursor, 5) == [("a", [0, 1, 2, 3, 4]), ("a", [5, 6]), ("b", [0, 1])]
    assert cursor.peek(5) is None
    assert cursor.place == Place(Position("b", 2))


def test_peek_leaves_rows_unread():
    cursor = Cursor(reader({"a": 7}), Position("a", 0))
    assert cursor.peek(2).rows.tolist() == [0, 1]
    assert cursor.peek(6).rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert cursor.place == Place(Position("a", 0))
    cursor.advance(4)
    assert cursor.place == Place(Position("a", 4))
    assert cursor.peek(9).rows.tolist() == [4, 5, 6]
    assert cursor.place == Place(Position("a", 4))


def test_version_tells_of_every_move():
    cursor = Cursor(reader({"a": 7}), Position("a", 0))
    versions = [cursor.version]
    cursor.peek(3)
    assert cursor.version == versions[0]
    cursor.advance(1)
    versions.append(cursor.version)
    cursor.move(Place(Position("a", 1)))
    versions.append(cursor.version)
    assert len(set(versions)) == 3


@pytest.mark.parametrize("shuffled", [False, True])
def test_an_interrupted_read_loses_nothing(shuffled):
    fail = [True]

    def read(start):
        for chunk in reader({"a": 9})(start):
            if chunk.rows[0] >= 5 and fail[0]:
                fail[0] = False
                raise KeyboardInterrupt
            yield chunk

    start = Position("a", 0)
    cursor = ShuffledCursor(read, start, 4, 0) if shuffled else Cursor(read, start)
    cursor.peek(2)
    cursor.advance(2)
    taken = []
    with pytest.raises(KeyboardInterrupt):
        taken += drain(cursor, 4)
        cursor.peek(9)
    whole = ShuffledCursor(read, start, 4, 0) if shuffled else Cursor(read, start)
    rest = [row for _, rows in drain(cursor, 4) for row in rows]
    rows = [row for _, rows in drain(whole, 4) for row in rows]
    assert rows[-len(rest) :] == rest
    assert sorted(rows) == list(range(9))


def test_shuffled_blocks_are_permutations_within_files():
    cursor = ShuffledCursor(reader({"a": 7, "b": 5}), Position("a", 0), 5, 3)
    pieces = drain(cursor, 100)
    assert [(file, sorted(rows)) for file, rows in pieces] == [
        ("a", [0, 1, 2, 3, 4]),
        ("a", [5, 6]),
        ("b", [0, 1, 2, 3, 4]),
    ]
    assert pieces[0][1] != pieces[2][1]


def test_a_shuffled_block_that_shrank_is_refused():
    cursor = ShuffledCursor(reader({"a": 7}), Position("a", 0), 5, 3)
    cursor.move(Place(Position("a", 5), 1, 3))
    with pytest.raises(
        SnapshotError, match="shuffled block of 5 rows from a: row 5, which has few"
    ):
        cursor.peek(1)


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    block=st.integers(0, 6),
    takes=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5), st.booleans()), max_size=12),
)
def test_moving_to_ones_own_place_changes_nothing(sizes, block, takes):
    files = dict(zip("abc", sizes, strict=False))
    start = Position("a", 0)

    def fresh():
        return (
            ShuffledCursor(reader(files), start, block, 1)
            if block
            else Cursor(reader(files), start)
        )

    whole = [(file, row) for file, rows in drain(fresh(), 4) for row in rows]
    cursor, got = fresh(), []
    for size, count, restart in takes:
        chunk = cursor.peek(size)
        if chunk is not None:
            count = min(count, chunk.num_rows)
            got += [(chunk.file, row) for row in chunk.rows[:count].tolist()]
            cursor.advance(count)
        if restart:
            place, cursor = cursor.place, fresh()
            cursor.move(place)
    got += [(file, row) for file, rows in drain(cursor, 4) for row in rows]
    assert got == whole
