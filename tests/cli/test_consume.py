"""`streamsvm consume` against librdkafka's mock cluster: the real protocol, over TCP."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import streamsvm
from connectors import KafkaSource, SourceError
from streamsvm import AmbiguousSVMClassifier
from streamsvm.cli import running
from streamsvm.cli.screen import figures
from streamsvm.model_files import container as model_file
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests import brokers
from tests.interruptions import ignore_ctrl_c
from tests.slow import slow_but

confluent_kafka = pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster():
    """Return the address of a broker, and a producer for it."""
    with brokers.mock() as address:
        yield address, confluent_kafka.Producer({"bootstrap.servers": address, "log_level": 0})


def produce(producer, topic, payloads, n_partitions=1):
    for i, payload in enumerate(payloads):
        producer.produce(topic, payload, partition=i % n_partitions)
    producer.flush(30)


def reader(address, group, **more):
    settings = {"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False}
    settings |= {"auto.offset.reset": "earliest", "log_level": 0}
    return confluent_kafka.Consumer(settings | more)


def events(n):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return [{"a": a, "b": b, "label": bool(a * b > 0)} for a, b in x.tolist()]


def payloads(n):
    return [json.dumps(e).encode() for e in events(n)]


def consume(address, topic, *options, **of_process):
    command = [sys.executable, "-m", "streamsvm", "consume", "--brokers", address]
    command += ["--topic", topic, "--group", f"group of {topic}", "--target", "label"]
    # Who takes the place of a killed process waits for its session to end.
    command += ["--set", "session.timeout.ms=6000", "--set", "log_level=0"]
    command += ["--gamma", "0.5", "--max-support-vectors", "200", "--json", "--quiet"]
    return subprocess.Popen(
        [*command, *map(str, options)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **of_process,
    )


def done(process):
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return json.loads(out)


def _learner(path):
    model = streamsvm.load(path)
    return list(model.steps.values())[-1] if hasattr(model, "steps") else model


def test_partitions_bad_messages_and_a_stop(cluster, tmp_path):
    address, producer = cluster
    found = events(4000)
    values = payloads(4000)
    values[100:100] = [b"{broken", b'{"a": Infinity, "label": true}', b'{"a": 1.0, "b": 2.0}']
    produce(producer, "parts", values, 4)
    path, letters = tmp_path / "run.ckpt", tmp_path / "letters.jsonl"
    options = ("--checkpoint", path, "--checkpoint-every", 500, "--dead-letters", letters)
    process = consume(address, "parts", *options, preexec_fn=ignore_ctrl_c)
    while not (path.exists() and model_file.read(path)[1]["states"]["report"]["rows"] == 4003):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
        if path.exists() and model_file.read(path)[1]["states"]["report"]["rows"] >= 3500:
            break
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    # Graceful: the rest is learnt or left for later, the checkpoint is of the last moment.
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130 and json.loads(out)["interrupted"], error
    report = done(consume(address, "parts", *options, "--idle", 3))
    assert report["rows"] == 4003
    assert report["learnt"] == 4000
    assert report["labels"] == {str(y): n for y, n in Counter(e["label"] for e in found).items()}
    assert sum(report["bad"].values()) == 3
    lines = [json.loads(line) for line in letters.read_text().splitlines()]
    assert len(lines) == 3
    # Of several partitions, whichever comes first.
    assert {line["position"]["file"] for line in lines} <= {f"parts[{i}]" for i in range(4)}
    assert {"{broken"} == {line["x"]["payload"] for line in lines if "payload" in line["x"]}


def test_lists_are_labels_of_learners_of_bags(cluster, run):
    address, producer = cluster
    labels = [["x", "y"], "x", ["y", "z"]] * 20 + [["x", 1], [None], [], {"x": 1}]
    found = [{"a": float(i % 3), "b": 1.0, "label": y} for i, y in enumerate(labels)]
    produce(producer, "bags", [json.dumps(e).encode() for e in found])
    options = ["--target", "label", "--idle", "2", "--on-error", "skip", "--json", "--quiet"]
    given = ["--brokers", address, "--topic", "bags", "--learner", "ambiguous", *options]
    report = json.loads(run("consume", *given).out)
    assert (report["rows"], report["learnt"]) == (64, 60)
    assert report["bad"] == {"not an event": 3, "bad bag": 1}
    with KafkaSource(found, "label", bags=True) as source:
        seen = []
        learning = Run(source, AmbiguousSVMClassifier(), bad_events=BadEvents("skip"))
        learning.on_progress = seen.append
        learning.execute()
    assert "in the bag" in figures(seen[-1]) and "accuracy" not in figures(seen[-1])


@pytest.mark.slow
def test_labels_of_another_topic_and_dead_letters_to_a_third(cluster, tmp_path):
    address, producer = cluster
    found = events(900)
    for i, e in enumerate(found):
        label = {"label": e.pop("label")}
        producer.produce("asked", json.dumps(e).encode(), key=str(i), partition=i % 2)
        producer.produce("answers", json.dumps(label).encode(), key=str(i), partition=0)
    producer.produce("asked", b"{broken", key="x", partition=0)
    producer.flush(30)
    options = ("--labels-topic", "answers", "--dead-letter-topic", "dead", "--idle", 3)
    report = done(consume(address, "asked", *options, "--checkpoint", tmp_path / "run.ckpt"))
    assert (report["rows"], report["learnt"]) == (901, 900)
    assert report["late"]["held"] == report["late"]["labels_held"] == 0
    assert report["late"]["answered"] == 900
    letters = reader(address, "d")
    letters.subscribe(["dead"])
    (letter,) = letters.consume(1, 30.0)
    letters.close()
    assert (letter.value(), letter.key()) == (b"{broken", b"x")
    assert dict(letter.headers())["__connect.errors.offset"] == b"450"


WRONG = {
    "--set nonsense": "use NAME=VALUE",
    "--set enable.auto.commit=true": "commits follow checkpoints",
    "--default-label no": "give --label-delay",
    "--label-moment t": "needs --label-delay",
    "--dead-letter-topic d --on-error skip": "not with --on-error skip",
    "--dead-letter-topic t": "it is read from, too",
    "--set security.protokol=SSL": 'property: "security.protokol"',
    "--set security.protocol=x": 'value "x" for configuration property "security.proto',
    "--set error_cb=x": "error_cb",
    "--dead-letter-topic d --set acks=many": 'acks"',
}


@pytest.mark.parametrize("options", WRONG)
def test_wrong_settings_are_said_at_once(options, run):
    given = ["--brokers", "127.0.0.1:1", "--topic", "t", "--target", "label"]
    error = run("consume", *given, *options.split(), code=2).err
    assert WRONG[options] in error
    assert error.count("\n") == 1, error


@pytest.mark.parametrize("quiet", slow_but([True, False], True))
def test_a_broker_that_does_not_answer_is_said_in_one_sentence(quiet, run):
    given = ["--brokers", "127.0.0.1:1", "--topic", "t", "--target", "y", "--idle", "2"]
    out, err = run("consume", *given, *["--quiet"] * quiet, code=1)
    assert err.startswith("streamsvm: --brokers 127.0.0.1:1: no broker answers within 2 s")
    assert err.count("\n") == 1 and not out


def test_reaching_a_broker_has_a_limit_and_says_who_refuses(cluster):
    from connectors.kafka.reachable import check_reachable

    class Refusing:
        def list_topics(self, timeout):
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(29))

    with pytest.raises(SourceError, match="no broker answers \\(.*uthoriz"):
        check_reachable(Refusing(), 60.0)
    began = time.monotonic()
    with pytest.raises(SourceError, match=r"within 1 s \(.*check the address"):
        check_reachable(reader("[::1]:1", "g"), 1.0)
    assert time.monotonic() - began < 10.0
    check_reachable(reader(cluster[0], "g"))


@pytest.mark.slow
def test_a_closed_checkpoint_is_not_written_when_the_group_is_left(cluster, tmp_path):
    address, producer = cluster
    produce(producer, "left", payloads(50))
    path = tmp_path / "run.ckpt"
    with KafkaSource(reader(address, "left"), "label", topics=["left"], idle=3.0) as source:
        model = streamsvm.LASVMClassifier()
        assert Run(source, model, checkpoint=Checkpoint(path)).execute().rows == 50
        # Another process may have it by now.
        path.unlink()
    assert not path.exists()


# Faults of the broker


class Flaky:
    """A consumer whose broker is gone for a while: commits fail."""

    def __init__(self, consumer, failing):
        self._consumer, self.failing = consumer, failing

    def __getattr__(self, name):
        return getattr(self._consumer, name)

    def commit(self, **options):
        if self.failing:
            raise confluent_kafka.KafkaException(self.failing.pop())
        return self._consumer.commit(**options)


def test_commits_that_fail_for_now_are_made_up_for(cluster, tmp_path):
    address, producer = cluster
    produce(producer, "flaky", payloads(500))
    codes = (-195, -185, 27, 22, 7)  # transport, timed out, rebalance, generation, request
    failing = [confluent_kafka.KafkaError(code) for code in codes]
    consumer = Flaky(reader(address, "flaky"), failing)
    with KafkaSource(consumer, "label", topics=["flaky"], idle=3.0, batch_size=50) as source:
        path = tmp_path / "run.ckpt"
        Run(source, streamsvm.LASVMClassifier(), checkpoint=Checkpoint(path, 50)).execute()
        assert source.failed_commits == 5 and not failing
        (committed,) = consumer.committed([confluent_kafka.TopicPartition("flaky", 0)])
        assert committed.offset == 500


def test_commits_that_are_refused_for_good_stop_with_a_clear_error(cluster, tmp_path):
    address, producer = cluster
    produce(producer, "refused", payloads(100))
    denied = confluent_kafka.KafkaError(30)  # the group's access is refused
    consumer = Flaky(reader(address, "refused"), [denied])
    path = tmp_path / "run.ckpt"
    with KafkaSource(consumer, "label", topics=["refused"], idle=3.0) as source:
        run = Run(source, streamsvm.LASVMClassifier(), checkpoint=Checkpoint(path, 50))
        with pytest.raises(SourceError, match="offsets cannot be committed"):
            run.execute()
    assert streamsvm.load(path).n_examples == 100


def test_a_broker_that_goes_before_partitions_are_assigned_ends_an_idle_run():
    with brokers.mock() as address:
        brokers.produce(address, "going", [b"{}"], 1)
        consumer = reader(address, "going")
        consumer.list_topics(timeout=10)
        source = KafkaSource(consumer, "label", topics=["going"], idle=0.5)
    with source, pytest.raises(SourceError, match=r"no broker answers any longer; nothing came"):
        next(batch for batch in source.batches() if len(batch))


def test_offsets_that_cannot_be_asked_for_at_once_are_asked_for_again(cluster):
    address, producer = cluster
    produce(producer, "later", payloads(60))

    class Deaf(Flaky):
        def subscribe(self, topics, on_assign, **others):
            self._consumer.subscribe(topics, on_assign=lambda c, p: on_assign(self, p), **others)

        def committed(self, *given):
            if self.failing:
                raise confluent_kafka.KafkaException(self.failing.pop())
            return self._consumer.committed(*given)

    timed_out = [confluent_kafka.KafkaError(-185) for _ in range(2)]
    with KafkaSource(
        Deaf(reader(address, "later"), timed_out), "label", topics=["later"], idle=3.0
    ) as source:
        assert sum(map(len, source.batches())) == 60
    assert not timed_out


def test_what_was_learnt_is_reported_and_saved_when_the_broker_goes(tmp_path):
    """It goes while a run reads: the messages at hand are learnt, the checkpoint has the rest."""
    path, saved = tmp_path / "c", tmp_path / "m"
    with brokers.mock() as address:
        brokers.produce(address, "gone away", payloads(400), 1)
        options = ("--idle", 2, "--checkpoint", path, "--checkpoint-every", 100, "--save", saved)
        process = consume(address, "gone away", *options)
        while not (path.exists() and model_file.read(path)[1]["states"]["report"]["rows"]):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
    out, error = process.communicate(timeout=90)
    assert process.returncode == 1
    assert "no broker answers any longer" in error
    report = json.loads(out)
    assert report["learnt"] == _learner(saved).n_examples > 0
    assert "no broker answers" in report["error"]
    assert (
        model_file.read(path)[1]["states"]["place"]["snapshot"]["offsets"]["gone away[0]"]
        == (report["rows"])
    )


def test_a_process_is_ended_only_while_a_broker_is_waited_for(monkeypatch):
    """What is saved after the run may take longer than --grace."""
    left = []
    monkeypatch.setattr(running, "_leave", left.append)
    source = SimpleNamespace(ends_at=None)
    with running.ends_within(0.05, [source, None]) as told:
        told(1)
        assert source.ends_at is not None
    time.sleep(0.2)
    assert not left
    with running.ends_within(0.05, [source]) as told:
        told(1)
        time.sleep(0.2)
    assert left == [0.05]
