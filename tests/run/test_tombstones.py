"""Messages without a value, which ask to forget what was learnt from those with their key."""

import json
from pathlib import Path

import numpy as np
import pytest

from connectors import KafkaSource, id_of_key
from connectors.kafka.messages import Message
from streamsvm import (
    ActiveLearner,
    IncrementalSVMClassifier,
    LASVMClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    kernels,
)
from streamsvm.cli.main import main
from streamsvm.errors import ParameterError
from streamsvm.model_files import container
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.selection import Random

X = np.random.default_rng(0).normal(size=(150, 2)).tolist()


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def value(i, **more):
    a, b = X[i]
    return json.dumps({"a": a, "b": b} | more).encode()


def stream():
    """Return messages of 150 events, of which the keys k0, k1 come again and others are deleted."""
    messages = [(b"k%d" % i, value(i, y=X[i][0] * X[i][1] > 0)) for i in range(120)]
    for at, key in ((100, b"k3"), (70, b"k60"), (70, b"k61"), (71, b"never"), (20, b"k19")):
        messages.insert(at, (key, None))
    for i, key in enumerate([b"k1", b"k0", b"k1"] + [b"m%d" % j for j in range(27)], 120):
        messages.append((key, value(i, y=X[i][0] * X[i][1] > 0)))
    return [*messages, (b"k3", None), (b"m0", None), (None, None), (None, value(0, y=True))]


GONE = {f"k{i}".encode() for i in (3, 60, 61, 19)} | {b"m0"}


def learner():
    return IncrementalSVMClassifier(kernels.RBF(gamma=0.5), C=5.0)


def learnt(batch_size, model=None):
    model = model or learner()
    source = KafkaSource(stream(), "y", tombstones="forget", batch_size=batch_size)
    report = Run(source, TrackingMonitor(model), bad_events=BadEvents("skip")).execute()
    return model, report


def test_what_is_left_is_the_model_of_the_last_versions():
    model, report = learnt(500)
    last = {key: content for key, content in stream() if key not in {*GONE, b"never", None}}
    wanted = {id_of_key(key) for key in last}
    assert set(model.kept_numbers().tolist()) == wanted
    plain = learner()
    for content in map(json.loads, last.values()):
        plain.learn_one(content, content.pop("y"))
    for a, b in X:
        x = {"a": a, "b": b}
        assert model.decision_function_one(x) == pytest.approx(
            plain.decision_function_one(x), abs=1e-5
        )
    assert report.forgotten == {"removed": 5, "not_kept": 2, "waiting": 0, "replaced": 3}
    assert report.bad == {"not an event": 2}
    # Not by how the messages are divided into batches.
    alone, report = learnt(1)
    assert container.encoded(alone) == container.encoded(model)
    assert report.forgotten["replaced"] == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: LASVMClassifier(reserve=1000, seed=1),
        lambda: LASVMClassifier(selection=Random(candidates=20, share=0.5, seed=3)),
        lambda: IncrementalSVMClassifier(selection=Random(candidates=20, share=0.5, seed=3)),
    ],
)
def test_what_is_kept_beside_support_vectors_or_waits_to_be_chosen_is_forgotten(make):
    (model, report), (alone, _) = learnt(500, make()), learnt(1, make())
    assert report.forgotten == {"removed": 5, "not_kept": 2, "waiting": 0, "replaced": 3}
    assert not any(one.is_kept for one in model.audit(map(id_of_key, GONE)).values())
    if model.selection is None:
        assert any(one.is_reserved for one in model.audit([id_of_key("k1")]).values())
    else:
        waiting = model.waiting.facts["id"].tolist()
        assert waiting and all(one.is_waiting for one in model.audit(waiting).values())
    assert container.encoded(alone) == container.encoded(model)


def test_by_default_they_are_dead_letters():
    model = learner()
    source = KafkaSource(stream(), "y")
    report = Run(source, model, bad_events=BadEvents("skip")).execute()
    assert (report.bad, report.forgotten) == ({"not an event": 8}, {})
    assert model.n_kept == 151


def test_a_key_that_no_record_can_have_is_a_dead_letter():
    batches = KafkaSource([(b"k", None), (2**70, None)], "y", tombstones="forget").batches()
    found = [(batch.are_tombstones, len(batch), len(batch.rejects)) for batch in batches]
    assert found == [(True, 1, 0), (False, 0, 1)]
    assert not list(KafkaSource([(b"k", None)], "y", tombstones="forget").events())


