"""The last examples of a stream, with their classes, weights and whether they were predicted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.support.declaration import NOT_NEGATIVE, Field, NamedArrays, Range, rows_as_arrays
from streamsvm.support.rows import Rows, SparseRows, joined, shape, taken

_PREFIX = "recent_"


class Examples(NamedTuple):
    """n rows, and the facts of each."""

    x: Rows
    classes: np.ndarray  # int64: indices of the labels seen
    weights: np.ndarray  # float64
    wrong: np.ndarray  # bool: whether it was predicted wrong before it was learnt

    def last(self, n: int) -> Examples:
        """Return the last n of them."""
        first = max(0, len(self.classes) - n)
        if not first:
            return self
        # Sparse rows as copies: a view has the entries of all rows, and cannot be joined.
        is_sparse = isinstance(self.x, SparseRows)
        x = taken(self.x, np.arange(first, len(self.classes))) if is_sparse else self.x[first:]
        return Examples(x, self.classes[first:], self.weights[first:], self.wrong[first:])


class RecentRows:
    """Keeps the last examples: at least `most`, if there were so many, and less than twice that.

    Parameters
    ----------
    most
        At least 1.

    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._blocks: list[Examples] = []
        # Row, place of the class, weight, and whether it was predicted wrong.
        self._events: list[tuple[Rows, int, float, bool]] = []
        self._n = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the examples."""
        total = 0
        for x, *facts in [*self._blocks, *self._events]:
            arrays = [*(x if isinstance(x, SparseRows) else (x,)), *facts]
            total += sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))
        return total

    def add(self, x: Rows, classes: np.ndarray, weights: np.ndarray, wrong: np.ndarray) -> None:
        """Keep examples; rows that may be overwritten are copied."""
        own = taken(x, np.arange(shape(x)[0])) if isinstance(x, SparseRows) else np.copy(x)
        self._join_events(shape(x)[1])
        self._blocks.append(Examples(own, classes.astype(np.int64), np.copy(weights), wrong))
        self._n += len(classes)
        self._forget(shape(x)[1])

    def add_one(self, row: Rows, place: int, weight: float, is_wrong: bool) -> None:
        """Keep one example, whose row is not copied."""
        self._events.append((row, place, weight, is_wrong))
        self._n += 1
        self._forget(shape(row)[1])

    def _join_events(self, d: int) -> None:
        """Make one block of the events that came one by one."""
        if self._events:
            rows, *facts = zip(*self._events, strict=True)
            types = (np.int64, np.float64, np.bool_)
            arrays: list[Any] = [
                np.array(fact, kind) for fact, kind in zip(facts, types, strict=True)
            ]
            block = Examples(joined(list(rows), d), *arrays)
            self._events, self._blocks = [], [*self._blocks, block]

    def last(self, n: int, d: int) -> Examples:
        """Return the last n examples, at most `most`, or all if there are fewer.

        Their rows are over d features.
        """
        self._join_events(d)
        blocks: list[Examples] = []
        # Of what there is beyond `most`, a copy or a file knows nothing.
        missing = min(n, self.most)
        for block in reversed(self._blocks):
            if missing > 0:
                blocks.append(block.last(missing))
                missing -= len(block.classes)
        if not blocks:
            nothing = np.zeros(0)
            rows = np.zeros((0, d), np.float32)
            return Examples(rows, nothing.astype(np.int64), nothing, nothing.astype(bool))
        blocks.reverse()
        facts = [np.concatenate(parts) for parts in list(zip(*blocks, strict=True))[1:]]
        return Examples(joined([block.x for block in blocks], d), *facts)

    def _forget(self, d: int) -> None:
        """Keep the last `most` examples only, if there are twice as many."""
        if self._n >= 2 * self.most:
            self._blocks, self._n = [self.last(self.most, d)], self.most

    def as_arrays(self, d: int) -> dict[str, np.ndarray]:
        """Return the examples as arrays for a file; none before the first one."""
        if not self._n:
            return {}
        x, classes, weights, wrong = self.last(self.most, d)
        arrays = rows_as_arrays(x) | {
            "y": classes,
            "weight": weights,
            "wrong": wrong.astype(np.uint8),
        }
        return {_PREFIX + name: array for name, array in arrays.items()}

    def read(self, arrays: NamedArrays, d: int, n_classes: int) -> None:
        """Set what `as_arrays` returned; raise ValueError if it does not fit."""
        if _PREFIX + "y" not in arrays:
            return
        n = arrays.length_of(_PREFIX + "y", 0)
        if n > self.most:
            raise ValueError("there are more recent examples than are kept")
        x = arrays.take_rows(n, d, _PREFIX)
        of_class = Field((n,), np.int64, range=Range(0, n_classes - 1))
        classes = arrays.take(_PREFIX + "y", of_class, {})
        weights = arrays.take(_PREFIX + "weight", Field((n,), range=NOT_NEGATIVE), {})
        wrong = arrays.take(_PREFIX + "wrong", Field((n,), np.uint8, range=Range(0, 1)), {})
        self._blocks, self._n = [Examples(x, classes, weights, wrong.astype(bool))], n
