"""Positions, batches, and the protocol."""

from itertools import chain, combinations_with_replacement, pairwise

import numpy as np
import pyarrow as pa
import pytest

from connectors import ArrowSource, Batch, Position, SimulatedStream, Source
from connectors.batch import Reject
from connectors.errors import SourceError
from connectors.source import SourceAround


def test_position_reads_as_file_and_row():
    assert str(Position("adult.parquet", 17)) == "adult.parquet: row 17"
    assert str(Position(None, 0)) == "row 0"


def test_a_batch_and_its_slices_keep_rows_labels_and_times_together():
    table = pa.table(
        {
            "size": [1.0, None, 3.0],
            "colour": ["red", None, "blue"],
            "when": [10, 20, 30],
            "y": [1, None, 0],
        }
    )
    batch = next(ArrowSource(table, "y", timestamp="when").batches())
    events = [
        ({"size": 1.0, "colour=red": 1.0}, 1, Position(None, 0)),
        ({}, None, Position(None, 1)),
        ({"size": 3.0, "colour=blue": 1.0}, 0, Position(None, 2)),
    ]
    for part, first, end in (
        (batch, 0, 3),
        (batch.slice(1), 1, 3),
        (batch.slice(0, 1), 0, 1),
        (batch.slice(2, 100), 2, 3),
    ):
        assert len(part) == part.num_rows == end - first
        assert [tuple(event) for event in part.events()] == events[first:end]
        assert part.timestamps.tolist() == [10.0, 20.0, 30.0][first:end]
        assert part.position(end - first - 1) == Position(None, end - 1)


def test_batches_made_by_hand_and_without_features():
    features = pa.record_batch({"b": [1.0], "a": [2.0]})
    batch = Batch(features, pa.array([True]), np.array([7]), "f")
    assert list(batch.events()) == [({"b": 1.0, "a": 2.0}, True, Position("f", 7))]
    table = pa.table({"size": pa.array([None, None], pa.float64()), "y": [1, 0]})
    batch = next(ArrowSource(table, "y").batches())
    assert (batch.features.num_columns, batch.features.num_rows, len(batch)) == (0, 2, 2)
    assert [(x, y) for x, y, _ in batch.events()] == [({}, 1), ({}, 0)]
    assert len(batch.slice(1)) == len(list(batch.slice(1).events())) == 1


def _with_rejects(rows, rejected):
    rejects = tuple(Reject(Position("f", row), "bad", "", "") for row in rejected)
    features = pa.record_batch({"a": np.zeros(len(rows))})
    return Batch(features, pa.nulls(len(rows)), np.array(rows, np.int64), "f", rejects=rejects)


def rejected(batch):
    return [reject.position.row for reject in batch.rejects]


def test_each_reject_is_in_one_part():
    batch = _with_rejects([3, 4, 4, 8, 11], [1, 2, 5, 6, 9, 12, 13])
    assert rejected(batch.slice(0)) == rejected(batch)
    assert rejected(batch.slice(0, 1)) == [1, 2] and rejected(batch.slice(1, 2)) == []
    assert rejected(batch.slice(3, 1)) == [5, 6] and rejected(batch.slice(4)) == [9, 12, 13]
    assert rejected(batch.slice(5)) == rejected(batch.slice(0, 0)) == []
    assert rejected(_with_rejects([], [1, 2]).slice(0)) == [1, 2]
    for cuts in combinations_with_replacement(range(6), 2):
        ends = [0, *cuts, 5]
        parts = [batch.slice(a, b - a) for a, b in pairwise(ends)]
        assert list(chain.from_iterable(map(rejected, parts))) == rejected(batch)
        # Parts of parts, too.
        inner = [part.slice(a, 1) for part in parts for a in range(len(part))]
        assert list(chain.from_iterable(map(rejected, inner))) == rejected(batch)


class Counted(Source):
    """A source of a user: `batches` is all that it says."""

    n = 0

    def batches(self, size=None):
        while self.n < 9:
            rows = np.arange(self.n, min(9, self.n + (size or 4)))
            self.n += len(rows)
            yield Batch(pa.record_batch({"a": rows / 9}), pa.array((rows % 2).tolist()), rows, None)


def test_a_source_needs_batches_only():
    assert [len(batch) for batch in Counted().batches()] == [4, 4, 1]
    for source in (Counted(), SimulatedStream(Counted(), rate=1e9)):
        assert [(event.y, event.position.row) for event in source.events()] == [
            (i % 2, i) for i in range(9)
        ]
        assert (source.name, source.n_rows, source.counts) == ("Counted", None, {})
        assert source.upcoming_timestamps(1) is None
        with pytest.raises(SourceError, match=r"Counted has no rewind\(\): it can be read once"):
            source.rewind()
        with pytest.raises(SourceError, match=r"Counted has no snapshot\(\)"):
            source.snapshot()


def test_what_is_no_source_is_refused_at_once():
    class Batches:
        def batches(self, size=None):
            return Counted().batches(size)

    with pytest.raises(SourceError, match=r"Batches is no source: derive it from conn"):
        SimulatedStream(Batches(), rate=1.0)
    with pytest.raises(SourceError, match="list is no source: .*in memory are a MemorySource"):
        SourceAround([({"a": 1.0}, True)])


def test_a_source_around_another_has_what_is_set_too():
    """A group that loses partitions asks for a checkpoint, also of a source inside another."""
    inner = Counted()
    around = SourceAround(inner)
    around.before_revoke = around.on_long_wait = print
    around.late_by_partition, inner.keep = True, ["a"]
    assert (inner.before_revoke, inner.on_long_wait, inner.late_by_partition) == (print, print, 1)
    assert around.keep == ["a"]
    asked = {name for name in vars(Source) if name[0] != "_"}
    assert asked <= vars(SourceAround).keys()


def test_joined_columns_are_of_a_type_that_holds_all():
    wholes = next(ArrowSource(pa.table({"a": [1.0], "y": [2]}), "y").batches())
    for value, found in (([1.5], [1.5, 2.0]), ([None], [None, 2])):
        first = next(ArrowSource(pa.table({"a": [0.0], "y": value}), "y").batches())
        assert Batch.concat([first, wholes]).labels.to_pylist() == found
    text = next(ArrowSource(pa.table({"a": [0.0], "y": ["1"]}), "y").batches())
    with pytest.raises(pa.ArrowException):
        Batch.concat([text, wholes])
