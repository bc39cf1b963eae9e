"""Uniform samples of the examples that passed by, from which hinge losses are estimated."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from typing import Any

import numpy as np


class PassedBy:
    """A uniform sample of all examples, or of the last `window`, in bounded memory.

    Without a window: a reservoir (Li's Algorithm L, 1994: the number of examples to skip is drawn,
    so that most examples cost one comparison). With one: each example stays with probability
    size / window until it is too old.

    Parameters
    ----------
    size
        How many examples are kept (about, with a window).
    window
        None or how many of the last examples the sample is of.
    seed
        Of the draws.

    """

    def __init__(self, size: int, window: int | None, seed: int) -> None:
        self.size, self.window = size, window
        self._random = random.Random(seed)
        self._seen = 0
        self._next = 0  # how many examples pass by before the next one that is kept
        self._w = 1.0
        self.rows: list[np.ndarray] = []
        self.signs: list[float] = []
        self.weights: list[float] = []
        self.numbers: list[int] = []
        self._arrived: list[int] = []
        if window is not None:
            self._skip()

    def _skip(self) -> None:
        if self.window is not None:
            keep = min(1.0, self.size / self.window)
            gap = 0.0 if keep == 1.0 else math.log(self._uniform()) // math.log1p(-keep)
        else:
            self._w *= math.exp(math.log(self._uniform()) / self.size)
            gap = math.log(self._uniform()) // math.log1p(-min(self._w, 1.0 - 1e-12))
        self._next = self._seen + int(min(gap, 1e15))

    def _uniform(self) -> float:
        return 1.0 - self._random.random()

    def offer(
        self, x: np.ndarray, signs: np.ndarray, weights: np.ndarray, numbers: np.ndarray
    ) -> None:
        """Let examples pass by: rows float32 (n, d), and what belongs to them."""
        first = self._seen
        after = first + len(signs)
        while self._next < after:
            i = self._next - first
            self._seen = self._next + 1
            self._put(
                (x[i].copy(), float(signs[i]), float(weights[i]), int(numbers[i]), self._seen)
            )
        self._seen = after

    def _columns(self) -> tuple[list[Any], ...]:
        return self.rows, self.signs, self.weights, self.numbers, self._arrived

    def _put(self, example: tuple[Any, ...]) -> None:
        columns = self._columns()
        if self.window is None and len(self.signs) == self.size:
            at = self._random.randrange(self.size)
            for column, value in zip(columns, example, strict=True):
                column[at] = value
        else:
            if len(self.signs) >= 2 * self.size:
                self.forget_old()
            for column, value in zip(columns, example, strict=True):
                column.append(value)
        if self.window is not None or len(self.signs) == self.size:
            self._skip()
        else:
            # The reservoir fills first.
            self._next = self._seen

    def forget_old(self) -> None:
        """Let go of the examples that the window has left behind."""
        gone = bisect_right(self._arrived, self._seen - (self.window or self._seen))
        for column in self._columns():
            del column[:gone]

    def draw(self, n: int, d: int, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return up to n of the sampled examples whose numbers are not among `kept`, sorted.

        Returns
        -------
        Rows float32 (m, d), signs and weights.

        """
        numbers = np.array(self.numbers, np.int64)
        chosen = np.flatnonzero(~_are_in(numbers, kept)).tolist()
        if len(chosen) > n:
            chosen = self._random.sample(chosen, n)
        x = np.zeros((len(chosen), d), np.float32)
        for r, i in enumerate(chosen):
            # Rows from before a feature was known lack it.
            x[r, : self.rows[i].size] = self.rows[i]
        signs, weights = np.array(self.signs)[chosen], np.array(self.weights)[chosen]
        return x, signs, weights

    def turn_signs(self) -> None:
        """Exchange +1 and -1."""
        self.signs = [-sign for sign in self.signs]


def _are_in(numbers: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Tell which numbers are among others, sorted."""
    if not len(among):
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(among, numbers), len(among) - 1)
    return np.asarray(among[at] == numbers)
