"""Events from CSV files."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from connectors.errors import NotReadableError
from connectors.kinds import cast_or_null, kind_of
from connectors.source import shown
from connectors.text_files.text_tables import BLOCK, SAMPLE, Rows, TextSource, type_of, with_faults


class CSVSource(TextSource):
    r"""Events from a CSV file, whose first line names the columns.

    The separator is the comma, semicolon, tab or ``|`` that the first line has most of. The first
    10,000 rows decide which columns are whole numbers, numbers, booleans (true, false), times (ISO
    8601) and texts; a row in which a column is of another type, or which has more or fewer fields,
    is set aside. An empty field, NA, NaN and null are missing. A file that ends in .gz, .bz2, .zst
    or .lz4 is decompressed. Memory does not grow with the file.

    Parameters
    ----------
    path
        The file.
    target, options
        As in `ArrowSource`, and so are errors.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from connectors import CSVSource
    >>> path = pathlib.Path(tempfile.mkdtemp(), "sizes.csv")
    >>> _ = path.write_text("size,colour,label\n1,red,yes\n2.5,,no\n")
    >>> for x, y, position in CSVSource(path, "label").events():
    ...     (x, y, str(position))
    ({'size': 1.0, 'colour=red': 1.0}, 'yes', 'sizes.csv: row 0')
    ({'size': 2.5}, 'no', 'sizes.csv: row 1')

    """

    def _types(self) -> dict[str, pa.DataType]:
        with self._open() as file:
            head = file.read(BLOCK).partition(b"\n")[0]
        if not head.strip():
            raise NotReadableError(f"`{self._path}` has no first line that names the columns")
        self._separator = max(",;\t|", key=lambda c: head.count(c.encode()))
        first = io.BytesIO(head + b"\n")
        parse = pa_csv.ParseOptions(delimiter=self._separator)
        names = self._names = pa_csv.read_csv(first, parse_options=parse).column_names
        pieces: list[pa.RecordBatch] = []
        with self._reader(None, []) as reader:
            for batch in reader:
                pieces.append(batch)
                if sum(map(len, pieces)) >= SAMPLE:
                    break
        table = pa.Table.from_batches(pieces, reader.schema).slice(0, SAMPLE)
        columns = [column.combine_chunks() for column in table.columns]
        # Names that occur twice are refused by name, if they are used.
        found = {name: type_of(column) for name, column in zip(names, columns, strict=True)}
        if len(found) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise NotReadableError(f"`{self._path}` has several columns named `{twice}`")
        return found

    @contextmanager
    def _reader(self, used: Sequence[str] | None, wrong: list[Any]) -> Iterator[Any]:
        """Open the file as texts; rows with other than the named fields are appended to `wrong`."""

        def skip(row: Any) -> str:
            wrong.append((row.number - 2, row.text, row.actual_columns, row.expected_columns))
            return "skip"

        convert = pa_csv.ConvertOptions(
            check_utf8=False,
            strings_can_be_null=True,
            column_types={name: pa.string() for name in self._names},
            include_columns=list(used or ()),
        )
        parse = pa_csv.ParseOptions(
            delimiter=self._separator, newlines_in_values=True, invalid_row_handler=skip
        )
        read = pa_csv.ReadOptions(use_threads=False, block_size=BLOCK)
        with self._open() as file, pa_csv.open_csv(file, read, parse, convert) as reader:
            yield reader

    def _rows(self) -> Iterator[Rows]:
        wrong: list[Any] = []
        names, next_row = list(self._read_types), 0
        with self._reader(names, wrong) as reader:
            for batch in reader:
                faults = pa.nulls(batch.num_rows, pa.string())
                columns = []
                for name, column in zip(names, batch.columns, strict=True):
                    values, faults = _cast_column(name, column, self._read_types[name], faults)
                    columns.append(values)
                data = with_faults(columns, self._read_types, faults)
                rows, between = _numbered(next_row, batch.num_rows, wrong)
                next_row = int(rows[-1]) + 1 if len(rows) else next_row
                yield from self._merged(data, rows, between)
        yield from self._merged(None, np.zeros(0, np.int64), wrong)

    def _merged(self, data: Any, rows: np.ndarray, wrong: list[Any]) -> Iterator[Rows]:
        """Yield rows and those with too many or too few fields, in order."""
        if not wrong:
            if data is not None:
                yield data, rows
            return
        texts = [
            f"{n} fields, not {wanted} as in the first line\x00{shown(text)}"
            for _, text, n, wanted in wrong
        ]
        empty = [pa.nulls(len(wrong), type_) for type_ in self._read_types.values()]
        others = with_faults(empty, self._read_types, pa.array(texts, pa.string()))
        numbers = np.concatenate([rows, np.array([row for row, *_ in wrong], np.int64)])
        order = np.argsort(numbers)
        joined = others if data is None else pa.concat_batches([data, others])
        yield joined.take(pa.array(order)), numbers[order]


def _cast_column(
    name: str, column: pa.Array, type_: pa.DataType, faults: pa.Array
) -> tuple[pa.Array, pa.Array]:
    """Return a column of texts as another type, and the faults with those of its rows."""
    if pa.types.is_string(type_):
        return column, faults
    texts = pc.ascii_trim_whitespace(column)
    values = cast_or_null(texts, type_)
    if values.null_count == column.null_count:
        return values, faults
    bad = pc.and_(column.is_valid(), values.is_null()).to_numpy(zero_copy_only=False)
    kind = "a boolean" if pa.types.is_boolean(type_) else f"a {kind_of(type_)}"
    kind = "a whole number" if pa.types.is_integer(type_) else kind
    reasons = faults.to_pylist()
    for i in np.flatnonzero(bad).tolist():
        text = shown(column.cast(pa.binary())[i].as_py())
        reasons[i] = reasons[i] or f"column `{name}` is {text!r}; in the first rows it was {kind}"
    return values, pa.array(reasons, pa.string())


def _numbered(first: int, n: int, wrong: list[Any]) -> tuple[np.ndarray, list[Any]]:
    """Return the numbers of n rows, and take the wrong rows before their end out of the list."""
    rows = np.arange(first, first + n, dtype=np.int64)
    taken = 0
    for row, *_ in wrong:
        if row > (rows[-1] if n else first):
            break
        rows[rows >= row] += 1
        taken += 1
    between, wrong[:] = wrong[:taken], wrong[taken:]
    return rows, between
