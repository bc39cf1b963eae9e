"""Schemas without what examples that are taken back have brought: names, and values of means."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamsvm.features.missing import EVENTS, PRESENT, SUM
from streamsvm.features.names import Name
from streamsvm.features.schema import Schema
from streamsvm.support.rows import Columns, Rows, SparseRows, entries_of


def without(schema: Schema, x: Rows, columns: Columns) -> Schema:
    """Return a schema of some columns, without what filled rows x, of all columns, told of means.

    The names of the other columns are not in it.
    """
    names: Iterable[Name] = range(schema.n_names) if schema.is_range else schema.names
    if columns is not None:
        names = [schema.names[c] for c in columns.tolist()]
    new = Schema(names, schema.limit, schema.buckets, schema.missing.policy)
    statistics = _statistics_without(schema.missing.statistics, x)
    new.n_ignored, new.missing.statistics = schema.n_ignored, entries_of(statistics, columns).copy()
    return new


def _statistics_without(statistics: np.ndarray, x: Rows) -> np.ndarray:
    """Return the statistics of missing values without those of filled rows.

    A value that was missing cannot be told from the mean in its place: of features that were never
    missing all values are subtracted; of those that came late, all but 0.
    """
    statistics = statistics.copy()
    if isinstance(x, SparseRows):
        return statistics
    d = x.shape[1]
    sums, present, events = (statistics[r, :d] for r in (SUM, PRESENT, EVENTS))
    for row in x.astype(np.float64):
        came_first = events == events.max(initial=0.0)
        is_told = (present == events) & (present > 0.0) & ((row != 0.0) | came_first)
        sums -= np.where(is_told, row, 0.0)
        present -= is_told
        events -= is_told
    sums[present == 0.0] = 0.0
    return statistics
