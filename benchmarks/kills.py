"""Nothing lost, nothing doubled: ``python -m benchmarks.kills 200``.

The commands `replay` and `consume` learn in several set-ups, and are killed (-9) at random moments:
while they start, between checkpoints and while these are written. Each time the same command is
started again. In the end every example must have been learnt once, and every bad one be one dead
letter. Where the order of the examples is known, the model must be, byte for byte, that of a run
which nobody killed, but for the counters of the row cache. Where it is not (two topics, members of
a group), number, sum and sum of squares of what was learnt are compared, by the scalers'
statistics. Takes about three seconds a kill, members of a group ten. A third member joins such a
group now and then, and leaves it again. With ``--kafka`` the broker is Apache Kafka, see
`tests.kafka`, otherwise librdkafka's mock.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import streamsvm
from streamsvm.model_files import container
from tests import brokers
from tests.kafka import broker as kafka

N = 6000
N_BAD = 40
_LEFT = 0, 130, -15  # how members end; told to leave, before they have begun, too
_STUCK = 40.0  # seconds without a checkpoint, after which a group is given another name
# A server that has imported everything makes the processes: each of them would take seconds.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["streamsvm.cli.replay", "streamsvm.cli.consume", "tests.brokers"]
)
_groups = iter(range(10**9))
_TOPICS = {"topic": 1, "group": 4, "sentences": 1, "events": 2, "labels": 1}
_TOPICS |= {"late-events": 4, "late-labels": 4}


class SetUp(NamedTuple):
    """One way to use the command."""

    name: str
    options: list[str]
    source: str  # a file or folder to replay; "topic", "two topics", ... to consume
    n_members: int = 1

    @property
    def delay(self) -> int:
        """So many labels have not come when the stream is at its end."""
        return 40 if "--label-delay" in self.options else 0


_BASIC = ["--target", "y", "--quiet", "--json", "--no-monitor", "--checkpoint-every", "300"]
_LASVM = ["--gamma", "0.5", "--max-support-vectors", "60"]
SET_UPS = [
    SetUp("replay, lasvm with its reserve", ["--gamma", "0.5", "--C", "10"], "file"),
    SetUp("replay a folder, shuffled", [*_LASVM, "--shuffle-buffer", "700"], "folder"),
    SetUp("replay, labels 40 rows later", ["--learner", "sgd", "--label-delay", "40"], "file"),
    SetUp("consume, one partition", _LASVM, "topic"),
    SetUp("consume, labels 40 rows later", [*_LASVM, "--label-delay", "40"], "topic"),
    SetUp("consume, labels in their own topic", ["--learner", "sgd"], "two topics"),
    SetUp("consume, two members with --peers", ["--learner", "sgd"], "group", 2),
    SetUp("consume, members with labels in their own topic", ["--learner", "sgd"], "late group", 2),
    SetUp("consume, sentences", ["--learner", "sequence_larank", "--columns", "t"], "sentences"),
]


def events() -> list[dict[str, Any]]:
    """Return the examples; some of them have no usable feature `a`."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1.7, 1.7, (2, N))
    found = [{"a": x, "b": z, "y": x * z > 0} for x, z in zip(a.tolist(), b.tolist(), strict=True)]
    for i in rng.choice(np.arange(200, N), N_BAD, replace=False).tolist():
        found[i]["a"] = float("nan")
    return found


def sentences() -> list[dict[str, Any]]:
    """Return sentences; of as many as of the examples, some labels are missing."""
    rng, found = np.random.default_rng(1), []
    for event in events():
        words = rng.choice(list("abcdef"), rng.integers(1, 6)).tolist()
        tags = [word.upper() for word in words]
        found.append({"t": words, "y": tags if event["a"] == event["a"] else tags[1:]})
    return found


def good_values() -> np.ndarray:
    """Return feature `b` of the examples that can be learnt."""
    return np.array([event["b"] for event in events() if event["a"] == event["a"]])


