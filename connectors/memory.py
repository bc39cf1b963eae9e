"""Events from a list, for tests and small data."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.batch import Batch, Event, Position, Reject, WeightedEvent, shown
from connectors.errors import NotReadableError, SnapshotError, SourceAborted
from connectors.identity import check_row
from connectors.one_hot import batch_of
from connectors.source import BaseSource, Snapshot


class _Eof:
    """A mark at which an iterator ends; the next iterator continues after it."""


class _Abort:
    """A mark at which reading raises `SourceAborted`, once."""

    def __init__(self) -> None:
        self.done = False


class MemorySource(BaseSource):
    """Events from (x, y) pairs in memory.

    `events` yields each x unchanged, with strings, None and all, so that tests can use data that a
    real stream would contain. `batches` makes text one-hot, leaves out what is missing, names
    features by texts, and has as `Batch.rejects` the pairs that are no events: a value is neither
    number, time nor text, or the label is of another type than those before.

    Marks among the pairs let a unit test restart: at `MemorySource.EOF` the iterator ends, and the
    next one continues after it; at `MemorySource.ABORT` reading raises `SourceAborted` once. A
    resume skips marks directly before the next unread pair, as the run that took the snapshot has
    passed them. ``MemorySource.ABORT()``, with parentheses, is one mark shared by all sources made
    from the same list: only the first of them is aborted.

    Parameters
    ----------
    events
        The pairs; y = None is a missing label.
    name
        What to call the source on a screen.
    weight
        The feature that is the event's weight, a number of at least 0, and no feature then. None:
        all weigh 1.

    Examples
    --------
    >>> source = MemorySource([({"a": 1.0}, True), MemorySource.EOF, ({"a": 2.0}, False)])
    >>> [y for _, y, _ in source.events()]
    [True]
    >>> [y for _, y, _ in source.events()]
    [False]

    """

    _kind = "MemorySource"
    EOF = _Eof
    ABORT = _Abort

    def __init__(
        self, events: Iterable[Any], name: str = "memory", weight: str | None = None
    ) -> None:
        self.weight = weight
        self._items: list[Any] = [_Abort() if item is _Abort else item for item in events]
        self._name = name
        self._next = 0
        self._row = 0
        self._type_of_label: str | None = None

    @property
    def n_rows(self) -> int:
        """The number of pairs."""
        return sum(not _is_mark(item) for item in self._items)

    def events(self) -> Iterator[Event]:
        """Return the unread events, one by one."""
        while not self._stopped():
            x, y = self._items[self._next]
            event = Event(x, y, Position(None, self._row))
            if self.weight is not None:
                x, w = self._weighed(x)
                event = WeightedEvent.of(event._replace(x=x), w)
            self._next += 1
            self._row += 1
            yield event

    def _batches(self, size: int) -> Iterator[Batch]:
        while not self._stopped():
            pairs = []
            for item in self._items[self._next : self._next + size]:
                if _is_mark(item):
                    break
                pairs.append(item)
            batch = self._batch(pairs)
            self._next += len(pairs)
            self._row += len(pairs)
            yield batch

    def _batch(self, pairs: list[Any]) -> Batch:
        """Return the next pairs as a batch, those that are no events as its rejects."""
        rows = np.arange(self._row, self._row + len(pairs), dtype=np.int64)
        weights: Any = None
        if self.weight is not None:
            found = [self._weighed(x) for x, _ in pairs]
            pairs = [(x, y) for (x, _), (_, y) in zip(found, pairs, strict=True)]
            weights = np.array([w for _, w in found], np.float64)
        try:
            batch = batch_of(pairs, rows, None, weights=weights)
            if self._has_type_of_label(batch.labels.type):
                return batch
        except NotReadableError:
            # One by one: which of them cannot be read?
            pass
        good, rejects = [], []
        for i, (x, y) in enumerate(pairs):
            try:
                kind = batch_of([(x, y)], rows[i : i + 1], None).labels.type
                if not self._has_type_of_label(kind):
                    raise NotReadableError(f"the label is of type {kind}, unlike those before")
                good.append(i)
            except NotReadableError as error:
                place = Position(None, int(rows[i]))
                rejects.append(Reject(place, "not an event", str(error), shown(x)))
        pairs, weights = [pairs[i] for i in good], None if weights is None else weights[good]
        return batch_of(pairs, rows[good], None, tuple(rejects), weights=weights)

    def _has_type_of_label(self, kind: pa.DataType) -> bool:
        """Tell whether labels of a type can follow those before; note the type of the first."""
        if pa.types.is_null(kind):
            return True
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        name = "number" if is_number else str(kind)
        self._type_of_label = self._type_of_label or name
        return self._type_of_label == name

    def _position(self) -> Snapshot:
        return {"row": self._row}

    def _resume(self, snapshot: Mapping[str, Any]) -> None:
        row = snapshot.get("row")
        if not isinstance(row, int):
            raise SnapshotError("the snapshot has no whole number as its row")
        check_row(row, self.n_rows, self.name)
        places = [i for i, item in enumerate(self._items) if not _is_mark(item)]
        self._next = 0 if row == 0 else [*places, len(self._items)][row]
        self._row = row

    def rewind(self) -> None:
        """Go back to the start."""
        self._next = self._row = 0

    def _weighed(self, x: Any) -> tuple[Any, float]:
        """Return features without the weight, and the weight; NaN if it is no number."""
        if not isinstance(x, Mapping):
            return x, np.nan
        w = x.get(self.weight)
        others = {name: value for name, value in x.items() if name != self.weight}
        try:
            return others, float(w) if isinstance(w, (int, float, np.number)) else np.nan
        except OverflowError:
            return others, np.nan

    def _stopped(self) -> bool:
        """Act on marks before the next pair; return whether the iterator ends here."""
        while self._next < len(self._items) and _is_mark(item := self._items[self._next]):
            self._next += 1
            if not isinstance(item, _Abort):
                return True
            if not item.done:
                item.done = True
                raise SourceAborted(f"`{self.name}` aborted before {Position(None, self._row)}")
        return self._next >= len(self._items)


def _is_mark(item: Any) -> bool:
    return item is _Eof or isinstance(item, _Eof | _Abort)
