"""What a run produces to Kafka topics: dead letters, questions for labels, and predictions."""

import contextlib
import json
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from connectors.batch import Batch, Reject, shown
from connectors.errors import SourceError
from connectors.kafka.kafka_source import KafkaSource
from connectors.kafka.message_fields import key_of
from connectors.kafka.messages import (
    ERRORS,
    Message,
    called,
    is_of_client,
    is_passing,
    keys_of,
    size_of,
)
from connectors.output import Output
from connectors.source import topic_and_number

try:
    from msgspec import json as quick
except ImportError:  # another client than confluent-kafka
    quick = None  # type: ignore[assignment]

_MOST_BYTES = 900_000
"""Longer messages are cut: brokers and clients refuse messages of 1 MB unless they are told."""


def check_topic(producer: Any, topic: str) -> None:
    """Raise a SourceError if a topic to produce to is not there, and is not made when asked for."""
    for left in (2, 1, 0):
        error = producer.list_topics(topic, timeout=10.0).topics[topic].error
        if error is None or is_passing(error):
            return
        time.sleep(0.5 if left else 0.0)
    raise SourceError(f"topic `{topic}`: {error.str()}: make it first, or name another one")


class _Topic:
    """Produces JSON objects to a topic; `_what` they are is for messages."""

    _what = ""

    def __init__(self, producer: Any, topic: str, timeout: float = 30.0) -> None:
        self.producer, self.topic, self.timeout = producer, topic, timeout
        self.ends_at: float | None = None  # as of a source
        self._failed: list[Any] = []

    def _put(self, content: dict[str, Any], key: str, kept: str, **more: Any) -> None:
        """Produce a message, cut to what brokers take, but for `kept`; `more`: see `_send`."""
        value = json.dumps(content, default=str).encode()
        if len(value) > _MOST_BYTES:
            # The beginnings of its values, as texts.
            cut = {name: shown(part) for name, part in content.items() if name != kept}
            value = json.dumps(content | cut | {"x": {"features": cut["x"]}}, default=str).encode()
        self._send(value, key.encode(), **more)

    def _send(self, value: bytes | None, key: Any, **more: Any) -> None:
        """Produce bytes; `more` are arguments of the client. It waits only for a full queue."""
        self._queue(value=value, key=key, on_delivery=self._delivered, **more)
        self.producer.poll(0)

    def _queue(self, **message: Any) -> None:
        with self._named():
            try:
                self.producer.produce(self.topic, **message)
            except BufferError:
                self.flush()
                self.producer.produce(self.topic, **message)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Turn what the client raises into a SourceError: a transaction that was ended, say."""
        try:
            yield
        except Exception as error:
            if is_of_client(error):
                raise SourceError(f"topic `{self.topic}`: the client says: {error}") from error
            raise

    def _seconds_left(self) -> float:
        if self.ends_at is None:
            return self.timeout
        return max(0.1, min(self.timeout, (self.ends_at - time.monotonic()) / 2))

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error)

    def flush(self) -> None:
        """Wait until the broker has received all messages.

        SourceError: it refused one, or did not receive all of them in time.
        """
        timeout = self._seconds_left()
        with self._named():
            left = self.producer.flush(timeout)
        if self._failed:
            n, first = len(self._failed), self._failed[0]
            raise SourceError(f"topic `{self.topic}`: {n:,} {self._what} were refused: {first}")
        if left:
            late = f"{left:,} {self._what} could not be delivered within {timeout:g} s"
            raise SourceError(f"topic `{self.topic}`: {late}")


def _can_be_produced(message: Message) -> bool:
    """Tell whether a message is of bytes, not of what a client or its user has made of them."""
    parts = [message.key, *(value for _, value in message.headers or ())]
    is_of_bytes = isinstance(message.value, bytes | None)
    is_of_bytes &= all(isinstance(part, bytes | str | None) for part in parts)
    return is_of_bytes and size_of(message) <= _MOST_BYTES


class LetterTopic(_Topic):
    """A callable for ``BadEvents(on_error=...)`` that produces bad events to a topic.

    The letter of a message is the message itself, with its key, headers and timestamp, so that it
    can be produced again. Further headers have Kafka Connect's names: ``__connect.errors.topic``,
    ``.partition``, ``.offset`` and ``.exception.message``, the reason. Of a row of a record batch
    the letter is a record batch of this row; its key is topic, partition, offset and row, and the
    headers have also ``__connect.errors.row`` and ``__connect.errors.key``, the message's own key.

    Where there is no message (an event that was held for its label), or one of more than 900,000
    bytes, which brokers may refuse, a letter is a JSON object with ``position``, ``reason``, ``x``
    and ``y``, cut to that size, and its key is the position. A run that continues after being
    killed produces the letters since its last checkpoint again, with the same headers.

    Parameters
    ----------
    producer
        A producer of confluent-kafka, or an object with its ``produce(topic, value, key,
        on_delivery, headers, timestamp)``, ``poll(seconds)`` and ``flush(timeout)``.
    topic
        The name of the topic.
    timeout
        Seconds that `flush` waits for the broker, above 0.

    Examples
    --------
    >>> class Producer:
    ...     def produce(self, topic, value, key, on_delivery, headers):
    ...         print(topic, value.decode(), headers[2:])
    ...     def poll(self, seconds):
    ...         return 0
    ...     def flush(self, seconds):
    ...         return 0
    >>> letters = LetterTopic(Producer(), "rejected")
    >>> letters({"position": {"file": "t[0]", "row": 7}, "reason": "no label", "x": {}, "y": None})
    rejected {"position": {"file": "t[0]", "row": 7}, "reason": "no label", "x": {}, "y": null} \