class Streams:
    """Files and topics with the examples."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        # Missing in a file, a NaN is a missing feature: infinity is refused in both.
        for event in (found := events()):
            event["a"] = event["a"] if event["a"] == event["a"] else float("inf")
        table = pa.Table.from_pylist(found)
        pq.write_table(table, folder / "file", row_group_size=1000)
        (folder / "folder").mkdir()
        for i in range(4):
            part = table.slice(i * N // 4, N // 4)
            pq.write_table(part, folder / "folder" / f"{i}.parquet")
        payloads = [json.dumps(event).encode() for event in found]
        brokers.produce(address, "topic", payloads, 1)
        brokers.produce(address, "group", payloads, 4)
        payloads = [json.dumps(sentence).encode() for sentence in sentences()]
        brokers.produce(address, "sentences", payloads, 1)
        keys = [b"%d" % i for i in range(N)]
        labels = [json.dumps({"y": event.pop("y")}).encode() for event in found]
        payloads = [json.dumps(event).encode() for event in found]
        brokers.produce(address, "events", payloads, 2, keys)
        brokers.produce(address, "labels", labels, 1, keys)
        brokers.produce(address, "late-events", payloads, 4, keys)
        brokers.produce(address, "late-labels", labels, 4, keys)

    def arguments(self, set_up: SetUp) -> list[str]:
        """Return the command for a set-up, up to the files that it writes."""
        if set_up.source in ("file", "folder"):
            return ["replay", str(self.folder / set_up.source), *_BASIC, *set_up.options]
        command = ["consume", "--brokers", self.address, *_BASIC, *set_up.options, "--idle", "2"]
        command += ["--set", "session.timeout.ms=6000", "--set", "heartbeat.interval.ms=500"]
        if set_up.source == "two topics":
            return [*command, "--topic", "events", "--labels-topic", "labels"]
        if set_up.source == "late group":
            return [*command, "--topic", "late-events", "--labels-topic", "late-labels"]
        return [*command, "--topic", set_up.source]


def _command(arguments: list[str], log: Path) -> None:
    """Run the command in this process, which is a child."""
    from streamsvm.cli.main import main as run

    handle = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    raise SystemExit(run(arguments))


class Round:
    """One stream learnt to its end, by processes that are killed."""

    def __init__(self, streams: Streams, set_up: SetUp, folder: Path, rng: random.Random) -> None:
        self.set_up, self.folder, self.rng = set_up, folder, rng
        self.paths = [folder / f"{i}.ckpt" for i in range(set_up.n_members)]
        self._arguments = streams.arguments(set_up)
        self._group = f"group-{next(_groups)}"
        self.kills = self.stuck = self.visits = 0
        if set_up.n_members > 1:
            # Of a guest, who comes and goes.
            self.paths.append(folder / "guest.ckpt")

    def _start(self, path: Path) -> Any:
        arguments = [*self._arguments, "--checkpoint", str(path), "--save", f"{path}.svm"]
        if self._arguments[0] == "consume":
            # Offsets are in the checkpoint. Alone, nobody need wait until a dead member is missed.
            alone = self.set_up.n_members == 1
            arguments += ["--group", f"alone-{next(_groups)}" if alone else self._group]
            arguments += [] if alone else ["--peers", str(self.folder / "*.ckpt")]
        process = _processes.Process(target=_command, args=(arguments, self.folder / "log"))
        process.start()
        return process

    def _written(self) -> list[int]:
        return [path.stat().st_mtime_ns if path.exists() else 0 for path in self.paths]

    def run(self, most: int) -> None:
        """Learn to the end; kill at most so many times."""
        members = [self._start(path) for path in self.paths]
        while any(member.is_alive() for member in members):
            if len(members) > 1 and self.kills < most and self.rng.random() < 0.5:
                self._visit(members)
            if self.kills < most and self._wait_for_a_moment(members):
                victim = self.rng.choice([i for i, m in enumerate(members) if m.is_alive()] or [0])
                members[victim].kill()
                members[victim].join()
                self.kills += members[victim].exitcode == -9
                if members[victim].exitcode == -9:
                    members[victim] = self._start(self.paths[victim])
            elif self.kills >= most:
                self._end(members)
        if len(members) > 1:
            # What the last one left who was killed, or a guest: others may have ended meanwhile.
            self._group = f"group-{next(_groups)}"
            members.append(self._start(self.paths[0]))
            members[-1].join()
        codes = [member.exitcode for member in members]
        assert all(code in _LEFT for code in codes), (
            f"{self.set_up.name}: {codes}, {(self.folder / 'log').read_text()}"
        )

    def _visit(self, members: list[Any]) -> None:
        """Let the guest, the last member, leave if it is there, and join if it is not."""
        self.visits += 1
        if members[-1].is_alive():
            members[-1].terminate()
        else:
            assert members[-1].exitcode in _LEFT, (self.folder / "log").read_text()
            members[-1] = self._start(self.paths[-1])

    def _wait_for_a_moment(self, members: list[Any]) -> bool:
        """Wait until a process is to be killed; False if none lives any longer."""
        if self.rng.random() < 0.25:
            time.sleep(self.rng.uniform(0.0, 1.5))  # while it starts, or soon after
        else:
            before, began = self._written(), time.monotonic()
            # Each member that is killed gets on before the next kill.
            while self._written() == before:
                if not any(member.is_alive() for member in members):
                    return False
                if time.monotonic() - began > _STUCK:
                    self._rename_group(members)
                    began = time.monotonic()
                time.sleep(0.002)
            time.sleep(self.rng.uniform(0.0, 0.1))
        return any(member.is_alive() for member in members)

    def _end(self, members: list[Any]) -> None:
        """Wait for the end."""
        before, began = self._written(), time.monotonic()
        while any(member.is_alive() for member in members):
            if self._written() != before:
                before, began = self._written(), time.monotonic()
            if time.monotonic() - began > _STUCK:
                self._rename_group(members)
                began = time.monotonic()
            time.sleep(0.05)

    def _rename_group(self, members: list[Any]) -> None:
        """Go on in another group: the mock cluster may wait for a dead member for ever."""
        self.stuck += 1
        self._group = f"group-{next(_groups)}"
        for i, member in enumerate(members):
            member.kill()
            member.join()
            members[i] = self._start(self.paths[i])


def check(of: Round, whole: Path | None) -> None:
    """Fail if an example was lost or learnt twice, or if a model is not that of a whole run."""
    # A guest may never have begun, or left before it could save its model.
    paths = [path for path in of.paths if path.exists()]
    models: list[Any] = [streamsvm.load(path) for path in paths]
    learnt = sum(map(_n_learnt, models))
    kept = [container.read(path)[1]["states"] for path in paths]
    rows = sum(states["report"]["rows"] for states in kept)
    # Simulated labels that had not come at the end are learnt then: the model that is saved has
    # them, and in the checkpoint, from which a stream that has grown goes on, they still wait.
    n_held = sum(len(one["late"].get("held", [])) for one in kept if "late" in one)
    found = learnt, n_held, rows
    assert found == (N - N_BAD - of.set_up.delay, of.set_up.delay, N), f"{of.set_up.name}: {found}"
    if len(of.paths) == 1:
        assert _n_learnt(streamsvm.load(f"{paths[0]}.svm")) == N - N_BAD, of.set_up.name
    letters = []
    for path in of.paths:
        for kept in of.folder.glob(f"{path.name}.dead_letters*.jsonl"):
            letters += [json.loads(line)["position"] for line in kept.read_text().splitlines()]
    places = {(letter["file"], letter["row"]) for letter in letters}
    assert len(letters) == len(places) == N_BAD, f"{len(letters)} letters, {len(places)} places"
    if whole is not None:
        assert _model(f"{of.paths[0]}.svm") == _model(whole), f"{of.set_up.name}: another model"
    if of.set_up.source == "sentences":
        return
    values, found = good_values(), np.zeros(3)
    for model in models:
        # A member may have learnt nothing.
        n, mean, variance = model["StandardScaler"].statistics.get("b", (0, 0.0, 0.0))
        found += [n, n * mean, n * (variance + mean**2)]
    expected = [len(values), values.sum(), (values**2).sum()]
    np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=of.set_up.name)


def _n_learnt(model: Any) -> int:
    """Return how many examples, or sentences, a model has learnt."""
    return int(list(model.steps.values())[-1].n_examples)


def _model(path: str | Path) -> dict[str, Any]:
    """Return all that is in a model file, but how often kernel rows were found in their cache."""
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        (found,) = reader.get_batch(0).to_pylist()
        parts = json.loads(reader.schema.metadata[b"streamsvm.parts"])
    return {n: value for n, value in found.items() if "cache_counts" not in n} | {"parts": parts}


def torment(streams: Streams, set_up: SetUp, kills: int, seed: int) -> str:
    """Learn in a set-up again and again until there were so many kills; return what happened."""
    rng, done, rounds, start = random.Random(seed), 0, 0, time.perf_counter()
    stuck = visits = 0
    whole = None
    with tempfile.TemporaryDirectory() as name:
        if set_up.source in ("file", "folder", "topic", "sentences"):
            alone = _made(Path(name) / "whole")
            first = Round(streams, set_up, alone, rng)
            first.run(0)
            whole = alone / "0.ckpt.svm"
            check(first, whole)
        while done < kills:
            rounds += 1
            one = Round(streams, set_up, _made(Path(name) / str(rounds)), rng)
            one.run(kills - done)
            check(one, whole)
            done, stuck, visits = done + one.kills, stuck + one.stuck, visits + one.visits
    what = "each example learnt once" if whole is None else "the same model, byte for byte"
    again = f", {stuck} times in another group" if stuck else ""
    again += f", a guest came or went {visits} times" if visits else ""
    took = time.perf_counter() - start
    return f"{set_up.name}: {done} kills in {rounds} streams{again}, {what} ({took:.0f} s)"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@contextlib.contextmanager
def made_streams(is_kafka: bool = False) -> Iterator[Streams]:
    """Return a context with the streams, and the broker of the topics."""
    with contextlib.ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory())
        if is_kafka:
            address = stack.enter_context(kafka.cluster()).address
            for topic, n in _TOPICS.items():
                brokers.make_topic(address, topic, n)
        else:
            address = stack.enter_context(brokers.mock())
        yield Streams(Path(name), address)


def main(say: Callable[[str], None] = lambda line: print(line, flush=True)) -> None:
    """Run as the command says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kafka", action="store_true", help="with Apache Kafka itself")
    parser.add_argument("--only", default="", help="set-ups whose names hold this")
    options = parser.parse_args()
    chosen = [one for one in SET_UPS if options.only in one.name]
    with made_streams(options.kafka) as streams:
        for i, set_up in enumerate(chosen):
            share = options.kills * (i + 1) // len(chosen) - options.kills * i // len(chosen)
            say(torment(streams, set_up, share, options.seed + i))


if __name__ == "__main__":
    main()
