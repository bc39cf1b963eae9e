"""Events from CSV files."""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from connectors.batch import shown
from connectors.errors import NotReadableError
from connectors.kinds import cast_or_null, kind_of, with_points
from connectors.text_files.text_tables import (
    BLOCK,
    SAMPLE,
    Rows,
    TextSource,
    kept_name,
    labels_of,
    types_of,
    with_faults,
)
from connectors.text_looks import TextLooks

_LONGEST_HEAD = 1 << 26
_SAMPLED_BYTES = 1 << 25
_HEADS_A_BLOCK = 16  # a row takes at most so many times the bytes of the names
_MISSING = [text for text in pa_csv.ConvertOptions().null_values if text]


class CSVSource(TextSource):
    r"""Events from a CSV file, whose first line names the columns.

    The separator is the comma, semicolon, tab or ``|`` that the first line has most of. The first
    10,000 rows (of wide files, the first 32 MB) decide which columns are numbers, booleans (true,
    false), times (ISO 8601) and texts; a row in which a column is of another type, or which has
    more or fewer fields, is set aside. An empty field, NA, NaN and null are missing. What is to be
    kept is text, as it is in the file. Labels are whole numbers, numbers or booleans if each of
    them is written in one way only, else texts: 007 is not 7. A file that ends in .gz, .bz2, .zst
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

    def _types(self, target: str | None, label_kind: str | None) -> dict[str, pa.DataType]:
        head = self._head()
        self._separator = max(",;\t|", key=lambda c: head.count(c.encode()))
        # A line must fit into a block.
        self._block = max(BLOCK, min(_HEADS_A_BLOCK * len(head), 2 * _LONGEST_HEAD))
        parse = pa_csv.ParseOptions(delimiter=self._separator)
        read = pa_csv.ReadOptions(use_threads=False, block_size=len(head) + 1)
        first = io.BytesIO(head + b"\n")
        names = self._names = pa_csv.read_csv(first, read, parse).column_names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise NotReadableError(f"`{self._path}` has several columns named `{twice}`")
        self._missing = pa.array([*_MISSING, *self._tokens], pa.string())
        pieces: list[pa.RecordBatch] = []
        with self._reader(None, []) as reader:
            for batch in reader:
                pieces.append(batch)
                enough = sum(map(len, pieces)) >= SAMPLE
                if enough or sum(piece.nbytes for piece in pieces) >= _SAMPLED_BYTES:
                    break
        table = pa.Table.from_batches(pieces, reader.schema).slice(0, SAMPLE).combine_chunks()
        columns = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in table.columns]
        self._sample = dict(zip(names, self._without_missing(columns), strict=True))
        found = dict(zip(names, types_of([*self._sample.values()], self._decimal), strict=True))
        if target in found:
            found[target] = self._label_type(self._sample[target], label_kind)
        return found

    def _head(self) -> bytes:
        """Return the line of the names."""
        found = b""
        with self._open() as file:
            while b"\n" not in found and len(found) < _LONGEST_HEAD:
                if not (piece := file.read(BLOCK)):
                    break
                found += piece
        head, end, _ = found.partition(b"\n")
        if head.startswith(b"PAR1"):
            raise NotReadableError(
                f"`{self._path}` is a Parquet file: give it a name that ends in .parquet"
            )
        if not head.strip():
            raise NotReadableError(f"`{self._path}` has no first line that names the columns")
        if not end and len(found) >= _LONGEST_HEAD:
            raise NotReadableError(
                f"the first line of `{self._path}` has more than {len(found):,} bytes: it is to "
                "name the columns; is this a CSV file with a line for each row?"
            )
        return head

    def _without_missing(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return columns of texts of one length, null where a text stands for a missing value."""
        if not columns:
            return []
        texts = pa.concat_arrays(columns)
        bare = pc.ascii_trim_whitespace(texts)
        none = pc.or_(pc.is_in(bare, self._missing), pc.equal(pc.binary_length(bare), 0))
        found, n = pc.if_else(none, pa.scalar(None, pa.string()), texts), len(columns[0])
        return [found.slice(i * n, n) for i in range(len(columns))]

    def _look(self, looks: TextLooks, names: Sequence[str]) -> None:
        sample, self._sample = self._sample, {}
        texts = [name for name in names if self.kinds.get(name) == "text"]
        looks.look(pa.RecordBatch.from_pydict({name: sample[name] for name in texts}), texts)

    @contextmanager
    def _reader(self, used: Sequence[str] | None, wrong: list[Any]) -> Iterator[Any]:
        """Open the file as texts; rows with other than the named fields are appended to `wrong`."""

        def skip(row: Any) -> str:
            wrong.append((row.number - 2, row.text, row.actual_columns, row.expected_columns))
            return "skip"

        convert = pa_csv.ConvertOptions(
            check_utf8=False,
            null_values=[],
            column_types=dict.fromkeys(self._names, pa.string()),
            include_columns=list(used or ()),
        )
        parse = pa_csv.ParseOptions(
            delimiter=self._separator, newlines_in_values=True, invalid_row_handler=skip
        )
        read = pa_csv.ReadOptions(use_threads=False, block_size=self._block)
        with self._open() as file, pa_csv.open_csv(file, read, parse, convert) as reader:
            yield reader

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with super()._errors():
                yield
        except NotReadableError as error:
            if "straddling object" not in str(error):
                raise
            raise NotReadableError(
                f"`{self._path}` has a row of more than {self._block:,} bytes: a quotation mark "
                "may be open, or the end of a line missing; else cut the row's texts, or write "
                "the file as Parquet"
            ) from error

    def _rows(self) -> Iterator[Rows]:
        wrong: list[Any] = []
        names, next_row = list(self._read_types), 0
        used = list(dict.fromkeys([*names, *self.keep]))
        with self._reader(used, wrong) as reader:
            for batch in reader:
                texts = dict(zip(used, batch.columns, strict=True))
                columns, faults = self._cast(texts, batch.num_rows)
                columns += [_or_null(texts[name]) for name in self.keep]
                data = with_faults(columns, self._column_names, faults)
                rows, between = _numbered(next_row, batch.num_rows, wrong)
                next_row = int(rows[-1]) + 1 if len(rows) else next_row
                yield from self._merged(data, rows, between)
        yield from self._merged(None, np.zeros(0, np.int64), wrong)

    @property
    def _column_names(self) -> list[str]:
        return [*self._read_types, *map(kept_name, self.keep)]

    def _cast(self, texts: dict[str, pa.Array], n: int) -> tuple[list[pa.Array], pa.Array]:
        """Return the columns in use by their types, and why rows are no events (else null)."""
        types = self._read_types
        found = self._without_missing([texts[name] for name in types])
        columns = dict(zip(types, found, strict=True))
        numbers = [n for n in types if pa.types.is_floating(types[n]) and n != self.target]
        reasons: dict[int, str] = {}
        if numbers:
            # As one column: there may be 50,000, of a few rows each.
            whole = pc.ascii_trim_whitespace(pa.concat_arrays([columns[n] for n in numbers]))
            cast = cast_or_null(with_points(whole, self._decimal), pa.float64())
            if cast.null_count > whole.null_count:
                bad = pc.and_(whole.is_valid(), cast.is_null()).to_numpy(zero_copy_only=False)
                for at in np.flatnonzero(bad).tolist():
                    name, i = numbers[at // n], at % n
                    reasons.setdefault(i, _reason(name, texts[name][i], "a number"))
            columns |= {name: cast.slice(i * n, n) for i, name in enumerate(numbers)}
        for name, type_ in types.items():
            column = columns[name]
            if column.type == type_:
                continue
            if name == self.target and self._label_form:
                values, what = labels_of(column, self._label_form, type_)
            else:
                values = cast_or_null(pc.ascii_trim_whitespace(column), type_)
                what = "a boolean" if pa.types.is_boolean(type_) else f"a {kind_of(type_)}"
            if values.null_count > column.null_count:
                bad = pc.and_(column.is_valid(), values.is_null()).to_numpy(zero_copy_only=False)
                for i in np.flatnonzero(bad).tolist():
                    reasons.setdefault(i, _reason(name, texts[name][i], what))
            columns[name] = values
        faults: list[str | None] = [None] * n if reasons else []
        for i, reason in reasons.items():
            row = {name: _text(column[i]) for name, column in texts.items()}
            faults[i] = f"{reason}\x00{json.dumps(row)}"
        column_of_faults = pa.array(faults, pa.string()) if reasons else pa.nulls(n, pa.string())
        return list(columns.values()), column_of_faults

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
        types = [*self._read_types.values(), *(pa.string() for _ in self.keep)]
        empty = [pa.nulls(len(wrong), type_) for type_ in types]
        others = with_faults(empty, self._column_names, pa.array(texts, pa.string()))
        numbers = np.concatenate([rows, np.array([row for row, *_ in wrong], np.int64)])
        order = np.argsort(numbers)
        joined = others if data is None else pa.concat_batches([data, others])
        yield joined.take(pa.array(order)), numbers[order]


def _or_null(column: pa.Array) -> pa.Array:
    """Return texts as they are, null where a field is empty."""
    is_empty = pc.equal(pc.binary_length(column), 0)
    return pc.if_else(is_empty, pa.scalar(None, pa.string()), column)


def _text(cell: pa.Scalar) -> str:
    return shown(cell.cast(pa.binary()).as_py())


def _reason(name: str, cell: pa.Scalar, what: str) -> str:
    """Return why a row is no event: a field is not what the first rows had there."""
    return (
        f"column `{name}` is {_text(cell)!r}; in the first rows it was {what} "
        "(missing_tokens=, --missing-tokens, names texts that are missing values)"
    )


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
