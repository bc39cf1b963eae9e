"""Sparse batches: SciPy matrices, and pairs of Arrow columns of lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsvm.errors import FeatureError
from streamsvm.features.matrices import SparseMatrix
from streamsvm.features.packing import single, writable, zeroed
from streamsvm.features.schema import Schema
from streamsvm.support.rows import SparseRows, sorted_rows


def of_scipy(X: Any, schema: Schema) -> SparseMatrix:
    """Read a sparse matrix, whose features are named 0 .. d-1; NaN counts as 0."""
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise FeatureError(
            f"a sparse matrix of shape {X.shape} and dtype {X.dtype}: use numbers in two dimensions"
        )
    schema.check_unnamed()
    csr, d = X.tocsr(), X.shape[1]
    values = zeroed(single(csr.data))
    start, columns = csr.indptr.astype(np.int64), csr.indices.astype(np.int32, copy=False)
    rows = SparseRows(start, writable(columns), writable(values), d)
    return SparseMatrix(range(d), rows if csr.has_canonical_format else sorted_rows(rows))


def are_lists(schema: pa.Schema) -> bool:
    """Tell whether there are two columns, lists of integers and lists of numbers."""
    types = [field.type for field in schema]
    return (
        len(types) == 2
        and all(pa.types.is_list(t) or pa.types.is_large_list(t) for t in types)
        and pa.types.is_integer(types[0].value_type)
        and (pa.types.is_floating(types[1].value_type) or pa.types.is_integer(types[1].value_type))
    )


def of_lists(X: pa.RecordBatch | pa.Table, schema: Schema) -> SparseMatrix:
    """Read two columns of lists: features, named by integers, and their values.

    Lists of int32 and of float32 are not copied. FeatureError: a row lists other numbers of
    features and of values, a null, or a feature out of range.
    """
    schema.check_unnamed()
    (start, features), (own_start, values) = (_flat(X.column(i)) for i in (0, 1))
    if not np.array_equal(start, own_start):
        raise FeatureError(
            f"columns {X.schema.names}: a row lists other numbers of features and of values"
        )
    if features.null_count or values.null_count:
        raise FeatureError(f"columns {X.schema.names}: a list holds a null")
    columns, data = features.to_numpy(), values.to_numpy()
    # Checked before the conversion to int32, which could wrap around.
    low, high = (int(columns.min()), int(columns.max())) if len(columns) else (0, -1)
    if low < 0 or high >= schema.limit:
        raise FeatureError(
            f"column {X.schema.names[0]!r} holds features from {low} to {high}: use whole numbers "
            f"from 0 to {schema.limit - 1} (max_features)"
        )
    own = columns.astype(np.int32, copy=False)
    rows = SparseRows(start, writable(own), writable(zeroed(single(data))), high + 1)
    return SparseMatrix(range(high + 1), sorted_rows(rows))


def _flat(column: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """Return where each list of a column begins, int64 (n + 1,), and the items of all lists."""
    lists = column
    if isinstance(column, pa.ChunkedArray):
        lists = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if not len(lists):
        # An empty Arrow array may have no offsets.
        return np.zeros(1, np.int64), lists.values[:0]
    if lists.null_count:
        # The offsets of a null may span items, which do not count.
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), pc.list_flatten(lists)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], lists.values[offsets[0] : offsets[-1]]
