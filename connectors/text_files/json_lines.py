"""Events from files of JSON lines."""

import io
import json
import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from connectors.batch import shown
from connectors.errors import NotReadableError
from connectors.text_files.text_tables import (
    BLOCK,
    SAMPLE,
    Rows,
    TextSource,
    are_times,
    kept_name,
    with_faults,
)
from connectors.text_looks import TextLooks

_log = logging.getLogger(__name__)

_EXACT = 2**53  # from here on whole numbers share floats


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

    def _types(self, target: str | None, label_kind: str | None) -> dict[str, pa.DataType]:
        values: dict[str, list[Any]] = {}
        with self._open() as file:
            for line in islice(io.BufferedReader(file), SAMPLE):
                try:
                    found = json.loads(line)
                except ValueError:
                    continue
                for name, value in found.items() if isinstance(found, dict) else ():
                    is_token = isinstance(value, str) and value in self._tokens
                    values.setdefault(name, []).append(None if is_token else value)
        if not values:
            raise NotReadableError(f"`{self._path}` has no object among its first lines")
        self._values = values
        self._known = {name: _type_of_values(of_name) for name, of_name in values.items()}
        types = dict(self._known)
        if target in types:
            types[target] = _label_type_of_values(values[target])
            if label_kind == "text":
                types[target] = pa.string()
        # Numbers that are texts here, or of more digits than Arrow has: Python reads them.
        self._as_written = {n for n in self._as_text if _kinds(values.get(n, ())) - {str}}
        if target in types and types[target] == pa.string() and _kinds(values[target]) - {str}:
            self._as_written.add(target)
        return types

    def _look(self, looks: TextLooks, names: Sequence[str]) -> None:
        values, self._values = self._values, {}
        for name in names:
            if self.kinds.get(name) == "text":
                texts = [value for value in values[name] if isinstance(value, str)]
                looks.look(pa.record_batch({name: pa.array(texts, pa.string())}), [name])
        own = {n: t for n, t in self._read_types.items() if n not in self._as_written}
        kept = {name: _kept_type(values.get(name, ())) for name in self.keep}
        # Of which types Arrow reads columns to keep; Python reads the others as they are written.
        self._kept_types = {n: t for n, t in kept.items() if t is not None and own.get(n, t) == t}
        self._arrow_types = own | self._kept_types
        self._of_python = self._as_written | {n for n in kept if n not in self._kept_types}

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
        columns, reason = self._columns_of(lines, self._known | self._arrow_types, "error")
        if columns is None:
            # There is a new field, or a fault, which may be in a field that is not used.
            columns, reason = self._columns_of(lines, self._arrow_types, "ignore")
            if columns is not None:
                self._count_new(lines, first)
        names = [*self._read_types, *map(kept_name, self.keep)]
        if columns is not None:
            yield with_faults(columns, names, pa.nulls(len(lines), pa.string())), rows
        elif len(lines) == 1:
            kept = [self._kept_types.get(name, pa.string()) for name in self.keep]
            empty = [pa.nulls(1, type_) for type_ in [*self._read_types.values(), *kept]]
            fault = pa.array([f"{reason}\x00{shown(lines[0])}"], pa.string())
            yield with_faults(empty, names, fault), rows
        else:
            middle = len(lines) // 2
            yield from self._parsed(lines[:middle], first)
            yield from self._parsed(lines[middle:], first + middle)

    def _columns_of(
        self, lines: list[bytes], types: dict[str, pa.DataType], unexpected: str
    ) -> tuple[list[pa.Array] | None, str]:
        """Return lines as the columns in use, then those to keep; None, and why, if that cannot be.

        `unexpected` is what Arrow does about fields that are not among `types`.
        """
        given = lines
        if self._tokens and unexpected == "ignore":
            given = [self._without_tokens(line) for line in lines]
        text, schema = b"".join(given), pa.schema(list(types.items()))
        try:
            table = pa_json.read_json(
                pa.BufferReader(text),
                pa_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
                pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
            )
            found = {name: table.column(name).combine_chunks() for name in self._arrow_types}
            written = _written(lines, self._of_python)
        except (pa.ArrowException, ValueError) as error:
            return None, str(error).removesuffix(" in row 0")
        if len(table) != len(lines):
            return None, "the line holds several objects"
        own = [written[n] if n in self._as_written else found[n] for n in self._read_types]
        kept = [found[n] if n in self._kept_types else written[n] for n in self.keep]
        return own + kept, ""

    def _without_tokens(self, line: bytes) -> bytes:
        """Return a line in which texts that stand for missing numbers are null."""
        try:
            found = json.loads(line)
        except ValueError:
            return line
        types = self._read_types if isinstance(found, dict) else {}
        names = {n for n, type_ in types.items() if not pa.types.is_string(type_)}
        wrong = [n for n in names & found.keys() if found[n] in self._tokens] if names else []
        return json.dumps(found | dict.fromkeys(wrong)).encode() + b"\n" if wrong else line

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


def _kinds(values: Sequence[Any]) -> set[type]:
    return {type(value) for value in values if value is not None}


def _kept_type(values: Sequence[Any]) -> pa.DataType | None:
    """Return the type in which Arrow reads such values as they are; None: in none."""
    kinds = _kinds(values)
    if kinds == {int}:
        return pa.int64() if all(abs(v) < 2**63 for v in values if v is not None) else None
    if kinds == {bool}:
        return pa.bool_()
    return pa.string() if kinds == {str} else None


def _label_type_of_values(values: Sequence[Any]) -> pa.DataType:
    """Return the type of labels, as most of them have it; numbers that Arrow rounds are texts."""
    found = _type_of_values(values, with_times=False)
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if pa.types.is_floating(found) and any(abs(v) >= _EXACT for v in numbers):
        return pa.string()
    return found


def _written(lines: list[bytes], names: Collection[str]) -> dict[str, pa.Array]:
    """Return the named fields as texts: strings, and other values as they are written in JSON."""
    if not names:
        return {}
    rows = [json.loads(line, parse_int=str, parse_float=str) for line in lines]
    return {n: pa.array([_as_text(row.get(n)) for row in rows], pa.string()) for n in names}


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _type_of_values(values: Sequence[Any], with_times: bool = True) -> pa.DataType:
    """Return the type that most of some JSON values have."""
    kinds = Counter(type(value) for value in values if value is not None)
    n_float = kinds.pop(float, 0)
    if n_float:
        kinds[int] += n_float
    most = kinds.most_common(1)[0][0] if kinds else float
    if most is str:
        texts = [value for value in values if isinstance(value, str)]
        return (are_times(texts) if with_times else None) or pa.string()
    if most in (list, dict):
        return pa.infer_type([value for value in values if isinstance(value, most)])
    whole = most is int and not n_float
    if whole and all(abs(v) < 2**63 for v in values if isinstance(v, int)):
        return pa.int64()
    return pa.bool_() if most is bool else pa.float64()
