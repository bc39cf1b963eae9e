"""Rows that are kept, dense or sparse, with what is known of each: in blocks, in their order."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from streamsvm.support.declaration import COUNT, Field, NamedArrays, Range, rows_as_arrays
from streamsvm.support.rows import (
    Columns,
    Rows,
    SparseRows,
    columns_of,
    joined,
    shape,
    sparse,
    taken,
)

STEP = 1024
"""Small blocks make one as soon as together they have so many rows."""

RowsAndFacts = tuple[Rows, np.ndarray]


class RowBlocks:
    """Rows in the order in which they came, with the same facts of each.

    `facts` is the structured dtype of these; `prefix` begins the names of the arrays in files.
    Later rows may have more features than earlier ones, and some may be sparse. What is kept is not
    changed in place, and what is returned must not be: it may be a view.
    """

    def __init__(self, facts: np.dtype, prefix: str) -> None:
        self._dtype, self._names, self._prefix = facts, facts.names or (), prefix
        self._blocks: list[RowsAndFacts] = []
        # Of the blocks: rows, bytes, and the rows since the last ones made one.
        self._n, self._bytes, self._n_last = 0, 0, 0
        # Rows of single events, which are put into a block later, with their facts.
        self._single: list[tuple[Rows, tuple[Any, ...]]] = []

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self._n + len(self._single)

    @property
    def width(self) -> int:
        """The number of features of the widest row in blocks."""
        return max((shape(x)[1] for x, _ in self._blocks), default=0)

    @property
    def nbytes(self) -> int:
        """Bytes of rows and facts; may be read while another thread adds some."""
        return self._bytes + sum(bytes_of(x) + self._dtype.itemsize for x, _ in [*self._single])

    def append(self, x: Rows, facts: np.ndarray) -> None:
        """Add rows, which are not copied; sparse ones have no other entries."""
        self._settle()
        # No rows leave no block: whether rows are sparse, and how wide, is asked of all blocks.
        if len(facts):
            self._append(x, facts)

    def add_one(self, x: Rows, fact: tuple[Any, ...]) -> None:
        """Add one row, which is not copied, with its facts."""
        self._single.append((x, fact))
        if len(self._single) >= STEP:
            self._settle()

    def _settle(self) -> None:
        """Put rows of single events into a block."""
        if self._single:
            rows = [x for x, _ in self._single]
            facts = np.array([fact for _, fact in self._single], self._dtype)
            self._append(joined(rows, max([shape(x)[1] for x in rows])), facts)

    def _append(self, x: Rows, facts: np.ndarray) -> None:
        first, block = len(self._blocks), (x, facts)
        n_last = self._n_last + len(facts)
        if n_last >= STEP:
            while first > 0 and len(self._blocks[first - 1][1]) < STEP:
                first -= 1
            width = max(self.width, shape(x)[1])
            block, n_last = self._as_one([*self._blocks[first:], block], width), 0
        self._replace(slice(first, None), [block])
        self._n_last = n_last

    def _replace(self, part: slice, blocks: list[RowsAndFacts]) -> None:
        """Replace blocks by others, which have the rows of single events, if there were some."""
        n, n_bytes = self._n, self._bytes
        for x, facts in self._blocks[part]:
            n, n_bytes = n - len(facts), n_bytes - bytes_of(x) - facts.nbytes
        for x, facts in blocks:
            n, n_bytes = n + len(facts), n_bytes + bytes_of(x) + facts.nbytes
        # In one step: an interruption leaves all as it was before, or all as it is after.
        self._blocks[part], self._n, self._bytes, self._single = blocks, n, n_bytes, []

    def _as_one(self, blocks: list[RowsAndFacts], d: int) -> RowsAndFacts:
        """Return blocks as one, over d features."""
        if len(blocks) == 1 and shape(blocks[0][0])[1] == d:
            return blocks[0]
        facts = [facts for _, facts in blocks] or [np.zeros(0, self._dtype)]
        # The dtype, as to compare those of all blocks takes longer than to copy them.
        return joined([x for x, _ in blocks], d), np.concatenate(facts, dtype=self._dtype)

    def joined(self, d: int | None = None, n: int | None = None) -> RowsAndFacts:
        """Return the last n rows, or all, with facts; over d features, or as many as there are."""
        self._settle()
        found, first, n = [], len(self._blocks), self._n if n is None else n
        while first > 0 and n > 0:
            first -= 1
            found.append(_after(self._blocks[first], len(self._blocks[first][1]) - n))
            n -= len(self._blocks[first][1])
        return self._as_one(found[::-1], self.width if d is None else d)

    def _forget(self, n: int) -> None:
        """Let the first n rows leave; none of them may be of a single event that is not settled."""
        while n > 0:
            block = self._blocks[0]
            self._replace(slice(1), [_after(block, n)] if n < len(block[1]) else [])
            n -= len(block[1])

    def facts(self) -> np.ndarray:
        """Return the facts of all rows."""
        self._settle()
        nothing = np.zeros(0, self._dtype)
        return np.concatenate([nothing, *(facts for _, facts in self._blocks)], dtype=self._dtype)

    def keep(self, kept: np.ndarray) -> None:
        """Keep the rows with these places, which ascend, as copies; all alike, as those of one."""
        self._settle()
        are_sparse = any(isinstance(x, SparseRows) for x, _ in self._blocks)
        blocks: list[RowsAndFacts] = []
        some: list[RowsAndFacts] = []
        first = n_some = 0
        for x, facts in self._blocks:
            x = sparse(x) if are_sparse else x
            start, stop = np.searchsorted(kept, (first, first + len(facts)))
            own, first = kept[start:stop] - first, first + len(facts)
            for part in (own[at : at + 2 * STEP] for at in range(0, len(own), 2 * STEP)):
                some.append((taken(x, part), facts[part]))
                n_some += len(part)
                if n_some >= STEP:
                    blocks.append(self._as_one(some, self.width))
                    some, n_some = [], 0
        if some:
            blocks.append(self._as_one(some, self.width))
        self._replace(slice(None), blocks)

    def only(self, kept: np.ndarray, columns: Columns) -> Self:
        """Return the rows with these places, which ascend, over some columns, as copies."""
        new = self.mapped(lambda x, facts: (x, facts))
        new.keep(kept)
        new.map_in_place(lambda x: columns_of(x, columns))
        return new

    def map_in_place(self, change: Callable[[Rows], Rows]) -> None:
        """Change the rows of each block by a function."""
        self._replace(slice(None), [(change(x), facts) for x, facts in self._blocks])

    def mapped(self, change: Callable[[Rows, np.ndarray], RowsAndFacts]) -> Self:
        """Return the same, with each block changed by a function, which may write to its facts."""
        self._settle()
        new = copy.copy(self)
        blocks = [change(x, facts.copy()) for x, facts in self._blocks]
        new.__dict__.update(_blocks=blocks, _single=[])
        return new

    # Files

    def as_arrays(self, d: int | None = None) -> dict[str, np.ndarray]:
        """Return rows, over d features, and facts as arrays for a file; none without rows."""
        x, facts = self.joined(d)
        if not len(facts):
            return {}
        arrays = rows_as_arrays(x) | {k: np.ascontiguousarray(facts[k]) for k in self._names}
        return {self._prefix + name: array for name, array in arrays.items()}

    def read_rows(
        self, arrays: NamedArrays, n: int, d: int, ranges: Mapping[str, Range]
    ) -> np.ndarray:
        """Append n rows from what `as_arrays` returned, and return their facts.

        Raises ValueError if they do not fit, or are out of their `ranges`: `COUNT` for others.
        """
        facts = np.empty(n, self._dtype)
        for name in self._names:
            declared = Field((n,), self._dtype[name], range=ranges.get(name, COUNT))
            facts[name] = arrays.take(self._prefix + name, declared, {})
        self.append(arrays.take_rows(n, d, self._prefix), facts)
        return facts


def bytes_of(x: Rows) -> int:
    """Return the bytes of rows, however they are cut into blocks."""
    # A column and a value for each entry, and where each row ends.
    return 8 * (x.values.size + x.start.size - 1) if isinstance(x, SparseRows) else x.nbytes


def _after(block: RowsAndFacts, first: int) -> RowsAndFacts:
    """Return a block from row `first` on as views, of sparse rows without the entries before."""
    (x, facts), first = block, max(0, first)
    if not isinstance(x, SparseRows):
        return x[first:], facts[first:]
    start = x.start[first:] - x.start[first]
    used = slice(x.start[first], None)
    return SparseRows(start, x.columns[used], x.values[used], x.d), facts[first:]
