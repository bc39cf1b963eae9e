"""`streamsvm predict`: predict a file or a topic with a saved model, or evaluate it on them."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from connectors import Source
from streamsvm.cli.evaluate import Errors, error_in_words, margins, why_none
from streamsvm.cli.outputs import check_distinct, check_ending, check_file, write_tables
from streamsvm.cli.parser import Parser, add_table, path, say, whole
from streamsvm.cli.predictions import check_keep, learner_of, open_rows, tables_of_rows
from streamsvm.cli.scoring import folders, topic
from streamsvm.cli.sentences import (
    columns_of,
    columns_of_records,
    new_score,
    of_sentences,
    open_records,
    open_sentences,
    score_text,
    tables_of,
    test_score,
)
from streamsvm.cli.sources import FILES, PARSE_NUMBERS, open_source
from streamsvm.errors import LabelError, ParameterError
from streamsvm.model_files.container import load
from streamsvm.monitor.watched import Model
from streamsvm.support.printing import printable

_OPTIONS: dict[str, Any] = {
    "-o --output OUT": "a file that ends in .parquet, .csv or .jsonl, or, of a folder, a folder; "
    "needed without --target",
    "--jobs N": dict(
        type=whole(1), help="processes that score the files of a folder into a folder; default 1"
    ),
    "--target COLUMN": "column of the true label: print the share of wrong predictions",
    "--positive LABEL": "of a model that learnt this label against all others",
    "--columns A,B,...": "features; default: all columns that the model knows; of one that keeps "
    "no list, such as of hashed or random features, all of the file",
    **PARSE_NUMBERS,
    "--keep A,B,...": "columns that the output has, too, such as a key",
    "--probabilities": dict(
        action="store_true",
        help="write the probability of each label: columns named 'probability of LABEL'",
    ),
    "--allow-mismatch": dict(
        action="store_true",
        help="predict even if most of the model's columns are missing, or of another kind",
    ),
}


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Writes one row for each row read: file, row, the columns of --keep, prediction, "
        "decision_function, probability (of the predicted label); set, a list of labels, if the "
        "model was learnt with --coverage, and answer, a label or null, if with --error. A row "
        "that cannot be predicted has nulls. Of sentences: file, row and prediction, a list of "
        "labels, or a meaning and symbols, a list. With --target COLUMN it evaluates the model, "
        "and needs no --output. With a folder as --output, each Parquet file of a folder gets a "
        "file of its own there, which appears when it is complete; those that are done already, by "
        "this model, are left. With --topic it predicts messages as they come, until Ctrl-C or "
        "--idle: to --output-topic, each once, to --output, or as JSON lines."
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", type=path, help="file written by --save")
    parser.add_argument("file", type=path, nargs="?", help=FILES + "; not with --topic")
    add_table(parser, _OPTIONS)
    add_table(parser.add_argument_group("a topic in place of a file"), topic.OPTIONS)


def run(options: argparse.Namespace) -> int:
    """Predict and write; return the exit code."""
    topic.check(options)
    if options.topic is not None:
        return topic.run(options)
    if Path(options.model).is_dir():
        raise ParameterError(
            f"{options.model} is a folder: name the model's file first, then what to predict"
        )
    if folders.are_folders(options):
        return folders.run(options)
    if options.jobs is not None:
        raise ParameterError(
            "--jobs needs a folder to read, and as --output one that is there, or a name without "
            "an ending"
        )
    model = load(options.model)
    is_of_sentences = of_sentences(options, model)
    _check_output(options)
    if is_of_sentences:
        return _label(options, model)
    learner = learner_of(model, options.model)
    if options.positive is not None and options.target is None:
        raise ParameterError("--positive needs --target COLUMN")
    check_keep(options, learner)
    source = open_rows(options, model, partial(open_source, options.file))
    errors = None if options.target is None else Errors(learner, options.positive)
    if options.output is not None:
        tables = tables_of_rows(model, learner, source, errors, options.probabilities, options.file)
        rows, unusable = write_tables(Path(options.output), tables, source.name)
        note = f", {unusable:,} of them without a prediction" if unusable else ""
        note += why_none(learner) if unusable else ""
        say(f"{rows:,} rows{note} -> {options.output}")
    elif errors is not None:
        for part in margins(model, source, options.file):
            errors.add(*part)
    if errors is not None:
        wrong, n = errors.result(source.name)
        if not n and options.output is None:
            raise LabelError(f"{source.name}: no row has a label in `{options.target}`")
        print(f"test error  {printable(error_in_words(wrong, n, options.file)[0])}")
    return 0


def _check_output(options: argparse.Namespace) -> None:
    """Refuse an output that cannot be written, and options that need one if there is none."""
    if options.output is not None:
        check_distinct(options)
        check_file("--output", options.output)
        check_ending(options.output)
    elif options.target is None:
        raise ParameterError("name --output OUT for the predictions, or --target to evaluate")
    elif options.keep or options.probabilities:
        raise ParameterError("--keep and --probabilities are columns of a file: name --output OUT")


def _label(options: argparse.Namespace, model: Model) -> int:
    """Write the labels of sentences, or evaluate the model on them; return the exit code."""
    score = None if options.target is None else new_score(model)
    if (columns := columns_of_records(options, model)) is not None:
        opened: Source = open_records(options.file, columns, options.target)
    else:
        opened = open_sentences(options.file, options.target, columns_of(options, model))
    with opened as source:
        if options.output is None:
            score = test_score(model, source)
        else:
            tables = tables_of(model, source, score)
            rows, unusable = write_tables(Path(options.output), tables, source.name)
            note = f", {unusable:,} of them without a prediction" if unusable else ""
            say(f"{rows:,} sentences{note} -> {options.output}")
    if score is not None:
        print(f"test error  {printable(score_text(score, options.file))}")
    return 0
