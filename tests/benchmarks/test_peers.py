"""The benchmark against peers: what it measures, and how it compares. Times decide nothing."""

import re

import numpy as np
import pytest

import streamsvm
from benchmarks.peers import measure, tables, workloads
from benchmarks.peers.scenarios import BY_ID, SCENARIOS, WITHOUT, Scenario
from streamsvm.learners.bases.learner import Learner


def test_ids_are_permanent_and_unique():
    ids = [scenario.id for scenario in SCENARIOS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z0-9-]+", name) for name in ids)
    # Figures are kept by these names: a scenario may be added, none renamed.
    assert {"adult-c1", "mnist-8", "noisy-100k", "reuters-moneyfx", "events-bananas"} <= set(ids)
    for scenario in SCENARIOS:
        assert set(scenario.slow) <= scenario.systems.keys()


def test_each_public_learner_is_measured():
    public = {
        name
        for name in streamsvm.__all__
        if isinstance(found := getattr(streamsvm, name), type) and issubclass(found, Learner)
    }
    measured = {
        getattr(system, "learner", None)
        for scenario in SCENARIOS
        for system in scenario.systems.values()
    }
    assert public
    assert public <= measured | WITHOUT.keys()


def test_seconds_are_the_processors_but_of_threads():
    runs = [{"seconds": wall, "cpu_seconds": cpu} for wall, cpu in ((9.0, 1.0), (8.0, 3.0))]
    found = measure.summary(runs)
    assert (found["seconds"], found["low"], found["wall_seconds"]) == (2.0, 1.0, 8.5)
    assert measure.summary(runs, of_threads=True)["seconds"] == 8.5


def toy(*systems, **more):
    return Scenario("toy", "a toy", lambda: None, dict.fromkeys(systems, lambda _: {}), **more)


def test_what_takes_long_runs_once(monkeypatch):
    turns, now = [], iter([0.0, 61.0, 70.0, 71.0, 80.0, 81.0])
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(now))

    def run(scenario, system, timeout):
        turns.append(system)
        return {"seconds": 1.0, "peak_mb": 1.0}

    measure.measure(toy("long", "short"), 2, False, 1.0, run)
    assert turns == ["long", "short", "short"]


def test_ratios_and_what_is_absent():
    turns = []

    def run(scenario, system, timeout):
        turns.append(system)
        seconds = {"ours": [1.0, 3.0, 2.0], "peer": [8.0, 10.0, 9.0]}.get(system)
        if seconds is None:
            return {"absent": "pip install it"}
        done = turns.count(system) - 1
        return {"seconds": seconds[done], "error": 5.0, "peak_mb": 100.0 + done}

    more = {"slow": ("patient",), "elsewhere": {"original": (20.0, 4.0)}}
    scenario = toy("ours", "peer", "missing", "patient", **more)
    results = measure.measure(scenario, 3, False, 1.0, run)
    # In turns; what is absent or slow is not tried again.
    assert turns == ["ours", "peer", "missing", "ours", "peer", "ours", "peer"]
    assert results["ours"]["seconds"] == 2.0
    ratios = {"ratio": 4.5, "ratio_low": 8 / 3, "ratio_high": 10.0}
    assert results["peer"] | ratios == pytest.approx(results["peer"])
    assert results["missing"]["absent"] == "pip install it"
    assert "slow" in results["patient"]["absent"]
    assert results["original"]["elsewhere"] is True
    slow = measure.measure(scenario, 3, True, 1.0, lambda *_: {"seconds": 1.0})
    assert slow["patient"]["runs"] == 1


def test_tables_show_every_system():
    results = measure.with_ratios(
        {
            "LASVM": {
                "seconds": 2.0, "low": 1.0, "high": 3.0, "runs": 3, "error": 1.5, "peak_mb": 9,
            },
            "scikit-learn SVC": {
                "seconds": 9.0, "low": 8.0, "high": 10.0, "runs": 3, "error": 1.25, "peak_mb": 9,
            },
            "other": {"absent": "no such library", "runs": 0},
        }
    )  # fmt: skip
    text = "\n".join(tables.table("adult-c1", results))
    assert "| scikit-learn SVC | 9 s | 4.5 (2.67-10) | 1.25 % |" in text
    assert "absent: no such library" in text
    line = tables.one_line("adult-c1", results)
    assert "LASVM: 2 s, 1.50 %" in line
    assert "scikit-learn SVC 4.5 times as long (1.25 %)" in line


@pytest.mark.slow
def test_a_system_runs_in_a_process_of_its_own():
    figures = measure.in_a_process("waveform", "LASVM", 600.0)
    assert figures["error"] < 13.0
    assert figures["peak_mb"] > 50.0
    assert figures["seconds"] > 0.0
    # float64 and float32 of a support vector, and its share of what is not in use
    assert figures["bytes_a_support_vector"] > 4 * 21
    assert BY_ID["waveform"].systems["LASVM"].learner == "LASVMClassifier"


def test_a_failure_is_told():
    assert "failed: KeyError" in measure.in_a_process("waveform", "nobody", 60.0)["absent"]
    assert "not done" in measure.in_a_process("waveform", "LASVM", 0.01)["absent"]


def test_the_noisy_rows_can_be_made_again():
    x, y = workloads.noisy_rows(3000, seed=1)
    again, labels = workloads.noisy_rows(3000, seed=1)
    np.testing.assert_array_equal(x, again)
    np.testing.assert_array_equal(y, labels)
    assert x.shape == (3000, 54)
    assert (x[:, 10:14].sum(axis=1) == 1.0).all()
    assert (x[:, 14:].sum(axis=1) == 1.0).all()
    assert 0.4 < y.mean() < 0.6
    assert not np.array_equal(x, workloads.noisy_rows(3000, seed=2)[0])
