"""The display of a run: live lines on a terminal, plain lines elsewhere, a table at the end."""

from __future__ import annotations

import sys
import time
from typing import Any

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
from streamsvm.monitor.report import ABOUT
from streamsvm.run.report import Progress, RunReport

_PLAIN_EVERY = 2.0
_MENTIONED = 1.0
"""The report mentions compiling that took longer than this, in seconds."""

_MOST_CLASSES = 8
"""Of more classes, only the worst are named."""

_USUAL_FUNCTIONS = {
    "adaptive": 90,
    "larank": 90,
    "lasvm": 80,
    "sgd": 50,
    "sgdqn": 50,
    "tracking": 90,
}
"""About how many functions a first replay compiles: `benchmarks/first_run.py` counts them."""


def figures(now: Progress) -> str:
    """Return the figures of a moment in one line."""
    return (
        f"{now.rows_per_second:,.0f} examples/s  accuracy {now.accuracy:.2%}  "
        f"balanced {now.balanced_accuracy:.2%}"
        + (f"  {now.n_support_vectors:,} SV" if now.n_support_vectors is not None else "")
        + (f"  gap {now.gap:.3g}" if now.gap is not None else "")
        + (f"  certificate {now.certificate:.3g}" if now.certificate is not None else "")
        + (f"  {now.n_bad:,} bad" if now.n_bad else "")
    )


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
        self._task = self._bar.add_task(title, total=total)
        self._figures = ""
        # Two lines: the figures alone fill a terminal of 80 columns.
        self._live = Live(
            get_renderable=lambda: Group(
                self._bar.get_renderable(), Text(self._figures, no_wrap=True, overflow="ellipsis")
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

    def say(self, text: str) -> None:
        """Show a line that is not overwritten."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

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
            self._figures = text
        elif self._is_due("compiling"):
            self.say(text)

    def show(self, now: Progress) -> None:
        """Show the progress of the run."""
        text = figures(now)
        if now.phase == "finishing":
            left = "" if now.delta is None else f"  {now.delta:.3g} from the optimum"
            text = f"finishing: {now.n_support_vectors:,} SV{left}"
        if self._is_live:
            self._figures = text
            self._bar.update(self._task, completed=now.rows)
        elif self._is_due(now.phase):
            self.say(f"{now.rows:,} examples  {text}")


def report_rows(report: RunReport, extra: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name and value of each figure of the final report, and of `extra`."""
    rows: list[tuple[str, str | None]] = [
        ("examples", _examples(report)),
        ("classes", _classes(report)),
        (
            "progressive accuracy",
            f"{report.accuracy:.2%}  (each example predicted before it was learnt)",
        ),
        ("balanced accuracy", f"{report.balanced_accuracy:.2%}  (mean over the classes)"),
        ("scale, gamma, C", report.chosen),
        ("drifts", report.drifts),
        ("support vectors", _number(report.n_support_vectors)),
        ("memory", _memory(report)),
        ("kernel cache", _cached(report.counters)),
        *_gap_rows(report.monitor),
        ("duality gap", _NO_GAP if report.monitor and report.drifts is not None else None),
        ("optimum", _optimum(report.delta, report.tau)),
        (
            "finishing",
            f"{report.finish_seconds:.2f} s, without compiling" if report.finished else None,
        ),
        ("late labels", _counts(report.late, "_")),
        ("missing values", _missing(report)),
        ("clipped values", _clipped(report.clipped)),
    ]
    for name, count, text in _OF_SOURCE:
        if n := report.source.get(count, 0):
            rows.append((name, text.format(n)))
    rows.append(("bad examples", _counts(report.bad)))
    found = [(name, text) for name, text in rows if text is not None]
    return found + [(name, str(value)) for name, value in extra.items()]


_OF_SOURCE = (
    (
        "offsets left out",
        "jumped",
        "{:,}  (no messages there: deleted by the broker, or marks of transactions)",
    ),
    (
        "passed over",
        "passed_over",
        "{:,} messages  (older than the checkpoint; if the topic was made anew, use another "
        "checkpoint)",
    ),
    ("ignored fields", "new_fields", "in {:,} rows: not in the first 10,000 of the file"),
)
"""Name of the row, the source's own name of the count, and the text."""


def _number(n: int | None) -> str | None:
    return None if n is None else f"{n:,}"


def _counts(counts: dict[str, int], joint: str = " ") -> str | None:
    return ", ".join(f"{n:,} {name.replace(joint, ' ')}" for name, n in counts.items()) or None


def _classes(report: RunReport) -> str:
    """Return the number of examples of each class, and the share predicted right."""
    counts, recall = report.labels, report.recall
    said = {y: f", {recall[y]:.1%} right" if y in recall else "" for y in counts}
    if len(counts) <= _MOST_CLASSES:
        return ", ".join(f"{y} ({n:,}{said[y]})" for y, n in counts.items())
    worst = sorted(recall, key=lambda y: recall[y])[:3]
    listed = ", ".join(f"{y} ({counts[y]:,}{said[y]})" for y in worst)
    return f"{len(counts)} of {min(counts.values()):,} to {max(counts.values()):,}; worst: {listed}"


def _optimum(delta: float | None, tau: float | None) -> str | None:
    """Say whether the model is at the optimum of the examples kept, and what to do if not."""
    if delta is None or tau is None:
        return None
    if delta <= tau:
        return f"reached on the examples kept  (delta {delta:.3g}, at most tau, {tau:g})"
    hint = "--finish, or model.finish(), goes there"
    return f"not reached on the examples kept: {hint}  (delta {delta:.3g}, tau {tau:g})"


def _examples(report: RunReport) -> str:
    """Return the number of examples, and examples a second without compiling and waiting."""
    seconds = report.seconds - report.compile_seconds - report.wait_seconds
    text = f"{report.rows:,} in {seconds:.2f} s: {report.rows_per_second:,.0f} a second"
    if report.compile_seconds > _MENTIONED:
        text += f", after {report.compile_seconds:.1f} s of compiling for this machine"
    if report.wait_seconds > _MENTIONED:
        text += f", and {report.wait_seconds:.1f} s of waiting for events"
    return text


def _memory(report: RunReport) -> str:
    """Return the memory of the model's parts, and the peak of the process."""
    text = f"{report.memory_bytes / 1e6:.1f} MB"
    if report.memory_parts and report.n_support_vectors:
        # Not by support vector: the numbers count coefficients, and the model in use of several.
        shown = {"support_vectors": "support vectors", "cache": "cached rows", "reserve": "reserve"}
        sizes = {label: report.memory_parts.get(part, 0) for part, label in shown.items()}
        text += ": " + ", ".join(f"{n / 1e6:.1f} MB {label}" for label, n in sizes.items() if n)
    if report.peak_bytes is not None:
        text += f"; peak of the process {report.peak_bytes / 1e6:,.0f} MB"
    return text


def _missing(report: RunReport) -> str | None:
    """Return how many values were missing, in which features most, and which columns are empty."""
    counts = report.missing
    empty = ", ".join(report.empty_columns)
    if not counts:
        return f"all of {empty}" if empty else None
    most = sorted(counts, key=lambda name: -counts[name])

    def share(name: str) -> float:
        # The run counts texts; numbers the model, which may have learnt before.
        n = report.rows if name in report.missing_texts else report.model_examples
        return counts[name] / max(1, n)

    shown = ", ".join(f"{name} {counts[name]:,} ({share(name):.1%})" for name in most[:5])
    text = f"{sum(counts.values()):,}: {shown}{', ...' if most[5:] else ''}"
    return f"{text}; and all of {empty}" if empty else text


def _clipped(counts: dict[str, int]) -> str | None:
    """Return how many values were beyond the scaler's limit, and of which features."""
    if not counts:
        return None
    most = sorted(counts, key=lambda name: -counts[name])
    shown = ", ".join(f"{name} ({counts[name]:,})" for name in most[:3])
    return f"{sum(counts.values()):,} far from the mean: {shown}{', ...' if most[3:] else ''}"


def _cached(counters: dict[str, int]) -> str | None:
    """Say how many kernel rows were in the cache (if too few, the advice says what to do)."""
    total = sum(counters.get(f"cached_rows_{how}", 0) for how in ("hit", "extended", "missed"))
    if not total:
        return None
    share = 1 - counters.get("cached_rows_missed", 0) / total
    return f"{share:.1%} of the kernel rows that were needed were there"


def _gap_rows(monitor: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows for objective, gap, its mean and certificate, if a monitor measured."""
    rows = []
    if monitor.get("objective") is not None:
        meaning = "penalty plus mean loss, on a sample of the stream: what training lowers"
        low, high = monitor.get("objective_low"), monitor.get("objective_high")
        interval = "" if low is None else f", between {low:.4g} and {high:.4g}"
        rows.append(("objective", f"{monitor['objective']:.4g}{interval}  ({meaning})"))
    covers = monitor.get("covers", "stream")
    about = ABOUT[covers]
    if monitor.get("certificate") is not None:
        about = monitor["certificate_reason"].removeprefix("of ")
    if monitor.get("gap") is not None:
        gap, low, high = monitor["gap"], monitor["gap_low"], monitor["gap_high"]
        interval = "" if low == high else f", between {low:.4g} and {high:.4g} (95 %)"
        rows.append(("duality gap", f"{gap:.4g}{interval}: {_MEANING.format(about)}"))
    elif monitor.get("kept_gap") is not None:
        known = f"of {about} alone; of all examples it is {_NOT_KNOWN[covers]}"
        rows.append(("duality gap", f"{monitor['kept_gap']:.4g} {known}"))
    if monitor.get("certificate") is not None:
        chance = f"with {monitor['confidence']:.0%} probability"
        rows.append(("mean gap", f"{monitor['averaged_gap']:.4g} since the start, estimated"))
        rows.append(
            ("certificate", f"{monitor['certificate']:.4g}: the mean gap is below, {chance}")
        )
    return rows


_NO_GAP = (
    "not measured: the models of this learner begin at different examples and take turns, so there "
    "is no one SVM to compare them with (--learner lasvm has a gap)"
)
_MEANING = "an SVM trained at once on {} has an objective that is lower by at most this"
_NOT_KNOWN = {
    "merged": "at most the objective",
    "problems": "not known, as those left out are not counted",
}
