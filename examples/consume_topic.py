"""Events through a broker: produced to a topic, consumed into a model, twice, with a checkpoint.

``python consume_topic.py HOST:PORT`` uses your broker; without an argument librdkafka's mock
cluster is started, which speaks the same protocol. Wants ``pip install 'streamsvm[kafka]'``.
"""

import json
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Producer
from river import datasets

from connectors import KafkaSource
from streamsvm import LASVMClassifier, TrackingMonitor
from streamsvm.checkpoint import Checkpoint
from streamsvm.runner import Run


def consume(brokers, checkpoint, limit=None):
    """Learn from where the checkpoint ends until nothing comes any more."""
    settings = {"bootstrap.servers": brokers, "group.id": "bananas", "enable.auto.commit": False}
    settings |= {"auto.offset.reset": "earliest", "session.timeout.ms": 6000, "log_level": 0}
    model = LASVMClassifier(max_support_vectors=300)
    source = KafkaSource(Consumer(settings), target="label", topics=["bananas"], idle=3.0)
    with source:
        report = Run(source, TrackingMonitor(model), limit=limit, checkpoint=checkpoint).execute()
        print(f"{report.rows:,} messages, accuracy {report.accuracy:.2%}, {source.snapshot()}")


def main():
    if len(sys.argv) > 1:
        brokers = sys.argv[1]
    else:
        mock = {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0}
        cluster = Producer(mock)  # lives as long as this object
        broker = next(iter(cluster.list_topics(timeout=10).brokers.values()))
        brokers = f"{broker.host}:{broker.port}"
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0})
    for i, (x, y) in enumerate(datasets.Bananas()):
        message = {str(name): value for name, value in x.items()} | {"label": y}
        producer.produce("bananas", json.dumps(message).encode(), partition=i % 2)
    producer.flush()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bananas.ckpt"
        consume(brokers, Checkpoint(path, every=1000), limit=2000)  # as if it had been killed
        consume(brokers, Checkpoint(path, every=1000))


if __name__ == "__main__":
    main()
