"""Fields of messages: labels, keys, times and weights; the columns of messages that are tables."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.batch import Position, Reject, shown
from connectors.encoding import Encoder
from connectors.kafka.messages import Message
from connectors.kinds import kind_of, plain_type, record_batch, type_of_items
from connectors.payloads import PayloadError

NUMBERS = (bool, int, float)
"""The types of numbers in messages."""

LARGEST = float(np.finfo(np.float32).max)
"""The largest number that learners take."""

LOWEST, HIGHEST = -(2**63), 2**63 - 1
"""The range of Arrow's integers."""

MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
"""A text that begins as a date with a time of ISO 8601 does."""


def reject_of(place: str, message: Message, error: Exception) -> Reject:
    """Return what is set aside for a message of a partition; never fails, whatever it holds."""
    reason = shown(error)
    if isinstance(error, UnicodeError):
        reason = f"a name, a text or the label is no valid Unicode: {reason}"
    elif not isinstance(error, PayloadError):
        reason = f"the event cannot be read: {type(error).__name__}: {reason}"
    kind = "undecodable" if isinstance(error, PayloadError) and error.__cause__ else "not an event"
    position = Position(place, message.offset)
    return Reject(position, kind, reason, shown(message.value), message=message)


def check_label(label: Any, name: str) -> None:
    """Refuse a label that a batch or a model file cannot hold."""
    if not isinstance(label, (str, *NUMBERS)):
        raise PayloadError(f"the label {name} is a {type(label).__name__}: use a text or a number")
    if isinstance(label, int) and not LOWEST <= label <= HIGHEST:
        raise PayloadError(f"the label {name} is a whole number of more than 64 bits: use a text")


def check_labels(labels: Iterable[Any], name: str) -> None:
    """Refuse a list of labels, of a field, that cannot be held, or has a missing one."""
    for label in labels:
        check_label(label, f"in `{name}`")
        if label != label:
            raise PayloadError(f"a label in `{name}` is NaN")


def label_of(label: Any, name: str, are_bags: bool) -> tuple[Any, str | None]:
    """Return a label, and its type; None and None: there is none.

    Of `are_bags` it is the list of candidates: a list of labels of one type, or of one label.
    """
    if label is None or (isinstance(label, float) and label != label):
        return None, None
    if not are_bags or not isinstance(label, list):
        check_label(label, f"`{name}`")
        return [label] if are_bags else label, _kind_of_label(label)
    check_labels(label, name)
    kinds = set(map(_kind_of_label, label))
    if len(kinds) > 1:
        raise PayloadError(f"the labels in `{name}` are of several types: {sorted(kinds)}")
    return label, min(kinds, default=None)


def _kind_of_label(label: Any) -> str:
    """Return the type of a label; 1 and 1.0 are one class."""
    return "str" if isinstance(label, str) else "bool" if isinstance(label, bool) else "float"


def key_of(value: Any) -> Any:
    """Return a key as text or number; None if it is neither."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, int) and not LOWEST <= value <= HIGHEST:
        raise PayloadError("the key is a whole number of more than 64 bits: use a text")
    # NaN would never be found again.
    return value if isinstance(value, (str, int, float)) and value == value else None


def seconds_of(value: Any, name: str) -> float | None:
    """Return the seconds since 1970 of a number, or of an ISO 8601 text (by default UTC)."""
    if value is None or (isinstance(value, NUMBERS) and not isinstance(value, bool)):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise PayloadError(
            f"the timestamp `{name}` is {value!r:.100}: use seconds since 1970, or ISO 8601"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def or_nan(seconds: float | None) -> float:
    """Return a time in seconds; NaN if it is missing."""
    return float("nan") if seconds is None else float(seconds)


def weight_of(value: Any, name: str) -> float:
    """Return the weight that a field holds; NaN if it is missing."""
    if value is None or (isinstance(value, NUMBERS) and not isinstance(value, bool)):
        return or_nan(value)
    raise PayloadError(f"the weight `{name}` is {value!r:.100}: use a number of at least 0")


def can_be_learnt(numbers: Iterable[Any], weight: Any, keys: list[Any] | None, label: Any) -> bool:
    """Tell whether an event has a `label`, its key, and no number that learners refuse.

    Of several events all are arrays: tell whether one of them has.
    """
    usable = label & (weight >= 0.0)
    for number in numbers:
        usable = usable & (np.abs(number) <= LARGEST)
    if keys is not None:
        usable = usable & np.array([key is not None for key in keys], bool)
    return bool(np.any(usable))


class _OfSchema:
    """What a function returns for a schema; it is not called again for one that is as the last."""

    def __init__(self, function: Callable[[pa.Schema], Any]) -> None:
        self._function = function
        self._last: tuple[pa.Schema, Any] | None = None

    def __call__(self, schema: pa.Schema) -> Any:
        if self._last is None or not schema.equals(self._last[0]):
            self._last = schema, self._function(schema)
        return self._last[1]


class TableSchemas:
    """Checks the schemas of messages; one that is as the last one is not looked at again."""

    def __init__(self, target: str, is_used: Callable[[str], bool], are_bags: bool = False) -> None:
        self._target, self._is_used, self._are_bags = target, is_used, are_bags
        self._encoder_of = _OfSchema(Encoder)
        self.check = _OfSchema(self._check)
        """Refuses a schema with a column that cannot be used, by a `PayloadError`."""
        self.texts = _OfSchema(_texts)
        """Returns the names of the columns that are texts."""

    def _check(self, schema: pa.Schema) -> None:
        if len(set(schema.names)) < len(schema):
            raise PayloadError("two columns have one name")
        for field in schema:
            is_bag = self._are_bags and field.name == self._target
            type_ = type_of_items(field.type) if is_bag else field.type
            kind = kind_of(type_)
            if kind is None and self._is_used(field.name):
                raise PayloadError(f"column `{field.name}` is {field.type}: no feature")
            is_decimal = pa.types.is_decimal(plain_type(type_))
            if field.name == self._target and (kind in ("time", "duration") or is_decimal):
                raise PayloadError(
                    f"the label `{field.name}` is {field.type}: use texts, numbers or booleans"
                )

    def features_of(self, columns: pa.RecordBatch) -> pa.RecordBatch:
        """Return columns as features; the texts of each batch are counted anew."""
        if all(map(pa.types.is_null, columns.schema.types)):
            return record_batch([], [], columns.num_rows)
        encoder = self._encoder_of(columns.schema)
        encoder.rewind()
        features: pa.RecordBatch = encoder.encode(columns)
        return features


def _texts(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if kind_of(field.type) == "text"]
