"""The examples of the documentation, run."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")

from tests import brokers

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "kafka.md").read_text()
EXAMPLES = re.findall(r"## ([^\n]+)\n(?:(?!\n## ).)*?```python\n(.*?)```", TEXT, re.DOTALL)
PRINTED = {
    "confluent-kafka": "200",
    "kafka-python": "200",
    "aiokafka": "200",
    "quixstreams, and other clients with confluent-kafka's `poll`": "200",
    "Iterators": "3",
    "Labels that come later": "{'held': 0, 'labels_held': 0, 'answered': 200, 'before_event': ",
    "Serving beside learning": "True",
}


@pytest.fixture(scope="module")
def broker():
    with brokers.tansu() as address:
        payments = [{"amount": float(i % 7), "fraud": i % 7 > 3} for i in range(200)]
        for topic in ("payments", "orders", "complaints"):
            brokers.make_topic(address, topic, 2)
        brokers.produce(address, "payments", [json.dumps(p).encode() for p in payments], 2)
        keys = [str(i) for i in range(200)]
        labels = [{"complained": payment.pop("fraud")} for payment in payments]
        brokers.produce(address, "orders", [json.dumps(p).encode() for p in payments], 2, keys)
        brokers.produce(address, "complaints", [json.dumps(y).encode() for y in labels], 2, keys)
        yield address


def test_all_examples_are_here():
    assert {name for name, _ in EXAMPLES} == set(PRINTED)


@pytest.mark.parametrize(("name", "code"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_an_example(name, code, broker, tmp_path, monkeypatch, capsys):
    if "quixstreams" in name:
        pytest.importorskip("quixstreams", reason="pip install quixstreams")
    monkeypatch.chdir(tmp_path)
    # Each is a group of its own: the assignors of the clients do not get on with each other.
    code = re.sub(r'("group[._]id": )"fraud"', rf'\1"group of {name}"', code)
    exec(compile(code.replace("localhost:9092", broker), name, "exec"), {})
    assert capsys.readouterr().out.startswith(PRINTED[name])
