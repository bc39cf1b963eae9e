"""A monitor around a model that has learnt: what it shows, and what its figures are about."""

import re

import pytest

import streamsvm
from streamsvm import (
    AmbiguousSVMClassifier,
    LASVMClassifier,
    OSPASParser,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.cli.gap_rows import gap_rows
from tests.learners.test_lasvm import rows
from tests.monitor.test_tracker import served_by


@pytest.fixture(scope="module")
def data():
    return rows(700)


@pytest.mark.parametrize("learner", [LASVMClassifier, TrackingSVMClassifier])
def test_a_monitor_of_a_model_that_has_learnt_starts_with_itself(data, learner):
    x, y = data
    model = learner(seed=1)
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


def test_the_gap_says_which_examples_the_monitor_knows(data, tmp_path):
    x, y = data
    model = LASVMClassifier()
    assert TrackingMonitor(model).covers == "stream"
    model.learn_many(x[:300], y[:300])
    monitor = TrackingMonitor(model, every=100)
    monitor.learn_many(x[300:], y[300:])
    assert monitor.about["covers"] == monitor.covers == "since"
    words = " ".join(monitor.report().split())
    assert "examples since the monitor was attached, and those kept from before" in words
    assert "batch optimum" not in words
    assert (tmp_path / "gap.png") in monitor.plot(tmp_path)
    assert TrackingMonitor(TrackingSVMClassifier()).covers == "kept"


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
