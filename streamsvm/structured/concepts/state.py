"""What a linear model of concept labels has learnt: a row of numbers for each context.

A context is, for example, "the word two places before is *from*"; its row is found by a 64-bit key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.structured import vocabulary
from streamsvm.structured.vocabulary import Vocabulary

INFO = np.dtype(
    [
        ("n_sentences", np.int64),
        ("n_words", np.int64),
        ("n_wrong", np.int64),  # choices of the search that were wrong
        ("n_steps", np.int64),  # steps that changed weights
        ("n_ignored", np.int64),  # contexts that got no row, as there were too many
        ("dual", np.float64),  # sum of alpha - |w|^2 / 2
    ]
)

_NO_KEYS = np.zeros(0, np.uint64)


class Table(NamedTuple):
    """Rows of numbers by context."""

    rows: Vocabulary  # the row of each context
    weights: np.ndarray  # float64 (rows, columns)
    late: np.ndarray  # float64 as weights: see `search`; (1, 1) in a table of counts
    change: np.ndarray  # int8 as late: scratch, all 0 between steps


class Model(NamedTuple):
    """All that is learnt."""

    concepts: Table  # a column for each concept
    links: Table  # a column for each pair of relations
    meanings: Table  # a row for each word: how often it meant each concept of a bag
    info: Any  # record array (1,) of INFO


def new_table(
    rows: int, columns: int, is_weighted: bool = True, keys: np.ndarray = _NO_KEYS
) -> Table:
    """Return a table of 0, of contexts with these keys; of counts if it is not weighted.

    It has room for so many rows and columns.
    """
    found = vocabulary.with_keys(keys, rows)
    shape = found.known.size, columns
    own = shape if is_weighted else (1, 1)
    return Table(found, np.zeros(shape), np.zeros(own), np.zeros(own, np.int8))


def new_model() -> Model:
    """Return a model of nothing."""
    info: Any = np.zeros(1, INFO).view(np.recarray)
    return Model(new_table(0, 8), new_table(0, 4), new_table(0, 8, False), info)


def filled(keys: np.ndarray, weights: np.ndarray, late: np.ndarray | None) -> Table:
    """Return a table of rows by distinct keys; of counts if there is no `late`."""
    n, columns = weights.shape
    table = new_table(n, columns, late is not None, keys)
    table.weights[:n] = weights
    if late is not None:
        table.late[:n] = late
    return table


def grown(table: Table, rows: int, columns: int, most: int) -> Table:
    """Return a table with room for so many more rows, `most` in all, and columns; maybe the same.

    Columns are doubled.
    """
    n = vocabulary.size(table.rows)
    room, width = table.weights.shape
    wanted, is_weighted = min(n + rows, most), table.late.shape == table.weights.shape
    if wanted <= room and columns <= width:
        return table
    shape = max(wanted, room), width if columns <= width else max(columns, 2 * width)
    new = new_table(*shape, is_weighted, vocabulary.keys_of(table.rows, n))
    new.weights[:n, :width] = table.weights[:n]
    if is_weighted:
        new.late[:n, :width] = table.late[:n]
    return new
