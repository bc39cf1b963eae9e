"""`streamsvm label`: label the tokens of sentences of a file, which are learnt as they come."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from connectors import ConllSource, SentenceSource
from streamsvm import TrackingMonitor
from streamsvm.cli.outputs import check_distinct, check_ending, check_file
from streamsvm.cli.parser import Parser
from streamsvm.cli.running import nothing_left, say_waiting, stop_on_signals
from streamsvm.cli.screen import Screen
from streamsvm.cli.values import path, positive, whole
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.sequence.sequence_learner import SequenceLearner
from streamsvm.learners.larank_sequence import LaRankSequenceLabeler
from streamsvm.learners.sequence_pa import SequencePA
from streamsvm.learners.sequence_perceptron import SequencePerceptron
from streamsvm.model_files.container import load, save, steps_of
from streamsvm.model_files.replacing import naming, replacement
from streamsvm.preprocessing.chain import Chain
from streamsvm.run.bad_events import BadEvents, OnError
from streamsvm.run.sequence_run import SequenceRun

LEARNERS: dict[str, type] = {
    "larank": LaRankSequenceLabeler,
    "pa": SequencePA,
    "perceptron": SequencePerceptron,
}

_PARAMETERS = ("inference", "order", "C", "window", "max_support_patterns", "max_features",
               "max_classes", "seed")  # fmt: skip
_FOLLOWED = ("dual", "gap", "averaged_gap", "certificate", "kappa")
_FORMATS = {"seconds": ".3f", **dict.fromkeys(_FOLLOWED, ".4g")}


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Label each token of each sentence of a file. With labels in the file, each sentence is "
        "predicted, scored, then learnt; without, it is predicted by the model of --model."
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "file",
        type=path,
        help="Parquet file, a sentence a row (.parquet); or text, a token a line, with a blank "
        "line between sentences",
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--tokens",
        metavar="A,B,...",
        help="columns of a Parquet file with lists of strings, a string a token; in templates use "
        "their names, or 0 for the first. The model keeps the names, and with --model refuses "
        "them in another order",
    )
    data.add_argument(
        "--labels",
        metavar="COLUMN",
        help="column with the lists of labels; of a text file its number from 0, or -1, the last. "
        "Not given: there are no labels",
    )
    data.add_argument("--limit", type=whole(1), metavar="N", help="read only so many sentences")
    add_learner_options(parser.add_argument_group("learner"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "-o", "--output", type=path, metavar="OUT.parquet", help="write the predicted labels"
    )
    add_output_options(output)


def add_learner_options(learner: argparse._ArgumentGroup) -> None:
    """Add the options of features and learner, or of the model to go on with."""
    learner.add_argument("--model", type=path, help="file written by --save: go on with it")
    learner.add_argument(
        "--features",
        type=path,
        metavar="TEMPLATE",
        help="file of templates in the format of CRF++; default: a window of two tokens, and pairs",
    )
    learner.add_argument("--learner", choices=tuple(LEARNERS), help="default larank")
    learner.add_argument("--inference", choices=("greedy", "exact"), help="default greedy")
    learner.add_argument("--order", type=whole(0), help="labels before a token that count")
    learner.add_argument("--C", type=positive, help="cost of a wrong label; default .1")
    learner.add_argument(
        "--window",
        type=whole(1),
        metavar="N",
        help="of larank: keep patterns of the last so many examples, which are tokens with greedy "
        "inference, and sentences with exact inference; default: patterns of any age",
    )
    learner.add_argument(
        "--max-support-patterns",
        type=whole(2),
        metavar="N",
        help="of larank: keep so many patterns; default: no limit, memory grows with the stream",
    )
    learner.add_argument(
        "--max-features",
        type=whole(1),
        metavar="N",
        help="different features to learn, of which each takes memory; default 8388608",
    )
    learner.add_argument(
        "--max-classes", type=whole(2), metavar="N", help="different labels; default 1000"
    )
    learner.add_argument("--seed", type=whole(0), help="of the draws of larank; default 0")


def add_output_options(output: argparse._ArgumentGroup) -> None:
    """Add the options for model, report, checkpoints and sentences that cannot be used."""
    output.add_argument("--save", type=path, metavar="MODEL", help="write the model at the end")
    output.add_argument(
        "--monitor", action="store_true", help="report the duality gap and its certificate"
    )
    output.add_argument(
        "--checkpoint",
        type=path,
        metavar="FILE",
        help="keep the state of the run there; if the file is there already, go on from it",
    )
    output.add_argument(
        "--checkpoint-every",
        type=whole(1),
        default=10_000,
        metavar="N",
        help="sentences between two checkpoints; default 10000",
    )
    output.add_argument(
        "--on-error",
        choices=("raise", "skip", "dead-letter"),
        default="dead-letter",
        help="sentences that cannot be used: stop, count, or keep in a file (default)",
    )
    output.add_argument(
        "--dead-letters",
        type=path,
        metavar="FILE",
        help="where they are kept; default dead_letters.jsonl, or with --checkpoint FILE "
        "FILE.dead_letters.jsonl",
    )
    output.add_argument("--json", action="store_true", help="the report as one line of JSON")


def run(options: argparse.Namespace, loaded: Any = None) -> int:
    """Predict, learn, report, save; return the exit code. `loaded` is what --model names."""
    if options.output is not None:
        check_file("--output", options.output)
        check_ending(options.output, (".csv", ".jsonl"))
    if options.labels is None and options.model is None:
        raise ParameterError("there is nothing to learn without --labels: name them, or --model")
    if options.checkpoint is not None and (options.output or options.labels is None):
        raise ParameterError("--checkpoint is of a run that learns, without --output")
    predicted: list[list[Any] | None] = []
    on_labels = predicted.append if options.output is not None else ignored
    columns = options.tokens if options.file.endswith(".parquet") else None
    code = run_sentences(options, _source, options.on_error, on_labels, columns, loaded)
    if options.output is not None and code:
        print(f"interrupted: {options.output} was not written", file=sys.stderr)
    elif options.output is not None:
        _write(options.output, predicted)
    return code


def run_sentences(
    options: argparse.Namespace,
    source_of: Callable[[argparse.Namespace], Any],
    on_error: OnError,
    on_labels: Callable[[list[Any] | None], None],
    columns: str | None,
    loaded: Any = None,
) -> int:
    """Run the sentences of a source, report and save; return the exit code.

    Parameters
    ----------
    options
        The parsed command line.
    source_of
        Returns the source that the options ask for.
    on_error
        What is done with sentences that cannot be used, as in `BadEvents`.
    on_labels
        As in `SequenceRun`.
    columns
        The names of the tokens' columns, as in `Chain`; None: the tokens say themselves.
    loaded
        The model that --model names, if it has been read.

    """
    check_distinct(options)
    if options.save is not None:
        check_file("--save", options.save)
    if options.tokens is not None and options.labels in options.tokens.split(","):
        raise ParameterError(f"--labels {options.labels}: the labels are among the --tokens")
    model = _model(options, columns, loaded)
    monitor = TrackingMonitor(model) if options.monitor else None
    with closing(source_of(options)) as source, stop_on_signals() as stop:
        sequences = SequenceRun(
            source,
            monitor or model,
            learn=options.labels is not None,
            limit=options.limit,
            bad_events=BadEvents(on_error, options.dead_letters, "half"),
            checkpoint=options.checkpoint,
            every=options.checkpoint_every,
            on_labels=on_labels,
            should_stop=lambda: bool(stop),
        )
        with Screen("sentences", None) as screen:
            say_waiting(screen, source)
            sequences.execute()
            if sequences.taken == sequences.resumed_after and not sequences.interrupted:
                screen.say(nothing_left(options.limit, sequences.taken))
    report = _report(model, sequences, monitor)
    if options.json:
        print(json.dumps(report))
    else:
        width = max(map(len, report))
        print("\n".join(f"{name:{width}}  {_shown(name, value)}" for name, value in report.items()))
    if options.save is not None:
        save(model, options.save)
    return 130 if sequences.interrupted else 0


def label_file(options: argparse.Namespace, loaded: Any) -> int:
    """Write the labels of the sentences of a file, for `streamsvm predict`.

    Parameters
    ----------
    options
        The parsed command line of `predict`.
    loaded
        The model that it names.

    Returns
    -------
    int
        The exit code.

    """
    words = [options.file, "--model", options.model, "--output", options.output]
    parser = Parser(prog="streamsvm predict")
    complete(parser)
    words += [] if options.tokens is None else ["--tokens", options.tokens]
    return run(parser.parse_args(words), loaded)


def ignored(labels: list[Any] | None) -> None:
    """Take labels that nobody asked for."""


def _model(options: argparse.Namespace, columns: str | None, loaded: Any) -> Any:
    """Return the pipeline that was saved, or a new one."""
    given = {name: getattr(options, name) for name in _PARAMETERS}
    given = {name: value for name, value in given.items() if value is not None}
    if options.model is not None:
        if given or options.learner or options.features:
            raise ParameterError("--model has its own features and parameters: leave out others")
        model = load(options.model) if loaded is None else loaded
        steps = steps_of(model)
        fits = len(steps) == 2 and isinstance(steps[0], Chain)
        if not fits or not isinstance(steps[1], SequenceLearner):
            raise ParameterError(f"{options.model} holds no model that `streamsvm label` saved")
        if columns is not None and steps[0].columns is not None:
            _check_columns(columns.split(","), steps[0].columns.split(","))
        return model
    learner = options.learner or "larank"
    cls = LEARNERS[learner]
    known = inspect.signature(cls).parameters
    for name in given:
        if name not in known:
            takers = [n for n, c in LEARNERS.items() if name in inspect.signature(c).parameters]
            raise ParameterError(
                f"--{name.replace('_', '-')}: {learner} does not take it; "
                f"it is for {', '.join(takers)}"
            )
    if cls is LaRankSequenceLabeler:
        given.setdefault("seed", 0)
    return Chain(_template(options.features), columns=columns) | cls(**given)


def _check_columns(given: list[str], learnt: list[str]) -> None:
    """Refuse columns of which one has another place, or another number of them, than learnt."""
    pairs = zip(given, learnt, strict=False)
    if len(given) != len(learnt) or any(a != b and a in learnt for a, b in pairs):
        raise ParameterError(
            f"--tokens {','.join(given)}: the model has learnt {','.join(learnt)}; name as many, "
            "in this order"
        )


def _template(file: str | None) -> str | None:
    """Return the text of a file of templates, if there is one."""
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParameterError(f"--features {file} is not UTF-8: save it as UTF-8") from error


def _source(options: argparse.Namespace) -> Any:
    """Return the source of the file's sentences."""
    if options.file.endswith(".parquet"):
        if options.tokens is None:
            raise ParameterError("--tokens: name the columns of the tokens")
        return SentenceSource(options.file, options.tokens.split(","), options.labels)
    if options.tokens is not None:
        raise ParameterError("--tokens is for Parquet files: of a text file, all columns are used")
    label = None
    if options.labels is not None:
        try:
            label = int(options.labels)
        except ValueError as error:
            raise ParameterError(
                f"--labels {options.labels}: of a text file, use the number of a column, or -1"
            ) from error
    return ConllSource(options.file, label)


