"""The charts of a monitor's history, and of a run's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.monitor.history import column_of
from streamsvm.monitor.hits import band
from streamsvm.monitor.report import NOT_OF_ALL, gaps_of
from streamsvm.page.charts import Chart, Line, thousands

MOST_POINTS = 300
"""So many points a line has at most, however long the run."""

Records = Sequence[dict[str, Any]]


class Kind(NamedTuple):
    """A chart that there may be: its heading, and what it shows."""

    title: str
    caption: str


KINDS = {
    "accuracy": Kind(
        "Accuracy",
        "Each example is predicted before it is learnt. Shaded: intervals that hold at all moments "
        "at once, with 95 % probability.",
    ),
    "gap": Kind(
        "Distance from the optimum",
        "The duality gap: at most so much could more training lower the objective (a penalty plus "
        "the mean loss). Worry if it stays above a tenth of the objective. Shaded, with 95 %: its "
        "interval, or up to the bound of the mean; a single gap may be above that one.",
    ),
    "objective": Kind(
        "Objective",
        "What training lowers: a penalty for complex models plus the mean loss, on a sample.",
    ),
    "coverage": Kind(
        "Coverage",
        "The share of events whose label was in the set. Shaded: the interval that holds at all "
        "moments at once, with 95 % probability.",
    ),
    "support_vectors": Kind(
        "Support vectors",
        "The examples kept to predict with: memory and the time of an event grow with them.",
    ),
    "speed": Kind(
        "Examples a second",
        "Since the start, without the time of compiling, and of waiting for events.",
    ),
    "latency": Kind(
        "Latency",
        "Of learning an event, or of one example of each batch (a replay learns batches): of the "
        "last 1,000 of them. Of fewer than 100 the longest is shown: as a rule it is the first.",
    ),
    "memory": Kind("Memory", "Held by the model's arrays."),
    "bad": Kind("Events that could not be used", "All so far; the table below has the kinds."),
}
"""All charts, in the order of the page."""


def thinned(records: Records, most: int = MOST_POINTS) -> Records:
    """Return every 2nd, 4th, 8th, ... record, at most `most`, and the last one.

    By powers of two the points that are shown stay the same ones while others are added.

    >>> from streamsvm.page.series import thinned
    >>> thinned([{"n": i} for i in range(10)], most=5)
    [{'n': 0}, {'n': 2}, {'n': 4}, {'n': 6}, {'n': 8}, {'n': 9}]
    """
    step = 1
    while len(records) > most * step:
        step *= 2
    kept = list(records[::step])
    return kept if (len(records) - 1) % step == 0 else [*kept, records[-1]]


def charts(monitor: Any, records: Records, run_records: Records) -> dict[str, Chart]:
    """Return the charts of records that have values, by their names in `KINDS`."""
    last = monitor.last()
    if last and (not records or last["n_examples"] > records[-1]["n_examples"]):
        records = [*records, last]
    # A drift may be between two points: all records are asked for it.
    drifts = {r.get("last_drift") for r in records} - {None, 0}
    marks = np.array(sorted(d - monitor.n_before for d in drifts), np.float64)
    found = dict(_of_monitor(_Columns(thinned(records), "n_examples"), monitor))
    run = _Columns(thinned(run_records), "rows")
    of_run = dict(_of_run(run))
    # Rows of a run are more than the examples learnt: some cannot be used, or await their labels.
    rows = np.interp(marks, run["learnt"], run.x) if len(run.x) else marks
    for some, places in ((found, marks), (of_run, rows)):
        for chart in some.values():
            chart.marks, chart.mark = places.tolist(), "a drift was noticed"
    # A run has records of each chunk: there are some before the monitor's first ones.
    of_both = of_run | {name: chart for name, chart in found.items() if len(chart.x) > 1}
    if len(run.x):  # the speed is the run's, as on the screen
        of_both["speed"] = of_run["speed"]
    found = of_both
    return {name: chart for name, chart in found.items() if chart.lines}


class _Columns:
    """Columns of records, over one of them."""

    def __init__(self, records: Records, over: str) -> None:
        self._records = records
        self.x = self[over]

    def __getitem__(self, name: str) -> np.ndarray:
        return column_of(self._records, name)

    def chart(
        self, of: str, names: dict[str, str], shown: Callable[[float], str], log: bool = False
    ) -> Chart:
        """Return a chart of the columns that have values, by column and name of the line."""
        column = self.__getitem__
        lines = [Line(text, column(name), _band(column, name)) for name, text in names.items()]
        lines = [line for line in lines if not np.isnan(line.y).all()]
        return Chart(KINDS[of].title, self.x, lines, shown, log=log)


def _of_monitor(of: _Columns, monitor: Any) -> Iterator[tuple[str, Chart]]:
    names = {"accuracy_recent": "of the last 1,000", "accuracy": "since the start"}
    yield "accuracy", of.chart("accuracy", names, _percent)
    yield "gap", of.chart("gap", _of_gap(monitor.covers), "{:.3g}".format, log=True)
    yield "objective", of.chart("objective", {"objective": "objective"}, "{:.4g}".format)
    names = {"coverage": "since the start", "coverage_wanted": "wanted"}
    yield "coverage", of.chart("coverage", names, _percent)
    names = {
        "n_support_vectors": "support vectors",
        "n_bounded": "of them at C: margin errors",
        "n_free": "of them between 0 and C",
    }
    yield "support_vectors", of.chart("support_vectors", names, thousands)
    yield _speed(of)
    n = monitor.rates.n_latencies
    names = {"latency_p50": "median", "latency_p99": latency_name(n, "99 % are below")}
    yield "latency", of.chart("latency", names, seconds_shown, log=True)
    yield "memory", of.chart("memory", {"memory_bytes": "the model"}, bytes_shown)


def _of_gap(covers: str) -> dict[str, str]:
    """Return the columns of the gap and its mean, and what they are called."""
    gaps, whose = gaps_of(covers), " of the examples kept" if covers in NOT_OF_ALL else ""
    return {gaps.now: f"gap{whose} now", gaps.mean: "its mean since the start"}


def _band(column: Callable[[str], np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the interval of a column; of a mean gap from itself to its upper bound."""
    most = {gaps.mean: gaps.most for gaps in (gaps_of("stream"), gaps_of("merged"))}.get(name)
    if most is None:
        return band(column, name)
    mean, high = column(name), column(most)
    return (mean, high) if (high > mean).any() else None