def test_events_that_wait_for_labels_leave(capsys):
    def message(offset, topic, key, content):
        return Message(topic, 0, offset, key, content, float(offset))

    events = [message(i, "events", b"k%d" % i, value(i)) for i in range(40)]
    labels = [message(i, "labels", b"k%d" % i, b'{"y": %s}' % (b"true", b"false")[i % 2])
              for i in range(40)]  # fmt: skip
    gone = [message(40 + i, "events", b"k%d" % i, None) for i in (4, 5)]
    again = [message(50, "labels", b"k7", None)]

    def run(messages, model):
        source = KafkaSource(messages, "y", labels="labels", tombstones="forget", batch_size=10)
        return Run(source, model, late=LateLabels(), checkpoint=Checkpoint("c.ckpt"))

    model = learner()
    report = run(events + gone + labels + again, model).execute()
    assert report.forgotten == {"removed": 1, "not_kept": 0, "waiting": 2, "replaced": 0}
    ids = {id_of_key(f"k{i}") for i in range(40)} - {id_of_key(f"k{i}") for i in (4, 5, 7)}
    assert set(model.kept_numbers().tolist()) == ids
    Path("c.ckpt").unlink()
    # The command finds those that wait in a checkpoint by their keys.
    run(events + labels[:4], learner()).execute()
    Path("keys").write_text("k4\nk5\nk7\nk2\nk99\n")
    assert main(["forget", "c.ckpt", "--keys", "keys", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["waiting"], len(said["removed"]), len(said["not_kept"])) == (3, 1, 4)
    _, about, arrays = container.read("c.ckpt")
    held = np.concatenate([array for name, array in arrays.items() if name.endswith(".ids")])
    assert len(about["states"]["late"]["held"]) == len(held) == 33
    assert not np.isin([id_of_key(f"k{i}") for i in (4, 5, 7)], held).any()
    model = learner()
    run(events + labels, model).execute()
    assert set(model.kept_numbers().tolist()) == ids - {id_of_key("k2")}


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        (SVMSGDClassifier(), {}, "cannot forget"),
        (StandardScaler() | SVMSGDClassifier(), {}, "cannot forget"),
        (learner(), {"late": LateLabels(delay=3)}, "delay"),
    ],
)
def test_what_cannot_be_done_is_refused_at_the_start(model, settings, words):
    source = KafkaSource([], "y", tombstones="forget")
    with pytest.raises(ParameterError, match=words):
        Run(source, model, **settings)


def test_settings_that_exclude_each_other():
    taken = KafkaSource([], "y", tombstones="forget").snapshot()
    for use in (
        lambda: KafkaSource([], "y", key="id", tombstones="forget"),
        lambda: KafkaSource([], "y", tombstones="ignore"),
        lambda: KafkaSource([], "y").resume(taken),
    ):
        with pytest.raises(ValueError, match="tombstones"):
            use()


def test_a_model_that_asks_forgets_what_it_has_learnt():
    model = ActiveLearner(learner(), budget=0.5, seed=1)
    source = KafkaSource(stream(), "y", tombstones="forget")
    report = Run(source, model, bad_events=BadEvents("skip")).execute()
    kept = set(model.classifier.kept_numbers().tolist())
    assert kept
    assert not kept & {id_of_key(key) for key in GONE}
    assert report.forgotten["removed"] + report.forgotten["not_kept"] == 7


def with_texts(messages):
    """Return messages of which some have a text, which the others lack."""
    texts = {0: b'{"t": "u", ', 5: b'{"t": "v", '}
    return [
        (key, content and content.replace(b"{", texts.get(at % 10, b"{"), 1))
        for at, (key, content) in enumerate(messages)
    ]


def test_a_checkpoint_is_gone_on_from_as_if_it_had_not_ended():
    def run(name, limit=None, size=500):
        # By number, messages that were read come a second time, and are passed over.
        model, source = StandardScaler() | learner(), with_texts(stream())
        source = KafkaSource(source, "y", tombstones="forget", batch_size=size)
        bad, checkpoint = BadEvents("skip"), Checkpoint(f"{name}.ckpt")
        return model, Run(source, model, limit=limit, bad_events=bad, checkpoint=checkpoint)

    whole, first = run("whole")
    report = first.execute()
    # The end is behind a request, and before those that come again.
    for limit, size in ((75, 5), (122, 1)):
        run("parts", limit, size)[1].execute()
    model, last = run("parts")
    resumed = last.execute()
    assert container.encoded(model) == container.encoded(whole)
    assert resumed.resumed_after == 122
    assert (resumed.forgotten, resumed.bad) == (report.forgotten, report.bad)


def test_the_command_forgets_what_a_broker_deletes(capsys):
    from tests import brokers

    keys, contents = zip(*stream(), strict=True)
    with brokers.mock() as address:
        brokers.produce(address, "t", contents, 1, keys)
        options = ["--brokers", address, "--topic", "t", "--target", "y", "--idle", "2"]
        options += ["--learner", "incremental", "--tombstones", "forget", "--json", "--quiet"]
        assert main(["consume", *options, "--set", "log_level=0", "--on-error", "skip"]) == 0
    forgotten = json.loads(capsys.readouterr().out)["forgotten"]
    assert forgotten == {"removed": 5, "not_kept": 2, "waiting": 0, "replaced": 3}
    assert main(["consume", *options, "--key", "id"]) == 2
    assert "--tombstones: not with --key" in capsys.readouterr().err
