"""Sentences from a Parquet file with list columns: a sentence a row, an item a token."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from connectors.errors import MissingColumnError, NotReadableError, SnapshotError
from connectors.identity import check_file, check_settings, identity_of
from connectors.rejects import MOST_TOKENS, shown
from connectors.source import Closing, Event, Position, Reject, Snapshot

_BATCH = 256
_MOST_SHOWN = 100


class SentenceSource(Closing):
    """Sentences and their labels from the list columns of a Parquet file.

    A row is a sentence. A token is the tuple of the items at one place of the token columns; its
    label is the item at that place of the label column.

    Parameters
    ----------
    path
        The file.
    tokens
        The names of the token columns, in this order.
    labels
        The name of the label column; None, the default: there are no labels.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    NotReadableError
        It is no Parquet file, or a column holds no lists.
    MissingColumnError
        There is no such column.

    Examples
    --------
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

    def __init__(self, path: str | Path, tokens: Sequence[str], labels: str | None = None) -> None:
        self._path = Path(path)
        self._tokens, self._labels = list(tokens), labels
        if not self._path.is_file():
            raise FileNotFoundError(2, "No such file", str(path))
        try:
            # Checksums of pages, where a file has them: a changed letter is a valid one.
            self._file = pq.ParquetFile(self._path, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise NotReadableError(f"{path} is no Parquet file: {error}") from error
        schema = self._file.schema_arrow
        for name in self._columns:
            role = "labels" if name == labels else "tokens"
            if name not in schema.names:
                raise MissingColumnError(name, schema.names, self.name, role)
            if schema.names.count(name) > 1:
                raise NotReadableError(
                    f"column {name!r} is in {self.name} more than once: rename one of them"
                )
            kind = schema.field(name).type
            if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
                raise NotReadableError(
                    f"column {name!r} of {self.name} is {kind}: a column of {role} holds lists"
                )
        self._identity = identity_of(self._path, self.name, self.n_rows)
        self._row = 0

    @property
    def _columns(self) -> list[str]:
        return self._tokens + ([] if self._labels is None else [self._labels])

    @property
    def name(self) -> str:
        """The file's name."""
        return self._path.name

    @property
    def n_rows(self) -> int:
        """The number of sentences."""
        n: int = self._file.metadata.num_rows
        return n

    def events(self) -> Iterator[Event | Reject]:
        """Return the unread sentences.

        Returns
        -------
        Iterator[Event | Reject]
            The tokens as x, a list of labels, or None, as y; and the row. A row whose columns are
            null, of unequal lengths, or have more than 100,000 items is a `Reject`, and so is one
            with a text that is not UTF-8.

        Raises
        ------
        NotReadableError
            The file is damaged.

        """
        first = 0
        for group in range(self._file.num_row_groups):
            n = self._file.metadata.row_group(group).num_rows
            if first + n > self._row:
                yield from self._of_group(group, first)
            first += n

    def _of_group(self, group: int, first: int) -> Iterator[Event | Reject]:
        """Yield the unread sentences of a row group, whose first row has this number."""
        try:
            batches = self._file.iter_batches(_BATCH, row_groups=[group], columns=self._columns)
            for batch in batches:
                for sentence in self._of_batch(batch, first):
                    if first >= self._row:
                        self._row = first + 1
                        yield sentence
                    first += 1
        except (pa.ArrowException, OSError) as error:
            raise NotReadableError(f"{self.name}, after row {self._row}: {error}") from error

    def _of_batch(self, batch: pa.RecordBatch, first: int) -> list[Event | Reject]:
        """Return the sentences of a batch, whose first row has this number."""
        columns, n = [batch.column(name) for name in self._columns], batch.num_rows
        longest = max(pc.max(pc.list_value_length(c)).as_py() or 0 for c in columns)
        try:
            if longest > MOST_TOKENS:
                if n == 1:
                    return [self._too_long(columns, longest, first)]
            else:
                rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
                return [
                    self._event(row, Position(self.name, i)) for i, row in enumerate(rows, first)
                ]
        except UnicodeDecodeError as error:
            if n == 1:
                return [self._not_utf8(columns, error, first)]
        return [self._of_batch(batch.slice(i, 1), first + i)[0] for i in range(n)]

    def _too_long(self, columns: list[pa.Array], n: int, row: int) -> Reject:
        found = [_texts(column.flatten()[:_MOST_SHOWN]) for column in columns]
        reason = f"a sentence of {n:,} tokens: {MOST_TOKENS:,} are accepted"
        return Reject(Position(self.name, row), "too long", reason, shown(found))

    def _not_utf8(self, columns: list[pa.Array], error: UnicodeDecodeError, row: int) -> Reject:
        reason = f"a text of the sentence is not UTF-8: {error.object!r:.100}"
        found = [_texts(column.flatten()) for column in columns]
        return Reject(Position(self.name, row), "not UTF-8", reason, shown(found))

    def _event(self, row: tuple[Any, ...], position: Position) -> Event | Reject:
        lengths = [None if items is None else len(items) for items in row]
        if None in lengths or len(set(lengths)) > 1:
            found = ", ".join(f"{n}: {k}" for n, k in zip(self._columns, lengths, strict=True))
            reason = f"the columns of a sentence have unequal lengths ({found}; None is null)"
            return Reject(position, "unequal lengths", reason, shown(row))
        n = len(self._tokens)
        tokens = list(zip(*row[:n], strict=True))
        return Event(tokens, row[n] if len(row) > n else None, position)  # type: ignore[arg-type]

    def snapshot(self) -> Snapshot:
        """Return the position of the next unread sentence.

        Returns
        -------
        Snapshot
            JSON values, ready for ``json.dumps``.

        """
        return {
            "source": "SentenceSource",
            "row": self._row,
            "file": list(self._identity),
            "tokens": self._tokens,
            "labels": self._labels,
        }

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot.

        Parameters
        ----------
        snapshot
            The return value of `snapshot`, of this or an earlier process.

        Raises
        ------
        SnapshotError
            The snapshot is of another source, of another file, or of other columns.

        """
        row = snapshot.get("row")
        if snapshot.get("source") != "SentenceSource" or type(row) is not int or row < 0:
            raise SnapshotError(f"not a snapshot of a SentenceSource: {dict(snapshot)}")
        check_file(snapshot.get("file"), self._identity)
        check_settings(snapshot, {"tokens": self._tokens, "labels": self._labels})
        self._row = row

    def rewind(self) -> None:
        """Go back to the start."""
        self._row = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _texts(items: pa.Array) -> list[Any]:
    """Return values as Python's."""
    return [_as_text(item) for item in items]


def _as_text(item: pa.Scalar) -> Any:
    r"""Return a value; bytes that are not UTF-8 are written as ``\xff``."""
    try:
        return item.as_py()
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "backslashreplace")
