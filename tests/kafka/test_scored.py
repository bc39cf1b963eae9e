"""Predictions in a topic of their own: each once, whatever happens to the process."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import confluent_kafka
import pytest

import streamsvm
from connectors import ScoredTopic
from streamsvm import StandardScaler, SVMSGDClassifier
from streamsvm.cli.main import main
from streamsvm.model_files import container, replacing
from tests.brokers import QUIET, make_topic, produce
from tests.kafka.conftest import started
from tests.kafka.runs import payloads
from tests.slow import slow_but

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


def read(broker, topic, n_partitions=2, isolation="read_committed"):
    """Return all messages of a topic, decoded, in the order of their partitions."""
    settings = {"bootstrap.servers": broker.address, "group.id": "reader"} | QUIET
    settings |= {"auto.offset.reset": "earliest", "isolation.level": isolation}
    consumer = confluent_kafka.Consumer(settings | {"enable.partition.eof": True})
    consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(n_partitions)])
    found, n_ended = [], 0
    while n_ended < n_partitions:
        message = consumer.poll(10.0)
        n_ended += message.error() is not None
        found += [message] if message.error() is None else []
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
            assert sum(one["probabilities"].values()) == pytest.approx(1.0)
    assert sorted(one["learnt"] for one in found) == list(range(400))
    assert (n_scored, n_right / n_scored) == (report["scored"], pytest.approx(report["accuracy"]))


class _Killed(BaseException):
    """What ends a run as `kill -9` would, but for the memory of the process."""


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_process_that_ends_in_a_commit(broker, capsys, monkeypatch, is_committed):
    """The new checkpoint counts if the broker has committed the predictions, and else does not."""
    events, scored = topics(broker, 300)

    def die(*args):
        if is_committed and not str(args[0]).endswith(".next"):
            return rename(*args)
        raise _Killed

    own, rename = ["--checkpoint", "run.ckpt", "--checkpoint-every", "100"], replacing.rename
    with monkeypatch.context() as patched:
        patched.setattr(*((replacing, "rename") if is_committed else (ScoredTopic, "commit")), die)
        with pytest.raises(_Killed):
            consume(broker, events, scored, *own)
    left = container.read("run.ckpt.next")[1]["states"]["place"]["taken"]
    assert container.read("run.ckpt")[1]["states"]["place"]["taken"] < left
    capsys.readouterr()
    assert consume(broker, events, scored, *own, "--save", "model.svm") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["resumed_after"] == (left if is_committed else 0)
    found = read(broker, scored)
    assert sorted((one["partition"], one["offset"]) for one in found) == [
        (p, i) for p in range(2) for i in range(150)
    ]
    assert streamsvm.load("model.svm").steps["SVMSGDClassifier"].n_examples == 300


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Give a saved model of these events, with a scaler."""
    found = StandardScaler() | SVMSGDClassifier(seed=0)
    for payload in payloads(500):
        event = json.loads(payload)
        found.learn_one({"a": event["a"]}, event["label"])
    path = tmp_path_factory.mktemp("model") / "model.svm"
    streamsvm.save(found, path)
    return str(path)


def predict(broker, model, topic, *options):
    command = ["predict", model, "--brokers", broker.address, "--topic", topic, "--idle", "1.5"]
    return [*command, "--group", topic, *options]


def test_a_topic_is_predicted(broker, model, capsys):
    """Messages without labels, and some that nothing is predicted for; each once in two runs."""
    events, scored = topics(broker, 0)
    sent = [b'{"a": %d, "id": %d}' % (i % 7, i) for i in range(300)]
    sent[10], sent[20] = b'{"a"', b'{"a": 1e999, "id": 20}'
    produce(broker.address, events, sent, 2)
    own = ["--output-topic", scored, "--keep", "id", "--probabilities"]
    assert main(predict(broker, model, events, *own, "--limit", "10")) == 0
    assert main(predict(broker, model, events, *own)) == 0
    assert "2 of them without a prediction" in capsys.readouterr().err
    found = read(broker, scored)
    each_once(found, 300, 2)
    loaded = streamsvm.load(model)
    for one in found:
        if one["prediction"] is None:
            assert 2 * one["offset"] + one["partition"] in (10, 20) and one["reason"]
            continue
        i = one["fields"]["id"]
        assert one["prediction"] == loaded.predict_one({"a": i % 7})
        expected = {json.dumps(y): p for y, p in loaded.predict_proba_one({"a": i % 7}).items()}
        assert one["probabilities"] == pytest.approx(expected)
        assert one["model"].startswith("model.svm ") and "learnt" not in one


