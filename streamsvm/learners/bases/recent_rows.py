"""The last examples of a stream, with their classes, weights and whether they were predicted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.support.declaration import NOT_NEGATIVE, Field, NamedArrays, Range, rows_as_arrays
from streamsvm.support.rows import Rows, SparseRows, cut, joined, shape, taken

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
        x = cut(self.x, first, len(self.classes))
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
        self._n = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the examples."""
        total = 0
        for x, *facts in self._blocks:
            arrays = [*(x if isinstance(x, SparseRows) else (x,)), *facts]
            total += sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))
        return total

    def add(self, x: Rows, classes: np.ndarray, weights: np.ndarray, wrong: np.ndarray) -> None:
        """Keep examples; rows that may be overwritten are copied."""
        own = taken(x, np.arange(shape(x)[0])) if isinstance(x, SparseRows) else np.copy(x)
        block = Examples(own, classes.astype(np.int64), np.copy(weights), np.copy(wrong))
        self._blocks, self._n = [*self._blocks, block], self._n + len(classes)
        if self._n >= 2 * self.most:
            self.last(self.most, shape(x)[1])

    def last(self, n: int, d: int) -> Examples:
        """Return the last n examples, or all if there are fewer, over d features."""
        if not self._blocks:
            nothing = np.zeros(0)
            rows = np.zeros((0, d), np.float32)
            return Examples(rows, nothing.astype(np.int64), nothing, nothing.astype(bool))
        rows = [block.x for block in self._blocks]
        facts = [np.concatenate(parts) for parts in list(zip(*self._blocks, strict=True))[1:]]
        whole = Examples(joined(rows, d), *facts).last(self.most)
        self._blocks, self._n = [whole], len(whole.classes)
        return whole.last(n)

    def as_arrays(self, d: int) -> dict[str, np.ndarray]:
        """Return the examples as arrays for a file; none before the first one."""
        if not self._blocks:
            return {}
        x, classes, weights, wrong = self.last(self.most, d)
        arrays = rows_as_arrays(x) | {"y": classes, "weight": weights, "wrong": wrong.astype(np.uint8)}
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
