"""What clients that run in a loop make safe before a partition goes to another member."""

import asyncio
import json
import threading
import time
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")

import streamsvm
from connectors import KafkaSource, SourceError
from connectors.kafka.messages import Message
from connectors.kafka.rebalance import AwaitedHandover, Handover, handover_of
from streamsvm.model_files import container as model_file
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests import brokers

N = 1200
# Tansu lets a group wait for half a session.
SETTINGS = {
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 6000,
    "heartbeat_interval_ms": 300,
}


@pytest.fixture(scope="module")
def broker():
    with brokers.tansu() as address:
        yield address


def produce(address, topic, first, last):
    """Produce events to two partitions, whose numbers tell them apart."""
    noise = np.random.default_rng(first).normal(size=last - first).tolist()
    events = [{"id": i, "a": a, "label": a > 0} for i, a in enumerate(noise, first)]
    brokers.produce(address, topic, [json.dumps(e).encode() for e in events], 2)


class KafkaPython:
    """A consumer of kafka-python."""

    def __init__(self, address, group):
        kafka = pytest.importorskip("kafka", reason="pip install kafka-python")
        settings = SETTINGS | {"bootstrap_servers": address, "group_id": group}
        self.consumer, self.loop = kafka.KafkaConsumer(**settings), None

    def close(self):
        self.consumer.close()


class AioKafka:
    """A consumer of aiokafka, with a loop of its own."""

    def __init__(self, address, group):
        aiokafka = pytest.importorskip("aiokafka", reason="pip install aiokafka")
        self.loop = asyncio.new_event_loop()
        settings = SETTINGS | {"bootstrap_servers": address, "group_id": group}

        async def started():
            consumer = aiokafka.AIOKafkaConsumer(**settings)
            await consumer.start()
            return consumer

        self.consumer = self.loop.run_until_complete(started())

    def close(self):
        self.loop.run_until_complete(self.consumer.stop())
        self.loop.close()


CLIENTS = {"kafka-python": KafkaPython, "aiokafka": AioKafka}


class Member:
    """One member of the group, that learns in a thread and keeps the numbers of its events."""

    def __init__(self, client, address, topic, path, pause):
        self.seen, self.errors, self.path, self.pause = [], [], path, pause
        self.thread = threading.Thread(target=self._run, args=(client, address, topic))
        self.is_over = False
        self.thread.start()

    def _run(self, client, address, topic):
        try:
            made = CLIENTS[client](address, topic)
            options = {"topics": [topic], "loop": made.loop, "decode": self._decoded}
            source = KafkaSource(made.consumer, "label", batch_size=20, timeout=0.2, **options)
            checkpoint = Checkpoint(self.path, every=10**9)  # at rebalances and at the end only
            model = streamsvm.LASVMClassifier(max_support_vectors=50)
            Run(source, model, checkpoint=checkpoint, should_stop=self._should_stop).execute()
            made.close()
        except BaseException as error:
            self.errors.append(error)

    def _decoded(self, payload):
        event = json.loads(payload)
        self.seen.append(event.pop("id"))
        return event

    def _should_stop(self):
        time.sleep(self.pause)
        return self.is_over

    def wait_for(self, n):
        end = time.monotonic() + 120
        while len(self.seen) < n and not self.errors:
            assert time.monotonic() < end, f"{len(self.seen)} events in 120 s"
            time.sleep(0.01)
        assert not self.errors, self.errors

    def end(self):
        self.is_over = True
        self.thread.join(60)
        assert not self.errors, self.errors


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_what_one_learnt_the_other_does_not(client, broker, tmp_path):
    address, name = broker, f"shared-{client}"
    brokers.make_topic(address, name, 2)
    produce(address, name, 0, 1000)
    first = Member(client, address, name, tmp_path / "first.ckpt", pause=0.1)
    try:
        # All of one partition, and some of the other.
        first.wait_for(700)
        second = Member(client, address, name, tmp_path / "second.ckpt", pause=0.0)
        try:
            produce(address, name, 1000, N)
            second.wait_for(50)
            given_up = model_file.read(tmp_path / "first.ckpt")[1]["states"]
            n_rows, offsets = given_up["report"]["rows"], given_up["place"]["snapshot"]["offsets"]
            assert 700 <= n_rows < N
            assert sum(offsets.values()) == n_rows
            end = time.monotonic() + 120
            while len(first.seen) + len(second.seen) < N:
                assert time.monotonic() < end, (len(first.seen), len(second.seen))
                time.sleep(0.05)
        finally:
            second.end()
    finally:
        first.end()
    assert sorted(first.seen + second.seen) == list(range(N))


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
