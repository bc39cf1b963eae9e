"""Which columns of tabular data are features, which one is the target, and their plain form."""

import json
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.batch import Position
from connectors.errors import MissingColumnError, NotReadableError, SourceError
from connectors.kinds import kind_of, numbers_in, plain, plain_type, to_float64, type_of_items

# pandas stores the index of a filtered or sorted frame under this name: row numbers, no feature.
_PANDAS_INDEX = "__index_level_"
# Of decimals that are whole numbers of 64 bits, or floats that differ if they do.
_MOST_WHOLE, _MOST_DIGITS = 18, 15

KEPT = "\x00kept "
"""Before the name of a hidden column: the texts of a column to keep, as they are in the source."""


def feature_columns(
    schema: pa.Schema,
    name: str,
    target: str | None,
    columns: Sequence[str] | None,
    timestamp: str | None,
    exclude: Sequence[str] = (),
    weight: str | None = None,
) -> list[str]:
    """Return the names of the feature columns; parameters and errors are as in `TabularSource`."""
    for parameter, given in (("columns", columns), ("exclude", exclude)):
        if isinstance(given, str):
            raise SourceError(f"{parameter} must be a list of names, not the text {given!r}")
    asked = [("columns", column) for column in columns or ()]
    asked += [("exclude", column) for column in exclude]
    # Arrow makes a new list of the names each time, and there may be 50,000 of them.
    names, counts = schema.names, Counter(schema.names)
    for role, column in (("target", target), ("timestamp", timestamp), ("weight", weight), *asked):
        if column is not None and column not in counts:
            raise MissingColumnError(column, names, name, role)
    if target is not None and target in (columns or ()):
        raise SourceError(f"target `{target}` is also listed in columns=: leave it out there")
    if weight is not None and weight in (target, *(columns or ())):
        raise SourceError(f"weight `{weight}` is also the target, or listed in columns=")
    if columns is None:
        own = (target, timestamp, weight)
        chosen = [c for c in names if c not in own and not c.startswith(_PANDAS_INDEX)]
    else:
        chosen = list(dict.fromkeys(columns))
    left_out = set(exclude)
    chosen = [column for column in chosen if column not in left_out]
    for column in {*chosen, target, timestamp, weight} - {None}:
        if counts[column] > 1:
            raise NotReadableError(f"`{name}` has several columns named `{column}`; rename them")
    _check_kind(schema, "timestamp", timestamp, ("time", "number"), "a timestamp or seconds")
    _check_kind(schema, "weight", weight, ("number", "null"), "a number")
    return chosen


def _check_kind(
    schema: pa.Schema, role: str, name: str | None, kinds: tuple[str, ...], wanted: str
) -> None:
    if name is not None and kind_of(type_ := schema.field(name).type) not in kinds:
        raise NotReadableError(f"{role} `{name}` has type {type_}; it must be {wanted}")


def with_numbers(
    schema: pa.Schema, features: Sequence[str], parse_numbers: Sequence[str], name: str
) -> pa.Schema:
    """Return a schema in which the text columns among `parse_numbers` are numbers."""
    if isinstance(parse_numbers, str):
        raise SourceError(f"parse_numbers must be a list of names, not the text {parse_numbers!r}")
    known, fields = set(features), list(schema)
    for column in parse_numbers:
        if column not in known:
            raise MissingColumnError(column, list(features), name, "parse_numbers")
        at = schema.get_field_index(column)
        if kind_of(fields[at].type) == "text":
            fields[at] = pa.field(column, pa.float64())
    return pa.schema(fields)


def parsed(
    batch: pa.RecordBatch, names: Sequence[str], decimal: str = "."
) -> tuple[pa.RecordBatch, dict[int, str]]:
    """Return columns with the named texts as numbers, and why rows with other texts are bad."""
    reasons: dict[int, str] = {}
    for name in names:
        at = batch.schema.get_field_index(name)
        if at < 0 or kind_of(batch.schema.field(at).type) != "text":
            continue
        texts = batch.column(at)
        numbers, wrong = numbers_in(texts, decimal)
        for i in np.flatnonzero(wrong).tolist():
            shown = raw(texts)[i].as_py().decode(errors="backslashreplace")
            reasons[i] = no_number(name, shown)
        batch = batch.set_column(at, pa.field(name, pa.float64()), numbers)
    return batch, reasons


