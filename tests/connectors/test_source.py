"""Positions, batches, and the protocol."""

from itertools import chain, combinations_with_replacement, pairwise

import numpy as np
import pyarrow as pa
import pytest

from connectors import ArrowSource, Batch, MemorySource, Position, SimulatedStream, Source
from connectors.batch import Reject
from connectors.source import SourceAround


@pytest.fixture
def batch():
    table = pa.table(
        {
            "size": [1.0, None, 3.0],
            "colour": ["red", None, "blue"],
            "when": [10, 20, 30],
            "y": [1, None, 0],
        }
    )
    return next(ArrowSource(table, "y", timestamp="when").batches())


def test_position_reads_as_file_and_row():
    assert str(Position("adult.parquet", 17)) == "adult.parquet: row 17"
    assert str(Position(None, 0)) == "row 0"


def test_batch_gives_back_its_events(batch):
    assert [tuple(event) for event in batch.events()] == [
        ({"size": 1.0, "colour=red": 1.0}, 1, Position(None, 0)),
        ({}, None, Position(None, 1)),
        ({"size": 3.0, "colour=blue": 1.0}, 0, Position(None, 2)),
    ]


def test_slice_keeps_rows_labels_and_times_together(batch):
    part = batch.slice(1)
    assert len(part) == part.num_rows == 2
    assert part.position(1) == Position(None, 2)
    assert part.timestamps.tolist() == [20.0, 30.0]
    assert list(part.events()) == list(batch.events())[1:]
    assert list(batch.slice(0, 1).events()) == list(batch.events())[:1]
    assert len(batch.slice(2, 100)) == 1


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


def test_batch_without_any_feature_still_has_rows():
    table = pa.table({"size": pa.array([None, None], pa.float64()), "y": [1, 0]})
    batch = next(ArrowSource(table, "y").batches())
    assert batch.features.num_columns == 0
    assert batch.features.num_rows == len(batch) == 2
    assert [(x, y) for x, y, _ in batch.events()] == [({}, 1), ({}, 0)]
    assert len(batch.slice(1)) == len(list(batch.slice(1).events())) == 1


def test_batch_made_by_hand_needs_no_metadata():
    features = pa.record_batch({"b": [1.0], "a": [2.0]})
    batch = Batch(features, pa.array([True]), np.array([7]), "f")
    assert list(batch.events()) == [({"b": 1.0, "a": 2.0}, True, Position("f", 7))]


def test_every_source_is_one():
    table = ArrowSource(pa.table({"a": [1], "y": [1]}), "y")
    for source in (table, MemorySource([]), SimulatedStream(table)):
        assert isinstance(source, Source)
        assert source.upcoming_timestamps(1) is None


def test_a_source_around_another_has_all_that_a_run_asks_of_a_source():
    """Nothing is left to the defaults, but what whoever reads a source sets."""
    own = {n for n in vars(SourceAround) | vars(SourceAround(MemorySource([]))) if n[0] != "_"}
    set_from_outside = {"on_long_wait", "before_revoke", "learnt_elsewhere", "on_gone"}
    set_from_outside |= {"late_by_partition", "ends_at"}
    asked = {n for n in vars(Source) if n[0] != "_"}
    assert asked - own == set_from_outside
