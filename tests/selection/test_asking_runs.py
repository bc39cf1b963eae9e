"""Runs of an `ActiveLearner`: questions, answers and commands; loops: see `test_wrappers`."""

import numpy as np
import pytest
from river import linear_model

import streamsvm
from connectors import MemorySource
from streamsvm import (
    ActiveLearner,
    LASVMClassifier,
    TrackingMonitor,
    kernels,
)
from streamsvm.errors import ParameterError
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving
from tests.run.test_late_labels import Script
from tests.selection.test_selection import stream

RBF = kernels.RBF(gamma=1.0)


def model_of(strategy="quantile", classifier=None, budget=0.1):
    return ActiveLearner(classifier or LASVMClassifier(RBF), budget, strategy, seed=3)


def by_hand(model, events):
    """Return how many predictions were right, as a user's loop finds it."""
    right = 0
    for x, y in events:
        predicted, ask = model.predict_one(x)
        right += predicted == y
        if ask:
            model.learn_one(x, y)
    return right


def same(a, b):
    assert a.asking.as_json() == b.asking.as_json()
    x = {"a": 0.3, "b": -0.2}
    assert a.classifier.decision_function_one(x) == b.classifier.decision_function_one(x)


def test_bad_events_are_counted_and_not_asked_for():
    events = list(stream(400, seed=3))
    events[50] = ({"a": float("inf"), "b": 1.0}, 1)
    events[60] = (events[60][0], None)
    for classifier in (LASVMClassifier(RBF, max_classes=2), linear_model.LogisticRegression()):
        model = model_of(classifier=classifier, budget=1.0)
        found = events if isinstance(classifier, LASVMClassifier) else events[60:70]
        report = Run(MemorySource(found), model, bad_events=BadEvents("skip")).execute()
        assert report.bad["missing label"] == 1
        assert sum(report.bad.values()) == (2 if found is events else 1)
        assert model.n_answered == report.learnt == len(found) - sum(report.bad.values())


def test_events_that_wait_are_in_files_but_not_the_oracle(tmp_path):
    events = list(stream(900, seed=5))
    label_of = {(x["a"], x["b"]): y for x, y in events}

    def oracle(x):
        return label_of[x["a"], x["b"]]

    model = ActiveLearner(LASVMClassifier(RBF), 0.1, candidates=20, oracle=oracle)
    by_hand(model, events[:500])
    streamsvm.save(model, tmp_path / "m.svm")
    loaded = streamsvm.load(tmp_path / "m.svm")
    assert len(loaded.asking.waiting) > 10
    with pytest.raises(ParameterError, match="set model.oracle"):
        by_hand(loaded, events[500:])
    loaded = streamsvm.load(tmp_path / "m.svm")
    loaded.oracle = oracle
    assert by_hand(loaded, events[500:]) == by_hand(model, events[500:])
    same(loaded, model)


@pytest.mark.parametrize("classifier", [LASVMClassifier, linear_model.LogisticRegression])
def test_questions_have_keys_and_answers_find_their_events(classifier):
    events, asked = list(stream(400, seed=8)), []
    labels = {f"k{n}": y for n, (_, y) in enumerate(events)}

    class Answered(Script):
        """Answers come 30 events after the questions; each seventh never does."""

        def batches(self, size=None):
            n_told = 0
            for n, (x, _) in enumerate(events):
                self.items = [("event", f"k{n}", x)]
                self._row = 0
                yield from super().batches()
                told = [q["key"] for q in asked if int(q["key"][1:]) <= n - 30]
                for key in told[n_told:]:
                    if int(key[1:]) % 7:
                        self.items = [("label", key, labels[key])]
                        self._row = 0
                        yield from super().batches()
                n_told = len(told)

    late = LateLabels(ask=asked.append, patience=100)
    options = {"max_classes": 2} if classifier is LASVMClassifier else {}
    model = model_of(classifier=classifier(**options), budget=0.2)
    report = Run(Answered([]), model, late=late).execute()
    assert len(asked) == model.n_asked == report.asked["asked"]
    assert 50 < len(asked) < 110
    assert asked[5]["x"] == events[int(asked[5]["key"][1:])][0]
    assert set(asked[-1]) == {"key", "predicted", "x"}
    assert asked[-1]["predicted"] in (True, False)
    assert model.n_answered == report.learnt == late.counts["answered"]
    n_never = sum(int(q["key"][1:]) % 7 == 0 for q in asked)
    assert 0 < late.counts["never_came"] <= n_never
    assert late.counts["not_asked"] == 400 - len(asked)
    assert late.counts["held"] + late.counts["never_came"] == len(asked) - model.n_answered


