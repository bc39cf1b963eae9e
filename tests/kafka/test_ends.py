"""Brokers that freeze or die while a run goes on, and what is waited for."""

import json
import signal
import subprocess
import sys
import time

import pytest
from confluent_kafka import Producer

from streamsvm.model_files import container
from tests.brokers import QUIET, make_topic
from tests.kafka.conftest import started
from tests.kafka.runs import learnt, made, payloads, source_of

pytestmark = pytest.mark.kafka


@pytest.fixture
def consume():
    """Start the command; what a test leaves is killed."""
    running = []

    def start(*args):
        running.append(consuming(*args))
        return running[-1]

    yield start
    for process in running:
        with process:
            process.kill()


def consuming(address, topic, path, *more):
    command = [sys.executable, "-m", "streamsvm", "consume", "--brokers", address, "--topic", topic]
    command += ["--target", "label", "--exclude", "id", "--learner", "sgd", "--no-monitor"]
    command += ["--group", topic, "--checkpoint", str(path), "--checkpoint-every", "500", "--json"]
    command += ["--checkpoint-seconds", "1", "--set", "session.timeout.ms=6000", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rows_in(path):
    return container.read(path)[1]["states"]["report"]["rows"] if path.exists() else 0


def wait_for(wanted, process):
    for _ in range(600):
        if wanted():
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    raise AssertionError("it did not come")


@pytest.fixture(scope="module")
def own():
    with started(1) as cluster:
        yield cluster


def test_a_run_that_is_told_to_end_ends_without_a_broker(own, consume, tmp_path):
    topic, path, node = "frozen", tmp_path / "run.ckpt", own.nodes[0]
    made(own.address, topic, 2, 2000)
    process = consume(own.address, topic, path)
    wait_for(lambda: rows_in(path) >= 2000, process)
    node.send(signal.SIGSTOP)
    try:
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=60)
    finally:
        node.send(signal.SIGCONT)
    # Within the grace: its watch has not fired.
    assert process.returncode == 130 and "--grace" not in error
    assert json.loads(out)["rows"] == rows_in(path) == 2000


def test_a_broker_that_dies_while_its_messages_are_learnt(own, consume, tmp_path):
    """What was fetched is learnt, the run waits, says so, and goes on."""
    topic, path, node = "backlog", tmp_path / "run.ckpt", own.nodes[0]
    n = 150_000
    made(own.address, topic, 2, n)
    process = consume(own.address, topic, path)
    wait_for(lambda: rows_in(path) >= 5000, process)
    node.end(signal.SIGKILL)
    assert rows_in(path) < n
    time.sleep(8)
    node.start()
    node.wait()
    wait_for(lambda: rows_in(path) == n, process)
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130 and "no broker answers" in error
    assert json.loads(out)["rows"] == n


def test_an_open_transaction_is_said_and_its_mark_is_no_lag(broker):
    topic = "transactions"
    make_topic(broker.address, topic, 1)
    settings = {"bootstrap.servers": broker.address, "transactional.id": topic}
    producer = Producer(settings | QUIET)
    producer.init_transactions(30)
    for n in (100, 50):
        producer.begin_transaction()
        for payload in payloads(n):
            producer.produce(topic, payload)
        producer.flush(10)
        if n == 100:
            producer.commit_transaction(30)
    source, said, lags = source_of(broker.address, topic, idle=6.5), [], []

    def tell(why):
        said.append(why)
        lags.append(source.lag)
        producer.commit_transaction(30)

    source.on_long_wait = tell
    report = learnt(source)
    assert len(said) == 1 and "50 are known to be there" in said[0] and "transaction" in said[0]
    assert (report.rows, lags, source.lag, "lag" in report.source) == (150, [50], 0, False)