[('__connect.errors.offset', b'7'), ('__connect.errors.exception.message', b'no label')]
    >>> letters.flush()

    """

    _what = "dead letters"

    def __call__(self, letter: dict[str, Any]) -> None:
        """Produce a letter; wait only while the producer's queue is full."""
        place, offset = (str(part) for part in letter["position"].values())
        topic, _, partition = place.removesuffix("]").rpartition("[")
        of = {"topic": topic, "partition": partition, "offset": offset}
        of["exception.message"] = letter["reason"]
        headers = [(ERRORS + name, text.encode()) for name, text in of.items()]
        message: Any = getattr(letter, "message", None)
        if not (isinstance(message, Message) and _can_be_produced(message)):
            self._put(letter, f"{place}:{offset}", "position", headers=headers)
            return
        # One that was a letter before has older headers of these names.
        names = {name for name, _ in headers}
        headers += [one for one in message.headers or () if one[0] not in names]
        more = {} if message.seconds is None else {"timestamp": round(1000 * message.seconds)}
        self._send(message.value, message.key, headers=headers, **more)


class QuestionTopic(_Topic):
    """A callable for ``LateLabels(ask=...)`` that produces questions for labels to a topic.

    Each is a JSON object with the ``key`` of the event, the label that is ``predicted``, and its
    features ``x``; the key of the message is that of the event. Who knows the answer produces it,
    with this key, to the topic of labels. A run that continues after being killed asks the
    questions since its last checkpoint again. Long ones are cut as letters are.

    Parameters
    ----------
    producer, topic, timeout
        As of `LetterTopic`.

    """

    _what = "questions"

    def __call__(self, question: dict[str, Any]) -> None:
        """Produce a question; wait only while the producer's queue is full."""
        self._put(question, str(question["key"]), "key")


def encoded(content: Any) -> bytes:
    """Return JSON values as bytes; what is none is its text."""
    if quick is not None:
        try:
            return quick.encode(content, enc_hook=str)
        except (OverflowError, ValueError, TypeError):
            pass  # a whole number of more than 64 bits, a name that is no text
    return json.dumps(content, default=str).encode()


