"""Sparse rows as two list columns: the indices of a row's features, and their values.

Sparse data sets are kept in this form in Parquet. A feature's name is its index, a whole number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import types

from connectors.encoding import Encoder


def _holds(type_: pa.DataType, *tests: Any) -> bool:
    is_list = types.is_list(type_) or types.is_large_list(type_)
    return is_list and any(test(type_.value_type) for test in tests)


def are_listed(schema: pa.Schema) -> bool:
    """Tell whether a schema is a column of index lists and a column of value lists."""
    if len(schema) != 2:
        return False
    places, values = schema.types
    return _holds(places, types.is_integer) and _holds(values, types.is_floating, types.is_integer)


def events_of(batch: pa.RecordBatch) -> Iterator[dict[Any, float]]:
    """Yield the features of each row; none where a list is null."""
    places, values = batch.column(0).to_pylist(), batch.column(1).to_pylist()
    for row_places, row_values in zip(places, values, strict=True):
        yield dict(zip(row_places or (), row_values or (), strict=True))


class ListEncoder(Encoder):
    """The counterpart of `Encoder` for list columns, which need no encoding."""

    def __init__(self, schema: pa.Schema) -> None:
        self._names = schema.names
        self._kinds = {}  # none are texts, whose categories a snapshot keeps
        self.empty = []  # of lists it is not known
        self.rewind()

    def encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the two columns of a batch."""
        return batch.select(self._names)

    def events(self, batch: pa.RecordBatch) -> Iterator[dict[Any, float]]:
        """Return the features of each row."""
        return events_of(self.encode(batch))
