"""Events, and batches of them as columns: what sources give."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.encoding import are_listed, events_of
from connectors.kinds import cells

_MOST_SHOWN = 2000


class Position(NamedTuple):
    """Where an event came from: a file (None if it came from memory) and a row of it.

    Rows count from 0 and are rows of the file as stored: neither filters nor shuffling renumber
    them.

    Examples
    --------
    >>> str(Position("adult.parquet", 17))
    'adult.parquet: row 17'
    >>> str(Position(None, 17))
    'row 17'

    """

    file: str | None
    row: int

    def __str__(self) -> str:
        """Return the words for a message: ``file: row n``."""
        return f"row {self.row}" if self.file is None else f"{self.file}: row {self.row}"


class Event(NamedTuple):
    """One example: features by name, its label (None if missing), and its position.

    A missing value is a missing key. Text is one-hot: ``{"colour=red": 1.0}``. Features of list
    columns (see `are_listed`) are named by whole numbers.
    """

    x: dict[Any, float]
    y: Any
    position: Position

    @property
    def w(self) -> float:
        """The weight: 1.0 unless the source has a weight column."""
        return 1.0


class WeightedEvent(Event):
    """An event with a weight of its own, which is not one of the three values it unpacks to."""

    weight: float

    @property
    def w(self) -> float:
        """The weight, as it was read."""
        return float(self.weight)

    @classmethod
    def of(cls, event: Event, weight: float) -> "WeightedEvent":
        """Return an event with a weight."""
        made = cls(*event)
        made.weight = weight
        return made


class Reject(NamedTuple):
    """Something read that is no event, such as a payload that cannot be decoded."""

    position: Position
    kind: str  # a few words to count it under
    reason: str
    payload: str  # what was read, as far as it can be shown
    kept: dict[str, Any] | None = None  # of a row: its values in the columns to keep
    message: Any = None  # of a topic: as it came

    @property
    def x(self) -> dict[str, str]:
        """What was read, as ``{"payload": text}``, where an event has its features."""
        return {"payload": self.payload}

    @property
    def y(self) -> None:
        """None: there is no label."""


def shown(value: Any) -> str:
    """Return a payload, a row or an error as some 2,000 characters that can be encoded."""
    try:
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    except Exception as error:
        # A mapping may hold a number of too many digits, or an object of your own.
        text = f"a {type(value).__name__} that cannot be shown: {type(error).__name__}"
    if len(text) > _MOST_SHOWN:
        text = f"{text[:_MOST_SHOWN]}... ({len(text):,} characters)"
    # A lone surrogate, which JSON may hold, cannot be encoded: it is written as \\ud800.
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Consecutive events of one file, as columns.

    Parameters
    ----------
    features
        One column a feature, float32 where the data are and else float64, in the order in which a
        reader of the events would first meet them; null = the event lacks that feature; 1.0 / 0.0
        where text was made one-hot.
    labels
        One label a row, not dictionary encoded; null = missing.
    rows
        The row number in the file of each row, before filters and shuffling; int64.
    file
        The file, None for memory.
    timestamps
        Seconds, float64, NaN = missing; None if the source has no timestamp column.
    rejects
        Messages among these rows that are no events.
    keys
        The key of each row, by which a label that comes later finds its event: hashable, None =
        missing; None if the source has no keys.
    are_answers
        Whether the rows are labels of earlier events, by their keys; they have no features then.
    files
        The file of each row, if they are of several.
    payloads
        The message of each row as it came, with its bytes as `value`; None if there is none.
    weights
        The weight of each row, float64, as it was read (NaN: missing, or no number); None if the
        source has no weights: each is 1.
    kept
        Columns that the source was asked to keep as they are, such as keys; None: there are none.
    ids
        The id of each row, int64 of at least 1, by which it can be forgotten; None: it has none.
    are_tombstones
        Whether the rows ask to forget earlier rows with the same ids; they hold nothing else.
    labels_behind
        Whether labels, of events that come apart from them, are there that were not read yet.

    """

    features: pa.RecordBatch
    labels: pa.Array
    rows: npt.NDArray[np.int64]
    file: str | None
    timestamps: npt.NDArray[np.float64] | None = None
    rejects: tuple[Reject, ...] = ()
    keys: list[Any] | None = None
    are_answers: bool = False
    files: list[str | None] | None = None
    payloads: Sequence[Any] | None = None
    weights: npt.NDArray[np.float64] | None = None
    kept: pa.RecordBatch | None = None
    ids: npt.NDArray[np.int64] | None = None
    are_tombstones: bool = False
    labels_behind: bool = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    @property
    def num_rows(self) -> int:
        """The number of rows (right even if no row has any feature)."""
        return len(self.rows)

    def position(self, i: int) -> Position:
        """Return the position of row i of the batch, from 0: its file, and its row number there."""
        file = self.file if self.files is None else self.files[i]
        return Position(file, int(self.rows[i]))

    def slice(self, offset: int, length: int | None = None) -> "Batch":
        """Return `length` rows (None: all) from `offset` on, without copying.

        The part has those of the `rejects` that come before its rows and after all earlier rows;
        the last part has also those that come after all rows. So each reject is in one of the parts
        that a batch is cut into.
        """
        end = len(self) if length is None else min(len(self), offset + length)
        parts = {name: column[offset:end] for name, column in self._columns_of_rows().items()}
        return replace(self, rejects=self._rejects_of(offset, end), **parts)

    def _columns_of_rows(self) -> dict[str, Any]:
        """Return what there is of each row, by name."""
        found = {name: getattr(self, name) for name in _OF_ROWS}
        return {name: column for name, column in found.items() if column is not None}

    def take(self, places: npt.NDArray[np.int64]) -> "Batch":
        """Return a copy of some rows, in the order of their places, without `rejects`."""
        at = pa.array(places)

        def taken(column: Any) -> Any:
            if isinstance(column, np.ndarray):
                return column[places]
            if isinstance(column, (pa.Array, pa.RecordBatch)):
                return column.take(at)
            return [column[i] for i in places.tolist()]

        parts = {name: taken(column) for name, column in self._columns_of_rows().items()}
        return replace(self, rejects=(), **parts)

    @classmethod
    def concat(cls, batches: Sequence["Batch"]) -> "Batch":
        """Return the rows of batches as one; what only some of the batches have is left out.

        Columns of one name and several types become one of a type that holds all of them;
        ArrowException: there is none.
        """
        if len(batches) == 1:
            return batches[0]
        files = [*chain.from_iterable(one.files or [one.file] * len(one) for one in batches)]
        found = {name: [getattr(one, name) for one in batches] for name in _OF_ROWS}
        parts = {n: _joined(c) for n, c in found.items() if all(one is not None for one in c)}
        return cls(**parts | {"files": files}, file=None)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is learnt of the rows, but for labels and files, as arrays by name."""
        columns = {name: getattr(self, name) for name in _LEARNT if getattr(self, name) is not None}
        return {n: _as_bytes(c) if n in _TABLES else c for n, c in columns.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "Batch":
        """Return the rows for which `to_arrays` returned these arrays."""
        own = {name: array for name, array in arrays.items() if name in _LEARNT}
        parts: dict[str, Any] = {n: _of_bytes(a) if n in _TABLES else a for n, a in own.items()}
        return cls(**parts, labels=pa.nulls(len(arrays["rows"])), file=None)

    def _rejects_of(self, start: int, end: int) -> tuple[Reject, ...]:
        """Return the rejects of rows start .. end - 1: see `slice`."""
        if not self.rejects:
            return ()
        found = [reject.position.row for reject in self.rejects]
        # How many rows come before each: `len(self)` if it comes after all of them.
        before = np.searchsorted(np.sort(self.rows), found)
        n = len(self)
        if end == n and (start < end or n == 0):
            end = n + 1
        taken = ((start <= before) & (before < end)).tolist()
        return tuple(reject for reject, is_in in zip(self.rejects, taken, strict=True) if is_in)

    def events(self) -> Iterator[Event]:
        """Return the event of each row, equal to those of the source's own ``events()``."""
        if self.weights is None:
            return self._events()
        return map(WeightedEvent.of, self._events(), self.weights.tolist())

    def _events(self) -> Iterator[Event]:
        files = repeat(self.file) if self.files is None else self.files
        positions = map(Position, files, self.rows.tolist())
        if are_listed(self.features.schema):
            events = zip(events_of(self.features), self.labels.to_pylist(), positions, strict=True)
            yield from map(Event._make, events)
            return
        names, columns = self._columns()
        rows: Iterator[tuple[Any, ...]] = zip(*columns, strict=True) if columns else repeat(())
        # Not strict: without any column, `rows` never ends.
        for position, y, row in zip(positions, self.labels.to_pylist(), rows, strict=False):
            x = {n: v for n, v in zip(names, row, strict=True) if v is not None}
            yield Event(x, y, position)

    def _columns(self) -> tuple[list[str], list[list[Any]]]:
        """Return names and values in the source's column order; None = no such feature."""
        found = []
        for field, column in zip(self.features.schema, self.features.columns, strict=True):
            metadata = field.metadata or {}
            values = cells(column)
            if b"one_hot" in metadata:
                values = [value or None for value in values]
            found.append((int(metadata.get(b"column", 0)), field.name, values))
        found.sort(key=lambda item: item[0])
        return [item[1] for item in found], [item[2] for item in found]


