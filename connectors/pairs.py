"""Batches of (features, label) pairs: numbers as they are, text as one-hot."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.errors import NotReadableError
from connectors.kinds import kind_of, plain, record_batch, to_float64
from connectors.source import Batch, Reject

_NUMBERS = (float, int, np.number, np.bool_)


def batch_of(
    pairs: Sequence[tuple[Mapping[Any, Any], Any]],
    rows: npt.NDArray[np.int64],
    file: str | None,
    rejects: tuple[Reject, ...] = (),
) -> Batch:
    """Return a batch of pairs whose places are `rows` of `file`.

    Raises
    ------
    NotReadableError
        A value is neither number, text nor None, or the labels have several types.

    """
    columns: dict[str, list[float | None]] = {}
    one_hot: dict[str, str] = {}
    for i, (x, _) in enumerate(pairs):
        for name, value in x.items():
            if isinstance(value, str):
                one_hot[f"{name}={value}"] = name
                columns.setdefault(f"{name}={value}", [0.0] * len(pairs))[i] = 1.0
            elif isinstance(value, _NUMBERS):
                columns.setdefault(name, [None] * len(pairs))[i] = float(value)
            elif value is not None:
                raise NotReadableError(
                    f"feature `{name}` of row {rows[i]} is a {type(value).__name__}; "
                    "batches hold numbers and text: use events() for anything else"
                )
    fields = [_field(name, one_hot.get(name)) for name in columns]
    arrays = [pa.array(column, pa.float64()) for column in columns.values()]
    features = record_batch(arrays, fields, len(pairs))
    try:
        labels = pa.array([y for _, y in pairs])
    except (pa.ArrowException, TypeError) as error:
        raise NotReadableError(
            f"the labels from row {rows[0]} on are of several types or of none that a batch can "
            f"hold ({error}): use events()"
        ) from error
    return Batch(features, labels, rows, file, rejects=rejects)


def encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return float64 features of a record batch, of columns that can be: text is one-hot."""
    fields, arrays = [], []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        values = plain(column)
        if kind_of(field.type) != "text":
            fields.append(_field(field.name, None))
            arrays.append(to_float64(values))
            continue
        texts = values.to_pylist()
        for text in dict.fromkeys(text for text in texts if text is not None):
            fields.append(_field(f"{field.name}={text}", field.name))
            arrays.append(pa.array([float(other == text) for other in texts]))
    return record_batch(arrays, fields, batch.num_rows)


def _field(name: str, one_hot: str | None) -> pa.Field:
    metadata = {} if one_hot is None else {"one_hot": one_hot}
    return pa.field(name, pa.float64(), metadata=metadata)
