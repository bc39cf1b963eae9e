"""A topic scored with a saved model: to another topic, to a file, or as JSON lines."""

import argparse
import hashlib
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from connectors import Batch, KafkaSource, ScoredTopic
from connectors.errors import SourceError
from connectors.kafka.producing import ScoredMessages
from connectors.kafka.reachable import Heard
from connectors.source import Snapshot, SourceAround
from streamsvm.cli.evaluate import Errors, check_fit, error_in_words, margins
from streamsvm.cli.outputs import check_ending, check_file, write_tables
from streamsvm.cli.parser import positive, say, split, whole
from streamsvm.cli.predictions import features_of, learner_of, tables_of_rows
from streamsvm.cli.running import ends_within, stop_on_signals
from streamsvm.cli.sources import texts_from
from streamsvm.cli.topics import (
    TOPIC,
    check_file_or_topic,
    consumer_from,
    producer_from,
    reading_of,
    settings_of,
    texts_of,
)
from streamsvm.errors import ParameterError
from streamsvm.labels.label_column import objects
from streamsvm.model_files.container import load
from streamsvm.monitor.watched import Model
from streamsvm.run.adapters import adapter_of
from streamsvm.run.rows import further_of, probabilities_of
from streamsvm.support.printing import printable

_COMMIT_SECONDS, _BEHIND_SECONDS = 0.1, 1.0
"""How long a transaction is open, at most; where more messages wait than are read at once."""

OPTIONS: dict[str, Any] = TOPIC | {
    "--message-key NAME": "the message's key is the text feature of this name",
    "--headers NAMES": "headers of the message that are text features, with commas between",
    "--limit ROWS": dict(type=whole(1), help="end after so many, with the messages then fetched"),
    "--output-topic TOPIC": "where predictions go, as JSON with the message's position and key: "
    "each once for readers of committed messages; default: JSON lines on the standard output",
    "--grace SECONDS": dict(
        type=positive,
        default=10.0,
        help="seconds within which it has ended after Ctrl-C or SIGTERM; default 10",
    ),
}


_UNUSABLE = "a value is no number, or too large for the model"


def check(options: argparse.Namespace) -> None:
    """Refuse options that are not for a topic, or for a file."""
    check_file_or_topic(options)
    if options.topic is None:
        if options.output_topic:
            raise ParameterError("--output-topic: only with --topic; leave it out")
        return
    if options.jobs is not None:
        raise ParameterError("--jobs: not with --topic: start a process for each job")
    if options.output is not None and options.output_topic is not None:
        raise ParameterError("--output, --output-topic: give one of both")
    if options.output_topic in options.topic:
        raise ParameterError(f"--output-topic {options.output_topic}: it is read from, too")
    if options.output is not None:
        check_file("--output", options.output)
        check_ending(options.output)
    if options.positive is not None and options.target is None:
        raise ParameterError("--positive needs --target FIELD")


def run(options: argparse.Namespace) -> int:
    """Score messages as they come; return the exit code."""
    model = load(options.model)
    learner = learner_of(model, options.model)
    source = _source_from(options, model)
    output = None if options.output is not None else _output_from(options, source)
    errors = None if options.target is None else Errors(learner, options.positive)
    takers: list[Any] = [source, output]
    with source, ends_within(options.grace, takers) as told, stop_on_signals(told) as stop:
        read = _Read(options, model, source, stop)
        if output is None:
            tables = tables_of_rows(
                model, learner, read, errors, options.probabilities, source.name
            )
            rows, unusable = write_tables(Path(options.output), tables, source.name)
            source.settled(source.snapshot())
            source.confirm()
        else:
            rows, unusable = _scored(options, model, read, output, errors)
        note = f", {unusable:,} of them without a prediction" if unusable else ""
        say(f"{rows:,} rows{note} -> {options.output or options.output_topic or 'standard output'}")
    if errors is not None:
        result = error_in_words(*errors.result(source.name), source.name)[0]
        has_lines = options.output_topic is None and options.output is None
        print(f"test error  {printable(result)}", file=sys.stderr if has_lines else sys.stdout)
    return 130 if stop else 0


def _scored(
    options: argparse.Namespace,
    model: Model,
    read: "_Read",
    output: ScoredMessages,
    errors: Errors | None,
) -> tuple[int, int]:
    """Produce predictions; return how many messages there were, and those without one."""
    said, source = adapter_of(model).column(), read.source
    learner = learner_of(model, options.model)
    rows = unusable = 0
    last = time.monotonic()

    def commit() -> None:
        nonlocal last
        last = time.monotonic()
        if output.is_due(snapshot := source.snapshot()):
            output.commit(snapshot)

    output.begin()
    source.before_revoke = commit
    try:
        for batch, usable, values in margins(model, read, source.name):
            if errors is not None:
                errors.add(batch, usable, values)
            predicted = np.full(len(batch), None, object)
            predicted[usable] = objects(learner.targets.labels_of(values[usable]))
            further: dict[str, Any] = {}
            if not usable.all():
                further["reason"] = [None if one else _UNUSABLE for one in usable.tolist()]
            if options.probabilities or said is not None:
                found = probabilities_of(learner, values, usable)
                further |= further_of(found, options.probabilities, said)
            output.add(batch, range(len(batch)), predicted.tolist(), further)
            for reject in batch.rejects:
                output.refused(reject)
            rows += len(batch) + len(batch.rejects)
            unusable += len(batch.rejects) + int((~usable).sum())
            is_behind = len(batch) >= source.batch_size
            if time.monotonic() - last >= (_BEHIND_SECONDS if is_behind else _COMMIT_SECONDS):
                commit()
    except SourceError:
        # What was scored is, whatever the source says.
        with suppress(SourceError):
            commit()
        raise
    finally:
        source.before_revoke = None
    commit()
    output.close()
    return rows, unusable


