"""The base of sources of text files: types are decided by the first rows."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.batch import Position, Reject
from connectors.columns import KEPT, shown_row
from connectors.cursor import Chunk
from connectors.errors import NotReadableError, SourceNotFoundError
from connectors.identity import identity_of
from connectors.kinds import are_numbers, kind_of, record_batch
from connectors.tabular import TabularOptions, TabularSource
from connectors.text_looks import TextLooks

BLOCK = 1 << 20
SAMPLE = 10_000
# A hidden column: why a row is no event, and what was read. No column has such a name by accident.
_FAULT = "\x00fault"
_TIME = pa.timestamp("us")

Rows = tuple[pa.RecordBatch, npt.NDArray[np.int64]]
"""Raw rows: columns with a `_FAULT`, and the number of each row in the file."""

_LABELS = (
    ("0|-?[1-9][0-9]{0,17}", pa.int64(), "whole numbers"),
    (r"0\.0|-?(0\.[0-9]*[1-9]|[1-9][0-9]*\.(0|[0-9]*[1-9]))", pa.float64(), "numbers with a point"),
    ("true|false", pa.bool_(), "true or false"),
    ("True|False", pa.bool_(), "True or False"),
    ("TRUE|FALSE", pa.bool_(), "TRUE or FALSE"),
)
"""How labels are written that are no texts. Each value is written in one way only: so 007 and 7, or
2**63 and 2**63 + 1, which would be one number, are texts."""
_MOST_DIGITS = 16  # of a fraction, with its point: of more digits, two may be one float


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
        self._tokens = [*options.get("missing_tokens", ())]
        self._decimal = options.get("decimal", ".")
        self._as_text = {*options.get("as_text", ())}
        self._label_form = ""
        with self._errors():
            types = self._types(target, options.get("label_kind"))
        self.told_by_values = frozenset(types)
        # Whole numbers may have fractions later. What is only kept is text, as it is in the file.
        for name, type_ in types.items():
            if name in self._as_text:
                types[name] = pa.string()
            elif pa.types.is_integer(type_) and name != target:
                types[name] = pa.float64()
        super().__init__(
            pa.schema(list(types.items())),
            name=self._path.name,
            start=Position(self._path.name, 0),
            target=target,
            filters=None,  # none are known here: an argument of that name is refused
            **options,
        )
        used = {*self.features, target, self.timestamp, self.weight}
        self._read_types = {name: type_ for name, type_ in types.items() if name in used}
        self.number_texts = TextLooks(needs_parsing=False)
        look_at = [name for name in self.features if name not in self._as_numbers]
        self._look(self.number_texts, [name for name in look_at if name not in self._as_text])
        self.number_texts.end()

    @property
    def n_rows(self) -> None:
        """None: only known at the end of the file."""

    @abstractmethod
    def _types(self, target: str | None, label_kind: str | None) -> dict[str, pa.DataType]:
        """Return the type of each column, by the first rows; of the target, see `_label_type`."""

    @abstractmethod
    def _look(self, looks: TextLooks, names: Sequence[str]) -> None:
        """Look at the first texts of columns, which have all been read by now."""

    @abstractmethod
    def _rows(self) -> Iterator[Rows]:
        """Yield all rows, with the columns of `_read_types`, those to keep, and `_FAULT`."""

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

    def _label_type(self, texts: pa.Array, kind: str | None) -> pa.DataType:
        """Return the type of labels that are written so; of a model's `kind`, if it is given."""
        if kind == "text":
            return pa.string()
        texts = pc.ascii_trim_whitespace(texts.drop_null())
        for form, type_, _ in _LABELS if len(texts) else ():
            if pc.all(_fit(texts, form)).as_py():
                self._label_form = form
                return type_
        if kind == "number":
            # Labels of another form are set aside.
            numbers = [(pc.sum(_fit(texts, form)).as_py() or 0, form) for form, *_ in _LABELS[:2]]
            self._label_form = max(numbers, key=itemgetter(0))[1]
            return pa.int64() if self._label_form is _LABELS[0][0] else pa.float64()
        return pa.string()


def _fit(texts: pa.Array, form: str) -> pa.Array:
    """Return which texts are of one of the forms of `_LABELS`; null is null."""
    fits = pc.match_substring_regex(texts, f"^(?:{form})$")
    if form is _LABELS[1][0]:
        fits = pc.and_(fits, pc.less_equal(pc.binary_length(texts), _MOST_DIGITS))
    return fits


def labels_of(texts: pa.Array, form: str, type_: pa.DataType) -> tuple[pa.Array, str]:
    """Return texts as labels, null where they are of another form, and in words what is wanted."""
    texts = pc.ascii_trim_whitespace(texts)
    fitting = pc.if_else(_fit(texts, form), texts, pa.scalar(None, texts.type))
    words = next(words for known, _, words in _LABELS if known is form)
    return fitting.cast(type_), words


def with_faults(columns: list[pa.Array], names: Sequence[str], faults: pa.Array) -> pa.RecordBatch:
    """Return columns with one of faults: for each row why it is no event, or null."""
    found = zip(names, columns, strict=True)
    fields = [*(pa.field(n, c.type) for n, c in found), pa.field(_FAULT, pa.string())]
    return record_batch([*columns, faults], fields, len(faults))


def types_of(columns: Sequence[pa.Array], decimal: str) -> list[pa.DataType]:
    """Return the type of each of some columns of texts of one length: the first that fits all.

    Of a column without a text nothing is known: it is one of numbers.
    """
    if not columns:
        return []
    # All at once: there may be 50,000 columns of a few rows.
    texts = pc.ascii_trim_whitespace(pa.concat_arrays(columns))
    fits = pc.fill_null(are_numbers(texts, decimal), True)
    fits = pc.or_(fits, texts.is_null()).to_numpy(zero_copy_only=False)
    are = fits.reshape(len(columns), -1).all(axis=1)
    return [
        pa.float64() if is_number else _type_of(column)
        for is_number, column in zip(are.tolist(), columns, strict=True)
    ]


def _type_of(column: pa.Array) -> pa.DataType:
    """Return the type of a column of texts that are not all numbers."""
    texts = pc.ascii_trim_whitespace(column.drop_null())
    for type_ in (pa.bool_(), _TIME, pa.timestamp("us", "UTC")):
        try:
            texts.cast(type_)
        except pa.ArrowInvalid:
            continue
        return type_
    return pa.string()


def are_times(texts: Sequence[str]) -> pa.DataType | None:
    """Return the type of times, if texts are such; else None."""
    found = _type_of(pa.array(texts, pa.string()))
    return found if kind_of(found) == "time" else None


def kept_name(name: str) -> str:
    """Return the hidden name of the texts of a column to keep."""
    return KEPT + name
