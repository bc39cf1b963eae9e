"""Sentences from Parquet files with list columns: a sentence a row, an item a token."""

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from connectors.cursor import Chunk
from connectors.errors import NotReadableError
from connectors.listed import ListEncoder
from connectors.parquet import ParquetSource
from connectors.parquet_files import find_parts, merged_schema
from connectors.rejects import MOST_TOKENS, shown
from connectors.sentence_batch import SENTENCES, SentenceBatch
from connectors.source import Event, Position, Reject

_MOST_SHOWN = 100


class SentenceSource(ParquetSource):
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
            tokens = [f.name for f in schema if _is_list(f.type) and f.name != labels]
        columns = [*tokens] + ([] if labels is None else [labels])
        self._label_column = labels
        options = {"batch_size": SENTENCES} | options
        super().__init__(path, None, columns=(), keep=columns, **options)
        self.tokens = list(tokens)
        self._settings |= {"tokens": self.tokens, "labels": labels}
        names = self._schema.names
        for name in columns:
            kind = self._schema.field(names.index(name)).type
            if names.count(name) > 1:
                raise NotReadableError(
                    f"column {name!r} is in {self.name} more than once: rename one of them"
                )
            if not _is_list(kind):
                raise NotReadableError(
                    f"column {name!r} of {self.name} is {kind}: "
                    f"a column of {self._role_of(name)} holds lists"
                )

    def _role_of(self, column: str) -> str:
        return "labels" if column == self._label_column else "tokens"

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

        A row whose columns are null, of unequal lengths, or have more than 100,000 items is a
        `Reject`, and so is one with a text that is not UTF-8.
        """
        columns = [chunk.data.column(name) for name in self.keep]
        longest = max(pc.max(pc.list_value_length(column)).as_py() or 0 for column in columns)
        try:
            if longest <= MOST_TOKENS:
                rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
                for row, number in zip(rows, chunk.rows.tolist(), strict=True):
                    yield self._event(row, Position(chunk.file, number))
                return
            kind, reason = "too long", f"a sentence of {longest:,} tokens: "
            reason += f"{MOST_TOKENS:,} are accepted"
        except UnicodeDecodeError as error:
            kind = "not UTF-8"
            reason = f"a text of the sentence is not UTF-8: {error.object!r:.100}"
        if chunk.num_rows > 1:
            for i in range(chunk.num_rows):
                yield from self._decoded(chunk.slice(i, 1))
            return
        most = _MOST_SHOWN if kind == "too long" else None
        found = [[_as_text(item) for item in column.flatten()[:most]] for column in columns]
        yield Reject(Position(chunk.file, int(chunk.rows[0])), kind, reason, shown(found))

    def _event(self, row: tuple[Any, ...], position: Position) -> Event | Reject:
        lengths = [None if items is None else len(items) for items in row]
        if None in lengths or len(set(lengths)) > 1:
            found = ", ".join(f"{n}: {k}" for n, k in zip(self.keep, lengths, strict=True))
            reason = f"the columns of a sentence have unequal lengths ({found}; None is null)"
            return Reject(position, "unequal lengths", reason, shown(row))
        n = len(self.tokens)
        tokens = list(zip(*row[:n], strict=True))
        return Event(tokens, row[n] if len(row) > n else None, position)  # type: ignore[arg-type]


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _as_text(item: pa.Scalar) -> Any:
    r"""Return a value; bytes that are not UTF-8 are written as ``\xff``."""
    try:
        return item.as_py()
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "backslashreplace")
