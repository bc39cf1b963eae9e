"""What a run produces to Kafka topics: dead letters, and questions for labels."""

import json
import time
from typing import Any

from connectors.errors import SourceError
from connectors.kafka.messages import ERRORS, Message, is_passing, size_of
from connectors.source import shown

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
        more |= {"value": value, "key": key, "on_delivery": self._delivered}
        try:
            self.producer.produce(self.topic, **more)
        except BufferError:
            self.flush()
            self.producer.produce(self.topic, **more)
        self.producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error)

    def flush(self) -> None:
        """Wait until the broker has received all messages.

        SourceError: it refused one, or did not receive all of them in time.
        """
        timeout = self.timeout
        if self.ends_at is not None:
            timeout = max(0.1, min(timeout, (self.ends_at - time.monotonic()) / 2))
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
