"""`streamsvm replay`: replay a file as a stream through a learner."""

import argparse
import contextlib
from collections import Counter
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from connectors import Batch, MissingColumnError, SentenceSource, Source, TabularSource
from streamsvm.cli.candidates import SHADOW
from streamsvm.cli.evaluate import check_fit, say_misfit
from streamsvm.cli.learners import add_learner_group, model_of
from streamsvm.cli.outputs import check_outputs
from streamsvm.cli.parser import Parser, add_table, path, say, whole
from streamsvm.cli.predictions import features_of, label_kind_of, read_as
from streamsvm.cli.running import LATE, OUTPUTS, late_labels_of, run_shown
from streamsvm.cli.sentences import (
    columns_of,
    columns_of_records,
    of_sentences,
    open_records,
    open_sentences,
)
from streamsvm.cli.sources import FILES, PACE, add_data_options, columns_from, open_source, paced
from streamsvm.errors import ParameterError
from streamsvm.features.frames import labels_of
from streamsvm.labels.label_column import holds_lists
from streamsvm.run.parts import check_can_be_saved, check_is_classification

_ROWS_TO_CHOOSE_BY = 1000
_MOST_CLASSES_OF_LASVM = 50

TARGET: dict[str, Any] = {
    "--target COLUMN": dict(
        required=True,
        help="column of the label; of a text of sentences its number from 0, or -1, the last",
    )
}
READING: dict[str, Any] = {
    "--limit ROWS": "read only so many rows",
    "--epochs": dict(type=whole(1), default=1, help="readings of the file; default 1"),
    "--truth COLUMN": "compare predictions with this column, where it has a value, instead of the "
    "target, which may be bags of candidates; it is no feature",
    "--late-files": dict(
        choices=("refuse", "read"),
        default="refuse",
        help="with --checkpoint: files that came to the folder since, and sort before the last one "
        "that was read; default refuse. Those that sort after it are read in any case",
    ),
}
"""The options for what is read, and how often."""
_END: dict[str, Any] = {
    "--finish": dict(
        action="store_true", help="end at the optimum of a batch SVM, if there is one"
    ),
    "--test FILE": "report the error on this file at the end",
}


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Replay a file as a stream: each row is an example, which is predicted, scored, then "
        "learnt. Text columns become one-hot features. With a learner of label sequences, a row of "
        "lists is a sentence (Parquet), or the lines up to a blank one, a token each, are (text). "
        "ospas and concepts read the columns that --columns names as they are."
    )
    parser.set_defaults(run=run)
    parser.add_argument("file", type=path, help=FILES)
    add_table(parser, TARGET)
    data = parser.add_argument_group("data")
    add_data_options(data, "column", "the shuffle buffer and the learner")
    add_table(data, READING | PACE)
    add_table(parser.add_argument_group("labels that come late"), LATE)
    add_learner_group(parser)
    add_table(parser.add_argument_group("candidate"), SHADOW)
    add_table(parser.add_argument_group("output"), _END | OUTPUTS)


def _first_rows(source: TabularSource) -> Batch | None:
    """Return the first rows of a source, which are unread afterwards as before."""
    start = source.snapshot()
    first = next(source.batches(_ROWS_TO_CHOOSE_BY), None)
    source.resume(start)
    return first


def _look_at_target(options: argparse.Namespace, first: Batch | None) -> None:
    """Refuse a target that holds no classes; choose LaRank for very many, if nothing was asked for.

    LASVM's time grows with the number of pairs of classes.
    """
    if options.positive is not None or first is None:
        return
    if pa.types.is_nested(first.labels.type):
        if options.learner is options.model is None:
            options.learner = "ambiguous"
            _say(options, "learner: ambiguous, as the target has bags of candidates")
        return
    labels = labels_of(first.labels, len(first))
    check_is_classification(labels, Counter(), options.max_classes)
    if options.save is not None or options.checkpoint is not None:
        check_can_be_saved(labels)
    n_classes = len(labels.present())
    if n_classes > _MOST_CLASSES_OF_LASVM and options.learner is options.model is None:
        options.learner = "larank"
        found = f"{n_classes} classes in the first {len(first):,} examples"
        _say(options, f"learner: larank, as the target has {found}")


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        say(text)


def _kept(options: argparse.Namespace) -> list[str]:
    """Return the columns to keep: that of --truth."""
    return [] if options.truth is None else [options.truth]


def _check_truth(options: argparse.Namespace) -> None:
    """Refuse a column of --truth that is the target, or has no labels."""
    if options.truth == options.target:
        raise ParameterError(f"--truth {options.truth}: this is the target itself")
    wanted = columns_from(options) | {"keep": [options.truth]}
    with open_source(options.file, options.target, **wanted) as source:
        first = next(source.batches(1), None)
    if first is None or first.kept is None:
        return
    if holds_lists(kind := first.kept.column(0).type):
        raise ParameterError(
            f"--truth {options.truth}: a column of {kind}; predictions are compared with one label "
            "a row"
        )


