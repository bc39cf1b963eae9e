"""Events from Kafka, by whichever client: the consumer is given, nothing is imported here."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.errors import SnapshotError, SourceError
from connectors.kinds import kind_of
from connectors.messages import Message, message_of, poller_of
from connectors.pairs import batch_of, encoded
from connectors.payloads import Decoder, PayloadError, decoded, decoder_of
from connectors.source import Batch, Closing, Event, Position, Reject, Snapshot

DEFAULT_BATCH_SIZE = 500
"""Messages a poll: enough to hide what a poll costs, few enough to be learnt in a moment."""

_PARTITION_EOF = -191
# The client goes on trying by itself: transport, resolving, all brokers down, timed out.
_WAITING = frozenset({-195, -193, -187, -185})
_SHOWN = 2000
_MOST_KEYS = 100_000
_MOST_CELLS = 2_000_000
_NUMBERS = (bool, int, float)


class KafkaSource(Closing):
    """Events from a Kafka consumer, or from any iterator of messages.

    A batch holds messages of one partition. The position is the offset of the next unread message
    of each partition; with a checkpoint, that is where reading goes on, whatever the broker knows.
    Offsets are committed to the broker only by `settled`, which a run calls when its checkpoint is
    on the disk: the consumer needs ``enable.auto.commit=False``.

    Parameters
    ----------
    consumer
        A consumer of confluent-kafka, kafka-python or aiokafka, or what has their ``consume(n,
        timeout)``, ``poll(timeout_ms, max_records)`` or ``getmany``; or an iterator of mappings, of
        (key, value) pairs, or of messages.
    target
        Name of the field that is the label.
    topics
        What to subscribe to (confluent-kafka); None: the consumer has its topics already.
    columns
        Names of the fields that are features; None: all but the label.
    decode
        ``"json"`` (an object a message), ``"arrow"`` (an IPC stream a message, of any number of
        rows), or a function of the payload that returns a mapping or a record batch, such as
        ``connectors.payloads.avro(schema)``.
    batch_size
        Messages a poll, at least 1.
    timeout
        Seconds that a poll waits for messages; when there are none, an empty batch is given, so
        that whoever reads can do something else.
    idle
        End after so many seconds without a message, counted from when there are partitions to read;
        None: never.
    loop
        The event loop that an asynchronous consumer was started in.
    name
        What to call the source on a screen; the topic of iterators without one.

    Raises
    ------
    TypeError
        The consumer is none.
    ValueError
        A parameter is out of range.

    Examples
    --------
    >>> from connectors.kafka import KafkaSource
    >>> messages = [b'{"a": 1.5, "spam": true}', b'{"a"', {"a": 0.5, "spam": False}]
    >>> batch = next(KafkaSource(messages, "spam").batches())
    >>> batch.features.to_pydict(), batch.labels.to_pylist(), batch.rows.tolist()
    ({'a': [1.5, 0.5]}, [True, False], [0, 2])
    >>> batch.rejects[0].kind
    'undecodable'

    """

    cuts_anew = True
    """Batches are others when the same messages are read again."""

    def __init__(
        self,
        consumer: Any,
        target: str,
        *,
        topics: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        decode: str | Decoder = "json",
        batch_size: int = DEFAULT_BATCH_SIZE,
        timeout: float = 0.5,
        idle: float | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        name: str = "kafka",
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if not timeout > 0 or (idle is not None and not idle > 0):
            raise ValueError(f"timeout and idle must be above 0, not {timeout}, {idle}")
        self.consumer, self.target = consumer, target
        self.columns = None if columns is None else list(columns)
        self.batch_size, self.timeout, self.idle = batch_size, timeout, idle
        self.before_revoke: Callable[[], None] = lambda: None
        self._decode = decoder_of(decode)
        self._name = name
        self._poller = poller_of(consumer, name, loop)
        self._offsets: dict[str, int] = {}
        self._label_type: type | None = None
        if topics is not None:
            self._subscribe(list(topics))

    @property
    def name(self) -> str:
        """What to call the source on a screen."""
        return self._name

    @property
    def n_rows(self) -> None:
        """None: a topic has no end."""

    def events(self) -> Iterator[Event]:
        """Return the unread events, one by one; payloads that are none are passed over."""
        for batch in self.batches(1):
            yield from batch.events()

    def batches(self, size: int | None = None) -> Iterator[Batch]:
        """Return the unread events as batches, an empty one when none came for a while.

        Raises
        ------
        SourceError
            The broker told of something that will not pass by itself.

        """
        most = self.batch_size if size is None else size
        last = time.monotonic()
        while True:
            by_place: dict[str, list[Message]] = {}
            for raw in self._poller.poll(most, self.timeout):
                if self._is_message(raw):
                    message = message_of(raw)
                    by_place.setdefault(message.place, []).append(message)
            for place, messages in by_place.items():
                # What was read before a rebalance may come again.
                fresh = [m for m in messages if m.offset >= self._offsets.get(place, 0)]
                for batch, after in self._batches_of(place, fresh):
                    self._offsets[place] = after
                    last = time.monotonic()
                    yield batch
            if not by_place:
                if getattr(self._poller, "is_over", False):
                    return
                if self._poller.is_waiting():
                    last = time.monotonic()
                if self.idle is not None and time.monotonic() - last >= self.idle:
                    return
                yield batch_of([], np.zeros(0, np.int64), None)

    def snapshot(self) -> Snapshot:
        """Return the offset of the next unread message of each partition."""
        return {"source": "KafkaSource", "offsets": dict(self._offsets)}

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot, from this or an earlier process.

        Raises
        ------
        SnapshotError
            The snapshot is of another kind of source.

        """
        if snapshot.get("source") != "KafkaSource":
            raise SnapshotError(f"not a snapshot of a KafkaSource: {dict(snapshot)!r:.200}")
        self._offsets = dict(snapshot["offsets"])
        # Partitions that are assigned later start there, too (see `_assigned`); and what comes
        # again all the same is passed over.
        self._poller.seek(self._offsets)

    def rewind(self) -> None:
        """Refuse: a stream is read once.

        Raises
        ------
        SourceError
            Always.

        """
        raise SourceError(f"`{self.name}` is a stream: it cannot be read a second time (epochs=1)")

    def settled(self, snapshot: Mapping[str, Any]) -> None:
        """Tell the broker that all before a snapshot is safe: its checkpoint is on the disk."""
        self._poller.commit(snapshot["offsets"])

    def close(self) -> None:
        """Leave the group. An asynchronous consumer is its owner's to stop."""
        if hasattr(self.consumer, "close"):
            self.consumer.close()

    # Partitions come and go

    def _subscribe(self, topics: list[str]) -> None:
        self.consumer.subscribe(
            topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        """Begin where the checkpoint ends, or where another member of the group got to since."""
        for known in consumer.committed(partitions, 30.0):
            place = f"{known.topic}[{known.partition}]"
            start = max(self._offsets.get(place, -1), known.offset)
            if start >= 0:
                self._offsets[place] = start
        for partition in partitions:
            place = f"{partition.topic}[{partition.partition}]"
            partition.offset = self._offsets.get(place, partition.offset)
        consumer.assign(partitions)

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        """Make safe what was learnt of these partitions; others read on from there."""
        self.before_revoke()
        self._lost(consumer, partitions)

    def _lost(self, consumer: Any, partitions: list[Any]) -> None:
        """Forget partitions that are another's now: it starts from what was committed."""
        for partition in partitions:
            self._offsets.pop(f"{partition.topic}[{partition.partition}]", None)
        consumer.unassign()

    def _is_message(self, raw: Any) -> bool:
        error = getattr(raw, "error", None)
        error = error() if callable(error) else error
        if error is None:
            return True
        code = error.code()
        if code == _PARTITION_EOF or code in _WAITING or error.retriable():
            return False
        raise SourceError(f"`{self.name}`: the broker says: {error}")

    # Messages to batches

    def _batches_of(self, place: str, messages: list[Message]) -> Iterator[tuple[Batch, int]]:
        """Yield the events of messages in batches, and the offset after each."""
        read = [(message.offset, self._read(place, message)) for message in messages]
        # Events one by one, and record batches of one schema, go together.
        for schema, group in groupby(read, lambda one: getattr(one[1], "schema", None)):
            if schema is not None:
                run = list(group)
                yield self._of_tables(place, run), run[-1][0] + 1
                continue
            for run in _narrow(group):
                yield self._of_pairs(place, run), run[-1][0] + 1

    def _read(self, place: str, message: Message) -> Any:
        """Return (features, label), a record batch, or why it is neither."""
        try:
            found = decoded(self._decode, message.value)
            if not isinstance(found, pa.RecordBatch):
                return self._pair(found)
            for field in found.schema:
                if kind_of(field.type) is None and self._is_used(field.name):
                    raise PayloadError(f"column `{field.name}` is {field.type}: no feature")
            return found
        except PayloadError as error:
            kind = "undecodable" if error.__cause__ else "not an event"
            position = Position(place, message.offset)
            return Reject(position, kind, str(error), _shown(message.value))

    def _is_used(self, name: str) -> bool:
        return self.columns is None or name in self.columns or name == self.target

    def _of_pairs(self, place: str, read: list[tuple[int, Any]]) -> Batch:
        """Return events, and what is none, as one batch."""
        rejects = tuple(one for _, one in read if isinstance(one, Reject))
        kept = [(offset, one) for offset, one in read if not isinstance(one, Reject)]
        rows = np.array([offset for offset, _ in kept], np.int64)
        return batch_of([pair for _, pair in kept], rows, place, rejects)

    def _pair(self, found: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return features and label of an object."""
        if len(found) > _MOST_KEYS:
            raise PayloadError(f"{len(found):,} fields are more than the {_MOST_KEYS:,} accepted")
        label = found.get(self.target)
        if label is not None:
            self._check_label(label)
        if self.columns is None:
            x = dict(found)
            x.pop(self.target, None)
        else:
            x = {name: found.get(name) for name in self.columns if name != self.target}
        if set(map(type, x.values())) == {float}:
            return x, label
        for name, value in x.items():
            if value is not None and not isinstance(value, (str, *_NUMBERS)):
                raise PayloadError(f"feature `{name}` is a {type(value).__name__}")
            if isinstance(value, int) and abs(value) > 1e300:
                raise PayloadError(f"feature `{name}` is too large for a float")
        return x, label

    def _check_label(self, label: Any) -> None:
        if not isinstance(label, (str, *_NUMBERS)):
            raise PayloadError(f"the label `{self.target}` is a {type(label).__name__}")
        kind = float if type(label) is int else type(label)
        if self._label_type is None:
            self._label_type = kind
        elif kind is not self._label_type:
            raise PayloadError(
                f"the label `{self.target}` is {label!r}, a {kind.__name__}; those before were "
                f"{self._label_type.__name__}"
            )

    def _of_tables(self, place: str, read: list[tuple[int, pa.RecordBatch]]) -> Batch:
        """Return record batches of one schema as one batch."""
        rows = np.concatenate([np.full(t.num_rows, offset, np.int64) for offset, t in read])
        whole = pa.concat_batches([t for _, t in read])
        if self.target in whole.schema.names:
            labels = whole.column(self.target)
        else:
            labels = pa.nulls(whole.num_rows)
        names = whole.schema.names if self.columns is None else self.columns
        here = set(whole.schema.names) - {self.target}
        features = encoded(whole.select([name for name in names if name in here]))
        return Batch(features, labels, rows, place)


def _narrow(read: Iterator[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
    """Cut what was read into runs whose columns by rows stay few, whatever names they bring."""
    run: list[tuple[int, Any]] = []
    names: set[Any] = set()
    n_texts = 0
    for offset, one in read:
        if not isinstance(one, Reject):
            x = one[0]
            texts = list(map(type, x.values())).count(str)
            names.update(x)
            n_texts += texts
            if run and (len(names) + n_texts) * (len(run) + 1) > _MOST_CELLS:
                yield run
                run, names, n_texts = [], set(x), texts
        run.append((offset, one))
    yield run


def _shown(value: Any) -> str:
    """Return a payload as text, cut short."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
