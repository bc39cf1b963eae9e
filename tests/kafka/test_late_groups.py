"""Labels in a topic of their own, and groups: events and labels of a key meet, or it is refused."""

import contextlib
import json
import threading

import confluent_kafka
import pytest

from benchmarks import kills
from connectors import KafkaSource
from connectors.errors import SourceError
from streamsvm import SVMSGDClassifier
from streamsvm.errors import ParameterError
from streamsvm.model_files import container
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from tests.brokers import QUIET, make_topic
from tests.kafka.runs import source_of
from tests.slow import slow

pytestmark = pytest.mark.kafka


class KilledError(BaseException):
    """What ends a member as kill -9 does: nothing is written or committed."""


class Topics:
    """A topic of events and one of labels, and the members that learn from them."""

    def __init__(self, address, name, folder, n_partitions=(4, 4)):
        self.address, self.folder, self.group = address, folder, name
        self.names = (f"{name}-events", f"{name}-labels")
        folder.mkdir(exist_ok=True)
        for topic, n in zip(self.names, n_partitions, strict=True):
            make_topic(address, topic, n)

    def send(self, first, n, are_labels, **settings):
        """Produce events, or their labels, with keys of their own."""
        own = {"bootstrap.servers": self.address, "partitioner": "murmur2_random"}
        producer = confluent_kafka.Producer(own | QUIET | settings)
        for i in range(first, first + n):
            event = {"label": i % 7 > 3} if are_labels else {"a": i % 7, "id": i}
            producer.produce(self.names[are_labels], json.dumps(event), key=f"key {i}")
        assert producer.flush(30) == 0

    def source(self, idle=3.0, **settings):
        # A source of its own consumer, with both topics.
        given = source_of(self.address, self.names[0], group=self.group, **settings)
        given.consumer.unsubscribe()
        return KafkaSource(
            given.consumer, "label", topics=self.names, labels=self.names[1], exclude=["id"],
            heard=given._heard, idle=idle, timeout=0.1, batch_size=50,
        )  # fmt: skip

    def member(self, name, look=lambda progress: None, peers=True, late=None, **settings):
        """Learn to the end, and return the report."""
        path = self.folder / f"{name}.ckpt"
        saved = Checkpoint(path, every=100, peers=str(self.folder / "*.ckpt") if peers else None)
        with self.source(**settings) as source:
            parts = {"checkpoint": saved, "late": late or LateLabels(), "on_progress": look}
            return Run(source, SVMSGDClassifier(seed=0), **parts).execute()

    def learnt(self):
        """Return how many events the members have learnt, and hold, by their checkpoints."""
        runs = [container.read(path)[1] for path in self.folder.glob("*.ckpt")]
        return sum(about["states"]["report"]["learnt"] for about in runs)


def waiting_after(n, then=None):
    """Return a function of progress that waits a little once so many rows came, or raises."""

    def look(progress):
        if max(progress.rows, progress.learnt) >= n:
            if then is not None:
                raise then
            threading.Event().wait(0.1)

    return look


def test_held_events_go_with_their_partitions(broker, tmp_path):
    topics = Topics(broker.address, "move", tmp_path)
    topics.send(0, 2000, are_labels=False)
    reports = {}
    first = threading.Thread(
        target=lambda: reports.update(a=topics.member("a", look=waiting_after(2000)))
    )
    first.start()
    threading.Event().wait(2.0)
    # All events wait in a, and b gets half of them; b dies, and comes back.
    topics.send(0, 1000, are_labels=True)
    with pytest.raises(KilledError):
        topics.member("b", look=waiting_after(250, KilledError()))
    topics.send(1000, 1000, are_labels=True)
    reports["b"] = topics.member("b")
    first.join(30)
    reports["c"] = topics.member("c", idle=1.0)
    assert topics.learnt() == 2000
    # No label is left over: each event was learnt once.
    left = [report.late["held"] + report.late["labels_held"] for report in reports.values()]
    assert left[2] == 0 and min(reports[name].learnt for name in "ab") > 0
    assert sum(report.source["failed_commits"] for report in reports.values()) == 0


@contextlib.contextmanager
def other_member(topics, **settings):
    """Have another member in the group, which reads and learns nothing."""
    is_over = threading.Event()

    def poll():
        consumer = source_of(
            topics.address, topics.names[0], group=topics.group, **settings
        ).consumer
        consumer.unsubscribe()
        consumer.subscribe(list(topics.names))
        while not is_over.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_a_member_without_peers_is_refused_part_of_the_partitions(broker, tmp_path):
    topics = Topics(broker.address, "alone", tmp_path)
    topics.send(0, 200, are_labels=False)
    topics.send(0, 100, are_labels=True)
    with (
        other_member(topics),
        pytest.raises(SourceError, match="has 4 of 8 partitions, and labels"),
    ):
        topics.member("a", peers=False, idle=20.0)
    # Events wait in that checkpoint, and in no other one.
    topics.member("a", peers=False, idle=1.0)
    said = "the group has read alone-events.* by another checkpoint, which holds the events"
    with pytest.raises(SourceError, match=said):
        topics.member("b", peers=False)


def test_partitions_of_which_keys_cannot_meet_are_refused(broker, tmp_path):
    topics = Topics(broker.address, "uneven", tmp_path / "uneven", (4, 3))
    with pytest.raises(SourceError, match="`uneven-events` has 4, `uneven-labels` has 3"):
        topics.member("a")
    topics = Topics(broker.address, "dealt", tmp_path / "dealt", (3, 3))
    how = {"partition_assignment_strategy": "roundrobin"}
    with other_member(topics, **how), pytest.raises(SourceError, match="assignment.strategy=range"):
        topics.member("a", **how)


@pytest.mark.parametrize(
    ("partitioners", "said"),
    [
        (
            ("murmur2_random", "consistent_random"),
            "of murmur2_random, keys of labels in those of c",
        ),
        (("random", "murmur2_random"), "another partitioner, keys of labels in those of murmur2_"),
        (("random", "random"), "labels have their events in partitions of other numbers"),
    ],
)
def test_keys_of_another_hash_are_refused(broker, tmp_path, partitioners, said):
    topics = Topics(broker.address, "-".join(["hash", *partitioners]), tmp_path)
    for are_labels, partitioner in enumerate(partitioners):
        how = {"partitioner": partitioner, "sticky.partitioning.linger.ms": 0}
        topics.send(0, 1000, bool(are_labels), **how)
    with pytest.raises((SourceError, ParameterError), match=said):
        topics.member("a", late=LateLabels(default=False, patience=500))
    # One member alone has all partitions, and brings them together.
    topics.group = "another"
    assert topics.member("b", peers=False, idle=1.0).learnt == 1000


@slow
def test_members_that_are_killed_and_that_come_and_go(broker):
    """Number, sum and sum of squares of what was learnt are exact."""
    (set_up,) = [one for one in kills.SET_UPS if one.source == "late group"]
    with kills.made_streams(is_kafka=True) as streams:
        assert "20 kills" in kills.torment(streams, set_up, 20, 1)
