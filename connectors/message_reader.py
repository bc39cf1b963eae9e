"""From messages to batches: fields become features, label, key and time; bad ones `Reject`s."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.kinds import kind_of, plain, to_float64
from connectors.messages import Message
from connectors.pairs import batch_of, encoded
from connectors.payloads import Decoder, PayloadError, decoded, transformed
from connectors.source import Batch, Position, Reject

_MOST_SHOWN = 2000
_MOST_KEYS = 100_000
_MOST_CELLS = 2_000_000
_NUMBERS = (bool, int, float)


class _Read(NamedTuple):
    """The event that a message holds."""

    x: dict[str, Any]
    y: Any
    key: Any
    seconds: float


class _Table(NamedTuple):
    """The events that a message holds as an Arrow record batch."""

    rows: pa.RecordBatch
    message: Message


class MessageReader:
    """Turns messages of one partition into batches.

    Parameters
    ----------
    target, key, timestamp
        Names of the fields that are the label, the key and the time. Without `key` it is the
        message's own key, without `timestamp` the broker's.
    columns
        Names of the fields that are features; None: all but these three.
    decode
        Turns a payload into a mapping or a record batch.
    answers
        The topic whose messages are labels, of events of the other topics with the same key; None:
        there is no such topic.
    exclude
        Names of fields that are no features.
    transform
        Applied to what `decode` returns; None: nothing is.

    """

    def __init__(
        self,
        target: str,
        key: str | None,
        timestamp: str | None,
        columns: Sequence[str] | None,
        decode: Decoder,
        answers: str | None,
        exclude: Sequence[str] = (),
        transform: Decoder | None = None,
    ) -> None:
        self.target, self.key, self.timestamp, self.answers = target, key, timestamp, answers
        self.columns = None
        if columns is not None:
            self.columns = [name for name in columns if name not in exclude]
        self.has_keys = key is not None or answers is not None
        self._others = {name for name in (target, key, timestamp) if name is not None}
        self._others |= set(exclude)
        self._decode, self._transform = decode, transform
        self.label_kind: str | None = None

    def batches_of(self, place: str, messages: list[Message]) -> Iterator[tuple[Batch, int]]:
        """Yield the events of messages of one partition in batches.

        Parameters
        ----------
        place
            The partition, as ``topic[partition]``.
        messages
            The messages, in order.

        Returns
        -------
        Iterator[tuple[Batch, int]]
            Batches, each with the offset after its last message.

        """
        read = [(message.offset, self._read(place, message)) for message in messages]
        are_answers = bool(messages) and messages[0].topic == self.answers
        # Consecutive mappings share a batch, and so do consecutive record batches of one schema.
        for schema, group in groupby(read, lambda one: _schema_of(one[1])):
            if schema is not None:
                tables: list[Any] = [table for _, table in group]
                batch = self._of_tables(place, tables, are_answers)
                yield batch, tables[-1].message.offset + 1
                continue
            for run in _narrow(group):
                yield self._of_events(place, run, are_answers), run[-1][0] + 1

    def _read(self, place: str, message: Message) -> _Read | _Table | Reject:
        try:
            found = decoded(self._decode, message.value)
            if self._transform is not None:
                found = transformed(self._transform, found)
            if not isinstance(found, pa.RecordBatch):
                return self._event(found, message)
            for field in found.schema:
                if kind_of(field.type) is None and self._is_used(field.name):
                    raise PayloadError(f"column `{field.name}` is {field.type}: no feature")
            return _Table(found, message)
        except PayloadError as error:
            kind = "undecodable" if error.__cause__ else "not an event"
            position = Position(place, message.offset)
            return Reject(position, kind, str(error), _shown(message.value))

    def _is_used(self, name: str) -> bool:
        return self.columns is None or name in self.columns or name in self._others

    # Events one by one

    def _event(self, found: Mapping[str, Any], message: Message) -> _Read:
        """Return features, label, key and time of an object."""
        if len(found) > _MOST_KEYS:
            raise PayloadError(f"{len(found):,} fields are more than the {_MOST_KEYS:,} accepted")
        label = found.get(self.target)
        if label is not None:
            self._check_label(label)
        key = None
        if self.has_keys:
            key = _key(message.key if self.key is None else found.get(self.key))
        seconds = message.seconds
        if self.timestamp is not None:
            seconds = _seconds(found.get(self.timestamp), self.timestamp)
        return _Read(self._features(found, message), label, key, _or_nan(seconds))

    def _features(self, found: Mapping[str, Any], message: Message) -> dict[str, Any]:
        if message.topic == self.answers:
            return {}
        if self.columns is None:
            x = {name: value for name, value in found.items() if name not in self._others}
        else:
            x = {name: found.get(name) for name in self.columns if name != self.target}
        if set(map(type, x.values())) == {float}:
            return x
        for name, value in x.items():
            if value is not None and not isinstance(value, (str, *_NUMBERS)):
                raise PayloadError(f"feature `{name}` is a {type(value).__name__}")
            if isinstance(value, int) and abs(value) > 1e300:
                raise PayloadError(f"feature `{name}` is too large for a float")
        return x

    def _check_label(self, label: Any) -> None:
        if not isinstance(label, (str, *_NUMBERS)):
            raise PayloadError(f"the label `{self.target}` is a {type(label).__name__}")
        kind = "float" if type(label) is int else type(label).__name__
        if self.label_kind is None:
            self.label_kind = kind
        elif kind != self.label_kind:
            raise PayloadError(
                f"the label `{self.target}` is {label!r}, a {kind}; those before were "
                f"{self.label_kind}"
            )

    def _of_events(self, place: str, read: list[tuple[int, Any]], are_answers: bool) -> Batch:
        """Return events and rejects as one batch."""
        rejects = tuple(one for _, one in read if isinstance(one, Reject))
        kept = [(offset, one) for offset, one in read if not isinstance(one, Reject)]
        events = [one for _, one in kept]
        return batch_of(
            [(event.x, event.y) for event in events],
            np.array([offset for offset, _ in kept], np.int64),
            place,
            rejects,
            timestamps=np.array([event.seconds for event in events], np.float64),
            keys=[event.key for event in events] if self.has_keys else None,
            are_answers=are_answers,
        )

    # Record batches

    def _of_tables(self, place: str, tables: list[_Table], are_answers: bool) -> Batch:
        """Return record batches of one schema as one batch."""
        counts = [table.rows.num_rows for table in tables]
        rows = np.repeat(np.array([t.message.offset for t in tables], np.int64), counts)
        whole = pa.concat_batches([table.rows for table in tables])
        names = whole.schema.names
        labels = whole.column(self.target) if self.target in names else pa.nulls(len(rows))
        seconds = np.repeat([_or_nan(table.message.seconds) for table in tables], counts)
        if self.timestamp is not None:
            seconds = _column_of_seconds(whole, self.timestamp)
        keys = None
        if self.has_keys and self.key in names:
            keys = [_key(value) for value in plain(whole.column(self.key)).to_pylist()]
        elif self.has_keys:
            keys = [
                _key(t.message.key) for t, n in zip(tables, counts, strict=True) for _ in range(n)
            ]
        wanted = [] if are_answers else self._feature_names(names)
        features = encoded(whole.select(wanted))
        return Batch(
            features,
            labels,
            rows,
            place,
            timestamps=seconds,
            keys=keys,
            are_answers=are_answers,
        )

    def _feature_names(self, names: list[str]) -> list[str]:
        if self.columns is None:
            return [name for name in names if name not in self._others]
        return [name for name in self.columns if name in names and name != self.target]


def _schema_of(one: Any) -> pa.Schema | None:
    return one.rows.schema if isinstance(one, _Table) else None


def _key(value: Any) -> Any:
    """Return a key as text or number; None if it is neither."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if isinstance(value, (str, int, float)) else None


