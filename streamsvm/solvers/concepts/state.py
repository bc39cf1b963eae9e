"""What a linear model of concept labels has learnt: a row of numbers for each context.

A context is, for example, "the word two places before is *from*"; its row is found by a 64-bit key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_within
from streamsvm.structured.vocabulary import place

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

_FEWEST = 512


class Table(NamedTuple):
    """Rows by context; open addressing in a table that is at most half full."""

    key: np.ndarray  # uint64 (places,), a power of two
    row: np.ndarray  # int32 (places,): -1 where a place is empty
    known: np.ndarray  # uint64 (rows,): the key of each row
    weights: np.ndarray  # float64 (rows, columns)
    late: np.ndarray  # float64 as weights: see `search`; (1, 1) in a table of counts
    change: np.ndarray  # int8 as late: scratch, all 0 between steps
    n: np.ndarray  # int64 (1,): rows in use


class Model(NamedTuple):
    """All that is learnt."""

    concepts: Table  # a column for each concept
    links: Table  # a column for each pair of relations
    meanings: Table  # a row for each word: how often it meant each concept of a bag
    info: Any  # record array (1,) of INFO


def new_table(rows: int, columns: int, is_weighted: bool = True) -> Table:
    """Return an empty table with room for so many rows and columns; of counts if not weighted."""
    places = 2 * _FEWEST
    while places < 2 * rows:
        places *= 2
    shape = places // 2, columns
    key, empty = np.zeros(places, np.uint64), np.full(places, -1, np.int32)
    known, own = np.zeros(places // 2, np.uint64), shape if is_weighted else (1, 1)
    late, change = np.zeros(own), np.zeros(own, np.int8)
    return Table(key, empty, known, np.zeros(shape), late, change, np.zeros(1, np.int64))


def new_model() -> Model:
    """Return a model of nothing."""
    info: Any = np.zeros(1, INFO).view(np.recarray)
    return Model(new_table(0, 8), new_table(0, 4), new_table(0, 8, False), info)


def filled(keys: np.ndarray, weights: np.ndarray, late: np.ndarray | None) -> Table:
    """Return a table of rows by distinct keys; of counts if there is no `late`."""
    n, columns = weights.shape
    table = new_table(n, columns, late is not None)
    _enter(table, keys)
    table.weights[:n] = weights
    if late is not None:
        table.late[:n] = late
    return table


def grown(table: Table, rows: int, columns: int, most: int) -> Table:
    """Return a table with room for so many more rows, `most` in all, and columns; maybe the same.

    Columns are doubled.
    """
    n = int(table.n[0])
    room, width = table.weights.shape
    wanted, is_weighted = min(n + rows, most), table.late.shape == table.weights.shape
    if wanted <= room and columns <= width:
        return table
    shape = max(wanted, room), width if columns <= width else max(columns, 2 * width)
    new = new_table(*shape, is_weighted)
    _enter(new, table.known[:n])
    new.weights[:n, :width] = table.weights[:n]
    if is_weighted:
        new.late[:n, :width] = table.late[:n]
    return new


@compiled_within
def row_of(table, wanted):
    """Return the row of a context, -1 if it has none."""
    return table.row[place(table.key, table.row, wanted)]


@compiled_within
def entered(table, wanted, most):
    """Return the row of a context, which gets one if there are fewer than `most`; else -1.

    The caller has made room.
    """
    at = place(table.key, table.row, wanted)
    if table.row[at] < 0 and table.n[0] < most:
        n = table.n[0]
        table.key[at] = wanted
        table.row[at] = n
        table.known[n] = wanted
        table.n[0] = n + 1
    return table.row[at]


@compiled
def _enter(table, keys):
    for j in range(keys.size):
        entered(table, keys[j], keys.size)