def test_labels_of_events_that_were_not_asked_for_are_not_learnt():
    items = [("event", "a0", {"a": 1.0}), ("label", "a0", True)]
    items += [("event", "a1", {"a": -1.0}), ("label", "a1", False)]
    items += [("event", f"b{n}", {"a": 1.0}) for n in range(300)]
    items += [("label", f"b{n}", True) for n in range(300)]
    model, late = model_of(classifier=LASVMClassifier(max_classes=2), budget=0.02), LateLabels()
    Run(Script(items), model, late=late).execute()
    assert model.n_answered == model.n_asked < 60
    assert late.counts["second_label"] == late.counts["not_asked"] == 302 - model.n_asked
    assert late.counts["labels_held"] == 0


def test_monitors_and_serving_take_it():
    events = list(stream(500, seed=9))
    model = model_of()
    serving, monitor = Serving(model, seconds=0.0), TrackingMonitor(model, every=100)
    Run(MemorySource(events), monitor, on_progress=serving.refresh).execute()
    assert serving.predict_one({"a": 0.5, "b": 0.5}) in (True, False)
    assert monitor.learner.n_examples == model.n_answered


def test_a_run_takes_no_oracle():
    with pytest.raises(ParameterError, match="leave both out"):
        Run(MemorySource([]), ActiveLearner(LASVMClassifier(), oracle=len))


def test_rows_that_the_learner_refuses_count_once():
    events = [(dict(x), y) for x, y in stream(600, seed=10)]
    for n in range(100, 600, 9):
        del events[n][0]["b"]
    model = model_of(classifier=LASVMClassifier(RBF, missing="reject"))
    report = Run(MemorySource(events), model, bad_events=BadEvents("skip")).execute()
    assert report.bad == {"missing value": 56}
    assert model.n_seen == report.learnt == 544


def test_labels_that_nobody_gave_are_no_answers():
    items = [("event", "a0", {"a": 1.0}), ("label", "a0", True)]
    items += [("event", f"b{n}", {"a": -1.0}) for n in range(300)]
    for classifier in (LASVMClassifier(max_classes=2), linear_model.LogisticRegression()):
        model, late = model_of(classifier=classifier), LateLabels(default=False, patience=20)
        report = Run(Script(items), model, late=late).execute()
        assert model.n_answered == late.counts["answered"] == 1
        assert report.learnt > 20


def test_a_batch_with_all_labels_is_no_way_to_ask():
    with pytest.raises(ParameterError, match="predict_one and learn_one"):
        streamsvm.predict_then_learn_many(model_of(), np.ones((3, 1)), [0, 1, 0])


def test_an_error_is_not_hidden_by_questions_that_are_not_delivered():
    class Failing:
        def __call__(self, question):
            raise OSError("the disk is full")

        def flush(self):
            raise RuntimeError("not delivered")

    items = [("event", f"b{n}", {"a": -1.0}) for n in range(30)]
    with pytest.raises(OSError, match="the disk is full"):
        Run(Script(items), model_of(), late=LateLabels(ask=Failing())).execute()
    with pytest.raises(ParameterError, match="simulated or asked for"):
        LateLabels(delay=5, ask=print)
