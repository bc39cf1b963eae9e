"""Events from files of JSON lines."""

import io
import json
import logging
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from connectors.errors import NotReadableError
from connectors.source import shown
from connectors.text_files.text_tables import BLOCK, SAMPLE, Rows, TextSource, type_of, with_faults

_log = logging.getLogger(__name__)


class JSONLinesSource(TextSource):
    r"""Events from a file of JSON lines: an object a line.

    The first 10,000 lines decide the type of each field, as most of them have it; a line of which a
    field is of another type, or which is no object, is set aside. Fields that come later than those
    lines are ignored; `counts` says how many lines have some, and the first one is logged. A file
    none of whose first lines is an object is refused. Compression and memory are those of
    `CSVSource`.

    Parameters
    ----------
    path
        The file.
    target, options
        As in `ArrowSource`, and so are errors.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from connectors import JSONLinesSource
    >>> path = pathlib.Path(tempfile.mkdtemp(), "sizes.jsonl")
    >>> _ = path.write_text('{"size": 1, "label": true}\n{"size": 2.5, "label": false}\n')
    >>> [(x, y) for x, y, _ in JSONLinesSource(path, "label").events()]
    [({'size': 1.0}, True), ({'size': 2.5}, False)]

    """

    def _types(self) -> dict[str, pa.DataType]:
        values: dict[str, list[Any]] = {}
        with self._open() as file:
            for line in islice(io.BufferedReader(file), SAMPLE):
                try:
                    found = json.loads(line)
                except ValueError:
                    continue
                for name, value in found.items() if isinstance(found, dict) else ():
                    values.setdefault(name, []).append(value)
        if not values:
            raise NotReadableError(f"`{self._path}` has no object among its first lines")
        self._known = {name: _type_of_values(of_name) for name, of_name in values.items()}
        return self._known

    @property
    def counts(self) -> dict[str, int]:
        """Count for the report of a run: how many lines read have fields that are ignored."""
        return {"new_fields": self._n_new} if self._n_new else {}

    def _rows(self) -> Iterator[Rows]:
        n = self._n_new = 0
        with self._open() as file:
            lines = io.BufferedReader(file)
            while block := lines.readlines(BLOCK):
                kept = [line for line in block if not line.isspace()]
                yield from self._parsed(kept, n)
                n += len(kept)

    def _parsed(self, lines: list[bytes], first: int) -> Iterator[Rows]:
        """Yield lines as rows; if that fails, halves of them, so that only bad lines are faults."""
        rows = np.arange(first, first + len(lines), dtype=np.int64)
        table, reason = self._table_of(lines, self._known | self._read_types, "error")
        if table is None:
            # There is a new field, or a fault, which may be in a field that is not used.
            table, reason = self._table_of(lines, self._read_types, "ignore")
            if table is not None and len(table) == len(lines):
                self._count_new(lines, first)
        if table is not None and len(table) == len(lines):
            columns = [column.combine_chunks() for column in table.columns]
            faults = pa.nulls(len(lines), pa.string())
            yield with_faults(columns, self._read_types, faults), rows
        elif len(lines) == 1:
            empty = [pa.nulls(1, type_) for type_ in self._read_types.values()]
            fault = pa.array([f"{reason}\x00{shown(lines[0])}"], pa.string())
            yield with_faults(empty, self._read_types, fault), rows
        else:
            middle = len(lines) // 2
            yield from self._parsed(lines[:middle], first)
            yield from self._parsed(lines[middle:], first + middle)

    def _table_of(
        self, lines: list[bytes], types: dict[str, pa.DataType], unexpected: str
    ) -> tuple[pa.Table | None, str]:
        """Return lines as a table of the columns in use; None, and why, if that cannot be."""
        text, schema = b"".join(lines), pa.schema(list(types.items()))
        try:
            table = pa_json.read_json(
                pa.BufferReader(text),
                pa_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
                pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
            )
        except pa.ArrowException as error:
            return None, str(error).removesuffix(" in row 0")
        return table.select(list(self._read_types)), "the line holds several objects"

    def _count_new(self, lines: list[bytes], first: int) -> None:
        """Count the lines with fields that the first lines did not have; log the first one."""
        for row, line in enumerate(lines, first):
            new = json.loads(line).keys() - self._known.keys()
            if new and not self._n_new:
                _log.warning(
                    "`%s`: row %d has the field `%s`, which the first %d rows did not have: such "
                    "fields are ignored, and counted", self.name, row, min(new), SAMPLE,
                )  # fmt: skip
            self._n_new += bool(new)


def _type_of_values(values: list[Any]) -> pa.DataType:
    """Return the type that most of some JSON values have."""
    kinds = Counter(type(value) for value in values if value is not None)
    n_float = kinds.pop(float, 0)
    if n_float:
        kinds[int] += n_float
    most = kinds.most_common(1)[0][0] if kinds else float
    if most is str:
        texts = pa.array([value for value in values if isinstance(value, str)], pa.string())
        found = type_of(texts)
        return found if pa.types.is_timestamp(found) else pa.string()
    if most in (list, dict):
        return pa.infer_type([value for value in values if isinstance(value, most)])
    whole = most is int and not n_float
    if whole and all(abs(v) < 2**63 for v in values if isinstance(v, int)):
        return pa.int64()
    return pa.bool_() if most is bool else pa.float64()
