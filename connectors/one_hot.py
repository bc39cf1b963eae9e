"""Rows as they are in files and topics, in the form that models learn them: numbers by name.

Numbers become float64 columns, text one-hot columns.
"""

import numbers
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.batch import Batch, Position, Reject
from connectors.columns import feature_columns, plain_batch, texts_not_utf8
from connectors.encoding import OTHER, Encoder, are_listed
from connectors.errors import NotReadableError
from connectors.kinds import kind_of, one_batch, plain, record_batch, to_float64

_PLAIN = {float}
_NO_NUMBERS = (np.timedelta64, np.complexfloating)


@overload
def one_hot(rows: Mapping[str, Any], known: Collection[Any] | None = None) -> dict[str, float]: ...


@overload
def one_hot(rows: Any, known: Collection[Any] | None = None) -> pa.RecordBatch: ...


def one_hot(rows: Any, known: Collection[Any] | None = None) -> Any:
    """Return raw rows as features, just as the sources of this package do.

    Text becomes a feature ``column=value`` of 1.0, times become seconds since 1970 (UTC), durations
    seconds, booleans and decimals numbers; None and null are missing. So a model that learnt from a
    file or a topic knows the features of an event that comes from elsewhere.

    Parameters
    ----------
    rows
        One event, as a mapping; or many rows: an Arrow table or record batch, or a data frame of
        pandas, polars or anything else with ``__arrow_c_stream__``.
    known
        The features that the model knows (`feature_names` of a learner; a set is fastest). The
        sources let the values of a text column beyond its first 1,000 share ``column=<other>``;
        with `known`, values that the model does not know share it, if the model knows it.

    Returns
    -------
    dict[str, float] | pa.RecordBatch
        The features of the event, for `predict_one`; or those of all rows, for `predict_many`.

    Raises
    ------
    NotReadableError
        A value is nested, or has another type that cannot be a feature; or `rows` is neither.

    Examples
    --------
    >>> from datetime import date
    >>> from connectors import one_hot
    >>> one_hot({"age": 39, "sex": "f", "since": date(1970, 1, 2), "job": None})
    {'age': 39.0, 'sex=f': 1.0, 'since': 86400.0}
    >>> one_hot(pa.table({"age": [39, None], "sex": ["f", "m"]})).to_pydict()
    {'age': [39.0, None], 'sex=f': [1.0, 0.0], 'sex=m': [0.0, 1.0]}

    """
    if isinstance(rows, Mapping):
        return _event(rows, known)
    if not isinstance(rows, pa.Table):
        if not hasattr(rows, "__arrow_c_stream__"):
            raise NotReadableError(
                f"a {type(rows).__name__} is neither an event nor a frame: give a mapping, an "
                "Arrow table or record batch, or a data frame with __arrow_c_stream__"
            )
        rows = pa.RecordBatchReader.from_stream(rows).read_all()
    return _batch(rows, known)


def _event(x: Mapping[str, Any], known: Collection[Any] | None) -> dict[str, float]:
    found = {}
    for name, value in x.items():
        if isinstance(value, str):
            found[f"{name}={_shared(name, value, known)}"] = 1.0
        elif (number := _number(name, value)) is not None:
            found[name] = number
    return found


