"""What clients that run in a loop make safe before a partition goes to another member."""

import asyncio
from functools import partial
from typing import NamedTuple

import pytest

pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")

from connectors import KafkaSource, SourceError
from connectors.kafka.messages import Message
from connectors.kafka.rebalance import AwaitedHandover, Handover, handover_of


class BusyError(Exception):
    """A broker that is busy with itself."""

    retriable = True


def handover(save=lambda partitions: None, commit=None, make=AwaitedHandover):
    """Return a handover, and what was committed, refused and assigned."""
    found = []

    async def committing(offsets, partitions):
        if commit is not None:
            raise commit
        found.append((dict(offsets), partitions))

    def refused(error):
        if not isinstance(error, BusyError):
            raise SourceError(f"refused: {error}") from error
        found.append("busy")

    return make(save, committing, refused, found.append), found


def test_offsets_are_noted_and_then_awaited():
    ours, found = handover(lambda partitions: found.append(ours.note({"t[0]": 3})))
    assert not ours.note({"t[0]": 1})  # nothing is given up: commit as always
    with ours.polling():
        asyncio.run(ours.on_partitions_revoked({1}))
    assert found == [True, ({"t[0]": 3}, {1})]
    # While the consumer is being closed, the run has written its last checkpoint.
    asyncio.run(ours.on_partitions_revoked({1}))
    Handover.on_partitions_revoked(ours, {1})
    assert len(found) == 2


def test_what_fails_in_a_listener_is_raised_by_the_poll():
    def full(partitions):
        raise OSError("disk full")

    for ours, (kind, word) in (
        (handover(full)[0], (OSError, "disk full")),
        (
            handover(lambda partitions: None, ValueError("who are you"))[0],
            (SourceError, "who are you"),
        ),
    ):
        with pytest.raises(kind, match=word), ours.polling():
            asyncio.run(ours.on_partitions_revoked({1}))
        with ours.polling():  # told once
            assert not ours.note({})
    ours, _ = handover(full, make=Handover)
    with pytest.raises(OSError, match="disk full"), ours.polling():
        ours.on_partitions_revoked({1})
    ours = Handover(full, None, None, full)
    with pytest.raises(OSError, match="disk full"), ours.polling():
        ours.on_partitions_assigned({1})


def test_a_busy_broker_is_told_next_time():
    ours, found = handover(lambda partitions: None, BusyError())
    with ours.polling():
        asyncio.run(ours.on_partitions_revoked({1}))
    assert found == ["busy"]


class Partition(NamedTuple):
    topic: str
    partition: int


P0, P1 = Partition("t", 0), Partition("t", 1)


class Client:
    """What a consumer of kafka-python or aiokafka has, its rebalances called by hand."""

    def __init__(self):
        self.owned, self.coming, self.commits, self.known, self.busy = {P0}, {}, [], {}, 0

    def subscribe(self, topics, listener):
        self.listener = listener

    def assignment(self):
        return self.owned

    def give_up_in_the_next_poll(self):
        self.coming = lambda: waited(self.listener.on_partitions_revoked({P0}))

    def commit_async(self, offsets):
        async def done():
            if self.busy:
                self.busy -= 1
                raise BusyError
            self.commits.append({p: getattr(o, "offset", o) for p, o in offsets.items()})

        return done()

    def _polled(self):
        if callable(self.coming):
            self.coming()
            return {}
        found, self.coming = self.coming, {}
        return found


class OfKafkaPython(Client):
    """Looks like kafka-python's."""

    __module__ = "kafka.consumer.group"

    def poll(self, timeout_ms=0, max_records=None):
        return self._polled()

    def commit(self, offsets):
        asyncio.run(self.commit_async(offsets))


class Mine(OfKafkaPython):
    """A user's own class of consumers."""


class OfAiokafka(Client):
    """Looks like aiokafka's."""

    __module__ = "aiokafka.consumer"

    async def getmany(self, timeout_ms=0, max_records=None):
        return self._polled()

    async def committed(self, partition):
        return self.known.get(partition)

    def commit(self, offsets):
        return self.commit_async(offsets)


