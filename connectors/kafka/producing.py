"""What a run produces to Kafka topics: dead letters, and questions for labels."""

import json
import time
from typing import Any

from connectors.errors import SourceError
from connectors.source import shown

_MOST_BYTES = 900_000
"""Longer messages are cut: brokers and clients refuse messages of 1 MB unless they are told."""


class _Topic:
    """Produces JSON objects to a topic; `_what` they are is for messages."""

    _what = ""

    def __init__(self, producer: Any, topic: str, timeout: float = 30.0) -> None:
        self.producer, self.topic, self.timeout = producer, topic, timeout
        self.ends_at: float | None = None  # as of a source
        self._failed: list[Any] = []

    def _put(self, content: dict[str, Any], key: str, kept: str) -> None:
        """Produce a message, cut to what brokers take, but for `kept`.

        It waits only while the producer's queue is full.
        """
        value = json.dumps(content, default=str).encode()
        if len(value) > _MOST_BYTES:
            # The beginnings of its values, as texts.
            cut = {name: shown(part) for name, part in content.items() if name != kept}
            value = json.dumps(content | cut | {"x": {"features": cut["x"]}}, default=str).encode()
        try:
            self._produce(value, key.encode())
        except BufferError:
            self.flush()
            self._produce(value, key.encode())
        self.producer.poll(0)

    def _produce(self, value: bytes, key: bytes) -> None:
        self.producer.produce(self.topic, value=value, key=key, on_delivery=self._delivered)

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


class LetterTopic(_Topic):
    """A callable for ``BadEvents(on_error=...)`` that produces bad events to a topic.

    Each letter is a JSON object with ``position``, ``reason``, ``x`` and ``y``; its key is the
    position. A run that continues after being killed produces the letters since its last checkpoint
    again: readers that want each letter once keep the last one of each key. Of a letter of more
    than 900,000 bytes only the beginning is produced, as brokers refuse messages of 1 MB.

    Parameters
    ----------
    producer
        A producer of confluent-kafka, or an object with its ``produce(topic, value, key,
        on_delivery)``, ``poll(seconds)`` and ``flush(timeout)``.
    topic
        The name of the topic.
    timeout
        Seconds that `flush` waits for the broker, above 0.

    Examples
    --------
    >>> class Producer:
    ...     def produce(self, topic, value, key, on_delivery):
    ...         print(topic, value.decode())
    ...     def poll(self, seconds):
    ...         return 0
    ...     def flush(self, seconds):
    ...         return 0
    >>> letters = LetterTopic(Producer(), "rejected")
    >>> letters({"position": {"file": "t[0]", "row": 7}, "reason": "no label", "x": {}, "y": None})
    rejected {"position": {"file": "t[0]", "row": 7}, "reason": "no label", "x": {}, "y": null}
    >>> letters.flush()

    """

    _what = "dead letters"

    def __call__(self, letter: dict[str, Any]) -> None:
        """Produce a letter; wait only while the producer's queue is full."""
        self._put(letter, "{file}:{row}".format(**letter["position"]), "position")


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

    Examples
    --------
    >>> class Producer:
    ...     def produce(self, topic, value, key, on_delivery):
    ...         print(topic, key, value.decode())
    ...     def poll(self, seconds):
    ...         return 0
    ...     def flush(self, seconds):
    ...         return 0
    >>> ask = QuestionTopic(Producer(), "questions")
    >>> ask({"key": "a7", "predicted": True, "x": {"size": 1.5}})
    questions b'a7' {"key": "a7", "predicted": true, "x": {"size": 1.5}}

    """

    _what = "questions"

    def __call__(self, question: dict[str, Any]) -> None:
        """Produce a question; wait only while the producer's queue is full."""
        self._put(question, str(question["key"]), "key")
