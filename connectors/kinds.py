"""Kinds of columns: which Arrow types can be a feature, and their values as floats."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

Kind: TypeAlias = Literal["number", "time", "duration", "text", "null"]

# Units in a second: dividing keeps whole seconds exact, multiplying by 1e-9 would not.
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_SECONDS_A_DAY = 86_400.0


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of values of an Arrow type, None if it can be neither feature nor label.

    Values of one kind can follow each other in a stream, whatever their width: an int32 and a
    float64 are both numbers, a date and a timestamp are both times.

    Parameters
    ----------
    type_
        The type of a column.

    Returns
    -------
    Kind | None
        The kind, or None.

    Examples
    --------
    >>> kind_of(pa.int8()), kind_of(pa.dictionary(pa.int32(), pa.string()))
    ('number', 'text')
    >>> kind_of(pa.list_(pa.int8())) is None
    True

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


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the type that `plain` gives to a column.

    Parameters
    ----------
    type_
        The type of a column.

    Returns
    -------
    pa.DataType
        The type without dictionary encoding or string views.

    """
    if types.is_dictionary(type_):
        type_ = type_.value_type
    return pa.string() if types.is_string_view(type_) else type_


def plain(column: pa.Array) -> pa.Array:
    """Return a column without dictionary encoding or string views.

    Batches of one file may carry different dictionaries, and Arrow can neither join those nor take
    rows of string views; plain columns have neither problem.

    Parameters
    ----------
    column
        Any column.

    Returns
    -------
    pa.Array
        The same values in a plain type.

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

    Parameters
    ----------
    column
        Numbers, times or durations; plain.

    Returns
    -------
    pa.Array
        float64.

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


def cells(column: pa.Array) -> list[Any]:
    """Return a float64 column as Python floats, None for null (and NaN for NaN).

    Parameters
    ----------
    column
        float64.

    Returns
    -------
    list[Any]
        A float or None for each row.

    """
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
    """Return a record batch that knows its number of rows even if it has no column.

    Parameters
    ----------
    columns, fields
        The columns, and their fields.
    num_rows
        The number of rows.

    Returns
    -------
    pa.RecordBatch
        The batch.

    """
    if columns:
        return pa.RecordBatch.from_arrays(list(columns), schema=pa.schema(fields))
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), num_rows, [None]))
