"""Selective: errors of answers on streams, what counts, events and batches, files, audit."""

import math
import random

import numpy as np
import pytest
from river import base, datasets, evaluate, metrics, naive_bayes

import streamsvm
from streamsvm import LASVMClassifier, Selective, SVMSGDClassifier
from streamsvm.selection import waiting


def drawn(n, flips, seed=1):
    """Yield events of two classes that overlap; from `flips` on, they have changed places."""
    draw = random.Random(seed)
    for i in range(n):
        y = draw.random() < 0.5
        yield {"a": draw.gauss(1.5 if y else -1.5, 1.0)}, y != (i >= flips)


def test_a_share_is_looked_at_if_labels_come_for_what_was_not_answered_only():
    model, wrong, answers = Selective(naive_bayes.GaussianNB(), 0.05, audit=0.2, seed=1), 0, 0
    for x, y in drawn(12_000, 12_000):
        answer = model.answer_one(x)
        if answer.label is None:
            assert answer.why in ("unsure", "audit")
            model.learn_one(x, y, given=answer)
        else:
            answers, wrong = answers + 1, wrong + (answer.label != y)
    counts = model.answering.counts
    assert answers > 4000
    assert wrong / answers < 0.05
    # Those that would have been answered are a fair part of the answers.
    checked = counts["n_wrong"] / counts["n_checked"]
    assert abs(checked - wrong / answers) < 4 * math.sqrt(0.05 / counts["n_checked"])
    assert 0.18 < counts["n_checked"] / (answers + counts["n_audited"]) < 0.22


def test_what_was_said_counts_however_late_the_label_comes():
    model = Selective(SVMSGDClassifier(), 0.3)
    for i in range(200):
        model.learn_one({"a": float(i % 2)}, bool(i % 2))
    x = {"a": 1.0}
    first = model.answer_one(x)
    assert (first.label, first.why) == (True, "")
    n = model.answering.guard.n_wrong
    for i in range(200, 300):
        model.learn_one({"a": float(i % 2)}, not i % 2)
    before = model.answering.guard.n_wrong
    assert before > n
    model.learn_one(x, False, given=first)
    assert model.answering.guard.n_wrong == before + 1
    # The same dict filled with another event is not the event that was predicted.
    model.answer_one(x)
    x["a"] = 0.0
    seen = model.answering.n_seen
    model.learn_one(x, False)
    assert model.answering.n_seen == seen + 1


def test_nothing_is_answered_before_there_is_evidence():
    model = Selective(SVMSGDClassifier(), 0.01)
    assert [model.predict_one(x) for x, _ in datasets.Phishing()] == [None] * 1250
    assert model.answering.figures()["answered_error_high"] == 1.0


class Echo(base.Classifier):
    """Predicts the label that was learnt last."""

    def __init__(self):
        self.y = 0

    @property
    def _multiclass(self):
        return True

    def learn_one(self, x, y):
        self.y = y

    def predict_proba_one(self, x):
        return {self.y: 1.0}


def test_errors_are_held_in_rivers_delayed_evaluation():
    # Right 1,300 times, then wrong at all events of each second piece of 40, as labels are late.
    events = [({"i": float(i)}, i > 1300 and i // 40 % 2) for i in range(4000)]
    model, said = Selective(Echo(), 0.1), []

    class Kept(metrics.Accuracy):
        def update(self, y_true, y_pred, w=1.0):
            said.append(y_pred == y_true)

    evaluate.progressive_val_score(events, model, Kept(), moment=lambda x: int(x["i"]), delay=39)
    guard, counts = model.answering.guard, model.answering.counts
    # What it counts is what was said.
    assert (guard.n, guard.n_wrong) == (len(said), said.count(False))
    assert counts["n_seen"] == counts["n_labelled"] == 4000
    assert 20 < guard.n_wrong <= guard.most_wrong
    assert guard.n_wrong <= 0.1 * guard.n + 2 * (1 + guard.n_openings) + 38
    assert model.answering.figures()["answered_error"] == guard.n_wrong / guard.n


def test_answers_that_wait_are_bounded_and_a_label_of_a_forgotten_one_is_said(monkeypatch, caplog):
    monkeypatch.setattr(waiting, "MOST", 10)
    model = Selective(naive_bayes.GaussianNB(), 0.05)
    model.learn_one({"a": 0.0}, True)
    for i in range(15):
        model.predict_one({"a": float(i % 14)})
    model.learn_one({"a": 13.0}, True)
    assert not caplog.records
    for i in range(2):
        model.learn_one({"a": float(i)}, True)
    assert model.answering.n_seen == 16 and len(caplog.records) == 1


def test_labels_of_numpy_and_labels_that_the_model_refuses(tmp_path):
    draw = np.random.default_rng(1)
    labels = draw.random(200) < 0.5
    model = Selective(LASVMClassifier(max_classes=2), 0.5)
    for y in labels:
        x = {"a": float(y)}
        model.predict_one(x)
        model.learn_one(x, y)
    streamsvm.save(model, tmp_path / "m.svm")
    assert streamsvm.load(tmp_path / "m.svm").answering.counts == model.answering.counts
    n = model.answering.guard.n_wrong
    assert model.predict_one(x) is not None
    with pytest.raises(streamsvm.errors.LabelError):
        model.learn_one(x, "other")
    assert model.answering.guard.n_wrong == n + 1
    with pytest.raises(streamsvm.errors.LabelError):
        model.learn_one(x, None)
    assert model.answering.n_seen == model.answering.n_labelled == 201
