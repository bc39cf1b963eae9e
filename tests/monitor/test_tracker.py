"""The monitor on real learners: what it counts, measures, refuses and shows."""

import json
import time
import urllib.error
import urllib.request

import numpy as np
import pyarrow.parquet as pq
import pytest
from river import linear_model, metrics, utils

from connectors import MemorySource
from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    _compiling,
    kernels,
)
from streamsvm.errors import ParameterError
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import Run
from tests.learners.test_lasvm import events, rows
from tests.slow import slow_but

RBF = kernels.RBF(gamma=1.0)
NAMES = {
    "n_examples", "n_support_vectors", "n_free", "n_bounded", "dual", "gap", "gap_kept",
    "gap_discarded", "gap_low", "gap_high", "gap_share", "kept_gap", "averaged_gap", "seen_gap",
    "certificate", "seen_gap_recent", "certificate_recent", "kept_certificate",
    "kept_certificate_recent", "certificate_papers", "kappa", "delta",
    "accuracy", "accuracy_recent", "balanced_accuracy", "examples_per_second", "latency_p50",
    "latency_p99", "accuracy_low", "accuracy_high", "accuracy_recent_low", "accuracy_recent_high",
    "accuracy_change", "balanced_accuracy_low", "balanced_accuracy_high",
    "balanced_accuracy_recent_low", "balanced_accuracy_recent_high",
    "kernel_values", "cache_hits", "memory_bytes",
}  # fmt: skip
TIMES = {"examples_per_second", "latency_p50", "latency_p99"}


def watched(model=None, **parameters):
    return TrackingMonitor(model or TrackingSVMClassifier(seed=1), **parameters)


def served_by(monitor, **parameters):
    """Return what a monitor serves to Prometheus."""
    server = monitor.serve(0, **parameters)
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics").read().decode()
    finally:
        server.close()


def untimed(values):
    return {name: value for name, value in values.items() if name not in TIMES}


@pytest.fixture(scope="module")
def data():
    return rows(700)


def test_names_and_figures(data):
    x, y = data
    monitor = watched(every=100)
    right, before = 0, monitor.get()
    assert before["n_examples"] == 0 and before["gap"] is None and before["accuracy"] is None
    for event, label in events(x, y):
        right += monitor.predict_one(event) == label
        monitor.learn_one(event, label)
    values = monitor.get()
    assert set(values) == NAMES
    model = monitor.model
    assert values["n_examples"] == 700 == model.n_examples
    # Nothing was predicted for the first event.
    assert values["accuracy"] == right / 699
    assert values["n_support_vectors"] == model.n_support_vectors
    assert values["n_free"] + values["n_bounded"] == values["n_support_vectors"]
    assert values["certificate"] == model.certificate.value
    assert values["seen_gap"] == values["seen_gap_recent"] == model.looks.mean
    # The recent bound has a part of the probability to fail, as there will be others.
    assert values["seen_gap"] < values["certificate"] < values["certificate_recent"]
    assert values["certificate_papers"] == model.papers_certificate.value > values["certificate"]
    assert values["gap"] == values["gap_kept"] == model.duality_gap()
    assert values["gap_low"] == values["gap"] == values["gap_high"] and values["delta"] is None
    assert values["kept_gap"] == values["gap"]
    assert values["averaged_gap"] == values["seen_gap"]
    assert values["kept_certificate"] == values["certificate"]
    assert values["accuracy_recent"] == values["accuracy"]
    assert sum(monitor.confusion.values()) == 699
    assert sum(n for (y, p), n in monitor.confusion.items() if y == p) == right
    assert monitor.recall.keys() == set(y.tolist())
    assert monitor.history.column("n_examples").tolist() == list(range(100, 701, 100))


@pytest.mark.parametrize("learner", [LASVMClassifier, TrackingSVMClassifier])
def test_all_ways_to_feed_it_agree(data, learner):
    x, y = data

    def fed(how):
        monitor = watched(StandardScaler() | learner(seed=1), every=100, metrics=metrics.F1())
        how(monitor)
        return untimed(monitor.get())

    def one_by_one(monitor):
        for event, label in events(x, y):
            monitor.learn_one(event, label)

    def pipeline(monitor):
        for event, label in events(x, y):
            monitor.model.learn_one(event, label)

    def run(monitor):
        report = Run(MemorySource(events(x, y)), monitor).execute()
        assert report.monitor["certificate_reason"] == monitor.certificate_reason

    expected = fed(one_by_one)
    assert fed(pipeline) == expected
    ran = fed(run)
    # A batch is recorded at its end, so that the means of the gap are of fewer moments.
    for name in ("n_examples", "accuracy", "F1", "dual", "n_support_vectors", "kappa"):
        assert ran[name] == pytest.approx(expected[name])


