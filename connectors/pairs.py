"""Batches from (features, label) pairs: numbers become float64 columns, text one-hot columns."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.errors import NotReadableError
from connectors.kinds import record_batch
from connectors.source import Batch, Reject

_PLAIN = {float}
_NUMBERS = (float, int, np.number, np.bool_)


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
        features = _numbers_and_texts(pairs, rows)
    try:
        labels = pa.array([y for _, y in pairs])
    except (pa.ArrowException, TypeError) as error:
        raise NotReadableError(
            f"the labels from row {rows[0]} on are of several types or of none that a batch can "
            f"hold ({error}): use events()"
        ) from error
    return Batch(features, labels, rows, file, rejects=rejects, **more)


def _numbers(pairs: Sequence[tuple[Mapping[Any, Any], Any]]) -> pa.RecordBatch | None:
    """Return the features if all events have the same names, and numbers only; else None."""
    if not pairs:
        return None
    names = list(pairs[0][0])
    try:
        # itemgetter returns a tuple only for two names or more.
        values = list(map(itemgetter(*names), (x for x, _ in pairs))) if len(names) > 1 else None
    except KeyError:
        return None
    if values is None or any(len(x) != len(names) for x, _ in pairs):
        return None
    arrays = []
    for column in zip(*values, strict=True):
        if not set(map(type, column)) <= _PLAIN:
            return None
        arrays.append(pa.array(column, pa.float64(), from_pandas=False))
    return record_batch(arrays, [pa.field(str(n), pa.float64()) for n in names], len(pairs))


def _numbers_and_texts(
    pairs: Sequence[tuple[Mapping[Any, Any], Any]], rows: npt.NDArray[np.int64]
) -> pa.RecordBatch:
    """Return the features, value by value."""
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
    told = {name: {"one_hot": column} for name, column in one_hot.items()}
    fields = [pa.field(name, pa.float64(), metadata=told.get(name)) for name in columns]
    arrays = [pa.array(column, pa.float64()) for column in columns.values()]
    return record_batch(arrays, fields, len(pairs))
