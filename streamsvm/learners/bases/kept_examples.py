"""Examples that a learner keeps as they came: all, or the last ones, with facts of each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.support.declaration import NOT_NEGATIVE, Field, NamedArrays, Range, rows_as_arrays
from streamsvm.support.rows import Rows, SparseRows, cut, joined, shape, taken


class Examples(NamedTuple):
    """n rows, and the facts of each."""

    x: Rows
    classes: np.ndarray  # int64: indices of the labels seen
    weights: np.ndarray  # float64
    marks: np.ndarray  # one more fact: see `Mark`

    def first(self, n: int) -> Examples:
        """Return the first n of them."""
        return Examples(cut(self.x, 0, n), self.classes[:n], self.weights[:n], self.marks[:n])

    def last(self, n: int) -> Examples:
        """Return the last n of them."""
        first = max(0, len(self.classes) - n)
        if not first:
            return self
        # As copies: a view of sparse rows has the entries of all, and cannot be joined.
        x = taken(self.x, np.arange(first, len(self.classes)))
        return Examples(x, self.classes[first:], self.weights[first:], self.marks[first:])


class Mark(NamedTuple):
    """What is kept of an example beside its row, class and weight."""

    name: str  # in files
    dtype: Any
    range: Range


NUMBER = Mark("entered", np.int64, Range(1))
"""The number of the example."""

WRONG = Mark("wrong", np.uint8, Range(0, 1))
"""1 if it was predicted wrong before it was learnt."""


class KeptExamples:
    """Keeps examples as they came.

    `prefix` begins the names of its arrays in files; `mark` is the further fact of each example. At
    least the last `most` examples are kept, if there were so many, and less than twice as many; if
    it is None, all.
    """

    def __init__(self, prefix: str, mark: Mark, most: int | None = None) -> None:
        self._prefix, self._mark, self.most = prefix, mark, most
        self._blocks: list[Examples] = []
        # Row, place of the class, weight and mark.
        self._events: list[tuple[Rows, int, float, int]] = []
        self.n_examples = 0

    @property
    def n_known(self) -> int:
        """How many of the last examples `last` returns at most."""
        return self.n_examples if self.most is None else min(self.n_examples, self.most)

    @property
    def nbytes(self) -> int:
        """Bytes of the examples."""
        total = 0
        for x, *facts in [*self._blocks, *self._events]:
            arrays = [*(x if isinstance(x, SparseRows) else (x,)), *facts]
            total += sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))
        return total

    def add(self, x: Rows, classes: np.ndarray, weights: np.ndarray, marks: np.ndarray) -> None:
        """Keep n examples: int64, float64 and marks (n,). Rows are copied."""
        own = taken(x, np.arange(shape(x)[0]))
        self._join_events(shape(x)[1])
        facts = classes.astype(np.int64), np.copy(weights), marks.astype(self._mark.dtype)
        self._blocks.append(Examples(own, *facts))
        self._forget(len(classes), shape(x)[1])

    def add_one(self, row: Rows, place: int, weight: float, mark: int) -> None:
        """Keep one example, whose row is not copied."""
        self._events.append((row, place, weight, mark))
        self._forget(1, shape(row)[1])

    def _forget(self, n: int, d: int) -> None:
        """Count n examples that have come; if there are twice as many as needed, keep the last."""
        self.n_examples += n
        if self.most is not None and self.n_examples >= 2 * self.most:
            self._blocks, self.n_examples = [self.last(self.most, d)], self.most

    def _join_events(self, d: int) -> None:
        """Make one block of the events that came one by one."""
        if self._events:
            rows, *facts = zip(*self._events, strict=True)
            types = (np.int64, np.float64, self._mark.dtype)
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
        missing = min(n, self.n_known)
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

    def examples(self, d: int) -> Examples:
        """Return all examples, at most `most`, over d features, and keep them as one block."""
        whole = self.last(self.n_examples, d)
        if len(whole.classes):
            self._blocks, self.n_examples = [whole], len(whole.classes)
        return whole

    def as_arrays(self, d: int) -> dict[str, np.ndarray]:
        """Return the examples as arrays for a file; none before the first one."""
        if not self.n_examples:
            return {}
        x, classes, weights, marks = self.examples(d)
        arrays = rows_as_arrays(x) | {"y": classes, "weight": weights, self._mark.name: marks}
        return {self._prefix + name: array for name, array in arrays.items()}

    def read(self, arrays: NamedArrays, d: int, n_classes: int) -> None:
        """Set what `as_arrays` returned; raise ValueError if it does not fit."""
        if self._prefix + "y" not in arrays:
            return
        n = arrays.length_of(self._prefix + "y", 0)
        if self.most is not None and n > self.most:
            raise ValueError("there are more recent examples than are kept")
        x = arrays.take_rows(n, d, self._prefix)
        of_class = Field((n,), np.int64, range=Range(0, n_classes - 1))
        of_mark = Field((n,), self._mark.dtype, range=self._mark.range)
        classes = arrays.take(self._prefix + "y", of_class, {})
        weights = arrays.take(self._prefix + "weight", Field((n,), range=NOT_NEGATIVE), {})
        marks = arrays.take(self._prefix + self._mark.name, of_mark, {})
        self._blocks, self.n_examples = [Examples(x, classes, weights, marks)], n
