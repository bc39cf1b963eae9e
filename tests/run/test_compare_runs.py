"""Monitor, serving and commands with a candidate beside a model; loops: see `test_wrappers`."""

import json
import math

import pytest
from river import datasets, linear_model, preprocessing

import streamsvm
from connectors import MemorySource
from streamsvm import Compare, LASVMClassifier, StandardScaler, SVMSGDClassifier, TrackingMonitor
from streamsvm.cli.main import main
from streamsvm.errors import ParameterError
from streamsvm.kernels import RBF
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving
from tests import brokers

EVENTS = [(dict(x), bool(y)) for x, y in datasets.Bananas().take(900)]


def make(**given):
    a = StandardScaler() | SVMSGDClassifier()
    return Compare(a, LASVMClassifier(RBF(1.0)), on_decision="promote", **given)


def test_the_candidate_takes_over_in_monitor_and_serving():
    model = make()
    monitor = TrackingMonitor(model, every=100)
    serving = Serving(model, seconds=0.0)
    report = Run(MemorySource(EVENTS), monitor, on_progress=serving.refresh).execute()
    assert report.accuracy == monitor.get()["accuracy"]
    last = monitor.get()
    assert last["candidate_in_use"] == 1.0 and last["candidate_difference_low"] > 0.0
    assert "has taken over" in monitor.report()
    x = EVENTS[0][0]
    assert isinstance(serving.model, LASVMClassifier)
    assert serving.predict_proba_one(x) == model.predict_proba_one(x)


@pytest.mark.parametrize("is_river", [False, True])
def test_events_that_cannot_be_used_are_learnt_by_none(is_river):
    two = LASVMClassifier(RBF(1.0), max_classes=2)
    a = preprocessing.StandardScaler() | linear_model.LogisticRegression() if is_river else two
    model = Compare(a, LASVMClassifier(RBF(2.0), max_classes=2))
    x = EVENTS[0][0]
    events = [(x, int(y)) for x, y in EVENTS[:100]]
    # Of an own learner a third class among the first rows is an error of the whole target.
    events += [(dict.fromkeys(x, math.inf), 1), (x, 2 if is_river else None), (x, None)]
    report = Run(MemorySource(events), model, bad_events=BadEvents("skip")).execute()
    assert report.learnt == model.comparison.n == model.b.n_examples == 100
    assert sum(report.bad.values()) == 3


def test_none_of_both_forgets_without_the_other(tmp_path):
    # Numbers of examples differ if one has learnt before.
    model = Compare(LASVMClassifier(RBF(1.0)), LASVMClassifier(RBF(2.0)))
    for x, y in EVENTS[:100]:
        model.learn_one(x, y)
    streamsvm.save(model, tmp_path / "m.svm")
    (tmp_path / "ids").write_text("1\n")
    with pytest.raises(ParameterError, match="of its own"):
        Serving(model).unlearn([1])
    assert main(["forget", str(tmp_path / "m.svm"), "--ids", str(tmp_path / "ids")]) == 2


DATA = "examples/data/bananas.parquet"


def test_the_command_compares(tmp_path, capsys):
    saved, best = str(tmp_path / "a.svm"), str(tmp_path / "best.svm")
    of = [DATA, "--target", "label", "--quiet"]
    learner = ["--learner", "sgd", "--limit", "1000"]
    assert main(["replay", *of, *learner, "--save", saved]) == 0
    capsys.readouterr()
    command = ["compare", *of, "--model", saved, "--frozen", "--against", "lasvm --gamma 1"]
    assert main([*command, "--json", "--stop", "--save", best]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decision"] == "b" and found["first_known"]["b"] <= found["n"] < 2000
    assert found["a"]["learner"] == "sgd" and found["b"]["learner"] == "lasvm"
    assert streamsvm.load(best)["LASVMClassifier"].n_examples == found["n"]
    assert main(["compare", *of, *learner, "--candidate", saved]) == 0
    assert "not known yet" in capsys.readouterr().out
    assert main(["compare", *of, *learner, "--against", "sgd --gama 1"]) == 2
    assert main(["compare", *of, *learner, "--against", "nothing"]) == 2


def test_a_shadow_takes_over(tmp_path, capsys):
    of = [DATA, "--target", "label", "--learner", "sgd", "--shadow", "lasvm --gamma 1"]
    saved = str(tmp_path / "m.svm")
    assert main(["replay", *of, "--promote", "--save", saved, "--limit", "1000"]) == 0
    done = capsys.readouterr()
    assert "took over after" in done.out and "took over after" in done.err
    assert isinstance(streamsvm.load(saved)["LASVMClassifier"], LASVMClassifier)
    assert main(["replay", *of, "--json", "--quiet", "--limit", "1000"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["comparison"]["decision"] == "b" and found["comparison"]["record"] is None
    assert found["learner"] == "sgd"
    assert main(["replay", *of[:5], "--promote"]) == 2
    for text in ("", "lasvm --C '10"):
        assert main(["replay", *of[:5], "--shadow", text]) == 2
        assert "--shadow" in capsys.readouterr().err


@pytest.mark.slow
def test_a_shadow_of_a_topic_goes_on_from_a_checkpoint(tmp_path, capsys):
    confluent_kafka = pytest.importorskip("confluent_kafka")
    with brokers.mock() as address:
        producer = confluent_kafka.Producer({"bootstrap.servers": address, "log_level": 0})
        for x, y in EVENTS:
            producer.produce("bananas", json.dumps(x | {"label": y}).encode(), partition=0)
        producer.flush(30)
        found = []
        for group, limits in (("one", [60, 400]), ("other", [400])):
            command = ["consume", "--brokers", address, "--topic", "bananas", "--group", group]
            command += ["--target", "label", "--learner", "sgd", "--shadow", "lasvm --gamma 1"]
            command += ["--promote", "--json", "--quiet", "--idle", "3", "--set", "log_level=0"]
            command += ["--checkpoint", str(tmp_path / group)]
            for limit in limits:
                assert main([*command, "--limit", str(limit)]) == 0
            found.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
        one, other = found
        assert one["comparison"] == other["comparison"]
        assert one["comparison"]["record"]["in_use"] == "b" and one["learner"] == "lasvm"
        assert one["monitor"]["candidate_in_use"] == 1.0


def test_a_run_that_goes_on_after_its_end_reports_the_model_in_use(tmp_path):
    for _ in range(2):
        run = Run(MemorySource(EVENTS), make(), checkpoint=Checkpoint(tmp_path / "c"))
        report = run.execute()
        assert run.model.record["in_use"] == "b" and run.learner is run.model.b
        assert report.model_examples == run.model.b.n_examples
    assert report.resumed_after == len(EVENTS)
