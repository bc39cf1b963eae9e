"""The report of a run: what it says, on the screen, as JSON and in files."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from connectors import Source
from streamsvm import TrackingMonitor, __version__
from streamsvm import save as save_model
from streamsvm.cli import evaluate, history
from streamsvm.cli.candidates import in_use, rows_of
from streamsvm.cli.evaluate import in_percent
from streamsvm.cli.gap_rows import gap_rows
from streamsvm.cli.outputs import error_text
from streamsvm.cli.parser import say
from streamsvm.cli.sentences import said_of_meanings
from streamsvm.labels.counted_sets import sets_in_words
from streamsvm.monitor.figures import WORRY, title_of
from streamsvm.monitor.record import cache_hits
from streamsvm.monitor.watched import Model, Reported
from streamsvm.run.advice import advice_of
from streamsvm.run.report import RunReport, largest
from streamsvm.selection.answering import answers_in_words
from streamsvm.support.printing import printable

_MENTIONED = 1.0
"""The report mentions compiling that took longer than this, in seconds."""

_MOST_CLASSES = 8
"""Of more classes, only the worst are named."""


def conclude(
    options: argparse.Namespace,
    model: Model,
    learner: Reported,
    monitor: TrackingMonitor | None,
    report: RunReport,
    test: Source | None = None,
) -> int:
    """Save the model, measure the test error, and print the report; return the exit code.

    Whatever fails here, even an interruption, is raised after the report was printed.
    """
    model, learner = in_use(options, model, learner)
    failures: list[BaseException] = []
    # What a trial has chosen has a line of its own.
    described = learner.description if report.chosen is None else repr(learner)
    extra: dict[str, Any] = {"learner": f"{options.learner}, {described}"}
    if (n_patterns := learner.n_support_patterns) is not None:
        extra["support patterns"] = f"{n_patterns:,}  (examples kept)"
    extra |= rows_of(report.comparison)
    if report.comparison and report.monitor and report.comparison["record"] is None:
        extra["gap, certificate"] = "of the candidate, which the monitor watches"
    if report.interrupted:
        extra["interrupted"] = "the report is of the examples up to there"
    if report.error is not None:
        extra["ended by an error"] = printable(report.error)
    if options.save is not None:
        with _kept_back(failures):
            save_model(model, options.save)
            extra["saved"] = options.save
    result = _result(options, learner, report)
    if test is not None and not report.interrupted:
        with _kept_back(failures):
            extra["test error"], tested = evaluate.test_result(model, test, options)
            result |= tested
    if report.resumed is not None:
        extra["resumed"] = report.resumed
    if report.dead_letters is not None:
        extra["dead letters"] = report.dead_letters
    rows = report_rows(report, extra)
    if options.report is not None:
        with _kept_back(failures):
            files = history.write(options.report, report, result, monitor, rows)
            rows.append(("written", ", ".join(files)))
    print_report(options, result, rows + [("advice", sentence) for sentence in result["advice"]])
    for error in failures[1:]:
        say(f"streamsvm: {error_text(error)}")
    if failures:
        raise failures[0]
    return 130 if report.interrupted else 0


@contextmanager
def _kept_back(failures: list[BaseException]) -> Iterator[None]:
    """Keep an error in a list: the report of hours of work is printed first."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        failures.append(error)


