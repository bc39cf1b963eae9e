"""Serving, monitor and command with `ConformalSets`; loops, parts, files: see `test_wrappers`."""

import json

import pyarrow.parquet as pq
from river import datasets

import streamsvm
from connectors import MemorySource
from streamsvm import ConformalSets, StandardScaler, SVMSGDClassifier, TrackingMonitor
from streamsvm.cli.main import main
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving
from tests.run.test_late_labels import Script

EVENTS = [(dict(x), bool(y)) for x, y in datasets.Phishing()]


def test_questions_tell_the_set_and_keys_find_it(tmp_path):
    asked = []
    items = []
    for n in range(300):
        items.append(("event", f"k{n}", {"a": float(n % 2), "b": float(n % 7)}))
        if n >= 5:
            items.append(("label", f"k{n - 5}", bool((n - 5) % 2)))
    model = ConformalSets(SVMSGDClassifier(), 0.9)
    monitor = TrackingMonitor(model)
    Run(Script(items), monitor, late=LateLabels(ask=asked.append)).execute()
    assert len(asked) == 300
    assert json.dumps(asked[-1]["set"]) in ("[true]", "[false]", "[]", "[true, false]")
    assert model.sets.n == 295
    assert monitor.get()["coverage"] == model.sets.figures()["coverage"]
    assert "whatever the stream was" in monitor.report()


def test_sets_are_served_at_rest():
    model = ConformalSets(StandardScaler() | SVMSGDClassifier(), 0.9)
    serving = Serving(model, seconds=0.0)
    Run(MemorySource(EVENTS), model, on_progress=serving.refresh).execute()
    x = EVENTS[0][0]
    at_rest = model.sets.at_rest().of(model.predict_proba_one(x))
    assert serving.predict_set_one(x) == serving.predict_set_one(x) == at_rest
    assert serving.predict_one(x) == model.predict_one(x)


def test_the_command_writes_sets(tmp_path, capsys):
    data, model, out = "examples/data/bananas.parquet", tmp_path / "m.svm", tmp_path / "p.parquet"
    command = ["replay", data, "--target", "label", "--learner", "sgd", "--coverage", ".8"]
    assert main([*command, "--json", "--quiet", "--save", str(model), "--limit", "2000"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert abs(found["coverage"]["coverage"] - 0.8) < 9 / 2000
    assert found["monitor"]["coverage"] == found["coverage"]["coverage"]
    assert main(["predict", str(model), data, "-o", str(out)]) == 0
    table = pq.read_table(out)
    labels, sets = table["label" if "label" in table.column_names else "prediction"], table["set"]
    assert len(labels) == len(sets) == 5300
    expected = streamsvm.load(model).predict_set_many(pq.read_table(data).select(["x1", "x2"]))
    assert [tuple(one) for one in sets.to_pylist()] == expected
    assert main([*command, "--by-class", "--quiet", "--limit", "500", "--no-monitor"]) == 0
    assert "of 80%" in capsys.readouterr().out
    assert main(["replay", data, "--target", "label", "--by-class", "--quiet"]) == 2


def test_labels_that_never_came_do_not_count_and_do_not_wait():
    items = []
    for n in range(600):
        items.append(("event", f"k{n}", {"a": float(n % 2)}))
        if n >= 5 and n % 2:
            items.append(("label", f"k{n - 5}", n % 3 > 0))
    for default, learnt in ((None, 298), (False, 549)):
        model = ConformalSets(SVMSGDClassifier(), 0.9)
        late = LateLabels(patience=50, default=default)
        report = Run(Script(items), model, late=late).execute()
        assert report.learnt >= learnt
        assert model.sets.n == 298
        assert model.sets.n_waiting == report.late["held"]
