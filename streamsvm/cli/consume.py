"""`streamsvm consume`: learn from the messages of a Kafka topic."""

import argparse
import os
import platform
from typing import Any

from connectors.kafka.kafka_source import KafkaSource
from connectors.kafka.producing import LetterTopic, QuestionTopic, ScoredTopic
from connectors.kafka.reachable import Heard
from connectors.kafka.sentence_messages import KafkaRecordSource, KafkaSentenceSource
from streamsvm.cli.candidates import SHADOW
from streamsvm.cli.learners import add_learner_group, model_of
from streamsvm.cli.outputs import check_outputs
from streamsvm.cli.parser import Parser, add_table, positive, split
from streamsvm.cli.running import LATE, OUTPUTS, late_labels_of, run_shown
from streamsvm.cli.sentences import columns_of, columns_of_records, of_sentences
from streamsvm.cli.sources import add_data_options, columns_from
from streamsvm.cli.topics import TOPIC, consumer_from, producer_from, reading_of, texts_of
from streamsvm.errors import ParameterError
from streamsvm.labels.bag_labels import BagTargets
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.watched import Model
from streamsvm.run.adapters import adapter_of, unwrapped

_MESSAGES = TOPIC | {
    "--brokers HOST:PORT,...": dict(required=True, help=TOPIC["--brokers HOST:PORT,..."]),
    "--topic": TOPIC["--topic"] | {"required": True},
    "--limit ROWS": "end after so many; with --checkpoint, with the messages that were fetched",
    "--target FIELD": dict(required=True, help="field of the label, or of the labels"),
}
EVENTS: dict[str, Any] = {
    "--timestamp FIELD": "field that is the event's time: ISO 8601, or seconds since 1970; numbers "
    "from 1e11 on are milliseconds",
    "--message-key NAME": "learn the message's key, too, as a text feature of this name",
    "--headers NAMES": "headers of the message that are text features, with commas between",
    "--key FIELD": "field by which late labels find their events; default: the key of the message",
    "--tombstones WHAT": dict(
        choices=("forget",),
        help="forget: a message with a key and no value asks to forget the example that was learnt "
        "from the message with this key, and one with a value takes its place; default: they are "
        "dead letters",
    ),
}
_LONGEST_TRANSACTION = 900.0
"""Seconds that brokers allow, by default."""

_SCORED: dict[str, Any] = {
    "--output-topic TOPIC": "where predictions go, as JSON with the event's position and key; with "
    "--checkpoint exactly once, in a transaction that ends with each checkpoint",
    "--output-fields A,B,...": "fields of the event that are in them, too",
    "--probabilities": dict(
        action="store_true",
        help="the probability of each label, too; events are then learnt one by one",
    ),
}
LABELS = {
    "--labels-topic TOPIC": "where the labels of the events come, with the same key",
    "--questions-topic TOPIC": "with --label-budget and --labels-topic: where events go that are "
    "asked for, as JSON with the key and the features",
    "--abstain-topic TOPIC": "with --error and --labels-topic: where events without an answer go, "
    "as JSON with the key, the position and the features; their labels come as those of others",
}
_GROUP = {
    "--checkpoint-seconds SECONDS": dict(
        type=positive,
        default=60.0,
        help="seconds after which a checkpoint is written in any case, if there are new examples; "
        "default 60",
    ),
    "--peers PATTERN": "checkpoints of the group's other members ('DIR/*.ckpt'), whose messages "
    "are not learnt again; with --checkpoint",
    "--grace SECONDS": dict(
        type=positive,
        default=10.0,
        help="seconds within which a run that is told to end (Ctrl-C, SIGTERM) has written its "
        "checkpoint and its report, whatever the broker does; a second signal ends it at once; "
        "default 10",
    ),
    "--dead-letter-topic TOPIC": "produce them to this topic, not to a file",
}


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Learn from the messages of a Kafka topic: each is predicted, scored, then "
        "learnt. With --checkpoint, every message counts once, whatever happens to the process. "
        "With a learner of label sequences a message is a sentence: --columns is then the field "
        "with its tokens (strings, lists of strings, or objects), or several with lists of "
        "strings. ospas and concepts read the fields that --columns names as they are."
    )
    parser.set_defaults(run=run)
    data = parser.add_argument_group("messages")
    add_table(data, _MESSAGES)
    add_data_options(data, "field", "the learner's draws")
    add_table(data, EVENTS)
    add_learner_group(parser)
    add_table(parser.add_argument_group("candidate"), SHADOW)
    add_table(parser.add_argument_group("labels that come late"), LABELS | LATE)
    add_table(parser.add_argument_group("predictions to a topic"), _SCORED)
    add_table(parser.add_argument_group("output"), OUTPUTS | _GROUP)


def run(options: argparse.Namespace) -> int:
    """Consume, report, save; return the exit code."""
    check_outputs(options)
    if options.peers is not None and options.checkpoint is None:
        raise ParameterError("--peers needs --checkpoint: members tell each other by checkpoints")
    is_of_sentences = of_sentences(options, model_of(options))
    if options.tombstones is not None and (is_of_sentences or options.key is not None):
        raise ParameterError(
            "--tombstones: not with --key, as without a value a message has its own key only"
            if options.key is not None
            else "--tombstones: learners of label sequences cannot forget examples"
        )
    if is_of_sentences and (options.message_key is not None or options.headers):
        raise ParameterError("--message-key, --headers: learners of label sequences read fields")
    reading = reading_of(options, Heard())
    by_key = options.labels_topic is not None
    late = late_labels_of(options, by_key, _questions_from(options))
    letters = _letters_from(options)
    if is_of_sentences:
        source = _sentences_from(options, reading)
    else:
        source = rows_of_topic(options, reading)
    with source:
        return run_shown(
            options,
            f"consume {source.name}",
            options.limit,
            lambda stop: source,
            letters=letters,
            late=late,
            output=_output_from(options, source),
        )


