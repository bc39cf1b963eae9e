"""The parts of the page that change, as HTML: all texts that come from data are escaped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streamsvm.monitor.figures import ALL, CHARTS, COUNT, OF_RUN, gaps_of
from streamsvm.monitor.history import History
from streamsvm.monitor.series import Chart, Records, latency_title
from streamsvm.monitor.series import charts as charts_of
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.page import charts
from streamsvm.page.confusion import confusion
from streamsvm.page.regions import Regions
from streamsvm.support.printing import escape

_log = logging.getLogger(__name__)

_TABLES = ("bad_events_by_kind", "lag_by_partition", "forgotten")

TITLES = {
    "regions": "Regions",
    "confusion": "Confusion matrix and recall",
    **{name: OF_RUN[name].title.capitalize() for name in _TABLES},
    "values": "All figures",
}
"""The headings of the tables."""


class Sections:
    """Makes the changing parts of the page of a monitor: {id of the element: HTML}.

    `figures` is called for the counts of a run, by the names of `monitor.figures.OF_RUN`;
    `history` is the run's, and None without a run. `values`: show values of events, too.

    A part that fails is shown as one that cannot be drawn, and does not keep others from it.
    """

    def __init__(
        self,
        monitor: TrackingMonitor,
        figures: Callable[[], Mapping[str, Any]],
        history: History | None,
        values: bool,
    ) -> None:
        self._monitor, self._figures, self._history = monitor, figures, history
        self._regions = Regions(monitor.model, monitor.learner, values)
        self._values = values
        self._logged: set[str] = set()
        self.said: str | None = None

    @property
    def state(self) -> str:
        """What a run does, in words: what was said, or else what its monitor knows."""
        phase: str = self._monitor.phase
        return phase if self.said is None else self.said

    def made(self, of_late: bool = False) -> dict[str, str]:
        """Return all parts as of now, with charts of late or of all; an empty one is hidden."""
        found = dict.fromkeys([*CHARTS, *(f"{name}-table" for name in CHARTS), *TITLES], "")
        found |= {"state": escape(self.state), "notes": "", "now": ""}
        last: dict[str, Any] = {}
        figures: dict[str, Any] = {}
        made: dict[str, Chart] = {}
        records, of_run = (
            () if history is None else history.latest if of_late else history.records
            for history in (self._monitor.history, self._history)
        )
        with self._part("values", found):
            last = self._monitor.last()
            found["values"] = _values(self._monitor.explained(last))
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
                found |= charts.parts_of(name, chart)
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
        pairs = figures.get("pairs") or dict(self._monitor.score.pairs)
        return confusion((y, p, n) for (y, p), n in sorted(pairs.items(), key=repr))

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


def _awaited(monitor: TrackingMonitor, last: Mapping[str, Any]) -> str:
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


def _now(
    last: Mapping[str, Any], figures: Mapping[str, Any], n_latencies: int, covers: str
) -> dict[str, str]:
    """Return the newest figures by title, some with their interval or bound."""
    gaps = gaps_of(covers)
    ends = {name: (f"{name}_low", f"{name}_high") for name in (*_SHARES, gaps.now)}
    ends[gaps.mean] = gaps.mean, gaps.most
    items = {}
    for name in (*_SHARES, gaps.now, "gap_share", gaps.mean, *_NOW):
        value = figures.get(name, last.get(name))
        if value is None:
            continue
        figure = ALL[name]
        title = latency_title(n_latencies) if name == "latency_p99" else figure.title
        low, high = (last.get(end) for end in ends.get(name, (name, name)))
        if figure.unit is COUNT:
            items[title] = f"{value:,}"
        elif low is None or high is None or name not in ends:
            items[title] = figure.unit.shown(value)
        else:
            items[title] = charts.in_words(value, low, high, figure.unit.shown)
    return items


_SHARES = ("accuracy_recent", "accuracy")
_NOW = (
    "events n_examples n_support_vectors examples_per_second latency_p50 latency_p99 memory_bytes "
    "bad_events lag"
).split()
"""The figures that are shown; one that there is not is left out."""


def _counts(counts: Any) -> str:
    if not counts:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td class="n">{n:,}</td></tr>'
        for name, n in sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    )
    return f"<table>{rows}</table>"


def _values(explained: Iterable[tuple[str, str, str]]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="n">{value}</td>'
        f"<td>{escape(meaning)}</td></tr>"
        for name, value, meaning in explained
    )
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("figure", "value", "meaning"))
    return f"<table><tr>{head}</tr>{rows}</table>"
