"""The display of a run while it goes on: live lines on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from streamsvm import _compiling
from streamsvm.confidence.sequence import share_interval
from streamsvm.run.report import Progress
from streamsvm.support.printing import printable

_PLAIN_EVERY = 2.0

_USUAL_FUNCTIONS = {
    "adaptive": 25,
    "larank": 22,
    "lasvm": 23,
    "sgd": 25,
    "sgdqn": 25,
    "tracking": 21,
}
"""About how many functions a first replay compiles: `benchmarks/first_run.py` counts them."""


def figures(now: Progress) -> str:
    """Return the figures of a moment in one line."""
    interval = ""
    if now.n_right is not None and now.n_scored is not None:
        low, high = share_interval(now.n_right, now.n_scored)
        interval = f" ({100 * low:.1f} to {high:.1%})"
    of_what = "in the bag" if now.in_bags else "accuracy"
    return (
        f"{now.rows_per_second:,.0f} examples/s  {of_what} {now.accuracy:.2%}{interval}"
        + (f"  balanced {now.balanced_accuracy:.2%}" if now.balanced_accuracy is not None else "")
        + (f"  {now.n_support_vectors:,} SV" if now.n_support_vectors is not None else "")
        + _gap(now)
        + (f"  {now.n_bad:,} bad" if now.n_bad else "")
    )


def _gap(now: Progress) -> str:
    """Return the gap, or its mean where a bound of the mean is known, and the upper bound."""
    name, value, most = "gap", now.gap, now.gap_high
    if now.certificate is not None:
        name, value, most = "mean gap", now.averaged_gap, now.certificate
    if value is None:
        return ""
    bound = "" if most is None or most == value else f" (at most {most:.3g})"
    return f"  {name} {value:.3g}{bound}"


class Screen:
    """Shows a run on standard error, so that standard output stays for results.

    `total` is the number of rows, if known; on the command's name of the `learner` depends the
    number of functions to compile.
    """

    def __init__(
        self, title: str, total: int | None, *, quiet: bool = False, learner: str | None = None
    ) -> None:
        self.console = Console(file=sys.stderr, quiet=quiet)
        self.title = title
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self.console,
        )
        self._task = self._bar.add_task(printable(title), total=total)
        self._figures: Callable[[], str] = str
        # Two lines: the figures alone fill a terminal of 80 columns.
        self._live = Live(
            get_renderable=lambda: Group(
                self._bar.get_renderable(), Text(self._figures(), no_wrap=True, overflow="ellipsis")
            ),
            console=self.console,
            transient=True,
            refresh_per_second=8,
        )
        self._is_live = self.console.is_terminal and not quiet
        self._said: dict[str, float] = {}
        self._compiled = 0
        self._usual = _USUAL_FUNCTIONS.get(learner or "", 0)

    def __enter__(self) -> Screen:
        """Start showing."""
        _compiling.watchers.append(self.compiling)
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop showing."""
        _compiling.watchers.remove(self.compiling)
        self._live.stop()

    def say(self, *lines: str) -> None:
        """Show lines that are not overwritten; names of files must not steer the terminal."""
        for line in lines:
            self.console.print(printable(line), highlight=False, markup=False, soft_wrap=True)

    def _is_due(self, kind: str) -> bool:
        """Tell whether a plain line of a kind is due: there is at most one in two seconds."""
        now = time.monotonic()
        if now - self._said.get(kind, -_PLAIN_EVERY) < _PLAIN_EVERY:
            return False
        self._said[kind] = now
        return True

    def compiling(self, name: str) -> None:
        """Show that one more function was compiled, and about how many there are.

        There are fewer if an earlier run, or another learner, has compiled some of them.
        """
        self._compiled += 1
        text = f"compiling for this machine, once: function {self._compiled}"
        if self._compiled <= self._usual:
            text += f" of about {self._usual}"
        if self._is_live:
            self._figures = lambda: text
        elif self._is_due("compiling"):
            self.say(text)

    def show(self, now: Progress) -> None:
        """Show the progress of the run."""

        def text() -> str:
            if now.phase != "finishing":
                return figures(now)
            left = "" if now.delta is None else f"  {now.delta:.3g} from the optimum"
            return f"finishing: {now.n_support_vectors:,} SV{left}"

        self.advance(now.rows, "examples", text, now.phase)

    def advance(self, done: int, what: str, text: Callable[[], str], kind: str = "") -> None:
        """Show how many of what are done, and a text about it; `kind` of lines are due by turns."""
        if self._is_live:
            self._figures = text
            self._bar.update(self._task, completed=done)
        elif self._is_due(kind):
            self.say(f"{done:,} {what}  {text()}")
