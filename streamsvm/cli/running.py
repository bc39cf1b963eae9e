"""The run of a stream by a command: options of output and late labels, progress and signals."""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

from connectors import Source
from connectors.text_looks import TextLooks
from streamsvm import TrackingMonitor
from streamsvm.cli import watching
from streamsvm.cli.candidates import took_over, with_candidate
from streamsvm.cli.learners import model_from
from streamsvm.cli.outputs import error_text
from streamsvm.cli.parser import label_of, number, number_or_share, number_or_time, whole
from streamsvm.cli.report import conclude
from streamsvm.cli.screen import Screen
from streamsvm.errors import ParameterError
from streamsvm.monitor.watched import Model
from streamsvm.run.bad_events import BadEvents, OnError
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.report import Progress
from streamsvm.run.runner import Run
from streamsvm.support.printing import printable

_WORTH_A_LINE = 20
"""So many bad examples, if they are most, are mentioned at once."""


OUTPUTS: dict[str, Any] = {
    "--save MODEL": "write the model to this file",
    "--report DIR": "write report, history and plots there",
    "--monitor": dict(
        action=argparse.BooleanOptionalAction,
        default=True,
        help="measure the duality gap, and show the certificate where there is one; default on",
    ),
    "--checkpoint FILE": "keep the state of the run there; if the file is there already, go on "
    "from it",
    "--checkpoint-every ROWS": dict(
        default=10_000, help="examples between two checkpoints; default 10000"
    ),
    "--checkpoint-seconds SECONDS": "seconds after which one is written in any case, if there are "
    "new examples; default: only by their number",
    "--json": dict(action="store_true", help="print the report as JSON"),
    "--quiet": dict(action="store_true", help="show no progress"),
    **watching.WATCHING,
    "--on-error": dict(
        choices=("raise", "skip", "dead-letter"),
        default="dead-letter",
        help="examples that cannot be used: stop, count, or keep in a file (default)",
    ),
    "--max-errors N": dict(
        type=number_or_share,
        help="stop when more than so many examples cannot be used, or more than this share (as .01 "
        "or 1%%); default: more than half, and more than 500; 100%%: however many there are",
    ),
    "--dead-letters FILE": "where they are kept; made when there are any, with a number in its "
    "name if there is such a file already; default dead_letters.jsonl, or with --checkpoint FILE "
    "FILE.dead_letters.jsonl",
}
"""The options for output files, progress, checkpoints and bad rows."""

LATE: dict[str, Any] = {
    "--label-delay N": dict(
        type=number,
        help="let each label come so many examples later (seconds, with --label-moment): simulated",
    ),
    "--label-moment NAME": "what the delay is counted in: 'timestamp', or a feature that is a time",
    "--hold-most N": dict(
        type=whole(1),
        default=100_000,
        help="events held for their labels; the oldest are given up beyond; default 100000",
    ),
    "--patience N": dict(
        type=number_or_time,
        help="give up an event after so many further ones, or after a time (90s, 10m, 2h, 7d) by "
        "the times of events and labels; labels that are there are read first",
    ),
    "--default-label LABEL": "learn events that are given up with this label (JSON: false, 0, or a "
    "text)",
}
"""The options for late labels, and for events whose labels never come."""


def late_labels_of(
    options: argparse.Namespace,
    by_key: bool = False,
    ask: Callable[[dict[str, Any]], None] | None = None,
) -> LateLabels | None:
    """Return the buffer of events that wait for labels; None: each event has its label.

    `by_key`: labels come from a topic of their own; `ask` is given the questions for them.
    """
    if options.label_delay is None and not by_key:
        if options.patience is not None or options.default_label is not None:
            raise ParameterError(
                "--patience and --default-label are about labels that come late: give "
                "--label-delay, or where labels come from (consume --labels-topic)"
            )
        if options.label_moment is not None:
            raise ParameterError("--label-moment needs --label-delay")
        return None
    default = options.default_label
    if default is not None:
        positive = options.positive
        default = label_of(default) if positive is None else default == positive
    return LateLabels(
        options.label_delay,
        options.label_moment,
        most=options.hold_most,
        patience=options.patience,
        default=default,
        ask=ask,
    )