def _report(model: Any, sequences: SequenceRun, monitor: TrackingMonitor | None) -> dict[str, Any]:
    learner, score, seconds = steps_of(model)[-1], sequences.score, sequences.seconds
    found: dict[str, Any] = {
        "sentences": score.n_sentences,
        "tokens": score.n_tokens,
        "seconds": seconds,
        "tokens a second": round(score.n_tokens / max(seconds, 1e-9)),
    }
    if sequences.learn:
        found["token accuracy"] = score.accuracy
        found["sentence accuracy"] = score.sentence_accuracy
        if score.n_true:
            found["chunk F1"] = score.f1
    found |= {"labels": len(learner.classes), "features": learner.n_features}
    if isinstance(learner, LaRankSequenceLabeler):
        found["support patterns"] = learner.n_support_patterns
    if monitor is not None:
        values = monitor.get()
        found |= {name: values[name] for name in _FOLLOWED if values[name] is not None}
    if sequences.bad.total:
        found["not usable"] = sequences.bad.total
        if sequences.bad.file is not None:
            found["dead letters"] = str(sequences.bad.file)
    return found


def _shown(name: str, value: Any) -> str:
    """Return a value of the report for people to read."""
    if isinstance(value, str):
        return value
    return format(value, _FORMATS.get(name, ".2%" if isinstance(value, float) else ","))


def _write(output: str, predicted: list[list[Any] | None]) -> None:
    """Write the predicted labels, a sentence a row; the file appears when it is complete."""
    texts = [row and [None if c is None else str(c) for c in row] for row in predicted]
    table = pa.table({"labels": pa.array(texts, pa.list_(pa.string()))})
    with naming(output), replacement(output) as file:
        pq.write_table(table, file)
    print(f"{len(predicted):,} sentences -> {output}", file=sys.stderr)
