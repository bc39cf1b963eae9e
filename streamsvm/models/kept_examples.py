"""Examples that a model keeps as they came: all, or the last ones, with facts of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from streamsvm.support.declaration import NOT_NEGATIVE, NamedArrays, Range
from streamsvm.support.row_blocks import RowBlocks
from streamsvm.support.rows import Rows, cut, shape, taken


class Examples(NamedTuple):
    """n rows, and the facts of each."""

    x: Rows
    classes: np.ndarray  # int64: indices of the labels seen
    weights: np.ndarray  # float64
    marks: np.ndarray  # one more fact: see `Mark`

    def part(self, first: int, stop: int) -> Examples:
        """Return those from `first` to stop - 1, as views."""
        return Examples(cut(self.x, first, stop), *(fact[first:stop] for fact in self[1:]))


class Mark(NamedTuple):
    """What is kept of an example beside its row, class and weight."""

    name: str  # in files
    dtype: DTypeLike
    range: Range


NUMBER = Mark("entered", np.int64, Range(1))
"""The number of the example."""

MARKS = Mark("marks", np.uint8, Range(0, 255))
"""Bit m is 1 if model m of several predicted it wrong before it was learnt."""


class KeptExamples(RowBlocks):
    """Keeps examples as they came: the last `most`; if it is None, all.

    `prefix` begins the names of its arrays in files; `mark` is the further fact of each example.
    """

    def __init__(self, prefix: str, mark: Mark, most: int | None = None) -> None:
        facts = [("y", np.int64), ("weight", np.float64), (mark.name, mark.dtype)]
        super().__init__(np.dtype(facts), prefix)
        self._mark, self.most = mark, most

    @property
    def n_examples(self) -> int:
        """How many of the last examples `last` returns at most."""
        return self.n_rows if self.most is None else min(self.n_rows, self.most)

    def add(self, x: Rows, classes: np.ndarray, weights: np.ndarray, marks: np.ndarray) -> None:
        """Keep n examples: int64, float64 and marks (n,). Rows are copied."""
        facts = np.empty(len(classes), self._dtype)
        facts["y"], facts["weight"], facts[self._mark.name] = classes, weights, marks
        self.append(taken(x, np.arange(shape(x)[0])), facts)

    def _settle(self) -> None:
        super()._settle()
        if self.most is not None and self._n > self.most:
            self._forget(self._n - self.most)

    def last(self, n: int, d: int) -> Examples:
        """Return the last n examples, or all if there are fewer, over d features."""
        x, facts = self.joined(d, n)
        # Each by itself, as compiled code is for arrays without gaps.
        return Examples(x, *(np.ascontiguousarray(facts[name]) for name in self._names))

    def read(self, arrays: NamedArrays, d: int, n_classes: int) -> None:
        """Set what `as_arrays` returned; raise ValueError if it does not fit."""
        if self._prefix + "y" not in arrays:
            return
        n = arrays.length_of(self._prefix + "y", 0)
        if self.most is not None and n > self.most:
            raise ValueError("there are more recent examples than are kept")
        ranges = {"y": Range(0, n_classes - 1), "weight": NOT_NEGATIVE}
        self.read_rows(arrays, n, d, ranges | {self._mark.name: self._mark.range})
