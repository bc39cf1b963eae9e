"""The reserve: rows that a learner passed by, or may remove later, kept to be looked at again.

A row is offered when it has been learnt, with its margin from before. It is kept if y f(x) is small:
it may become a support vector of the final model although it was none when it came, or was removed.
When the reserve is full, the rows with the largest margins leave, as many from each stretch of the
stream as it has more than its share: margins of early rows are those of a model that knew little.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.support.declaration import COUNT, NOT_NEGATIVE, Field, NamedArrays, rows_as_arrays
from streamsvm.support.rows import Rows, SparseRows, cut, joined, shape, taken

MOST_BYTES = 64_000_000
"""The size of a reserve without a given number of rows."""

LARGEST_MARGIN = 2.0
"""Without a given number of rows, those with a larger y f(x) are not kept."""

STRETCHES = 8
"""Of the stream: each has the same share of a full reserve."""

_STEP = 1024
"""Number of rows after which they are put together in one array."""

FACTS = np.dtype(
    [
        ("number", np.int64),  # the example's
        ("arrived", np.int64),  # how many examples had come with it
        ("sign", np.float64),  # +1 or -1; for several classes their numbers
        ("weight", np.float64),  # the example weight
        ("margin", np.float64),  # y f(x) when it came
    ]
)
_RANGES = {"number": COUNT, "arrived": COUNT, "weight": NOT_NEGATIVE}


class Reserve:
    """Rows in the order in which they came, with what is known of them.

    Parameters
    ----------
    most
        Number of rows, at least 0; None: as many as fit into `MOST_BYTES`, with margins of at most
        `LARGEST_MARGIN`.
    window
        Rows older than so many examples leave; None: none does.

    """

    def __init__(self, most: int | None, window: int | None = None) -> None:
        self.most, self.window = most, window
        # The largest margin of a row that is kept.
        self.threshold = LARGEST_MARGIN if most is None else np.inf if most else -np.inf
        # Blocks of `_STEP` rows, and smaller ones of the last rows.
        self._blocks: list[tuple[Rows, np.ndarray]] = []
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, x: Rows, facts: np.ndarray) -> None:
        """Offer rows of the stream, in their order.

        Parameters
        ----------
        x
            n rows.
        facts
            FACTS (n,).

        """
        wanted = np.flatnonzero((facts["margin"] < self.threshold) & (facts["weight"] > 0.0))
        while wanted.size:
            most = self._most_rows(shape(x)[1])
            if self._n >= most:
                self._make_room(most, int(facts["arrived"][wanted[0]]))
            # The same rows are put together however the stream was cut into batches.
            n = min(most - self._n, _STEP - self._n % _STEP, wanted.size)
            some, wanted = wanted[:n], wanted[n:]
            rows = taken(x, some) if isinstance(x, SparseRows) else x[some]
            self._blocks.append((rows, facts[some]))
            self._n += n
            if self._n % _STEP == 0:
                self._put_together()

    def _most_rows(self, d: int) -> int:
        """Return how many rows there may be."""
        if self.most is not None:
            return self.most if self.window is None else min(self.most, self.window)
        row_bytes = 4 * d
        if self._blocks and isinstance(self._blocks[0][0], SparseRows):
            row_bytes = 8 + 8 * self._blocks[0][0].values.size // len(self._blocks[0][1])
        most = max(_STEP, MOST_BYTES // (row_bytes + FACTS.itemsize))
        return most if self.window is None else min(most, self.window)

    def _put_together(self) -> None:
        """Make one block of the last rows."""
        n_whole = 0
        while n_whole < len(self._blocks) and len(self._blocks[n_whole][1]) == _STEP:
            n_whole += 1
        last = self._blocks[n_whole:]
        if len(last) > 1:
            self._blocks[n_whole:] = [_joined(last)]

    def _make_room(self, most: int, now: int) -> None:
        """Let rows leave until an eighth of the room is free; `now` examples have come."""
        x, facts = self.rows(now - 1)
        room = most - max(1, most // 8)
        if len(facts) > room:
            first = 1 if self.window is None else max(1, now - self.window)
            stretch = (facts["arrived"] - first) * STRETCHES // max(1, now - first)
            # The rank of each row within its stretch, by margins; first the smallest of each.
            order = np.lexsort((facts["arrived"], facts["margin"], stretch))
            begins = np.searchsorted(stretch[order], stretch[order])
            rank = np.empty(len(facts), np.int64)
            rank[order] = np.arange(len(facts)) - begins
            kept = np.sort(np.lexsort((-facts["arrived"], rank))[:room])
            x = taken(x, kept) if isinstance(x, SparseRows) else x[kept]
            facts = facts[kept]
        self._set(x, facts)

    def _set(self, x: Rows, facts: np.ndarray) -> None:
        n = len(facts)
        self._blocks = [
            (cut(x, i, min(n, i + _STEP)), facts[i : i + _STEP]) for i in range(0, n, _STEP)
        ]
        self._n = n

    def rows(self, now: int) -> tuple[Rows, np.ndarray]:
        """Return the rows after `now` examples, and FACTS; of each number the last one.

        Rows older than the window have left. The result must not be changed.
        """
        if not self._blocks:
            return np.zeros((0, 0), np.float32), np.zeros(0, FACTS)
        x, facts = self._blocks[0] if len(self._blocks) == 1 else _joined(self._blocks)
        # Numbers occur more than once where examples have ids.
        _, last = np.unique(facts["number"][::-1], return_index=True)
        kept = np.sort(len(facts) - 1 - last)
        if self.window is not None:
            kept = kept[facts["arrived"][kept] > now - self.window]
        if kept.size < len(facts):
            x = taken(x, kept) if isinstance(x, SparseRows) else x[kept]
            facts = facts[kept]
        return x, facts

    def with_signs_exchanged(self) -> Reserve:
        """Return the same rows with +1 and -1 exchanged."""
        new = Reserve(self.most, self.window)
        new._n = self._n
        for x, facts in self._blocks:
            exchanged = facts.copy()
            exchanged["sign"] = -facts["sign"]
            new._blocks.append((x, exchanged))
        return new

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and of what is known of them."""
        return sum(
            facts.nbytes
            + sum(
                a.nbytes
                for a in ((x.start, x.columns, x.values) if isinstance(x, SparseRows) else (x,))
            )
            for x, facts in self._blocks
        )


def _joined(blocks: list[tuple[Rows, np.ndarray]]) -> tuple[Rows, np.ndarray]:
    rows = [x for x, _ in blocks]
    return joined(rows, max(shape(x)[1] for x in rows)), np.concatenate([f for _, f in blocks])
