"""The batches that `learn_many` and `predict_many` accept: NumPy, SciPy, Arrow, pandas, polars."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.stable.v2.typing import IntoDataFrame

from streamsvm._compile import JIT
from streamsvm.errors import FeatureError
from streamsvm.features.events import check_number_feature
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.packing import rows_at, single, writable, zeroed
from streamsvm.features.schema import Schema, in_order
from streamsvm.labels.label_column import LabelColumn
from streamsvm.support.rows import SparseRows, sorted_rows


class SciPyMatrix(Protocol):
    """A sparse matrix or array of SciPy, which need not be imported."""

    def tocsr(self) -> Any:
        """Return the same by compressed rows."""


Batch: TypeAlias = (
    np.ndarray | SciPyMatrix | pa.RecordBatch | pa.Table | IntoDataFrame | Matrix | SparseMatrix
)
"""Rows as `batches.matrix_of` reads them; `IntoDataFrame` is a frame of pandas, polars, ..."""

_NUMBERS = tuple("fiub")
"""The kinds of NumPy's numbers that can be features."""


def matrix_of(X: Batch, schema: Schema) -> Matrix | SparseMatrix:
    """Read a batch as columns by name.

    It is a NumPy array (n, d) or SciPy sparse matrix, whose features are named 0 .. d-1, and which
    is refused after named features; an Arrow Table or RecordBatch; a pandas, polars or other frame
    that narwhals supports. Nulls, NaN, and what pandas takes for missing (NA, None), are missing
    values, and so is 0 in an Arrow column whose field has the metadata ``one_hot``. A feature
    begins with its first value. Two Arrow columns, lists of integers and lists of as many values,
    are sparse rows: the integers name the features. `schema` has the features that the model has
    seen.

    FeatureError: the batch is of another type, or a column is not numeric.
    """
    if isinstance(X, np.ndarray):
        return _of_array(X, schema)
    if isinstance(X, (pa.RecordBatch, pa.Table)):
        return of_lists(X, schema) if are_lists(X.schema) else _of_single(X, schema) or _of_arrow(X)
    if hasattr(X, "tocsr"):
        return _of_scipy(X, schema)
    if isinstance(X, Sequence) and all(isinstance(x, Mapping) for x in X):
        raise FeatureError("a list of events: use learn_one or predict_one for each, or a frame")
    try:
        frame = nw.from_native(cast(Any, X), eager_only=True)
    except TypeError as error:
        raise FeatureError(
            f"{type(X).__name__} is no batch: use a NumPy array (n, d), an Arrow Table or "
            "RecordBatch, a SciPy sparse matrix, or a pandas or polars frame"
        ) from error
    return _of_frame(frame)


def _of_array(X: np.ndarray, schema: Schema) -> Matrix:
    if X.ndim != 2:
        raise FeatureError(f"an array of shape {X.shape}: use two dimensions, (rows, features)")
    if X.dtype.kind not in _NUMBERS:
        raise FeatureError(f"an array of dtype {X.dtype}: use numbers")
    if isinstance(X, np.ma.MaskedArray):
        # What is hidden is missing.
        X = np.ma.filled(X if X.dtype.kind == "f" else X.astype(np.float64), np.nan)
    X = np.asarray(X)  # a matrix stays one when it is indexed
    schema.check_unnamed()
    return by_appearance(list(range(X.shape[1])), writable(X))


def _is_single(kind: pa.DataType) -> bool:
    """Tell whether single precision represents all values of a type exactly."""
    small = pa.types.is_integer(kind) and kind.bit_width <= 16
    return small or pa.types.is_boolean(kind) or kind in (pa.float16(), pa.float32())


def _of_single(X: Any, schema: Schema) -> Matrix | None:
    """Read columns of single precision without an intermediate copy; None for other columns."""
    plain = isinstance(X, pa.RecordBatch) and X.num_rows > 1 and X.num_columns > 0 and JIT
    if not plain or any(kind != pa.float32() for kind in X.schema.types):
        return None
    columns = dict(zip(X.schema.names, X.columns, strict=True))
    has_zeros = any(field.metadata and b"one_hot" in field.metadata for field in X.schema)
    if has_zeros or len(columns) < X.num_columns or any(c.null_count for c in columns.values()):
        return None
    # In the order of the schema, if the batch has just its features: then no column moves later.
    names: list[Name] = list(schema.names)
    if columns.keys() != set(names):
        names = list(columns)
    wanted = [columns[name] for name in names]  # type: ignore[index]
    addresses = np.array([c.buffers()[1].address + 4 * c.offset for c in wanted])
    values = np.empty((X.num_rows, len(wanted)), np.float32)
    if rows_at(addresses, values, values.view(np.int32).ravel()):
        return Matrix(names, values, None, is_finite=True)
    return by_appearance(names, values)


