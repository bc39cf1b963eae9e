"""Replaying at a pace, with a clock of its own."""

import copy

import pyarrow as pa
import pytest

from connectors import ArrowSource, MemorySource, SimulatedStream, SourceError


class Clock:
    """Time that passes only by sleeping, or when a test says so."""

    def __init__(self):
        self.now = 100.0
        self.sleeps = 0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        self.now += seconds
        self.sleeps += 1


def source(times=None, n=10):
    times = [float(i) for i in range(n)] if times is None else times
    table = pa.table(
        {"a": range(len(times)), "when": pa.array(times, pa.float64()), "y": [1] * len(times)}
    )
    return ArrowSource(table, "y", timestamp="when")


def untimed():
    return ArrowSource(pa.table({"a": [1], "y": [1]}), "y")


@pytest.fixture
def clock():
    return Clock()


def paced(inner, clock, **pace):
    return SimulatedStream(inner, clock=clock, sleep=clock.sleep, **pace)


def test_what_a_run_asks_for_is_the_sources_own(clock):
    table = pa.table({"a": [1.0, None], "empty": pa.nulls(2), "truth": [True, False], "y": [1, 0]})
    stream = paced(ArrowSource(table, "y", keep=["truth"]), clock, rate=1e6)
    assert stream.keep == ["truth"] and stream.number_texts.names == []
    assert len(list(stream.batches())) and stream.empty_columns == stream.source.empty_columns
    assert stream.counts == {} == copy.copy(stream).counts


@pytest.mark.parametrize("work", [0.0, 0.2])
@pytest.mark.parametrize("pace", [{"rate": 4}, {"speed": 4}])
def test_events_at_a_pace_do_not_drift_with_the_work_between_them(clock, pace, work):
    # Many more than one look ahead.
    times = []
    for _ in paced(source(n=3000), clock, **pace).events():
        times.append(clock.now)
        clock.now += work
    assert times == pytest.approx([100 + i / 4 for i in range(3000)], abs=1e-9)


@pytest.mark.parametrize(
    ("pace", "sizes", "sleeps"),
    [
        ({}, [64, 64, 64, 8], False),
        ({"rate": 1e6}, [64, 64, 64, 8], True),
        ({"rate": 0.5}, [1] * 200, True),
    ],
    ids=["none", "fast", "slow"],
)
def test_batches_are_as_large_as_asked_or_as_the_pace_lets_them(clock, pace, sizes, sleeps):
    stream = paced(source(n=200), clock, **pace)
    assert [len(batch) for batch in stream.batches(64)] == sizes
    assert (clock.sleeps > 0) == sleeps
    stream.rewind()
    assert len(list(stream.events())) == 200


def test_a_lag_is_caught_up(clock):
    times = []
    for i, _ in enumerate(paced(source(), clock, rate=1).events()):
        times.append(clock.now)
        clock.now += 3.5 if i == 1 else 0
    assert times == [100, 101, 104.5, 104.5, 104.5, 105, 106, 107, 108, 109]


@pytest.mark.parametrize("pace", [{"rate": 40}, {"speed": 40}])
def test_batches_hold_no_row_back_longer_than_a_tenth_of_a_second(clock, pace):
    seen = 0
    for batch in paced(source(n=200), clock, **pace).batches():
        for _ in range(len(batch)):
            due = 100 + seen / 40
            assert due - 1e-9 <= clock.now <= due + 0.1 + 1e-9
            seen += 1
    assert seen == 200
    assert clock.sleeps < 60


def test_after_a_lag_all_that_is_due_goes_at_once(clock):
    sizes = []
    for batch in paced(source(n=100), clock, rate=10).batches():
        sizes.append(len(batch))
        clock.now += 5.0 if len(sizes) == 1 else 0
    assert sizes[1] >= 49
    assert sum(sizes) == 100


@pytest.mark.parametrize(
    ("recorded", "due"),
    [
        ([5.0, 6.0, 8.0], [0, 0.5, 1.5]),
        ([5.0, 4.0, 6.0], [0, 0, 1.0]),
        ([5.0, None, 7.0], [0, 0, 1.0]),
        ([None, 5.0, 6.0], [0, 0, 0.5]),
        ([None, None], [0, 0]),
    ],
    ids=["forward", "backward step", "missing", "missing first", "all missing"],
)
def test_recorded_pace_at_double_speed(clock, recorded, due):
    times = [clock.now - 100 for _ in paced(source(recorded), clock, speed=2).events()]
    assert times == due
    clock.now = 100.0
    times = []
    for batch in paced(source(recorded), clock, speed=2).batches():
        times += [clock.now - 100] * len(batch)
    assert times == due


@pytest.mark.parametrize("pace", [{}, {"rate": 2}, {"speed": 2}])
def test_snapshots_name_the_next_event_that_was_not_handed_out(clock, pace):
    stream = paced(source(), clock, **pace)
    for k, _ in enumerate(stream.events()):
        assert stream.snapshot() == {**source().snapshot(), "row": k + 1}
        if k == 3:
            break
    batch = next(stream.batches(2))
    row = batch.position(0).row + len(batch)
    assert batch.position(0).row == 4
    resumed = paced(source(), clock, **pace)
    resumed.resume(stream.snapshot())
    assert [p.row for _, _, p in resumed.events()] == list(range(row, 10))


def test_an_interrupted_wait_loses_no_event(clock):
    def interrupted(seconds):
        raise KeyboardInterrupt

    stream = SimulatedStream(source(), rate=1, clock=clock, sleep=interrupted)
    events = stream.events()
    next(events)
    with pytest.raises(KeyboardInterrupt):
        next(events)
    assert stream.snapshot()["row"] == 1


def test_after_rewind_and_resume_the_first_event_is_due_at_once(clock):
    stream = paced(source(), clock, speed=1)
    events = stream.events()
    for _ in range(5):
        next(events)
    snapshot = stream.snapshot()
    clock.now += 1000
    stream.rewind()
    start = clock.now
    assert [clock.now - start for _ in stream.events()][:3] == [0, 1, 2]
    clock.now += 1000
    stream.resume(snapshot)
    start = clock.now
    assert [(p.row, clock.now - start) for _, _, p in stream.events()][:2] == [(5, 0), (6, 1)]


def test_marks_of_a_memory_source_pass_through(clock):
    stream = paced(MemorySource([({}, 1), MemorySource.EOF, ({}, 2)], name="mine"), clock, rate=1)
    assert stream.name == "mine"
    assert [[y for _, y, _ in stream.events()] for _ in range(2)] == [[1], [2]]


@pytest.mark.parametrize(
    ("inner", "pace", "error", "words"),
    [
        (source(), {name: value}, ValueError, f"{name} must be a number above 0, not {value}")
        for name, value in (("rate", 0), ("rate", -1), ("speed", 0), ("rate", float("nan")))
    ]
    + [
        (source(), {"rate": 1, "speed": 1}, ValueError, "give rate .events a second. or speed .*"),
        (MemorySource([]), {"speed": 2.0}, SourceError, "has no timestamp column; give the source"),
        (untimed(), {"speed": 2.0}, SourceError, "has no timestamp column; give the source"),
    ],
)
def test_what_is_no_pace_is_refused(inner, pace, error, words):
    with pytest.raises(error, match=words):
        SimulatedStream(inner, **pace)
