"""Rows of a batch that are only predicted, as their labels come later, between rows learnt."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.features.names import Name
from streamsvm.features.schema import in_order
from streamsvm.labels.label_column import MISSING, Label, LabelColumn
from streamsvm.support.rows import SparseRows


class LateRows(NamedTuple):
    """What is done with the rows of a batch: some are learnt, the others only predicted.

    An event may be in the batch twice, first to be predicted, and later, with its label, to be
    learnt. Each row is predicted by the model that has learnt the rows before it.
    """

    is_learnt: np.ndarray  # bool (n,)
    events: np.ndarray  # int64 (n,): the event of each row, by its number in `predicted`
    predicted: np.ndarray  # object (events,): what was predicted for each; written

    def note(self, start: int, labels: LabelColumn) -> list[Label]:
        """Record predictions for rows from `start` on; return the earlier ones of rows learnt now.

        What is predicted now for these is not used: their events were predicted earlier.
        """
        part = slice(start, start + len(labels))
        is_learnt, events = self.is_learnt[part], self.events[part]
        self.predicted[events[~is_learnt]] = labels.take(np.flatnonzero(~is_learnt)).tolist()
        earlier: list[Label] = self.predicted[events[is_learnt]].tolist()
        return earlier

    def filled(self, labels: LabelColumn, classes: list[Label]) -> LabelColumn:
        """Return the labels with a known one for each row that is only predicted.

        Such rows have no label yet, but a batch has one for each row. A label that was known before
        the row changes nothing.
        """
        values = list(labels.values)
        if classes and classes[0] not in values:
            values.append(classes[0])
        first = values.index(classes[0]) if classes else MISSING
        rows = np.where(self.is_learnt, np.arange(len(labels)), -1)
        last = np.maximum.accumulate(rows)
        return LabelColumn(np.where(last >= 0, labels.codes[last], first), values)


def as_learnt(
    matrix: Matrix | SparseMatrix, is_learnt: np.ndarray, known: Collection[Name]
) -> Matrix | SparseMatrix:
    """Leave features out of rows that are predicted before a row with the feature is learnt.

    To a model that learns the rows one by one such a feature is unknown, if it is not in `known`:
    its value is missing. `matrix` is a `Matrix` or `SparseMatrix`; `is_learnt`, bool (n,), tells
    the rows that are learnt.
    """
    new = np.array([name not in known for name in matrix.names], bool)
    if not new.any():
        return matrix
    if isinstance(matrix, SparseMatrix):
        return _sparse_as_learnt(matrix, is_learnt, new)
    n = len(is_learnt)
    columns = np.flatnonzero(new)
    has = is_learnt[:, None] & ~np.isnan(matrix.values[:, columns])
    first = np.where(has.any(axis=0), has.argmax(axis=0), n)
    # Whole numbers hold no NaN.
    values = matrix.values.astype(np.result_type(matrix.values.dtype, np.float32))
    values[:, columns] = np.where(np.arange(n)[:, None] >= first, values[:, columns], np.nan)
    is_taught = ~new
    is_taught[columns] = first < n
    names = [name for name, stays in zip(matrix.names, is_taught, strict=True) if stays]
    # New features are appended in the order in which rows teach them, not in which events came.
    row = dict(zip([matrix.names[c] for c in columns], first.tolist(), strict=True))
    order = sorted(in_order(names), key=lambda name: row.get(name, -1))
    return Matrix(names, values[:, is_taught], order)


def _sparse_as_learnt(matrix: SparseMatrix, is_learnt: np.ndarray, new: np.ndarray) -> SparseMatrix:
    rows, n = matrix.rows, len(is_learnt)
    own = slice(int(rows.start[0]), int(rows.start[-1]))
    columns, row = rows.columns[own], np.repeat(np.arange(n), np.diff(rows.start))
    first = np.where(new, n, -1)
    taught = is_learnt[row]
    np.minimum.at(first, columns[taught], row[taught])
    kept = first < n
    is_known = row >= first[columns]
    # Entries of unknown features are left out.
    start = np.append(0, np.cumsum(np.bincount(row[is_known], minlength=n)))
    renumbered = (np.cumsum(kept) - 1).astype(np.int32)
    names = [name for name, keep in zip(matrix.names, kept.tolist(), strict=True) if keep]
    values = rows.values[own][is_known]
    return SparseMatrix(names, SparseRows(start, renumbered[columns[is_known]], values, len(names)))
