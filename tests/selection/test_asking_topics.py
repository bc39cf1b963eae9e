"""`streamsvm consume --label-budget`: questions go to a topic, answers come from another one."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import streamsvm
from tests import brokers

confluent_kafka = pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")
ROOT = Path(__file__).resolve().parents[2]


def events(n):
    x = np.random.default_rng(0).normal(size=(n, 2))
    return [{"id": f"e{i}", "a": a, "b": b} for i, (a, b) in enumerate(x.tolist())]


def answer_until_done(process, address, producer):
    """Answer each question that comes; return the questions."""
    settings = {"bootstrap.servers": address, "group.id": "expert", "log_level": 0}
    expert = confluent_kafka.Consumer(settings | {"auto.offset.reset": "earliest"})
    expert.subscribe(["questions"])
    asked = []
    while process.poll() is None:
        message = expert.poll(0.1)
        if message is not None and not message.error():
            asked.append(json.loads(message.value()))
            assert message.key().decode() == asked[-1]["key"]
            x = asked[-1]["x"]
            label = json.dumps({"id": asked[-1]["key"], "bought": x["a"] * x["b"] > 0})
            producer.produce("answers", label, partition=0)
            producer.poll(0)
    expert.close()
    return asked


def test_an_expert_answers_what_is_asked(tmp_path):
    with brokers.mock() as address:
        producer = confluent_kafka.Producer({"bootstrap.servers": address, "log_level": 0})
        found = events(1500)
        producer.produce("answers", json.dumps({"id": "none", "bought": True}), partition=0)
        producer.produce("questions", json.dumps({"key": "k", "x": {"a": 1.0, "b": 1.0}}), key="k")
        command = [sys.executable, "-m", "streamsvm", "consume", "--brokers", address]
        command += ["--topic", "visits", "--labels-topic", "answers", "--key", "id"]
        command += ["--target", "bought", "--label-budget", ".2", "--questions-topic", "questions"]
        command += ["--gamma", ".5", "--idle", "4", "--save", tmp_path / "m.svm", "--json"]
        command += ["--checkpoint", tmp_path / "run.ckpt", "--checkpoint-every", "100", "--quiet"]
        for event in found[:300]:
            producer.produce("visits", json.dumps(event), partition=0)
        producer.flush(30)
        process = subprocess.Popen(
            list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        time.sleep(2)
        for event in found[300:]:
            producer.produce("visits", json.dumps(event), partition=0)
        producer.flush(30)
        asked = answer_until_done(process, address, producer)
        out, error = process.communicate()
    assert process.returncode == 0, error
    report, model = json.loads(out), streamsvm.load(tmp_path / "m.svm")
    assert report["asked"]["events"] == model.n_seen == 1500
    assert len(asked) - 1 == model.n_asked == report["asked"]["asked"]
    assert model.n_answered == report["late"]["answered"] == report["learnt"] > 200
    assert report["late"]["not_asked"] == 1500 - model.n_asked
    x = np.array([[e["a"], e["b"]] for e in found])
    right = [model.classifier.predict_one({"a": a, "b": b}) == (a * b > 0) for a, b in x.tolist()]
    assert np.mean(right) > 0.85
