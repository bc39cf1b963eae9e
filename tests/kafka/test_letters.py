"""Dead letters in a topic can be produced again; topics that are not there are refused."""

import json
import time

import confluent_kafka
import pytest

from streamsvm.cli.main import main
from tests.brokers import QUIET, make_topic

pytestmark = pytest.mark.kafka


def consume(broker, topic, *options):
    own = ["--learner", "sgd", "--idle", "3", "--quiet", "--json", "--max-errors", "100%"]
    read = ["consume", "--brokers", broker.address, "--topic", topic, "--target", "y"]
    return main([*read, "--group", f"{time.time_ns()}", *own, *options])


def test_letters_are_replayed(broker, capsys):
    paid, dead = (f"{name}-{time.time_ns()}" for name in ("paid", "dead"))
    assert consume(broker, paid, "--dead-letter-topic", dead) == 1
    assert f"topic `{dead}`" in capsys.readouterr().err
    for topic in (paid, dead):
        make_topic(broker.address, topic, 2)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address} | QUIET)
    now = 1000 * int(time.time())  # older messages are removed by the topics' retention
    for i in range(200):
        value = json.dumps({"a": i % 7, "y": i % 2}) + ("" if i % 20 else "}")
        more = {"headers": [("trace", b"%d" % i)], "timestamp": now + i, "partition": i % 2}
        producer.produce(paid, value, b"k%d" % i, **more)
    producer.flush()
    assert consume(broker, paid, "--dead-letter-topic", dead) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["learnt"], report["bad"]) == (190, {"undecodable": 10})
    # As docs/kafka.md says.
    settings = {"bootstrap.servers": broker.address, "group.id": dead, "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings | {"auto.offset.reset": "earliest"} | QUIET)
    consumer.subscribe([dead])
    n = 0
    while n < 10 and (letter := consumer.poll(30.0)) is not None:
        said = dict(letter.headers())
        topic = said["__connect.errors.topic"].decode()
        own = [one for one in letter.headers() if not one[0].startswith("__connect.errors.")]
        key = said.get("__connect.errors.key", letter.key())
        i = int(letter.key()[1:])
        assert (own, letter.timestamp()[1]) == ([("trace", b"%d" % i)], now + i)
        assert int(said["__connect.errors.offset"]) == i // 2
        more = {"key": key, "headers": own, "timestamp": letter.timestamp()[1]}
        producer.produce(topic, letter.value()[:-1], **more)
        n += 1
    producer.flush()
    consumer.commit(asynchronous=False)
    consumer.close()
    assert n == 10
    assert consume(broker, paid) == 0
    assert json.loads(capsys.readouterr().out)["learnt"] == 200