def _number(name: str, value: Any) -> float | None:
    """Return a number, time or duration as a column of it would be; None: it is missing."""
    if value is None or value is np.ma.masked:
        return None
    try:
        if isinstance(value, (numbers.Real, np.bool_)) and not isinstance(value, _NO_NUMBERS):
            return float(value)
    except (OverflowError, ValueError) as error:
        raise NotReadableError(f"feature `{name}` is too large for a float") from error
    try:
        column = pa.array([value], from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
        raise NotReadableError(f"feature `{name}` is a {type(value).__name__}: {error}") from error
    if kind_of(column.type) not in ("number", "time", "duration", "null"):
        raise NotReadableError(
            f"feature `{name}` is a {type(value).__name__}: a feature is a number, a boolean, a "
            "time or text; leave it out, or take its parts apart"
        )
    if column.null_count:
        return None
    return float(to_float64(column)[0].as_py())


def _shared(name: str, value: str, known: Collection[Any] | None) -> str:
    """Return a value, or `OTHER` if the model knows that in its place."""
    if known is None or f"{name}={value}" in known or f"{name}={OTHER}" not in known:
        return value
    return OTHER


def _batch(table: pa.Table, known: Collection[Any] | None) -> pa.RecordBatch:
    names = feature_columns(table.schema, "frame", None, None, None)
    batch = plain_batch(one_batch(table.select(names).unify_dictionaries()), Position(None, 0))
    if are_listed(batch.schema):
        return batch
    for row, reason in texts_not_utf8(batch).items():
        raise NotReadableError(f"row {row}: {reason}; convert it, or leave the column out")
    if known is None:
        return Encoder(batch.schema).encode(batch)
    known = frozenset(known)
    columns = [
        _with_shared(name, column, known) for name, column in zip(names, batch.columns, strict=True)
    ]
    batch = record_batch(columns, list(batch.schema), len(table))
    return Encoder(batch.schema, max_categories=max(1, len(table))).encode(batch)


def _with_shared(name: str, column: pa.Array, known: Collection[Any]) -> pa.Array:
    if kind_of(column.type) != "text":
        return column
    coded = column.dictionary_encode()
    values = [_shared(name, value, known) for value in coded.dictionary.to_pylist()]
    return plain(pa.array(values, column.type).take(coded.indices))


# Batches from pairs


def batch_of(
    pairs: Sequence[tuple[Mapping[Any, Any], Any]],
    rows: npt.NDArray[np.int64],
    file: str | None,
    rejects: tuple[Reject, ...] = (),
    **more: Any,
) -> Batch:
    """Return a batch of (features, label) pairs; `more` are other arguments of `Batch`.

    A `NotReadableError` says which value is neither number, text nor None.
    """
    features = _numbers(pairs)
    if features is None:
        features = _numbers_and_texts(pairs)
    try:
        labels = pa.array([y for _, y in pairs])
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise NotReadableError(
            f"the labels from row {rows[0]} on are of several types or of none that a batch can "
            f"hold ({error}): use events()"
        ) from error
    return Batch(features, labels, rows, file, rejects=rejects, **more)


def _numbers(pairs: Sequence[tuple[Mapping[Any, Any], Any]]) -> pa.RecordBatch | None:
    """Return the features if all events have the same names, and numbers only; else None."""
    if not pairs:
        return None
    try:
        names = list(pairs[0][0])
        # itemgetter returns a tuple only for two names or more.
        values = list(map(itemgetter(*names), (x for x, _ in pairs))) if len(names) > 1 else None
        if values is None or any(len(x) != len(names) for x, _ in pairs):
            return None
    except (KeyError, TypeError):
        return None
    if set(map(type, names)) != {str}:
        return None
    arrays = []
    for column in zip(*values, strict=True):
        if not set(map(type, column)) <= _PLAIN:
            return None
        arrays.append(pa.array(column, pa.float64(), from_pandas=False))
    return record_batch(arrays, [pa.field(n, pa.float64()) for n in names], len(pairs))


def named(x: Any) -> dict[str, Any]:
    """Return an event with names that columns can have: whole numbers become texts.

    A `NotReadableError` says what is no event, or no name.
    """
    if not isinstance(x, Mapping):
        raise NotReadableError(f"an event is a mapping of features, not a {type(x).__name__}")
    found: dict[str, Any] = {}
    for name, value in x.items():
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise NotReadableError(f"a feature is named by a {type(name).__name__}: use a text")
        if str(name) in found:
            raise NotReadableError(f"two features are named `{name}`")
        _check_utf8(name, value)
        found[str(name)] = value
    return found


def _check_utf8(name: Any, value: Any) -> None:
    try:
        f"{name}{value if isinstance(value, str) else ''}".encode()
    except UnicodeEncodeError as error:
        raise NotReadableError("a name or text holds a lone surrogate, which is no text") from error


def _numbers_and_texts(pairs: Sequence[tuple[Mapping[Any, Any], Any]]) -> pa.RecordBatch:
    """Return the features, value by value."""
    columns: dict[str, list[float | None]] = {}
    one_hot: dict[str, str] = {}
    for i, (x, _) in enumerate(pairs):
        for name, value in named(x).items():
            if isinstance(value, str):
                one_hot[f"{name}={value}"] = name
                columns.setdefault(f"{name}={value}", [0.0] * len(pairs))[i] = 1.0
            elif (number := _number(name, value)) is not None:
                columns.setdefault(name, [None] * len(pairs))[i] = number
    told = {name: {"one_hot": column} for name, column in one_hot.items()}
    fields = [pa.field(name, pa.float64(), metadata=told.get(name)) for name in columns]
    arrays = [pa.array(column, pa.float64()) for column in columns.values()]
    return record_batch(arrays, fields, len(pairs))
