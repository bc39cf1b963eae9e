"""The parts of the page that change, as HTML: all texts that come from data are escaped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streamsvm.monitor.history import History
from streamsvm.monitor.report import MEANINGS, NOT_OF_ALL, gaps_of, shown, shown_of
from streamsvm.page import charts
from streamsvm.page.confusion import confusion
from streamsvm.page.regions import Regions
from streamsvm.page.series import KINDS, Records, bytes_shown, latency_name, seconds_shown
from streamsvm.page.series import charts as charts_of
from streamsvm.support.printing import escape

_log = logging.getLogger(__name__)

_TABLES = ("bad_events_by_kind", "lag_by_partition", "forgotten")

TITLES = {
    "regions": "Regions",
    "confusion": "Confusion matrix and recall",
    "bad_events_by_kind": "Events that could not be used, by kind",
    "lag_by_partition": "Lag by partition",
    "forgotten": "Requests to forget",
    "values": "All figures",
}
"""The headings of the tables."""


class Sections:
    """Makes the changing parts of the page of a monitor: {id of the element: HTML}.

    `figures` is called for the counts of a run, by the names of `monitor.prometheus.OF_RUN`;
    `history` is the run's, and None without a run. `values`: show values of events, too.

    A part that fails is shown as one that cannot be drawn, and does not keep others from it.
    """

    def __init__(
        self,
        monitor: Any,
        figures: Callable[[], Mapping[str, Any]],
        history: History | None,
        values: bool,
    ) -> None:
        self._monitor, self._figures, self._history = monitor, figures, history
        self._regions = Regions(monitor.model, monitor.learner, values)
        self._values = values
        self._logged: set[str] = set()
        self.state = "learning"

    def made(self, of_late: bool = False) -> dict[str, str]:
        """Return all parts as of now, with charts of late or of all; an empty one is hidden."""
        found = dict.fromkeys([*KINDS, *(f"{name}-table" for name in KINDS), *TITLES], "")
        found |= {"state": escape(self.state), "notes": "", "now": ""}
        last: dict[str, Any] = {}
        figures: dict[str, Any] = {}
        made: dict[str, charts.Chart] = {}
        records, of_run = (
            () if history is None else history.latest if of_late else history.records
            for history in (self._monitor.history, self._history)
        )
        with self._part("values", found):
            last = self._monitor.last()
            found["values"] = _values(shown_of(last, self._monitor.covers))
        with self._part("now", found):
            figures = dict(self._figures())
            newest = last or _newest(of_run)
            n = self._monitor.rates.n_latencies
            now = _now(newest, figures, n, self._monitor.covers)
            items = (f"<div><dt>{k}</dt><dd>{escape(v)}</dd></div>" for k, v in now.items())
            found["now"] = _awaited(self._monitor, last) + "".join(items)
        with self._part("notes", found):
            found["notes"] = _notes(last)
        with self._part("accuracy", found):
            made = charts_of(self._monitor, records, of_run)
        for name, chart in made.items():
            with self._part(name, found):
                if picture := charts.svg(chart):
                    found |= {name: picture, f"{name}-table": charts.table(chart)}
        with self._part("confusion", found):
            found["confusion"] = self._confusion(figures)
        with self._part("regions", found):
            found["regions"] = self._regions.drawn()
        for name in _TABLES:
            with self._part(name, found):
                found[name] = _counts(figures.get(name))
        if reason := figures.get("most_frequent"):
            found["bad_events_by_kind"] += f"<p>Most often: {escape(str(reason))}</p>"
        return found

    def _confusion(self, figures: Mapping[str, Any]) -> str:
        # Those of a run are of this moment, the monitor's are counted when it measures.
        pairs = figures.get("pairs") or dict(self._monitor.scores.pairs)
        caption, table = confusion((y, p, n) for (y, p), n in sorted(pairs.items(), key=repr))
        return f"<p>{caption}</p>{table}" if table else ""

    @contextmanager
    def _part(self, name: str, found: dict[str, str]) -> Iterator[None]:
        """Say in its place that a part cannot be drawn, if what is done fails; log it once."""
        try:
            yield
        except Exception as error:
            # A message may have values of events.
            why = f"{type(error).__name__}{f': {error}' if self._values else ', see the log'}"
            text = f"cannot be drawn: {escape(why)}"
            found[name] = f"<div><dt>figures</dt><dd>{text}</dd></div>" if name == "now" else text
            if name not in self._logged:
                self._logged.add(name)
                _log.warning("the live page: %s cannot be drawn", name, exc_info=True)


def _awaited(monitor: Any, last: Mapping[str, Any]) -> str:
    """Return when there will be records; empty: there are some."""
    if last:
        return ""
    n, every = monitor.learner.n_examples - monitor.n_before, monitor.every
    text = f"Records come each {every:,} examples; there are {n:,} examples so far."
    return f"<div><dt>no records yet</dt><dd>{text}</dd></div>"


def _newest(of_run: Records) -> dict[str, Any]:
    """Return the newest record of a run by the monitor's names; empty: there is none."""
    if not of_run:
        return {}
    found = dict(of_run[-1])
    return found | {"n_examples": found.get("learnt")}


