"""What a linear model of concept labels has learnt: a row of numbers for each context.

A context is, for example, "the word two places before is *from*"; its row is found by a 64-bit key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.structured import vocabulary
from streamsvm.structured.vocabulary import Vocabulary
from streamsvm.support.declaration import Record

INFO = Record(
    np.dtype(
        [
            ("n_sentences", np.int64),
            ("n_words", np.int64),
            ("n_wrong", np.int64),  # choices of the search that were wrong
            ("n_steps", np.int64),  # steps that changed weights
            ("n_ignored", np.int64),  # contexts that got no row, as there were too many
            ("dual", np.float64),  # sum of alpha - |w|^2 / 2
        ]
    )
)


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


def new_table(rows: Vocabulary, columns: int, is_weighted: bool = True) -> Table:
    """Return a table of 0, with room for as many contexts as `rows`; of counts if not weighted."""
    shape = rows.known.size, columns
    own = shape if is_weighted else (1, 1)
    return Table(rows, np.zeros(shape), np.zeros(own), np.zeros(own, np.int8))


def new_model() -> Model:
    """Return a model of nothing."""
    rows = [vocabulary.new_vocabulary() for _ in range(3)]
    return Model(
        new_table(rows[0], 8), new_table(rows[1], 4), new_table(rows[2], 8, False), INFO.new()
    )


def grown(table: Table, rows: int, columns: int, most: int) -> Table:
    """Return a table with room for so many more rows, `most` in all, and columns; maybe the same.

    Columns are doubled.
    """
    n = vocabulary.size(table.rows)
    room, width = table.weights.shape
    wanted, is_weighted = min(n + rows, most), table.late.shape == table.weights.shape
    if wanted <= room and columns <= width:
        return table
    larger = vocabulary.with_keys(vocabulary.keys_of(table.rows, n), max(wanted, room))
    new = new_table(larger, width if columns <= width else max(columns, 2 * width), is_weighted)
    new.weights[:n, :width] = table.weights[:n]
    if is_weighted:
        new.late[:n, :width] = table.late[:n]
    return new
