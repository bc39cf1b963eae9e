"""Uniform samples of the examples of a stream, from which hinge losses are estimated."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import numpy as np

from streamsvm.support.declaration import (
    NOT_NEGATIVE,
    Field,
    NamedArrays,
    Range,
    as_int,
    rows_as_arrays,
)
from streamsvm.support.rows import Columns, Rows, SparseRows, columns_of, copied, joined, shape
from streamsvm.support.writable import writable

NEVER = 10**18


class ReservoirSample:
    """A uniform sample of all examples of a stream, or of the last `window`, in bounded memory.

    Without a window: reservoir sampling (Li's Algorithm L, 1994; it draws how many examples to
    skip, so that most examples cost one comparison), of `size` examples. With a window: each
    example enters the sample with probability size / window, and leaves it when the window has
    moved past it.

    `seen` is how many examples the stream has had so far, `next` its value at which the next
    example enters the sample: below it, the caller may just add to `seen` instead of calling
    `offer`.
    """

    def __init__(self, size: int, window: int | None, seed: int) -> None:
        self.size, self.window = size, window
        self._random = random.Random(seed)
        self.seen = 0
        self.next = 0
        self._w = 1.0
        self._n = 0
        room = size if window is None else 4 * size
        self._rows: list[Rows] = []
        self._classes, self._weights = np.zeros(room), np.zeros(room)
        self._numbers, self._arrived = np.zeros(room, np.int64), np.zeros(room, np.int64)
        if window is not None:
            self._skip()

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update(writable(contents))

    def __len__(self) -> int:
        return self._n

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of the sampled examples, int64."""
        return self._numbers[: self._n]

    @property
    def classes(self) -> np.ndarray:
        """The numbers of the classes of the sampled examples, float64."""
        return self._classes[: self._n]

    def _skip(self) -> None:
        if self.window is not None:
            keep = min(1.0, self.size / self.window)
            gap = 0.0 if keep == 1.0 else math.log(self._uniform()) // math.log1p(-keep)
        else:
            self._w *= math.exp(math.log(self._uniform()) / self.size)
            gap = math.log(self._uniform()) // math.log1p(-min(self._w, 1.0 - 1e-12))
        self.next = self.seen + int(min(gap, NEVER))

    def _uniform(self) -> float:
        return 1.0 - self._random.random()

    def offer(self, x: Rows, classes: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> None:
        """Give the sample the next n examples, with their classes, weights and numbers (n,).

        The rows of those that enter it are copied.
        """
        first = self.seen
        after = first + len(classes)
        # After an interruption (Ctrl-C) `next` may be behind.
        self.next = max(self.next, first)
        while self.next < after:
            i = self.next - first
            row = copied(x, i)
            self.seen = self.next + 1
            at = self._place()
            # A slice, as an interrupted call may have left a row at this place.
            self._rows[at : at + 1] = [row]
            self._classes[at], self._weights[at] = classes[i], weights[i]
            self._numbers[at], self._arrived[at] = numbers[i], self.seen
            self._n = max(self._n, at + 1)
            if self.window is not None or self._n == self.size:
                self._skip()
            else:
                # All examples enter until the reservoir is full.
                self.next = self.seen
        self.seen = after

    def _place(self) -> int:
        """Return the place in the arrays that the next example is written to."""
        if self.window is None and self._n == self.size:
            return self._random.randrange(self.size)
        if self._n == len(self._classes):
            self.forget_old()
        if self._n == len(self._classes):
            # More than four times the expected number entered: drop the oldest.
            self._forget(1)
        return self._n

    def forget_old(self) -> None:
        """Drop the examples that the window has moved past."""
        if self.window is not None:
            last = self.seen - self.window
            self._forget(int(np.searchsorted(self._arrived[: self._n], last, side="right")))

    def _forget(self, gone: int) -> None:
        """Drop the oldest `gone` examples."""
        del self._rows[:gone]
        for column in (self._classes, self._weights, self._numbers, self._arrived):
            column[: self._n - gone] = column[gone : self._n]
        self._n -= gone

    def draw(
        self, n: int, d: int, kept: np.ndarray, draws: random.Random | None = None
    ) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Draw up to n examples that are not among `kept`; return rows, classes and weights.

        `kept` are the sorted numbers of the examples that the model keeps. The rows have d features
        (those that an older row lacks are 0), and are sparse if the last example that came was. The
        sample's own generator is not used, as it must not depend on how often it is drawn from;
        None: one with seed 0.
        """
        chosen = np.flatnonzero(~_are_in(self.numbers, kept))
        if len(chosen) > n:
            chosen = chosen[(draws or random.Random(0)).sample(range(len(chosen)), n)]
        # Older rows are shorter: they were copied before the later features appeared.
        x = joined([self._rows[i] for i in chosen.tolist()], d)
        return x, self._classes[chosen], self._weights[chosen]

    def without(self, numbers: np.ndarray, columns: Columns) -> ReservoirSample:
        """Return the sample without examples of these numbers, and over some columns.

        In a full sample of the whole stream copies of others take their places: an empty place
        would be given to the next example, whatever its chance.
        """
        new = copy.copy(self)
        stay = np.flatnonzero(~np.isin(np.abs(self.numbers), numbers))
        if self.window is None and self._n == self.size and len(stay):
            others = random.Random(0).choices(stay.tolist(), k=self._n - len(stay))
            stay = np.concatenate([stay, np.array(others, np.int64)])
        rows = [columns_of(self._rows[i], columns) for i in stay.tolist()]
        found: dict[str, Any] = {"_rows": rows, "_n": len(stay)}
        for name in _ARRAYS:
            found[name] = np.zeros_like(getattr(self, name))
            found[name][: len(stay)] = getattr(self, name)[stay]
        new.__dict__.update(found, _random=copy.copy(self._random))
        return new

    def state(self) -> tuple[list[Any], dict[str, np.ndarray]]:
        """Return the counts as JSON values, and the arrays, for `resume`."""
        blocks = self._rows[: self._n]
        rows = joined(blocks, max([shape(block)[1] for block in blocks], default=0))
        arrays = {name: getattr(self, name) for name in _ARRAYS} | rows_as_arrays(rows)
        if isinstance(rows, SparseRows):
            arrays["width"] = np.array([rows.d])
        return [self.seen, self.next, self._w, self._n, self._random.getstate()], arrays

    def restore(self, state: list[Any], arrays: NamedArrays) -> None:
        """Continue from what `state` returned."""
        room = {"room": len(self._classes)}
        for name, field in _ARRAYS.items():
            setattr(self, name, arrays.take(name, field, room))
        self.seen, self.next, self._w, n, (version, words, gauss) = state
        self._random.setstate((version, tuple(words), gauss))
        self._n = as_int("the number of sampled rows", n, 0, room["room"])
        self._rows = _rows_of(arrays, self._n)


_ARRAYS = {
    "_classes": Field(("room",)),
    "_weights": Field(("room",), range=NOT_NEGATIVE),
    "_numbers": Field(("room",), np.int64, range=Range()),
    "_arrived": Field(("room",), np.int64),
}


def _rows_of(arrays: NamedArrays, n: int) -> list[Rows]:
    """Return at least n rows as blocks of one each: a file may hold more than are of the sample."""
    if "rows" in arrays:
        n_rows, width = arrays.length_of("rows", 0), arrays.length_of("rows", 1)
    else:
        n_rows = arrays.length_of("row_start", 0) - 1
        width = int(arrays.take("width", Field((1,), np.int64, range=Range(0, 2**31)), {})[0])
    if n_rows < n:
        raise ValueError("there are fewer sampled rows than the sample says")
    rows = arrays.take_rows(n_rows, width)
    return [copied(rows, r) for r in range(n_rows)]


def _are_in(numbers: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Tell for each number whether it is in `among`, which is sorted."""
    if not len(among):
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(among, numbers), len(among) - 1)
    return np.asarray(among[at] == numbers)
