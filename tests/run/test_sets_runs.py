"""Runs, checkpoints, serving, monitor and command with `ConformalSets`; loops with `Selective`."""

import json
from collections.abc import Callable
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
from river import datasets, linear_model, preprocessing

import streamsvm
from connectors import MemorySource
from streamsvm import (
    ConformalSets,
    Selective,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
)
from streamsvm.cli.main import main
from streamsvm.errors import ParameterError
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving
from tests.run.test_late_labels import Script

EVENTS = [(dict(x), bool(y)) for x, y in datasets.Phishing()]


class Wrapped(NamedTuple):
    """A wrapper, what it is asked by events, and what counts the answers."""

    make: Callable
    ask: str
    counter: str

    def state_of(self, model):
        return getattr(model, self.counter).as_json()


SETS = Wrapped(lambda model: ConformalSets(model, 0.8), "predict_set_one", "sets")
ANSWERS = Wrapped(lambda model: Selective(model, 0.1), "answer_one", "answering")
BOTH = pytest.mark.parametrize("wrapped", [SETS, ANSWERS], ids=["sets", "answers"])


@pytest.mark.parametrize(
    "make",
    [SVMSGDClassifier, lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression()],
)
@BOTH
def test_a_run_is_a_loop_of_events(wrapped, make):
    model, other = wrapped.make(make()), wrapped.make(make())
    report, given = Run(MemorySource(EVENTS), model).execute(), []
    for x, y in EVENTS:
        given.append(getattr(other, wrapped.ask)(x))
        other.learn_one(x, y)
    assert wrapped.state_of(model) == wrapped.state_of(other)
    assert report.learnt == 1250 and report.accuracy > 0.7
    if wrapped is SETS:
        hits = sum(y in found for found, (_, y) in zip(given, EVENTS, strict=True))
        assert hits == model.sets.n - model.sets.n_missed
        assert report.coverage == model.sets.figures()
    else:
        answers = sum(answer.label is not None for answer in given)
        assert report.answers["n_answered"] == report.answers["n_checked"] == answers > 100
        assert report.answers["answered_error"] < 0.1


@BOTH
def test_late_labels_count_for_what_was_given(wrapped, tmp_path):
    model, other = wrapped.make(SVMSGDClassifier()), wrapped.make(SVMSGDClassifier())
    report = Run(MemorySource(EVENTS), model, late=LateLabels(delay=30)).execute()
    held = []
    for i, (x, _) in enumerate(EVENTS):
        if i >= 30:
            other.learn_one(*EVENTS[i - 30], given=held[i - 30])
        held.append(getattr(other, wrapped.ask)(x))
    for i in range(1220, 1250):
        other.learn_one(*EVENTS[i], given=held[i])
    assert wrapped.state_of(model) == wrapped.state_of(other)
    assert report.learnt == 1250
    if wrapped is SETS:
        # Labels come 30 events late: the bound is wider by as many, and the figure knows.
        assert model.sets.n == 1250 and 250 - 9 - 30 < model.sets.n_missed < 250 + 5 + 30
        figures = report.coverage
        assert 0.8 - 35 / 1250 <= figures["coverage_least"] <= figures["coverage"]
    else:
        assert model.answering.n_labelled == 1250 and report.answers["n_checked"] > 100
    # With a checkpoint while they are held: the same.
    last = {}
    for limit in (400, 777, None):
        again = wrapped.make(SVMSGDClassifier())
        checkpoint = Checkpoint(tmp_path / "run.ckpt")
        run = Run(
            MemorySource(EVENTS), again, late=LateLabels(delay=30), limit=limit,
            checkpoint=checkpoint,
        )  # fmt: skip
        last[limit] = run.execute()
        if limit is not None and wrapped is SETS:
            # A run that ends at its limit learns what it holds; what is kept is from before.
            assert streamsvm.load(tmp_path / "run.ckpt").sets.n < limit
    assert wrapped.state_of(again) == wrapped.state_of(model)
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