_TABLES = ("features", "kept")
_LEARNT = (*_TABLES, "rows", "weights", "ids")
_OF_ROWS = (*_LEARNT, "labels", "timestamps", "keys", "files", "payloads")
"""The columns of a batch: record batches; what there is of rows when they are learnt; and all."""


def _joined(columns: list[Any]) -> Any:
    """Return columns of one kind as one; those of record batches need not have the same names."""
    first = columns[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(columns)
    if isinstance(first, pa.Array):
        if all(column.type == first.type for column in columns):
            return pa.concat_arrays(columns)
        tables = [pa.table({"": column}) for column in columns]
        return pa.concat_tables(tables, promote_options="permissive")[0].combine_chunks()
    if not isinstance(first, pa.RecordBatch):
        return [*chain.from_iterable(columns)]
    if all(column.schema.equals(first.schema, check_metadata=True) for column in columns):
        return pa.concat_batches(columns)
    tables = [pa.Table.from_batches([column]) for column in columns]
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    return table.to_batches()[0]


def _as_bytes(rows: pa.RecordBatch) -> npt.NDArray[np.uint8]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return np.frombuffer(sink.getvalue(), np.uint8)


def _of_bytes(content: npt.NDArray[Any]) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
        rows = reader.read_next_batch()
    rows.validate(full=True)
    return rows
