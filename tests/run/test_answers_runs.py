"""Runs, serving, monitor and commands with `Selective`; loops: see `test_wrappers`."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import streamsvm
from connectors import MemorySource
from streamsvm import LASVMClassifier, Selective, StandardScaler, SVMSGDClassifier, TrackingMonitor
from streamsvm.cli.main import main
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving
from tests import brokers
from tests.run.test_late_labels import Script
from tests.run.test_sets_runs import EVENTS

ROOT = Path(__file__).resolve().parents[2]
BANANAS = "examples/data/bananas.parquet"


@pytest.mark.parametrize("audit", [0.0, 0.5])
def test_asked_for_is_what_has_no_answer(audit):
    asked, items = [], []
    for n in range(600):
        items.append(("event", f"k{n}", {"a": float(n % 2), "b": float(n % 7)}))
        if n >= 5:
            items.append(("label", f"k{n - 5}", bool((n - 5) % 2)))
    model = Selective(SVMSGDClassifier(), 0.1, audit=audit, seed=1)
    monitor, late = TrackingMonitor(model), LateLabels(ask=asked.append)
    report = Run(Script(items), monitor, late=late).execute()
    counts = model.answering.counts
    assert counts["n_seen"] == 600
    assert len(asked) == 600 - counts["n_answered"] == report.late["abstained"] < 500
    reasons = {one["why"] for one in asked}
    assert reasons == ({"unsure", "audit"} if audit else {"unsure"})
    assert set(asked[-1]) == {"key", "predicted", "why", "position", "x"}
    # Labels of answers that are not checked are not waited for.
    assert report.late.get("not_asked", 0) == (counts["n_answered"] if audit else 0)
    assert counts["n_labelled"] == report.learnt
    assert monitor.get()["answered_error"] == model.answering.figures()["answered_error"]
    assert "whatever the stream was" in monitor.report()


def test_answers_are_served_and_counted():
    model = Selective(StandardScaler() | SVMSGDClassifier(), 0.1)
    serving = Serving(model, seconds=0.0)
    Run(MemorySource(EVENTS), model, on_progress=serving.refresh).execute()
    n = model.answering.n_seen
    answer = serving.answer_one(EVENTS[0][0])
    assert serving.predict_one(EVENTS[0][0]) == answer.label == model.predict_one(EVENTS[0][0])
    assert model.answering.n_seen == n + 3
    model.learn_one(*EVENTS[0], given=answer)


def test_the_commands_answer(tmp_path, capsys):
    model, out = tmp_path / "m.svm", tmp_path / "p.parquet"
    command = ["replay", BANANAS, "--target", "label", "--learner", "lasvm", "--error", ".1"]
    assert main([*command, "--json", "--quiet", "--save", str(model), "--limit", "3000"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["answers"]["answered_error"] <= 0.1
    assert found["monitor"]["answered"] == found["answers"]["answered"] > 0.3
    assert main(["predict", str(model), BANANAS, "-o", str(out)]) == 0
    table, loaded = pq.read_table(out), streamsvm.load(model)
    answers = loaded.predict_many(pq.read_table(BANANAS).drop(["label"]))
    assert table["answer"].to_pylist() == answers
    assert {*answers} == {True, False, None}
    assert main([*command, "--audit", ".5", "--quiet", "--limit", "500", "--no-monitor"]) == 0
    assert "labelled events of high confidence" in capsys.readouterr().out
    for wrong in (["--audit", ".1"], ["--error", ".7"], ["--error", ".1", "--coverage", ".9"]):
        assert main(["replay", BANANAS, "--target", "label", "--quiet", *wrong]) == 2


def test_a_topic_for_what_has_no_answer_needs_error_and_is_not_read_from(capsys):
    wrong = ["consume", "--brokers", "none:1", "--topic", "a", "--target", "y"]
    wrong += ["--abstain-topic", "b", "--labels-topic", "b"]
    assert main(wrong) == main([*wrong, "--error", ".1"]) == 2
    said = capsys.readouterr().err
    assert "and --error" in said
    assert "it is read from, too" in said


@pytest.mark.slow
def test_what_has_no_answer_goes_to_a_topic_and_its_labels_come_back(tmp_path):
    kafka = pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")
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
    # How many depends on how fast labels come back.
    assert answers["n_answered"] == late["not_asked"] > 0
    assert len(asked) == late["abstained"] == 800 - answers["n_answered"]
    assert late["answered"] == report["learnt"] == len(asked)
    assert answers["answered_error"] <= 0.2
    assert {one["why"] for one in asked} <= {"unsure", "audit", "held"}
    assert all(one["position"]["row"] == int(one["key"][1:]) for one in asked)


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