def test_predictions_as_lines_and_as_a_file(broker, model, capsys):
    events, _ = topics(broker, 100)
    own = ["--group", "lines", "--target", "label", "--limit", "100"]
    assert main(predict(broker, model, events, *own)) == 0
    lines, said = capsys.readouterr()
    each_once(map(json.loads, lines.splitlines()), 100, 2)
    own = ["--group", "file", "--output", "out.jsonl", "--keep", "id", *own[2:]]
    assert main(predict(broker, model, events, *own)) == 0
    assert capsys.readouterr().out in said
    with open("out.jsonl") as file:
        rows = [json.loads(line) for line in file]
    assert {row["id"] for row in rows} == set(map(str, range(100)))
    assert {row["file"] for row in rows} == {f"{events}[0]", f"{events}[1]"}
    # Both have committed what they have read.
    for group in ("lines", "file"):
        assert main(predict(broker, model, events, "--group", group)) == 0
        assert capsys.readouterr().out == ""
    assert main(predict(broker, model, events, "--target", "label", "--columns", "b")) == 1


def each_once(found, n, n_partitions):
    """Check that there is one prediction for each event."""
    found = sorted((one["partition"], one["offset"]) for one in found)
    sizes = [sum(p == partition for p, _ in found) for partition in range(n_partitions)]
    assert found == [(p, i) for p, size in enumerate(sizes) for i in range(size)]
    assert len(found) == n


