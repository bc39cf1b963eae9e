"""Sentences from Kafka: messages with lists of tokens and of labels."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from connectors.batch import Event, Position, Reject
from connectors.kafka.first_messages import FirstMessages
from connectors.kafka.kafka_source import DEFAULT_BATCH_SIZE, KafkaSource
from connectors.kafka.message_fields import check_labels, reject_of
from connectors.kafka.messages import Message
from connectors.kafka.reachable import Heard
from connectors.payloads import Decoder, PayloadError, content_of, decoder_of
from connectors.sentences import MOST_TOKENS, RecordEvent, SentenceBatch

_Part = list[Event | Reject]


class KafkaSentenceSource(KafkaSource):
    """Sentences and their labels from a Kafka consumer, or from any iterator of messages.

    A message holds one sentence (an object of JSON), or a sentence a row (Arrow list columns). What
    is not said here is as in `KafkaSource`: offsets, checkpoints, and members of a group.

    Parameters
    ----------
    consumer
        As in `KafkaSource`.
    tokens
        The names of the fields with the tokens. One field: a list of tokens, which are strings,
        lists of strings, or dicts. Several: lists of strings; a token is the tuple of the items at
        one place.
    labels
        The name of the field with the list of labels; None, the default: there are no labels.
    topics, decode, transform, batch_size, timeout, idle, heard, name
        As in `KafkaSource`.

    Examples
    --------
    >>> messages = [{"words": ["the", "dog"], "tags": ["DT", "NN"]}, {"words": ["barks"]}]
    >>> for event in KafkaSentenceSource(messages, ["words"], "tags").events():
    ...     print(event)
    Event(x=['the', 'dog'], y=['DT', 'NN'], position=Position(file='kafka[0]', row=0))
    Reject(position=Position(file='kafka[0]', row=1), kind='not an event', reason='the field \
`tags` is missing, or no list', payload="{'words': ['barks']}", kept=None, message=...)

    """

    def __init__(
        self,
        consumer: Any,
        tokens: Sequence[str],
        labels: str | None = None,
        *,
        topics: Sequence[str] | None = None,
        decode: str | Decoder = "json",
        transform: Decoder | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        timeout: float = 0.5,
        idle: float | None = None,
        heard: Heard | None = None,
        name: str = "kafka",
    ) -> None:
        super().__init__(
            consumer, labels or "", topics=topics, decode=decode, transform=transform,
            batch_size=batch_size, timeout=timeout, idle=idle, heard=heard,
            name=name,
        )  # fmt: skip
        self._settings["tokens"] = list(tokens)
        self._reader: Any = self._new_reader(tokens, labels, decoder_of(decode), transform)

    def _new_reader(self, *arguments: Any) -> Any:
        return _SentenceReader(*arguments)

    def events(self) -> Iterator[Any]:
        """Return the unread events, one by one."""
        for batch in self._batches(1):
            # Without messages for some time, an empty batch of another kind comes.
            if isinstance(batch, SentenceBatch):
                yield from batch.items()


class KafkaRecordSource(KafkaSentenceSource):
    """Examples from a Kafka consumer, or from any iterator of messages, with fields as they came.

    `x` is the value of the field `tokens`, or a tuple of the values of several, as in
    `RecordSource`, and `y` that of the field `labels`. A message without one of the fields of `x`
    is a `Reject`, and so is one with a text of more than 100,000 characters, or a list of more than
    100,000 items, in one of them.

    Parameters
    ----------
    consumer, tokens, labels
        As in `KafkaSentenceSource`.
    kept
        Names of other fields, whose values events have by name under `kept`.
    options
        The other parameters of `KafkaSentenceSource`.

    Examples
    --------
    >>> messages = [{"text": "pink 1 kicks", "said": ["kick(pink1)"]}, {"text": None}]
    >>> for event in KafkaRecordSource(messages, ["text"], "said").events():
    ...     print(event)
    RecordEvent(x='pink 1 kicks', y=['kick(pink1)'], position=Position(file='kafka[0]', row=0))
    Reject(position=Position(file='kafka[0]', row=1), kind='not an event', reason='the field \
`text` is missing', payload="{'text': None}", kept=None, message=...)

    """

    def __init__(
        self,
        consumer: Any,
        tokens: Sequence[str],
        labels: str | None = None,
        *,
        kept: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self.keep = list(kept)
        super().__init__(consumer, tokens, labels, **options)

    def _new_reader(self, *arguments: Any) -> Any:
        return _RecordReader(list(self.keep), *arguments)


class _SentenceReader:
    """Turns messages of one partition into sentences; the interface is that of `MessageReader`."""

    def __init__(
        self, tokens: Sequence[str], labels: str | None, decode: Decoder, transform: Decoder | None
    ) -> None:
        self._tokens, self._labels = list(tokens), labels
        self._decode, self._transform = decode, transform
        # Nothing is decided by the first messages, and none is held.
        self.first = FirstMessages(lambda content: (False, None), lambda content: {}, None)

    def take(self, place: str, messages: list[Message]) -> Iterator[tuple[str, Any, int]]:
        """Yield the partition, the sentences of the messages, and the next offset."""
        items = [item for message in messages for item in self._read(place, message)]
        yield place, SentenceBatch(items), messages[-1].offset + 1

    def end(self) -> Iterator[tuple[str, Any, int]]:
        """Yield nothing: no message is held."""
        return iter(())

    def _read(self, place: str, message: Message) -> _Part:
        try:
            found = content_of(message.value, self._decode, self._transform)
            rows = found.to_pylist() if isinstance(found, pa.RecordBatch) else [found]
        except Exception as error:
            # Whatever a payload does must not stop the stream.
            return [reject_of(place, message, error)]
        position = Position(place, message.offset)
        return [self._event(place, message, row, position) for row in rows]

    def _event(self, place: str, message: Message, row: Any, position: Position) -> Event | Reject:
        try:
            columns = [self._list(row, name) for name in self._tokens]
            labels = None if self._labels is None else self._list(row, self._labels)
            lists = columns if labels is None else [*columns, labels]
            if len(set(map(len, lists))) > 1:
                raise PayloadError(f"the lists of a sentence have {list(map(len, lists))} items")
            if len(lists[0]) > MOST_TOKENS:
                raise PayloadError(f"{len(lists[0]):,} tokens: {MOST_TOKENS:,} are accepted")
            if labels is not None:
                check_labels(labels, str(self._labels))
        except Exception as error:
            return reject_of(place, message, error)
        x: Any = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        return Event(x, labels, position)

    @staticmethod
    def _list(row: Any, name: str) -> list[Any]:
        found = row.get(name)
        if not isinstance(found, list):
            raise PayloadError(f"the field `{name}` is missing, or no list")
        return found


class _RecordReader(_SentenceReader):
    """Turns messages of one partition into examples whose values are as they came."""

    def __init__(self, kept: list[str], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._kept = kept

    def _event(self, place: str, message: Message, row: Any, position: Position) -> Event | Reject:
        try:
            x = tuple(row.get(name) for name in self._tokens)
            if None in x:
                raise PayloadError(f"the field `{self._tokens[x.index(None)]}` is missing")
            for name, value in zip(self._tokens, x, strict=True):
                if isinstance(value, (str, list)) and len(value) > MOST_TOKENS:
                    raise PayloadError(
                        f"the field `{name}` has {len(value):,} items or characters: "
                        f"{MOST_TOKENS:,} are accepted"
                    )
            kept = {name: row.get(name) for name in self._kept}
            y = None if self._labels is None else row.get(self._labels)
        except Exception as error:
            return reject_of(place, message, error)
        return RecordEvent.of(x[0] if len(x) == 1 else x, y, position, kept)
