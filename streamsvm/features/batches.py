"""Batches as rows whose columns are the features of a schema."""

from collections.abc import Sequence

import numpy as np

from streamsvm.features import frames
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.packing import single, zeroed
from streamsvm.features.schema import Schema
from streamsvm.support.rows import Rows, SparseRows, dense, shape, sparse


def matrix_of(X: frames.Batch, schema: Schema) -> Matrix | SparseMatrix:
    """Return a batch as a `Matrix` or `SparseMatrix`; a batch that is one is returned as it is."""
    return X if isinstance(X, (Matrix, SparseMatrix)) else frames.matrix_of(X, schema)


def rows_of(
    schema: Schema, matrix: Matrix | SparseMatrix, is_sparse: bool
) -> tuple[Rows, Sequence[Name]]:
    """Return a matrix (see `matrix_of`) as rows, new features in its last columns, and their names.

    In dense rows missing values are NaN. The schema is not changed. FeatureError: a value is
    infinite in single precision, two columns have one name, or there are too many features.
    """
    if isinstance(matrix, SparseMatrix):
        rows, new = schema.sparse_rows(matrix.names, matrix.rows)
        return (rows if is_sparse else dense(rows)), new
    if schema.buckets is not None:
        rows = sparse(zeroed(np.ascontiguousarray(single(matrix.values))))
        return schema.sparse_rows(matrix.names, rows)
    names, values, order, is_finite = matrix
    x, new = schema.wider_rows(names, values, order, is_finite)
    if is_sparse:
        schema.missing.refuse_missing(x, [*schema.names, *new])
        return sparse(zeroed(x)), new
    return x, new


def known_rows(schema: Schema, X: frames.Batch, is_sparse: bool) -> Rows:
    """Return a batch as filled rows of the schema's features; a sparse batch stays sparse."""
    matrix = matrix_of(X, schema)
    x, _ = rows_of(schema, matrix, is_sparse or isinstance(matrix, SparseMatrix))
    if not isinstance(matrix.names, range):
        schema.note_predicted(matrix.names, shape(x)[0])
    d = len(schema)
    if isinstance(x, SparseRows):
        return schema.known(x)
    known = np.ascontiguousarray(x[:, :d]) if x.shape[1] > d else x
    return schema.missing.filled(known, schema.names)[0]
