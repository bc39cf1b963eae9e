"""A monitor around a model that has learnt, and drifts in its records and plots."""

import re

import numpy as np
import pytest

import streamsvm
from streamsvm import (
    AdaptiveSVMClassifier,
    AmbiguousSVMClassifier,
    LASVMClassifier,
    OSPASParser,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.cli.gap_rows import gap_rows
from tests.learners.test_adaptive import stream
from tests.learners.test_lasvm import rows
from tests.monitor.test_tracker import served_by


@pytest.fixture(scope="module")
def data():
    return rows(700)


@pytest.mark.parametrize("learner", [LASVMClassifier, TrackingSVMClassifier])
def test_a_monitor_of_a_model_that_has_learnt_starts_with_itself_and_says_so(data, learner):
    x, y = data
    model, is_lasvm = learner(seed=1), learner is LASVMClassifier
    assert TrackingMonitor(model).covers == ("stream" if is_lasvm else "kept")
    model.learn_many(x[:300], y[:300])
    monitor = TrackingMonitor(model)
    values = monitor.get()
    assert values["n_examples"] == 0 and values["gap"] is not None
    assert values["averaged_gap"] is values["certificate"] is values["accuracy"] is None
    assert "since the monitor was attached, after 300 examples" in " ".join(
        monitor.report().split()
    )
    before = model.looks
    monitor.learn_many(x[300:], y[300:])
    values, since = monitor.get(), model.looks.since(before)
    assert values["n_examples"] == since.n == 400
    assert values["seen_gap"] == since.mean and values["kept_certificate"] == since.bound()
    assert values["certificate_papers"] is None
    assert monitor.about["covers"] == monitor.covers == ("since" if is_lasvm else "kept")
    words = " ".join(monitor.report().split())
    known = "examples since the monitor was attached, and those kept from before"
    assert (known in words) == is_lasvm and "batch optimum" not in words


@pytest.mark.parametrize("learner", [LASVMClassifier, TrackingSVMClassifier, SVMSGDClassifier])
def test_a_loaded_model_has_values_before_it_learns(data, learner, tmp_path):
    model = learner()
    model.learn_many(*data)
    model.save(tmp_path / "model")
    monitor = TrackingMonitor(streamsvm.load(tmp_path / "model"))
    assert monitor.last()["memory_bytes"] > 0 and monitor.last()["n_examples"] == 0
    bad = {"bad feature": 2, "missing label": 1}
    figures = {"events": 10, "bad_events": 3, "bad_events_by_kind": bad, "lag": 7}
    figures["lag_by_partition"] = {"t[0]": 7}
    page = served_by(monitor, figures=lambda: figures)
    assert "streamsvm_memory_bytes" in page and "streamsvm_events_total 10.0" in page
    assert 'streamsvm_bad_events_by_kind_total{kind="bad feature"} 2.0' in page
    assert "streamsvm_bad_events_total 3.0" in page and "streamsvm_lag 7.0" in page
    assert 'streamsvm_lag_by_partition{partition="t[0]"} 7.0' in page
    assert len(monitor.history) == 0


def test_one_gap_is_shown_and_the_others_are_in_get(data):
    x, y = data
    for model, names in (
        (LASVMClassifier(), {"gap", "gap_low", "gap_high", "gap_share", "averaged_gap"}),
        (TrackingSVMClassifier(seed=1), {"gap", "gap_share", "averaged_gap", "certificate"}),
        (
            LASVMClassifier(kernel=kernels.RBF(gamma=1.0), max_support_vectors=20),
            {"gap_share", "kept_gap", "seen_gap", "kept_certificate"},
        ),
    ):
        monitor = TrackingMonitor(model, every=100)
        monitor.learn_many(x, y)
        found = re.findall(r"^streamsvm_(\w*(?:gap|certificate)\w*) ", served_by(monitor), re.M)
        served = set(found)
        assert served - {"gap_low", "gap_high"} == names - {"gap_low", "gap_high"}
        words = monitor.report().split()
        assert names <= set(words) and "certificate_papers" not in words
        assert {"gap_kept", "kept_certificate_recent", "certificate_papers"} <= set(monitor.get())


@pytest.mark.parametrize("learner", [AmbiguousSVMClassifier, OSPASParser])
def test_before_the_first_loss_there_is_no_bound_of_it(learner):
    values = TrackingMonitor(learner()).get()
    assert values["mean_loss"] is values["regret_bound"] is None
    assert gap_rows(values) == []


@pytest.fixture
def axes(monkeypatch):
    """Return matplotlib's module of axes; no picture is drawn, which takes a second."""
    found = pytest.importorskip("matplotlib.axes")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, path, **style: None)
    return found


@pytest.mark.parametrize("n_before", [0, 500])
def test_drifts_are_recorded_and_marked_in_plots(n_before, tmp_path, monkeypatch, axes):
    x, y = stream(1200, turn=700)
    model = AdaptiveSVMClassifier(seed=1)
    model.learn_many(x[:n_before], y[:n_before])
    monitor = TrackingMonitor(model, every=200)
    for start in range(n_before, 1200, 100):
        monitor.learn_many(x[start : start + 100], y[start : start + 100])
    values = monitor.get()
    assert (values["n_drifts"], values["last_drift"]) == (1, model.last_drift)
    assert "keeps, of those since example" in model.certificate.reason
    # Of its first model; the gap of the last example may be above the bound of the mean.
    assert 0.0 <= values["gap"] < 0.1
    assert values["averaged_gap"] <= values["certificate"] < 1.0
    marked = []
    monkeypatch.setattr(axes.Axes, "axvline", lambda self, x, **style: marked.append(x))
    names = [path.name for path in monitor.plot(tmp_path)]
    assert names == ["gap.png", "support_vectors.png", "accuracy.png", "kappa.png"]
    assert marked == [model.last_drift - n_before] * 4


def test_no_drift_is_marked_where_none_was_noticed(tmp_path, monkeypatch, axes):
    monkeypatch.delattr(axes.Axes, "axvline")
    for model in (AdaptiveSVMClassifier(seed=1), LASVMClassifier(kernels.RBF(gamma=1.0))):
        monitor = TrackingMonitor(model, every=100)
        monitor.learn_many(*rows(300))
        monitor.measure()
        # It has learnt from the first example on.
        assert "since" not in monitor.certificate_reason
        assert monitor.plot(tmp_path)


def test_an_interval_of_width_0_is_of_a_gap_that_is_known():
    x, y = rows(700)
    w = np.random.default_rng(0).uniform(0.2, 3.0, 700)
    model = LASVMClassifier(kernels.RBF(gamma=1.0))
    monitor = TrackingMonitor(model, sample=1)
    monitor.learn_many(x, y, w)
    values = monitor.get()
    # All that were left out are in the reserve.
    assert values["gap_low"] == values["gap"] == values["gap_high"] > values["gap_kept"]
    signs, f = np.where(y, 1.0, -1.0), model.decision_function_many(x)
    losses = (w * np.maximum(0.0, 1.0 - signs * f)).sum()
    known = (0.5 * model.squared_norm - model.dual + losses) / w.sum()
    assert values["gap"] == pytest.approx(known, rel=1e-3)
