"""Batches of sentences: events whose features are the tokens, and whose label is a list."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from connectors.source import Event, Position, Reject

SENTENCES = 512
"""Sentences a batch, if a source is not told otherwise."""


class SentenceBatch:
    """Consecutive sentences, with what was read between them that is none.

    `items` are events, whose `x` are tokens and whose `y` is a list of labels, or None; and a
    `Reject` for each sentence that cannot be used. The interface is that of `Batch`, but for the
    columns of features.
    """

    are_answers = False
    payloads = weights = None

    def __init__(self, items: Sequence[Event | Reject]) -> None:
        self._items = items
        self._places = [i for i, item in enumerate(items) if not isinstance(item, Reject)]

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self._places)

    @property
    def rejects(self) -> tuple[Reject, ...]:
        """What was read that is no sentence."""
        return tuple(item for item in self._items if isinstance(item, Reject))

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The row number of each sentence."""
        return np.array([event.position.row for event in self.events()], np.int64)

    @property
    def labels(self) -> list[Any]:
        """The list of labels of each sentence, or None."""
        return [event.y for event in self.events()]

    def events(self) -> Iterator[Event]:
        """Return the event of each sentence, in order."""
        return (item for item in self._items if not isinstance(item, Reject))

    def items(self) -> list[Event | Reject]:
        """Return what was read, in order."""
        return list(self._items)

    def position(self, i: int) -> Position:
        """Return the position of sentence `i` of the batch, from 0."""
        return self._items[self._places[i]].position

    def slice(self, offset: int, length: int | None = None) -> "SentenceBatch":
        """Return so many sentences from `offset` on, with their rejects as in `Batch.slice`."""
        end = len(self) if length is None else min(len(self), offset + length)
        ends = [0, *(place + 1 for place in self._places)]
        stop = len(self._items) if end == len(self) else ends[end]
        return SentenceBatch(self._items[ends[offset] : stop])
