"""Predictions in a topic of their own: each once, whatever happens to the process."""

import json
import time

import confluent_kafka
import pytest

from streamsvm.cli.main import main
from tests.brokers import QUIET, make_topic, produce
from tests.kafka.runs import payloads

pytestmark = pytest.mark.kafka

FAST = ["--set", "session.timeout.ms=6000", "--set", "heartbeat.interval.ms=300"]


def topics(broker, n, n_partitions=2):
    """Make a topic of n events, and one for predictions; return their names."""
    events, scored = (f"{name}-{time.time_ns()}" for name in ("events", "scored"))
    for topic in (events, scored):
        make_topic(broker.address, topic, n_partitions)
    keys = [b"k%d" % i for i in range(n)]
    produce(broker.address, events, payloads(n), n_partitions, keys)
    return events, scored


def read(broker, topic, isolation="read_committed", seconds=3.0):
    """Return all messages of a topic, decoded, in the order of their partitions."""
    settings = {"bootstrap.servers": broker.address, "group.id": f"{time.time_ns()}"} | QUIET
    settings |= {"auto.offset.reset": "earliest", "isolation.level": isolation}
    consumer = confluent_kafka.Consumer(settings | {"enable.auto.commit": False})
    consumer.subscribe([topic])
    found = []
    while batch := consumer.consume(10_000, seconds if found else 10.0):
        found += [message for message in batch if message.error() is None]
    consumer.close()
    return [json.loads(m.value()) | {"own key": m.key()} for m in found]


def consume(broker, topic, scored, *options):
    command = ["consume", "--brokers", broker.address, "--topic", topic, "--target", "label"]
    command += ["--learner", "sgd", "--exclude", "id", "--idle", "1.5", "--quiet", "--json", *FAST]
    return main([*command, "--group", topic, "--no-monitor", "--output-topic", scored, *options])


def test_each_prediction_is_that_of_the_report(broker, capsys, tmp_path):
    events, scored = topics(broker, 400)
    own = ["--checkpoint", "run.ckpt", "--output-fields", "id,other", "--probabilities"]
    assert consume(broker, events, scored, *own) == 0
    report = json.loads(capsys.readouterr().out)
    found = read(broker, scored)
    assert len(found) == len({(one["partition"], one["offset"]) for one in found}) == 400
    n_right = n_scored = 0
    for one in found:
        i = one["fields"]["id"]
        assert (one["partition"], one["offset"]) == (i % 2, i // 2)
        assert (one["topic"], one["key"], one["own key"]) == (events, f"k{i}", b"k%d" % i)
        assert one["fields"]["other"] is None and one["model"] == "run.ckpt"
        if one["prediction"] is not None:
            n_scored += 1
            n_right += one["prediction"] == (i % 7 > 3)
            likely = max(one["probabilities"], key=one["probabilities"].get)
            assert json.loads(likely) == one["prediction"] or one["learnt"] < 5
    assert sorted(one["learnt"] for one in found) == list(range(400))
    assert (n_scored, n_right / n_scored) == (report["scored"], pytest.approx(report["accuracy"]))