def _notes(last: Mapping[str, Any]) -> str:
    """Return what a reader should be told when it happens: a screen reader says it."""
    notes = []
    if last.get("last_drift"):
        n = last["n_drifts"]
        notes.append(f"{n:,} drift{'s' * (n != 1)} noticed, the last at {last['last_drift']:,}.")
    change = last.get("accuracy_change")
    if change:
        way = "lower" if change < 0 else "higher"
        notes.append(f"Of late the accuracy is surely {way} than since the start.")
    return " ".join(notes)


def _gaps(last: Mapping[str, Any], covers: str) -> dict[str, str]:
    """Return the gap now, as a share of the objective, and its mean, each with its bound."""
    of, three = gaps_of(covers), "{:.3g}".format
    now, mean, most = (last.get(name) for name in of)
    if now is None:
        return {}
    low, high = (last.get(f"{of.now}_{end}", now) for end in ("low", "high"))
    name = "gap of the examples kept" if covers in NOT_OF_ALL else "gap"
    found = {name: charts.in_words(now, low, high, three)}
    if last.get("gap_share") is not None:
        found["gap, share of the objective"] = f"{last['gap_share']:.1%}"
    if mean is not None:
        found["mean gap"] = charts.in_words(mean, mean, mean if most is None else most, three)
    return found


def _now(
    last: Mapping[str, Any], figures: Mapping[str, Any], n_latencies: int, covers: str
) -> dict[str, str]:
    """Return the newest figures by name."""
    shares = {"accuracy, last 1,000": "accuracy_recent", "accuracy so far": "accuracy"}
    items = {
        name: _percent_with_ends(last, of)
        for name, of in shares.items()
        if last.get(of) is not None
    } | _gaps(last, covers)
    for name, of, how in _NOW:
        value = figures.get(of, last.get(of))
        if value is not None:
            if of == "latency_p99":
                name = f"latency, {latency_name(n_latencies, '99 %')}"
            items[name] = how(value)
    return items


def _percent_with_ends(last: Mapping[str, Any], name: str) -> str:
    low, high = last.get(f"{name}_low"), last.get(f"{name}_high")
    ends = "" if low is None or high is None else f" ({low:.1%} to {high:.1%})"
    return f"{last[name]:.1%}{ends}"


_NOW: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("events", "events", "{:,}".format),
    ("examples learnt", "n_examples", "{:,}".format),
    ("support vectors", "n_support_vectors", "{:,}".format),
    ("examples a second", "examples_per_second", charts.thousands),
    ("latency, median", "latency_p50", seconds_shown),
    ("latency, 99 %", "latency_p99", seconds_shown),
    ("memory", "memory_bytes", bytes_shown),
    ("events that could not be used", "bad_events", "{:,}".format),
    ("lag", "lag", "{:,}".format),
)
"""Name, figure, and how it is shown; a figure that there is not is left out."""


def _counts(counts: Any) -> str:
    if not counts:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td class="n">{n:,}</td></tr>'
        for name, n in sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    )
    return f"<table>{rows}</table>"


def _values(last: Mapping[str, Any]) -> str:
    if not last:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td class="n">{shown(value)}</td>'
        f"<td>{escape(MEANINGS.get(name, 'metric, progressive'))}</td></tr>"
        for name, value in last.items()
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("figure", "value", "meaning"))
    return f"<table><tr>{head}</tr>{rows}</table>"
