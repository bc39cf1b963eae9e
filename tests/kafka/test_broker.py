"""The broker of these tests is what it should be."""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.brokers import QUIET
from tests.kafka.broker import KINDS, PASSWORD
from tests.kafka.conftest import started

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def guarded():
    with started(1, tuple(KINDS)) as running:
        yield running


def settings(cluster, kind, user="alice", password=PASSWORD):
    """Return a client's settings for one kind of listener."""
    protocol, certificate = KINDS[kind]
    found = {"bootstrap.servers": cluster.addresses[kind], "security.protocol": protocol}
    if certificate is not None:
        found["ssl.ca.location"] = str(cluster.certificates[kind])
    if protocol.startswith("SASL"):
        found |= {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password}
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_listeners(guarded, kind):
    is_right = kind not in ("expired", "other_host")
    admin = AdminClient(settings(guarded, kind) | QUIET)
    try:
        assert len(admin.list_topics(timeout=5 if is_right else 1).brokers) == 1
    except KafkaException:
        assert not is_right


def test_three_nodes():
    with started(3) as running:
        admin = AdminClient({"bootstrap.servers": running.address} | QUIET)
        found = admin.list_topics(timeout=10)
        assert len(found.brokers) == 3
