"""Events from a list, and its marks."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from connectors import MemorySource, Position, SourceAborted

PAIRS = [({"a": 1, "t": "x"}, True), ({"a": None}, False), ({"b": 2.5, "t": "y"}, None)]


def test_events_pass_through_untouched():
    events = list(MemorySource(PAIRS).events())
    assert [(x, y) for x, y, _ in events] == PAIRS
    assert events[0].x is PAIRS[0][0]
    assert [p for _, _, p in events] == [Position(None, row) for row in range(3)]


def test_batches_hold_the_union_of_the_features():
    batch = next(MemorySource(PAIRS).batches())
    assert batch.features.to_pydict() == {
        "a": [1.0, None, None],
        "t=x": [1.0, 0.0, 0.0],
        "b": [None, None, 2.5],
        "t=y": [0.0, 0.0, 1.0],
    }
    assert batch.labels.to_pylist() == [True, False, None]
    assert [x for x, _, _ in batch.events()] == [{"a": 1.0, "t=x": 1.0}, {}, {"b": 2.5, "t=y": 1.0}]


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (({"a": []}, 1), "feature `a` is a list"),
        (({"a": 10**400}, 1), "feature `a` is too large for a float"),
        (({"a": Decimal("1e400")}, 1), "feature `a` is a Decimal"),
        (({"a": b"x"}, 1), "feature `a` is a bytes"),
        (({"a": 1j}, 1), "feature `a` is a complex"),
        (({"a": "\ud800"}, 1), "lone surrogate"),
        (({"\ud800": 1.0}, 1), "lone surrogate"),
        (({("a", 1): 1.0}, 1), "a feature is named by a tuple"),
        (({1: 1.0, "1": 2.0}, 1), "two features are named `1`"),
        ((5, 1), "an event is a mapping of features, not a int"),
        (({"a": 1}, "b"), "the label is of type string, unlike those before"),
        (({"a": 1}, "\ud800"), "the label"),
        (({"a": 1}, 10**400), "the label"),
        (({"a": 1}, object()), "the label"),
    ],
)
def test_what_a_batch_cannot_hold_is_set_aside(pair, reason):
    good = ({"a": 1, "w": 2.0}, 1)
    for weight in (None, "w"):
        batch = next(MemorySource([good, pair, good], weight=weight).batches())
        assert batch.labels.to_pylist() == [1, 1] and batch.rows.tolist() == [0, 2]
        assert [(one.position.row, one.kind) for one in batch.rejects] == [(1, "not an event")]
        assert reason in batch.rejects[0].reason
        batch.rejects[0].payload.encode()


def test_other_numbers_and_names_are_those_of_columns():
    x = {"a": Decimal("1.5"), 3: 2, "day": date(1970, 1, 2), "b": np.bool_(True), "n": pd.NA}
    x |= {"f": Fraction(1, 4), "m": np.ma.masked, "d": Decimal("NaN"), "i": np.int8(7)}
    found = {"a": 1.5, "3": 2.0, "day": 86400.0, "b": 1.0, "f": 0.25, "i": 7.0}
    batch = next(MemorySource([(x, 1)]).batches())
    assert not batch.rejects and [event.x for event in batch.events()] == [found]
    assert [
        event.x for event in next(MemorySource([({1: 1.0, 2: 2.0}, 1)]).batches()).events()
    ] == [{"1": 1.0, "2": 2.0}]


@pytest.mark.parametrize("path", ["events", "batches"])
def test_eof_stops_and_the_next_reading_continues_after_it(path):
    items = [PAIRS[0], MemorySource.EOF, PAIRS[1], PAIRS[2]]
    first, second = MemorySource(items), MemorySource(items)
    assert len(list(getattr(first, path)())) == 1
    assert first.snapshot()["row"] == 1
    second.resume(first.snapshot())
    for source in (first, second):
        assert [p.row for _, _, p in source.events()] == [1, 2]


@pytest.mark.parametrize("path", ["events", "batches"])
def test_abort_raises_once_after_all_before_it_was_handed_out(path):
    items = [PAIRS[0], PAIRS[1], MemorySource.ABORT(), PAIRS[2]]
    taken, snapshots = [], []
    with MemorySource(items, name="mine") as source:
        with pytest.raises(SourceAborted, match="`mine` aborted before row 2"):
            for one in getattr(source, path)(*[1] * (path == "batches")):
                taken.append(one)
                snapshots.append(source.snapshot())
        assert len(taken) == 2
        source.rewind()
        assert len(list(source.events())) == 3
    # After a restart from an older snapshot it is passed over.
    second = MemorySource(items, name="mine")
    second.resume(snapshots[0])
    assert [p.row for _, _, p in second.events()] == [1, 2]
