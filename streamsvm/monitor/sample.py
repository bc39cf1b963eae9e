"""Uniform samples of the examples that passed by, from which hinge losses are estimated."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.support.rows import Rows, copied, joined
from streamsvm.support.writable import writable

NEVER = 10**18


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

    Attributes
    ----------
    seen
        How many examples passed by.
    next
        How many will have passed by before the next one that is kept; until then, adding to `seen`
        is all that is needed.

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
        self._signs, self._weights = np.zeros(room), np.zeros(room)
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
    def signs(self) -> np.ndarray:
        """Their signs, float64."""
        return self._signs[: self._n]

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

    def offer(self, x: Rows, signs: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> None:
        """Let examples pass by: n rows, and what belongs to them."""
        first = self.seen
        after = first + len(signs)
        # After an interruption it may be behind.
        self.next = max(self.next, first)
        while self.next < after:
            i = self.next - first
            row = copied(x, i)
            self.seen = self.next + 1
            at = self._place()
            # What an interrupted offer left was not counted.
            self._rows[at : at + 1] = [row]
            self._signs[at], self._weights[at] = signs[i], weights[i]
            self._numbers[at], self._arrived[at] = numbers[i], self.seen
            self._n = max(self._n, at + 1)
            if self.window is not None or self._n == self.size:
                self._skip()
            else:
                # The reservoir fills first.
                self.next = self.seen
        self.seen = after

    def _place(self) -> int:
        """Return where the next example goes."""
        if self.window is None and self._n == self.size:
            return self._random.randrange(self.size)
        if self._n == len(self._signs):
            self.forget_old()
        if self._n == len(self._signs):
            # Far more than expected were drawn: the oldest makes room.
            self._forget(1)
        return self._n

    def forget_old(self) -> None:
        """Let go of the examples that the window has left behind."""
        if self.window is not None:
            last = self.seen - self.window
            self._forget(int(np.searchsorted(self._arrived[: self._n], last, side="right")))

    def _forget(self, gone: int) -> None:
        del self._rows[:gone]
        for column in (self._signs, self._weights, self._numbers, self._arrived):
            column[: self._n - gone] = column[gone : self._n]
        self._n -= gone

    def draw(self, n: int, d: int, kept: np.ndarray) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return up to n of the sampled examples whose numbers are not among `kept`, sorted.

        Returns
        -------
        Rows of d features, sparse if the last that came were; signs; and weights.

        """
        chosen = np.flatnonzero(~_are_in(self.numbers, kept))
        if len(chosen) > n:
            chosen = chosen[self._random.sample(range(len(chosen)), n)]
        # Rows from before a feature was known lack it.
        x = joined([self._rows[i] for i in chosen.tolist()], d)
        return x, self._signs[chosen], self._weights[chosen]

    def turn_signs(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Change the signs."""
        self._signs = change(self._signs)


def _are_in(numbers: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Tell which numbers are among others, sorted."""
    if not len(among):
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(among, numbers), len(among) - 1)
    return np.asarray(among[at] == numbers)
