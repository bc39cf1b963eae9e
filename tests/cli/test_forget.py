"""`streamsvm forget`: a saved model and a checkpoint without some of their examples."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import streamsvm
from connectors import MemorySource, id_of_key
from streamsvm import (
    ActiveLearner,
    IncrementalSVMClassifier,
    LASVMClassifier,
    StandardScaler,
    TrackingMonitor,
    kernels,
)
from streamsvm.cli.main import main
from streamsvm.model_files import container
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.checkpoint_lock import CheckpointLock
from streamsvm.run.runner import Run

X = np.random.default_rng(0).normal(size=(60, 2))
EVENTS = [({"a": a, "b": b}, bool(a * b > 0)) for a, b in X.tolist()]


def learner():
    return IncrementalSVMClassifier(kernels.RBF(gamma=0.5), C=5.0)


def wrapped(events, ids=None):
    """Return a pipeline within an `ActiveLearner`, which has learnt."""
    model = StandardScaler() | learner()
    for x, _ in EVENTS:
        model["StandardScaler"].learn_one(x)
    scaled = np.array([list(model["StandardScaler"].transform_one(x).values()) for x, _ in events])
    table = pa.table({"a": scaled[:, 0], "b": scaled[:, 1]})
    of(ActiveLearner(model)).learn_many(table, [y for _, y in events], ids=ids)
    return ActiveLearner(model)


def of(model):
    """Return the learner in such a model."""
    return model.classifier["IncrementalSVMClassifier"]


def test_a_model_in_a_file_is_that_of_the_other_examples(run, monkeypatch):
    streamsvm.save(wrapped(EVENTS, np.arange(100, 160)), "m.svm")
    before = Path("m.svm").read_bytes()
    Path("ids").write_text("# asked on Monday\n\n 101\n100\n101\n7\n")
    said = json.loads(run("forget", "m.svm", "--ids", "ids", "--json", "-o", "other.svm").out)
    assert (sorted(said["removed"]), said["not_kept"], said["waiting"]) == ([100, 101], [7], 0)
    assert "m.svm" in said["may_still_hold_them"]
    assert Path("m.svm").read_bytes() == before
    without = wrapped(EVENTS[2:])
    found = of(streamsvm.load("other.svm"))
    rows = pa.table({"a": X[:, 0], "b": X[:, 1]})
    wanted = of(without).decision_function_many(rows)
    assert found.decision_function_many(rows) == pytest.approx(wanted, abs=1e-6)
    # In place, by the standard input; no copy is left beside it.
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"100\n101\n")))
    out = run("forget", "m.svm", "--ids", "-").out
    assert "forgotten       2 examples" in out
    assert "dead letters; other checkpoints" in out
    assert of(streamsvm.load("m.svm")).n_kept == 58
    assert sorted(path.name for path in Path().iterdir()) == ["ids", "m.svm", "other.svm"]


def test_keys_name_the_examples_that_were_learnt_by_them(run):
    keys = [b"order 1", b"\xff", "ü".encode()]
    ids = np.array([*map(id_of_key, keys), *range(1, 58)])
    assert len(set(ids.tolist())) == 60
    assert ids.max() < 2**52
    streamsvm.save(wrapped(EVENTS, ids), "m.svm")
    Path("keys").write_bytes(b"\n".join(keys) + b"\nnobody\n")
    said = json.loads(run("forget", "m.svm", "--keys", "keys", "--json").out)
    assert set(said["removed"]) == set(ids[:3].tolist())
    assert len(said["not_kept"]) == 1
    # The hash is the same in each release: files hold it.
    assert id_of_key(b"order 1") == 3781740962394483


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("1\nx\n", "line 2: 'x' is no id"),
        ("0\n", "line 1"),
        ("-1\n", "line 1"),
        ("9" * 30, "no id"),
    ],
)
def test_a_bad_line_changes_nothing(lines, words, run):
    streamsvm.save(wrapped(EVENTS), "m.svm")
    before = Path("m.svm").read_bytes()
    Path("ids").write_text(lines)
    assert words in run("forget", "m.svm", "--ids", "ids", code=1).err
    assert Path("m.svm").read_bytes() == before


def test_a_checkpoint_is_gone_on_from_without_them(run):
    def learn(limit=None):
        model = learner()
        Run(MemorySource(EVENTS), model, limit=limit, checkpoint=Checkpoint("c.ckpt")).execute()
        return model

    learn(40)
    Path("ids").write_text("3\n39\n")
    lock = CheckpointLock(Path("c.ckpt"))
    lock.take()
    err = run("forget", "c.ckpt", "--ids", "ids", code=1).err
    assert "in use by another process" in err
    lock.release()
    run("forget", "c.ckpt", "--ids", "ids")
    assert sorted(path.name for path in Path().iterdir()) == ["c.ckpt", "c.ckpt.lock", "ids"]
    model = learn()
    plain = learner()
    for x, y in EVENTS:
        plain.learn_one(x, y)
    plain.unlearn_many([3, 39])
    assert sorted(model.kept_numbers()) == sorted(plain.kept_numbers())
    for x, _ in EVENTS[:5]:
        assert model.decision_function_one(x) == pytest.approx(plain.decision_function_one(x))


def test_the_sample_of_a_monitor_forgets_too():
    # A feature that one example has only, which leaves the model with it, and the sample.
    events = [EVENTS[0], ({"only": 1.0, **EVENTS[1][0]}, EVENTS[1][1]), *EVENTS[2:], *EVENTS * 3]

    def run(limit=None):
        model = LASVMClassifier(kernels.RBF(gamma=0.5), sparse=False, seed=1)
        monitor = TrackingMonitor(model, every=10)
        run = Run(MemorySource(events), monitor, limit=limit, checkpoint=Checkpoint("c.ckpt"))
        run.execute()
        return monitor

    before = run(200)
    sample = before.passed_by.numbers.tolist()
    gone = [2, *sample[:3], before.learner.kept_numbers()[0]]
    Path("ids").write_text("\n".join(map(str, gone)))
    assert main(["forget", "c.ckpt", "--ids", "ids"]) == 0
    _, about, arrays = container.read("c.ckpt")
    assert not np.isin(gone, arrays["monitor._numbers"]).any()
    monitor = run()
    assert before.learner.feature_names[2:] == ["only"]
    assert monitor.learner.feature_names == ["a", "b"]
    assert monitor.learner.n_examples == 240
    assert not np.isin(gone, [*monitor.passed_by.numbers, *monitor.learner.kept_numbers()]).any()
    # In the columns that the model has now.
    x, _, _ = monitor.passed_by.draw(300, 2, np.zeros(0, np.int64))
    for row, number in zip(x, monitor.passed_by.numbers, strict=True):
        event = events[number - 1][0]
        assert row == pytest.approx([event["a"], event["b"]], rel=1e-6)
    assert about["states"]["monitor"]["parameters"]["sampled"] == monitor.passed_by.size