def _of_arrow(X: pa.RecordBatch | pa.Table) -> Matrix:
    # Column by column in memory, as columns are written whole.
    exact = all(map(_is_single, X.schema.types))
    values = np.empty((X.num_columns, X.num_rows), np.float32 if exact else np.float64).T
    for c, field in enumerate(X.schema):
        column = X.column(c)
        if not (
            pa.types.is_integer(field.type)
            or pa.types.is_floating(field.type)
            or pa.types.is_boolean(field.type)
            or pa.types.is_decimal(field.type)
        ):
            raise FeatureError(_no_number(field.name, field.type))
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            column = pc.cast(column, pa.float64(), safe=False)
        # Of integers with nulls Arrow makes floats with NaN.
        values[:, c] = column.to_numpy(zero_copy_only=False)
        if field.metadata and b"one_hot" in field.metadata:
            # As in its event: which rows have the column must not depend on those beside them.
            values[:, c] = np.where(values[:, c] == 0.0, np.nan, values[:, c])
    return by_appearance(list(X.schema.names), values)


def _no_number(name: Name, kind: object) -> str:
    """Return why a column is refused."""
    return (
        f"column {name!r} is {kind}: only numbers are features; sources of `connectors` read text "
        "as categories and times as numbers"
    )


def by_appearance(names: list[Name], values: np.ndarray) -> Matrix:
    """Return a matrix with its names in the order in which events would bring them.

    A column appears with its first value.
    """
    first = np.zeros(len(names), np.int64)
    if len(values) and values.dtype.kind == "f":
        for c in np.flatnonzero(np.isnan(values[0])).tolist():
            first[c] = np.argmin(np.isnan(values[:, c]))
    if not first.any():
        return Matrix(names, values, None)
    rank = {name: i for i, name in enumerate(in_order(names))}
    order = sorted(range(len(names)), key=lambda c: (first[c], rank[names[c]]))
    return Matrix(names, values, [names[c] for c in order])


def _of_frame(frame: Any) -> Matrix:
    names, values = list(frame.columns), np.zeros(frame.shape)
    for c, name in enumerate(frame.columns):
        # By its place: an integer name would be taken for the number of a row.
        column = frame[:, c]
        dtype = getattr(column.to_native().dtype, "subtype", None)
        if frame.implementation.is_pandas_like() and getattr(dtype, "kind", "") in _NUMBERS:
            # pandas' sparse columns, as its dummies and River's OneHotEncoder make them.
            values[:, c] = column.to_native().to_numpy(dtype)
            continue
        if _are_objects(column):
            # Numbers or booleans with nulls among them.
            given = column.to_native().tolist()
            values[:, c] = [check_number_feature(name, value) for value in given]
            continue
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            raise FeatureError(_no_number(name, column.dtype))
        native = column.to_native()
        if not frame.implementation.is_pandas_like():
            absent = column.is_null().to_numpy()
            values[:, c] = np.where(absent, np.nan, column.fill_null(0).to_numpy())
        elif isinstance(native.dtype, np.dtype):
            values[:, c] = native.to_numpy()
        else:
            values[:, c] = native.to_numpy(float, na_value=np.nan)
    return by_appearance(names, values)


def _are_objects(column: Any) -> bool:
    """Tell whether a column of pandas has objects that are no texts, or nulls only."""
    dtype = getattr(column.to_native(), "dtype", None)
    is_text = column.dtype == nw.String and not column.is_null().all()
    return isinstance(dtype, np.dtype) and dtype.kind == "O" and not is_text


def labels_of(y: Any, n_rows: int) -> LabelColumn:
    """Return the labels of so many rows, in any container, as a column.

    FeatureError: their number is another one. LabelError: a label is not hashable.
    """
    labels = LabelColumn.of(y)
    if len(labels) != n_rows:
        raise FeatureError(f"{len(labels)} labels for {n_rows} rows")
    return labels


def like(X: Any, values: list[Any], name: str | None = None) -> Any:
    """Return predictions in a container of the library that the batch `X` comes from."""
    if isinstance(X, np.ndarray) or hasattr(X, "tocsr"):
        return np.array(values) if values else np.zeros(0, bool)
    if isinstance(X, (pa.RecordBatch, pa.Table)):
        return pa.array(values)
    frame = nw.from_native(cast(Any, X), eager_only=True)
    if frame.implementation.is_pandas_like():
        return frame.implementation.to_native_namespace().Series(values, index=X.index, name=name)
    return nw.new_series(name or "", values, backend=frame.implementation).to_native()


def columns_like(X: Any, columns: dict[Any, np.ndarray]) -> Any:
    """Return columns as a dict for NumPy, an Arrow Table for Arrow, else as a frame like `X`."""
    if isinstance(X, np.ndarray) or hasattr(X, "tocsr"):
        return columns
    if isinstance(X, (pa.RecordBatch, pa.Table)):
        return pa.table({str(key): values for key, values in columns.items()})
    frame = nw.from_native(cast(Any, X), eager_only=True)
    if frame.implementation.is_pandas_like():
        return frame.implementation.to_native_namespace().DataFrame(columns, index=X.index)
    named = {str(key): values for key, values in columns.items()}
    return nw.from_dict(named, backend=frame.implementation).to_native()


def _of_scipy(X: Any, schema: Schema) -> SparseMatrix:
    """Read a sparse matrix, whose features are named 0 .. d-1; NaN counts as 0."""
    if X.ndim != 2 or X.dtype.kind not in _NUMBERS:
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