@pytest.mark.parametrize(
    "frozen", slow_but([["--frozen", "--frozen-b"], []], ["--frozen", "--frozen-b"])
)
def test_two_models_on_a_topic(broker, model, capsys, frozen):
    events, _ = topics(broker, 400)
    other = StandardScaler() | SVMSGDClassifier(seed=0)
    for i in range(20):
        other.learn_one({"a": i % 7}, i % 7 <= 3)
    streamsvm.save(other, "other.svm")
    command = ["compare", "--brokers", broker.address, "--topic", events, "--target", "label"]
    command += ["--model", model, "--against", "other.svm", *frozen, "--idle", "1.5", "--json"]
    assert main([*command, "--group", f"{time.time_ns()}", "--exclude", "id", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["decision"]) == (400, "a")
    n_right = sum(other.predict_one({"a": i % 7}) == (i % 7 > 3) for i in range(400))
    if frozen:
        assert found["b"]["accuracy"] == pytest.approx(n_right / 400)
    else:
        assert found["b"]["accuracy"] > n_right / 400


def command_of(broker, model, learns, events, scored, name):
    """Return a command that predicts a topic, and learns it, too, if it `learns`."""
    found = [sys.executable, "-m", "streamsvm", *predict(broker, model, events)]
    if learns:
        found[3:5] = ["consume"]
        found += ["--target", "label", "--learner", "sgd", "--exclude", "id", "--no-monitor"]
        found += ["--checkpoint", f"{name}.ckpt", "--checkpoint-seconds", "0.3", "--quiet"]
    return [*found, "--output-topic", scored]


def feed(broker, topic, n, pace, n_partitions=2):
    """Produce so many events a second."""
    for start in range(0, n, pace // 10):
        produce(broker.address, topic, payloads(pace // 10, start), n_partitions)
        time.sleep(0.1)


def kills_of(broker, model, learns, n, kills, pace):
    """Kill a command so often while n events come; each must be predicted once, and learnt once."""
    events, scored = topics(broker, 0)
    feeding = threading.Thread(target=feed, args=(broker, events, n, pace))
    feeding.start()
    command = [*command_of(broker, model, learns, events, scored, events), "--idle", "2.5", *FAST]
    # A member with a name is not waited for.
    command += ["--set", f"group.instance.id={events}"]
    rng, exits = random.Random(n + learns), []
    for left in range(kills, -1, -1):
        with open(f"{events}.log", "ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        if left:
            time.sleep(rng.uniform(2.5, 4.5))
            process.kill()
        exits.append(process.wait(120))
    feeding.join()
    with open(f"{events}.log") as file:
        assert exits == [-9] * kills + [0], file.read()
    each_once(read(broker, scored), n, 2)
    if learns:
        model = streamsvm.load(f"{events}.ckpt")
        assert model.steps["SVMSGDClassifier"].n_examples == n


def test_kills(broker, model):
    """Both ways at once, to save time."""
    with ThreadPoolExecutor() as pool:
        done = [pool.submit(kills_of, broker, model, way, 1200, 1, 400) for way in (True, False)]
        for one in done:
            one.result()


@pytest.mark.slow
@pytest.mark.parametrize("learns", [True, False])
def test_many_kills(broker, model, learns):
    kills_of(broker, model, learns, n=150_000, kills=20, pace=2000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", ["session.timeout.ms=6000", "partition.assignment.strategy=cooperative-sticky",
            "group.protocol=consumer"]
)  # fmt: skip
@pytest.mark.parametrize("learns", [True, False])
def test_members_are_killed(broker, model, learns, how):
    """Three of them, killed or told to end at any time: each event is predicted and learnt once."""
    n, n_partitions = 24_000, 6
    events, scored = topics(broker, 0, n_partitions)
    feeding = threading.Thread(target=feed, args=(broker, events, n, 1000, n_partitions))
    feeding.start()
    rng, codes = random.Random(len(how) + learns), Counter()

    def start(i):
        command = command_of(broker, model, learns, events, scored, f"m{i}")
        command += ["--idle", "8", "--set", how]
        command += [] if how.startswith("group.protocol") else FAST
        command += ["--peers", "m*.ckpt"] if learns else []
        with open("log", "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    members = [start(i) for i in range(3)]
    time.sleep(4.0)
    while feeding.is_alive():
        time.sleep(rng.uniform(1.0, 4.0))
        i = rng.randrange(3)
        members[i].send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
        codes[members[i].wait(20)] += 1
        members[i] = start(i)
    codes.update(member.wait(120) for member in members)
    last = start(0)
    codes[last.wait(120)] += 1
    with open("log") as file:
        # -15: told to end before it could be noticed.
        assert set(codes) <= {-9, -15, 130, 0}, (codes, file.read())
    assert codes[-9] > 0
    each_once(read(broker, scored, n_partitions), n, n_partitions)
    if learns:
        learnt = [streamsvm.load(f"m{i}.ckpt").steps["SVMSGDClassifier"] for i in range(3)]
        assert sum(one.n_examples for one in learnt) == n


@pytest.mark.slow
def test_the_broker_is_gone(tmp_path, model, capsys):
    """A run that is told to end does; what was not committed is predicted again."""
    with started() as own:
        events, scored = topics(own, 600)
        command = [*command_of(own, model, True, events, scored, "run"), *FAST]
        command[command.index("0.3")] = "60"
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            while len(read(own, scored, isolation="read_uncommitted")) < 600:
                time.sleep(0.2)
            own.nodes[0].send(signal.SIGSTOP)
            told = time.monotonic()
            process.send_signal(signal.SIGTERM)
            said = b"".join(process.communicate(timeout=30)).decode()
            assert time.monotonic() - told < 11.0
        assert process.returncode == 1 and "600" in said, said
        own.nodes[0].send(signal.SIGCONT)
        assert subprocess.run([*command, "--idle", "2"], check=False).returncode == 0
        each_once(read(own, scored), 600, 2)