def _speed(of: _Columns) -> tuple[str, Chart]:
    names = {"examples_per_second": "examples a second"}
    return "speed", of.chart("speed", names, thousands)


def _of_run(of: _Columns) -> Iterator[tuple[str, Chart]]:
    yield "accuracy", of.chart("accuracy", {"accuracy": "since the start"}, _percent)
    names = {"n_support_vectors": "support vectors"}
    yield "support_vectors", of.chart("support_vectors", names, thousands)
    yield _speed(of)
    is_any = np.nan_to_num(of["n_bad"]).any()
    names = {"n_bad": "events"} if is_any else {}
    yield "bad", of.chart("bad", names, thousands)


def latency_name(n: int, otherwise: str) -> str:
    """Return what the 99 % quantile of n latencies is: the longest, of fewer than 100."""
    return otherwise if n >= 100 else f"longest of {n}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def seconds_shown(value: float) -> str:
    """Return seconds in a readable unit.

    >>> from streamsvm.page.series import seconds_shown
    >>> seconds_shown(0.0000213), seconds_shown(0.004)
    ('21.3 us', '4 ms')
    """
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def bytes_shown(value: float) -> str:
    """Return bytes in a readable unit.

    >>> from streamsvm.page.series import bytes_shown
    >>> bytes_shown(2_500_000), bytes_shown(900)
    ('2.5 MB', '900 bytes')
    """
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} bytes"
