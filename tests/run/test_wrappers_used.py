"""Monitors, questions, commands and topics of each wrapper; loops: see `test_wrappers`."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from river import datasets, linear_model, preprocessing

import streamsvm
from connectors import MemorySource
from streamsvm import (
    Compare,
    ConformalSets,
    LASVMClassifier,
    Selective,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
)
from streamsvm.cli.main import main
from streamsvm.errors import ParameterError
from streamsvm.kernels import RBF
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving
from tests import brokers
from tests.run.test_late_labels import Script

ROOT = Path(__file__).resolve().parents[2]
DATA = "examples/data/bananas.parquet"
REPLAY = ["replay", DATA, "--target", "label"]
FEW = ["--quiet", "--limit", "500", "--no-monitor"]
BANANAS = [(dict(x), bool(y)) for x, y in datasets.Bananas().take(900)]


def scaled():
    return StandardScaler() | SVMSGDClassifier()


def comparing():
    return Compare(scaled(), LASVMClassifier(RBF(1.0)), on_decision="promote")


def script(n, label_of=lambda i: bool(i % 2)):
    """Return events whose labels come five events later; None: it never comes."""
    items = []
    for i in range(n):
        items.append(("event", f"k{i}", {"a": float(i % 2), "b": float(i % 7)}))
        if i >= 5 and label_of(i - 5) is not None:
            items.append(("label", f"k{i - 5}", label_of(i - 5)))
    return Script(items)


def asked_for(model, n):
    """Run a script in a monitor; return what was asked, the report and the monitor's figures."""
    asked, monitor = [], TrackingMonitor(model)
    report = Run(script(n), monitor, late=LateLabels(ask=asked.append)).execute()
    assert "whatever the stream was" in monitor.report()
    return asked, report, monitor.get()


@pytest.mark.parametrize("audit", [0.0, 0.5])
def test_asked_for_is_what_has_no_answer(audit):
    model = Selective(SVMSGDClassifier(), 0.1, audit=audit, seed=1)
    asked, report, figures = asked_for(model, 600)
    counts = model.answering.counts
    assert counts["n_seen"] == 600
    assert len(asked) == 600 - counts["n_answered"] == report.late["abstained"] < 500
    reasons = {one["why"] for one in asked}
    assert reasons == ({"unsure", "audit"} if audit else {"unsure"})
    assert set(asked[-1]) == {"key", "predicted", "why", "position", "x"}
    # Labels of answers that are not checked are not waited for.
    assert report.late.get("not_asked", 0) == (counts["n_answered"] if audit else 0)
    assert counts["n_labelled"] == report.learnt
    assert figures["answered_error"] == model.answering.figures()["answered_error"]


def test_questions_tell_the_set_and_keys_find_it():
    model = ConformalSets(SVMSGDClassifier(), 0.9)
    asked, _, figures = asked_for(model, 300)
    assert len(asked) == 300
    assert json.dumps(asked[-1]["set"]) in ("[true]", "[false]", "[]", "[true, false]")
    assert model.sets.n == 295
    assert figures["coverage"] == model.sets.figures()["coverage"]


@pytest.mark.parametrize(("default", "learnt"), [(None, 298), (False, 549)])
def test_labels_that_never_came_do_not_count_and_do_not_wait(default, learnt):
    model = ConformalSets(SVMSGDClassifier(), 0.9)
    late = LateLabels(patience=50, default=default)
    items = script(600, lambda i: None if i % 2 else i % 3 > 0)
    report = Run(items, model, late=late).execute()
    assert report.learnt >= learnt
    assert model.sets.n == 298
    assert model.sets.n_waiting == report.late["held"]


@pytest.mark.parametrize("late", [None, LateLabels(delay=30)])
def test_answers_to_events_whose_label_the_model_refuses_are_wrong(late):
    events = [({"a": float(i % 2)}, str(i % 2)) for i in range(1000)]
    events += [({"a": 1.0}, "other")] * 60
    model = Selective(LASVMClassifier(max_classes=2), 0.05)
    report = Run(MemorySource(events), model, late=late, bad_events=BadEvents("skip")).execute()
    assert sum(report.bad.values()) == 60
    counts = model.answering.counts
    assert counts["n_checked"] == counts["n_answered"] < 1000
    assert 20 < counts["n_wrong"] <= model.answering.guard.most_wrong
    assert counts["n_labelled"] == 1060


@pytest.mark.parametrize("is_river", [False, True])
def test_events_that_cannot_be_used_are_learnt_by_none(is_river):
    two = LASVMClassifier(RBF(1.0), max_classes=2)
    a = preprocessing.StandardScaler() | linear_model.LogisticRegression() if is_river else two
    model = Compare(a, LASVMClassifier(RBF(2.0), max_classes=2))
    x = BANANAS[0][0]
    events = [(x, int(y)) for x, y in BANANAS[:100]]
    # Of an own learner a third class among the first rows is an error of the whole target.
    events += [(dict.fromkeys(x, math.inf), 1), (x, 2 if is_river else None), (x, None)]
    report = Run(MemorySource(events), model, bad_events=BadEvents("skip")).execute()
    assert report.learnt == model.comparison.n == model.b.n_examples == 100
    assert sum(report.bad.values()) == 3


