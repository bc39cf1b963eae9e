"""Intervals of accuracy and recall: what they count, of late, and after a pause."""

import json

import numpy as np
import pytest
from river import dummy

from connectors import MemorySource
from streamsvm import SVMSGDClassifier, TrackingMonitor
from streamsvm.cli.report import report_rows
from streamsvm.confidence.sequence import share_interval
from streamsvm.labels.label_column import LabelColumn, Pairs
from streamsvm.monitor.score import Score
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run


def stream(n, change_at=None, seed=0):
    """Return labels and predictions: .9 are right, or .7 after the change."""
    draw = np.random.default_rng(seed)
    labels = draw.random(n) < 0.3
    limit = np.where(np.arange(n) < (n if change_at is None else change_at), 0.9, 0.7)
    right = draw.random(n) < limit
    return labels.tolist(), (labels == right).tolist()


def counted(labels, predicted, sizes):
    score, start = Score(), 0
    for size in sizes:
        part = [LabelColumn.of(column[start : start + size]) for column in (labels, predicted)]
        score.add(Pairs(tuple(part)))
        start += size
    assert start >= len(labels)
    return score


def test_counts_do_not_depend_on_batches_and_scores_count_alike():
    labels, predicted = stream(7345)
    predicted[:2] = [None, None]
    score = counted(labels, predicted, [7345])
    apart = counted(labels, predicted, [1, 998, 3, 2998, 1000, 2345])
    listed, pairs = Score(), list(zip(labels[2:], predicted[2:], strict=True))
    for start in range(0, len(pairs), 611):
        listed.count(pairs[start : start + 611])
    starts = [
        [(*s[:2], sorted(s[2])) for s in one.state()[0]["block_starts"]]
        for one in (score, apart, listed)
    ]
    assert starts[0] == starts[1] == starts[2] and score.pairs == apart.pairs == listed.pairs
    assert score.bounds() == apart.bounds() == listed.bounds()
    assert score.n == 7343 and score.recent[0] == 1343
    assert score.recent[1] == sum(map(bool.__eq__, labels[-1343:], predicted[-1343:]))


def test_bounds_are_the_confidence_sequences_of_their_counts():
    labels, predicted = stream(4500)
    score = counted(labels, predicted, [4500])
    accuracy, balanced, recall = score.bounds()
    assert accuracy[:2] == pytest.approx(share_interval(score.right, score.n), abs=1e-9)
    n, right = score.recent
    # The window began with block 3, of which 1,500 predictions were counted.
    level = 1.0 - 0.05 / (4 * 5)
    assert n == 1500
    assert accuracy[2:] == pytest.approx(share_interval(right, n, level), abs=1e-9)
    own = share_interval(score.right_of[True], score.n_of[True], 0.975)
    assert recall[True][:2] == pytest.approx(own, abs=1e-9)
    assert balanced.low == pytest.approx((recall[True].low + recall[False].low) / 2)
    assert accuracy.low < score.right / score.n < accuracy.high and accuracy.change == 0
    values = score.figures()
    assert values["accuracy_recent_high"] == accuracy.recent_high and score.recall_bounds == recall
    # Of the same predictions as its interval.
    assert values["accuracy_recent"] == right / n != score.accuracy
    assert set(Score().figures().values()) == {None}


def test_a_fall_is_noticed_and_said():
    labels, predicted = stream(12_000, change_at=10_000)
    assert counted(labels[:9999], predicted[:9999], [9999]).bounds()[0].change == 0
    score = counted(labels, predicted, [12_000])
    accuracy, balanced, recall = score.bounds()
    assert [accuracy.change, balanced.change, recall[True].change] == [-1, -1, -1]

    class Fixed(dummy.NoChangeClassifier):
        def predict_one(self, x):
            return x["p"]

    events = [({"p": p}, y) for y, p in zip(labels, predicted, strict=True)]
    run = Run(MemorySource(events), Fixed())
    report = run.execute()
    low, high = report.accuracy_low, report.accuracy_high
    assert abs(high - low) < 0.03 and low < report.accuracy < high
    assert report.of_late["changed"]["accuracy"] == -1
    found = dict(report_rows(report, {}))
    assert "at all moments, 95%" in found["progressive accuracy"]
    assert "accuracy lower (" in found["of late"] and "recall of True lower" in found["of late"]
    json.dumps(report.as_dict())


def test_few_steady_streams_are_said_to_change():
    said = 0
    for seed in range(40):
        labels, predicted = stream(6000, seed=seed)
        score = Score()
        for start in range(0, 6000, 1000):
            part = (LabelColumn.of(column[start : start + 1000]) for column in (labels, predicted))
            score.add(Pairs(tuple(part)))
            said += score.bounds()[0].change != 0
    assert said <= 1


def test_a_monitor_s_file_and_a_checkpoint_keep_the_blocks(tmp_path):
    events = [({"a": float(i % 7), "b": float(i % 3)}, i % 7 > 3) for i in range(5200)]
    whole = TrackingMonitor(SVMSGDClassifier(seed=1))
    expected = Run(MemorySource(events), whole).execute()
    path = tmp_path / "run.ckpt"
    for limit in (2300, None):
        monitor = TrackingMonitor(SVMSGDClassifier(seed=1))
        run = Run(MemorySource(events), monitor, limit=limit, checkpoint=Checkpoint(path))
        found = run.execute()
    assert monitor.score.bounds() == whole.score.bounds()
    names = ("accuracy_low", "accuracy_high", "balanced_accuracy_low", "recall_intervals")
    for name in (*names, "of_late"):
        assert getattr(found, name) == getattr(expected, name)


def test_a_label_that_vanishes_changes_no_balanced_accuracy():
    draw, score = np.random.default_rng(2), Score()
    for n in range(9000):
        label = int(draw.random() < 0.3 and n < 5000)
        is_right = draw.random() < (0.07 if label else 0.98)
        score.count([(label, label if is_right else 2)])
    _, balanced, recall = score.bounds()
    assert (recall[1].recent_low, recall[1].recent_high) == (0.0, 1.0)
    assert recall[0].change == balanced.change == 0
