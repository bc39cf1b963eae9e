"""The base of sources of text files: types are decided by the first rows."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.columns import shown_row
from connectors.cursor import Chunk
from connectors.errors import NotReadableError, SourceNotFoundError
from connectors.identity import identity_of
from connectors.kinds import record_batch
from connectors.source import Position, Reject
from connectors.tabular import TabularOptions, TabularSource

BLOCK = 1 << 20
SAMPLE = 10_000
# A hidden column: why a row is no event, and what was read. No column has such a name by accident.
_FAULT = "\x00fault"
_TIME = pa.timestamp("us")

Rows = tuple[pa.RecordBatch, npt.NDArray[np.int64]]
"""Raw rows: columns with a `_FAULT`, and the number of each row in the file."""


class TextSource(TabularSource):
    """The base of sources of text files; see `CSVSource` and `JSONLinesSource`.

    A file is read from its start when a checkpoint continues: its rows have no index.
    """

    def __init__(
        self, path: str | PathLike[str], target: str | None, **options: Unpack[TabularOptions]
    ) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            what = "is a folder" if self._path.is_dir() else "does not exist"
            raise SourceNotFoundError(f"`{path}` {what}; give the path of a file")
        self._identity = identity_of(self._path, self._path.name, None)
        with self._errors():
            types = self._types()
        # Whole numbers may have fractions later; labels and kept columns are as they are.
        exact = {target, *options.get("keep", ())}
        types = {
            name: pa.float64() if pa.types.is_integer(type_) and name not in exact else type_
            for name, type_ in types.items()
        }
        super().__init__(
            pa.schema(list(types.items())),
            name=self._path.name,
            start=Position(self._path.name, 0),
            target=target,
            filters=None,  # none are known here: an argument of that name is refused
            **options,
        )
        self._read_types = {n: types[n] for n in types if n in self._used}

    @property
    def n_rows(self) -> None:
        """None: only known at the end of the file."""

    @abstractmethod
    def _types(self) -> dict[str, pa.DataType]:
        """Return the type of each column, by the first rows."""

    @abstractmethod
    def _rows(self) -> Iterator[Rows]:
        """Yield all rows, with the columns of `_read_types` and `_FAULT`."""

    def _open(self) -> Any:
        """Return the file, decompressed if its name ends in .gz, .bz2, .zst or .lz4."""
        return pa.input_stream(str(self._path), compression="detect")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise NotReadableError(f"`{self._path}` cannot be read: {error}") from error

    def _read(self, start: Position) -> Iterator[Chunk]:
        with self._errors():
            for data, rows in self._rows():
                skip = int(np.searchsorted(rows, start.row))
                if skip < len(rows):
                    yield Chunk(data.slice(skip), rows[skip:], start.file)

    def _faults(self, chunk: Chunk) -> dict[int, Reject]:
        faults = super()._faults(chunk)
        column = chunk.data.column(chunk.data.schema.get_field_index(_FAULT))
        for i in np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)).tolist():
            reason, _, text = column[i].as_py().partition("\x00")
            position = Position(chunk.file, int(chunk.rows[i]))
            text = text or shown_row(chunk.data.select(list(self._read_types)), i)
            faults[i] = Reject(position, "unreadable row", reason, text)
        return faults


def with_faults(
    columns: list[pa.Array], types: dict[str, pa.DataType], faults: pa.Array
) -> pa.RecordBatch:
    """Return columns with one of faults: for each row why it is no event, or null."""
    fields = [*(pa.field(n, t) for n, t in types.items()), pa.field(_FAULT, pa.string())]
    return record_batch([*columns, faults], fields, len(faults))


def type_of(column: pa.Array) -> pa.DataType:
    """Return the type of a column of texts: the first that all of them are."""
    texts = pc.ascii_trim_whitespace(column.drop_null())
    if not len(texts):
        # Nothing is known: a text that comes later is set aside, and its row says so.
        return pa.float64()
    for type_ in (pa.int64(), pa.float64(), pa.bool_(), _TIME, pa.timestamp("us", "UTC")):
        try:
            texts.cast(type_)
        except pa.ArrowInvalid:
            continue
        return type_
    return pa.string()