def gap_of(model, x, y):
    """Return the gap of these examples, at the bias of the model."""
    classes, f = np.where(y, 1.0, -1.0), model.decision_function_many(x)
    losses = np.maximum(0, 1 - classes * f).sum()
    return (0.5 * model.squared_norm - model.dual + losses) / len(y)


def test_the_gap_of_lasvm_is_of_all_and_its_certificate_of_the_examples_kept(data):
    x, y = data
    monitor = watched(LASVMClassifier(), sample=1000)
    assert monitor.get()["gap"] is None and "examples learnt" in monitor.report()
    monitor.learn_many(x, y)
    values = monitor.get()
    assert 0.0 < values["seen_gap"] < values["kept_certificate"]
    assert values["gap"] > values["gap_kept"]
    # One number that is a bound, beside a mean of another problem, would read as its violation.
    assert values["certificate"] is values["certificate_recent"] is None
    assert "no certificate of all examples" in monitor.certificate_reason
    # With all examples in the sample the estimate is the truth.
    assert values["gap"] == pytest.approx(gap_of(monitor.model, x, y), rel=1e-3)
    assert values["gap"] == pytest.approx(values["gap_kept"] + values["gap_discarded"])
    assert values["gap_low"] <= values["gap"] <= values["gap_high"]
    # The mean is of the gaps of the records, of all examples as they are.
    assert values["averaged_gap"] == values["gap"]
    assert len(monitor.history) == 0
    monitor.measure()
    monitor.learn_many(x, y)
    gaps = [monitor.history[0]["gap"], monitor.get()["gap"]]
    assert monitor.get()["averaged_gap"] == pytest.approx(np.mean(gaps))


@pytest.mark.parametrize(
    "model", [TrackingSVMClassifier(C=3.0, seed=1), LASVMClassifier(C=3.0), LaRankClassifier(C=3.0)]
)
def test_the_gap_as_a_share_of_the_objective(data, model):
    x, y = data
    monitor = watched(model, sample=1000)
    monitor.learn_many(x, y)
    values, n = monitor.get(), len(y)
    classes, f = np.where(y, 1.0, -1.0), model.decision_function_many(x)
    if f.ndim == 2:  # a column a class
        is_right = list(model.classes).index(True)
        f = f[:, is_right] - f[:, 1 - is_right]
    if isinstance(model, LASVMClassifier):  # at the bias that is best for all
        losses = min(np.maximum(0, 1 - classes * (f + b)).sum() for b in classes - f)
    else:
        losses = np.maximum(0, 1 - classes * f).sum()
    objective = (0.5 * model.squared_norm + 3.0 * losses) / (3.0 * n)
    assert values["gap_share"] == pytest.approx(values["gap"] / objective, rel=2e-3)
    assert 0.0 < values["gap_share"] < 1.0