def _seconds(value: Any, name: str) -> float | None:
    """Return the seconds since 1970 of a number, or of an ISO 8601 text (by default UTC)."""
    if value is None or (isinstance(value, _NUMBERS) and not isinstance(value, bool)):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise PayloadError(
            f"the timestamp `{name}` is {value!r:.100}: use seconds since 1970, or ISO 8601"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _or_nan(seconds: float | None) -> float:
    return float("nan") if seconds is None else float(seconds)


def _column_of_seconds(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.float64]:
    """Return the times of a record batch in seconds, NaN where one is missing."""
    at = batch.schema.get_field_index(name)
    if at < 0 or kind_of(batch.schema.field(at).type) not in ("time", "number"):
        return np.full(batch.num_rows, np.nan)
    values: npt.NDArray[np.float64] = to_float64(plain(batch.column(at))).to_numpy(
        zero_copy_only=False
    )
    return values


def _narrow(read: Iterator[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
    """Cut events into runs whose batches stay small, however many feature names they have."""
    run: list[tuple[int, Any]] = []
    names: set[Any] = set()
    n_texts = 0
    for offset, one in read:
        if not isinstance(one, Reject):
            texts = list(map(type, one.x.values())).count(str)
            names.update(one.x)
            n_texts += texts
            if run and (len(names) + n_texts) * (len(run) + 1) > _MOST_CELLS:
                yield run
                run, names, n_texts = [], set(one.x), texts
        run.append((offset, one))
    yield run


def _shown(value: Any) -> str:
    """Return a payload as text, cut short."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return (
        text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}... ({len(text):,} characters)"
    )
