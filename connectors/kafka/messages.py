"""Messages of any Kafka client: one type, and one interface to fetch and commit."""

# ruff: noqa: B027 (methods of `Poller` that do nothing are those of iterators)

import logging
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from connectors.batch import Reject
from connectors.errors import SourceError

_log = logging.getLogger(__name__)

# How much is read at once: decoded, messages take several times as many bytes.
_MOST_BYTES = 8_000_000
MOST_CELLS = 2_000_000

# Errors of librdkafka after which the client retries by itself: transport, resolving, all brokers
# down, timed out.
_CONNECTING = frozenset({-195, -193, -187, -185})
# Temporary errors of the cluster: leaders and coordinators move, requests time out.
_BUSY = frozenset({5, 6, 7, 9, 13, 14, 15, 16, 19})
# A rebalance is under way: illegal generation, unknown member, rebalance in progress; no offset;
# partitions lost, or not polled for too long.
_REBALANCING = frozenset({22, 25, 27, -168, -142, -147})
# The client waits for the group's coordinator, or for an earlier request.
_WAITING = frozenset({-180, -178, -177, -166})
_PARTITION_EOF = -191

COMMIT_SECONDS = 5.0
"""How long a commit, or the end of a consumer, is waited for."""

_ANSWER_SECONDS = 2.0
"""How long an answer of a broker is waited for."""

ERRORS = "__connect.errors."
"""What names of headers of dead letters begin with: Kafka Connect's."""

_CLIENTS = frozenset({"cimpl", "confluent_kafka", "kafka", "aiokafka", "quixstreams"})
"""The packages that clients' own exceptions are of."""


class Message(NamedTuple):
    """One message: its place in a topic, and its content."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any  # bytes; None for a tombstone; from an iterator, any value
    seconds: float | None  # the timestamp, in seconds since 1970
    headers: Any = None  # (name, bytes) pairs

    @property
    def place(self) -> str:
        """The partition, as ``topic[partition]``."""
        return f"{self.topic}[{self.partition}]"


_new: Any = tuple.__new__  # several times as fast as calling the class


def message_of(raw: Any) -> Message:
    """Return a client's message, whose attributes may all be methods, as a `Message`."""
    if type(raw) is Message:
        return raw
    topic, headers = raw.topic, getattr(raw, "headers", None)
    if not callable(topic):
        parts = topic, raw.partition, raw.offset, raw.key, raw.value
        return _new(Message, (*parts, _seconds_of(raw.timestamp), headers))
    parts = topic(), raw.partition(), raw.offset(), raw.key(), raw.value()
    return _new(Message, (*parts, _seconds_of(raw.timestamp()), headers and headers()))


def _seconds_of(timestamp: Any) -> float | None:
    if type(timestamp) is tuple:
        # (type, milliseconds); type 0: the broker has none.
        timestamp = timestamp[1] if timestamp[0] else None
    return None if timestamp is None or timestamp < 0 else timestamp / 1000.0


def is_message(raw: Any, name: str, ends: dict[str, int] | None = None) -> bool:
    """Tell whether what a client returned is a message, not a passing error; raise other errors.

    `ends` gets the offset at which a partition has no further message, if the client says that.
    """
    error = getattr(raw, "error", None)
    error = error() if callable(error) else error
    if error is None:
        return True
    if error.code() == _PARTITION_EOF:
        if ends is not None:
            ends[f"{raw.topic()}[{raw.partition()}]"] = raw.offset()
        return False
    if is_passing(error):
        return False
    raise SourceError(f"`{name}`: the broker says: {error}")


def is_passing(error: Any) -> bool:
    """Tell whether an error of confluent-kafka is temporary."""
    return error.code() in _CONNECTING | _BUSY or bool(error.retriable())


def will_pass(exception: Exception) -> bool:
    """Tell whether a failed commit is worth another try: it was temporary, or a rebalance."""
    if isinstance(exception, TimeoutError):
        return True
    error = exception.args[0] if exception.args else None
    if error is not None and hasattr(error, "code") and hasattr(error, "retriable"):
        return is_passing(error) or error.code() in _REBALANCING | _WAITING
    return False


def is_of_client(exception: Exception) -> bool:
    """Tell whether an exception is a client's own."""
    return type(exception).__module__.partition(".")[0] in _CLIENTS


