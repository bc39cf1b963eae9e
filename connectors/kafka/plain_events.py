"""Events of the same names whose features are all numbers, read together: most that there are."""

from array import array
from collections.abc import Callable, Sequence
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
    cells_of: Callable[[Any], tuple[Any, ...]]
    others: list[str]  # that are neither features nor asked for in another way


class PlainEvents:
    """Reads decoded events that have the same names, and numbers only, of which some may be null.

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
        features_of: Callable[[list[str]], list[str]],
    ) -> None:
        self._target, self._key, self._timestamp, self._weight = target, key, timestamp, weight
        self._has_keys, self._features_of = has_keys, features_of
        self._last: _Names | None = None

    def read(
        self, events: Sequence[Any], messages: list[Message], kind: str | None
    ) -> dict[str, Any] | None:
        """Return parts of a batch of events with labels of a `kind`.

        None, or an error of any type: they are to be read one by one.
        """
        if set(map(type, events)) != {dict}:
            return None
        how, n = self._how(list(events[0])), len(events)
        if set(map(len, events)) != {len(how.names)} or len(how.features) * (n + 1) > MOST_CELLS:
            return None
        cells, has_nulls = _numbers(list(chain.from_iterable(map(how.cells_of, events))))
        if has_nulls and not all(list(event) == how.names for event in events):
            return None  # the order of the features would be another one
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
        return {
            "features": _columns(cells.reshape(n, len(how.features)), how.features, has_nulls),
            "labels": pa.array(labels),
            "timestamps": np.array(seconds, np.float64),
            "keys": keys,
            "weights": weights,
        }

    def _how(self, names: list[str]) -> _Names:
        if self._last is None or self._last.names != names:
            features = self._features_of(names)
            # itemgetter returns a tuple only for two names or more.
            get: Any = itemgetter(*features) if features[1:] else None
            get = get or (lambda event: tuple(event[name] for name in features))
            asked = {*features, self._target, self._key, self._timestamp, self._weight}
            self._last = _Names(names, features, get, [n for n in names if n not in asked])
        return self._last

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


def _columns(cells: npt.NDArray[np.float64], names: list[str], has_nulls: bool) -> pa.RecordBatch:
    """Return rows of numbers as features, in the order in which the events first have them."""
    columns = np.ascontiguousarray(cells.T)
    order = list(range(len(names)))
    if has_nulls:
        there = ~np.isnan(columns)
        first = there.argmax(axis=1)
        order = sorted(np.flatnonzero(there.any(axis=1)).tolist(), key=first.__getitem__)
    arrays = [pa.array(columns[i], from_pandas=has_nulls) for i in order]
    return record_batch(arrays, [pa.field(names[i], pa.float64()) for i in order], len(cells))