class ScoredMessages(Output):
    """Makes a JSON object of the prediction for each event of a topic; see `ScoredTopic`."""

    def __init__(
        self, source: KafkaSource, fields: Sequence[str], probabilities: bool, model: str | None
    ) -> None:
        self._source, self._fields, self.probabilities = source, tuple(fields), probabilities
        self._model = {} if model is None else {"model": model}
        self._is_open = False  # whether there is something that was not committed

    def add(
        self,
        batch: Batch,
        rows: Sequence[int],
        predictions: Sequence[Any],
        further: Mapping[str, Sequence[Any]],
        are_learnt: bool = False,
    ) -> None:
        """Write predictions: see `Output`."""
        if not rows:
            return
        topic, partition = topic_and_number(batch.file) if batch.file else ("", 0)
        same = {"topic": topic, "partition": partition, **self._model}
        keys, numbers = keys_of(batch.payloads)
        keys = [keys[i] for i in rows]
        columns: dict[str, Sequence[Any]] = {"offset": batch.rows[list(rows)].tolist()}
        if numbers is not None:
            columns["row"] = [numbers[i] for i in rows]
        columns |= {"key": list(map(key_of, keys)), "prediction": predictions, **further}
        if self._fields:
            columns["fields"] = self._source.values_of(batch, rows, self._fields)
        if self.n_learnt is not None:
            n_more = len(rows) * are_learnt
            first = range(self.n_learnt, self.n_learnt + n_more)
            columns["learnt"] = first if are_learnt else [self.n_learnt] * len(rows)
            self.n_learnt += n_more
        values = zip(*columns.values(), strict=True)
        found = [encoded(same | dict(zip(columns, one, strict=True))) for one in values]
        keys = [key if isinstance(key, bytes | str) else None for key in keys]
        self._write(zip(found, keys, strict=True))

    def refused(self, reject: Reject) -> None:
        """Write that nothing is predicted for a message, and why."""
        message = reject.message
        at = {"topic": message.topic, "partition": message.partition, "offset": message.offset}
        one = {"key": key_of(message.key), "prediction": None, "reason": reject.reason}
        self._write([(encoded(at | one | self._model), message.key)])

    @abstractmethod
    def _write(self, messages: Iterable[tuple[bytes, Any]]) -> None:
        """Write JSON objects, each with the key of its message."""