def rows_of_topic(
    options: argparse.Namespace, reading: dict[str, Any] | None = None
) -> KafkaSource:
    """Return the source of the events that the options name; `reading` is from `reading_of`."""
    reading = reading_of(options, Heard()) if reading is None else reading
    model, labels = model_of(options), options.labels_topic
    return KafkaSource(
        consumer_from(options, reading["heard"]),
        options.target,
        topics=options.topic + ([] if labels is None else [labels]),
        key=options.key,
        timestamp=options.timestamp,
        message_key=options.message_key,
        headers=split(options.headers),
        labels=labels,
        tombstones=options.tombstones,
        bags=_learns_bags(options, model),
        as_text=texts_of(model),
        **columns_from(options),
        **reading,
    )


def _learns_bags(options: argparse.Namespace, model: Model | None) -> bool:
    """Tell whether a saved model, or a new one of the options, learns bags of labels."""
    named = {known.name: known.cls for known in registered_learners()}
    # A plug-in of the user, and the default, which is none of bags, have no name here.
    cls = named.get(options.learner) if model is None else type(steps_of(unwrapped(model))[-1])
    return issubclass(getattr(cls, "new_targets", object), BagTargets)


def _sentences_from(options: argparse.Namespace, reading: dict[str, Any]) -> KafkaSource:
    """Return the source of sentences; the options say then which columns the tokens have."""
    model = model_of(options)
    if (records := columns_of_records(options, model)) is not None:
        return KafkaRecordSource(
            consumer_from(options, reading["heard"]),
            records,
            options.target,
            topics=options.topic,
            **reading,
        )
    columns = columns_of(options, model)
    if columns is None:
        raise ParameterError("--columns: name the field of the tokens, or their fields")
    # The tokens of a single field may be objects, which name their columns.
    options.columns = ",".join(columns) if columns[1:] else None
    return KafkaSentenceSource(
        consumer_from(options, reading["heard"]),
        columns,
        options.target,
        topics=options.topic,
        **reading,
    )


def _letters_from(options: argparse.Namespace) -> LetterTopic | None:
    """Return the topic of dead letters; None: there is none."""
    if options.dead_letter_topic is None:
        return None
    if options.on_error != "dead-letter":
        raise ParameterError(f"--dead-letter-topic: not with --on-error {options.on_error}")
    topic = _not_read(options, "dead_letter_topic")
    return LetterTopic(producer_from(options, topic), topic)


def _not_read(options: argparse.Namespace, name: str) -> str:
    """Return the topic that an option names, to write to; refuse one that is read from."""
    topic: str = getattr(options, name)
    if topic in (*options.topic, options.labels_topic):
        option = "--" + name.replace("_", "-")
        raise ParameterError(f"{option} {topic}: it is read from, too; name another topic")
    return topic


def _output_from(options: argparse.Namespace, source: KafkaSource) -> ScoredTopic | None:
    """Return the topic of predictions; None: there is none."""
    if options.output_topic is None:
        if options.output_fields or options.probabilities:
            raise ParameterError("--output-fields, --probabilities: only with --output-topic")
        return None
    topic = _not_read(options, "output_topic")
    more: dict[str, Any] = {}
    if options.checkpoint is not None:
        if options.checkpoint_seconds > _LONGEST_TRANSACTION / 1.5:
            raise ParameterError(
                f"--checkpoint-seconds {options.checkpoint_seconds:g}: with --output-topic at most "
                f"{_LONGEST_TRANSACTION / 1.5:g}, as brokers end longer transactions"
            )
        # The same when the process is started again, and that of no other member of the group.
        path = os.path.realpath(options.checkpoint)
        more["transactional.id"] = f"{options.group} {platform.node()} {path}"
        # A transaction ends with a checkpoint; writing it takes time, too.
        seconds = min(_LONGEST_TRANSACTION, max(60.0, 2.0 * options.checkpoint_seconds))
        more["transaction.timeout.ms"] = round(1000 * seconds)
    return ScoredTopic(
        producer_from(options, topic, **more),
        topic,
        source,
        fields=split(options.output_fields),
        probabilities=options.probabilities,
        model=None if options.checkpoint is None else os.path.basename(options.checkpoint),
        exactly_once=options.checkpoint is not None,
    )


def _questions_from(options: argparse.Namespace) -> QuestionTopic | None:
    """Return the topic of events whose labels are wanted; None: nobody is asked for them."""
    model = model_of(options)
    adapter = None if model is None else adapter_of(model)
    asks = options.label_budget is not None or (adapter is not None and adapter.asks)
    answers = options.error is not None or (adapter is not None and adapter.answers)
    if options.questions_topic is None and options.labels_topic is not None and asks:
        raise ParameterError(
            "--label-budget with --labels-topic: name --questions-topic TOPIC, where events go "
            "that are asked for"
        )
    wanted = (
        ("questions", asks, "where the answers come, and --label-budget"),
        ("abstain", answers, "where the labels of its events come, and --error"),
    )
    for name, is_meant, needs in wanted:
        if getattr(options, f"{name}_topic") is None:
            continue
        if options.labels_topic is None or not is_meant:
            raise ParameterError(f"--{name}-topic needs --labels-topic, {needs}")
        topic = _not_read(options, f"{name}_topic")
        return QuestionTopic(producer_from(options, topic), topic)
    return None