def called(function: Callable[[], Any], seconds: float) -> threading.Thread:
    """Call a function in a thread of its own, and wait for it at most so many seconds.

    Returns the thread, which may be alive still; raises what the function has raised. Without a
    broker, clients may wait for ever, and do not end for a signal.
    """
    failures: list[Exception] = []

    def call() -> None:
        try:
            function()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    return thread


def parts_of(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield messages in parts of at most 8 MB; a longer one is a part of its own."""
    if _size_of_all(messages) <= _MOST_BYTES:
        yield [*messages]
        return
    part: list[Message] = []
    n_bytes = 0
    for message in messages:
        size = size_of(message)
        if part and n_bytes + size > _MOST_BYTES:
            yield part
            part, n_bytes = [], 0
        part.append(message)
        n_bytes += size
    if part:
        yield part


class MessagesOfRows(Sequence[Message]):
    """The message of each row of record batches: one of this row, in one that has several.

    Such a message has the row's number as a header, a key of its own, and the key that its message
    had as another header.
    """

    def __init__(self, tables: list[tuple[pa.RecordBatch, Message]], rows: Any = None) -> None:
        self._tables = tables
        self._ends = np.cumsum([table.num_rows for table, _ in tables])
        self._rows = range(int(self._ends[-1])) if rows is None else rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return MessagesOfRows(self._tables, self._rows[i])
        at = int(np.searchsorted(self._ends, self._rows[i], "right"))
        table, message = self._tables[at]
        if table.num_rows == 1:
            return message
        row = self._rows[i] - int(self._ends[at]) + table.num_rows
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_batch(table.slice(row, 1))
        headers = [(f"{ERRORS}row", str(row).encode()), (f"{ERRORS}key", message.key)]
        headers += message.headers or ()
        key = f"{message.place}:{message.offset}:{row}".encode()
        return message._replace(key=key, value=sink.getvalue().to_pybytes(), headers=headers)

    def keys_and_numbers(self) -> tuple[list[Any], list[int]]:
        """Return the key of the message of each row, and the row's number in that."""
        rows = np.asarray(self._rows)
        at = np.searchsorted(self._ends, rows, "right")
        starts = np.array([0, *self._ends])
        keys = [message.key for _, message in self._tables]
        return [keys[i] for i in at.tolist()], (rows - starts[at]).tolist()


def keys_of(messages: Any) -> tuple[list[Any], list[int] | None]:
    """Return the key of the message of each row, and the row's number in it, if it has several."""
    if isinstance(messages, MessagesOfRows):
        return messages.keys_and_numbers()
    return [message.key for message in messages], None


def size_of_poll(most: int, last: Sequence[Message]) -> int:
    """Return how many messages to ask for, at most, to get some 8 MB if they are as the last."""
    n_bytes = _size_of_all(last)
    return min(most, max(1, len(last) * _MOST_BYTES // n_bytes)) if n_bytes else most


def size_of(message: Message) -> int:
    """Return how many bytes, or characters, a message has."""
    value = message.value
    return len(value) if isinstance(value, (bytes, str)) else 0


def _size_of_all(messages: Sequence[Message]) -> int:
    values = [message.value for message in messages]
    # Of bytes in half the time; this is asked of each message twice.
    return sum(map(len, values) if set(map(type, values)) == {bytes} else map(size_of, messages))


def narrow(read: Iterator[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
    """Cut events into runs whose batches stay small, however many feature names they have."""
    run: list[tuple[int, Any]] = []
    names: set[Any] = set()
    n_texts = 0
    for offset, one in read:
        if not isinstance(one, Reject):
            texts = list(map(type, one.x.values())).count(str)
            names.update(one.x)
            n_texts += texts
            if run and (len(names) + n_texts) * (len(run) + 1) > MOST_CELLS:
                yield run
                run, names, n_texts = [], set(one.x), texts
        run.append((offset, one))
    yield run


class Poller(ABC):
    """The interface to a client, and what holds of one without partitions.

    Offsets are dicts by place, ``topic[partition]``. `may_wait` tells whether a poll may wait for
    messages, for which its caller may want to do something else; `is_over`, whether no more come.
    """

    may_wait, is_over = True, False

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer

    @abstractmethod
    def poll(self, n: int, seconds: float) -> list[Any]:
        """Return at most n messages, in the client's own type; wait for them at most so long."""

    def is_waiting(self) -> bool:
        """Tell whether no partition is assigned yet."""
        return False

    def answers(self, topic: str | None) -> bool:
        """Tell whether a broker answers, as far as the client can be asked, about a topic."""
        return True

    def assigned(self, offsets: Mapping[str, int]) -> list[tuple[Any, int]]:
        """Return the partitions that are assigned now, and their offsets."""
        return []

    def seek(self, offsets: Mapping[str, int]) -> None:
        """Set the position of the partitions that are assigned now."""

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Commit offsets for the partitions that are assigned now."""

    def confirm(self, offsets: Mapping[str, int], seconds: float) -> None:
        """Wait at most so long until the broker has what was committed; else an exception."""

    def lags(self, offsets: Mapping[str, int]) -> dict[str, int]:
        """Return how many messages of each assigned partition follow, where that is known."""
        return {}

    def unread(self, offsets: Mapping[str, int]) -> dict[str, bool]:
        """Return whether each assigned partition has messages from an offset on, or may have."""
        return {}

    def counts_of(self, topics: Sequence[str], seconds: float) -> dict[str, int]:
        """Return how many partitions each topic has, where the client can be asked."""
        return {}

    def pause(self, places: Collection[str]) -> None:
        """Fetch no messages of partitions, until `resume`; a client that cannot fetches on."""

    def resume(self, places: Collection[str]) -> None:
        """Fetch messages of partitions again."""


class _ConsumePoller(Poller):
    """confluent-kafka and clients with its ``consume(n, timeout)``."""

    def poll(self, n: int, seconds: float) -> list[Any]:
        # What is there, or the first one to come: to wait for n would keep it from being learnt.
        return list(self.consumer.consume(n, 0.0) or self.consumer.consume(1, seconds))

    def is_waiting(self) -> bool:
        return self._own() == []

    def _own(self) -> list[Any] | None:
        """Return the partitions that are assigned now; None: the client does not tell."""
        return list(self.consumer.assignment()) if hasattr(self.consumer, "assignment") else None

    def answers(self, topic: str | None) -> bool:
        if not hasattr(self.consumer, "list_topics"):
            return True
        try:
            self.consumer.list_topics(topic, timeout=_ANSWER_SECONDS)
        except Exception as error:
            return not will_pass(error)
        return True

    def assigned(self, offsets: Mapping[str, int]) -> list[tuple[Any, int]]:
        by_place = {place_of(one): one for one in self._own() or ()}
        return [(p, offsets[place]) for place, p in by_place.items() if place in offsets]

    def seek(self, offsets: Mapping[str, int]) -> None:
        for partition, offset in self.assigned(offsets):
            self.consumer.seek(_at(partition, offset))

    def commit(self, offsets: Mapping[str, int]) -> None:
        # While a commit is waited for, librdkafka returns from no poll either: without a broker
        # for 45 seconds, or for ever.
        if own := [_at(*one) for one in self.assigned(offsets)]:
            self.consumer.commit(offsets=own, asynchronous=True)

    def confirm(self, offsets: Mapping[str, int], seconds: float) -> None:
        own = [_at(*one) for one in self.assigned(offsets)]
        # The broker answers in the order of requests.
        for known in self.consumer.committed(own, seconds) if own else ():
            if known.offset < offsets[place_of(known)]:
                raise TimeoutError(f"the broker has not taken the commit of {place_of(known)}")

    def lags(self, offsets: Mapping[str, int]) -> dict[str, int]:
        ends = [(place_of(p), self._known_end(p), offset) for p, offset in self.assigned(offsets)]
        return {place: max(0, end - offset) for place, end, offset in ends if end >= 0}

    def unread(self, offsets: Mapping[str, int]) -> dict[str, bool]:
        ends = {place_of(p): self._known_end(p) for p in self._own() or ()}
        return {place: end < 0 or offsets.get(place, 0) < end for place, end in ends.items()}

    def _known_end(self, partition: Any) -> int:
        """Return the offset after the last message of a partition; -1: it is not known."""
        if not hasattr(self.consumer, "get_watermark_offsets"):
            return -1
        try:
            return int(self.consumer.get_watermark_offsets(partition, cached=True)[1])
        except Exception as error:  # of the client: the partition was taken away, say
            _log.debug("the end of %s is not known: %s", place_of(partition), error)
            return -1

    def counts_of(self, topics: Sequence[str], seconds: float) -> dict[str, int]:
        if not hasattr(self.consumer, "list_topics"):
            return {}
        known = self.consumer.list_topics(timeout=seconds).topics
        patterns = [re.compile(topic) for topic in topics if topic.startswith("^")]
        names = [t for t in known if t in topics or any(p.match(t) for p in patterns)]
        return {t: len(known[t].partitions) for t in names}

    def pause(self, places: Collection[str]) -> None:
        self._switch("pause", places)

    def resume(self, places: Collection[str]) -> None:
        self._switch("resume", places)

    def _switch(self, name: str, places: Collection[str]) -> None:
        own = [partition for partition, _ in self.assigned(dict.fromkeys(places, 0))]
        if own and hasattr(self.consumer, name):
            getattr(self.consumer, name)(own)


def place_of(partition: Any) -> str:
    """Return the place of a client's partition object, as ``topic[partition]``."""
    return f"{partition.topic}[{partition.partition}]"


def shown(partitions: Collection[Any], offsets: Mapping[str, int]) -> str:
    """Return partitions with the offsets of their next messages, as far as they are known."""
    places = sorted(map(place_of, partitions))
    return ", ".join(f"{place} at {offsets.get(place, 'its start')}" for place in places) or "none"


def _at(partition: Any, offset: int) -> Any:
    """Return a client's partition object with an offset."""
    return type(partition)(partition.topic, partition.partition, offset)


class _OnePoller(_ConsumePoller):
    """quixstreams and clients with confluent-kafka's ``poll(timeout)``, one message a call."""

    def poll(self, n: int, seconds: float) -> list[Any]:
        found = []
        message = self.consumer.poll(seconds)
        while message is not None:
            found.append(message)
            # Take messages that have arrived already, without waiting for more.
            message = self.consumer.poll(0) if len(found) < n else None
        return found


class _IteratorPoller(Poller):
    """Any iterator: of messages, of mappings, or of (key, value) pairs; nothing is committed.

    Items without an offset have that of their place, from 0, in partition 0 of the topic `topic`.
    """

    may_wait = False

    def __init__(self, items: Iterator[Any], topic: str) -> None:
        super().__init__(items)
        self.topic, self.next = topic, 0
        self._error: Exception | None = None

    def poll(self, n: int, seconds: float) -> list[Any]:
        del seconds
        if self._error is not None:
            raise self._error
        found: list[Any] = []
        try:
            for item in islice(self.consumer, n):
                found.append(self._with_offset(item, self.next + len(found)))
        except Exception as error:
            if not found:
                raise
            # After what came before it.
            self._error = error
        self.is_over = len(found) < n and self._error is None
        self.next += len(found)
        return found

    def _with_offset(self, item: Any, number: int) -> Any:
        """Return an item, the `number`-th from 0, as a message with an offset."""
        if not hasattr(item, "offset"):
            is_pair = isinstance(item, tuple) and len(item) == 2
            key, value = item if is_pair else (None, item)
            return Message(self.topic, 0, number, key, value, None)
        offset = item.offset() if callable(item.offset) else item.offset
        is_whole = (
            isinstance(offset, Integral) and not isinstance(offset, bool) and int(offset) >= 0
        )
        if not is_whole and is_message(item, self.topic):
            raise SourceError(
                f"`{self.topic}`: message {number} has offset={offset!r}: give a whole number, or "
                "items without an offset (bytes, mappings, pairs of a key and one of these), which "
                "are numbered from 0"
            )
        return item


def poller_of(consumer: Any, topic: str, topics: Sequence[str] | None = None) -> Poller:
    """Return the adapter for a client, or for an iterator whose items may have no topic.

    TypeError: it is neither, or an iterator, which cannot be told to subscribe to `topics`.
    """
    name = type(consumer).__name__
    if hasattr(consumer, "consume"):
        return _ConsumePoller(consumer)
    if isinstance(consumer, (str, bytes)):
        raise TypeError(f"{consumer!r:.60} is no consumer: for files there are other sources")
    # kafka-python's, too, which are iterators of messages.
    if hasattr(consumer, "__iter__"):
        if topics is not None:
            raise TypeError(
                f"topics={list(topics)}: {name} is read as an iterator of messages: leave topics= "
                "out, and subscribe it before"
            )
        return _IteratorPoller(iter(consumer), topic)
    if hasattr(consumer, "__aiter__"):
        raise TypeError(
            f"{name} is asynchronous: give an iterator of its messages, as docs/kafka.md shows for "
            "aiokafka"
        )
    if hasattr(consumer, "poll"):
        return _OnePoller(consumer)
    raise TypeError(
        f"{name} is no consumer: use one of confluent-kafka, or an iterator of mappings, of (key, "
        "value) pairs or of messages, such as a consumer of kafka-python"
    )
