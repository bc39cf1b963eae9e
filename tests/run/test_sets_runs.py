"""Runs, checkpoints, late labels, serving, monitor and command with `ConformalSets`."""

import json

import pyarrow.parquet as pq
import pytest
from river import datasets, linear_model, preprocessing

import streamsvm
from connectors import MemorySource
from streamsvm import ConformalSets, StandardScaler, SVMSGDClassifier, TrackingMonitor
from streamsvm.cli.main import main
from streamsvm.errors import ParameterError
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving
from tests.run.test_late_labels import Script

EVENTS = [(dict(x), bool(y)) for x, y in datasets.Phishing()]


def by_hand(model, events):
    """Return how many sets had the label."""
    hits = 0
    for x, y in events:
        hits += y in model.predict_set_one(x)
        model.learn_one(x, y)
    return hits


@pytest.mark.parametrize(
    "make",
    [SVMSGDClassifier, lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression()],
)
def test_a_run_is_a_loop_of_events(make):
    model, other = ConformalSets(make(), 0.8), ConformalSets(make(), 0.8)
    report = Run(MemorySource(EVENTS), model).execute()
    assert by_hand(other, EVENTS) == model.sets.n - model.sets.n_missed
    assert model.sets.as_json() == other.sets.as_json()
    assert report.coverage == model.sets.figures()
    assert report.learnt == 1250
    assert report.accuracy > 0.7


def test_late_labels_count_for_the_set_that_was_given(tmp_path):
    model, other = ConformalSets(SVMSGDClassifier(), 0.8), ConformalSets(SVMSGDClassifier(), 0.8)
    report = Run(MemorySource(EVENTS), model, late=LateLabels(delay=30)).execute()
    held = []
    for i, (x, _) in enumerate(EVENTS):
        if i >= 30:
            other.learn_one(*EVENTS[i - 30], given=held[i - 30])
        held.append(other.predict_set_one(x))
    for i in range(1220, 1250):
        other.learn_one(*EVENTS[i], given=held[i])
    assert model.sets.as_json() == other.sets.as_json()
    assert report.learnt == model.sets.n == 1250
    # Labels come 30 events late: the bound is wider by as many, and the figure knows.
    assert 250 - 9 - 30 < model.sets.n_missed < 250 + 5 + 30
    figures = report.coverage
    assert 0.8 - 35 / 1250 <= figures["coverage_least"] <= figures["coverage"]
    # With a checkpoint while sets are held: the same.
    last = {}
    for limit in (400, 777, None):
        again = ConformalSets(SVMSGDClassifier(), 0.8)
        checkpoint = Checkpoint(tmp_path / "run.ckpt")
        run = Run(
            MemorySource(EVENTS), again, late=LateLabels(delay=30), limit=limit,
            checkpoint=checkpoint,
        )  # fmt: skip
        last[limit] = run.execute()
        if limit is not None:
            # A run that ends at its limit learns what it holds; what is kept is from before.
            assert streamsvm.load(tmp_path / "run.ckpt").sets.n < limit
    assert again.sets.as_json() == model.sets.as_json()
    assert last[None].accuracy == report.accuracy


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


def test_served_and_refused():
    model = ConformalSets(StandardScaler() | SVMSGDClassifier(), 0.9)
    serving = Serving(model, seconds=0.0)
    Run(MemorySource(EVENTS), model, on_progress=serving.refresh).execute()
    x = EVENTS[0][0]
    at_rest = model.sets.at_rest().of(model.predict_proba_one(x))
    assert serving.predict_set_one(x) == serving.predict_set_one(x) == at_rest
    assert serving.predict_one(x) == model.predict_one(x)
    with pytest.raises(ParameterError, match="once"):
        Run(MemorySource(EVENTS), model, epochs=2)


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
