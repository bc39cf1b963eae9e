"""What a run says of its speed: compiling, which happens once, is no part of it."""

import copy

import numpy as np
import pytest
from river import dummy

from connectors import MemorySource
from streamsvm import SVMSGDClassifier, TrackingMonitor, _compiling
from streamsvm.cli.report import report_rows
from streamsvm.cli.screen import Screen, figures
from streamsvm.run.report import RunReport
from streamsvm.run.runner import Run


class Compiling(dummy.NoChangeClassifier):
    """Its first event takes 1,000 seconds of compiling, by the clock."""

    def learn_one(self, x, y):
        if x["i"] == 0:
            _compiling.clock._seconds += 1000.0
        super().learn_one(x, y)


def test_compiling_is_no_part_of_the_speed():
    seen = []
    source = MemorySource([({"i": i}, i % 2 == 0) for i in range(50)])
    report = Run(source, Compiling(), on_progress=seen.append).execute()
    # Differences of a clock that has run before.
    assert report.compile_seconds == seen[-1].compile_seconds == pytest.approx(1000.0)
    assert report.as_dict()["compile_seconds"] == report.compile_seconds
    again = Run(MemorySource([({"i": 1}, True), ({"i": 2}, False)]), Compiling()).execute()
    assert again.compile_seconds == 0.0


def test_a_speed_is_one_figure_everywhere():
    rng, seen = np.random.default_rng(0), []
    events = [({"a": float(a)}, bool(a > 0)) for a in rng.normal(size=250)]
    monitor = TrackingMonitor(SVMSGDClassifier(), every=100)
    run = Run(MemorySource(events), monitor, on_progress=seen.append)
    report = run.execute()
    speed = report.rows_per_second
    assert f"{speed:,.0f} a second" in rows_of(report)
    assert report.as_dict()["examples_per_second"] == speed > 0.0
    assert report.monitor["examples_per_second"] == monitor.get()["examples_per_second"] == speed
    assert report.history[-1]["examples_per_second"] == speed
    assert monitor.history[-1]["examples_per_second"] == speed
    assert run.figures()["examples_per_second"] == speed
    shown = [float(figures(now).split()[0].replace(",", "")) for now in seen[:-1]]
    kept = [record["examples_per_second"] for record in report.history.records]
    assert kept[:-1] == pytest.approx(shown, abs=0.5)
    copy.deepcopy(monitor).learn_one({"a": 1.0}, True)  # a copy counts on, without the run


def rows_of(report):
    return dict(report_rows(report, {}))["examples"]


def test_the_report_mentions_compiling_that_took_long():
    report = RunReport(rows=50, seconds=12.0, compile_seconds=2.0)
    assert (report.rows_per_second, RunReport().rows_per_second) == (5.0, 0.0)
    assert rows_of(report) == "50 in 10.00 s: 5 a second, after 2.0 s of compiling for this machine"
    report.compile_seconds = 1.0
    assert rows_of(report) == "50 in 11.00 s: 5 a second"


def test_the_screen_says_how_much_there_is_to_compile(capsys, monkeypatch):
    monkeypatch.setattr("streamsvm.cli.screen._PLAIN_EVERY", 0.0)
    monkeypatch.setattr("streamsvm.cli.screen._USUAL_FUNCTIONS", {"lasvm": 2})
    with Screen("replay", None, learner="lasvm"):
        for name in ("f", "g", "h"):
            _compiling.clock.compiled(name)
    assert capsys.readouterr().err.splitlines() == [
        "compiling for this machine, once: function 1 of about 2",
        "compiling for this machine, once: function 2 of about 2",
        "compiling for this machine, once: function 3",
    ]