def test_none_of_both_forgets_without_the_other(tmp_path):
    # Numbers of examples differ if one has learnt before.
    model = Compare(LASVMClassifier(RBF(1.0)), LASVMClassifier(RBF(2.0)))
    for x, y in BANANAS[:100]:
        model.learn_one(x, y)
    streamsvm.save(model, tmp_path / "m.svm")
    (tmp_path / "ids").write_text("1\n")
    with pytest.raises(ParameterError, match="of its own"):
        Serving(model).unlearn([1])
    assert main(["forget", str(tmp_path / "m.svm"), "--ids", str(tmp_path / "ids")]) == 2


def test_the_candidate_takes_over_in_a_monitor():
    model = comparing()
    monitor = TrackingMonitor(model, every=100)
    report = Run(MemorySource(BANANAS), monitor).execute()
    last = monitor.get()
    assert report.accuracy == last["accuracy"]
    assert last["candidate_in_use"] == 1.0 and last["candidate_difference_low"] > 0.0
    assert "has taken over" in monitor.report()


def test_a_run_that_goes_on_after_its_end_reports_the_model_in_use(tmp_path):
    for _ in range(2):
        run = Run(MemorySource(BANANAS), comparing(), checkpoint=Checkpoint(tmp_path / "c"))
        report = run.execute()
        assert run.model.record["in_use"] == "b" and run.learner is run.model.b
        assert report.model_examples == run.model.b.n_examples
    assert report.resumed_after == len(BANANAS)


def said(capsys, *args, code=0):
    """Run a command; return what it prints, or what it says where it is refused."""
    capsys.readouterr()
    assert main(list(map(str, args))) == code
    out, error = capsys.readouterr()
    return error if code else out


def predicted(capsys, tmp_path, *options):
    """Return what `replay` reports with some options, and the model, its predictions, and data."""
    model, out = tmp_path / "m.svm", tmp_path / "p.parquet"
    found = json.loads(said(capsys, *REPLAY, *options, "--json", "--quiet", "--save", model))
    said(capsys, "predict", model, DATA, "-o", out)
    return found, streamsvm.load(model), pq.read_table(out), pq.read_table(DATA).drop(["label"])


def test_the_commands_answer(tmp_path, capsys):
    own = ["--learner", "lasvm", "--error", ".1"]
    found, model, table, data = predicted(capsys, tmp_path, *own, "--limit", "3000")
    assert found["answers"]["answered_error"] <= 0.1
    assert found["monitor"]["answered"] == found["answers"]["answered"] > 0.3
    answers = model.predict_many(data)
    assert table["answer"].to_pylist() == answers
    assert {*answers} == {True, False, None}
    told = said(capsys, *REPLAY, *own, "--audit", ".5", *FEW)
    assert "labelled events of high confidence" in told
    for wrong in (["--audit", ".1"], ["--error", ".7"], ["--error", ".1", "--coverage", ".9"]):
        said(capsys, *REPLAY, "--quiet", *wrong, code=2)


def test_the_command_writes_sets(tmp_path, capsys):
    own = ["--learner", "sgd", "--coverage", ".8"]
    found, model, table, data = predicted(capsys, tmp_path, *own, "--limit", "2000")
    assert abs(found["coverage"]["coverage"] - 0.8) < 9 / 2000
    assert found["monitor"]["coverage"] == found["coverage"]["coverage"]
    assert len(table["label" if "label" in table.column_names else "prediction"]) == 5300
    assert [tuple(one) for one in table["set"].to_pylist()] == model.predict_set_many(data)
    assert "of 80%" in said(capsys, *REPLAY, *own, "--by-class", *FEW)
    said(capsys, *REPLAY, "--by-class", "--quiet", code=2)


def test_the_command_compares(tmp_path, capsys):
    saved, best = str(tmp_path / "a.svm"), str(tmp_path / "best.svm")
    of = [*REPLAY[1:], "--quiet"]
    learner = ["--learner", "sgd", "--limit", "1000"]
    said(capsys, "replay", *of, *learner, "--save", saved)
    own = ["--model", saved, "--frozen", "--against", "lasvm --gamma 1"]
    found = json.loads(said(capsys, "compare", *of, *own, "--json", "--stop", "--save", best))
    assert found["decision"] == "b" and found["first_known"]["b"] <= found["n"] < 2000
    assert found["a"]["learner"] == "sgd" and found["b"]["learner"] == "lasvm"
    assert streamsvm.load(best)["LASVMClassifier"].n_examples == found["n"]
    assert "not known yet" in said(capsys, "compare", *of, *learner, "--candidate", saved)
    for wrong in ("sgd --gama 1", "nothing"):
        said(capsys, "compare", *of, *learner, "--against", wrong, code=2)


