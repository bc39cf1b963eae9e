"""Labels that are simulated to come later: when each comes, and what is learnt before what."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import timedelta
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from connectors.batch import Batch
from streamsvm._parameter_checks import check_number
from streamsvm.errors import ParameterError

Delay = int | float | timedelta | Callable[[Any], float]


class Order(NamedTuple):
    """The order in which some events are predicted and learnt.

    In each place an event is predicted, or one is learnt that was predicted earlier.
    """

    events: np.ndarray  # int64 (n,): the event in each place
    is_learnt: np.ndarray  # bool (n,): whether it is learnt there; else it is predicted

    def where(self, wanted: np.ndarray) -> Order:
        """Return the places for which `wanted`, bool (n,), is True."""
        return Order(self.events[wanted], self.is_learnt[wanted])

    @property
    def learnt(self) -> np.ndarray:
        """The events that are learnt, in their order."""
        return self.events[self.is_learnt]


class LabelClock:
    """A queue of events whose labels come a given time after them: see `LateLabels`.

    `seen` events came so far, the last one at the time `now`.
    """

    def __init__(self, delay: Delay | None, moment: str | None) -> None:
        if isinstance(delay, timedelta):
            delay = delay.total_seconds()
        if delay is not None and not callable(delay):
            check_number("delay", delay, 0)
        if moment is not None and delay is None:
            raise ParameterError(f"moment={moment!r} says what delay= is counted in: give both")
        self.delay, self.moment = delay, moment
        self.seen, self.now = 0, 0.0
        self._due: list[tuple[float, int]] = []  # a heap: (when the label comes, number)

    def take(self, batch: Batch, first: int) -> tuple[Order, list[float], list[float]]:
        """Take a batch of events, which are numbered in their order, from `first` on.

        Returns the order in which events, by number, are taken. An event is learnt before the first
        later one that comes when its label is there, or afterwards. Then, when the label of each
        event of the batch comes, and when the event did.
        """
        times, due = self._times(batch)
        numbers: list[int] = []
        are_learnt: list[bool] = []
        queue = self._due
        for number, (now, label_comes) in enumerate(zip(times, due, strict=True), first):
            while queue and queue[0][0] <= now:
                numbers.append(heappop(queue)[1])
                are_learnt.append(True)
            numbers.append(number)
            are_learnt.append(False)
            heappush(queue, (label_comes, number))
        return Order(np.array(numbers, np.int64), np.array(are_learnt, bool)), due, times

    def rest(self) -> list[int]:
        """Return the events that still wait, in the order of their labels, and empty the queue."""
        numbers = [number for _, number in sorted(self._due)]
        self._due = []
        return numbers

    def restore(self, seen: int, now: float, due: list[tuple[float, int]]) -> None:
        """Continue with events that wait: (when the label comes, number)."""
        self.seen, self.now = seen, now
        self._due = [] if self.delay is None else sorted(due)

    def _times(self, batch: Batch) -> tuple[list[float], list[float]]:
        """Return the times at which each row comes, and at which its label comes."""
        n = len(batch)
        moments = np.array([self.now, *self._moments(batch)])
        # An event without a time comes at the time of the event before it.
        last = np.maximum.accumulate(np.where(np.isfinite(moments), np.arange(n + 1), 0))
        times = moments[last][1:]
        if callable(self.delay):
            delays = np.array([float(self.delay(event)) for event in batch.events()])
        else:
            delays = np.full(n, float(self.delay or 0.0))
        self.seen += n
        self.now = float(times[-1]) if n else self.now
        return times.tolist(), (times + delays).tolist()

    def _moments(self, batch: Batch) -> Iterable[float]:
        if self.moment is None:
            return range(self.seen, self.seen + len(batch))
        if self.moment == "timestamp":
            if batch.timestamps is None:
                raise ParameterError("moment='timestamp': the source has none; name its column")
            found: list[float] = batch.timestamps.tolist()
            return found
        moments = [float(event.x.get(self.moment, math.nan)) for event in batch.events()]
        if self.now == 0.0 and not any(map(math.isfinite, moments)):
            raise ParameterError(f"moment={self.moment!r}: no event has such a time so far")
        return moments
