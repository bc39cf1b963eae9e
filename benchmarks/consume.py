"""What consuming costs beside the client alone: ``python -m benchmarks.consume [EVENTS] [BROKER]``.

The broker is that of the argument or of ``STREAMSVM_KAFKA_BOOTSTRAP``, else Tansu, a process of its
own. Rates: a loop of confluent-kafka that only fetches, and runs with checkpoints into a linear
learner (SVMSGD), from the first event to the last, of JSON (20 and 200 floats a message) and of
Arrow (1,000 rows a message); and the command `predict` with a saved model, which produces a
prediction a row to another topic, in transactions. CPU is that of the whole process, with the
client's own threads.
Latency: another process produces 1,000 JSON events of 20 floats a second; measured is from when it
hands an event to its client until the event is predicted and learnt, and, as the floor, until
confluent-kafka's `poll` has returned it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, Producer

from connectors import KafkaSource
from streamsvm import AdaptiveSVMClassifier, SVMSGDClassifier
from streamsvm.cli.main import main as main_of_command
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.brokers import make_topic, produce, tansu
from tests.consumers import arrow_bytes

_ROWS = 1000
_EVENTS_A_SECOND = 1000
_SECONDS = 20


def _payloads(n: int, width: int, rows: int) -> list[bytes]:
    """Return n events of so many floats: as JSON, or with `rows` above 0 so many a record batch."""
    x = np.random.default_rng(0).normal(size=(n, width))
    names = [f"f{i}" for i in range(width)]
    labels = x @ np.arange(float(width)) > 0
    if not rows:
        pairs = zip(x.tolist(), labels.tolist(), strict=True)
        found = (dict(zip(names, row, strict=True)) | {"label": y} for row, y in pairs)
        return [json.dumps(event).encode() for event in found]
    columns = dict(zip(names, x.T.copy(), strict=True)) | {"label": labels}
    whole = pa.record_batch(columns)
    parts = (whole.slice(start, rows) for start in range(0, n, rows))
    return [arrow_bytes(pa.record_batch(part.to_pydict(), whole.schema)) for part in parts]


def _topic(name: str) -> str:
    """Return the name of a topic that was not there before: a broker may be used again."""
    return f"{name}-{time.time_ns()}"


def _consumer(brokers: str, topic: str | None = None) -> Any:
    settings = {"bootstrap.servers": brokers, "group.id": f"bench {time.time()}", "log_level": 0}
    # As the command has it: by default librdkafka fetches nothing for a second when enough waits.
    settings |= {"fetch.queue.backoff.ms": 10}
    consumer = Consumer(settings | {"enable.auto.commit": False, "auto.offset.reset": "earliest"})
    if topic is not None:
        consumer.subscribe([topic])
    return consumer


def _cost(n: int, work: Callable[[Callable[[], None]], None]) -> tuple[float, float]:
    """Return events a second and microseconds of CPU an event of work, which says when it began."""
    began: list[float] = []

    def begin() -> None:
        if not began:
            began.extend((time.perf_counter(), time.process_time()))

    work(begin)
    seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    return n / seconds, 1e6 * cpu / n


def _fetched(brokers: str, topic: str, n: int) -> Callable[[Callable[[], None]], None]:
    def work(begin: Callable[[], None]) -> None:
        consumer, done = _consumer(brokers, topic), 0
        while done < n:
            for message in consumer.consume(500, 0.0) or consumer.consume(1, 0.5):
                begin()
                done += bool(message.value())

    return work


@contextmanager
def _run(
    brokers: str, topic: str, decode: str, model: Any, limit: int, begin: Callable[[], None]
) -> Iterator[Run]:
    """Give a run of a topic with checkpoints; `begin` is called when the first event comes."""
    with tempfile.TemporaryDirectory() as folder:
        exclude = ["number"]
        source = KafkaSource(
            _consumer(brokers), "label", topics=[topic], decode=decode, exclude=exclude
        )
        fetched = source.batches

        def batches(size: int | None = None) -> Any:
            for batch in fetched(size):
                if len(batch):
                    begin()
                yield batch

        source.batches = batches  # type: ignore[method-assign]
        checkpoint = Checkpoint(Path(folder) / "run.ckpt")
        with source:
            yield Run(source, model, limit=limit, checkpoint=checkpoint)


def _learnt(brokers: str, topic: str, decode: str, n: int) -> Callable[[Callable[[], None]], None]:
    def work(begin: Callable[[], None]) -> None:
        with _run(brokers, topic, decode, SVMSGDClassifier(), n, begin) as run:
            run.execute()

    return work


def _predicted(
    brokers: str, topic: str, decode: str, n: int, model: str
) -> Callable[[Callable[[], None]], None]:
    """Return what predicts a topic by the command, and produces predictions to another one."""
    make_topic(brokers, scored := _topic("scored"), 1)
    command = ["predict", model, "--brokers", brokers, "--topic", topic, "--decode", decode]
    command += ["--output-topic", scored, "--group", scored, "--limit", str(n)]
    command += ["--set", "fetch.queue.backoff.ms=10"]

    def work(begin: Callable[[], None]) -> None:
        # It looks at the first batch with rows.
        with patch("streamsvm.cli.scoring.topic._check_kinds", lambda *_: begin()):
            assert main_of_command(command) == 0

    return work


# Latency


def _produce_slowly(brokers: str, topic: str, n: int, times: str) -> None:
    """Produce events at an even pace; write the moment of each to the file `times`."""
    # Without linger.ms=0 the client itself holds each event for 5 ms.
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0, "linger.ms": 0})
    moments = np.zeros(n)
    payloads = _payloads(n, 20, 0)
    start = time.time()
    for i, payload in enumerate(payloads):
        while (early := start + i / _EVENTS_A_SECOND - time.time()) > 0:
            time.sleep(early)
        moments[i] = time.time()
        producer.produce(topic, payload, partition=0)
        producer.poll(0)
    producer.flush(30)
    np.save(times, moments)


@contextmanager
def _slow_producer(brokers: str, topic: str, n: int) -> Iterator[Callable[[], Any]]:
    """Give what waits for the producer, and returns the moments at which it produced."""
    with tempfile.TemporaryDirectory() as folder:
        times = f"{folder}/times.npy"
        command = [sys.executable, "-m", "benchmarks.consume", "--produce", brokers, topic, str(n)]
        process = subprocess.Popen([*command, times])

        def moments() -> Any:
            assert process.wait(60) == 0
            return np.load(times)

        try:
            yield moments
        finally:
            process.kill()


def _shown(what: str, done: Any, produced: Any) -> None:
    waited = 1e3 * (done - produced)[_EVENTS_A_SECOND:]  # not the first second: warming up
    low, high = np.percentile(waited, [50, 99])
    print(f"{what:32} median {low:6.1f} ms   p99 {high:6.1f} ms   most {waited.max():6.1f} ms")


def _latencies(brokers: str) -> None:
    n = _EVENTS_A_SECOND * _SECONDS
    topic = _topic("bare")
    make_topic(brokers, topic, 1)
    consumer, done = _consumer(brokers, topic), []
    consumer.poll(3.0)
    with _slow_producer(brokers, topic, n) as moments:
        while len(done) < n:
            if (message := consumer.poll(0.5)) is not None and message.error() is None:
                done.append(time.time())
        _shown("confluent-kafka, poll", np.array(done), moments())
    for name, model in (("SVMSGD", SVMSGDClassifier()), ("default", AdaptiveSVMClassifier())):
        topic, done = _topic(name), []
        make_topic(brokers, topic, 1)
        # Compiled code is there before the clock runs, for small batches and for large ones.
        make_topic(brokers, warm := _topic("warm"), 1)
        produce(brokers, warm, _payloads(3000, 20, 0), 1)
        with _run(brokers, warm, "json", model.clone(), 3000, lambda: None) as run:
            run.execute()
        with _run(brokers, topic, "json", model, n, lambda: None) as run:

            def note(now: Any, done: list[float] = done) -> None:
                done.extend([time.time()] * (now.rows - len(done)))

            run.on_progress = note
            with _slow_producer(brokers, topic, n) as moments:
                run.execute()
                _shown(f"learnt by {name}", np.array(done[:n]), moments())


def _rates(brokers: str, n: int) -> None:
    kinds = (("json", 20, 0, n), ("json", 200, 0, n // 5), ("arrow", 20, _ROWS, 10 * n))
    for decode, width, rows, size in kinds:
        topic = _topic(f"{decode}-{width}")
        make_topic(brokers, topic, 1)
        payloads = _payloads(size, width, rows)
        produce(brokers, topic, payloads, 1)
        # Compiled code is there before the clock runs.
        _learnt(brokers, topic, decode, 2000)(lambda: None)
        model = SVMSGDClassifier()
        x = np.random.default_rng(0).normal(size=(1000, width))
        model.learn_many(
            pa.record_batch(list(x.T.copy()), [f"f{i}" for i in range(width)]), x[:, 0] > 0
        )
        model.save(path := f"{tempfile.gettempdir()}/{topic}.svm")
        for _ in range(2):
            bare = _cost(size, _fetched(brokers, topic, len(payloads)))
            run = _cost(size, _learnt(brokers, topic, decode, size))
            scored = _cost(size, _predicted(brokers, topic, decode, size, path))
            print(
                f"{decode}, {width} features: fetched alone {bare[0]:10,.0f} a second "
                f"({bare[1]:5.2f} us CPU), learnt {run[0]:10,.0f} ({run[1]:5.2f} us CPU), "
                f"predicted to a topic {scored[0]:10,.0f} ({scored[1]:5.2f} us CPU)"
            )


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--produce"]:
        brokers, topic, n, times = sys.argv[2:]
        _produce_slowly(brokers, topic, int(n), times)
        return
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    brokers = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("STREAMSVM_KAFKA_BOOTSTRAP")
    with contextmanager(lambda: iter([brokers]))() if brokers else tansu() as address:
        _rates(address, n)
        _latencies(address)


if __name__ == "__main__":
    main()
