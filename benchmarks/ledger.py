"""Exactly once, proved by a ledger: ``python -m benchmarks.ledger mock 200000 20``.

Events are produced to 4 partitions; a consumer learns them with a checkpoint, and is killed (-9) at
random moments, while it writes its checkpoint, and while its group is rebalanced; each time it is
started again. It notes the place of each batch that it is about to learn: that is the ledger. In
the end each event must stand in it once, and the model must be, to the last bit, the one that
learns the events in the ledger's order without any interruption.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import Consumer

from connectors import KafkaSource, MemorySource
from streamsvm import LASVMClassifier, StandardScaler, kernels
from streamsvm.model_files import container as model_file
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests import brokers

N_PARTITIONS = 4
_STUCK = 30.0  # seconds without a checkpoint
KINDS = ("at a random moment", "writing a checkpoint", "in a rebalance")


def events(n: int) -> list[dict[str, Any]]:
    """Return the events; event i is at offset i // 4 of partition i % 4."""
    x = np.random.default_rng(0).normal(size=(n, 2))
    return [{"a": a, "b": b, "label": bool(a * b > 0)} for a, b in x.tolist()]


def model() -> Any:
    """Return the model that all learn."""
    return StandardScaler() | LASVMClassifier(kernels.RBF(gamma=0.5), max_support_vectors=60)


def consumer(address: str, group: str) -> Any:
    """Return a consumer; the mock cluster wedges if sessions end sooner than in 6 s."""
    settings = {"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False}
    settings |= {"auto.offset.reset": "earliest", "log_level": 0}
    return Consumer(settings | {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500})


def consume(address: str, group: str, topic: str, folder: Path, n: int, every: int) -> None:
    """Learn n events, from wherever the checkpoint is; note what is learnt."""
    path = folder / "run.ckpt"
    source = KafkaSource(
        consumer(address, group), "label", topics=[topic], idle=60.0, batch_size=100
    )
    checkpoint = Checkpoint(path, every)
    run: Run
    with source, (folder / "ledger.jsonl").open("a") as ledger:
        fetched = source.batches

        def batches(size: int | None = None) -> Any:
            for batch in fetched(size):
                if len(batch):
                    line = {"taken": run.taken, "file": batch.file, "rows": batch.rows.tolist()}
                    ledger.write(json.dumps(line) + "\n")
                    ledger.flush()
                yield batch

        source.batches = batches  # type: ignore[method-assign]
        run = Run(source, model(), checkpoint=checkpoint, should_stop=lambda: run.taken >= n)
        run.execute()


def read_ledger(folder: Path) -> list[tuple[str, int]]:
    """Return the places learnt, in order, without what was learnt again after a kill."""
    lines: list[dict[str, Any]] = []
    for text in (folder / "ledger.jsonl").read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue  # the process was killed while writing it: the batch was not learnt
        # Whoever starts at an earlier place takes back what was noted from there on.
        while lines and lines[-1]["taken"] >= line["taken"]:
            lines.pop()
        lines.append(line)
    return [(line["file"], row) for line in lines for row in line["rows"]]


def kill(process: subprocess.Popen[Any], kind: str, folder: Path, rng: random.Random) -> str:
    """Kill a consumer at a moment of some kind; return how it ended."""
    path, until = folder / "run.ckpt", time.monotonic() + _STUCK
    before = path.stat().st_mtime_ns if path.exists() else None
    while (path.stat().st_mtime_ns if path.exists() else None) == before:
        if process.poll() is not None:
            return "by itself"
        if time.monotonic() > until:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return "stuck"
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.1))
    if kind == KINDS[1]:
        until = time.monotonic() + 20.0
        while not any(folder.glob(".run.ckpt.*")) and time.monotonic() < until:
            if process.poll() is not None:
                return "by itself"
        time.sleep(rng.uniform(0.0, 0.002))
    process.send_signal(signal.SIGKILL)
    process.wait()
    return "killed" if process.returncode == -signal.SIGKILL else "by itself"


class Intruder:
    """A further member of the group, which takes partitions, and learns and commits nothing."""

    def __init__(self, address: str, group: str, topic: str) -> None:
        self._over = threading.Event()
        self._member = consumer(address, group)
        self._member.subscribe([topic])
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._over.is_set():
            self._member.consume(10, 0.1)
        self._member.close()

    def leave(self) -> None:
        """Leave the group."""
        self._over.set()
        self._thread.join()


