"""Replay a source as if its events were happening now."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from connectors.batch import Batch, Event
from connectors.errors import SourceError
from connectors.source import DEFAULT_BATCH_SIZE, Source, SourceAround

# The longest that a row waits for the rest of its batch, in seconds.
_LONGEST_HOLD = 0.1


class SimulatedStream(SourceAround):
    """A source that yields the events of another source at a given pace.

    Each event is due at a time counted from the start of reading (again from each `resume` or
    `rewind`), so that delays do not add up. Events that are overdue come at once until the lag is
    made up. An event is taken from the source only when it is due: a snapshot taken while waiting,
    or after an interrupted wait, loses nothing.

    Parameters
    ----------
    source
        Where the events come from.
    rate
        Events a second, above 0. None, and `speed` None as well = as fast as they are read.
    speed
        Factor on the recorded pace, above 0: at 2.0 an hour of the source's timestamps takes half
        an hour. Steps back in time and missing timestamps are not waited for. Needs a source with
        a timestamp column.
    clock, sleep
        Functions: a monotonic clock in seconds, and a wait for a number of seconds. Tests replace
        them.

    Raises
    ------
    ValueError
        `rate` or `speed` is not above 0, or both are given.
    SourceError
        `speed` without timestamps.

    Examples
    --------
    >>> from connectors.memory import MemorySource
    >>> now = [0.0]
    >>> def sleep(seconds):
    ...     now[0] += seconds
    >>> events = [({"a": 1.0}, True)] * 3
    >>> stream = SimulatedStream(
    ...     MemorySource(events), rate=2, clock=lambda: now[0], sleep=sleep
    ... )
    >>> [now[0] for event in stream.events()]
    [0.0, 0.5, 1.0]

    """

    def __init__(
        self,
        source: Source,
        rate: float | None = None,
        speed: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if rate is not None and speed is not None:
            raise ValueError("give rate (events a second) or speed (recorded pace), not both")
        for parameter, value in (("rate", rate), ("speed", speed)):
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{parameter} must be a number above 0, not {value}")
        super().__init__(source)
        self.rate = rate
        self.speed = speed
        self._clock = clock
        self._sleep = sleep
        self._pace: _Steady | _Recorded | None = None
        if rate is not None:
            self._pace = _Steady(rate)
        if speed is not None:
            if source.upcoming_timestamps(1) is None:
                raise SourceError(
                    f"speed={speed} replays at the recorded pace, but `{source.name}` has no "
                    "timestamp column; give the source timestamp=, or the stream rate= instead"
                )
            self._pace = _Recorded(source, speed)
        self._begun: float | None = None

    def events(self) -> Iterator[Event]:
        """Return the unread events, each when it is due."""
        if self._pace is None:
            yield from self.source.events()
            return
        events = self.source.events()
        while len(due := self._pace.due(1)):
            self._wait_until(float(due[0]))
            event = next(events, None)
            if event is None:
                return
            self._pace.advance(1)
            yield event

    def batches(self, size: int | None = None) -> Iterator[Batch]:
        """Return the unread events in batches, each when its last row is due.

        `size` is the largest number of rows a batch, at least 1 (else ValueError); None = 4096. At
        a slow pace batches are smaller: no row waits more than .1 s for the rest of its batch.
        """
        if size is not None and size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        return self.source.batches(size) if self._pace is None else self._batches(size, self._pace)

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue the source from a return value of `snapshot`; its next event is due at once."""
        self.source.resume(snapshot)
        self._begin_anew()

    def rewind(self) -> None:
        """Go back to the start of the source, whose first event is due at once."""
        self.source.rewind()
        self._begin_anew()

    def _batches(self, size: int | None, pace: "_Steady | _Recorded") -> Iterator[Batch]:
        most = DEFAULT_BATCH_SIZE if size is None else size
        while len(due := pace.due(most)):
            # Overdue rows go into one batch.
            horizon = max(self._elapsed(), float(due[0])) + _LONGEST_HOLD
            count = max(1, int(np.searchsorted(due, horizon, side="right")))
            self._wait_until(float(due[count - 1]))
            batch = next(islice(self.source.batches(count), 1), None)
            if batch is None:
                return
            pace.advance(len(batch) + len(batch.rejects))
            yield batch

    def _elapsed(self) -> float:
        """Return the seconds since reading began."""
        now = self._clock()
        self._begun = now if self._begun is None else self._begun
        return now - self._begun

    def _begin_anew(self) -> None:
        self._begun = None
        if self._pace is not None:
            self._pace.reset()

    def _wait_until(self, due: float) -> None:
        if (wait := due - self._elapsed()) > 0:
            self._sleep(wait)


class _Steady:
    """A constant number of rows a second.

    `due` returns when the next rows are due, in seconds from the start; never decreasing.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._count = 0

    def due(self, limit: int) -> npt.NDArray[np.float64]:
        return np.arange(self._count, self._count + limit) / self._rate

    def advance(self, count: int) -> None:
        self._count += count

    def reset(self) -> None:
        self._count = 0


class _Recorded:
    """The pace of the timestamps: the sum of their steps forward."""

    # Timestamps fetched at once: fetching one costs as much.
    _AHEAD = 1024
    # Of the rows fetched: due times, and timestamps with missing ones filled in.
    _due: npt.NDArray[np.float64]
    _filled: npt.NDArray[np.float64]

    def __init__(self, source: Source, speed: float) -> None:
        self._source = source
        self._speed = speed
        self.reset()

    def due(self, limit: int) -> npt.NDArray[np.float64]:
        if len(self._due) < limit:
            stamps = self._source.upcoming_timestamps(max(limit, self._AHEAD))
            if stamps is not None and len(stamps):
                self._due, self._filled = self._steps(stamps)
        return self._due[:limit]

    def advance(self, count: int) -> None:
        self._elapsed = float(self._due[count - 1])
        self._last = float(self._filled[count - 1])
        self._due, self._filled = self._due[count:], self._filled[count:]

    def reset(self) -> None:
        self._elapsed = 0.0
        self._last = math.nan
        self._due = self._filled = np.empty(0)

    def _steps(self, stamps: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], ...]:
        """Return due times, and the timestamps with missing ones taken from the row before."""
        filled = np.concatenate([[self._last], stamps])
        known = np.where(np.isfinite(filled), np.arange(len(filled)), 0)
        filled = filled[np.maximum.accumulate(known)]
        forward = np.nan_to_num(np.maximum(np.diff(filled), 0.0))
        return self._elapsed + np.cumsum(forward) / self._speed, filled[1:]
