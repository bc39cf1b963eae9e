"""Events that a monitor observes take the fast paths too, and only the speed differs."""

import contextlib
import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import metrics

from streamsvm import (
    LASVMClassifier,
    SGDQNClassifier,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
)
from streamsvm.kernels import RBF
from streamsvm.learners.bases.learner import Learner
from streamsvm.monitor.sample import ReservoirSample
from streamsvm.support.rows import shape
from tests.interruptions import interrupted
from tests.learners.test_events import general
from tests.monitor.test_tracker import untimed
from tests.slow import slow_but

LEARNERS = {
    "SGD": SVMSGDClassifier,
    "SGD-QN": SGDQNClassifier,
    "LASVM": LASVMClassifier,
    "tracking": TrackingSVMClassifier,
}


def stream(n, seed, k=2):
    """Return events of four features, some of which come late or are missing."""
    rng = np.random.default_rng(seed)
    found = []
    for i, row in enumerate(rng.normal(size=(n, 4)).round(3).tolist()):
        x = dict(zip("abcd", row, strict=True))
        if i % 5 == 0:
            del x["b"]
        if i > n // 2:
            x[f"late {i % 3}"] = 1.0
        found.append((x, int(np.argmax(row[:k])) if k > 2 else row[0] + row[1] > 0.0))
    return found


def seen_by(monitor):
    """Return what a monitor knows, but for times."""
    passed_by = monitor.passed_by
    rows = [np.asarray(getattr(row, "values", row)).tolist() for row in passed_by._rows]
    records = [untimed(record) for record in monitor.history._records]
    for record in records:
        # Room in arrays differs.
        record.pop("memory_bytes")
    return records, passed_by.numbers.tolist(), passed_by.classes.tolist(), rows


def check_both_paths(name, events, n_before, metric=None, params=None, **parameters):
    """Check that a monitor that comes before an event sees the same by both paths."""
    seen = []
    for path in (contextlib.nullcontext, general):
        model = LEARNERS[name](**({} if "SGD" in name else {"seed": 1}) | (params or {}))
        with path():
            learn(model, events[:n_before])
            monitor = TrackingMonitor(model, metrics=metric and metric(), sample=5, **parameters)
            # Smaller than the stream, so that most examples are only counted.
            monitor.passed_by.size = 20
            learn(model if n_before else monitor, events[n_before:])
        seen.append(seen_by(monitor))
    assert seen[0] == seen[1]
    last = seen[0][0][-1]
    assert len(seen[0][0]) >= 2 and last["accuracy"] is not None
    return last


def learn(model, events):
    for i, (x, y) in enumerate(events):
        model.predict_one(x)
        model.learn_one(x, y, *((2.0,) if i % 7 == 3 else ()))


@pytest.mark.parametrize("scores", slow_but([None, "F1", "probabilities"], None, "probabilities"))
@pytest.mark.parametrize("params", [{}, {"sparse": True}], ids=str)
@pytest.mark.parametrize("name", slow_but(LEARNERS, "SGD", "SGD-QN", "LASVM"))
@given(seed=st.integers(0, 10**6), every=st.integers(1, 40), k=st.sampled_from([2, 2, 4]))
@settings(max_examples=4, deadline=None)
def test_a_monitor_sees_the_same_as_by_the_general_path(name, params, scores, seed, every, k):
    metric = {"F1": metrics.MacroF1, "probabilities": metrics.CrossEntropy}.get(scores)
    events = stream(120, seed, k if "SGD" in name else 2)
    check_both_paths(name, events, 0, metric, params, every=every, seed=seed)


@pytest.mark.parametrize("metric", [metrics.MacroF1, metrics.CrossEntropy])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_monitor_that_comes_later(name, metric):
    last = check_both_paths(name, stream(300, 3), 150, metric, every=20)
    assert last["n_examples"] == 140