def _test_of(options: argparse.Namespace, learnt: TabularSource) -> TabularSource:
    """Open the file of --test as what is learnt; refuse one whose columns are not those."""
    wanted = columns_from(options) | {"keep": _kept(options)}
    if learnt.label_kind in ("text", "number"):
        wanted["label_kind"] = learnt.label_kind
    while True:
        try:
            test = open_source(options.test, options.target, **wanted)
            break
        except MissingColumnError as error:
            # Errors are counted without weights, and need no truth beside a target.
            if error.role == "weight":
                wanted["weight"] = None
            elif error.role == "exclude":
                wanted["exclude"] = [name for name in wanted["exclude"] if name != error.column]
            elif error.role == "keep":
                wanted["keep"] = []
                _say(options, f"{options.test} has no `{options.truth}`: compared with the target")
            else:
                raise
    texts = {name for name, kind in learnt.kinds.items() if kind == "text"}
    numbers = {name for name, kind in learnt.kinds.items() if kind not in ("text", "null", None)}
    test = _opened_as(test, options.test, options.target, wanted, numbers, texts)
    if None not in {*learnt.kinds.values(), *test.kinds.values()}:
        check_fit(options.test, test.kinds, numbers, texts)
    return test


def _opened_as(
    source: TabularSource,
    path: str,
    target: str | None,
    wanted: dict[str, Any],
    numbers: Collection[str],
    texts: Collection[str],
) -> TabularSource:
    """Return a source that was opened so, with its columns as the numbers and texts that they are.

    That is what was learnt, by a model or from another file.
    """
    as_numbers, as_texts = read_as(source, numbers, texts)
    if not (as_numbers or as_texts):
        return source
    source.close()
    parsed = [*wanted["parse_numbers"], *as_numbers]
    return open_source(path, target, **wanted | {"parse_numbers": parsed, "as_text": as_texts})


def run(options: argparse.Namespace) -> int:
    """Replay, report, save; return the exit code."""
    is_of_sentences = of_sentences(options, model_of(options))
    with contextlib.ExitStack() as stack:
        source, test = _sentences(options, stack) if is_of_sentences else open_rows(options)
        stack.callback(source.close)
        of_an_epoch = [n for n in (source.n_rows, options.limit) if n is not None]
        return run_shown(
            options,
            f"replay {source.name}",
            min(of_an_epoch) * options.epochs if of_an_epoch else None,
            lambda stop: paced(source, options, stop),
            test,
            epochs=options.epochs,
            late=None if is_of_sentences else late_labels_of(options),
            finish=options.finish,
            truth=options.truth,
        )


def open_rows(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the source of rows, and the one of the test; say how they are read."""
    if options.truth is not None:
        _check_truth(options)
    wanted = columns_from(options) | {
        "timestamp": options.timestamp,
        "keep": _kept(options),
        "shuffle_buffer": options.shuffle_buffer,
        "seed": options.seed,
        "late_files": options.late_files,
    }
    if (model := model_of(options)) is not None and options.positive is None:
        wanted["label_kind"] = label_kind_of(model)
    if options.parse_numbers is True:
        with open_source(options.file, options.target, **wanted | {"parse_numbers": ()}) as source:
            _first_rows(source)
        options.parse_numbers = wanted["parse_numbers"] = source.number_texts.names
    source = open_source(options.file, options.target, **wanted)
    if model is not None:
        known = features_of(model, source.kinds)
        source = _opened_as(source, options.file, options.target, wanted, *known)
        learnt = set[str]().union(*known)
        # Features of list columns are not named after their columns.
        if learnt and None not in source.kinds.values() and not options.quiet:
            asked_for = learnt & set(wanted["columns"] or learnt) - set(wanted["exclude"])
            say_misfit(options.file, source.kinds, asked_for)
    if options.speed is not None and options.timestamp is None:
        raise ParameterError("--speed needs --timestamp COLUMN")
    # Opened now, so that a bad path fails before hours of work, not after.
    test = _test_of(options, source) if options.test else None
    check_outputs(options)
    _look_at_target(options, _first_rows(source))
    for finding in source.number_texts.findings:
        _say(options, finding)
    if options.parse_numbers:
        _say(options, f"texts learnt as numbers: {', '.join(options.parse_numbers)}")
    if times := ", ".join(name for name, kind in source.kinds.items() if kind == "time"):
        how = "(--exclude leaves columns out)"
        _say(options, f"learnt as numbers, the seconds since 1970: {times} {how}")
    return source, test


def _sentences(
    options: argparse.Namespace, stack: contextlib.ExitStack
) -> tuple[Source, Source | None]:
    """Return the source of sentences, and the one of the test."""
    model, truth = model_of(options), options.truth
    reading: dict[str, Any] = {"shuffle_buffer": options.shuffle_buffer, "seed": options.seed}
    reading["late_files"] = options.late_files
    records, columns = columns_of_records(options, model), None
    if records is None:
        if truth is not None:
            raise ParameterError("--truth: not with label sequences")
        columns = columns_of(options, model)

    def opened(path: str, is_test: bool, **reading: Any) -> Source:
        if records is None:
            return stack.enter_context(open_sentences(path, options.target, columns, **reading))
        found = open_records(path, records, options.target, truth, is_test, **reading)
        return stack.enter_context(found)

    source = opened(options.file, False, **reading)
    if isinstance(source, SentenceSource):
        columns = source.tokens
        options.columns = ",".join(columns)
    test = None if options.test is None else opened(options.test, True)
    check_outputs(options)
    return source, test
