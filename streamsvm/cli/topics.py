"""Topics of a cluster: the options that name them, and the clients of confluent-kafka."""

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connectors.errors import SourceError
from connectors.kafka.producing import check_topic
from connectors.kafka.reachable import Heard, check_reachable, tls_findings
from connectors.payloads import avro, flatten, framed
from streamsvm.cli.parser import whole
from streamsvm.cli.predictions import features_of
from streamsvm.errors import ParameterError
from streamsvm.monitor.watched import Model

_CONNECT_SECONDS = 15.0


TOPIC: dict[str, Any] = {
    "--brokers HOST:PORT,...": "where to find the cluster",
    "--topic": dict(action="append", help="where events come; may be given again"),
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
}
"""The options of a topic, of its messages and of the client."""


def check_file_or_topic(options: argparse.Namespace) -> None:
    """Refuse options that name both a file and a topic, or none of both."""
    if (options.topic is None) == (options.file is None):
        raise ParameterError("name a FILE, or --brokers HOST:PORT and --topic TOPIC, not both")
    if (options.topic is None) != (options.brokers is None):
        raise ParameterError("--brokers HOST:PORT and --topic TOPIC: give both, or none")


def reading_of(options: argparse.Namespace, heard: Heard) -> dict[str, Any]:
    """Return the arguments of a source that say how messages are read."""
    return {
        "heard": heard,
        "decode": _decoder_from(options),
        "transform": flatten if options.flatten else None,
        "idle": options.idle,
        "name": ", ".join(options.topic),
    }


def texts_of(model: Model | None) -> list[str]:
    """Return the fields that are texts to a saved model."""
    if model is None:
        return []
    numbers, texts = features_of(model, ())
    return sorted(texts - numbers)


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


def consumer_from(options: argparse.Namespace, heard: Heard) -> Any:
    """Return a consumer that reaches the cluster."""
    client, admin_client = _client("Consumer"), _client("AdminClient")
    own = settings_of(options, False)
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
    heard.identify(admin, [*options.topic, *filter(None, [getattr(options, "labels_topic", None)])])
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


def producer_from(options: argparse.Namespace, topic: str, **more: Any) -> Any:
    """Return a producer to a topic of the cluster; a SourceError: it is not there.

    `more` are further settings of the client; those that were given take their place.
    """
    client = _client("Producer")
    heard = Heard()
    with _settings_named():
        own = settings_of(options, "transactional.id" in more)
        producer = client(more | own | {"error_cb": heard.settings["error_cb"]})
    _check_reachable(options, producer, heard)
    check_topic(producer, topic)
    return producer


def _check_reachable(options: argparse.Namespace, client: Any, heard: Heard) -> None:
    """Wait until a broker answers a client; a SourceError says why none does."""
    try:
        check_reachable(client, min(_CONNECT_SECONDS, options.idle or _CONNECT_SECONDS), heard)
    except SourceError as error:
        own = settings_of(options)
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
        raise ParameterError("topics need confluent-kafka: pip install confluent-kafka") from error
    module = confluent_kafka.admin if name == "AdminClient" else confluent_kafka
    return getattr(module, name)


_PREFIX = "STREAMSVM_KAFKA_"
_REFUSED = {"enable.auto.commit": "commits follow checkpoints", "group.id": "use --group"}


def settings_of(options: argparse.Namespace, has_transactions: bool = False) -> dict[str, Any]:
    """Return the librdkafka settings of consumer and producer; of transactions if it has some."""
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
        if has_transactions or not name.startswith("transaction"):
            settings[name] = value
    return settings