class _Lines(ScoredMessages):
    """Writes predictions to the standard output, a line each."""

    def _write(self, messages: Iterable[tuple[bytes, Any]]) -> None:
        for value, _ in messages:
            sys.stdout.write(f"{value.decode()}\n")
        self._is_open = True

    def is_due(self, snapshot: Snapshot | None) -> bool:
        """Tell whether lines were written since the last commit."""
        return self._is_open

    def commit(self, snapshot: Snapshot, mark: str = "") -> None:
        """Commit the offsets of a snapshot of the source: what is up to there was written."""
        sys.stdout.flush()
        self._source.settled(snapshot)
        self._is_open = False

    def flush(self) -> None:
        """Confirm the last commit."""
        self._source.confirm()


class _Read(SourceAround):
    """Reads batches of a topic until a signal, or a limit; all else is that of the source.

    Batches keep the fields of --keep, as texts, if predictions go to a file.
    """

    def __init__(
        self, options: argparse.Namespace, model: Model, source: KafkaSource, stop: list[int]
    ) -> None:
        super().__init__(source)
        self._topic, self._stop, self._model, self._options = source, stop, model, options
        self._keep = split(options.keep) if options.output is not None else []

    def batches(self, size: int | None = None) -> Iterator[Batch]:
        """Yield batches; the first one with rows must have features of the model."""
        limit, rows, is_first = self._options.limit, 0, True
        for batch in self.source.batches(size):
            if len(batch) and is_first:
                is_first = False
                _check_kinds(self._options, self._model, batch, self.source.name)
            yield self._with_kept(batch) if self._keep and len(batch) else batch
            rows += len(batch) + len(batch.rejects)
            if self._stop or (limit is not None and rows >= limit):
                return

    def _with_kept(self, batch: Batch) -> Batch:
        values = self._topic.values_of(batch, range(len(batch)), self._keep)
        texts = [{n: None if v is None else str(v) for n, v in one.items()} for one in values]
        schema = pa.schema([(name, pa.string()) for name in self._keep])
        return replace(batch, kept=pa.RecordBatch.from_pylist(texts, schema))


def _source_from(options: argparse.Namespace, model: Model) -> KafkaSource:
    """Return the source of the messages' features, as the model takes them."""
    numbers, texts = features_of(model, ())
    heard = Heard()
    return KafkaSource(
        consumer_from(options, heard),
        options.target,
        topics=options.topic,
        columns=split(options.columns) or sorted(numbers | texts) or None,
        parse_numbers=options.parse_numbers or (),
        message_key=options.message_key,
        headers=split(options.headers),
        as_text=texts_of(model),
        timeout=_COMMIT_SECONDS,
        **texts_from(options),
        **reading_of(options, heard),
    )


def _output_from(options: argparse.Namespace, source: KafkaSource) -> ScoredMessages:
    """Return what takes the predictions."""
    digest = hashlib.sha256(Path(options.model).read_bytes()).hexdigest()
    how: dict[str, Any] = {
        "fields": split(options.keep),
        "probabilities": options.probabilities,
        "model": f"{Path(options.model).name} {digest[:12]}",
    }
    if options.output_topic is None:
        output: ScoredMessages = _Lines(source, **how)
    else:
        # What a killed process leaves open is in the way of readers until it is over, or until the
        # same member comes back, if it has a name.
        name = settings_of(options).get("group.instance.id", time.time_ns())
        own = {"transactional.id": f"{options.group} {name}", "transaction.timeout.ms": 10_000}
        producer = producer_from(options, options.output_topic, **own)
        output = ScoredTopic(producer, options.output_topic, source, exactly_once=True, **how)
    output.n_learnt = None
    return output


def _check_kinds(options: argparse.Namespace, model: Model, batch: Batch, name: str) -> None:
    """Refuse a topic whose first messages have no feature of the model, or of another kind."""
    kinds: dict[str, str | None] = {}
    for field in batch.features.schema:
        text = (field.metadata or {}).get(b"one_hot", b"").decode()
        kinds[text or field.name] = "text" if text else "number"
    numbers, texts = features_of(model, kinds)
    if there := (numbers | texts) & kinds.keys():
        numbers, texts = numbers & there, texts & there
    if not (options.allow_mismatch and not there):
        check_fit(name, kinds, numbers, texts, options.allow_mismatch, are_all=False)
