"""Events of the same names, each of them a number or a text in all, read together: most of all."""

from array import array
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.kafka import message_fields as fields
from connectors.kafka.messages import MOST_CELLS, Message
from connectors.kinds import record_batch

_LARGEST = 1e300
_NONE = type(None)
_OF_LABELS: dict[str, set[type]] = {
    "str": {str, _NONE},
    "bool": {bool, _NONE},
    "float": {int, float, _NONE},
}
"""The types in Python of labels of a type."""


class _Names(NamedTuple):
    """How events of the same names are read."""

    names: list[str]
    features: list[str]
    texts: list[str]  # features
    numbers: list[str]  # the other features
    cells_of: Callable[[Any], tuple[Any, ...]]
    others: list[str]  # that are neither features nor asked for in another way


class PlainEvents:
    """Reads decoded events that have the same names, of numbers or of texts; some may be null.

    The parameters are those of `MessageReader`; `features_of` returns which of some names are
    features. What is read is what reading the events one by one gives.
    """

    def __init__(
        self,
        target: str,
        key: str | None,
        timestamp: str | None,
        weight: str | None,
        has_keys: bool,
        tokens: Collection[str],
        features_of: Callable[[list[str]], list[str]],
    ) -> None:
        self._target, self._key, self._timestamp, self._weight = target, key, timestamp, weight
        self._has_keys, self._tokens, self._features_of = has_keys, tokens, features_of
        self._last: _Names | None = None

    def read(
        self,
        events: Sequence[Any],
        messages: list[Message],
        kind: str | None,
        as_text: Collection[str],
    ) -> tuple[dict[str, Any], list[str]] | None:
        """Return parts of a batch of events with labels of a `kind`, and which features are texts.

        `as_text` are features that are texts. None, or an error of any type: the events are to be
        read one by one.
        """
        if set(map(type, events)) != {dict}:
            return None
        how, n = self._how(events[0], as_text), len(events)
        if set(map(len, events)) != {len(how.names)} or len(how.features) * (n + 1) > MOST_CELLS:
            return None
        flat = list(chain.from_iterable(map(how.cells_of, events)))
        cells, has_nulls = _numbers(flat) if flat else (np.empty(0), False)
        if (has_nulls or how.texts) and not all(list(event) == how.names for event in events):
            return None  # the order of the features would be another one
        rows_of = {name: self._rows_of(self._values(events, name)) for name in how.texts}
        if (len(how.numbers) + sum(map(len, rows_of.values()))) * (n + 1) > MOST_CELLS:
            return None
        labels = self._values(events, self._target)
        if not set(map(type, labels)) <= _OF_LABELS.get(kind or "", {_NONE}):
            return None
        if kind == "float":
            labels = [fields.label_of(label, self._target, False)[0] for label in labels]
        for name in how.others:
            # They are of the same number: none has another name in its place.
            self._values(events, name)
        keys = None
        if self._has_keys:
            own = self._key is None
            found = [m.key for m in messages] if own else self._values(events, self._key)
            keys = list(map(fields.key_of, found))
        seconds = [message.seconds for message in messages]
        if self._timestamp is not None:
            seconds = [
                fields.seconds_of(value, self._timestamp)
                for value in self._values(events, self._timestamp)
            ]
        weights = None
        if self._weight is not None:
            values = self._values(events, self._weight)
            weights = np.array([fields.weight_of(w, self._weight) for w in values], np.float64)
        cells = cells.reshape(n, len(how.numbers))
        parts = {
            "features": _columns(cells, how, rows_of, has_nulls),
            "labels": pa.array(labels),
            "timestamps": np.array(seconds, np.float64),
            "keys": keys,
            "weights": weights,
        }
        return parts, how.texts

    def _how(self, event: dict[str, Any], as_text: Collection[str]) -> _Names:
        names, last = list(event), self._last
        is_known = last is not None and last.names == names
        features = last.features if last is not None and is_known else self._features_of(names)
        texts = [name for name in features if name in as_text or isinstance(event[name], str)]
        if last is None or not is_known or last.texts != texts:
            numbers = [name for name in features if name not in texts]
            # itemgetter returns a tuple only for two names or more.
            get: Any = itemgetter(*numbers) if numbers[1:] else None
            get = get or (lambda event: tuple(event[name] for name in numbers))
            asked = {*features, self._target, self._key, self._timestamp, self._weight}
            others = [n for n in names if n not in asked]
            last = self._last = _Names(names, features, texts, numbers, get, others)
        return last

    def _rows_of(self, column: Sequence[Any]) -> dict[str, list[int]]:
        """Return the rows of each text of a column; an error: something else is in it."""
        found: dict[Any, list[int]] = {}
        for row, text in enumerate(column):
            found.setdefault(text, []).append(row)
        found.pop(None, None)
        if not set(map(type, found)) <= {str} or any(map(fields.MOMENT.match, found)):
            raise ValueError("not only categories")
        if not found.keys().isdisjoint(self._tokens):
            raise ValueError("a token of what is missing")
        "".join(found).encode()  # an error: a lone surrogate, which is no text
        return found

    def _values(self, events: Sequence[dict[str, Any]], name: str | None) -> list[Any]:
        """Return the values of a field that all events have, or none."""
        if name not in events[0]:
            return [None] * len(events)
        return list(map(itemgetter(name), events))


def _numbers(flat: list[Any]) -> tuple[npt.NDArray[np.float64], bool]:
    """Return numbers as floats, NaN for None, and whether there is one.

    An error: there is something else, or a number that cannot be told from that.
    """
    try:
        found, n_none = np.frombuffer(array("d", flat)), 0
    except TypeError:
        if not set(map(type, flat)) <= {float, int, bool, _NONE}:
            raise
        found, n_none = np.array(flat, np.float64), flat.count(None)
    if (np.abs(found) > _LARGEST).any() or (n_none and np.isnan(found).sum() > n_none):
        raise ValueError("a whole number that is too large, or NaN and None")
    return found, n_none > 0


def _columns(
    cells: npt.NDArray[np.float64],
    how: _Names,
    rows_of: dict[str, dict[str, list[int]]],
    has_nulls: bool,
) -> pa.RecordBatch:
    """Return rows as features, one for each text, in the order in which the events have them."""
    columns = np.ascontiguousarray(cells.T)
    number_of = {name: number for number, name in enumerate(how.features)}
    there = ~np.isnan(columns) if has_nulls else np.ones((len(columns), 1), bool)
    found: list[tuple[int, int, str, pa.Array, dict[str, str] | None]] = [
        # Where the events first have it; the feature; its values.
        (int(of.argmax()), number_of[name], name, pa.array(column, from_pandas=has_nulls), None)
        for name, column, of in zip(how.numbers, columns, there, strict=True)
        if of.any()
    ]
    for name, of_texts in rows_of.items():
        for text, rows in of_texts.items():
            column = np.zeros(len(cells))
            column[rows] = 1.0
            about = {"one_hot": name}
            found.append((rows[0], number_of[name], f"{name}={text}", pa.array(column), about))
    if has_nulls or rows_of:
        found.sort(key=itemgetter(0, 1))
    names = [name for _, _, name, _, _ in found]
    if len(set(names)) < len(names):
        raise ValueError("a text makes the name of another feature")
    arrays = [array for _, _, _, array, _ in found]
    told = [pa.field(name, pa.float64(), metadata=about) for _, _, name, _, about in found]
    return record_batch(arrays, told, len(cells))