def test_the_share_of_the_gap_is_at_most_one():
    """Also where a window leaves a dual below 0, and where gap and objective are rounding."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(120, 2))
    y = (x[:, 0] + 0.7 * rng.normal(size=120) > 0.0).astype(int)
    for order in (np.arange(120), np.argsort(y)):
        learner = LASVMClassifier(C=100.0, window=30)
        monitor = TrackingMonitor(learner)
        for i in order:
            monitor.learn_one({"a": x[i, 0], "b": x[i, 1]}, int(y[i]))
            share = monitor.get()["gap_share"]
            assert share is None or 0.0 <= share <= 1.0
    # The window has one class, and nothing to gain.
    assert share < 1e-6


@pytest.mark.parametrize("is_rare", [False, True])
def test_a_window_is_about_its_last_examples_and_older_ones_of_rare_classes(data, is_rare):
    x, y = data
    y = np.arange(700) % 150 == 0 if is_rare else y
    model = LASVMClassifier(window=100)
    monitor = watched(model, sample=1000)
    monitor.learn_many(x, y)
    kept = model.kept_numbers() - 1
    about = np.union1d(kept, np.arange(600, 700))
    assert y[kept[kept < 600]].all() and (len(about) > 100) == is_rare
    assert monitor.get()["gap"] == pytest.approx(gap_of(model, x[about], y[about]), rel=1e-3)


def test_the_last_record_is_what_the_report_shows(data):
    x, y = data
    monitor = watched(LASVMClassifier(), every=300)
    report = Run(MemorySource(events(x, y)), monitor, finish=True).execute()
    last, run_last = monitor.history[-1], report.history[-1]
    for name in ("gap", "n_support_vectors"):
        assert last[name] == report.monitor[name] == monitor.last()[name] == run_last[name]
    assert report.n_support_vectors == last["n_support_vectors"] == monitor.model.n_support_vectors
    assert monitor.history.column("n_examples").tolist() == [300, 600, 700]


def test_the_sample_has_the_numbers_of_classes():
    x, y = rows(60)
    order = np.argsort(~y, kind="stable")  # True first: it is class 0
    monitor = watched(LASVMClassifier(), sample=100)
    monitor.learn_many(x[order], y[order])
    classes = dict(zip(monitor.passed_by.numbers, monitor.passed_by.classes, strict=True))
    assert [classes[i + 1] == 0 for i in range(60)] == y[order].tolist()


def test_metrics(data):
    x, y = data

    def several():
        of_labels = [metrics.MCC(), metrics.BalancedAccuracy(), metrics.Accuracy()]
        return [*of_labels[:2], utils.Rolling(of_labels[2], 50), metrics.ROCAUC()]

    own, twin = several(), TrackingSVMClassifier(seed=1)
    monitor = watched(metrics=several(), every=150)
    assert monitor.get()["balanced_accuracy"] is None
    for event, label in events(x[:300], y[:300]):
        if (predicted := twin.predict_one(event)) is not None:
            for metric in own[:3]:
                metric.update(label, predicted)
        own[3].update(label, twin.predict_proba_one(event))
        twin.learn_one(event, label)
        monitor.learn_one(event, label)
    values = monitor.get()
    names = ("MCC", "balanced_accuracy", "RollingAccuracy")
    assert [values[name] for name in names] == pytest.approx([metric.get() for metric in own[:3]])
    # They differ in the first event of each class, whose label the monitor knows already.
    assert values["ROCAUC"] == pytest.approx(own[3].get(), abs=0.01)
    assert values["balanced_accuracy"] == pytest.approx(values["BalancedAccuracy"])
    assert values["balanced_accuracy"] != values["accuracy"]
    assert not np.isnan(monitor.history.column("balanced_accuracy")[-1])
    both = watched(metrics=metrics.Accuracy() + metrics.F1())
    both.learn_many(x, y)
    assert both.get()["Accuracy"] == both.get()["accuracy"] and both.get()["F1"] > 0.5


def compile_for_a_while():
    def compile():
        _compiling.clock.miss(None)
        time.sleep(0.5)

    _compiling.compile_whole(compile)


@pytest.mark.parametrize("way", ["batch", "event"])
def test_compiling_is_no_part_of_the_speed(monkeypatch, way):
    monkeypatch.setattr(_compiling.clock, "_has_warned", True)
    monitor = watched()
    stream = [({"a": i % 3 - 1.0, "b": float(i)}, i % 2 > 0) for i in range(20)]
    for x, y in stream:
        monitor.learn_one(x, y)
    monitor.measure()
    before, where = monitor.rates.seconds, monitor.learner

    def slow(function):
        def call(*arguments):
            compile_for_a_while()
            return function(*arguments)

        return call

    if way == "event":
        monkeypatch.setattr(where.event_path, "learn_plain", slow(where.event_path.learn_plain))
        monitor.learn_one(*stream[0])
    else:
        monkeypatch.setattr(where.model, "learn", slow(where.model.learn))
        monitor.learn_one(*stream[0], 0.0)
    assert monitor.measure()["n_examples"] == 21
    assert monitor.rates.seconds - before < 0.3 and max(monitor.rates._latencies[20:]) < 0.3


@pytest.mark.parametrize(
    ("model", "parameters", "words"),
    [
        (linear_model.Perceptron(), {}, "Perceptron is no learner of streamsvm"),
        (StandardScaler() | linear_model.Perceptron(), {}, "use LASVMClassifier or Tracking"),
        (StandardScaler(), {}, "StandardScaler is no learner"),
        (None, {"every": 0}, "every=0: use a whole number of at least 1"),
        (None, {"sample": 1.5}, "sample=1.5"),
        (None, {"most": 1}, "most=1: use a whole number of at least 2"),
        *((None, {"confidence": value}, "confidence=") for value in (0.0, 1.0, 1.5, "95 %")),
        (None, {"metrics": "accuracy"}, "use River metrics"),
        (None, {"metrics": metrics.ClassificationReport()}, "gives no number"),
    ],
)
def test_refused(model, parameters, words):
    error = TypeError if "metrics" in parameters else ParameterError
    with pytest.raises(error, match=words):
        watched(model, **parameters)


def test_whole_numbers_of_numpy_are_kept_as_ints():
    numbers = {"every": np.int64(150), "sample": np.int32(9), "horizon": np.int64(99)}
    monitor = watched(most=np.int64(20), **numbers)
    kept = [monitor.every, monitor.sample, monitor.horizon, Checkpoint("x", np.int64(5)).every]
    kept += [LateLabels(delay=1, most=np.int64(7)).most]
    assert kept == [150, 9, 99, 5, 7] and {type(number) for number in kept} == {int}


def test_the_history_is_thinned_and_says_so(data):
    x, y = data
    monitor = watched(every=10, most=20)
    for i in range(0, 700, 10):
        monitor.learn_many(x[i : i + 10], y[i : i + 10])
    assert len(monitor.history) <= 20 and monitor.history.kept_every == 4
    steps = np.diff(monitor.history.column("n_examples"))
    assert (steps == 40).all()
    assert "one every 40 examples (thinned" in monitor.report()


def test_ways_out(data, tmp_path):
    x, y = data
    monitor = watched(every=100)
    for event, label in events(x, y):
        monitor.learn_one(event, label)
    table = monitor.history.to_arrow()
    assert set(table.column_names) == NAMES and table.num_rows == 7
    monitor.history.write_parquet(tmp_path / "h.parquet")
    assert pq.read_table(tmp_path / "h.parquet").equals(table)
    monitor.history.write_json_lines(tmp_path / "h.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "h.jsonl").read_text().splitlines()]
    assert lines == table.to_pylist()
    paths = monitor.plot(tmp_path / "plots")
    assert [p.name for p in paths] == [
        "gap.png", "support_vectors.png", "accuracy.png", "kappa.png",
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    assert monitor.panel().row_count == len(NAMES) - 9  # other gaps, and their bounds
    with monitor.live() as live:
        live.refresh()


@pytest.mark.parametrize(
    ("learner", "plots"),
    [
        (SVMSGDClassifier(), ["objective", "accuracy", "kappa"]),
        (SGDQNClassifier(), ["objective", "accuracy", "kappa"]),
        # The gap is of the vectors kept.
        (LASVMClassifier(RBF, max_support_vectors=20), ["gap", "objective"]),
    ],
    ids=repr,
)
def test_learners_without_a_gap_of_all_have_a_plot_of_the_objective(
    data, learner, plots, tmp_path, monkeypatch
):
    # A picture takes a second.
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, path, **style: None)
    monitor = TrackingMonitor(learner, every=100)
    monitor.learn_many(*data)
    monitor.measure()
    assert [path.stem for path in monitor.plot(tmp_path)][: len(plots)] == plots


def test_plots_of_gaps_that_are_never_above_zero(tmp_path):
    # matplotlib warns of a log axis without positive values, and warnings are errors here.
    monitor = watched()
    assert not monitor.plot(tmp_path)
    for n in (100, 200):
        gaps = ("gap", "gap_low", "gap_high", "averaged_gap")
        monitor.history.add({"n_examples": n, **dict.fromkeys(gaps, 0.0)})
    assert [p.name for p in monitor.plot(tmp_path)] == ["gap.png"]


def test_prometheus(data):
    x, y = data
    monitor = watched(every=100)
    server = monitor.serve(0)
    try:
        url = f"http://127.0.0.1:{server.port}/metrics"
        assert urllib.request.urlopen(url).read() == b""
        monitor.learn_many(x, y)
        text = urllib.request.urlopen(url).read().decode()
    finally:
        server.close()
    values = dict(line.split() for line in text.splitlines() if not line.startswith("#"))
    assert float(values["streamsvm_certificate"]) == monitor.get()["certificate"]
    assert float(values["streamsvm_n_examples"]) == 700
    assert "streamsvm_delta" not in values
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=1)


def test_what_is_recent_forgets(data):
    x, y = data
    monitor = watched(TrackingSVMClassifier(kernel=RBF, seed=1), horizon=100)
    monitor.learn_many(x, y)
    flipped = ~y
    monitor.learn_many(x, flipped)
    values = monitor.get()
    # After the classes have changed places the model is farther from its optimum.
    assert values["seen_gap_recent"] > values["seen_gap"]
    assert values["certificate_recent"] > values["seen_gap_recent"]


@pytest.mark.parametrize(
    "learner",
    slow_but(
        [LASVMClassifier, LaRankClassifier, TrackingSVMClassifier],
        LASVMClassifier,
        compiling=lambda learner: f"{learner.__name__} sparse",
    ),
)
def test_a_learner_that_became_sparse_is_measured_on_older_dense_rows(learner):
    rng = np.random.default_rng(0)
    x = np.zeros((700, 300))
    x[np.arange(700), rng.integers(0, 300, 700)] = 1.0
    model = learner()
    monitor = watched(model, every=100)
    monitor.learn_many(x, rng.random(700) < 0.5)
    assert model.is_sparse and monitor.get()["n_examples"] == 700


def test_get_measures_again_after_finish():
    x, y = rows(300)
    monitor = TrackingMonitor(LASVMClassifier(RBF, C=100.0, reprocess=0))
    monitor.learn_many(x, y)
    before = monitor.get()
    monitor.learner.finish()
    after = monitor.get()
    assert after["n_examples"] == before["n_examples"] == 300
    assert after["dual"] > before["dual"] and after["gap"] < before["gap"]
    assert after == TrackingMonitor.get(monitor) and after["delta"] <= 1e-3


def test_examples_of_weight_0_alone_have_no_objective():
    monitor = TrackingMonitor(LASVMClassifier(max_support_vectors=20))
    x, y = rows(30)
    monitor.learn_many(x, y, w=np.zeros(30))
    assert monitor.get()["objective"] is None


@pytest.mark.parametrize("window", [None, 150])
def test_it_is_that_of_all_examples_if_all_are_sampled(data, window):
    x, y = data
    model = LASVMClassifier(kernel=RBF, C=2.0, max_support_vectors=20, window=window)
    monitor = TrackingMonitor(model, sample=1000)
    monitor.learn_many(x, y)
    values, n = monitor.get(), window or 700
    signs = np.where(y[-n:], 1, -1)
    hinge = np.maximum(0.0, 1.0 - signs * model.decision_function_many(x[-n:]))
    assert values["objective"] == pytest.approx(
        model.squared_norm / 2.0 / (2.0 * n) + hinge.mean(), rel=1e-5
    )
    assert values["objective_low"] < values["objective"] < values["objective_high"]
    # Merged vectors are no examples: of the stream's gap nothing is known.
    assert values["gap"] is values["gap_high"] is values["averaged_gap"] is None
    assert values["kept_gap"] < 0.1 < values["objective"]
    assert "not known of all examples" in " ".join(monitor.report().split())


def test_the_interval_of_a_small_sample_covers_it(data):
    x, y = data
    covered = []
    model = LASVMClassifier(kernel=RBF, max_support_vectors=20)
    model.learn_many(x, y)
    hinge = np.maximum(0.0, 1.0 - np.where(y, 1, -1) * model.decision_function_many(x))
    truth = model.squared_norm / 2.0 / 700 + hinge.mean()
    for seed in range(60):
        fresh = LASVMClassifier(kernel=RBF, max_support_vectors=20)
        monitor = TrackingMonitor(fresh, sample=50, seed=seed)
        monitor.learn_many(x, y)
        values = monitor.measure()
        covered.append(values["objective_low"] <= truth <= values["objective_high"])
    assert np.mean(covered) >= 0.85