def _result(options: argparse.Namespace, learner: Reported, report: RunReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    data = options.file if hasattr(options, "file") else ", ".join(options.topic)
    result: dict[str, Any] = {"version": __version__, "data": data, "target": options.target}
    result |= report.as_dict()
    result |= {"learner": options.learner, "parameters": learner.description}
    if hasattr(learner, "kernel_"):
        of_kernel: Any = learner
        C = of_kernel.C_ if hasattr(learner, "C_") else of_kernel.C
        result |= {"kernel": repr(of_kernel.kernel_), "C": C}
    return result | {"advice": advice_of(report, learner)}


def print_report(
    options: argparse.Namespace, result: dict[str, Any], rows: list[tuple[str, str]]
) -> None:
    """Print the report as the options ask for."""
    if options.json:
        print(json.dumps(result))
        return
    rows = [(printable(name), printable(value)) for name, value in rows]
    # Without a terminal (logs, scripts) no line is wrapped.
    console = Console(file=sys.stdout)
    if console.is_terminal:
        settings: dict[str, Any] = {"title_justify": "left", "box": None, "padding": (0, 2)}
        table = Table(title="Report", show_header=False, **settings)
        for name, value in rows:
            table.add_row(name, escape(value))
        console.print(table)
        return
    width = max(len(name) for name, _ in rows)
    print("Report")
    for name, value in rows:
        print(f"  {name:{width}}  {value}")


def report_rows(report: RunReport, extra: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name and value of each figure of the final report, and of `extra`."""
    rows: list[tuple[str, str | None]] = [
        ("examples", examples_in_words(report)),
        *(_meanings(report.meanings) if report.meanings else _accuracies(report)),
        ("tokens", _tokens(report)),
        ("coverage", sets_in_words(report.coverage)),
        ("answered", answers_in_words(report.answers)),
        ("chunk F1", None if report.chunk_f1 is None else f"{report.chunk_f1:.2%}"),
        ("scale, gamma, C", report.chosen),
        ("selection", report.selection),
        ("n_drifts", report.drifts),
        ("learnt", _learnt(report)),
        ("n_support_vectors", _number(report.n_support_vectors)),
        ("memory_bytes", _memory(report)),
        ("cache_hits", _cached(report)),
        (
            "threads",
            f"{report.n_threads}  (for kernel values of batches)" if report.n_threads > 1 else None,
        ),
        *gap_rows(report.monitor),
        ("optimum", _optimum(report)),
        (
            "finishing",
            f"{report.finish_seconds:.2f} s, without compiling" if report.finished else None,
        ),
        ("late labels", counted(report.late, "_")),
        ("forgotten", counted(report.forgotten, "_")),
        ("missing values", _missing(report)),
        ("clipped values", _clipped(report.clipped)),
    ]
    for count, (name, text) in _OF_SOURCE.items():
        if n := report.source.get(count, 0):
            rows.append((name, text.format(n)))
    rows.append(("bad_events", counted(report.bad)))
    found = [(title_of(name), text) for name, text in rows if text is not None]
    return found + [(name, str(value)) for name, value in extra.items()]


_OF_SOURCE = {
    "jumped": ("offsets_left_out", "{:,}  (no messages there: deleted by the broker, or marks of "
               "transactions)"),
    "lag": ("lag", "{:,} messages that are there and were not read"),
    "failed_commits": ("failed_commits", "{:,}  (the broker did not answer; the next one includes "
                       "them, and a checkpoint has the offsets)"),
    "passed_over": ("passed over", "{:,} messages  (older than the checkpoint; if the topic was "
                    "made anew, use another checkpoint)"),
    "new_fields": ("ignored fields", "in {:,} rows: not in the first 10,000 of the file"),
}  # fmt: skip
"""By the source's own name of a count: the figure, or the name of the row, and the text."""


def _learnt(report: RunReport) -> str | None:
    """Return what a learner of whole sentences has met, and its steps."""
    names = {"n_symbols": "symbols", "n_concepts": "concepts", "n_relations": "relations"}
    names |= {"n_features": "features", "n_updates": "steps", "n_steps": "steps"}
    if not {"n_symbols", "n_concepts"} & report.counters.keys():
        return None
    found = {name: report.counters.get(name) for name in names}
    said = ", ".join(f"{n:,} {names[name]}" for name, n in found.items() if n is not None)
    return said if report.dual is None else f"{said}; dual objective {report.dual:.4g}"


def _number(n: int | None) -> str | None:
    return None if n is None else f"{n:,}"


def counted(counts: dict[str, int], joint: str = " ") -> str | None:
    """Return counts by name in words; None: there are none. `joint` is between words of a name."""
    return ", ".join(f"{n:,} {name.replace(joint, ' ')}" for name, n in counts.items()) or None


def _classes(report: RunReport) -> str:
    """Return the number of examples of each class, and the share predicted right."""
    counts, recall = report.labels, report.recall
    said = {y: f", {recall[y]:.1%} right" if y in recall else "" for y in counts}
    for y, ends in report.recall_intervals.items():
        said[y] += f": {in_percent(*ends)}"
    if len(counts) <= _MOST_CLASSES:
        return ", ".join(f"{y} ({n:,}{said[y]})" for y, n in counts.items())
    worst = sorted(recall, key=lambda y: recall[y])[:3]
    listed = ", ".join(f"{y} ({counts[y]:,}{said[y]})" for y in worst)
    return f"{len(counts)} of {min(counts.values()):,} to {max(counts.values()):,}; worst: {listed}"


def _accuracies(report: RunReport) -> list[tuple[str, str | None]]:
    """Return the rows of classes."""
    balanced, accuracy = report.balanced_accuracy, f"{report.accuracy:.2%}  ({_scored(report)})"
    if report.learnt and not (report.scored or report.accuracy):
        accuracy, balanced = "none  (nothing was predicted before a first label came)", None
    return [
        ("classes", _classes(report) if report.labels else None),
        ("labels", _asked(report)),
        ("accuracy", accuracy),
        ("of late", _of_late(report)),
        (
            "balanced_accuracy",
            None if balanced is None else f"{balanced:.2%}  ({_balanced(report)})",
        ),
    ]


def _meanings(found: dict[str, float]) -> list[tuple[str, str | None]]:
    """Return the rows of sentences whose meanings are predicted."""
    said = found["predicted"] / max(1, found["sentences"])
    among = found.get("among_candidates")
    of_bags = "" if among is None else f"; {among:.2%} of them are among the candidates"
    rows: list[tuple[str, str | None]] = [
        ("words", f"{found['words']:,} of {found['sentences']:,} sentences"),
        (
            "meanings",
            f"{found['predicted']:,} predicted ({said:.1%}), each before its sentence was learnt"
            f"{of_bags}",
        ),
    ]
    return rows + ([("right meanings", said_of_meanings(found))] if found.get("true") else [])


def _asked(report: RunReport) -> str | None:
    """Return how many labels were asked for, if only some were."""
    if not report.asked:
        return None
    events, asked, answered = (report.asked[name] for name in ("events", "asked", "answered"))
    given_up = report.late.get("never_came", 0)
    late = f", {given_up:,} given up" if given_up else ""
    share = f"{asked / max(events, 1):.1%}"
    return f"{asked:,} asked for ({share} of {events:,} examples), {answered:,} learnt{late}"


def _scored(report: RunReport) -> str:
    """Return the interval of the accuracy, and what examples it is of."""
    how = "predicted before learnt"
    if report.in_bags:
        how = "share in the bag, as the true labels are not known; predicted before learnt"
    if report.scores_answers:
        how = "of the examples whose labels came, which are the least certain ones"
    if report.accuracy_low is None or report.accuracy_high is None:
        return how
    interval = in_percent(report.accuracy_low, report.accuracy_high)
    return f"{interval} at all moments, 95%; {how}"


def _balanced(report: RunReport) -> str:
    """Return the interval of the balanced accuracy, and what it is."""
    low, high = report.balanced_accuracy_low, report.balanced_accuracy_high
    ends = "" if low is None or high is None else f"{in_percent(low, high)}; "
    return f"{ends}mean over the classes"


def _of_late(report: RunReport) -> str | None:
    """Say what is lower or higher of late than since the start, if something is for sure."""
    late = report.of_late
    if not late or not late["changed"]:
        return None
    changed = sorted(late["changed"].items(), key=lambda item: item[1])
    listed = [
        f"{name} {'lower' if sign < 0 else 'higher'} ({in_percent(*late['intervals'][name])})"
        for name, sign in changed[:_MOST_CLASSES]
    ]
    return f"of the last {late['n']:,}: {', '.join(listed)} than since the start"


def _optimum(report: RunReport) -> str | None:
    """Say whether the model is at the optimum of the examples kept, and what to do if not."""
    delta, tau = report.delta, report.tau
    if delta is None or tau is None:
        return None
    if delta > tau:
        hint = "--finish, or model.finish(), goes there"
        return f"not reached on the examples kept: {hint}  (delta {delta:.3g}, tau {tau:g})"
    # With very large weights or C a small delta may leave a large gap.
    gap, kept, share = map(report.monitor.get, ("gap", "gap_kept", "gap_share"))
    if gap and kept and share and share * kept / gap > WORRY:
        hint = "a smaller tau, or smaller weights or C, leave less gap"
        return f"up to tau on the examples kept: {hint}  (delta {delta:.3g}, at most {tau:g})"
    return f"reached on the examples kept  (delta {delta:.3g}, at most tau, {tau:g})"


def _tokens(report: RunReport) -> str | None:
    """Return the number of tokens of sentences, and how many sentences were right."""
    if report.tokens is None:
        return None
    text = f"{report.tokens:,}; {report.sentence_accuracy:.2%} of sentences are right as a whole"
    low, high = report.sentence_accuracy_low, report.sentence_accuracy_high
    return text if low is None or high is None else f"{text}, {in_percent(low, high)} (95%)"


def examples_in_words(report: RunReport) -> str:
    """Return the number of examples, and examples a second without compiling and waiting."""
    text = f"{report.rows:,} in {report.own_seconds:.2f} s: {report.rows_per_second:,.0f} a second"
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
        n = report.rows if name in report.missing_texts else report.missing_of
        return counts[name] / max(1, n)

    shown = ", ".join(f"{name} {counts[name]:,} ({share(name):.1%})" for name in most[:5])
    text = f"{sum(counts.values()):,}: {shown}{', ...' if most[5:] else ''}"
    if report.missing_of < report.model_examples and set(counts) - set(report.missing_texts):
        text += (
            f" of the first {report.missing_of:,}; then rows became sparse, of which 0 is missing"
        )
    return f"{text}; and all of {empty}" if empty else text


def _clipped(counts: dict[str, int]) -> str | None:
    """Return how many values were beyond the scaler's limit, and of which features."""
    if not counts:
        return None
    return f"{sum(counts.values()):,} far from the mean: {largest(counts, 3)}"


def _cached(report: RunReport) -> str | None:
    """Say how many kernel rows were in the cache (if too few, the advice says what to do)."""
    share, limit = cache_hits(report.counters), report.cache_limit
    if share is None:
        return None
    room = "" if limit is None else f"; room for {limit / 1e6:,.0f} MB"
    return f"{share:.1%} of the kernel rows that were needed were there{room}"
