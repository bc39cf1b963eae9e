"""The page's examples of each client, with Apache Kafka itself."""

import json
import re

import pytest

from tests.brokers import make_topic, produce
from tests.test_docs import KAFKA_EXAMPLES, KAFKA_PRINTED

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("name", ["confluent-kafka", "kafka-python", "aiokafka"])
def test_a_client(broker, name, tmp_path, monkeypatch, capsys):
    topic = f"payments of {name}".replace(" ", "_")
    events = [{"amount": float(i % 7), "fraud": i % 7 > 3} for i in range(200)]
    make_topic(broker.address, topic, 2)
    produce(broker.address, topic, [json.dumps(event).encode() for event in events], 2)
    monkeypatch.chdir(tmp_path)
    code = dict(KAFKA_EXAMPLES)[name].replace('"payments"', f'"{topic}"')
    code = re.sub(r'("group[._]id": )"fraud"', rf'\1"group of {name}"', code)
    for _ in range(2):
        # Where there is a checkpoint, another process learns nothing again.
        exec(compile(code.replace("localhost:9092", broker.address), name, "exec"), {})
        assert capsys.readouterr().out.startswith(KAFKA_PRINTED[name])
