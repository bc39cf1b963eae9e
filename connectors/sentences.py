"""Sentences from Parquet files: a sentence a row; an item of a list a token, or any values."""

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.batch import Event, Position, Reject, shown
from connectors.cursor import Chunk
from connectors.encoding import ListEncoder
from connectors.errors import NotReadableError
from connectors.kinds import is_list
from connectors.parquet import ParquetSource
from connectors.parquet_files import find_parts, merged_schema

SENTENCES = 512
"""Sentences a batch, if a source is not told otherwise."""

MOST_TOKENS = 100_000
"""A sentence with more is none: it would take memory without end."""

_MOST_SHOWN = 100


class SentenceBatch:
    """Consecutive sentences, with what was read between them that is none.

    `items` are events, whose `x` are tokens and whose `y` is a list of labels, or None; and a
    `Reject` for each sentence that cannot be used. The interface is that of `Batch`, but for the
    columns of features.
    """

    are_answers = False
    payloads = weights = None

    def __init__(self, items: Sequence[Event | Reject]) -> None:
        self._items = items
        self._places = [i for i, item in enumerate(items) if not isinstance(item, Reject)]

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self._places)

    @property
    def rejects(self) -> tuple[Reject, ...]:
        """What was read that is no sentence."""
        return tuple(item for item in self._items if isinstance(item, Reject))

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The row number of each sentence."""
        return np.array([event.position.row for event in self.events()], np.int64)

    @property
    def labels(self) -> list[Any]:
        """The list of labels of each sentence, or None."""
        return [event.y for event in self.events()]

    def events(self) -> Iterator[Event]:
        """Return the event of each sentence, in order."""
        return (item for item in self._items if not isinstance(item, Reject))

    def items(self) -> list[Event | Reject]:
        """Return what was read, in order."""
        return list(self._items)

    def position(self, i: int) -> Position:
        """Return the position of sentence `i` of the batch, from 0."""
        return self._items[self._places[i]].position

    def slice(self, offset: int, length: int | None = None) -> "SentenceBatch":
        """Return so many sentences from `offset` on, with their rejects as in `Batch.slice`."""
        end = len(self) if length is None else min(len(self), offset + length)
        ends = [0, *(place + 1 for place in self._places)]
        stop = len(self._items) if end == len(self) else ends[end]
        return SentenceBatch(self._items[ends[offset] : stop])


class RecordEvent(Event):
    """An event whose `x` is a value, or a tuple of several, with other `kept` values by name."""

    kept: dict[str, Any]

    @classmethod
    def of(cls, x: Any, y: Any, position: Position, kept: dict[str, Any]) -> "RecordEvent":
        """Return an event with values that were kept."""
        made = cls(x, y, position)
        made.kept = kept
        return made


class RecordSource(ParquetSource):
    """Examples from a Parquet file, or from a folder of them, whose columns are Python values.

    A row is an example: `x` is the value of the column, or a tuple of the values of several, and
    `y` that of the label column. They are what Arrow makes of strings, lists, structs (dicts) and
    maps (lists of pairs). A row in which a column of `x` is null is a `Reject`.

    Parameters
    ----------
    path
        A file or a folder, as in `ParquetSource`.
    columns
        The names of the columns of `x`, in this order.
    labels
        The name of the label column; None, the default: there are no labels.
    kept
        Other columns, whose values events have by name under `kept`.
    options
        `filters`, `batch_size`, `shuffle_buffer`, `seed` and `late_files`, as in `ParquetSource`.

    Raises
    ------
    SourceNotFoundError, NotReadableError, MissingColumnError
        As in `ParquetSource`.

    Examples
    --------
    >>> import pyarrow.parquet as pq
    >>> table = pa.table({"text": ["pink 1 kicks"], "said": [["kick(pink1)", "steal(pink2)"]]})
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "said.parquet")
    ...     pq.write_table(table, path)
    ...     with RecordSource(path, ["text"], "said") as source:
    ...         for text, candidates, position in source.events():
    ...             print(text, candidates, position.row)
    pink 1 kicks ['kick(pink1)', 'steal(pink2)'] 0

    """

    def __init__(
        self,
        path: str | PathLike[str],
        columns: Sequence[str],
        labels: str | None = None,
        kept: Sequence[str] = (),
        **options: Any,
    ) -> None:
        used = [*columns] + ([] if labels is None else [labels])
        self._label_column = labels
        options = {"batch_size": SENTENCES} | options
        super().__init__(path, None, columns=(), keep=[*used, *kept], **options)
        self.tokens, self._n_used = list(columns), len(used)
        self._settings |= {"tokens": self.tokens, "labels": labels}
        for name in self.keep:
            if self._schema.names.count(name) > 1:
                raise NotReadableError(
                    f"column {name!r} is in {self.name} more than once: rename one of them"
                )

    _counted = "items or characters"

    def _role_of(self, column: str) -> str:
        return "target" if column == self._label_column else "columns"

    def _encoder_of(self, fields: pa.Schema, max_categories: int) -> ListEncoder:
        # There are no features to encode.
        return ListEncoder(fields)

    def _batches(self, size: int) -> Iterator[Any]:
        while (chunk := self._cursor.peek(size)) is not None:
            items = list(self._decoded(chunk))
            self._cursor.advance(chunk.num_rows)
            yield SentenceBatch(items)

    def _decoded(self, chunk: Chunk) -> Iterator[Any]:
        """Yield an event or a reject for each row.

        A row of which `_event` says so is a `Reject`, and so is one with more than 100,000 items or
        characters a column, or with a text that is not UTF-8.
        """
        columns = [self._column(chunk, name) for name in self.keep]
        longest = max(map(_longest, columns), default=0)
        try:
            if longest <= MOST_TOKENS:
                rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
                for row, number in zip(rows, chunk.rows.tolist(), strict=True):
                    yield self._event(row, Position(chunk.file, number))
                return
            kind, reason = "too long", f"a sentence of {longest:,} {self._counted}: "
            reason += f"{MOST_TOKENS:,} are accepted"
        except UnicodeDecodeError as error:
            kind = "not UTF-8"
            reason = f"a text of the sentence is not UTF-8: {error.object!r:.100}"
        if chunk.num_rows > 1:
            for i in range(chunk.num_rows):
                yield from self._decoded(chunk.slice(i, 1))
            return
        most = _MOST_SHOWN if kind == "too long" else None
        found = [[_as_text(item) for item in _flat(column)[:most]] for column in columns]
        yield Reject(Position(chunk.file, int(chunk.rows[0])), kind, reason, shown(found))

    def _column(self, chunk: Chunk, name: str) -> pa.Array:
        """Return a column of a chunk; of a file that lacks it, nulls."""
        if name in chunk.data.schema.names:
            return chunk.data.column(name)
        return pa.nulls(chunk.num_rows, self._schema.field(name).type)

    def _event(self, row: tuple[Any, ...], position: Position) -> Event | Reject:
        n = len(self.tokens)
        if None in row[:n]:
            reason = f"column `{self.tokens[row.index(None)]}` is null"
            return Reject(position, "missing value", reason, shown(row))
        kept = dict(zip(self.keep[self._n_used :], row[self._n_used :], strict=True))
        y = None if self._label_column is None else row[n]
        return RecordEvent.of(row[0] if n == 1 else row[:n], y, position, kept)


class SentenceSource(RecordSource):
    """Sentences and their labels from the list columns of a Parquet file, or of a folder of them.

    A row is a sentence. A token is the tuple of the items at one place of the token columns; its
    label is the item at that place of the label column.

    Parameters
    ----------
    path
        A file or a folder, as in `ParquetSource`.
    tokens
        The names of the token columns, in this order; None, the default: all lists but the labels.
    labels
        The name of the label column; None, the default: there are no labels.
    options
        `filters`, `batch_size`, `shuffle_buffer`, `seed` and `late_files`, as in `ParquetSource`.

    Raises
    ------
    SourceNotFoundError, NotReadableError, MissingColumnError
        As in `ParquetSource`; also if a column holds no lists.

    Examples
    --------
    >>> import pyarrow.parquet as pq
    >>> table = pa.table({"word": [["the", "dog"], ["barks"]], "chunk": [["B", "I"], ["B"]]})
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sentences.parquet")
    ...     pq.write_table(table, path)
    ...     with SentenceSource(path, ["word"], "chunk") as source:
    ...         for tokens, labels, position in source.events():
    ...             print(tokens, labels, position.row)
    [('the',), ('dog',)] ['B', 'I'] 0
    [('barks',)] ['B'] 1

    """

    def __init__(
        self,
        path: str | PathLike[str],
        tokens: Sequence[str] | None = None,
        labels: str | None = None,
        **options: Any,
    ) -> None:
        if tokens is None:
            schema = merged_schema(find_parts(Path(path)), None)
            tokens = [f.name for f in schema if is_list(f.type) and f.name != labels]
        super().__init__(path, tokens, labels, **options)
        if not self.tokens:
            raise NotReadableError(f"{self.name} has no column of lists: a row holds no sentence")
        for name in self.keep:
            if not is_list(kind := self._schema.field(name).type):
                raise NotReadableError(
                    f"column {name!r} of {self.name} is {kind}: "
                    f"a column of {self._role_of(name)} holds lists"
                )

    _counted = "tokens"

    def _role_of(self, column: str) -> str:
        return "labels" if column == self._label_column else "tokens"

    def _event(self, row: tuple[Any, ...], position: Position) -> Event | Reject:
        lengths = [None if items is None else len(items) for items in row]
        if None in lengths or len(set(lengths)) > 1:
            found = ", ".join(f"{n}: {k}" for n, k in zip(self.keep, lengths, strict=True))
            reason = f"the columns of a sentence have unequal lengths ({found}; None is null)"
            return Reject(position, "unequal lengths", reason, shown(row))
        n = len(self.tokens)
        tokens = list(zip(*row[:n], strict=True))
        return Event(tokens, row[n] if len(row) > n else None, position)  # type: ignore[arg-type]


def _longest(column: pa.Array) -> int:
    """Return the most items of a list, or characters of a text, of a column; else 0."""
    if is_list(column.type):
        return pc.max(pc.list_value_length(column)).as_py() or 0
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return pc.max(pc.binary_length(column)).as_py() or 0
    return 0


def _flat(column: pa.Array) -> pa.Array:
    """Return the items of lists, other values as they are."""
    return column.flatten() if is_list(column.type) else column


def _as_text(item: pa.Scalar) -> Any:
    r"""Return a value; bytes that are not UTF-8 are written as ``\xff``."""
    try:
        return item.as_py()
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "backslashreplace")
