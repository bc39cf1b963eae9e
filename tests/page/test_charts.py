"""What the charts of the live page say: ticks, names of lines, marks of drifts."""

import re

import numpy as np
import pytest

from streamsvm import LASVMClassifier, TrackingMonitor, TrackingSVMClassifier
from streamsvm.monitor import series
from streamsvm.monitor.figures import NUMBER
from streamsvm.monitor.history import History
from streamsvm.page import charts, sections


def monitor_of(n, model=None):
    """A monitor that has learnt n examples in two batches."""
    rng, monitor = np.random.default_rng(1), TrackingMonitor(model or LASVMClassifier(seed=1), 50)
    for x in np.split(rng.normal(size=(n, 2)).astype(np.float32), 2):
        monitor.learn_many(x, (np.hypot(*x.T) > 1.2).tolist())
    return monitor


@pytest.mark.parametrize(("low", "high"), [(0.012, 0.045), (0.0301, 0.0342), (0.6, 4.0)])
def test_values_can_be_read_off_a_logarithmic_axis_of_less_than_a_decade(low, high):
    y = np.linspace(low, high, 9)
    chart = charts.Chart("t", y, [charts.Line("l", y)], NUMBER, log=True)
    for axis in ("end", "middle"):
        texts = re.findall(rf'class="{axis}"[^>]*>([\d.]+)<', charts.svg(chart, log_x=True))
        ticks = [float(text) for text in texts]
        assert len(ticks) >= 3 and len({*ticks}) == len(ticks)
        assert all(0.8 * low <= tick <= 1.2 * high for tick in ticks)


def test_the_longest_of_few_latencies_is_called_so():
    monitor = monitor_of(200)
    name = series.charts(monitor, monitor.history.records, [])["latency"].lines[1].name
    assert name == f"latency, longest of {monitor.rates.n_latencies}"
    for i in range(150):
        monitor.learn_one({0: i / 50.0, 1: 1.0}, i > 75)
    name = series.charts(monitor, monitor.history.records, [])["latency"].lines[1].name
    assert name == "latency, 99 %"


def test_drifts_are_marked_over_the_rows_of_a_run():
    monitor, history = monitor_of(400), History()
    monitor.history.add(monitor.last() | {"n_drifts": 1, "last_drift": 300})
    for i in range(1, 9):  # every second row could not be used
        history.add({"rows": i * 100, "learnt": i * 50, "examples_per_second": 100.0})
    found = series.charts(monitor, monitor.history.records, history.records)
    assert found["speed"].marks == [600.0]
    # The speed is the run's, which the screen shows, and no other.
    assert [line.y.tolist() for line in found["speed"].lines] == [[100.0] * 8]


def test_the_bound_beside_the_gap_is_of_the_gap_itself():
    monitor = monitor_of(400)  # of LASVM, which has a bound of another gap, too
    now = monitor.last()
    gap, mean = series.charts(monitor, monitor.history.records, [])["gap"].lines
    assert gap.y[-1] == now["gap"] and gap.band[1][-1] == now["gap_high"] > now["gap"]
    assert mean.y[-1] == now["averaged_gap"] and mean.band is None
    values = sections.Sections(monitor, dict, None, False).made()["values"]
    assert ">certificate<" in values and ">kept_certificate<" not in values


def test_the_bound_of_the_mean_is_drawn_as_a_part_of_the_mean():
    monitor = monitor_of(400, TrackingSVMClassifier(K=2, seed=1))
    now = monitor.last()
    gap, mean = series.charts(monitor, monitor.history.records, [])["gap"].lines
    assert gap.band is None and mean.y[-1] == now["averaged_gap"]
    assert [end[-1] for end in mean.band] == [now["averaged_gap"], now["certificate"]]
    shown = f"<dd>{now['averaged_gap']:.4g} (at most {now['certificate']:.4g})</dd>"
    assert shown in sections.Sections(monitor, dict, None, False).made()["now"]
