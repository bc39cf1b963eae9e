"""`streamsvm compare`: which of two models is better on a file, or on a topic."""

import argparse
import os
from typing import Any, cast

from river import base

from connectors import Source
from streamsvm import Compare, TrackingMonitor, __version__
from streamsvm import save as save_model
from streamsvm.cli.candidates import WARM_UP, UntilKnown, candidate_from, check_candidate, rows_of
from streamsvm.cli.consume import EVENTS, LABELS, rows_of_topic
from streamsvm.cli.learners import add_learner_group
from streamsvm.cli.outputs import check_outputs
from streamsvm.cli.parser import Parser, add_table, path
from streamsvm.cli.replay import READING, TARGET, open_rows
from streamsvm.cli.report import counted, examples_in_words, print_report
from streamsvm.cli.running import LATE, OUTPUTS, late_labels_of, run_shown
from streamsvm.cli.sources import FILES, PACE, add_data_options, paced
from streamsvm.cli.topics import TOPIC, check_file_or_topic
from streamsvm.confidence.comparison import decision_in_words
from streamsvm.errors import ParameterError
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.figures import title_of
from streamsvm.monitor.watched import Model, Reported
from streamsvm.run.report import RunReport
from streamsvm.support.printing import printable

_CANDIDATE: dict[str, Any] = {
    "--against --candidate LEARNER": dict(
        required=True,
        help="the other model, b: a learner with its options as one text, such as 'lasvm --C 10', "
        "or a file written by --save",
    ),
    "--frozen": dict(
        action="store_true", help="a is used as it is, and learns nothing: with --model"
    ),
    "--frozen-b": dict(action="store_true", help="so is b, which is a file written by --save"),
    "--level P": dict(
        type=float,
        default=0.95,
        help="the probability that all that is said holds, at all moments at once; default .95",
    ),
    "--stop": dict(action="store_true", help="read no further when it is known which is better"),
} | WARM_UP
_TOPIC = {
    **TOPIC,
    **{name: EVENTS[name] for name in ("--message-key NAME", "--headers NAMES", "--key FIELD")},
    "--labels-topic TOPIC": LABELS["--labels-topic TOPIC"],
}
_SHOWN = ("--json", "--quiet", "--on-error", "--max-errors N", "--dead-letters FILE")
_ABSENT: dict[str, Any] = {
    **dict.fromkeys(("metrics_port", "page", "checkpoint", "report", "test", "truth", "shadow")),
    **dict.fromkeys(("monitor", "page_wait", "page_values"), False),
    "epochs": 1,
    "late_files": "refuse",
    "tombstones": None,
}
"""What other commands have options for."""


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Replay a file, or read a topic, through two models, a and b: each row is predicted by "
        "both, then learnt by both, or not. Says which errs less, or that this is not known yet, "
        "with an interval of the difference. All that is said, after whatever row one looks or "
        "stops, holds with the probability --level. Options of the learner are those of a."
    )
    parser.set_defaults(run=run, **_ABSENT)
    parser.add_argument("file", type=path, nargs="?", help=FILES + "; not with --topic")
    add_table(parser, TARGET)
    add_table(parser.add_argument_group("comparison"), _CANDIDATE)
    data = parser.add_argument_group("data")
    add_data_options(data, "column", "the shuffle buffer and the learners")
    add_table(data, {"--limit ROWS": READING["--limit ROWS"]} | PACE)
    add_table(parser.add_argument_group("a topic in place of a file"), _TOPIC)
    add_table(parser.add_argument_group("labels that come late"), LATE)
    add_learner_group(parser)
    saving = {"--save MODEL": "write the better one to this file; a, if that is not known"}
    shown = {name: OUTPUTS[name] for name in _SHOWN}
    add_table(parser.add_argument_group("output"), saving | shown)


def run(options: argparse.Namespace) -> int:
    """Replay, report, save; return the exit code."""
    if options.frozen and options.model is None:
        raise ParameterError("--frozen: a new learner has to learn; give --model, or leave it out")
    if options.frozen_b and not os.path.isfile(options.against):
        raise ParameterError("--frozen-b: a new learner has to learn; name a file by --against")
    check_file_or_topic(options)
    if options.topic is None:
        source, _ = open_rows(options)
    else:
        check_outputs(options)
        source, options.grace = rows_of_topic(options), 10.0
        options.file = source.name
    by_key = options.labels_topic is not None
    models: list[Compare] = []

    def compared(model: Model) -> Compare:
        options.candidate, other = candidate_from(options, options.against, "--against")
        check_candidate("compare", model)
        frozen = {"a": options.frozen, "b": options.frozen_b}
        learns = tuple(name for name, is_frozen in frozen.items() if not is_frozen)
        own = cast(base.Estimator, model)
        models.append(Compare(own, other, options.level, learns, warm_up=options.warm_up))
        return models[0]

    def opened(stop: list[int]) -> Source:
        found = paced(source, options, stop)
        if not options.stop:
            return found
        return UntilKnown(found, lambda: bool(models[0].comparison.first))

    with source:
        return run_shown(
            options,
            f"compare on {source.name}",
            source.n_rows if options.limit is None else options.limit,
            opened,
            late=late_labels_of(options, by_key),
            around=compared,
            end=_conclude,
        )


def _conclude(
    options: argparse.Namespace,
    model: Compare,
    learner: Reported,
    monitor: TrackingMonitor | None,
    report: RunReport,
    test: Source | None = None,
) -> int:
    """Print the report, and save the better model; return the exit code."""
    found, named = report.comparison, {}
    better = model.b if found["decision"] == "b" else model.a
    if options.save is not None:
        save_model(better, options.save)
    result = {"version": __version__, "data": options.file, "target": options.target}
    rows = [("examples", examples_in_words(report))]
    for name, command, one in (("a", options.learner, model.a), ("b", options.candidate, model.b)):
        last = steps_of(one)[-1]
        accuracy = None if found[f"loss_{name}"] is None else 1.0 - found[f"loss_{name}"]
        named[name] = {"learner": command, "parameters": last.description, "accuracy": accuracy}
        is_frozen = ", which learnt nothing" if name not in model.learns else ""
        right = "" if accuracy is None else f": {accuracy:.2%} right"
        rows.append((name, f"{command}, {last.description}{is_frozen}{right}"))
    rows.append(("decision", decision_in_words(found)))
    said = rows_of(found, options.level)
    rows += [(name, text) for name, text in said.items() if name != "candidate, b"]
    rows += [(title_of("bad_events"), text)] if (text := counted(report.bad)) else []
    rows += [("late labels", text)] if (text := counted(report.late, "_")) else []
    if options.save is not None:
        rows.append(("saved", f"{'b' if better is model.b else 'a'} as {options.save}"))
    if report.interrupted:
        rows.append(("interrupted", "the report is of the examples up to there"))
    if report.error is not None:
        rows.append(("ended by an error", printable(report.error)))
    further = {"rows": report.rows, "bad": report.bad, "late": report.late}
    further |= {"interrupted": report.interrupted, "error": report.error}
    print_report(options, result | further | found | named, rows)
    return 130 if report.interrupted else 0
