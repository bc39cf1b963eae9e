"""Batches as columns by name, dense or sparse."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.errors import FeatureError
from streamsvm.features.events import refusal
from streamsvm.features.names import Name, check_different
from streamsvm.features.packing import are_columns, are_rows, first_bad, mark_finite, mark_usable
from streamsvm.support.rows import LARGEST, SparseRows, taken


class Matrix(NamedTuple):
    """Columns by name; NaN: a row lacks the feature."""

    names: list[Name]
    values: np.ndarray  # numbers (n, len(names))
    order: list[Name] | None  # names by first appearance; None: all appear in the first row
    is_finite: bool = False  # all values were checked: finite in single precision, none missing


class SparseMatrix(NamedTuple):
    """Rows that list their nonzero features; `names` are the names of their columns."""

    names: Sequence[Name]
    rows: SparseRows

    @property
    def values(self) -> np.ndarray:
        """The nonzero values, float32."""
        return self.rows.values[int(self.rows.start[0]) : int(self.rows.start[-1])]


def take(matrix: Any, kept: np.ndarray) -> Any:
    """Return some rows of a matrix."""
    if isinstance(matrix, SparseMatrix):
        return matrix._replace(rows=taken(matrix.rows, kept))
    return matrix._replace(values=matrix.values[kept])


def are_usable(matrix: Matrix | SparseMatrix, largest: float) -> np.ndarray:
    """Tell for each row whether all values are missing or at most `largest`."""
    values = matrix.values
    if not isinstance(matrix, SparseMatrix) and matrix.is_finite:
        return np.ones(len(values), bool)
    if not isinstance(matrix, SparseMatrix) and are_columns(values):
        usable = np.ones(len(values), bool)
        mark_usable(values.T, largest, usable)
        return usable
    if not isinstance(matrix, SparseMatrix) and are_rows(values):
        usable = np.empty(len(values), bool)
        mark_finite(values.view(np.uint32), usable)
        return usable
    if isinstance(matrix, SparseMatrix) and largest >= LARGEST and first_bad(values[None]) < 0:
        return np.ones(matrix.rows.start.size - 1, bool)
    with np.errstate(invalid="ignore"):
        # `largest` as float64: converted to float16, it would be infinite.
        good = ~(np.abs(matrix.values) > np.float64(largest))
    if not isinstance(matrix, SparseMatrix):
        return np.asarray(good.all(axis=1))
    usable = np.ones(matrix.rows.start.size - 1, bool)
    usable[np.repeat(np.arange(usable.size), np.diff(matrix.rows.start))[~good]] = False
    return usable


def bad_value(matrix: Matrix | SparseMatrix, i: int, largest: float) -> tuple[Name, float] | None:
    """Return the first feature of row i whose value is refused, and the value; None if none is."""
    if isinstance(matrix, SparseMatrix):
        part = slice(*matrix.rows.start[i : i + 2])
        columns, values = matrix.rows.columns[part].tolist(), matrix.rows.values[part]
    else:
        columns, values = list(range(matrix.values.shape[1])), matrix.values[i]
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(np.abs(values) > largest)
    return (matrix.names[columns[bad[0]]], float(values[bad[0]])) if len(bad) else None


def check_values(matrix: Matrix | SparseMatrix) -> None:
    """Raise FeatureError if a value is infinite in single precision, or a name comes twice."""
    for r in np.flatnonzero(~are_usable(matrix, LARGEST))[:1].tolist():
        name, value = bad_value(matrix, r, LARGEST) or ("", math.nan)
        raise FeatureError(f"row {r}: {refusal(name, value)}")
    if isinstance(matrix, Matrix):
        check_different(matrix.names)
