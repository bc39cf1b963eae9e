"""Drifts in the records and plots of a monitor, and gaps that are known without a sample."""

import numpy as np
import pytest

from streamsvm import AdaptiveSVMClassifier, LASVMClassifier, TrackingMonitor, kernels
from tests.learners.test_adaptive import stream
from tests.learners.test_lasvm import rows


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
