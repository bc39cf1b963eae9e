"""Events from Arrow data: tables, record batches, data frames, and Arrow IPC (Feather) files."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from connectors.batch import Position
from connectors.columns import plain_batch
from connectors.cursor import Chunk
from connectors.errors import NotReadableError, SourceError, SourceNotFoundError
from connectors.identity import check_row, identity_of
from connectors.tabular import TabularOptions, TabularSource

_FILE_MAGIC = b"ARROW1"
_STREAM_MAGIC = b"\xff\xff\xff\xff"
# Rows decoded at once: a table in memory may be one batch of any size.
_PIECE = 65_536
_FOREIGN = {
    b"PAR1": "it is a Parquet file: use ParquetSource",
    b"FEA1": "it is in the old Feather V1 format: write it again with pyarrow.feather",
}


class ArrowSource(TabularSource):
    """Events from Arrow data in memory or in an IPC file.

    Parameters
    ----------
    data
        A `pyarrow.Table` or `RecordBatch`; a data frame of pandas, polars or anything else with
        ``__arrow_c_stream__``; a `RecordBatchReader`, which can be read only once (going back
        raises, going forward skips rows); or the path of an Arrow IPC file or IPC stream (which
        one is detected; Feather files are IPC files).
    target, options
        As in `TabularSource`: `columns`, `exclude`, `batch_size`, `shuffle_buffer`, `seed`,
        `timestamp`, `weight`, `keep`, `parse_numbers`, `decimal`, `missing_tokens`,
        `max_categories`.

    Raises
    ------
    SourceNotFoundError
        No such file.
    NotReadableError
        Not Arrow data, truncated, empty, or a column type that cannot be used.
    MissingColumnError, NoFeaturesError, SourceError
        See `TabularSource`.

    Examples
    --------
    >>> table = pa.table({"size": [1, 2], "colour": ["red", None], "label": [True, False]})
    >>> for x, y, position in ArrowSource(table, "label").events():
    ...     (x, y, str(position))
    ({'size': 1.0, 'colour=red': 1.0}, True, 'row 0')
    ({'size': 2.0}, False, 'row 1')

    """

    def __init__(self, data: Any, target: str | None, **options: Unpack[TabularOptions]) -> None:
        self._data = Path(data) if isinstance(data, str | PathLike) else data
        self._taken = 0
        shape = getattr(self._data, "shape", None)
        self._n_rows: int | None = shape[0] if isinstance(shape, tuple) else None
        with self._opened() as reader:
            schema = reader.schema
            if isinstance(reader, ipc.RecordBatchFileReader):
                self._n_rows = sum(batch.num_rows for batch in _batches_of(reader))
        file = self._data.name if isinstance(self._data, Path) else None
        if isinstance(self._data, Path):
            self._identity = identity_of(self._data, self._data.name, self._n_rows)
        super().__init__(
            schema,
            name=file or type(data).__name__,
            start=Position(file, 0),
            target=target,
            filters=None,  # none are known here: an argument of that name is refused
            **options,
        )

    @property
    def n_rows(self) -> int | None:
        """All rows, None for an IPC stream or a reader, which only know at their end."""
        return self._n_rows

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Give a reader of record batches, and close it after use, but for one of the caller's."""
        data = self._data
        if isinstance(data, Path):
            with _opened_file(data) as reader:
                yield reader
        elif isinstance(data, pa.RecordBatchReader):
            yield data
        elif isinstance(data, pa.Table):
            yield data.to_reader()
        elif hasattr(data, "__arrow_c_stream__"):
            with closing(pa.RecordBatchReader.from_stream(data)) as reader:
                yield reader
        else:
            raise NotReadableError(
                f"cannot read events from a {type(data).__name__}; accepted are a pyarrow Table, "
                "RecordBatch or RecordBatchReader, a data frame with __arrow_c_stream__, "
                "and the path of an Arrow IPC file"
            )

    def _check(self, position: Position) -> None:
        super()._check(position)
        check_row(position.row, self._n_rows, self.name)
        if position.row < self._taken:
            raise SourceError(
                f"a RecordBatchReader can be read only once: {self._taken} rows have been taken "
                f"from it, so it cannot go back to row {position.row}; "
                "give ArrowSource a table (reader.read_all()) or a file instead"
            )

    def _read(self, start: Position) -> Iterator[Chunk]:
        # After an error while reading, the cursor calls this again without `resume`.
        self._check(start)
        row = self._taken
        with self._opened() as reader:
            for batch in _batches_of(reader):
                if isinstance(self._data, pa.RecordBatchReader):
                    self._taken += batch.num_rows
                # Joining and shuffling would copy the other columns as well.
                names = enumerate(batch.schema.names)
                batch = batch.select([i for i, name in names if name in self._used])
                skip = min(max(start.row - row, 0), batch.num_rows)
                for at in range(skip, batch.num_rows, _PIECE):
                    piece = plain_batch(batch.slice(at, _PIECE), Position(start.file, row + at))
                    rows = np.arange(row + at, row + at + piece.num_rows, dtype=np.int64)
                    yield Chunk(piece, rows, start.file)
                row += batch.num_rows


def _batches_of(reader: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, ipc.RecordBatchFileReader):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)


@contextmanager
def _opened_file(path: Path) -> Iterator[Any]:
    """Open an IPC file or IPC stream, whichever it is, and close it after use."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise SourceNotFoundError(f"Arrow file `{path}` {what}; give the path of an IPC file")
    with pa.memory_map(str(path)) if path.stat().st_size else path.open("rb") as file:
        start = file.read(len(_FILE_MAGIC))
        file.seek(0)
        if not start:
            raise NotReadableError(f"`{path}` is empty (0 bytes)")
        if start[:4] in _FOREIGN:
            raise NotReadableError(f"`{path}` is not an Arrow IPC file: {_FOREIGN[start[:4]]}")
        if start != _FILE_MAGIC and not start.startswith(_STREAM_MAGIC):
            raise NotReadableError(f"`{path}` is not an Arrow IPC file or stream")
        try:
            with (ipc.open_file if start == _FILE_MAGIC else ipc.open_stream)(file) as reader:
                yield reader
        except (pa.ArrowException, OSError) as error:
            raise NotReadableError(f"`{path}` is damaged or truncated: {error}") from error