def no_number(name: str, text: str) -> str:
    """Return why a text of a column of `parse_numbers` cannot be used."""
    return f"`{name}` is {text!r:.100}: neither a number nor a time (parse_numbers)"


def without_tokens(
    batch: pa.RecordBatch, tokens: Sequence[str], names: Collection[str]
) -> pa.RecordBatch:
    """Return a batch in which texts of the named columns that are tokens are null."""
    columns = list(batch.columns)
    for i, field in enumerate(batch.schema):
        if field.name in names and kind_of(field.type) == "text":
            missing = pc.is_in(columns[i], pa.array(tokens, columns[i].type))
            columns[i] = pc.if_else(missing, pa.scalar(None, columns[i].type), columns[i])
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def column_of_numbers(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.float64]:
    """Return a column of numbers, or times in seconds; NaN where one is missing, or a text."""
    at = batch.schema.get_field_index(name)
    if at < 0 or kind_of(batch.schema.field(at).type) not in ("time", "number"):
        return np.full(batch.num_rows, np.nan)
    return np.asarray(to_float64(plain(batch.column(at))).to_numpy(zero_copy_only=False))


_PLAIN = frozenset(
    pa.type_for_alias(name).id
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float double".split()
)
"""Types of columns that are always plain."""


def plain_batch(batch: pa.RecordBatch, position: Position) -> pa.RecordBatch:
    """Return a record batch of plain columns (see `kinds.plain`); refuse a damaged text column.

    Text that is not UTF-8 may be in it: see `texts_not_utf8`. `position` is that of the first row.
    """
    if all(type_.id in _PLAIN for type_ in batch.schema.types):
        return batch
    columns = [plain(column) for column in batch.columns]
    for name, column in zip(batch.schema.names, columns, strict=True):
        if kind_of(column.type) == "text" and not _is_valid(column) and not _is_valid(raw(column)):
            raise NotReadableError(
                f"text column `{name}` is damaged at or after {position}: leave it out with "
                "exclude= (--exclude), or write it again"
            )
    if [column.type for column in columns] == batch.schema.types:
        return batch
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def texts_not_utf8(batch: pa.RecordBatch) -> dict[int, str]:
    """Return what is wrong with each row of plain columns that has a text that is not UTF-8."""
    reasons: dict[int, str] = {}
    if all(type_.id in _PLAIN for type_ in batch.schema.types):
        return reasons
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if kind_of(column.type) != "text" or _is_valid(column):
            continue
        for i, value in enumerate(raw(column).to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError:
                name = name.removeprefix(KEPT)
                reasons.setdefault(i, f"text column `{name}` is not UTF-8: {value!r:.100}")
    return reasons


def shown_row(batch: pa.RecordBatch, i: int) -> str:
    r"""Return a row as text for people; bytes that are not UTF-8 are written as ``\xff``."""
    row = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        is_text = kind_of(column.type) == "text"
        value = (raw(column) if is_text else column)[i].as_py()
        row[name] = value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
    return json.dumps(row, default=str)


def _is_valid(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def raw(column: pa.Array) -> pa.Array:
    """Return a text column as bytes, without copying."""
    return column.view(pa.binary() if pa.types.is_string(column.type) else pa.large_binary())


def target_type(schema: pa.Schema, target: str | None) -> pa.DataType:
    """Return the type of the labels, null without a target; refuse a column that cannot be one."""
    if target is None:
        return pa.null()
    type_ = schema.field(target).type
    if kind_of(type_of_items(type_)) is None:
        raise NotReadableError(
            f"target `{target}` has type {type_}, which cannot be a label "
            "(numbers, booleans, times and text can, and lists of them for learners of bags)"
        )
    return label_type(plain_type(type_))


def label_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of labels of a type: decimals are numbers if each is one of its own."""
    if not pa.types.is_decimal(type_):
        return type_
    if type_.scale <= 0 and type_.precision - type_.scale <= _MOST_WHOLE:
        return pa.int64()
    return pa.float64() if 0 <= type_.scale and type_.precision <= _MOST_DIGITS else pa.string()


def labels_in(column: pa.Array) -> pa.Array:
    """Return a plain column of labels as a column of the type that `label_type` gives."""
    if not pa.types.is_decimal(column.type):
        return column
    # By its text: the way of Arrow from decimals to floats may round otherwise.
    return column.cast(pa.string()).cast(label_type(column.type))