def record(offset, partition=P0):
    return {partition: [Message("t", partition.partition, offset, None, b'{"a": 1, "y": 1}', None)]}


@pytest.fixture
def loop():
    """Return an event loop."""
    made = asyncio.new_event_loop()
    yield made
    made.close()


def source_of(client, loop):
    """Return a source that settles at rebalances, and its batches."""
    source = KafkaSource(client, "y", topics=["t"], loop=loop, timeout=0.01)
    source.before_revoke = lambda: source.settled(source.snapshot())
    source.resume({"source": "KafkaSource", "offsets": {}, "labels": "float"})  # nothing is held
    return source, source.batches()


def waited(coroutine):
    """Run a coroutine that waits for nothing."""
    with pytest.raises(StopIteration):
        coroutine.send(None)


@pytest.mark.parametrize("kind", [OfKafkaPython, Mine, OfAiokafka])
def test_partitions_that_left_already_are_committed(kind, loop):
    pytest.importorskip(kind.__mro__[-3].__module__.partition(".")[0])
    client = kind()
    _, batches = source_of(client, loop)
    client.coming = record(4)
    next(batches)
    client.owned = {P1}  # cooperative: it is gone before the listener knows
    client.give_up_in_the_next_poll()
    next(batches)
    assert client.commits == [{P0: 5}]


@pytest.mark.parametrize("kind", [OfKafkaPython, OfAiokafka])
def test_a_partition_that_comes_back_is_not_set_back(kind, loop):
    pytest.importorskip(kind.__module__.partition(".")[0])
    client = kind()
    source, batches = source_of(client, loop)
    client.coming = record(29)
    next(batches)
    source.settled(source.snapshot())
    assert client.commits.pop() == {P0: 30}
    # Another member had it meanwhile, and got to 50.
    client.coming = lambda: waited(client.listener.on_partitions_assigned({P0}))
    next(batches)
    source.settled(source.snapshot())
    assert client.commits == []
    client.coming = record(50)
    next(batches)
    source.settled(source.snapshot())
    assert client.commits == [{P0: 51}]


def test_who_was_thrown_out_takes_nothing_back(loop):
    pytest.importorskip("aiokafka", reason="pip install aiokafka")
    client = OfAiokafka()
    _, batches = source_of(client, loop)
    client.coming = record(29)
    next(batches)
    client.known = {P0: 50}
    client.give_up_in_the_next_poll()
    next(batches)
    assert client.commits == []


def test_a_commit_is_tried_again(loop):
    pytest.importorskip("kafka", reason="pip install kafka-python")
    client = OfKafkaPython()
    source, batches = source_of(client, loop)
    client.coming = record(1)
    next(batches)
    for busy, failed in ((2, 0), (3, 1)):
        client.busy = busy
        client.give_up_in_the_next_poll()
        next(batches)
        assert client.commits == [{P0: 2}]
        assert source.failed_commits == failed


def test_a_client_without_a_loop_is_served_from_within_its_poll(monkeypatch):
    kafka = pytest.importorskip("kafka", reason="pip install kafka-python")
    monkeypatch.delattr(kafka, "AsyncConsumerRebalanceListener", raising=False)
    saved = []
    consumer = type("Consumer", (), {"__module__": "kafka.consumer.group"})()
    listener, told = handover(
        lambda partitions: saved.append(listener.note({"t[0]": 3})),
        make=partial(handover_of, consumer),
    )
    assert isinstance(listener, kafka.ConsumerRebalanceListener)
    listener.on_partitions_assigned({1})
    assert told == [{1}]
    with listener.polling():
        listener.on_partitions_revoked(set())
        assert saved == []
        listener.on_partitions_revoked({1})
    assert saved == [False]  # its commit may block
    assert type(handover_of(object(), None, None, None, None)) is Handover
