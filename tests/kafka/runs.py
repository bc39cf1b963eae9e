"""Runs of a topic of Apache Kafka in this process."""

import json

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from connectors import KafkaSource
from connectors.kafka.reachable import Heard
from streamsvm import SVMSGDClassifier
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.brokers import QUIET, make_topic, produce


def payloads(n, first=0):
    """Return n events whose numbers tell them apart."""
    events = [{"a": float(i % 7), "id": i, "label": i % 7 > 3} for i in range(first, first + n)]
    return [json.dumps(event).encode() for event in events]


def made(address, topic, n_partitions, n):
    """Make a topic of n events; return its name."""
    make_topic(address, topic, n_partitions)
    produce(address, topic, payloads(n), n_partitions)
    return topic


def source_of(address, topic, *, knows_ids=False, group=None, idle=1.5, **settings):
    """Return a source with a consumer of its own; settings with _ for a dot."""
    heard = Heard()
    own = {"bootstrap.servers": address, "group.id": group or f"group of {topic}"} | QUIET
    own |= {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    own |= {"enable.partition.eof": True}
    if settings.get("group_protocol") != "consumer":
        own |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 300}
    own |= {name.replace("_", "."): value for name, value in settings.items()} | heard.settings
    if knows_ids:
        heard.identify(AdminClient({"bootstrap.servers": address} | QUIET), [topic])
    return KafkaSource(
        Consumer(own), "label", topics=[topic], exclude=["id"], heard=heard, idle=idle, timeout=0.1
    )


def learnt(source, path=None, **options):
    """Learn to the end, close, and return the report."""
    with source:
        checkpoint = None if path is None else Checkpoint(path, every=100)
        return Run(source, SVMSGDClassifier(seed=0), checkpoint=checkpoint, **options).execute()


def committed(address, topic, n_partitions, group=None):
    """Return the committed offsets of a group."""
    from confluent_kafka import TopicPartition

    consumer = source_of(address, topic, group=group).consumer
    places = [TopicPartition(topic, i) for i in range(n_partitions)]
    found = [place.offset for place in consumer.committed(places, 10)]
    consumer.close()
    return found