class ScoredTopic(_Topic, ScoredMessages):
    """Produces what is predicted for the events of a topic to another one: ``Run(output=...)``.

    Each is a JSON object with the ``topic``, ``partition`` and ``offset`` of the event (and the
    ``row``, of a message with several), its ``key``, which is also that of the message, the
    ``prediction``, made before the event was learnt, ``learnt``: how many examples the run had
    learnt before, and the name of the ``model``, if it has one; where asked for, ``probabilities``
    and ``fields``; of `ConformalSets` the ``set``, of `Selective` the ``answer``.

    `exactly_once`: what is predicted between two checkpoints is one transaction, with the offsets
    that it was predicted up to. Who reads committed messages only sees each prediction once, after
    the checkpoint; others see it at once, and after an end by force may see it again. Otherwise, a
    run that continues produces the predictions since its last checkpoint again.

    Parameters
    ----------
    producer, topic, timeout
        As of `LetterTopic`. For `exactly_once` a producer of confluent-kafka that was made with a
        ``transactional.id`` of its own, which stays the same when the process is started again, and
        a ``transaction.timeout.ms`` that is longer than the time between checkpoints.
    source
        The source of the events; for `exactly_once` with a consumer of confluent-kafka.
    fields
        Names of fields of the events that are wanted with the predictions.
    probabilities
        Whether the probability of each label is wanted. A run then learns events one by one.
    model
        A name of the model; None: none is said.
    exactly_once
        Whether to use transactions.

    """

    _what = "predictions"

    def __init__(
        self,
        producer: Any,
        topic: str,
        source: KafkaSource,
        *,
        fields: Sequence[str] = (),
        probabilities: bool = False,
        model: str | None = None,
        exactly_once: bool = False,
        timeout: float = 30.0,
    ) -> None:
        super().__init__(producer, topic, timeout)
        ScoredMessages.__init__(self, source, fields, probabilities, model)
        self.exactly_once = exactly_once
        self._broken: str | None = None

    def _write(self, messages: Iterable[tuple[bytes, Any]]) -> None:
        self._begin_transaction()
        # A transaction is not committed if one of its messages is not delivered.
        produce = self._produced if self.exactly_once else self._send
        for value, key in messages:
            produce(value, key)

    def _produced(self, value: bytes, key: Any) -> None:
        self._queue(value=value, key=key)

    # Transactions

    def begin(self) -> None:
        """Be the one that produces with this ``transactional.id``; an open transaction is aborted.

        SourceError: the broker refuses.
        """
        if self.exactly_once:
            self._tried(self.producer.init_transactions)
            self._source.after_loss = self._lose

    def _begin_transaction(self) -> None:
        if self._broken is not None:
            raise SourceError(self._broken)
        if self.exactly_once and not self._is_open:
            self._tried(lambda seconds: self.producer.begin_transaction())
            self._is_open = True

    def is_due(self, snapshot: Mapping[str, Any] | None) -> bool:
        """Tell whether there is something to commit, up to a snapshot of the source."""
        if not self.exactly_once or snapshot is None:
            return False
        return self._is_open or bool(self._source.partitions_to_commit(snapshot, ""))

    def commit(self, snapshot: Mapping[str, Any], mark: str = "") -> None:
        """Commit what was produced, and the offsets of a snapshot of the source, in one step.

        With the offsets the broker keeps a `mark`, by which `was_committed` knows them.
        SourceError: they may not be committed; nothing more is produced then.
        """
        self._begin_transaction()
        offsets = self._source.partitions_to_commit(snapshot, mark)
        group = self._source.consumer.consumer_group_metadata()
        try:
            self._tried(self.producer.send_offsets_to_transaction, offsets, group)
            self._tried(self.producer.commit_transaction)
        except SourceError as error:
            self._broken = str(error)
            raise
        self._source.were_committed(offsets)
        self._is_open = False

    def was_committed(self, snapshot: Mapping[str, Any], mark: str) -> bool:
        """Tell whether `commit` was, by an earlier process that ended in it; after `begin`.

        SourceError: it cannot be told.
        """
        known = self._source.committed(snapshot["offsets"])
        if any(one.metadata == mark for one in known.values()):
            return True
        if any(one.offset < snapshot["offsets"][place] for place, one in known.items()):
            return False
        raise SourceError(
            f"topic `{self.topic}`: other members of the group have gone on since this one was "
            "ended by force while it committed its predictions, so that the broker does not know "
            "any longer whether they were"
        )

    def _lose(self) -> None:
        """Note that other members have the partitions: they predict the same events."""
        self._broken = (
            f"topic `{self.topic}`: partitions were lost to other members of the group before the "
            "predictions of their messages were committed: start again, from the last commit"
        )

    def _tried(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Call the client, again while the failure may pass; else a SourceError."""
        end = time.monotonic() + self._seconds_left()
        while True:
            seconds = max(0.1, end - time.monotonic())
            try:
                # In a thread: with a broker that is frozen the client waits longer than it is told.
                if not called(partial(call, *arguments, seconds), seconds + 0.2).is_alive():
                    return
                self._is_open = False  # nothing is left to be asked
                raise SourceError(f"topic `{self.topic}`: a transaction: no broker answers")
            except SourceError:
                raise
            except Exception as error:
                found = error.args[0] if error.args else error
                may_pass = hasattr(found, "retriable") and found.retriable()
                if not may_pass or time.monotonic() >= end:
                    said = found.str() if hasattr(found, "str") else found
                    raise SourceError(f"topic `{self.topic}`: a transaction: {said}") from error

    def flush(self) -> None:
        """Wait until the broker has what was produced: see `LetterTopic`."""
        if self._broken is not None:
            raise SourceError(self._broken)
        super().flush()

    def close(self) -> None:
        """Abort what was not committed; without transactions, wait until the broker has it."""
        if not self.exactly_once:
            self.flush()
        elif self._is_open:
            # The broker does it, too, when the time for a transaction is over.
            with contextlib.suppress(SourceError):
                self._tried(self.producer.abort_transaction)
            self._is_open = False
