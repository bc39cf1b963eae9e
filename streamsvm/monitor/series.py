"""The charts of a monitor's history, and of a run's: lines over the number of examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamsvm.monitor.figures import ABOUT, ALL, CHARTS, LINES, Unit, gaps_of
from streamsvm.monitor.history import column_of
from streamsvm.monitor.record import Measuring
from streamsvm.monitor.score import band

MOST_POINTS = 300
"""So many points a line of a page has at most, however long the run."""

Records = Sequence[dict[str, Any]]
Band = tuple[np.ndarray, np.ndarray]  # lower and upper ends

_OF_RUN = ("accuracy", "support_vectors", "delta", "speed", "bad")
"""The charts that a run without a monitor has."""


@dataclass
class Line:
    """One line of a chart; NaN where there is no value."""

    name: str
    y: np.ndarray
    band: Band | None = None
    band_name: str = "95 % interval"
    figure: str = ""  # its name


@dataclass
class Chart:
    """Lines over the number of examples."""

    title: str
    x: np.ndarray
    lines: list[Line]
    unit: Unit
    log: bool = False
    marks: Sequence[float] = field(default_factory=list)  # where a drift was noticed


def thinned(records: Records, most: int = MOST_POINTS) -> Records:
    """Return every 2nd, 4th, 8th, ... record, at most `most`, and the last one.

    By powers of two the points that are shown stay the same ones while others are added.

    >>> from streamsvm.monitor.series import thinned
    >>> thinned([{"n": i} for i in range(10)], most=5)
    [{'n': 0}, {'n': 2}, {'n': 4}, {'n': 6}, {'n': 8}, {'n': 9}]
    """
    step = 1
    while len(records) > most * step:
        step *= 2
    kept = list(records[::step])
    return kept if (len(records) - 1) % step == 0 else [*kept, records[-1]]


def charts(
    monitor: Measuring | None, records: Records, run_records: Records, most: int = MOST_POINTS
) -> dict[str, Chart]:
    """Return the charts of records that have values, by their names in `CHARTS`.

    `monitor` is None if there is none. A line has `most` points at most, and the last one.
    """
    run = _Columns(thinned(run_records, most), "rows")
    found = {name: run.chart(name, LINES[name]) for name in _OF_RUN}
    if monitor is not None:
        last = monitor.last()
        if last and (not records or last["n_examples"] > records[-1]["n_examples"]):
            records = [*records, last]
        # A drift may be between two points: all records are asked for it. Drifts are counted from
        # the first example, records since the monitor was attached.
        drifts = {r.get("last_drift") or 0 for r in records}
        marks = np.array([d for d in sorted(drifts) if d > monitor.n_before]) - monitor.n_before
        for chart in found.values():
            # Rows are more than the examples learnt: some cannot be used, or await their labels.
            chart.marks = np.interp(marks, run["learnt"], run.x).tolist() if len(run.x) else []
        for name, chart in _of_monitor(_Columns(thinned(records, most), "n_examples"), monitor):
            chart.marks = marks.tolist()
            # A run has records of each chunk: there are some before the monitor's second one. The
            # speed is the run's, as on the screen.
            known = found.get(name)
            if known is None or not known.lines or (len(chart.x) > 1 and name != "speed"):
                found[name] = chart
    return {name: found[name] for name in CHARTS if name in found and found[name].lines}


class _Columns:
    """Columns of records, over one of them."""

    def __init__(self, records: Records, over: str) -> None:
        self._records = records
        self.x = self[over]

    def __getitem__(self, name: str) -> np.ndarray:
        return column_of(self._records, name)

    def chart(self, of: str, names: Sequence[str]) -> Chart:
        """Return a chart of the columns that have values."""
        lines: list[Line] = []
        for name in names:
            y = self["n_bad" if name == "bad_events" else name]
            known = y[~np.isnan(y)]
            if known.any() or (len(known) and of != "bad"):
                # More bands would hide each other.
                ends = band(self.__getitem__, name) if len(lines) < 2 else None
                lines.append(Line(ALL[name].title, y, ends, figure=name))
        title, _, log = CHARTS[of]
        return Chart(title, self.x, lines, ALL[names[0]].unit, log)


def _of_monitor(of: _Columns, monitor: Measuring) -> Iterator[tuple[str, Chart]]:
    gaps = gaps_of(monitor.covers)
    for name in CHARTS.keys() - {"delta", "dual" if monitor.learner.has_dual else ""}:
        chart = of.chart(name, gaps[:2] if name == "gap" else LINES[name])
        if name == "gap":
            chart.title += f" of {ABOUT[monitor.covers]}"
        for line in chart.lines:
            if line.figure == "latency_p99":
                line.name = latency_title(monitor.rates.n_latencies)
            if line.figure == gaps.mean and (of[gaps.most] > line.y).any():
                # A band on the mean: a single gap may be above.
                line.band = line.y, of[gaps.most]
                chance = f"{monitor.confidence:.0%}"
                line.band_name = f"this mean is at most so much, {chance}: the certificate"
        yield name, chart


def latency_title(n: int) -> str:
    """Return what the 99 % quantile of n latencies is: the longest, of fewer than 100."""
    return ALL["latency_p99"].title if n >= 100 else f"latency, longest of {n}"
