"""Checkpoints: whatever ends a run, it goes on as if nothing had happened."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from river import linear_model, metrics

import streamsvm
from connectors import MemorySource, ParquetSource
from streamsvm import (
    LASVMClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.errors import CheckpointError, ParameterError, UnwritableModelFileError
from streamsvm.model_files import container as model_file
from streamsvm.monitor.watched import learner_of
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.forgetting import forget_in_file
from streamsvm.run.runner import Run

ROOT = Path(__file__).resolve().parents[2]
BANANAS = ROOT / "examples" / "data" / "bananas.parquet"
TIMES = ("seconds", "peak_bytes", "memory_bytes", "memory_parts", "counters", "finish_seconds")
TIMES += ("examples_per_second", "latency_p50", "latency_p99", "cache_hits", "kernel_values")
OF_PROCESS = {*TIMES, "compile_seconds", "wait_seconds", "interrupted", "resumed", "resumed_after"}


def plain(report):
    """Return a report without what depends on the clock, or on cached kernel rows."""
    values = {k: v for k, v in report.as_dict().items() if k not in OF_PROCESS}
    values["monitor"] = {k: v for k, v in values["monitor"].items() if k not in OF_PROCESS}
    records = [report.history[i] for i in range(len(report.history))]
    values["history"] = [{k: v for k, v in r.items() if k not in OF_PROCESS} for r in records]
    return values


def lasvm():
    return StandardScaler() | LASVMClassifier(kernels.RBF(gamma=0.5), max_support_vectors=100)


def tracking():
    return TrackingSVMClassifier(kernels.RBF(gamma=0.5), K=3, window=150, seed=3)


def sparse():
    return LASVMClassifier(kernels.RBF(gamma=0.5), C=10.0, sparse=True)


def run(model, path=None, limit=None, every=400, rows=3000, **options):
    """Replay the first rows of Bananas; return the report, the model and its monitor."""
    monitor = TrackingMonitor(model, every=300, metrics=metrics.F1(), sample=4)
    checkpoint = Checkpoint(path, every=every) if path else None
    with ParquetSource(BANANAS, "label", shuffle_buffer=500, seed=1, batch_size=700) as source:
        report = Run(
            source, monitor, limit=limit or rows, checkpoint=checkpoint, **options
        ).execute()
    return report, model, monitor


def assert_same(ours, theirs):
    assert plain(ours[0]) == plain(theirs[0])
    one, other = learner_of(ours[1]).support_vectors(), learner_of(theirs[1]).support_vectors()
    np.testing.assert_array_equal(one.coefficients, other.coefficients)
    np.testing.assert_array_equal(one.entered, other.entered)
    records = [
        [{k: v for k, v in m.history[i].items() if k not in TIMES} for i in range(len(m.history))]
        for m in (ours[2], theirs[2])
    ]
    # Means of losses: how NumPy adds depends on where an array lies in memory.
    for one, other in zip(*records, strict=True):
        floats = [name for name, value in other.items() if isinstance(value, float)]
        found, expected = ([record.pop(name) for name in floats] for record in (one, other))
        assert found == pytest.approx(expected, rel=1e-10, nan_ok=True) and one == other


@pytest.mark.parametrize(
    ("make", "options", "stops"),
    [
        (lasvm, {}, (1, 4, 5, 9)),
        (tracking, {}, (1, 4, 5, 9)),
        (sparse, {}, (1, 4, 5, 9)),
        (sparse, {"rows": 900, "epochs": 3}, (2, 5, 7)),
    ],
)
def test_a_run_in_parts_is_the_run(make, options, stops, tmp_path):
    whole = run(make(), **options)
    path = tmp_path / "run.ckpt"
    calls = iter(range(1, 1000))
    for _ in stops:
        report, *_ = run(make(), path, should_stop=lambda: next(calls) in stops, **options)
        assert report.interrupted
    assert_same(run(make(), path, **options), whole)
    # The file is a model file, too.
    assert learner_of(streamsvm.load(path)).n_examples == whole[0].model_examples


@pytest.mark.parametrize("make", [lasvm, tracking, sparse])
def test_a_run_that_ended_within_a_batch_goes_on(make, tmp_path):
    whole, path = run(make()), tmp_path / "run.ckpt"
    for limit in (20, 650, 1234, 2950):
        run(make(), path, limit)
    ours = run(make(), path)
    # The monitor has looked at other moments; all else is the same.
    for report, _, monitor in (ours, whole):
        report.monitor, report.history, monitor.history = {}, [], []
    assert_same(ours, whole)


REPLAY = [sys.executable, "-m", "streamsvm", "replay", str(BANANAS), "--target", "label"]
REPLAY += ["--gamma", "2", "--max-support-vectors", "200", "--json", "--quiet"]


def test_a_slow_source_has_checkpoints_by_time(tmp_path):
    """Also while nothing comes: a topic that is quiet gives empty batches."""
    path, kept = tmp_path / "c", []
    stream = MemorySource([({"a": float(i % 7)}, i % 7 > 3) for i in range(8)])

    class Slow(MemorySource):
        cuts_anew = True

        def batches(self, size=None):
            for batch in stream.batches(4):
                yield batch
                for _ in range(2):
                    time.sleep(0.06)
                    yield batch.slice(0, 0)
                    kept.append(model_file.read(path)[1]["states"]["report"]["rows"])

    run = Run(Slow([]), lasvm(), checkpoint=Checkpoint(path, seconds=0.05))
    assert run.execute().rows == 8
    assert kept == [4, 4, 8, 8]


def started(*command):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, cwd=ROOT, text=True, **pipes)


def written(path):
    return path.stat().st_mtime_ns if path and path.exists() else None


def replay(*options, path=None, kill_after=None):
    before = written(path)
    process = started(*REPLAY, *map(str, options))
    if kill_after is not None:
        # Not before it has written: then at any moment of learning and of writing.
        while written(path) == before and process.poll() is None:
            time.sleep(0.005)
        time.sleep(kill_after)
        process.send_signal(signal.SIGKILL)
    out, error = process.communicate(timeout=300)
    return process.returncode, out, error


@pytest.mark.slow
def test_kill_9_at_any_moment(tmp_path):
    rng = random.Random(5)
    whole, path, model = tmp_path / "whole.svm", tmp_path / "run.ckpt", tmp_path / "run.svm"
    code, expected, error = replay("--save", whole)
    assert code == 0, error
    # Small batches, a checkpoint after each: most of the time goes into writing them.
    options = ["--checkpoint", path, "--checkpoint-every", 1, "--save", model]
    places = []
    for _ in range(20):
        after = rng.uniform(0.0, 0.25)
        code, _, error = replay(*options, "--rate", 1500, path=path, kill_after=after)
        if code == 0:  # on a slow machine it comes to its end sooner
            break
        assert code == -signal.SIGKILL, error
        places.append(model_file.read(path)[1]["states"]["report"]["rows"])
    assert places == sorted(places)
    assert 5 < len(set(places) - {0, 5300})
    code, out, error = replay(*options)
    assert code == 0, error
    ours, theirs = json.loads(out), json.loads(expected)
    for name in ("rows", "learnt", "labels", "accuracy", "balanced_accuracy", "dual", "delta"):
        assert ours[name] == theirs[name], name
    one, other = streamsvm.load(model), streamsvm.load(whole)
    ours, theirs = learner_of(one).support_vectors(), learner_of(other).support_vectors()
    np.testing.assert_array_equal(ours.coefficients, theirs.coefficients)
    np.testing.assert_array_equal(ours.rows, theirs.rows)
    assert learner_of(one).n_examples == 5300


def test_another_run_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    run(sparse(), path, 800)
    other = LASVMClassifier(kernels.RBF(gamma=0.5), C=1.0, sparse=True)
    # The same learner with other parameters, one of which brings the scaler.
    of_another = r"C 10.0 there, 1.0 here; .*LASVMClassifier there, StandardScaler \|"
    for model, options, said in (
        (other, {}, "C 10.0 there, 1.0 here"),
        (sparse(), {"positive": "True"}, "positive None there, 'True' here"),
        (lasvm(), {}, of_another),
        (SVMSGDClassifier(), {}, "run of LASVMClassifier, and this one is of SVMSGD"),
    ):
        with pytest.raises(CheckpointError, match=said):
            run(model, path, **options)
    with ParquetSource(BANANAS, "label") as source, pytest.raises(CheckpointError, match="monitor"):
        Run(source, sparse(), checkpoint=Checkpoint(path)).execute()
    streamsvm.save(sparse(), tmp_path / "model.svm")
    with pytest.raises(CheckpointError, match="is a model, not a checkpoint"):
        run(sparse(), tmp_path / "model.svm")


@pytest.mark.parametrize(("number", "shown"), [({}, "1"), ({"checkpoint": 2}, "2")])
def test_a_checkpoint_of_another_format_is_refused(tmp_path, number, shown):
    path = tmp_path / "run.ckpt"
    about = {"run": {"rows": 10}, "settings": {}} | number
    content = model_file.encoded(lasvm(), about)
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"format {shown}, and this release reads format 3"):
        run(lasvm(), path)
    with pytest.raises(CheckpointError, match=f"format {shown}"):
        forget_in_file(path, [1])
    assert path.read_bytes() == content
    # The model in it is read, as from any file.
    assert isinstance(streamsvm.load(path), type(lasvm()))


def test_a_checkpoint_is_of_one_source(tmp_path):
    table, data = pq.read_table(BANANAS), tmp_path / "data.parquet"

    def go():
        with ParquetSource(data, "label") as source:
            Run(source, sparse(), checkpoint=Checkpoint(path)).execute()

    path = tmp_path / "run.ckpt"
    pq.write_table(table.slice(0, 500), data)
    go()
    kept = path.read_bytes()
    # Before this was checked, another file of the name was taken as read, and nothing was learnt.
    pq.write_table(table.slice(500, 500), data)
    with pytest.raises(CheckpointError, match=r"run.ckpt is of another source.* 500 rows, "):
        go()
    assert path.read_bytes() == kept


def test_what_cannot_be_kept_is_said_at_the_start(tmp_path):
    with ParquetSource(BANANAS, "label") as source:
        checkpoint = Checkpoint(tmp_path / "run.ckpt")
        with pytest.raises(ParameterError, match="checkpoints hold learners of streamsvm"):
            Run(source, linear_model.LogisticRegression(), checkpoint=checkpoint).execute()
        monitor = TrackingMonitor(sparse(), metrics=metrics.ROCAUC())
        with pytest.raises(ParameterError, match="ROCAUC cannot be kept"):
            Run(source, monitor, checkpoint=checkpoint).execute()
    for wrong in ({"every": 0}, {"every": True}, {"seconds": 0.0}):
        with pytest.raises(ParameterError):
            Checkpoint(tmp_path / "run.ckpt", **wrong)


HOLDER = """
import sys, time
from streamsvm import LASVMClassifier
from connectors import MemorySource
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
events = [({"a": float(i % 7)}, i % 7 > 3) for i in range(200)]
def wait(progress):
    print("learning", flush=True)
    sys.stdin.readline()
