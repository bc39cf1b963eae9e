"""`streamsvm label-topic`: label the tokens of sentences from Kafka, learning them as they come."""

from __future__ import annotations

import argparse
from typing import Any

from connectors import KafkaSentenceSource
from connectors.payloads import flatten
from streamsvm.cli import label
from streamsvm.cli.consume import (
    add_broker_options,
    add_letter_topic,
    consumer_from,
    decoder_from,
    letters_from,
)
from streamsvm.cli.parser import Parser


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Label each token of each sentence of a Kafka topic: each sentence is predicted, scored, "
        "then learnt. With --checkpoint, every message counts once, whatever happens to it."
    )
    parser.set_defaults(run=run)
    data = parser.add_argument_group("messages")
    add_broker_options(data)
    data.add_argument(
        "--tokens",
        required=True,
        metavar="FIELD,...",
        help="field with the list of tokens: strings, lists of strings, or objects; or several "
        "fields with lists of strings: in templates use their names, or 0 for the first",
    )
    data.add_argument("--labels", required=True, metavar="FIELD", help="field with their labels")
    label.add_learner_options(parser.add_argument_group("learner"))
    output = parser.add_argument_group("output")
    label.add_output_options(output)
    add_letter_topic(output)


def run(options: argparse.Namespace) -> int:
    """Consume, report, save; return the exit code."""
    letters = letters_from(options)
    on_error = options.on_error if letters is None else letters
    # The tokens of a single field may be objects, which name their columns.
    columns = options.tokens if "," in options.tokens else None
    return label.run_sentences(options, _source, on_error, label.ignored, columns)


def _source(options: argparse.Namespace) -> Any:
    decoder = decoder_from(options)
    return KafkaSentenceSource(
        consumer_from(options),
        options.tokens.split(","),
        options.labels,
        topics=options.topic,
        decode=decoder,
        transform=flatten if options.flatten else None,
        idle=options.idle,
        name=", ".join(options.topic),
    )
