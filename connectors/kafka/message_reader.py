"""From messages to batches: fields become features, label, key and time; bad ones `Reject`s."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.batch import Batch, Position, Reject, shown
from connectors.columns import (
    column_of_numbers,
    no_number,
    parsed,
    plain_batch,
    texts_not_utf8,
    without_tokens,
)
from connectors.kafka import message_fields as fields
from connectors.kafka.first_messages import NO_LABEL, FirstMessages
from connectors.kafka.messages import Message, MessagesOfRows, narrow, parts_of
from connectors.kafka.plain_events import PlainEvents
from connectors.kafka.record_ids import id_of_key
from connectors.kinds import kind_of, number_in, plain, plain_type, to_float64, type_of_items
from connectors.one_hot import batch_of, named
from connectors.payloads import (
    AvroDecoder,
    Decoder,
    PayloadError,
    content_of,
    decoder_of,
    flatten,
    name_of,
)
from connectors.text_looks import TextLooks

_log = logging.getLogger(__name__)

_MOST_KEYS = 100_000
_TAKE_APART = ": take it apart (--flatten, transform=flatten), or leave it out (--exclude)"

# A partition, a batch of it, and the offset after the batch's last message.
_Found = tuple[str, Batch, int]


class _Read(NamedTuple):
    """The event that a message holds."""

    x: dict[str, Any]
    y: Any
    key: Any
    seconds: float
    message: Message
    kind: str | None  # the type of the label; None: it has none
    has_text: bool  # whether a feature is a text
    weight: float


class _Table(NamedTuple):
    """The events that a message holds as an Arrow record batch."""

    rows: pa.RecordBatch
    message: Message

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""
        return self.rows.schema


class _Tombstone(NamedTuple):
    """A message with a key and without a value: what was learnt with the key is to be forgotten."""

    message: Message


class Reading(NamedTuple):
    """How messages are read: parameters of `KafkaSource`; settings are compared in this order."""

    decode: str | Decoder
    transform: Decoder | None
    parse_numbers: Sequence[str] | bool
    decimal: str
    missing_tokens: Sequence[str]
    exclude: Sequence[str]
    message_key: str | None
    headers: Sequence[str]
    columns: Sequence[str] | None
    target: str | None
    key: str | None
    timestamp: str | None
    weight: str | None
    labels: str | None
    tombstones: str | None
    as_text: Sequence[str]
    bags: bool

    @property
    def settings(self) -> dict[str, Any]:
        """What a snapshot is refused for if it differs, as JSON values; names in any order."""
        found = self._asdict()
        del found["as_text"], found["bags"]
        found["decode"] = name_of(self.decode)
        found["transform"] = None if self.transform is None else name_of(self.transform)
        found["columns"] = None if self.columns is None else sorted(self.columns)
        numbers = self.parse_numbers
        found["parse_numbers"] = numbers is True or sorted(numbers or ())
        names = ("exclude", "headers", "missing_tokens")
        return found | {name: sorted(found[name]) for name in names}


class MessageReader:
    """Turns messages into batches, each of one partition.

    Messages of the topic `labels` of the reading are labels, of events of the other topics with the
    same key. With `tombstones`, events have ids by the keys of their messages, and messages without
    a value ask to forget them.
    """

    def __init__(self, reading: Reading) -> None:
        target, key, columns, exclude = (
            reading.target,
            reading.key,
            reading.columns,
            reading.exclude,
        )
        timestamp, weight = reading.timestamp, reading.weight
        self._decimal, self._tokens = reading.decimal, frozenset(reading.missing_tokens)
        self._as_text = frozenset(reading.as_text)
        self._bags, self._numbers = reading.bags, reading.parse_numbers or ()
        self.number_texts = TextLooks()
        self._has_labels, self.target = target is not None, target or ""
        self.key, self.timestamp, self.weight = key, timestamp, weight
        self.answers, self.forgets = reading.labels, reading.tombstones is not None
        self._message_key, self._headers = reading.message_key, reading.headers
        self.columns = None
        if columns is not None:
            own = [] if reading.message_key is None else [reading.message_key]
            names = dict.fromkeys([*columns, *own, *reading.headers])
            self.columns = [name for name in names if name not in exclude]
        self.has_keys = key is not None or self.answers is not None or self.forgets
        self._others = {name for name in (target, key, timestamp, weight) if name is not None}
        self._others |= set(exclude)
        self.decode, self._transform = decoder_of(reading.decode), reading.transform
        # A function of the user's may return one object for all messages, with other content.
        is_own = self.decode is decoder_of("json") or isinstance(self.decode, AvroDecoder)
        self._makes_new = is_own and self._transform in (None, flatten)
        # Texts that become numbers, and lists, are looked at one by one.
        self._makes_new &= not (self._bags or self._numbers)
        of_fields = (self.target, key, timestamp, weight)
        self._plain = PlainEvents(*of_fields, self.has_keys, self._tokens, self._feature_names)
        self._schemas = fields.TableSchemas(self.target, self._is_used, self._bags)
        self.first = FirstMessages(self._vote_of, _numbers_of, self.answers)

    def take(self, place: str, messages: list[Message]) -> Iterator[_Found]:
        """Yield batches of messages of a partition, and of earlier ones that were held.

        With each come its partition, and the offset after its last message.
        """
        for part in parts_of(messages):
            if self._makes_new and (batch := self._of_plain(place, part)) is not None:
                yield place, batch, part[-1].offset + 1
                continue
            read = [(message.offset, self._read(place, message)) for message in part]
            for file, ready in self.first.take(place, read):
                yield from self._batches(file, ready)

    def end(self) -> Iterator[_Found]:
        """Yield the events that are held, as no more come."""
        for file, ready in self.first.end():
            yield from self._batches(file, ready)

    def _batches(self, place: str, ready: list[tuple[int, Any]]) -> Iterator[_Found]:
        # Most messages are plain, and need no further look.
        read, known = [], self.first.type_of_labels
        as_text = self._as_text | self.first.textual
        for offset, one in ready:
            if as_text and isinstance(one, _Read):
                one = _with_texts(one, as_text)
            if not (type(one) is _Read and one.kind == known and not one.has_text):
                one = self._of_one_type(place, one)
            read.append((offset, one))
        # Consecutive mappings share a batch, and so do consecutive record batches of one schema.
        for schema, group in groupby(read, lambda one: _schema_of(one[1])):
            if schema is _Tombstone:
                yield from self._tried(place, list(group), _of_tombstones)
                continue
            if schema is not None:
                yield from self._tried(place, list(group), self._of_tables)
                continue
            for run in narrow(group):
                yield from self._tried(place, run, self._of_events)

    def _tried(
        self,
        place: str,
        run: list[tuple[int, Any]],
        make: Callable[[str, list[tuple[int, Any]]], Batch],
    ) -> Iterator[_Found]:
        """Yield one batch; if that fails, halves of it, so that only bad messages are set aside."""
        try:
            batch = make(place, run)
        except Exception as error:
            # Whatever a payload does must not stop the stream.
            if len(run) == 1:
                offset, one = run[0]
                run = [(offset, fields.reject_of(place, one.message, error))]
                yield place, self._of_events(place, run), offset + 1
                return
            middle = len(run) // 2
            yield from self._tried(place, run[:middle], make)
            yield from self._tried(place, run[middle:], make)
        else:
            yield place, batch, run[-1][0] + 1

    def _read(self, place: str, message: Message) -> _Read | _Table | _Tombstone | Reject:
        try:
            found = self.content_of(message)
            if not isinstance(found, pa.RecordBatch):
                return self._event(found, message)
            self._schemas.check(found.schema)
            if self.forgets and message.topic != self.answers:
                _check_key(message, found.num_rows)
            return _Table(self._with_numbers(found, message), message)
        except Exception as error:
            if self.forgets and message.value is None and message.key is not None:
                return _Tombstone(message)
            return fields.reject_of(place, message, error)

    def content_of(self, message: Message) -> Any:
        """Return what a message holds: a mapping, or a record batch."""
        found = content_of(message.value, self.decode, self._transform)
        return self._with_parts(found, message)

    def _with_parts(self, found: Any, message: Message) -> Any:
        """Return the content of a message, with the message's key and headers as fields of it."""
        parts: dict[str, Any] = {}
        if self._headers:
            headers = dict(message.headers or ())
            parts = {name: fields.key_of(headers.get(name)) for name in self._headers}
        if self._message_key is not None:
            parts[self._message_key] = fields.key_of(message.key)
        if not parts or message.topic == self.answers:
            return found
        is_table = isinstance(found, pa.RecordBatch)
        if both := parts.keys() & (found.schema.names if is_table else found.keys()):
            raise PayloadError(
                f"`{min(both)}` is a field of the message, and one of message_key= and headers= "
                "(--message-key, --headers), too"
            )
        if not is_table:
            return {**found, **parts}
        for name, value in parts.items():
            found = found.append_column(name, pa.array([value] * found.num_rows))
        return found

    # The type of labels

    def _kind_of(self, one: Any) -> str | None:
        """Return the type of the label of a message, or of its labels; None if it has none."""
        if isinstance(one, _Read):
            return one.kind
        if isinstance(one, _Table) and self.target in one.schema.names:
            type_ = type_of_items(one.schema.field(self.target).type)
            if pa.types.is_null(type_):
                return None
            if kind_of(type_) == "text":
                return "str"
            return "bool" if pa.types.is_boolean(plain_type(type_)) else "float"
        return None

    def _vote_of(self, one: Any) -> tuple[bool, str | None]:
        """Return whether a message has a label, and its type if the message can be learnt."""
        kind = self._kind_of(one)
        if kind is None:
            if isinstance(one, (Reject, _Tombstone)) or self.answers in (None, one.message.topic):
                return False, None
            kind = NO_LABEL
        try:
            is_table = isinstance(one, _Table)
            is_usable = self._has_usable(one, kind) if is_table else self._is_usable(one)
        except Exception:
            is_usable = False  # it is set aside when a batch is made of it, with the reason
        return True, kind if is_usable else None

    def _is_usable(self, one: _Read) -> bool:
        """Tell whether an event can be learnt, without making a batch of it."""
        pa.array([one.y])  # raises what a batch of it would
        numbers = [v for v in named(one.x).values() if isinstance(v, fields.NUMBERS)]
        return fields.can_be_learnt(numbers, one.weight, [one.key] if self.has_keys else None, True)

    def _has_usable(self, one: _Table, kind: str) -> bool:
        """Tell whether a row of a table can be learnt, without making a batch of it."""
        about = self._about_rows([one], one.rows)
        columns = plain_batch(self._features_in(one.rows, one.message), Position(None, 0))
        numbers = [
            to_float64(column).fill_null(0.0).to_numpy(zero_copy_only=False)
            for column in columns.columns
            if kind_of(column.type) not in ("text", "null")
        ]
        has_label = np.ones(one.rows.num_rows, bool)
        if kind != NO_LABEL:
            has_label = about["labels"].is_valid().to_numpy(zero_copy_only=False)
        weights = 1.0 if about["weights"] is None else about["weights"]
        can_be = fields.can_be_learnt(numbers, weights, about["keys"], has_label)
        return can_be and not texts_not_utf8(columns)

    def _of_one_type(self, place: str, one: Any) -> Any:
        """Return a message's content; a `Reject` if its label or a number is of another type."""
        if (name := self._text_for_a_number(one)) is not None:
            reason = f"feature `{name}` is a text; in most of the first messages it was a number"
            return fields.reject_of(place, one.message, PayloadError(reason))
        kind, known = self._kind_of(one), self.first.type_of_labels
        if kind is None or known is None or kind == known:
            return one
        what = f"is {one.y!r:.100}, a {kind}" if isinstance(one, _Read) else f"is a {kind}"
        reason = f"the label `{self.target}` {what}; those of this stream are {known}"
        return fields.reject_of(place, one.message, PayloadError(reason))

    def _text_for_a_number(self, one: Any) -> str | None:
        """Return the name of a feature that is a text, but was a number in the first messages."""
        numeric = self.first.numeric
        if (
            not numeric
            or isinstance(one, (Reject, _Tombstone))
            or one.message.topic == self.answers
        ):
            return None
        if isinstance(one, _Table):
            texts = self._schemas.texts(one.schema)
        else:
            texts = [name for name, value in one.x.items() if isinstance(value, str)]
        return next((name for name in texts if name in numeric), None)

    def _is_used(self, name: str) -> bool:
        return self.columns is None or name in self.columns or name in self._others

    # Events one by one

    def _event(self, found: Mapping[str, Any], message: Message) -> _Read:
        """Return features, label, key and time of an object."""
        if len(found) > _MOST_KEYS:
            raise PayloadError(f"{len(found):,} fields are more than the {_MOST_KEYS:,} accepted")
        label, kind = fields.label_of(found.get(self.target), self.target, self._bags)
        key = None
        if self.has_keys:
            if self.forgets and message.topic != self.answers:
                _check_key(message, 1)
            key = fields.key_of(message.key if self.key is None else found.get(self.key))
        seconds = message.seconds
        if self.timestamp is not None:
            seconds = fields.seconds_of(found.get(self.timestamp), self.timestamp)
        weight = 1.0
        if self.weight is not None and message.topic != self.answers:
            weight = fields.weight_of(found.get(self.weight), self.weight)
        x, has_text = self._features(found, message)
        return _Read(x, label, key, fields.or_nan(seconds), message, kind, has_text, weight)

    def _features(self, found: Mapping[str, Any], message: Message) -> tuple[dict[str, Any], bool]:
        """Return the features, and whether one of them is a text."""
        if message.topic == self.answers:
            return {}, False
        if self.columns is None:
            x = {name: value for name, value in found.items() if name not in self._others}
        else:
            x = {name: found.get(name) for name in self.columns if name != self.target}
        if set(map(type, x.values())) == {float}:
            self.number_texts.pass_by(1)
            return x, False
        for name in x if self._tokens else ():
            if isinstance(x[name], str) and x[name] in self._tokens:
                x[name] = None
        for name in x if self._numbers is True else x.keys() & self._numbers:
            if isinstance(text := x[name], str):
                number = number_in(text, self._decimal)
                if number is None and text.strip() and self._numbers is not True:
                    raise PayloadError(no_number(name, text))
                x[name] = text if number is None and text.strip() else number
        self.number_texts.look_at(x)
        for name, value in x.items():
            if value is not None and not isinstance(value, (str, *fields.NUMBERS)):
                raise PayloadError(f"feature `{name}` is a {type(value).__name__}{_TAKE_APART}")
            if isinstance(value, str) and fields.MOMENT.match(value):
                # One-hot, each event would have a feature of its own.
                raise PayloadError(
                    f"feature `{name}` is a date with a time, as text: make it a number, or name "
                    "the field with timestamp= (--timestamp), parse_numbers= (--parse-numbers) or "
                    "exclude= (--exclude)"
                )
            if isinstance(value, int) and abs(value) > 1e300:
                raise PayloadError(f"feature `{name}` is too large for a float")
        return x, any(isinstance(value, str) for value in x.values())

    def _of_events(self, place: str, read: list[tuple[int, Any]]) -> Batch:
        """Return events and rejects as one batch."""
        rejects = tuple(one for _, one in read if isinstance(one, Reject))
        kept = [(offset, one) for offset, one in read if not isinstance(one, Reject)]
        events = [one for _, one in kept]
        are_answers = bool(events) and events[0].message.topic == self.answers
        ids = None
        if self.forgets and not are_answers:
            ids = np.array([id_of_key(event.message.key) for event in events], np.int64)
        return batch_of(
            [(event.x, event.y) for event in events],
            np.array([offset for offset, _ in kept], np.int64),
            place,
            rejects,
            timestamps=self._in_seconds(np.array([event.seconds for event in events], np.float64)),
            keys=[event.key for event in events] if self.has_keys else None,
            payloads=[event.message for event in events],
            weights=None if self.weight is None else np.array([event.weight for event in events]),
            are_answers=are_answers,
            ids=ids,
        )

    def _of_plain(self, place: str, part: list[Message]) -> Batch | None:
        """Return messages of the same numbers and texts as a batch; None: look at each of them."""
        is_decided = not self._has_labels or self.first.is_decided(place)
        if part[0].topic == self.answers or not is_decided:
            return None
        try:
            events = [self.decode(message.value) for message in part]
            if self._transform is not None:
                events = list(map(self._transform, events))
            if self._headers or self._message_key is not None:
                events = list(map(self._with_parts, events, part))
            as_text = self._as_text | self.first.textual
            found = self._plain.read(events, part, self.first.type_of_labels, as_text)
            ids = self._ids_of(part)
        except Exception as error:
            # One of them cannot be learnt: which one, and why, is told one by one.
            _log.debug("%s: messages are read one by one: %s", place, shown(error))
            return None
        if found is None or not self.first.numeric.isdisjoint(found[1]):
            return None
        read, texts = found
        if not texts or self.number_texts.is_done:
            self.number_texts.pass_by(len(part))
        else:
            for event in events:
                self.number_texts.look_at({name: event[name] for name in texts})
        read["timestamps"] = self._in_seconds(read["timestamps"])
        rows = np.array([message.offset for message in part], np.int64)
        return Batch(**read, rows=rows, file=place, payloads=part, ids=ids)

    def _in_seconds(self, moments: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the times of events in seconds; the broker's are."""
        name = self.timestamp
        return moments if name is None else self.number_texts.in_seconds(moments, name)

    def _ids_of(self, messages: Sequence[Message]) -> npt.NDArray[np.int64] | None:
        """Return the ids of events by which they can be forgotten, if they have any."""
        if not self.forgets:
            return None
        for message in messages:
            _check_key(message, 1)
        return np.array([id_of_key(message.key) for message in messages], np.int64)

    # Record batches

    def _with_numbers(self, rows: pa.RecordBatch, message: Message) -> pa.RecordBatch:
        """Return the features of `parse_numbers` as numbers; refuse other texts in them."""
        names = [] if message.topic == self.answers else self._feature_names(rows.schema.names)
        if self._tokens:
            rows = without_tokens(plain_batch(rows, Position(None, 0)), [*self._tokens], names)
        for name in names if self._numbers is True else set(names).intersection(self._numbers):
            found, faults = parsed(plain_batch(rows, Position(None, 0)), [name], self._decimal)
            if faults and self._numbers is not True:
                raise PayloadError(next(iter(faults.values())))
            rows = rows if faults else found
        self.number_texts.look(rows, names)
        return rows

    def _of_tables(self, place: str, read: list[tuple[int, Any]]) -> Batch:
        """Return record batches of one schema as one batch."""
        tables: list[_Table] = [table for _, table in read]
        whole = pa.concat_batches([table.rows for table in tables])
        features = self._schemas.features_of(self._features_in(whole, tables[0].message))
        return Batch(features, file=place, **self._about_rows(tables, whole))

    def _features_in(self, rows: pa.RecordBatch, message: Message) -> pa.RecordBatch:
        """Return the columns that are features, of rows of such messages."""
        is_answer = message.topic == self.answers
        return rows.select([] if is_answer else self._feature_names(rows.schema.names))

    def _about_rows(self, tables: list[_Table], whole: pa.RecordBatch) -> dict[str, Any]:
        """Return what a batch has beside the features of the rows of tables, which are `whole`."""
        are_answers = tables[0].message.topic == self.answers
        counts, names = [table.rows.num_rows for table in tables], whole.schema.names
        rows = np.repeat(np.array([t.message.offset for t in tables], np.int64), counts)
        labels = plain(whole.column(self.target)) if self.target in names else pa.nulls(len(rows))
        seconds = np.repeat([fields.or_nan(table.message.seconds) for table in tables], counts)
        if self.timestamp is not None:
            seconds = self._in_seconds(column_of_numbers(whole, self.timestamp))
        keys = None
        if self.has_keys:
            keys = [t.message.key for t, n in zip(tables, counts, strict=True) for _ in range(n)]
            if self.key in names:
                keys = plain(whole.column(self.key)).to_pylist()
            keys = list(map(fields.key_of, keys))
        weights = None
        if self.weight is not None:
            weights = np.ones(len(rows)) if are_answers else column_of_numbers(whole, self.weight)
        ids = None
        if self.forgets and not are_answers:
            ids = np.array([id_of_key(table.message.key) for table in tables], np.int64)
        return {
            "labels": labels,
            "rows": rows,
            "timestamps": seconds,
            "keys": keys,
            "are_answers": are_answers,
            "weights": weights,
            "ids": ids,
            "payloads": MessagesOfRows([(table.rows, table.message) for table in tables]),
        }

    def _feature_names(self, names: list[str]) -> list[str]:
        if self.columns is None:
            return [name for name in names if name not in self._others]
        return [name for name in self.columns if name in names and name != self.target]


def _schema_of(one: Any) -> Any:
    """Return what messages of one batch have in common."""
    return _Tombstone if isinstance(one, _Tombstone) else getattr(one, "schema", None)


def _check_key(message: Message, n: int) -> None:
    """Refuse a message whose events could not be forgotten one by one."""
    if message.key is None:
        raise PayloadError("the message has no key, by which it could be forgotten")
    if n != 1:
        raise PayloadError(f"a message of {n} rows has one key: they could not be told apart")


def _of_tombstones(place: str, read: list[tuple[int, _Tombstone]]) -> Batch:
    """Return requests to forget as a batch."""
    keys = [one.message.key for _, one in read]
    return batch_of(
        [({}, None)] * len(read),
        np.array([offset for offset, _ in read], np.int64),
        place,
        keys=list(map(fields.key_of, keys)),
        ids=np.array(list(map(id_of_key, keys)), np.int64),
        are_tombstones=True,
    )


def _with_texts(one: _Read, names: Collection[str]) -> _Read:
    """Return an event in which whole numbers and booleans of the named fields are texts."""
    found = {n: v for n, v in one.x.items() if n in names and isinstance(v, int)}
    if not found:
        return one
    texts = {n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in found.items()}
    return one._replace(x=one.x | texts, has_text=True)


def _numbers_of(one: Any) -> dict[str, bool]:
    """Return, for the features of a message, whether they are numbers; without missing ones."""
    if isinstance(one, _Read):
        return {n: not isinstance(value, str) for n, value in one.x.items() if value is not None}
    if not isinstance(one, _Table):
        return {}
    kinds = {field.name: kind_of(field.type) for field in one.schema}
    return {name: kind != "text" for name, kind in kinds.items() if kind != "null"}