@pytest.mark.parametrize(
    "model",
    [
        LASVMClassifier(RBF(gamma=0.5), sparse=False),
        TrackingSVMClassifier(RBF(gamma=0.5), sparse=False),
        SVMSGDClassifier(sparse=False),
        SGDQNClassifier(sparse=True),
    ],
    ids=lambda model: type(model).__name__,
)
def test_events_are_learnt_taken(model, monkeypatch):
    taken = []
    learn = Learner._learn_event
    monkeypatch.setattr(Learner, "_learn_event", lambda *a: taken.append(learn(*a)) or taken[-1])
    monitor = TrackingMonitor(model, every=100)
    for row in np.random.default_rng(0).normal(size=(1000, 2)).tolist():
        monitor.learn_one(dict(enumerate(row)), row[0] > row[1])
    # The others fall back.
    assert sum(taken) > 980
    assert monitor.get()["n_examples"] == 1000 and len(monitor.history) == 10


def test_predictions_that_were_expected_are_those_that_are_scored():
    monitor = TrackingMonitor(SVMSGDClassifier(t0=10.0), every=1000)
    events = stream(600, 1)
    for x, y in events[:550]:
        monitor.learn_one(x, y)
    before = monitor.get()["accuracy"] * 549
    for i, (x, y) in enumerate(events[550:]):
        monitor.expect([y if i % 2 else None])
        monitor.learn_one(x, y)
    # Those that nothing was predicted for are not scored.
    assert monitor.get()["accuracy"] * (549 + 25) == pytest.approx(before + 25)


def test_copies_watch_their_own_model_and_of_a_model_alone_nobody():
    monitor = TrackingMonitor(SVMSGDClassifier(), every=50)
    events = stream(400, 2)
    for x, y in events[:200]:
        monitor.learn_one(x, y)
    alone = pickle.loads(pickle.dumps(monitor.model))
    copies = [copy.copy(monitor), copy.deepcopy(monitor), pickle.loads(pickle.dumps(monitor))]
    before = seen_by(monitor)
    for one in (alone, *copies):
        for x, y in events[200:]:
            one.learn_one(x, y)
    assert seen_by(monitor) == before and monitor.get()["n_examples"] == 200
    assert monitor.learner.observer is monitor and monitor.model.clone().observer is None
    for x, y in events[200:]:
        monitor.learn_one(x, y)
    for one in copies:
        assert alone.weights == monitor.model.weights == one.model.weights
        assert seen_by(one) == seen_by(monitor) and one.get()["n_examples"] == 400


class Refusing(metrics.Accuracy):
    """Raises now and then."""

    def update(self, y_true, y_pred, w=1.0):
        raise RuntimeError("a metric that fails")


def test_a_metric_that_fails_leaves_the_model_alone():
    monitor = TrackingMonitor(SVMSGDClassifier(), every=50, metrics=Refusing())
    alone = SVMSGDClassifier()
    n_failed = 0
    for x, y in stream(200, 4):
        alone.learn_one(x, y)
        try:
            monitor.learn_one(x, y)
        except RuntimeError:
            n_failed += 1
    assert n_failed >= 4
    assert monitor.model.n_examples == 200 and monitor.model.weights == alone.weights


@pytest.mark.parametrize("sparse", [False, True])
def test_an_interruption_while_a_sample_takes_a_row(sparse):
    events, at = stream(400, 6), 0
    while True:
        monitor = TrackingMonitor(SVMSGDClassifier(sparse=sparse, t0=10.0), metrics=metrics.F1())
        for x, y in events[:5]:
            monitor.learn_one(x, y)
        # All are taken at first.
        code, at = ReservoirSample.offer.__code__, at + 1
        was = interrupted(lambda m=monitor: m.learn_one(*events[5]), at, code.__eq__)
        for x, y in events[6:200]:
            monitor.learn_one(x, y)
        assert monitor.get()["n_examples"] == monitor.model.n_examples == 200
        passed_by = monitor.passed_by
        assert len(passed_by) == len(passed_by._rows) >= 199
        assert all(shape(row)[0] == 1 for row in passed_by._rows)
        assert (np.diff(passed_by.numbers) > 0).all()
        if not was:
            break
    assert at > 5