Run(MemorySource(events), LASVMClassifier(), checkpoint=Checkpoint(sys.argv[1], every=1),
    on_progress=wait).execute()
"""


def holder(path):
    """Start a process in the middle of a run."""
    process = started(sys.executable, "-c", HOLDER, str(path))
    assert process.stdout.readline() == "learning\n"
    return process


def begun(path):
    checkpoint = Checkpoint(path)
    checkpoint.begin(Run(MemorySource([]), LASVMClassifier()).contents)
    return checkpoint


def test_a_deleted_lock_lets_no_second_process_in(tmp_path):
    path = tmp_path / "run.ckpt"
    first = holder(path)
    (tmp_path / "run.ckpt.lock").unlink()
    # The name of a link is another one, the checkpoint is the same.
    (tmp_path / "link.ckpt").symlink_to(path)
    for name in ("run.ckpt", "link.ckpt"):
        with pytest.raises(CheckpointError, match=f"{name} is in use by another process"):
            begun(tmp_path / name)
    _, err = first.communicate("\n")
    assert first.returncode == 0, err


def test_of_two_processes_the_one_without_a_lock_writes_nothing(tmp_path):
    path = tmp_path / "run.ckpt"
    first = holder(path)
    for name in ("run.ckpt", "run.ckpt.lock"):
        (tmp_path / name).unlink()
    second = begun(path)
    before = path.read_bytes()
    _, err = first.communicate("\n")
    assert first.returncode == 1 and "CheckpointError" in err and "another process" in err
    assert path.read_bytes() == before
    second.close()


def test_what_a_killed_writer_left_is_removed_at_the_next_start(tmp_path):
    left = tmp_path / ".run.ckpt.abcdefgh.partial"
    left.write_bytes(b"half of a checkpoint")
    for _ in range(2):
        begun(tmp_path / "run.ckpt").close()
        assert not left.exists()
        left.write_bytes(b"half of a checkpoint")


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    run(sparse(), path, 800)
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnwritableModelFileError, match="cannot save the checkpoint.*No space"):
        run(sparse(), path)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.ckpt", "run.ckpt.lock"]
    monkeypatch.undo()
    assert_same(run(sparse(), path), run(sparse()))