def run_shown(
    options: argparse.Namespace,
    title: str,
    total: int | None,
    open_stream: Callable[[list[int]], Source],
    test: Source | None = None,
    letters: OnError | None = None,
    around: Callable[[Model], Model] | None = None,
    end: Callable[..., int] = conclude,
    **run_options: Any,
) -> int:
    """Run a source and show its progress; then report and save; return the exit code.

    An error that ends the run is raised after what was learnt is reported and saved.

    `total` is the number of rows, if known. `open_stream` returns the source; it is given the list
    of received signals: a source that waits must stop waiting when the list is not empty. `test`
    are rows to measure the error on at the end. `letters` takes dead letters instead of a file.
    `around` returns what runs in place of the model, by default that beside a candidate if there
    is one; `end` reports and saves. `run_options` are further arguments of `Run`.
    """
    learner, model = model_from(options)
    model = with_candidate(options, model) if around is None else around(model)
    watching.check(options)
    is_served = options.metrics_port is not None or options.page is not None
    watched = (options.monitor and learner.can_be_watched) or is_served
    monitor = TrackingMonitor(model) if watched else None
    on_error = options.on_error if letters is None else letters
    most: Any = "half" if options.max_errors is None else options.max_errors
    bad = BadEvents(on_error, options.dead_letters, most)
    screen = Screen(title, total, quiet=options.quiet, learner=options.learner)
    served = ExitStack()
    with ExitStack() as stack:
        # Closed by an error; else it stays as long as the page.
        stack.push(lambda kind, *rest: served.close() if kind else None)
        stack.enter_context(screen)
        takers: list[Any] = []
        told = stack.enter_context(ends_within(getattr(options, "grace", None), takers))
        stop = stack.enter_context(stop_on_signals(told))
        source = open_stream(stop)
        takers += [source, letters, getattr(run_options.get("late"), "ask", None)]
        takers.append(run_options.get("output"))
        run = Run(
            source,
            monitor or model,
            limit=options.limit,
            positive=options.positive,
            max_classes=options.max_classes,
            bad_events=bad,
            should_stop=lambda: bool(stop),
            checkpoint=_checkpoint_from(options),
            will_save=options.save is not None,
            **run_options,
        )
        # Replay says it before it starts.
        looks = source.number_texts if source.cuts_anew else None
        run.on_progress = _shown(screen, bad, run, looks)
        source.on_long_wait = screen.say  # Kafka's partitions can take 45 seconds
        page = None
        if monitor is not None and options.metrics_port is not None:
            screen.say(watching.serve_metrics(options, monitor, run, served))
        if monitor is not None and options.page is not None:
            page = watching.serve_page(options, monitor, run, title, served)
            screen.say(f"page: {page.url}")
        failure = _failure_of(run, options.limit)
    report = run.report
    waits = options.page_wait and not report.interrupted and failure is None
    with served, watching.until_left(page, waits, stop_on_signals):
        if failure is None:
            return end(options, model, learner, monitor, report, test)
        try:
            end(options, model, learner, monitor, report)
        except Exception as error:
            print(printable(f"streamsvm: {error_text(error)}"), file=sys.stderr)
        raise failure


def _checkpoint_from(options: argparse.Namespace) -> Checkpoint | None:
    if options.checkpoint is None:
        return None
    every, seconds = options.checkpoint_every, options.checkpoint_seconds
    peers = getattr(options, "peers", None)
    return Checkpoint(options.checkpoint, every, seconds, peers=peers)


def _failure_of(run: Run, limit: int | None) -> Exception | None:
    """Execute a run; return the error after which there is something to report and save."""
    report = run.report
    try:
        run.execute()
    except Exception as error:
        if not report.learnt:
            raise
        report.error = error_text(error)
        return error  # hours of work may have been learnt
    if run.taken == report.resumed_after and not report.interrupted:
        why = "there is nothing new"
        if limit is not None and run.place.first >= limit:
            why = f"--limit {limit} counts from the start, raise it"
        report.resumed = f"{report.resumed}; nothing more was read: {why}"
    return None


def _shown(
    screen: Screen, bad: BadEvents, run: Run, looks: TextLooks | None
) -> Callable[[Progress], None]:
    """Return a function that shows progress, and once what is wrong if most events are bad.

    Also, once they are known, what `looks` has found about texts.
    """
    said = set[str]()

    def once(what: str, text: Any) -> None:
        if text and what not in said:
            said.add(what)
            screen.say(text)

    def show(now: Progress) -> None:
        nonlocal looks
        if looks is not None and looks.is_done:
            screen.say(*looks.findings)
            looks = None
        report, record = run.report, run.adapter.record
        once("resumed", report.resumed and f"resumed from {report.resumed}")
        once("candidate", record and f"the candidate {took_over(record)}")
        screen.show(now)
        unkept = f"dead letters cannot be kept ({bad.unkept}): they are only counted"
        once("unkept", bad.unkept and unkept)
        if now.n_bad >= _WORTH_A_LINE and 2 * now.n_bad > now.rows:
            once("bad", f"most examples cannot be used: {bad.most_frequent}")

    return show


@contextmanager
def ends_within(grace: float | None, takers: list[Any]) -> Iterator[Callable[[int], None]]:
    """Return what is told of signals: it gives parts that wait for a broker the time that is left.

    Then the process ends, unless this context was left before: what follows waits for no broker.
    """
    timers: list[threading.Timer] = []

    def told(n_signals: int) -> None:
        if grace is None:
            return
        seconds = grace if n_signals == 1 else 0.0
        for one in takers:
            if one is not None:
                one.ends_at = time.monotonic() + seconds
        if n_signals == 1:
            timers.append(threading.Timer(grace, _leave, [grace]))
            timers[0].daemon = True
            timers[0].start()

    try:
        yield told
    finally:
        for timer in timers:
            timer.cancel()


def _leave(grace: float) -> None:
    """End the process: a client or a learner has not returned."""
    text = f"streamsvm: not ended within --grace {grace:g} s: the last checkpoint is kept\n"
    os.write(2, text.encode())
    os._exit(130)


@contextmanager
def stop_on_signals(told: Callable[[int], None] = lambda n: None) -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list instead of interrupting; a second one interrupts.

    `told` is called with their number, 1 or 2. What is ignored from the start stays so: SIGINT in a
    shell's background, as of nohup.
    """
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        told(1 + len(received))
        if received:
            raise KeyboardInterrupt
        received.append(number)

    taken = [s for s in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(s) != signal.SIG_IGN]
    before = {s: signal.signal(s, note) for s in taken}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
