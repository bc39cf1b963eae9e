"""`streamsvm consume`: learn from the messages of a Kafka topic."""

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connectors.errors import SourceError
from connectors.kafka.kafka_source import KafkaSource
from connectors.kafka.producing import LetterTopic, QuestionTopic, check_topic
from connectors.kafka.reachable import Heard, check_reachable, tls_findings
from connectors.kafka.sentence_messages import KafkaRecordSource, KafkaSentenceSource
from connectors.payloads import avro, flatten, framed
from streamsvm import ActiveLearner, Selective
from streamsvm.cli.candidates import SHADOW
from streamsvm.cli.learners import add_learner_options, model_of
from streamsvm.cli.outputs import check_outputs
from streamsvm.cli.parser import Parser, add_table, positive, split, whole
from streamsvm.cli.predictions import features_of
from streamsvm.cli.running import LATE, OUTPUTS, late_labels_of, run_shown
from streamsvm.cli.sentences import columns_of, columns_of_records, of_sentences
from streamsvm.cli.sources import add_data_options, columns_from
from streamsvm.errors import ParameterError
from streamsvm.labels.bag_labels import BagTargets
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.model_files.container import steps_of
from streamsvm.run.parts import unwrapped

_CONNECT_SECONDS = 15.0

_MESSAGES: dict[str, Any] = {
    "--brokers HOST:PORT,...": dict(required=True, help="where to find the cluster"),
    "--topic": dict(required=True, action="append", help="where events come; may be given again"),
    "--group": dict(
        default="streamsvm",
        help="consumer group; default streamsvm. Offsets are committed with checkpoints: without "
        "--checkpoint, none are",
    ),
    "--decode": dict(
        choices=("json", "arrow", "avro"), default="json", help="format of messages; default json"
    ),
    "--avro-schema FILE": "the writer's schema, for avro",
    "--header BYTES": dict(
        type=whole(0),
        default=0,
        help="bytes before each payload; 5: the header of a schema registry, 10: that of Avro's "
        "single-object encoding, which are checked; for json and arrow 0 or 5; default 0",
    ),
    "--avro-id ID": dict(
        type=whole(0),
        help="the schema's id in the registry; default: that of the first record that can be "
        "decoded; records of other ids are dead letters",
    ),
    "--flatten": dict(
        action="store_true",
        help="take nested objects apart: their fields are named as user.age, also in other options",
    ),
    "--limit ROWS": "end after so many; with --checkpoint, with the messages that were fetched",
    "--idle SECONDS": "end when nothing came for so long",
    "--set NAME=VALUE": dict(
        action="append",
        default=[],
        help="a setting of librdkafka, such as security.protocol=SSL; may be given several times. "
        "Each can also be in the environment, which no list of processes shows: "
        "STREAMSVM_KAFKA_SASL_PASSWORD is sasl.password",
    ),
    "--set-file FILE": dict(
        action="append", default=[], help="such settings, a line each: NAME=VALUE, or # and a note"
    ),
    "--target FIELD": dict(required=True, help="field of the label, or of the labels"),
}
_EVENTS: dict[str, Any] = {
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
_LABELS = {
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
    # Its name until it was for JSON, too.
    data.add_argument("--avro-header", dest="header", type=whole(0), help=argparse.SUPPRESS)
    add_data_options(data, "field", "the learner's draws")
    add_table(data, _EVENTS)
    add_learner_options(parser.add_argument_group("learner"))
    add_table(parser.add_argument_group("candidate"), SHADOW)
    add_table(parser.add_argument_group("labels that come late"), _LABELS | LATE)
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
    heard = Heard()
    reading: dict[str, Any] = {
        "heard": heard,
        "decode": _decoder_from(options),
        "transform": flatten if options.flatten else None,
        "idle": options.idle,
        "name": ", ".join(options.topic),
    }
    by_key = options.labels_topic is not None
    late = late_labels_of(options, by_key, _questions_from(options))
    letters = _letters_from(options)
    if is_of_sentences:
        source = _sentences_from(options, reading)
    else:
        source = KafkaSource(
            _consumer_from(options, heard),
            options.target,
            topics=options.topic + ([options.labels_topic] if by_key else []),
            key=options.key,
            timestamp=options.timestamp,
            message_key=options.message_key,
            headers=split(options.headers),
            labels=options.labels_topic,
            tombstones=options.tombstones,
            bags=_learns_bags(options, model_of(options)),
            as_text=_texts_of(model_of(options)),
            **columns_from(options),
            **reading,
        )
    with source:
        return run_shown(
            options,
            f"consume {source.name}",
            options.limit,
            lambda stop: source,
            letters=letters,
            late=late,
        )


def _texts_of(model: Any) -> list[str]:
    """Return the fields that are texts to a saved model."""
    if model is None:
        return []
    numbers, texts = features_of(model, ())
    return sorted(texts - numbers)


def _learns_bags(options: argparse.Namespace, model: Any) -> bool:
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
            _consumer_from(options, reading["heard"]),
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
        _consumer_from(options, reading["heard"]),
        columns,
        options.target,
        topics=options.topic,
        **reading,
    )


def _decoder_from(options: argparse.Namespace) -> Any:
    """Return the decoder of messages that the options ask for."""
    if options.avro_id is not None and (options.decode != "avro" or options.header != 5):
        raise ParameterError(f"--avro-id {options.avro_id} needs --decode avro --header 5")
    if options.decode != "avro":
        if options.header not in (0, 5):
            raise ParameterError(f"--header {options.header}: --decode {options.decode} has 0 or 5")
        return framed(options.decode) if options.header else options.decode
    if not options.avro_schema:
        raise ParameterError("--decode avro: name the writer's schema with --avro-schema FILE")
    try:
        schema = json.loads(Path(options.avro_schema).read_text(encoding="utf-8"))
        return avro(schema, options.header, options.avro_id)
    except ImportError as error:
        raise ParameterError(str(error)) from error
    except ValueError as error:
        is_json = not isinstance(error, (json.JSONDecodeError, UnicodeDecodeError))
        said = error if is_json else f"no JSON: {error}"
        raise ParameterError(f"--avro-schema {options.avro_schema}: {said}") from error


def _consumer_from(options: argparse.Namespace, heard: Heard) -> Any:
    """Return a consumer that reaches the cluster."""
    client, admin_client = _client("Consumer"), _client("AdminClient")
    own = _settings(options)
    defaults = {
        # When enough messages wait, librdkafka would fetch nothing for a second.
        "fetch.queue.backoff.ms": 10,
        "auto.offset.reset": "earliest",
        # Partitions that are added are found within so many milliseconds.
        "topic.metadata.refresh.interval.ms": 30_000,
        # Where nothing more is there: marks of transactions have offsets, too.
        "enable.partition.eof": True,
    }
    # The source commits offsets once the checkpoint with them is on the disk.
    fixed = {"group.id": options.group, "enable.auto.commit": False}
    with _settings_named():
        consumer = client(defaults | own | heard.settings | fixed)
        admin = admin_client(own)
    _check_reachable(options, consumer, heard)
    heard.identify(admin, [*options.topic, *filter(None, [options.labels_topic])])
    return consumer


@contextmanager
def _settings_named() -> Iterator[None]:
    """Turn what the client says about a setting into an error of the command's."""
    try:
        yield
    except Exception as error:
        # KafkaException for names and values, TypeError and ValueError for those of callbacks.
        said = error.args[0].str() if hasattr(error.args[0], "str") else error
        raise ParameterError(f"the client refuses --set or --brokers: {said}") from error


def _letters_from(options: argparse.Namespace) -> LetterTopic | None:
    """Return the topic of dead letters; None: there is none."""
    if options.dead_letter_topic is None:
        return None
    if options.on_error != "dead-letter":
        raise ParameterError(f"--dead-letter-topic: not with --on-error {options.on_error}")
    topic = options.dead_letter_topic
    if topic in (*options.topic, options.labels_topic):
        raise ParameterError(
            f"--dead-letter-topic {topic}: it is read from, too; name another topic"
        )
    return LetterTopic(_producer_from(options, topic), topic)


def _questions_from(options: argparse.Namespace) -> QuestionTopic | None:
    """Return the topic of events whose labels are wanted; None: nobody is asked for them."""
    model = model_of(options)
    asks = options.label_budget is not None or isinstance(model, ActiveLearner)
    answers = options.error is not None or isinstance(model, Selective)
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
        option, topic = f"--{name}-topic", getattr(options, f"{name}_topic")
        if topic is None:
            continue
        if options.labels_topic is None or not is_meant:
            raise ParameterError(f"{option} needs --labels-topic, {needs}")
        if topic in (*options.topic, options.labels_topic):
            raise ParameterError(f"{option} {topic}: it is read from, too; name another topic")
        return QuestionTopic(_producer_from(options, topic), topic)
    return None


def _producer_from(options: argparse.Namespace, topic: str) -> Any:
    """Return a producer to a topic of the cluster; a SourceError: it is not there."""
    client = _client("Producer")
    heard = Heard()
    with _settings_named():
        producer = client(_settings(options) | {"error_cb": heard.settings["error_cb"]})
    _check_reachable(options, producer, heard)
    check_topic(producer, topic)
    return producer


def _check_reachable(options: argparse.Namespace, client: Any, heard: Heard) -> None:
    """Wait until a broker answers a client; a SourceError says why none does."""
    try:
        check_reachable(client, min(_CONNECT_SECONDS, options.idle or _CONNECT_SECONDS), heard)
    except SourceError as error:
        own = _settings(options)
        tls = own.get("security.protocol", "plaintext"), own.get("ssl.ca.location")
        found = tls_findings(options.brokers.split(",")[0], *tls)
        said = error if found is None else f"{found}; {error}"
        raise SourceError(f"--brokers {options.brokers}: {said}") from error


def _client(name: str) -> Any:
    """Return a class of confluent-kafka."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise ParameterError(
            "consume needs confluent-kafka: pip install confluent-kafka"
        ) from error
    module = confluent_kafka.admin if name == "AdminClient" else confluent_kafka
    return getattr(module, name)


_PREFIX = "STREAMSVM_KAFKA_"
_REFUSED = {"enable.auto.commit": "commits follow checkpoints", "group.id": "use --group"}


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the librdkafka settings of consumer and producer."""
    # The client's own log repeats each failed attempt; `--set log_level=6` shows it.
    settings: dict[str, Any] = {"bootstrap.servers": options.brokers, "log_level": 0}
    # STREAMSVM_KAFKA_BOOTSTRAP is for the tests.
    names = {name.removeprefix(_PREFIX): name for name in os.environ if name.startswith(_PREFIX)}
    given = [
        (whole_name, f"{name.lower().replace('_', '.')}={os.environ[whole_name]}")
        for name, whole_name in sorted(names.items())
        if name != "BOOTSTRAP"
    ]
    for file in options.set_file:
        lines = map(str.strip, Path(file).read_text(encoding="utf-8").splitlines())
        given += [(f"--set-file {file}", line) for line in lines if line and line[0] != "#"]
    given += [(f"--set {setting}", setting) for setting in options.set]
    for whence, setting in given:
        name, found, value = setting.partition("=")
        if not found:
            raise ParameterError(f"{whence}: use NAME=VALUE")
        if name in _REFUSED:
            raise ParameterError(f"{whence}: {_REFUSED[name]}")
        if (name, value) == ("auto.offset.reset", "none"):
            value = "error"  # as librdkafka calls it
        settings[name] = value
    return settings
