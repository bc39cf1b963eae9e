"""`streamsvm replay`: a file as a stream through a learner."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from connectors import Source
from streamsvm import TrackingMonitor, __version__
from streamsvm import save as save_model
from streamsvm.bad_events import BadEvents
from streamsvm.checkpoint import Checkpoint
from streamsvm.cli import evaluate, history
from streamsvm.cli.learners import add_learner_options, model_from
from streamsvm.cli.screen import Screen, report_table
from streamsvm.cli.sources import add_pace_options, open_source, paced
from streamsvm.errors import ParameterError, UnwritableModelFileError
from streamsvm.run_report import RunReport
from streamsvm.runner import Run


def add_parser(subcommands: Any) -> None:
    """Add the subcommand's arguments."""
    parser = subcommands.add_parser(
        "replay",
        help="replay a Parquet or Arrow file as a stream through a learner, and report",
        description="Replay a Parquet file, a folder of them, or an Arrow file as a stream: each "
        "row is predicted, scored, then learnt. Text columns become one-hot features.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("file", help="Parquet file or folder, or .arrow/.feather file")
    parser.add_argument("--target", required=True, metavar="COLUMN", help="column of the label")
    data = parser.add_argument_group("data")
    data.add_argument("--columns", metavar="A,B,...", help="features; default: all other columns")
    data.add_argument("--positive", metavar="LABEL", help="learn this label against all others")
    data.add_argument("--limit", type=int, metavar="ROWS", help="read only so many rows")
    data.add_argument("--epochs", type=int, default=1, help="readings of the file; default 1")
    add_pace_options(data)
    data.add_argument("--seed", type=int, default=0, help="of the shuffle buffer; default 0")
    add_learner_options(parser.add_argument_group("learner"))
    output = parser.add_argument_group("output")
    output.add_argument("--finish", action="store_true", help="end at the optimum (delta <= tau)")
    output.add_argument("--test", metavar="FILE", help="report the error on this file at the end")
    output.add_argument("--save", metavar="MODEL", help="write the model to this file")
    output.add_argument("--report", metavar="DIR", help="write report, history and plots there")
    output.add_argument(
        "--monitor",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="measure the duality gap, and show the certificate where there is one; default on",
    )
    output.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve the monitor's figures to Prometheus on this port (0: a free one)",
    )
    output.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="keep the state of the run there; if the file is there already, go on from it",
    )
    output.add_argument(
        "--checkpoint-every",
        type=int,
        default=10_000,
        metavar="ROWS",
        help="rows between two checkpoints; default 10000",
    )
    output.add_argument("--json", action="store_true", help="print the report as JSON")
    output.add_argument("--quiet", action="store_true", help="show no progress")
    output.add_argument(
        "--on-error",
        choices=("raise", "skip", "dead-letter"),
        default="dead-letter",
        help="rows that cannot be used: stop, count, or keep in a file (default)",
    )
    output.add_argument(
        "--dead-letters",
        metavar="FILE",
        default="dead_letters.jsonl",
        help="where they are kept; default dead_letters.jsonl, made when there are any",
    )


def run(options: argparse.Namespace) -> int:
    """Replay, report, save; return the exit code."""
    learner, model = model_from(options)
    watched = options.monitor or options.metrics_port is not None
    monitor = TrackingMonitor(model) if watched else None
    columns = options.columns.split(",") if options.columns else None
    source = open_source(
        options.file,
        options.target,
        columns=columns,
        timestamp=options.timestamp,
        shuffle_buffer=options.shuffle_buffer,
        seed=options.seed,
    )
    if options.speed is not None and options.timestamp is None:
        raise ParameterError("--speed needs --timestamp COLUMN")
    # What would only fail at the end fails now, before hours of work.
    test = open_source(options.test, options.target, columns=columns) if options.test else None
    for path in filter(None, (options.save, options.report, options.checkpoint)):
        if not Path(path).absolute().parent.is_dir():
            raise FileNotFoundError(f"the folder of {path} does not exist: make it first")

    bad = BadEvents(options.on_error, options.dead_letters)
    total = None if source.n_rows is None else source.n_rows * options.epochs
    if options.limit is not None:
        total = (
            options.limit * options.epochs
            if total is None
            else min(total, options.limit * options.epochs)
        )
    screen = Screen(f"replay {source.name}", total, quiet=options.quiet)
    with ExitStack() as stack:
        stack.enter_context(screen)
        stop = stack.enter_context(_stop_on_signals())
        if monitor is not None and options.metrics_port is not None:
            server = stack.enter_context(closing(monitor.serve(options.metrics_port)))
            screen.say(f"metrics: http://127.0.0.1:{server.port}/metrics")
        report = Run(
            paced(source, options, stop),
            monitor or model,
            epochs=options.epochs,
            limit=options.limit,
            positive=options.positive,
            bad_events=bad,
            finish=options.finish,
            on_progress=screen.show,
            should_stop=lambda: bool(stop),
            checkpoint=(
                Checkpoint(options.checkpoint, options.checkpoint_every)
                if options.checkpoint
                else None
            ),
        ).execute()
    return _conclude(options, model, learner, monitor, report, test, bad)


def _conclude(
    options: argparse.Namespace,
    model: Any,
    learner: Any,
    monitor: TrackingMonitor | None,
    report: RunReport,
    test: Source | None,
    bad: BadEvents,
) -> int:
    """Save, test and print what a run gave."""
    extra: dict[str, Any] = {"learner": f"{options.learner}, {learner.kernel_!r}, C={learner.C:g}"}
    if report.interrupted:
        extra["interrupted"] = "the report is of the rows up to there"
    unsaved: UnwritableModelFileError | None = None
    if options.save:
        try:
            save_model(model, options.save)
            extra["saved"] = options.save
        except UnwritableModelFileError as error:
            # The report is worth having all the same.
            unsaved = error
    result: dict[str, Any] = {"version": __version__, **report.as_dict()}
    result |= {"learner": options.learner, "kernel": repr(learner.kernel_), "C": learner.C}
    if test is not None and not report.interrupted:
        wrong, n = evaluate.test_error(model, test, options.positive)
        extra["test error"] = f"{wrong:.2%} of {n:,} rows of {options.test}"
        result |= {"test_error": wrong, "test_rows": n}
    if bad.total and options.on_error == "dead-letter":
        extra["dead letters"] = options.dead_letters
    if options.report:
        extra["written"] = ", ".join(history.write(options.report, report, result, monitor))
    if options.json:
        print(json.dumps(result))
    else:
        # Off a terminal nothing is wrapped: one line a figure, for logs and scripts.
        console = Console(file=sys.stdout)
        if not console.is_terminal:
            console.width = 1000
        console.print(report_table(report, extra))
    if unsaved is not None:
        raise unsaved
    return 130 if report.interrupted else 0


@contextmanager
def _stop_on_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list; a second one interrupts at once."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
