"""States of partitions that lack what the group has read, with Apache Kafka."""

import json
import logging

import pytest

pytest.importorskip("quixstreams", reason="pip install quixstreams")

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from streamsvm import SVMSGDClassifier
from streamsvm.errors import KeyedStateError
from streamsvm.run.keyed import ModelPerKey
from streamsvm.run.keyed.standing import Standing
from tests import brokers
from tests.kafka.conftest import broker  # noqa: F401

pytestmark = pytest.mark.kafka


class Topic:
    """A topic of one partition with a model per key, and its workers one after the other."""

    def __init__(self, address, name, folder, guarantee="at-least-once"):
        self.address, self.name, self.folder, self.guarantee = address, name, folder, guarantee
        self.changelog = f"changelog__{name}--{name}--default"
        self.admin = AdminClient({"bootstrap.servers": address})
        brokers.make_topic(address, name, 1, **{"retention.ms": "-1"})

    def send(self, n, **more):
        events = [json.dumps({"a": i % 7.0, "y": i % 7 > 3} | more) for i in range(n)]
        brokers.produce(self.address, self.name, events, 1, [f"k{i % 5}" for i in range(n)])

    def work(self, count, disk, step=lambda stream: stream, timeout=15, **options):
        """Learn so many messages; return the answers."""
        from quixstreams import Application
        from quixstreams.models import TopicConfig

        app = Application(
            self.address, consumer_group=self.name, auto_offset_reset="earliest",
            state_dir=self.folder / disk, commit_interval=0.2, loglevel="WARNING",
            processing_guarantee=self.guarantee,
        )  # fmt: skip
        config = TopicConfig(1, 1, {"retention.ms": "-1"})
        stream = app.dataframe(app.topic(self.name, key_deserializer="str", config=config))
        models = ModelPerKey(SVMSGDClassifier(), "y", **options)
        step(stream).apply(models, stateful=True, metadata=True)
        app.run(count=count, timeout=timeout)
        held = models.models._held.values()
        return sum(one.model.n_examples for one in held)

    def cut(self):
        """Remove all that the changelog has, as a retention would."""
        policy = ConfigEntry(
            "cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET
        )
        of_topic = ConfigResource("topic", self.changelog, incremental_configs=[policy])
        self.admin.incremental_alter_configs([of_topic])[of_topic].result(10)
        place = TopicPartition(self.changelog, 0, -1)
        self.admin.delete_records([place])[place].result(10)


def test_applications_with_transactions_are_refused(broker, tmp_path):  # noqa: F811
    topic = Topic(broker.address, "exact", tmp_path, "exactly-once")
    topic.send(5)
    with pytest.raises(KeyedStateError, match="exactly-once.*: a worker that dies in a commit"):
        topic.work(5, "one")


def test_a_changelog_that_was_cut_or_is_gone(broker, tmp_path, caplog):  # noqa: F811
    topic = Topic(broker.address, "cut", tmp_path)
    topic.send(50)
    assert topic.work(50, "one") == 50
    topic.cut()
    topic.send(5)
    said = r"of cut\[0\] may lack keys: its changelog changelog__cut--cut--default\[0\] begins at"
    with pytest.raises(KeyedStateError, match=said):
        topic.work(5, "two")
    # The worker with the disk goes on.
    assert topic.work(5, "one") == 55
    topic.admin.delete_topics([topic.changelog])[topic.changelog].result(10)
    topic.send(5)
    with pytest.raises(KeyedStateError, match="is empty, as is its changelog .* read up to 55"):
        topic.work(5, "three")
    with caplog.at_level(logging.WARNING, "streamsvm"):
        assert topic.work(5, "three", may_lack=True) == 5
    assert "read up to 55" in caplog.text


def test_steps_that_leave_messages_out_and_states_of_earlier_releases(
    broker,  # noqa: F811
    tmp_path,
    monkeypatch,
):
    topic = Topic(broker.address, "filtered", tmp_path)
    topic.send(20)
    with monkeypatch.context() as before:
        before.setattr(Standing, "check", lambda *given: None)
        assert topic.work(20, "one") == 20
    only = lambda stream: stream.filter(lambda value: "no" not in value)  # noqa: E731
    topic.send(10)
    assert topic.work(10, "two", only) == 30
    topic.send(30, no=1)
    topic.send(1)
    # All that the last commits hold was left out.
    assert topic.work(1, "two", only) == 7
    topic.send(30, no=1)
    topic.work(1, "two", lambda stream: stream.filter(lambda value: False), timeout=4)
    topic.send(10)
    assert topic.work(10, "three", only) == 41