def test_a_shadow_takes_over(tmp_path, capsys):
    own = [*REPLAY, "--learner", "sgd", "--shadow", "lasvm --gamma 1", "--limit", "1000"]
    saved = str(tmp_path / "m.svm")
    assert main([*own, "--promote", "--save", saved]) == 0
    done = capsys.readouterr()
    assert "took over after" in done.out and "took over after" in done.err
    assert isinstance(streamsvm.load(saved)["LASVMClassifier"], LASVMClassifier)
    found = json.loads(said(capsys, *own, "--json", "--quiet"))
    assert found["comparison"]["decision"] == "b" and found["comparison"]["record"] is None
    assert found["learner"] == "sgd"
    said(capsys, *own[:6], "--promote", code=2)
    for text in ("", "lasvm --C '10"):
        assert "--shadow" in said(capsys, *own[:6], "--shadow", text, code=2)


@pytest.mark.slow
def test_a_shadow_of_a_topic_goes_on_from_a_checkpoint(tmp_path, capsys):
    payloads = [json.dumps(x | {"label": y}).encode() for x, y in BANANAS]
    with brokers.mock() as address:
        brokers.produce(address, "bananas", payloads, 1)
        found = []
        for group, limits in (("one", [60, 400]), ("other", [400])):
            own = ["consume", "--brokers", address, "--topic", "bananas", "--group", group]
            own += ["--target", "label", "--learner", "sgd", "--shadow", "lasvm --gamma 1"]
            own += ["--promote", "--json", "--quiet", "--idle", "3", "--set", "log_level=0"]
            for limit in limits:
                last = said(capsys, *own, "--checkpoint", tmp_path / group, "--limit", limit)
            found.append(json.loads(last))
    one, other = found
    assert one["comparison"] == other["comparison"]
    assert one["comparison"]["record"]["in_use"] == "b" and one["learner"] == "lasvm"
    assert one["monitor"]["candidate_in_use"] == 1.0


def test_a_topic_for_what_has_no_answer_needs_error_and_is_not_read_from(capsys):
    wrong = ["consume", "--brokers", "none:1", "--topic", "a", "--target", "y"]
    wrong += ["--abstain-topic", "b", "--labels-topic", "b"]
    assert "and --error" in said(capsys, *wrong, code=2)
    assert "it is read from, too" in said(capsys, *wrong, "--error", ".1", code=2)


@pytest.mark.slow
def test_what_has_no_answer_goes_to_a_topic_and_its_labels_come_back(tmp_path):
    kafka = brokers.confluent_kafka
    with brokers.mock() as address:
        producer = kafka.Producer({"bootstrap.servers": address, "log_level": 0})
        for topic in ("labels", "people"):
            producer.produce(topic, json.dumps({"id": "none", "bought": True}), partition=0)
        producer.flush(30)
        command = [sys.executable, "-m", "streamsvm", "consume", "--brokers", address]
        command += ["--topic", "visits", "--labels-topic", "labels", "--key", "id", "--quiet"]
        command += ["--target", "bought", "--error", ".2", "--audit", ".5", "--learner", "sgd"]
        command += ["--abstain-topic", "people", "--idle", "4", "--json", "--no-scale"]
        command += ["--checkpoint", str(tmp_path / "run.ckpt"), "--checkpoint-every", "100"]
        settings = {"bootstrap.servers": address, "group.id": "people", "log_level": 0}
        people = kafka.Consumer(settings | {"auto.offset.reset": "earliest"})
        people.subscribe(["people"])
        while people.poll(1.0) is None:  # the group is there
            pass
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        sent, asked = 0, []
        while process.poll() is None:
            message = people.poll(0.1)
            if message is None and (not sent or asked):
                # A few at a time, so that labels come back before the stream is at its end.
                for i in range(sent, min(sent + 40, 800) if sent else 300):
                    event = {"id": f"e{i}", "a": i * 7 % 11 - 5.0, "b": 1.0}
                    producer.produce("visits", json.dumps(event), partition=0)
                    sent += 1
            while message is not None and not message.error():
                one = json.loads(message.value())
                if "x" in one:
                    asked.append(one)
                    label = {"id": one["key"], "bought": one["x"]["a"] > 0}
                    producer.produce("labels", json.dumps(label), partition=0)
                message = people.poll(0.0)
            producer.poll(0)
        people.close()
        report = json.loads(process.communicate()[0])
    assert process.returncode == 0
    answers, late = report["answers"], report["late"]
    assert answers["n_seen"] == 800
    # How many depends on how fast labels come back: on a busy machine it may be none.
    assert answers["n_answered"] == late.get("not_asked", 0)
    assert len(asked) == late["abstained"] == 800 - answers["n_answered"]
    assert late["answered"] == report["learnt"] == len(asked)
    assert answers["answered_error"] <= 0.2
    assert {one["why"] for one in asked} <= {"unsure", "audit", "held"}
    assert all(one["position"]["row"] == int(one["key"][1:]) for one in asked)
