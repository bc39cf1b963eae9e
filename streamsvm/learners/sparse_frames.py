"""Sparse batches: SciPy's matrices, and Arrow columns of lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsvm.errors import FeatureError
from streamsvm.learners.matrices import SparseMatrix
from streamsvm.learners.packing import writable
from streamsvm.learners.schema import Schema
from streamsvm.support.rows import SparseRows, sorted_rows


def of_scipy(X: Any, schema: Schema) -> SparseMatrix:
    """Read a sparse matrix, whose features are named 0 .. d-1."""
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise FeatureError(
            f"a sparse matrix of shape {X.shape} and dtype {X.dtype}: use numbers in two dimensions"
        )
    schema.check_unnamed()
    csr, d = X.tocsr(), X.shape[1]
    with np.errstate(over="ignore"):
        values = csr.data.astype(np.float32, copy=False)
    start, columns = csr.indptr.astype(np.int64), csr.indices.astype(np.int32, copy=False)
    rows = SparseRows(start, writable(columns), writable(values), d)
    return SparseMatrix(range(d), rows if csr.has_canonical_format else sorted_rows(rows))


def are_lists(schema: pa.Schema) -> bool:
    """Tell whether the columns are lists of whole numbers and lists of values."""
    types = [field.type for field in schema]
    return (
        len(types) == 2
        and all(pa.types.is_list(t) or pa.types.is_large_list(t) for t in types)
        and pa.types.is_integer(types[0].value_type)
        and (pa.types.is_floating(types[1].value_type) or pa.types.is_integer(types[1].value_type))
    )


def of_lists(X: pa.RecordBatch | pa.Table, schema: Schema) -> SparseMatrix:
    """Read two columns of lists: features, named by whole numbers, and their values.

    Raises
    ------
    FeatureError
        A row lists more features than values, or a feature out of range.

    """
    schema.check_unnamed()
    places, values = (
        c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in map(X.column, (0, 1))
    )
    lengths = pc.fill_null(pc.list_value_length(places), 0).to_numpy()
    if not np.array_equal(lengths, pc.fill_null(pc.list_value_length(values), 0).to_numpy()):
        raise FeatureError(
            f"columns {X.schema.names}: a row lists other numbers of features and of values"
        )
    columns, data = pc.list_flatten(places), pc.list_flatten(values)
    if columns.null_count or data.null_count:
        raise FeatureError(f"columns {X.schema.names}: a list holds a null")
    features = columns.to_numpy().astype(np.int64)
    if len(features) and (features.min() < 0 or features.max() >= schema.limit):
        raise FeatureError(
            f"column {X.schema.names[0]!r} holds features from {features.min()} to "
            f"{features.max()}: use whole numbers from 0 to {schema.limit - 1} (max_features)"
        )
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    d = int(features.max()) + 1 if len(features) else 0
    with np.errstate(over="ignore"):
        single = data.to_numpy().astype(np.float32)
    rows = SparseRows(start, features.astype(np.int32), single, d)
    return SparseMatrix(range(d), sorted_rows(rows))
