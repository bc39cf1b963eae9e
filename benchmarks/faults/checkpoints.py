"""Faults of checkpoints, dead letters and groups."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.faults.trial import command, examples, expect, fault, payloads, refused
from connectors import MemorySource, ParquetSource
from streamsvm import SVMSGDClassifier
from streamsvm.errors import CheckpointError
from streamsvm.model_files import container
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests import brokers
from tests.run import test_peers as members

_REPLAY = ("--target", "y", "--learner", "sgd", "--no-monitor", "--quiet", "--json")


def write(path: Path, n: int = 1000, seed: int = 0, **more: Any) -> Path:
    """Write a Parquet file of examples."""
    table = pa.Table.from_pylist([e | more for e in examples(n, seed)])
    pq.write_table(table, path)
    return path


@fault("another file of the same name on a checkpoint", "refused: what it was, what it is")
def another_file(folder: Path) -> None:
    path, options = folder / "f.parquet", (*_REPLAY, "--checkpoint", folder / "run.ckpt")
    write(path)
    expect(command("replay", path, *options).code == 0)
    write(path, seed=1)
    refused(command("replay", path, *options), "f.parquet", "has changed")
    write(path, n=1500)
    refused(command("replay", path, *options), "1,000 rows", "1,500 rows")


@fault(
    "files that come to a folder which is being replayed",
    "those after the position are read; those before it refused, or read with `--late-files read`",
)
def later_files(folder: Path) -> None:
    data = folder / "data"
    data.mkdir()
    write(data / "m.parquet")
    options = (*_REPLAY, "--checkpoint", folder / "run.ckpt")
    expect(command("replay", data, *options).report["rows"] == 1000)
    write(data / "z.parquet", seed=1)
    expect(command("replay", data, *options).report["rows"] == 2000, "those after it")
    write(data / "a.parquet", seed=2)
    refused(command("replay", data, *options), "a.parquet", "--late-files")
    said = command("replay", data, *options, "--late-files", "read")
    expect(said.code == 0 and said.report["rows"] == 3000, said)


@fault(
    "another `--target`, other `--columns`, topics, key or decoder on a checkpoint",
    "refused with both values",
)
def another_stream(folder: Path) -> None:
    found = [e | {"z": not e["y"], "k": i} for i, e in enumerate(examples(300))]
    with brokers.mock() as address:
        for topic in ("t", "u"):
            brokers.produce(address, topic, payloads(found), 1)

        def consume(*more: str) -> Any:
            path = ("--checkpoint", folder / "run.ckpt")
            common = ("--idle", 2, "--learner", "sgd", "--no-monitor", "--quiet", "--json", *path)
            return command("consume", "--brokers", address, *common, *more)

        expect(consume("--topic", "t", "--target", "y", "--group", "1").report["learnt"] == 300)
        for i, (more, words) in enumerate(
            (
                (("--topic", "t", "--target", "z"), ("'y'", "'z'")),
                (("--topic", "t", "--target", "y", "--columns", "a"), ("columns", "a")),
                (("--topic", "u", "--target", "y"), ("'t'", "'u'")),
                (("--topic", "t", "--target", "y", "--decode", "arrow"), ("json", "arrow")),
                (("--topic", "t", "--target", "y", "--key", "k"), ("key", "'k'")),
            )
        ):
            refused(consume(*more, "--group", f"other {i}"), *words)


@fault(
    "two runs in one folder, one of which is continued",
    "each has its own file of dead letters, which the report names; none is cut off",
)
def letters_of_two_runs(folder: Path) -> None:
    path = write(folder / "f.parquet")
    table = pq.read_table(path).to_pylist()
    for i in range(500, 600):
        table[i]["y"] = None
    pq.write_table(pa.Table.from_pylist(table), path)
    names = []
    letters = folder / "letters.jsonl"
    for name, more in (("1", ("--limit", 550)), ("2", ()), ("1", ())):
        checkpoint = ("--checkpoint", folder / f"{name}.ckpt", "--checkpoint-every", 10)
        said = command("replay", path, *_REPLAY, *checkpoint, "--dead-letters", letters, *more)
        expect(said.code == 0, said)
        names.append(said.report["dead_letters"])
    expect(names[0] == names[2] != names[1], names)
    for name in set(names):
        rows = [json.loads(x)["position"]["row"] for x in Path(name).read_text().splitlines()]
        expect(rows == list(range(500, 600)), name, rows[:3])


@fault(
    "a member of a group killed between its checkpoint and the commit of its offsets",
    "with `--peers` the next owner starts behind what was learnt: each message counts once",
)
def between_checkpoint_and_commit(folder: Path) -> None:
    for moment in members.MOMENTS:
        commits: dict[int, int] = {}
        own = folder / moment.replace(" ", "-")
        own.mkdir()
        peers = str(own / "*.ckpt")
        with pytest.MonkeyPatch.context() as patch:
            first = members.Member(commits, [0, 1])
            members.learn(first, own / "a.ckpt", peers, patch, moment, 5)
            members.learn(members.Member(commits, [0, 1]), own / "b.ckpt", peers, patch)
        expect(members.learnt(own) == 2 * members.N, moment, members.learnt(own))


@contextmanager
def _running(path: Path) -> Iterator[None]:
    """Return a context in which a run holds a checkpoint."""
    goes_on, has_begun = threading.Event(), threading.Event()

    def should_stop() -> bool:
        has_begun.set()
        return goes_on.wait(30.0)

    found = [({"a": e["a"]}, e["y"]) for e in examples(100)]
    run = Run(
        MemorySource(found), SVMSGDClassifier(), checkpoint=Checkpoint(path),
        should_stop=should_stop,
    )  # fmt: skip
    thread = threading.Thread(target=run.execute)
    thread.start()
    has_begun.wait(30.0)
    try:
        yield
    finally:
        goes_on.set()
        thread.join()


@fault(
    "a second process on a checkpoint, even if somebody deleted the lock",
    "refused; the first one goes on",
)
def two_processes(folder: Path) -> None:
    path, data = folder / "run.ckpt", write(folder / "f.parquet")
    with _running(path):
        for delete in (False, True):
            if delete:
                Path(f"{path}.lock").unlink(missing_ok=True)
            with ParquetSource(data, target="y") as source:
                try:
                    Run(source, SVMSGDClassifier(), checkpoint=Checkpoint(path)).execute()
                except CheckpointError as error:
                    expect("process" in str(error), error)
                else:
                    raise AssertionError("two processes had one checkpoint")


@fault("temporary files of a killed writer", "removed by the next run")
def temporary_files(folder: Path) -> None:
    path, data = folder / "run.ckpt", write(folder / "f.parquet")
    expect(command("replay", data, *_REPLAY, "--checkpoint", path, "--limit", 500).code == 0)
    from streamsvm.model_files import replacing

    # What a killed writer leaves: the same name as a real one has.
    left = [p for p in _while_writing(path, replacing) if p != path]
    expect(left, "no temporary file was seen")
    expect(command("replay", data, *_REPLAY, "--checkpoint", path).code == 0)
    expect(not any(p.exists() for p in left), left)
    expect(container.read(path)[1]["states"]["report"]["rows"] == 1000)


def _while_writing(path: Path, replacing: Any) -> list[Path]:
    """Return the temporary files of a process that died while it wrote."""
    import multiprocessing

    process = multiprocessing.get_context("fork").Process(target=_die, args=(path, replacing))
    process.start()
    process.join()
    return [p for p in path.parent.iterdir() if p.name.startswith(f".{path.name}")]


def _die(path: Path, replacing: Any) -> None:
    import os

    os.fsync = lambda handle: os._exit(9)
    replacing.write(path, b"half")
