"""Events from Kafka through a consumer of any client; this module imports no client."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from connectors.errors import SourceError
from connectors.identity import check_settings
from connectors.kafka.message_reader import MessageReader
from connectors.kafka.messages import (
    COMMIT_SECONDS,
    Message,
    called,
    is_message,
    is_of_client,
    message_of,
    place_of,
    poller_of,
    shown,
    size_of_poll,
    will_pass,
)
from connectors.kafka.rebalance import Handover, handover_of
from connectors.kafka.time_order import TimeOrder
from connectors.one_hot import batch_of
from connectors.payloads import AvroDecoder, Decoder, decoder_of, name_of
from connectors.source import BaseSource, Batch, Event, Snapshot

_log = logging.getLogger(__name__)

DEFAULT_BATCH_SIZE = 500
"""Messages a poll: enough to hide the cost of a poll, few enough to be learnt quickly."""

_PATIENCE = 3.0
"""Seconds without partitions after which `on_long_wait` is called."""

_LONGEST = 300.0
"""Seconds after which partitions are not waited for any longer, beyond `idle`: for so long a member
that learns what it has read (max.poll.interval.ms) may keep the others from theirs."""


class KafkaSource(BaseSource):
    """Events from a Kafka consumer, or from any iterator of messages.

    A batch holds messages of one partition; it is empty if none came within `timeout`. `events`
    leaves out payloads that are no events. Both raise a `SourceError` if the broker reports an
    error that is not temporary. A snapshot holds the offset of the next unread message
    of each partition; after a restart from a checkpoint, reading continues at these offsets,
    whatever offsets the broker has. Offsets are committed to the broker only by `settled`, which a
    run calls when its checkpoint is on the disk: the consumer needs ``enable.auto.commit=False``.

    Parameters
    ----------
    consumer
        A consumer of confluent-kafka, kafka-python or aiokafka, or an object with their
        ``consume(n, timeout)``, ``poll(timeout_ms, max_records)`` or ``getmany``; or an iterator of
        mappings, of (key, value) pairs, or of messages.
    target
        Name of the field that is the label.
    topics
        The topics to subscribe to. A checkpoint is then written before partitions are given to
        another member of the group (confluent-kafka, kafka-python, aiokafka). None: the consumer is
        already subscribed.
    columns
        Names of the fields that are features; None: all but label, key and timestamp.
    exclude
        Names of fields that are no features, though `columns` would make them some.
    key
        Name of the field that is the key, by which a label finds its event; None: the key of the
        message, if there is a topic of `labels`.
    timestamp
        Name of the field that is the time of the event, in seconds since 1970 or as ISO 8601;
        numbers from 1e11 on are milliseconds, and so on. None: the broker's timestamp.
    weight
        Name of the field that is the event's weight, at least 0; None: all weigh 1.
    parse_numbers
        Names of fields whose texts are numbers, or times (ISO 8601; seconds since 1970): another
        text in them makes a dead letter. True: all texts that are such; others stay one-hot.
    decimal, missing_tokens
        As in `TabularSource`, of texts in messages.
    as_text
        Names of fields that are texts to a model: whole numbers and booleans in them are texts,
        too. Those that are texts in most of the first messages are so in any case.
    message_key, headers
        The name under which the message's key is a feature, and the names of headers that are
        features; both are texts.
    labels
        The topic whose messages are labels, of events of the other topics with the same key: their
        field `target`. It is one of `topics`, and of all partitions the one whose next message is
        the oldest is read first. A run needs ``late=LateLabels()``.
    decode
        ``"json"`` (an object a message), ``"arrow"`` (an IPC stream a message, of any number of
        rows), or a function of the payload that returns a mapping or a record batch, such as
        ``connectors.payloads.avro(schema)``.
    transform
        A function of what a message holds (a mapping or a record batch) that returns what is learnt
        in its place, label and all: ``connectors.payloads.flatten``, or your own. If it raises, the
        message is a dead letter. None: messages stay as they are.
    tombstones
        None: a message without a value is a dead letter. ``"forget"``: one with a key asks to
        forget what was learnt from the message with this key, and events have ids by the keys of
        their messages (`id_of_key`); those without a key are dead letters. Not with `key`.
    bags
        Whether a label may be a list of candidates, for learners of bags.
    batch_size
        Messages a poll, at least 1.
    timeout
        Seconds that a poll waits for messages, above 0; if none come, an empty batch is yielded.
    idle
        End after this many seconds of waiting without a message, above 0, counted from when
        partitions are assigned; learning does not count. None: never. If no broker answers then,
        also where no partition is assigned yet, the end is a `SourceError`.
    loop
        The event loop that an asynchronous consumer was started in.
    name
        The name of the source in messages and on a screen; also the topic of messages from an
        iterator that have none.

    Attributes
    ----------
    passed_over
        The number of messages that were read a second time, and skipped.
    jumped
        The number of offsets without a message: deleted (retention, compaction), or transactions.
    failed_commits
        Commits that failed for a passing reason; the next commit includes them.
    wait_seconds
        The time spent in polls that returned no message.
    on_long_wait
        Called once if no partition is assigned within 3 seconds of the first poll. A broker keeps
        the partitions of a member that was killed until its session ends (librdkafka: 45 seconds).
    number_texts
        Has the `names` of fields whose texts, in the first 1,000 messages, are numbers or times;
        `findings` on those whose texts should not be learnt as categories.

    Raises
    ------
    TypeError
        `consumer` is neither a consumer nor an iterator.
    ValueError
        A parameter is out of range.

    Examples
    --------
    >>> from connectors.kafka.kafka_source import KafkaSource
    >>> messages = [b'{"a": 1.5, "spam": true}', b'{"a"', {"a": 0.5, "spam": False}]
    >>> batch = next(KafkaSource(messages, "spam").batches())
    >>> batch.features.to_pydict(), batch.labels.to_pylist(), batch.rows.tolist()
    ({'a': [1.5, 0.5]}, [True, False], [0, 2])
    >>> batch.rejects[0].kind
    'undecodable'

    """

    _kind = "KafkaSource"
    cuts_anew = True
    """True: when the same messages are read again, they are divided into other batches."""

    def __init__(
        self,
        consumer: Any,
        target: str,
        *,
        topics: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        key: str | None = None,
        timestamp: str | None = None,
        weight: str | None = None,
        parse_numbers: Sequence[str] | bool = (),
        decimal: str = ".",
        missing_tokens: Sequence[str] = (),
        as_text: Sequence[str] = (),
        message_key: str | None = None,
        headers: Sequence[str] = (),
        labels: str | None = None,
        decode: str | Decoder = "json",
        transform: Decoder | None = None,
        tombstones: str | None = None,
        bags: bool = False,
        batch_size: int = DEFAULT_BATCH_SIZE,
        timeout: float = 0.5,
        idle: float | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        name: str = "kafka",
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        for what, names in (("parse_numbers", parse_numbers), ("headers", headers)):
            if isinstance(names, str):
                raise TypeError(f"{what} must be a list of names, not {names!r}")
        if not timeout > 0 or (idle is not None and not idle > 0):
            raise ValueError(f"timeout and idle must be above 0, not {timeout}, {idle}")
        if tombstones not in (None, "forget") or (tombstones is not None and key is not None):
            raise ValueError(
                f"tombstones must be None, or 'forget' with key=None, not {tombstones!r} with "
                f"key={key!r}: without a value a message has its own key only"
            )
        self.consumer, self.has_answers, self._labels = consumer, labels is not None, labels
        self.forgets = tombstones is not None
        self.batch_size, self.timeout, self.idle = batch_size, timeout, idle
        self.failed_commits = self.passed_over = self.jumped = 0
        self.wait_seconds = 0.0
        self.on_long_wait: Callable[[], None] = lambda: None
        self.before_revoke: Callable[[], None] = lambda: None
        # Returns offsets up to which other members of the group have learnt, by place.
        self.learnt_elsewhere: Callable[[], dict[str, int]] = dict
        self._decode = decoder_of(decode)
        reads = self._decode, labels, exclude, transform, weight, parse_numbers
        self._reader = MessageReader(
            target,
            key,
            timestamp,
            columns,
            *reads,
            self.forgets,
            bags,
            decimal=decimal,
            missing_tokens=missing_tokens,
            as_text=as_text,
            message_key=message_key,
            headers=headers,
        )
        self.number_texts = self._reader.number_texts
        self.target_field, self._name = target, name
        # A snapshot is refused if one of these differs; names may be given in any order.
        self._settings: dict[str, Any] = {
            "decode": name_of(decode),
            "transform": None if transform is None else name_of(transform),
            "parse_numbers": parse_numbers is True or sorted(parse_numbers or ()),
            "decimal": decimal,
            "missing_tokens": sorted(missing_tokens),
            "exclude": sorted(exclude),
            "message_key": message_key, "headers": sorted(headers),
            "columns": None if columns is None else sorted(columns),
            "target": target, "key": key, "timestamp": timestamp, "weight": weight,
            "labels": labels, "tombstones": tombstones,
            **({} if topics is None else {"topics": sorted(topics)}),
        }  # fmt: skip
        self._poller = poller_of(consumer, name, loop)
        # An iterator has an order of its own.
        is_ordered = self.has_answers and self._poller.may_wait
        self._order, self._paused = TimeOrder() if is_ordered else None, set[str]()
        self._offsets: dict[str, int] = {}
        self._expected: dict[str, int] = {}  # the next offset, if none is left out
        # Read from since assigned. In others another member may have committed a higher offset.
        self._read: set[str] = set()
        # Assigned by a consumer, but their offsets could not be asked for.
        self._unstarted: tuple[Any, list[Any]] | None = None
        self._topic = topics[0] if topics else None
        listening = consumer if topics is not None and self._poller.committing else None
        told = self._poller.committing, self._refused, self._forget_read
        self._handover = handover_of(listening, self._give_up, *told)
        if topics is not None:
            self._subscribe(list(topics))

    @property
    def n_rows(self) -> None:
        """None: a topic has no end."""

    def _events(self) -> Iterator[Event]:
        for batch in self._batches(1):
            if not batch.are_tombstones:
                yield from batch.events()

    def _batches(self, size: int) -> Iterator[Batch]:
        # Idle is what was waited in a row: neither learning nor a checkpoint counts.
        waited, wanted, is_waiting = 0.0, size, False
        is_patient, first = True, time.monotonic()
        while True:
            start = time.monotonic()
            polled = self._polled(wanted)
            polling = time.monotonic() - start
            found = [message_of(raw) for raw in polled if is_message(raw, self.name)]
            if not found:
                self.wait_seconds += polling
            wanted = size_of_poll(size, found)
            for place, messages in self._in_order(found, size, polling):
                if fresh := self._fresh(place, messages):
                    waited = 0.0
                    yield from self._noted(self._reader.take(place, fresh))
            if not found:
                # From when partitions are assigned.
                was_waiting, is_waiting = is_waiting, self._poller.is_waiting()
                waited = (0.0 if was_waiting and not is_waiting else waited) + polling
                if is_waiting and is_patient and time.monotonic() - first > _PATIENCE:
                    self.on_long_wait()
                is_patient = is_patient and is_waiting and time.monotonic() - first <= _PATIENCE
                if self._is_over(waited, is_waiting):
                    for place, messages in self._in_order([], size):
                        if fresh := self._fresh(place, messages):
                            yield from self._noted(self._reader.take(place, fresh))
                    yield from self._noted(self._reader.end())
                    self._check_answers(waited)
                    return
            # In these cases nothing may have been yielded.
            is_holding = self._reader.first.is_holding and self._poller.may_wait
            if not found or is_holding or self._order is not None:
                yield batch_of([], np.zeros(0, np.int64), None)

    def _in_order(
        self, found: Iterable[Message], size: int, seconds: float = math.inf
    ) -> Iterator[tuple[str, list[Message]]]:
        """Yield messages of one partition at a time; with a topic of labels, the oldest first.

        `found` are those of a poll of so many seconds; inf: no more come.
        """
        if self._order is None:
            by_place: dict[Any, list[Message]] = {}
            for message in found:
                by_place.setdefault(message[:2], []).append(message)
            yield from ((messages[0].place, messages) for messages in by_place.values())
            return
        self.passed_over += self._order.add(found, seconds)
        self._set_paused(self._paused | self._order.full())
        while part := self._order.take(size, self._unread()):
            yield part
        # Fetched again before they are waited for.
        self._set_paused({place for place in self._paused if self._order.holds(place, 0.5)})

    def _set_paused(self, wanted: set[str]) -> None:
        """Fetch nothing of partitions that are ahead."""
        self._poller.pause(wanted - self._paused)
        self._poller.resume(self._paused - wanted)
        self._paused = wanted

    def _unread(self) -> dict[str, bool]:
        """Return whether each assigned partition has messages that were not even polled."""
        assert self._order is not None
        return self._poller.unread(self._offsets | self._expected | self._order.next_offsets())

    def _are_labels_behind(self) -> bool:
        """Tell whether messages of the topic of labels are there that were not given away yet."""
        order, first = self._order, self._reader.first
        return order is not None and any(
            order.holds(place, 0.0)
            or first.next_offset(place) is not None
            or order.is_open(place, is_unread)
            for place, is_unread in self._poller.unread(self._offsets).items()
            if place.rpartition("[")[0] == self._labels
        )

    def _polled(self, n: int) -> list[Any]:
        """Return what a poll returns; a SourceError for what the client raises."""
        if self._unstarted is not None:
            self._start(*self._unstarted)
        try:
            with self._handover.polling():
                return self._poller.poll(n, self.timeout)
        except Exception as error:
            # It may be one of a checkpoint that was written in the poll, too.
            if is_of_client(error):
                raise SourceError(f"`{self._name}`: the client says: {error}") from error
            raise

    def _is_over(self, waited: float, is_waiting: bool) -> bool:
        """Tell whether to end: nothing came for so many seconds, `is_waiting` for partitions."""
        if self._poller.is_over:
            return True
        if self.idle is None or waited < self.idle:
            return False
        # A broker that answers keeps the partitions of a killed member until its session ends.
        may_come = is_waiting and waited < self.idle + _LONGEST
        return not (may_come and self._poller.answers(self._topic))

    def _check_answers(self, waited: float) -> None:
        """Raise a SourceError at the end if that is the broker's: what follows was not read."""
        if self._poller.is_over:
            return
        why = None if self._poller.answers(self._topic) else "no broker answers any longer"
        if why is None and self._poller.is_waiting():
            why = "the group has assigned no partition"
        if why is not None:
            raise SourceError(f"`{self._name}`: {why}; nothing came for {waited:.0f} s")

    def _fresh(self, place: str, messages: list[Message]) -> list[Message]:
        """Return messages without those that come a second time, as after a rebalance."""
        start = self._reader.first.next_offset(place) or self._offsets.get(place, 0)
        fresh = [message for message in messages if message.offset >= start]
        self.passed_over += len(messages) - len(fresh)
        if fresh:
            # Offsets left out: deleted records, marks of transactions.
            first, last = fresh[0].offset, fresh[-1].offset
            n_between = last - self._expected.get(place, first) + 1
            self.jumped += max(0, n_between - len(fresh))
            self._expected[place] = last + 1
        return fresh

    def _noted(self, batches: Iterator[tuple[str, Batch, int]]) -> Iterator[Batch]:
        """Yield batches, and note that their messages are read."""
        for place, batch, after in batches:
            self._offsets[place] = after
            self._read.add(place)
            yield replace(batch, labels_behind=True) if self._are_labels_behind() else batch

    def _position(self) -> Snapshot:
        found: Snapshot = {"offsets": dict(self._offsets)}
        found |= {"settings": dict(self._settings)} | self._reader.first.snapshot()
        if isinstance(self._decode, AvroDecoder):
            found["schema"] = self._decode.known()
        return found | ({"jumped": self.jumped} if self.jumped else {})

    def _resume(self, snapshot: Mapping[str, Any]) -> None:
        # Snapshots of older releases have no settings.
        check_settings(snapshot.get("settings", {}), self._settings)
        self._reader.first.resume(snapshot)
        if isinstance(self._decode, AvroDecoder) and "schema" in snapshot:
            self._decode.resume(snapshot["schema"])
        self._offsets.clear()
        self._offsets.update(snapshot["offsets"])
        self._expected, self.jumped = dict(self._offsets), snapshot.get("jumped", 0)
        # Partitions assigned later start at these offsets, too (see `_assigned`); messages that
        # come a second time nevertheless are skipped.
        self._poller.seek(self._offsets)

    def rewind(self) -> None:
        """Refuse, by a SourceError: a stream is read once."""
        raise SourceError(f"`{self.name}` is a stream: it cannot be read a second time (epochs=1)")

    def settled(self, snapshot: Mapping[str, Any]) -> None:
        """Commit the offsets of a snapshot: the checkpoint with it is on the disk.

        A commit that fails for a passing reason (no connection, a rebalance) is counted in
        `failed_commits`; the next commit includes it. SourceError: the broker refuses it for
        another reason.
        """
        offsets = {p: n for p, n in snapshot["offsets"].items() if p in self._read}
        if self._handover.note(offsets):
            return
        try:
            self._poller.commit(offsets)
        except Exception as error:
            self._refused(error)

    @property
    def counts(self) -> dict[str, int]:
        """Counts for the report of a run: `jumped`, `passed_over` and `failed_commits`."""
        return {n: getattr(self, n) for n in ("jumped", "passed_over", "failed_commits")}

    @property
    def lag(self) -> int | None:
        """How many messages of the assigned partitions follow; None: the client does not know."""
        lags = self.lags
        return sum(lags.values()) if lags else None

    @property
    def lags(self) -> dict[str, int]:
        """The same of each partition, by ``topic[partition]``, where the client knows it."""
        return self._poller.lags(self._offsets)

    def close(self) -> None:
        """Close the consumer (an asynchronous one must be stopped by the caller)."""
        if not hasattr(self.consumer, "close"):
            return
        try:
            is_closing = called(self.consumer.close, COMMIT_SECONDS).is_alive()
        except Exception as error:
            # What was read is learnt: no reason to end with an error.
            _log.warning("%s: the consumer cannot be closed: %s", self._name, error)
        else:
            if is_closing:
                _log.warning("%s: no broker lets the consumer leave its group", self._name)

    # Partitions come and go

    def _subscribe(self, topics: list[str]) -> None:
        if self._poller.committing is not None:
            is_listener = type(self._handover) is not Handover
            self.consumer.subscribe(topics, **({"listener": self._handover} if is_listener else {}))
        else:
            calls = {"on_assign": self._assigned, "on_revoke": self._revoked, "on_lost": self._lost}
            self.consumer.subscribe(topics, **calls)

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        """Start at the highest offset of checkpoint, broker and other members' checkpoints."""
        self._start(consumer, partitions)

    def _start(self, consumer: Any, partitions: list[Any]) -> None:
        """Start reading assigned partitions; without a broker that tells their offsets, later."""
        elsewhere = self.learnt_elsewhere()
        try:
            committed = consumer.committed(partitions, COMMIT_SECONDS)
            for known in committed:
                if getattr(known, "error", None) is not None:
                    raise RuntimeError(known.error)
        except Exception as error:
            if not will_pass(error):
                raise SourceError(f"`{self._name}`: offsets cannot be read: {error}") from error
            _log.warning("%s: offsets cannot be read for now: %s", self._name, error)
            self._unstarted = consumer, partitions
            # The client would begin where it likes.
            consumer.assign([])
            return
        self._unstarted = None
        for known in committed:
            place = place_of(known)
            self._read.add(place)
            start = max(self._offsets.get(place, -1), known.offset, elsewhere.get(place, -1))
            if start >= 0:
                self._offsets[place] = self._expected[place] = start
        for partition in partitions:
            partition.offset = self._offsets.get(place_of(partition), partition.offset)
        self._say(logging.INFO, "assigned", partitions)
        consumer.assign(partitions)

    def _give_up(self, partitions: Collection[Any]) -> None:
        """Write a checkpoint before another member of the group gets partitions."""
        self._drop_held(partitions)
        self.before_revoke()

    def _drop_held(self, partitions: Collection[Any]) -> None:
        """Drop what is held of partitions: it is read again, here or by another member."""
        places = [place_of(partition) for partition in partitions]
        self._paused.difference_update(places)
        if self._order is not None:
            self._order.drop(places)
        for place, first in self._reader.first.drop(places).items():
            self._offsets.setdefault(place, first)

    def _forget_read(self, partitions: Collection[Any]) -> None:
        """Commit nothing of newly assigned partitions until a message of theirs is learnt."""
        self._say(logging.INFO, "assigned", partitions)
        self._read.difference_update(map(place_of, partitions))
        elsewhere = self.learnt_elsewhere()
        for place in map(place_of, partitions):
            self._expected.pop(place, None)
            # Messages from the committed offset up to this one are passed over.
            if elsewhere.get(place, 0) > self._offsets.get(place, 0):
                self._offsets[place] = elsewhere[place]

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        """Write a checkpoint before another member of the group gets the partitions."""
        self._say(logging.INFO, "revoked", partitions)
        self._unstarted = None
        self._give_up(partitions)
        consumer.unassign()

    def _lost(self, consumer: Any, partitions: list[Any]) -> None:
        """Unassign partitions that another member has; their offsets are kept, not committed."""
        self._say(logging.WARNING, "lost", partitions)
        self._unstarted = None
        self._drop_held(partitions)
        consumer.unassign()

    def _say(self, level: int, what: str, partitions: Collection[Any]) -> None:
        told = shown(partitions, self._offsets)
        _log.log(level, "%s: partitions %s: %s", self._name, what, told)

    def _refused(self, error: Exception) -> None:
        if not will_pass(error):
            raise SourceError(f"`{self._name}`: offsets cannot be committed: {error}") from error
        _log.warning("%s: a commit failed for now: %s", self._name, error)
        self.failed_commits += 1
