"""Topics that are not what they were: made anew, cut, extended."""

import threading
import time

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from connectors import SourceError
from streamsvm.errors import CheckpointError
from tests.brokers import QUIET, make_topic, produce
from tests.kafka.runs import committed, learnt, made, payloads, source_of

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def admin(broker):
    return AdminClient({"bootstrap.servers": broker.address} | QUIET)


def make_anew(admin, address, topic, n):
    admin.delete_topics([topic])[topic].result()
    for _ in range(100):
        try:
            make_topic(address, topic, 2)
            break
        except Exception:
            time.sleep(0.1)
    produce(address, topic, payloads(n, 5000), 2)


@pytest.mark.parametrize(
    ("knows_ids", "n", "said"),
    [
        (True, 400, "has the id .* now, and had .* when it was read"),
        (False, 400, "is not the one that was read there before the checkpoint"),
        (False, 20, r"\[\d\] ends at 10, and the checkpoint has read up to 100"),
    ],
)
def test_a_topic_that_was_made_anew_is_refused(broker, admin, tmp_path, knows_ids, n, said):
    topic, path = f"anew{knows_ids}{n}", tmp_path / "run.ckpt"
    made(broker.address, topic, 2, 200)

    def run():
        return learnt(source_of(broker.address, topic, knows_ids=knows_ids), path)

    assert run().rows == 200
    report = run()
    assert (report.rows, report.source["passed_over"]) == (200, 0)
    make_anew(admin, broker.address, topic, n)
    with pytest.raises((CheckpointError, SourceError), match=said):
        run()


def test_a_committed_offset_after_the_end_is_an_error(broker):
    topic = made(broker.address, "beyond", 1, 50)
    consumer = source_of(broker.address, topic).consumer
    consumer.commit(offsets=[TopicPartition(topic, 0, 500)], asynchronous=False)
    consumer.close()
    with pytest.raises(SourceError, match="ends at 50, and the group has read up to 500"):
        learnt(source_of(broker.address, topic))


def test_what_retention_removed_is_counted_though_nothing_follows(broker, admin, tmp_path):
    topic, path = "cut", tmp_path / "run.ckpt"
    made(broker.address, topic, 1, 100)
    assert learnt(source_of(broker.address, topic), path).rows == 100
    produce(broker.address, topic, payloads(40), 1)
    place = TopicPartition(topic, 0, 140)
    admin.delete_records([place])[place].result()
    report = learnt(source_of(broker.address, topic), path)
    assert (report.rows, report.source["jumped"]) == (100, 40)
    assert committed(broker.address, topic, 1) == [140]


def test_partitions_that_are_added_are_read(broker, admin):
    topic = made(broker.address, "added", 1, 50)
    source = source_of(broker.address, topic, idle=6.0, topic_metadata_refresh_interval_ms="1000")

    def add():
        time.sleep(2)
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
        time.sleep(0.5)
        produce(broker.address, topic, payloads(90), 3)

    adding = threading.Thread(target=add)
    adding.start()
    assert learnt(source).rows == 140
    adding.join()


def test_a_topic_that_is_made_anew_while_it_is_read(broker, admin, monkeypatch):
    """Librdkafka reads on in the new topic, at the offsets of the old one."""
    monkeypatch.setattr("connectors.kafka.reachable._ASK_SECONDS", 1.0)
    topic = made(broker.address, "anew", 2, 200)
    source = source_of(broker.address, topic, knows_ids=True, idle=30.0)
    making = threading.Timer(3.0, make_anew, (admin, broker.address, topic, 400))
    making.start()
    with pytest.raises(SourceError, match="has the id .* now, and had .* when it was read"):
        learnt(source)
    making.join()


def test_a_checkpoint_from_before_is_said(broker, tmp_path, caplog):
    """What the group has read since is not in the model."""
    topic, path = f"old-{time.time_ns()}", tmp_path / "run.ckpt"
    made(broker.address, topic, 2, 100)
    assert learnt(source_of(broker.address, topic), path).rows == 100
    before = path.read_bytes()
    produce(broker.address, topic, payloads(60, 100), 2)
    assert learnt(source_of(broker.address, topic), path).rows == 160
    said = "goes on after 60 messages that the group has read, and this model has not"
    assert said not in caplog.text
    path.write_bytes(before)
    assert learnt(source_of(broker.address, topic), path).rows == 100
    assert said in caplog.text
