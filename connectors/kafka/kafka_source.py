"""Events from Kafka: a consumer of confluent-kafka, or any iterator; this imports no client."""

import logging
import math
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.batch import Batch
from connectors.errors import SnapshotError, SourceError
from connectors.identity import check_ids, check_settings
from connectors.kafka.co_partitions import CoPartitions
from connectors.kafka.message_reader import MessageReader, Reading
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
from connectors.kafka.reachable import Heard
from connectors.kafka.time_order import TimeOrder
from connectors.one_hot import batch_of
from connectors.payloads import AvroDecoder, Decoder
from connectors.source import BaseSource, Snapshot, topic_and_number

_log = logging.getLogger(__name__)

DEFAULT_BATCH_SIZE = 500
"""Messages a poll: enough to hide the cost of a poll, few enough to be learnt quickly."""

_PATIENCE = 5.0
"""Seconds without a message after which `on_long_wait` is told why, where that is not the end."""

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
        A consumer of confluent-kafka, or an object with its ``consume(n, timeout)`` or
        ``poll(timeout)``; or an iterator of mappings, of (key, value) pairs, or of messages, such
        as a consumer of kafka-python. Of iterators nothing is committed: a checkpoint alone says
        what was read, and messages that come again are skipped.
    target
        Name of the field that is the label; None: there are no labels, to predict only.
    topics
        The topics to subscribe to. A checkpoint is then written before partitions are given to
        another member of the group. None: the consumer is already subscribed, or an iterator.
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
        also where no partition is assigned yet, the end is a `SourceError`. Iterators end by
        themselves.
    heard
        What a consumer of confluent-kafka says beside messages, whose ``heard.settings`` are among
        its settings: results of commits, why no broker answers, and which cluster and topics these
        are. None: a topic that was made anew is noticed by where it ends, and by the last message
        that was read.
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
        Called with a sentence after 5 seconds without a message, if there is another reason than
        that all are read: no partition is assigned, no broker answers, a transaction is open.
    ends_at
        The `time.monotonic` by which a run that is told to end is to have closed the source; None:
        commits and the end are waited for up to 5 seconds each.
    number_texts
        Has the `names` of fields whose texts, in the first 1,000 messages, are numbers or times;
        `findings` on those whose texts should not be learnt as categories.

    Raises
    ------
    TypeError
        `consumer` is neither a consumer nor an iterator, or is to subscribe and cannot.
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
    wait_seconds = 0.0

    def __init__(
        self,
        consumer: Any,
        target: str | None,
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
        heard: Heard | None = None,
        name: str = "kafka",
    ) -> None:
        reading = Reading(
            decode, transform, parse_numbers, decimal, missing_tokens, exclude, message_key,
            headers, columns, target, key, timestamp, weight, labels, tombstones, as_text, bags,
        )  # fmt: skip
        _check_options(batch_size, timeout, idle, reading)
        self.consumer, self.has_answers, self._labels = consumer, labels is not None, labels
        self.forgets = tombstones is not None
        self.batch_size, self.timeout, self.idle = batch_size, timeout, idle
        self.failed_commits = self.passed_over = self.jumped = 0
        self._heard, self._ids = heard or Heard(), dict[str, str]()
        self._told: str | None = None  # what `on_long_wait` was told
        self._tell_at = _PATIENCE
        self._together = None if labels is None else CoPartitions(labels)
        # Called when others have partitions of which messages were read and not committed.
        self.after_loss: Callable[[], None] = lambda: None
        self._reader = MessageReader(reading)
        self._decode, self.number_texts = self._reader.decode, self._reader.number_texts
        self.target_field, self._name = target, name
        # A snapshot is refused if one of these differs.
        self._settings = reading.settings | ({} if topics is None else {"topics": sorted(topics)})
        self._poller = poller_of(consumer, name, topics)
        if idle is not None and not self._poller.may_wait:
            raise ValueError(
                f"idle={idle}: an iterator is waited for as long as it takes, and ends by itself: "
                "leave idle= out (a consumer of kafka-python ends after consumer_timeout_ms=)"
            )
        # An iterator has an order of its own.
        is_ordered = self.has_answers and self._poller.may_wait
        self._order, self._paused = TimeOrder() if is_ordered else None, set[str]()
        self._offsets: dict[str, int] = {}
        self._expected: dict[str, int] = {}  # the next offset, if none is left out
        # Read from since assigned. In others another member may have committed a higher offset.
        self._read: set[str] = set()
        # Committed offsets when partitions were assigned: an older snapshot does not lower them.
        self._floor: dict[str, int] = {}
        self._handed: dict[str, int] = {}  # committed, but not confirmed yet
        # Where a partition had no further message, beyond marks of transactions.
        self._ends: dict[str, int] = {}
        self._last_lag: int | None = None
        # The two last messages of polls, [offset, time, digest]; and what is to be compared.
        self._marks: dict[str, list[list[Any]]] = {}
        self._unchecked: dict[str, list[Any]] = {}
        # Assigned, but their offsets could not be asked for.
        self._unstarted: list[Any] = []
        self._is_closing = False
        self._topic = topics[0] if topics else None
        if topics is not None:
            calls = {"on_assign": self._assigned, "on_revoke": self._revoked, "on_lost": self._lost}
            consumer.subscribe(list(topics), **calls)

    @property
    def n_rows(self) -> None:
        """None: a topic has no end."""

    def _batches(self, size: int) -> Iterator[Batch]:
        if self.learnt_elsewhere is not None and not self._poller.may_wait:
            raise SourceError(
                f"`{self._name}`: --peers (Checkpoint(peers=)) needs a consumer of confluent-kafka:"
                " an iterator has no partitions that are assigned"
            )
        # Idle is what was waited in a row: neither learning nor a checkpoint counts.
        waited, wanted, is_waiting, name = 0.0, size, True, self.name
        while True:
            start = time.monotonic()
            polled = self._polled(wanted)
            polling = time.monotonic() - start
            found = [message_of(raw) for raw in polled if is_message(raw, name, self._ends)]
            if found:
                self._told, self._tell_at = None, _PATIENCE
            else:
                self.wait_seconds += polling
            wanted = size_of_poll(size, found)
            for place, messages in self._in_order(found, size, polling):
                if fresh := self._fresh(place, messages):
                    waited = 0.0
                    yield from self._noted(self._reader.take(place, fresh))
            if not found:
                # From when partitions are assigned, which a poll may take long for.
                was_waiting, is_waiting = is_waiting, self._poller.is_waiting()
                waited = 0.0 if was_waiting and not is_waiting else waited + polling
                self._tell(waited, is_waiting)
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
        if self._order is None and self.has_answers:
            # Of an iterator labels come as it gives them: neither before nor after their turn.
            for _, run in groupby(found, key=lambda message: message[:2]):
                messages = [*run]
                yield messages[0].place, messages
            return
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
            if topic_and_number(place)[0] == self._labels
        )

    def _polled(self, n: int) -> list[Any]:
        """Return what a poll returns; a SourceError for what the client raises."""
        if self._unstarted:
            self._start(self.consumer, [])
        for failed in self._heard.failed_commits():
            self._refused(failed)
        self._heard.check()
        try:
            return self._poller.poll(n, self.timeout)
        except Exception as error:
            # It may be one of a checkpoint that was written in the poll, too.
            if is_of_client(error):
                raise SourceError(f"`{self._name}`: the client says: {error}") from error
            raise

    def _tell(self, waited: float, is_waiting: bool) -> None:
        """Say what is waited for, if that is not a new message: each time that it changes."""
        lag = self.lag  # also kept for when partitions are lost
        if waited < self._tell_at:
            self._tell_at = min(self._tell_at, waited + _PATIENCE)  # partitions came meanwhile
            return
        self._tell_at = waited + _PATIENCE
        left = "" if lag is None else f", of which {lag:,} are known to be there"
        if not self._poller.answers(self._topic):
            said = self._heard.why()
            why = "no broker answers" + ("" if said is None else f" ({said})")
        elif is_waiting:
            why = "no partition is assigned: other members of the group have them, or the session "
            why += "of one that ended goes on (session.timeout.ms)"
        elif lag:
            why = "an open transaction of a producer may hold them back"
        else:
            return
        if why.partition("(")[0] != self._told:
            self._told = why.partition("(")[0]
            if self.on_long_wait is not None:
                self.on_long_wait(f"waiting for messages{left}, for {waited:.0f} s: {why}")

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
        why = None
        if not self._poller.answers(self._topic):
            said = self._heard.why()
            why = "no broker answers any longer" + ("" if said is None else f" ({said})")
        if why is None and self._poller.is_waiting():
            why = "the group has assigned no partition"
        if why is not None:
            raise SourceError(f"`{self._name}`: {why}; nothing came for {waited:.0f} s")

    def _fresh(self, place: str, messages: list[Message]) -> list[Message]:
        """Return messages without those that come a second time, as after a rebalance."""
        start = self._reader.first.next_offset(place) or self._offsets.get(place, 0)
        n_compared = self._check_mark(place, messages) if place in self._unchecked else 0
        fresh = []
        for message in messages:
            # An iterator may give one twice at once.
            if message.offset >= start:
                fresh.append(message)
                start = message.offset + 1
        # An iterator begins where it likes.
        self.passed_over += len(messages) - len(fresh) - n_compared * self._poller.may_wait
        if fresh:
            # Offsets left out: deleted records, marks of transactions.
            first, last = fresh[0].offset, fresh[-1].offset
            n_between = last - self._expected.get(place, first) + 1
            self.jumped += max(0, n_between - len(fresh))
            self._expected[place] = last + 1
            self._marks[place] = [*self._marks.get(place, [])[-1:], _mark_of(fresh[-1])]
        return fresh

    def _check_mark(self, place: str, messages: list[Message]) -> int:
        """Refuse a partition in which the last message that was read is another one now.

        Returns how many messages were read for that only, 0 or 1.
        """
        mark = self._unchecked[place]
        if messages[-1].offset < mark[0]:
            return 0
        del self._unchecked[place]
        found = [_mark_of(message) for message in messages if message.offset == mark[0]]
        if any(one != mark for one in found):
            raise SnapshotError(
                f"`{self._name}`: the message at {mark[0]} of {place} is not the one that was read "
                "there before the checkpoint: the topic was made anew, or is another cluster's; "
                "start anew, with another checkpoint"
            )
        return min(1, len(found))

    def _noted(self, batches: Iterator[tuple[str, Batch, int]]) -> Iterator[Batch]:
        """Yield batches, and note that their messages are read."""
        for place, batch, after in batches:
            self._offsets[place] = after
            self._read.add(place)
            if self._together is not None and batch.keys is not None:
                self._together.look(place, batch.keys)
            yield replace(batch, labels_behind=True) if self._are_labels_behind() else batch

    def _position(self) -> Snapshot:
        found: Snapshot = {"offsets": dict(self._offsets)}
        found |= {"settings": dict(self._settings)} | self._reader.first.snapshot()
        if isinstance(self._decode, AvroDecoder):
            found["schema"] = self._decode.known()
        if ids := self._ids | self._heard.ids:
            found["ids"] = ids
        marks: dict[str, list[Any]] = {}
        for place, after in self._offsets.items():
            of_place = [mark for mark in self._marks.get(place, ()) if mark[0] < after]
            marks |= {place: of_place[-1]} if of_place else {}
        found["marks"] = marks
        return found | ({"jumped": self.jumped} if self.jumped else {})

    def _resume(self, snapshot: Mapping[str, Any]) -> None:
        check_settings(snapshot.get("settings", {}), self._settings)
        self.check_ids(snapshot)
        self._ids = snapshot.get("ids", {})
        self._reader.first.resume(snapshot)
        if isinstance(self._decode, AvroDecoder) and "schema" in snapshot:
            self._decode.resume(snapshot["schema"])
        self._offsets.clear()
        self._offsets.update(snapshot["offsets"])
        self._expected, self.jumped = dict(self._offsets), snapshot.get("jumped", 0)
        # Ids tell more than the last message, which is read a second time for that.
        if not self._ids.keys() & self._heard.ids.keys():
            self._unchecked = dict(snapshot.get("marks", {}))
        self._marks = {place: [mark] for place, mark in snapshot.get("marks", {}).items()}
        # Partitions assigned later start at these offsets, too (see `_assigned`); messages that
        # come a second time nevertheless are skipped.
        self._poller.seek({place: self._first_of(place) for place in self._offsets})

    def offsets_in(self, snapshot: Mapping[str, Any]) -> dict[str, int]:
        """Return the offset of the next message of each partition in a snapshot."""
        return {place: int(offset) for place, offset in snapshot.get("offsets", {}).items()}

    def check_ids(self, snapshot: Mapping[str, Any]) -> None:
        """Refuse, by a SnapshotError, a snapshot of another cluster, or of a topic made anew."""
        check_ids(snapshot.get("ids", {}), self._heard.ids)

    def _first_of(self, place: str) -> int:
        """Return the offset to read from: of the next message, or one that is to be compared."""
        return int(self._unchecked.get(place, [self._offsets[place]])[0])

    def rewind(self) -> None:
        """Refuse, by a SourceError: a stream is read once."""
        raise SourceError(f"`{self.name}` is a stream: it cannot be read a second time (epochs=1)")

    def settled(self, snapshot: Mapping[str, Any]) -> None:
        """Commit the offsets of a snapshot: the checkpoint with it is on the disk.

        A commit that fails for a passing reason (no connection, a rebalance) is counted in
        `failed_commits`; the next commit includes it. SourceError: the broker refuses it for
        another reason.
        """
        offsets = self._to_commit(snapshot)
        try:
            self._poller.commit(offsets)
            self._handed |= offsets
        except Exception as error:
            self._refused(error)

    def _to_commit(self, snapshot: Mapping[str, Any]) -> dict[str, int]:
        return {
            place: after
            for place, after in snapshot["offsets"].items()
            if place in self._read and after >= self._floor.get(place, 0)
        }

    def partitions_to_commit(self, snapshot: Mapping[str, Any], mark: str) -> list[Any]:
        """Return what a transaction is to commit: see `settled`; of a client of confluent-kafka.

        These are the partitions of which more was read than is committed. The broker keeps `mark`
        with the offsets.
        """
        own = self._poller.assigned(self._to_commit(snapshot))
        return [
            type(p)(p.topic, p.partition, offset, mark)
            for p, offset in own
            if offset > self._floor.get(place_of(p), -1)
        ]

    def were_committed(self, partitions: Iterable[Any]) -> None:
        """Note that a transaction has committed these."""
        self._floor |= {place_of(one): one.offset for one in partitions}

    def committed(self, places: Iterable[str]) -> dict[str, Any]:
        """Return what the broker knows as committed of some partitions, by place."""
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(*topic_and_number(place)) for place in places]
        try:
            known = self.consumer.committed(asked, 10.0) if asked else []
        except Exception as error:
            raise SourceError(f"`{self._name}`: offsets cannot be read: {error}") from error
        return {place_of(one): one for one in known}

    def values_of(
        self, batch: Batch, rows: Sequence[int], names: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return fields of the messages of some rows of a batch, as they came; None: not there."""
        assert batch.payloads is not None
        found = []
        for i in rows:
            content: Any = self._reader.content_of(batch.payloads[i])
            if isinstance(content, pa.RecordBatch):
                (content,) = content.to_pylist()
            found.append({name: content.get(name) for name in names})
        return found

    def confirm(self, in_callback: bool = False) -> None:
        """Wait a few seconds at most until the broker has what was committed, as at the end.

        `in_callback`: the client has called; it answers no other thread until that returns.
        """
        handed, self._handed = self._handed, {}
        seconds = self._seconds_left()
        try:
            if in_callback:
                self._poller.confirm(handed, seconds)
                return
            # In a thread: a second signal ends the wait.
            asking = called(lambda: self._poller.confirm(handed, seconds), seconds + 0.5)
            if asking.is_alive():
                raise TimeoutError("no broker answers")
        except Exception as error:
            self._refused(error)

    def _seconds_left(self) -> float:
        """Return how long an answer of the broker is waited for."""
        if self.ends_at is None:
            return COMMIT_SECONDS
        # Half of what is left: something follows.
        return max(0.1, min(COMMIT_SECONDS, (self.ends_at - time.monotonic()) / 2))

    @property
    def counts(self) -> dict[str, int]:
        """Counts for the report of a run: `jumped`, `passed_over`, `failed_commits`, `lag`."""
        names = ("jumped", "passed_over", "failed_commits")
        return {n: getattr(self, n) for n in names} | ({"lag": self.lag} if self.lag else {})

    @property
    def lag(self) -> int | None:
        """How many messages of the assigned partitions follow; None: the client does not know.

        While no partition is assigned, what it was before.
        """
        if lags := self.lags:
            self._last_lag = sum(lags.values())
        return self._last_lag

    @property
    def lags(self) -> dict[str, int]:
        """The same of each partition, by ``topic[partition]``, where the client knows it."""
        lags = {} if self._is_closing else self._poller.lags(self._offsets)
        for place, end in self._ends.items():
            # Marks of transactions after the last message are none.
            if place in lags and end > (expected := self._expected.get(place, end)):
                lags[place] = max(0, lags[place] - (end - expected))
        return lags

    def close(self) -> None:
        """Close the consumer."""
        if not hasattr(self.consumer, "close"):
            return
        self._is_closing = True
        try:
            is_closing = called(self.consumer.close, self._seconds_left()).is_alive()
        except Exception as error:
            # What was read is learnt: no reason to end with an error.
            _log.warning("%s: the consumer cannot be closed: %s", self._name, error)
        else:
            if is_closing:
                _log.warning("%s: no broker lets the consumer leave its group", self._name)

    # Partitions come and go

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        """Start at the highest offset of checkpoint, broker and other members' checkpoints."""
        if not self._is_closing:
            self._start(consumer, partitions)

    def _start(self, consumer: Any, partitions: list[Any]) -> None:
        """Start reading assigned partitions; without a broker that tells their offsets, later."""
        partitions = self._unstarted + partitions
        elsewhere = self._read_elsewhere(partitions)
        try:
            counts = self._counts_of_topics()
            committed = consumer.committed(partitions, self._seconds_left()) if partitions else []
            for known in committed:
                if getattr(known, "error", None) is not None:
                    raise RuntimeError(known.error)
            starts = {
                place: max(self._offsets.get(place, -1), offset, elsewhere.get(place, -1))
                for place, offset in ((place_of(known), known.offset) for known in committed)
            }
            ends = {
                place_of(partition): self._ends_of(consumer, partition)
                for partition in partitions
                if starts[place_of(partition)] >= 0
            }
        except Exception as error:
            if not will_pass(error):
                raise SourceError(f"`{self._name}`: offsets cannot be read: {error}") from error
            _log.warning("%s: offsets cannot be read for now: %s", self._name, error)
            self._unstarted = partitions
            # The client would begin where it likes.
            self._assign(consumer, [])
            return
        self._unstarted = []
        self._check_together(consumer, partitions, counts)
        n_others, is_first = 0, not self._read
        for known in committed:
            place = place_of(known)
            self._check_held(place, known.offset, elsewhere)
            self._read.add(place)
            self._floor[place] = known.offset
            self._ends.pop(place, None)
            if (start := starts[place]) >= 0:
                was_read_by_others = start > self._offsets.get(place, -1)
                if was_read_by_others or self._unchecked.get(place, [start])[0] < ends[place][0]:
                    self._unchecked.pop(place, None)
                self._check_end(place, start, known.offset, ends[place])
                self.jumped += max(0, ends[place][0] - start)
                known_here = max(self._offsets.get(place, 0), elsewhere.get(place, 0))
                n_others += max(0, known.offset - max(known_here, ends[place][0]))
                self._offsets[place] = self._expected[place] = max(start, ends[place][0])
        if n_others and is_first:
            _log.warning(
                "%s: reading goes on after %s messages that the group has read, and this model has "
                "not: other members have, or the checkpoint is an old one, or gone; to learn them, "
                "take another --group (group.id)",
                self._name,
                f"{n_others:,}",
            )
        for partition in partitions:
            if (place := place_of(partition)) in self._offsets:
                partition.offset = self._first_of(place)
        self._say(logging.INFO, "assigned", partitions)
        self._assign(consumer, partitions)

    def _read_elsewhere(self, partitions: Collection[Any]) -> dict[str, int]:
        """Return how far other members of the group have read partitions, by place."""
        if self.learnt_elsewhere is None:
            return {}
        return self.learnt_elsewhere([place_of(one) for one in partitions])

    def _counts_of_topics(self) -> dict[str, int]:
        """Return how many partitions each topic has, where labels have one of their own."""
        if self._together is None:
            return {}
        return self._poller.counts_of(self._settings.get("topics", ()), self._seconds_left())

    def _check_together(
        self, consumer: Any, partitions: Collection[Any], counts: Mapping[str, int]
    ) -> None:
        """Refuse partitions of which events may not meet their labels, in another topic."""
        # A member without partitions leaves them to others.
        if self._together is not None and counts and partitions:
            own = {place_of(one) for one in [*consumer.assignment(), *partitions]}
            self._together.check(counts, own, self.late_by_partition)

    def _check_held(self, place: str, committed: int, elsewhere: Mapping[str, int]) -> None:
        """Refuse what others have read whose checkpoint is not known: events may wait in it."""
        known = max(self._offsets.get(place, 0), elsewhere.get(place, 0))
        if self._together is not None and committed > known:
            raise SourceError(
                f"`{self._name}`: the group has read {place} up to {committed:,}, by another "
                "checkpoint, which holds the events that wait for their labels: go on with that "
                "one, name it by --peers (Checkpoint(peers=)), or take another --group (group.id)"
            )

    def _assign(self, consumer: Any, partitions: list[Any]) -> None:
        """Tell the client where to read; a group may give partitions one after the other."""
        try:
            consumer.assign(partitions)
        except Exception as error:
            # So it is with cooperative-sticky, and with group.protocol=consumer.
            if not hasattr(consumer, "incremental_assign"):
                raise SourceError(f"`{self._name}`: no partition is assigned: {error}") from error
            consumer.incremental_assign(partitions)

    def _ends_of(self, consumer: Any, partition: Any) -> tuple[int, float]:
        """Return the first offset that is there, and the one after the last, if a client knows."""
        if not hasattr(consumer, "get_watermark_offsets"):
            return 0, math.inf
        low, high = consumer.get_watermark_offsets(partition, self._seconds_left())
        return max(0, low), high if high >= 0 else math.inf

    def _check_end(self, place: str, start: int, committed: int, ends: tuple[int, float]) -> None:
        """Refuse to start after the end of a partition, which would be passed over up to there."""
        if start <= ends[1]:
            return
        whose, what = "the checkpoint", "another checkpoint"
        if start == committed:
            whose, what = "the group", "another --group (group.id), or set the group's offsets"
        raise SnapshotError(
            f"`{self._name}`: {place} ends at {ends[1]:.0f}, and {whose} has read up to {start}: "
            f"the topic was made anew or cut, or is another cluster's; start anew, with {what}"
        )

    def _give_up(self, partitions: Collection[Any]) -> None:
        """Write a checkpoint before another member of the group gets partitions."""
        self._drop_held(partitions)
        if self.before_revoke is not None:
            self.before_revoke()
        self.confirm(in_callback=True)

    def _drop_held(self, partitions: Collection[Any]) -> None:
        """Drop what is held of partitions: it is read again, here or by another member."""
        places = [place_of(partition) for partition in partitions]
        self._paused.difference_update(places)
        if self._order is not None:
            self._order.drop(places)
        for place, first in self._reader.first.drop(places).items():
            self._offsets.setdefault(place, first)
        if self.on_gone is not None:
            self.on_gone(places)

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        """Write a checkpoint before another member of the group gets the partitions."""
        if self._is_closing:
            return
        self._say(logging.INFO, "revoked", partitions)
        self._take_away(partitions)
        self._give_up(partitions)
        # The client unassigns them, all or these, when this returns.

    def _lost(self, consumer: Any, partitions: list[Any]) -> None:
        """Forget partitions that another member has; their offsets are kept, not committed."""
        if self._is_closing:
            return
        self._say(logging.WARNING, "lost", partitions)
        self.after_loss()
        self._take_away(partitions)
        self._drop_held(partitions)

    def _take_away(self, partitions: list[Any]) -> None:
        places = set(map(place_of, partitions))
        self._unstarted = [p for p in self._unstarted if place_of(p) not in places]

    def _say(self, level: int, what: str, partitions: Collection[Any]) -> None:
        told = shown(partitions, self._offsets)
        _log.log(level, "%s: partitions %s: %s", self._name, what, told)

    def _refused(self, error: Exception) -> None:
        if not will_pass(error):
            raise SourceError(f"`{self._name}`: offsets cannot be committed: {error}") from error
        _log.warning("%s: a commit failed for now: %s", self._name, error)
        self.failed_commits += 1


def _check_options(batch_size: int, timeout: float, idle: float | None, reading: Reading) -> None:
    """Raise what says how arguments of `KafkaSource` are to be given."""
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
    for what in ("parse_numbers", "headers"):
        if isinstance(names := getattr(reading, what), str):
            raise TypeError(f"{what} must be a list of names, not {names!r}")
    if not timeout > 0 or (idle is not None and not idle > 0):
        raise ValueError(f"timeout and idle must be above 0, not {timeout}, {idle}")
    tombstones, key = reading.tombstones, reading.key
    if tombstones not in (None, "forget") or (tombstones is not None and key is not None):
        raise ValueError(
            f"tombstones must be None, or 'forget' with key=None, not {tombstones!r} with "
            f"key={key!r}: without a value a message has its own key only"
        )


def _mark_of(message: Message) -> list[Any]:
    """Return what tells a message from another one at its offset; as a list, as in files."""
    value = message.value.encode() if isinstance(message.value, str) else message.value
    digest = zlib.crc32(value) if isinstance(value, (bytes, bytearray)) else None
    return [message.offset, message.seconds, digest]
