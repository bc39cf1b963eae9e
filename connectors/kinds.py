"""Kinds of columns: which Arrow types can be a feature, and their values as floats."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

Kind: TypeAlias = Literal["number", "time", "duration", "text", "null"]

# Units in a second: dividing keeps whole seconds exact, multiplying by 1e-9 would not.
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_SECONDS_A_DAY = 86_400.0
_BY_SIZE, _SIZES = (1e11, 1e14, 1e17), (None, "milliseconds", "microseconds", "nanoseconds")

# Texts that are numbers or times, for Arrow and for Python alike.
SPACES = " \t\n\v\f\r"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
# With points between thousands, if at all.
_COMMA_NUMBER = r"[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)?(,[0-9]*)?([eE][+-]?[0-9]+)?"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_ZONED = f"{_DAY}{_CLOCK}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})"
_MOMENT = f"{_DAY}({_CLOCK})?"
_FORMS = (
    (_NUMBER, pa.float64()),
    (_MOMENT, pa.timestamp("us")),
    (_ZONED, pa.timestamp("us", "UTC")),
)


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of values of an Arrow type, None if it can be neither feature nor label.

    Values of one kind can follow each other in a stream, whatever their width: an int32 and a
    float64 are both numbers, a date and a timestamp are both times.
    """
    if types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if types.is_boolean(type_) or types.is_integer(type_) or types.is_floating(type_):
        return "number"
    if types.is_decimal(type_):
        return "number"
    if types.is_timestamp(type_) or types.is_date(type_):
        return "time"
    if types.is_time(type_) or types.is_duration(type_):
        return "duration"
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return "text"
    if types.is_null(type_):
        return "null"
    return None


def is_list(type_: pa.DataType) -> bool:
    """Tell whether values of a type are lists of any length."""
    return bool(types.is_list(type_) or types.is_large_list(type_))


def type_of_items(type_: pa.DataType) -> pa.DataType:
    """Return the type of the items of lists, another type as it is."""
    return type_.value_type if is_list(type_) else type_


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the type that `plain` gives to a column of a type."""
    if types.is_dictionary(type_):
        type_ = type_.value_type
    return pa.string() if types.is_string_view(type_) else type_


def plain(column: pa.Array) -> pa.Array:
    """Return a column without dictionary encoding or string views.

    Batches of one file may carry different dictionaries, and Arrow can neither join those nor take
    rows of string views; plain columns have neither problem.
    """
    if types.is_dictionary(column.type):
        # Not dictionary_decode(): it cannot take from a dictionary of string views.
        return plain(column.dictionary).take(column.indices)
    wanted = plain_type(column.type)
    return column if column.type == wanted else column.cast(wanted)


def to_float64(column: pa.Array) -> pa.Array:
    """Return numbers as float64, times and durations as seconds; nulls stay null.

    Times count from 1970-01-01 UTC, durations and times of day from zero. Integers beyond 2**53
    are rounded. The column must be plain, and not text.
    """
    if types.is_float64(column.type):
        return column
    kind = kind_of(column.type)
    if kind not in ("time", "duration"):
        return pc.cast(column, pa.float64(), safe=False)
    width = pa.int32() if column.type.bit_width == 32 else pa.int64()
    count = pc.cast(pc.cast(column, width), pa.float64(), safe=False)
    if types.is_date32(column.type):
        return pc.multiply(count, _SECONDS_A_DAY)
    unit = "ms" if types.is_date64(column.type) else column.type.unit
    return pc.divide(count, _UNITS[unit])


def seconds_by_size(
    moments: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], str | None]:
    """Return numbers of seconds since 1970; and, if some were in another unit, which.

    The unit is told by size: from 1e11 on they are milliseconds (of 1973 and later), from 1e14 on
    microseconds, from 1e17 on nanoseconds; 1e11 seconds are the year 5138.
    """
    size = np.searchsorted(_BY_SIZE, np.abs(moments), "right")
    # NaN is sorted behind all.
    size[np.isnan(moments)] = 0
    found = int(size.max(initial=0))
    return (moments / 1000.0**size, _SIZES[found]) if found else (moments, None)


def cast_or_null(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return texts as another type, null where that cannot be."""
    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, type_)
        middle = len(texts) // 2
        parts = texts.slice(0, middle), texts.slice(middle)
        return pa.concat_arrays([cast_or_null(part, type_) for part in parts])


def with_points(texts: pa.Array, decimal: str) -> pa.Array:
    """Return texts of numbers as Arrow reads them; null, if they are of a comma and this is none.

    With the decimal comma, points are between thousands: 1.234,5 is 1234.5.
    """
    if decimal == ".":
        return texts
    fits = pc.match_substring_regex(texts, f"^(?:{_COMMA_NUMBER})$")
    pointed = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
    return pc.if_else(fits, pointed, pa.scalar(None, texts.type))


def are_numbers(texts: pa.Array, decimal: str = ".") -> pa.Array:
    """Return which texts, without spaces around, are numbers, be they infinite; null is null."""
    form = f"^(?:{_NUMBER}|[+-]?(?i:inf(inity)?))$"
    fits = pc.match_substring_regex(with_points(texts, decimal), form)
    return fits if decimal == "." else pc.and_(pc.fill_null(fits, False), texts.is_valid())


def numbers_in(texts: pa.Array, decimal: str = ".") -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the numbers that texts hold, and which texts are neither number nor time.

    Times (ISO 8601, by default UTC) are in seconds since 1970. Empty texts are missing numbers.
    `decimal` is "." or ",", before the fraction of numbers.
    """
    texts = pc.ascii_trim_whitespace(texts)
    found, none = pa.nulls(len(texts), pa.float64()), pa.scalar(None, texts.type)
    for form, type_ in _FORMS:
        given = with_points(texts, decimal) if form is _NUMBER else texts
        fits = pc.match_substring_regex(given, f"^(?:{form})$")
        if pc.any(fits).as_py():
            cast = cast_or_null(pc.if_else(fits, given, none), type_)
            found = pc.coalesce(found, to_float64(cast))
    is_text = pc.fill_null(pc.greater(pc.binary_length(texts), 0), False)
    wrong = pc.and_(is_text, found.is_null()).to_numpy(zero_copy_only=False)
    return found, wrong


def number_in(text: str, decimal: str = ".") -> float | None:
    """Return the number that a text holds, as `numbers_in`; None: it holds none."""
    text = pointed = text.strip(SPACES)
    if decimal == ",":
        fits = re.fullmatch(_COMMA_NUMBER, text)
        pointed = text.replace(".", "").replace(",", ".") if fits else ""
    if re.fullmatch(_NUMBER, pointed):
        return float(pointed)
    if re.fullmatch(f"{_MOMENT}|{_ZONED}", text):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def cells(column: pa.Array) -> list[Any]:
    """Return a float64 column as Python floats, None for null (and NaN for NaN)."""
    # Through numpy: to_pylist makes a scalar object of every cell.
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        for i in np.flatnonzero(missing).tolist():
            values[i] = None
    return values


def record_batch(
    columns: Sequence[pa.Array], fields: Sequence[pa.Field], num_rows: int
) -> pa.RecordBatch:
    """Return a record batch that knows its number of rows even if it has no column."""
    if columns:
        return pa.RecordBatch.from_arrays(list(columns), schema=pa.schema(fields))
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), num_rows, [None]))


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one record batch."""
    table = table.combine_chunks()
    columns = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in table.columns]
    return record_batch(columns, list(table.schema), len(table))