def torment(address: str, topic: str, folder: Path, n: int, n_kills: int, every: int) -> Counter:
    """Run the consumer to its end, killing it again and again; return the kills by kind."""
    rng, kills = random.Random(0), Counter()
    groups = itertools.count()
    group = f"{topic}-{next(groups)}"

    def command() -> list[str]:
        child = [sys.executable, "-m", "benchmarks.ledger", "--child", address, group]
        return [*child, topic, str(folder), str(n), str(every)]

    while kills.total() < n_kills:
        kind = KINDS[kills.total() % len(KINDS)]
        process = subprocess.Popen(command())
        intruder = None
        if kind == KINDS[2]:
            timer = threading.Timer(rng.uniform(1.5, 2.5), lambda: None)
            timer.start()
            timer.join()
            intruder = Intruder(address, group, topic)
        end = kill(process, kind, folder, rng)
        if intruder is not None:
            intruder.leave()
        if end == "by itself":
            break
        if end == "stuck":
            # The mock cluster, and Tansu, may wait for a dead member for ever. Places come from the
            # checkpoint: another group goes on just as well.
            kind, group = "in a group that was stuck", f"{topic}-{next(groups)}"
        kills[kind] += 1
    group = f"{topic}-{next(groups)}"  # the last kill may have left a group that is stuck
    subprocess.run(command(), check=True)
    return kills


def check(folder: Path, topic: str, n: int) -> None:
    """Fail if an event was lost or learnt twice, or if the model is another."""
    found, places = events(n), read_ledger(folder)
    expected = {(f"{topic}[{i % N_PARTITIONS}]", i // N_PARTITIONS): e for i, e in enumerate(found)}
    counts = Counter(places)
    assert set(counts) == set(expected), f"{len(set(expected) - set(counts))} events are missing"
    assert max(counts.values()) == 1, f"{sum(counts.values()) - n} events were learnt twice"
    ordered = [expected[place] for place in places]
    whole = model()
    pairs = [({"a": e["a"], "b": e["b"]}, e["label"]) for e in ordered]
    report = Run(MemorySource(pairs), whole).execute()
    kept, about, _ = model_file.read(folder / "run.ckpt")
    ours, theirs = (list(m.steps.values())[-1].support_vectors() for m in (kept, whole))
    np.testing.assert_array_equal(ours.rows, theirs.rows)
    np.testing.assert_array_equal(ours.coefficients, theirs.coefficients)
    counted, pairs = about["states"]["report"], about["states"]["score"]["pairs"]
    assert (counted["rows"], counted["learnt"]) == (n, n) == (report.rows, report.learnt)
    right = sum(count for y, p, count in pairs if y == p)
    scored = sum(count for _, _, count in pairs)
    assert right / scored == report.accuracy


def prove(broker: str, n: int, n_kills: int, every: int) -> Counter:
    """Do all of it with one broker; return the kills by kind."""
    with brokers.BROKERS[broker]() as address, tempfile.TemporaryDirectory() as name:
        topic = f"ledger-{time.time_ns()}"
        if broker != "mock":
            brokers.make_topic(address, topic, N_PARTITIONS)
        payloads = (json.dumps(event).encode() for event in events(n))
        brokers.produce(address, topic, payloads, N_PARTITIONS)
        kills = torment(address, topic, Path(name), n, n_kills, every)
        check(Path(name), topic, n)
    return kills


def main() -> None:
    """Run as the command says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("broker", choices=sorted(brokers.BROKERS), nargs="?", default="mock")
    parser.add_argument("n", type=int, nargs="?", default=200_000)
    parser.add_argument("kills", type=int, nargs="?", default=20)
    parser.add_argument("--every", type=int, default=1000, help="rows between checkpoints")
    options = parser.parse_args()
    start = time.perf_counter()
    kills = prove(options.broker, options.n, options.kills, options.every)
    told = ", ".join(f"{n} {kind}" for kind, n in kills.items())
    print(
        f"{options.broker}: {options.n:,} events in {N_PARTITIONS} partitions, each learnt once; "
        f"killed {told}; the model is that of an uninterrupted run, to the last bit; "
        f"{time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        address, group, topic, folder, n, every = sys.argv[2:]
        consume(address, group, topic, Path(folder), int(n), int(every))
    else:
        main()
