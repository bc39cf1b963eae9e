"""The methods of a monitor that present its values: tables, plots, metrics, and the live page.

Rich, matplotlib and prometheus-client are imported by the methods that use them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsvm.monitor.figures import ABOUT, NOT_OF_ALL, meaning_of, shown, shown_of
from streamsvm.monitor.history import History
from streamsvm.monitor.hits import Bounds
from streamsvm.monitor.rates import Scores

if TYPE_CHECKING:
    from streamsvm.page.live_page import LivePage

_ONLY_KEPT = (
    "no certificate of all examples: {} leaves some out; monitor.get() has kept_certificate, of "
    "the examples kept at each moment"
)


class Presentation(ABC):
    """Base of `TrackingMonitor`: tables, plots, metrics and the live page of its records."""

    learner: Any
    every: int
    history: History
    confidence: float
    scores: Scores
    n_before: int

    @abstractmethod
    def get(self) -> dict[str, Any]:
        """Return the current values by name."""

    @abstractmethod
    def last(self) -> dict[str, Any]:
        """Return the last record without measuring."""

    @abstractmethod
    def _score(self) -> None:
        """Count and score the buffered examples."""

    def report(self) -> str:
        """Return the current values as a readable table, with the meaning of each.

        Returns
        -------
        str
            The table, 120 columns wide.

        """
        from rich.console import Console

        out = StringIO()
        console = Console(file=out, width=120)
        console.print(self.panel())
        n, kept_every = len(self.history), self.history.kept_every
        thinned = "" if kept_every == 1 else " (thinned: older records were dropped)"
        every = f"{self.every * kept_every:,} examples{thinned}"
        console.print(f"history: {n:,} records, about one every {every}")
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"

    def panel(self) -> Any:
        """Return the current values as a table for Rich.

        Returns
        -------
        rich.table.Table
            A renderable.

        """
        return self._table(self.get())

    def live(self) -> Any:
        """Return a context in which the table of the last record is shown and kept up to date.

        Returns
        -------
        rich.live.Live
            The context.

        """
        from rich.live import Live

        def renderable() -> Any:
            return self._table(self.last())

        return Live(get_renderable=renderable, refresh_per_second=4, transient=True)

    def _table(self, values: Mapping[str, Any]) -> Any:
        from rich.markup import escape
        from rich.table import Table

        title = f"Tracking {type(self.learner).__name__}"
        table = Table(title=title, title_justify="left", box=None)
        table.add_column("", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
        table.add_column("meaning", overflow="fold")
        for name, value, meaning in self.explained(values):
            table.add_row(name, value, escape(meaning))
        return table

    def explained(self, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yield name, value in words and meaning of what is shown of a record."""
        for name, value in shown_of(values, self.covers).items():
            meaning = meaning_of(name)
            if name == "certificate":
                reason = self.certificate_reason
                chance = f"with {self.confidence:.0%} probability"
                meaning = reason if value is None else f"{meaning} {chance}: {reason}"
            if name == "gap":
                meaning = (
                    f"{meaning}, of {ABOUT[self.covers]}"
                    if value is not None
                    else NOT_OF_ALL.get(self.covers, "not measured yet")
                )
            yield name, shown(value), meaning

    def plot(self, folder: str | Path) -> list[Path]:
        """Write PNG plots of the history.

        Parameters
        ----------
        folder
            Where to; it is made if it does not exist.

        Returns
        -------
        list[Path]
            The paths of the files.

        Raises
        ------
        ImportError
            matplotlib is not installed; the message has the pip line.

        """
        from streamsvm.monitor.plots import write
        from streamsvm.monitor.series import charts

        return write(charts(self, self.history.records, (), self.history.most), Path(folder))

    def serve(
        self, port: int, host: str = "127.0.0.1", figures: Callable[[], Mapping[str, Any]] = dict
    ) -> Any:
        """Serve the last record as Prometheus gauges on http://host:port/metrics.

        Parameters
        ----------
        port
            The port; 0 takes a free one.
        host
            The address to listen on; by default only this machine reaches it. There is no password.
        figures
            Called at each request: counts of a run beside the record, by the names of
            `streamsvm.monitor.figures.OF_RUN`.

        Returns
        -------
        Server
            An object with ``close()`` and ``port``.

        Raises
        ------
        ImportError
            prometheus-client is not installed; the message has the pip line.

        """
        from streamsvm.monitor.prometheus import serve

        return serve(self, port, host, figures)

    def page(self, port: int, host: str = "127.0.0.1", **settings: Any) -> LivePage:
        """Serve the live page: charts and tables that renew themselves in all browsers on it.

        Parameters
        ----------
        port, host
            As in `serve`.
        settings
            Further ones of `streamsvm.page.live_page.LivePage`, such as ``title`` and ``values``.

        Returns
        -------
        LivePage
            An object with ``url``, ``port`` and ``close()``; closed at the end of a ``with``.

        Raises
        ------
        ParameterError, OSError
            As in `LivePage`.

        """
        from streamsvm.page.live_page import LivePage

        return LivePage(self, port, host, **settings)

    @property
    def certificate_reason(self) -> str:
        """What the certificate is about, or why there is no certificate."""
        found = self.learner.certificate
        reason: str = found.reason
        if found.value is not None and self.covers != "kept":
            reason = _ONLY_KEPT.format(type(self.learner).__name__)
        if self.n_before:
            reason += f", since the monitor was attached, after {self.n_before:,} examples"
        return reason

    @property
    def covers(self) -> str:
        """What the gap is about: as of the learner, or "since" the monitor was attached."""
        covers: str = self.learner.covers
        # Of examples before it, the monitor knows only those that the learner keeps.
        return "since" if self.n_before and covers == "stream" else covers

    @property
    def about(self) -> dict[str, Any]:
        """What the figures are about: `certificate_reason`, `covers` and `confidence` by name.

        If the learner chooses its examples also `selection`, in words.
        """
        found = {
            "certificate_reason": self.certificate_reason,
            "covers": self.covers,
            "confidence": self.confidence,
        }
        waiting = self.learner.waiting
        return found if waiting is None else found | {"selection": waiting.in_words}

    @property
    def confusion(self) -> dict[tuple[Any, Any], int]:
        """The numbers of examples by label and predicted label: {(label, predicted): number}."""
        self._score()
        return dict(self.scores.hits.pairs)

    @property
    def recall(self) -> dict[Any, float]:
        """The share of the examples of each label that were predicted correctly."""
        self._score()
        return self.scores.hits.recall()

    @property
    def recall_bounds(self) -> dict[Any, Bounds]:
        """Their intervals by label: `low`, `high`, `recent_low`, `recent_high` and `change`.

        They hold for all labels, and at all moments at once, from when all labels have come.
        """
        self._score()
        return self.scores.hits.bounds()[2]
