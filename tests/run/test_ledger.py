"""Kafka, exactly once: killed at random, while it writes, while the group is rebalanced."""

import pytest

pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")

from benchmarks import ledger
from tests.brokers import BROKERS


@pytest.mark.slow
@pytest.mark.parametrize("broker", BROKERS)
def test_every_event_is_learnt_once_whatever_dies(broker):
    kills = ledger.prove(broker, 12_000, 3, every=400)
    assert kills.total() > 0
