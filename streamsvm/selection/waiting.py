"""Answers to events whose labels have not come, found again by what the events hold."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any

from streamsvm.selection.answering import Answer

MOST = 10_000
"""So many answers are kept; the oldest are dropped for new ones."""


class Waiting:
    """The last `MOST` answers whose labels have not come.

    Attributes
    ----------
    n, n_dropped
        How many are kept, and how many were dropped.

    """

    def __init__(self) -> None:
        self.n = self.n_dropped = 0
        self._answers: OrderedDict[Any, deque[Answer]] = OrderedDict()

    def add(self, x: Any, answer: Answer) -> None:
        """Keep the answer to an event."""
        self._answers.setdefault(_key(x), deque()).append(answer)
        self.n += 1
        if self.n > MOST:
            self._take(next(iter(self._answers)))
            self.n_dropped += 1

    def take(self, x: Any) -> Answer | None:
        """Return the oldest answer to an equal event, and keep it no longer; or None."""
        key = _key(x)
        return self._take(key) if key in self._answers else None

    def _take(self, key: Any) -> Answer:
        answers = self._answers[key]
        if len(answers) == 1:
            del self._answers[key]
        self.n -= 1
        return answers.popleft()


def _key(x: Any) -> Any:
    """Return what is equal of equal events: their items, or the text of what cannot be hashed."""
    key = x.items() if isinstance(x, Mapping) else (x,)
    try:
        return frozenset(key)
    except TypeError:
        return repr(x)
