"""What consuming costs beside the bare client loop: ``python -m benchmarks.consume 100000``.

Events of 20 floats come from a broker process (Tansu: the mock cluster keeps 5 MB a partition only)
as JSON, one a message, and as Arrow, 256 a message. Printed are events a second of a loop that only
fetches messages, of one that decodes them, too, and of a run into a linear learner (SVMSGD),
with and without checkpoints.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer

from connectors import KafkaSource
from connectors.payloads import decoder_of
from streamsvm import SVMSGDClassifier
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.brokers import make_topic, produce, tansu
from tests.consumers import arrow_bytes

_ROWS = 256


def _payloads(n: int) -> dict[str, list[bytes]]:
    x = np.random.default_rng(0).normal(size=(n, 20))
    names = [f"f{i}" for i in range(20)]
    labels = x @ np.arange(20.0) > 0
    rows = [
        dict(zip(names, row, strict=True)) | {"label": label}
        for row, label in zip(x.tolist(), labels.tolist(), strict=True)
    ]
    tables = []
    for start in range(0, n, _ROWS):
        columns = {name: x[start : start + _ROWS, i] for i, name in enumerate(names)}
        batch = pa.record_batch(columns | {"label": labels[start : start + _ROWS]})
        tables.append(arrow_bytes(batch))
    return {"json": [json.dumps(row).encode() for row in rows], "arrow": tables}


def _consumer(brokers: str, group: str, topic: str | None = None) -> Any:
    settings = {"bootstrap.servers": brokers, "group.id": group, "enable.auto.commit": False}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "log_level": 0})
    if topic is not None:
        consumer.subscribe([topic])
    return consumer


def _seconds(consumer: Any, n: int, work: Callable[[bytes], Any]) -> float:
    """Return seconds from the first message to the last of n."""
    done, start = 0, 0.0
    while done < n:
        for message in consumer.consume(500, 0.5):
            start = start or time.perf_counter()
            work(message.value())
            done += 1
    return time.perf_counter() - start


def _run(brokers: str, group: str, decode: str, n: int, path: Path | None) -> float:
    """Return seconds from the first event to the last of n."""
    moments: list[float] = []

    def note(_: Any) -> None:
        moments.append(time.perf_counter())

    source = KafkaSource(_consumer(brokers, group), "label", topics=[decode], decode=decode)
    model = SVMSGDClassifier()
    checkpoint = Checkpoint(path, every=10_000) if path else None
    with source:
        fetched = source.batches

        def batches(size: int | None = None) -> Any:
            for batch in fetched(size):
                if len(batch) and not moments:
                    moments.append(time.perf_counter())
                yield batch

        source.batches = batches  # type: ignore[method-assign]
        Run(source, model, limit=n, checkpoint=checkpoint, on_progress=note).execute()
    return moments[-1] - moments[0]


def main() -> None:
    """Measure and print."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tansu() as brokers:
        _measure(brokers, n)


def _measure(brokers: str, n: int) -> None:
    for topic, payloads in _payloads(n).items():
        make_topic(brokers, topic, 1)
        produce(brokers, topic, payloads, 1)
        decode = decoder_of(topic)
        # Compiled code is there before the clock runs.
        _run(brokers, f"{topic} warm", topic, 2000, None)
        bare = _seconds(_consumer(brokers, f"{topic} bare", topic), len(payloads), len)
        decoded = _seconds(_consumer(brokers, f"{topic} decoded", topic), len(payloads), decode)
        run = _run(brokers, f"{topic} run", topic, n, None)
        with tempfile.TemporaryDirectory() as folder:
            kept = _run(brokers, f"{topic} kept", topic, n, Path(folder) / "run.ckpt")
        print(
            f"{topic}: {n / bare:,.0f} events a second fetched, {n / decoded:,.0f} decoded, "
            f"{n / run:,.0f} learnt, {n / kept:,.0f} with checkpoints; "
            f"learning is {bare / run:.0%} of the bare loop, {decoded / run:.0%} of decoding"
        )


if __name__ == "__main__":
    main()
