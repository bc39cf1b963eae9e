"""Events from Parquet: a file, or a folder of files."""

import contextlib
from collections import deque
from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from connectors.batch import Position
from connectors.columns import KEPT, plain_batch
from connectors.cursor import Chunk
from connectors.errors import MissingColumnError, SnapshotError, SourceError
from connectors.identity import check_file, check_row
from connectors.kinds import one_batch, plain_type
from connectors.parquet_files import (
    ParquetPart,
    find_parts,
    is_whole,
    merged_schema,
    reading_error,
    with_texts,
)
from connectors.tabular import TabularOptions, TabularSource

# Without a buffer, reading loads whole columns of a row group: 335 MB more for a row group of
# 2,000,000 x 20 floats, against 23 MB with this one (and no slower).
_BUFFER = 256 * 1024

# Smallest reads: a batch_size of 1 must not decode row by row.
_LEAST_READ = 256

_BAD_FILTERS = (
    "the filters cannot be applied to `{}`: {}; accepted are a list of (column, operator, value) "
    "with ==, !=, <, <=, >, >=, in, not in, a list of such lists, and a pyarrow Expression"
)

# The name of a temporary column of row numbers; no Parquet column has such a name by accident.
_ROW = "\x00row"


class ParquetSource(TabularSource):
    """Events from a Parquet file, or from all Parquet files below a folder.

    Files come in sorted order; ``key=value`` folders give columns (integers if all values are,
    else text). A column may be missing in some files (then its values are missing) and may change
    between kinds of numbers, but not between numbers and text. A batch never crosses from one file
    to the next; row groups may have any size and need not fit in memory.

    Parameters
    ----------
    path
        A file or a folder.
    target, options
        As in `TabularSource`: `columns`, `exclude`, `batch_size`, `shuffle_buffer`, `seed`,
        `timestamp`, `weight`, `keep`, `parse_numbers`, `decimal`, `missing_tokens`,
        `max_categories`. Only columns that are
        used are read.
    filters
        As of `pyarrow.parquet.read_table`: ``[("age", ">", 30)]`` or an Expression. Row groups are
        skipped by their statistics, then rows are filtered exactly. None = all rows.
    parts
        The files to read, if not all below `path`: some of what `connectors.parquet_files` finds,
        or some of their rows: row groups that have none of them are skipped.
    late_files
        What a resume does with files that came to the folder since, and sort before the last one
        that was read: ``"refuse"``, or ``"read"`` them next. Those that sort after it are read in
        any case.

    Raises
    ------
    SourceNotFoundError
        No such file or folder, or no Parquet file in the folder.
    NotReadableError
        Not a Parquet file, truncated or empty; or a column type that cannot be used.
    SchemaChangedError
        A column changes type between files.
    MissingColumnError, NoFeaturesError, SourceError
        See `TabularSource`; SourceError also for filters that cannot be applied.

    Examples
    --------
    >>> import tempfile
    >>> table = pa.table({"size": [1, 2, 3], "label": ["a", "b", "a"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/sizes.parquet")
    ...     source = ParquetSource(f"{folder}/sizes.parquet", "label", filters=[("size", ">", 1)])
    ...     for x, y, position in source.events():
    ...         (x, y, str(position))
    ({'size': 2.0}, 'b', 'sizes.parquet: row 1')
    ({'size': 3.0}, 'a', 'sizes.parquet: row 2')

    """

    def __init__(
        self,
        path: str | PathLike[str],
        target: str | None,
        *,
        filters: Any = None,
        parts: Sequence[ParquetPart] | None = None,
        late_files: Literal["refuse", "read"] = "refuse",
        **options: Unpack[TabularOptions],
    ) -> None:
        if late_files not in ("refuse", "read"):
            raise ValueError(f"late_files={late_files!r}: use 'refuse' or 'read'")
        self.late_files = late_files
        self._n_begun = 1  # files read from so far, in any epoch
        self._parts = find_parts(Path(path)) if parts is None else list(parts)
        keys = dict.fromkeys(key for part in self._parts for key in part.folders)
        stored = {name for part in self._parts for name in part.schema.names} if keys else set()
        self.told_by_values = frozenset(keys) - stored
        texts = self.told_by_values & {*options.get("as_text", ())}
        if target in self.told_by_values and not self._are_whole(target, options.get("label_kind")):
            texts |= {target}
        self._parts = with_texts(self._parts, texts)
        self._index = {part.name: i for i, part in enumerate(self._parts)}
        names = dict.fromkeys(field.name for part in self._parts for field in part.fields)
        name = Path(path).name or str(path)  # that of "." is empty
        self._filter = _expression(filters, list(names), name)
        # An expression does not list its columns: every column whose name is in its text is read.
        text = "" if self._filter is None else str(self._filter)
        filtered = [column for column in names if column in text]
        used = None
        if (columns := options.get("columns")) is not None:
            others = options.get("timestamp"), options.get("weight"), *options.get("keep", ())
            used = {*columns, target, *others, *filtered}
        schema = merged_schema(self._parts, used)
        self._schema = pa.schema([pa.field(f.name, plain_type(f.type)) for f in schema])
        super().__init__(
            schema,
            name=name,
            start=Position(self._parts[0].name, self._parts[0].rows.start),
            target=target,
            **options,
            filters=text or None,
        )
        self._used |= {*filtered}
        if self._filter is not None:
            # Applied to no rows: a wrong name or type fails before the stream starts.
            try:
                self._schema.empty_table().filter(self._filter)
            except (pa.ArrowException, TypeError) as error:
                raise SourceError(_BAD_FILTERS.format(self.name, error)) from error

    def _are_whole(self, target: str, kind: str | None) -> bool:
        """Tell whether labels in folders' names are numbers: each written in one way only."""
        return kind != "text" and all(is_whole(part.texts.get(target)) for part in self._parts)

    def _read_as(self, texts: Collection[str]) -> None:
        """Read columns of folders as they were, though new folders may have other values."""
        kinds = {n: self.kinds[n] for n in self.told_by_values & self.kinds.keys()}
        texts_now = {name for name, kind in kinds.items() if kind == "text"}
        if numbers := texts_now - {*texts} - {*self._as_numbers}:
            self._parse_numbers = [*self._parse_numbers, *numbers]
        if others := {n for n in kinds.keys() - texts_now if n in texts}:
            self._parts = with_texts(self._parts, others)
        if numbers or others:
            fields = [f.with_type(pa.string()) if f.name in others else f for f in self._schema]
            self._schema = pa.schema(fields)
            self._set_features(self._schema, self._parse_numbers)

    @property
    def n_rows(self) -> int | None:
        """The rows of all files; None with filters, whose rows are only known at the end."""
        return None if self._filter is not None else sum(part.num_rows for part in self._parts)

    def _check(self, position: Position) -> None:
        index = self._index.get(position.file or "")
        if index is None:
            raise SnapshotError(
                f"the snapshot continues in `{position.file}`, which is not a file of `{self.name}`"
            )
        part = self._parts[index]
        check_row(position.row, part.rows.stop, part.name)

    def rewind(self) -> None:
        """Go back to the start, for another epoch of the very same events."""
        super().rewind()
        self._n_begun = len(self._parts)

    def _content(self, position: Position) -> list[list[Any]]:
        """Return the identities of the files begun so far, in the order of reading."""
        self._n_begun = max(self._n_begun, self._index[position.file or ""] + 1)
        return [list(part.identity) for part in self._parts[: self._n_begun]]

    def _check_content(self, content: list[list[Any]] | None) -> None:
        """Refuse files that are not those begun; put new ones after them."""
        if content is None:
            return
        coming = {part.name: part for part in self._parts}
        begun = []
        for kept in content:
            if (part := coming.pop(kept[0], None)) is None:
                raise SnapshotError(
                    f"`{kept[0]}`, which was read, is no file of `{self.name}` any more: put it "
                    "back, or start anew"
                )
            check_file(kept, part.identity)
            begun.append(part)
        last = max(part.name for part in begun)
        late = [name for name in coming if name < last]
        if late and self.late_files == "refuse":
            raise SnapshotError(
                f"{len(late):,} files of `{self.name}` have come since the snapshot, and sort "
                f"before `{last}`, which was read already: `{late[0]}`, ...; take them out, or "
                "read them next with late_files='read' (--late-files read)"
            )
        self._parts = [*begun, *coming.values()]
        self._index = {part.name: i for i, part in enumerate(self._parts)}
        self._start = Position(begun[0].name, begun[0].rows.start)
        self._n_begun = len(begun)

    def _read(self, start: Position) -> Iterator[Chunk]:
        first = self._index[start.file or ""]
        for part in self._parts[first:]:
            try:
                first_row = start.row if part.name == start.file else 0
                yield from self._read_part(part, max(first_row, part.rows.start))
            except (pa.ArrowException, OSError) as error:
                raise reading_error(part.path, error) from error

    def _read_part(self, part: ParquetPart, start: int) -> Iterator[Chunk]:
        if start >= part.rows.stop:
            return
        # Checksums of pages, where a file has them: zeroed bytes are valid numbers otherwise.
        with pq.ParquetFile(
            part.path, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True
        ) as file:
            # The reading thread must end before the file is closed.
            with contextlib.closing(_ahead(self._stored(file, part, start))) as stored:
                for row, batch in stored:
                    yield self._chunk(part, batch, row)

    def _stored(
        self, file: pq.ParquetFile, part: ParquetPart, start: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of a part from row `start` on, each with the number of its first row."""
        stored = [name for name in part.schema.names if name in self._used]
        if self._filter is not None and file.num_row_groups:
            # Arrow ends the process if it looks for the statistics of an encrypted column; if it
            # reads one, it raises.
            next(file.iter_batches(1, row_groups=[0], columns=stored, use_threads=False), None)
        wanted = self._row_groups(part)
        size = max(self.batch_size, _LEAST_READ)
        row, stop = 0, part.rows.stop
        for group in range(file.num_row_groups):
            end = row + file.metadata.row_group(group).num_rows
            if start < end and row < stop and (wanted is None or group in wanted):
                for batch in file.iter_batches(
                    size, row_groups=[group], columns=stored, use_threads=False
                ):
                    skip = min(max(start - row, 0), batch.num_rows)
                    if skip < batch.num_rows:
                        yield row + skip, batch.slice(skip, stop - row - skip)
                    row += batch.num_rows
                    if row >= stop:
                        break
            row = end

    def _row_groups(self, part: ParquetPart) -> set[int] | None:
        """Return the row groups that may have rows for the filter, by statistics; None = all."""
        if self._filter is None:
            return None
        told = ds.scalar(True)
        for key, value in part.folders.items():
            if key in part.schema.names:
                continue
            known = ds.field(key) == value if value.is_valid else ds.field(key).is_null()
            told = told & known
        fragment = ds.ParquetFileFormat().make_fragment(
            str(part.path), fs.LocalFileSystem(), partition_expression=told
        )
        # The types of this file, as its statistics have them.
        own = {f.name: plain_type(f.type) for f in part.fields if not pa.types.is_null(f.type)}
        schema = pa.schema([(f.name, own.get(f.name, f.type)) for f in self._schema])
        pruned = fragment.subset(self._filter, schema=schema)
        return {group.id for group in pruned.row_groups}

    def _chunk(self, part: ParquetPart, batch: pa.RecordBatch, row: int) -> Chunk:
        """Return the rows of a batch that pass the filter, with the columns of the folder names."""
        n = batch.num_rows
        rows = np.arange(row, row + n, dtype=np.int64)
        for key, value in part.folders.items():
            if key in self._used and key not in part.schema.names:
                batch = batch.append_column(key, pa.repeat(value, n))
                if key in self.keep:
                    text = pa.scalar(part.texts.get(key), pa.string())
                    batch = batch.append_column(KEPT + key, pa.repeat(text, n))
        batch = plain_batch(batch, Position(part.name, row))
        if self._filter is not None:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name in self._used - columns.keys():
                columns[name] = pa.nulls(n, self._schema.field(name).type)
            kept = pa.table({_ROW: rows, **columns}).filter(self._filter)
            rows = kept.column(_ROW).to_numpy()
            batch = one_batch(kept.select(batch.schema.names))
        return Chunk(batch, rows, part.name)


def _ahead(items: Iterator[Any]) -> Generator[Any]:
    """Yield items while another thread reads the next two."""
    with ThreadPoolExecutor(1, "streamsvm-read") as thread:
        coming = deque(thread.submit(next, items, None) for _ in range(2))
        while (item := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, items, None))
            yield item


def _expression(filters: Any, names: Sequence[str], source: str) -> ds.Expression | None:
    """Return filters in any accepted form as one expression."""
    if filters is None or isinstance(filters, ds.Expression):
        return filters
    try:
        # One list of conditions, or alternatives: several such lists.
        for conditions in [filters] if isinstance(filters[0][0], str) else filters:
            for column, _, _ in conditions:
                if column not in names:
                    raise MissingColumnError(column, names, source, "filter column")
        return pq.filters_to_expression(filters)
    except (ValueError, TypeError, IndexError) as error:
        raise SourceError(_BAD_FILTERS.format(source, error)) from error
