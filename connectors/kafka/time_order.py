"""Messages of several partitions in the order of their times: the one behind is read first."""

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping

from connectors.kafka.messages import Message, size_of
from connectors.source import topic_and_number

_MOST_WAITING = 10_000
_MOST_BYTES = 32_000_000
"""A partition of which so many messages, or bytes, wait is not read from meanwhile."""

_QUIET_SECONDS = 3.0
"""A partition that gave nothing in polls of so long has nothing, whatever its end: marks of
transactions and deleted messages have offsets, too."""

_SLACK_SECONDS = 0.1
"""Messages may come so much too early: one at a time would take long, and clocks differ by more."""


class TimeOrder:
    """Holds messages until those of other partitions that are older have been taken.

    Taken are messages of one partition at a time, of the one whose first message is the oldest, up
    to the first message of another topic: labels are where their events are. A partition of which
    nothing waits, though more is there, is waited for.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Message]] = {}
        self._bytes: dict[str, int] = {}
        self._quiet: dict[str, float] = {}  # seconds of polls in which a partition gave nothing

    def add(self, messages: Iterable[Message], seconds: float) -> int:
        """Add the messages of a poll that took so long; return how many were here already."""
        n_left = 0
        for place in self._quiet:
            self._quiet[place] += seconds
        for message in messages:
            place = message.place
            waiting = self._waiting.setdefault(place, deque())
            if waiting and message.offset <= waiting[-1].offset:
                n_left += 1
                continue
            waiting.append(message)
            self._bytes[place] = self._bytes.get(place, 0) + size_of(message)
            self._quiet[place] = 0.0
        return n_left

    def take(self, most: int, unread: Mapping[str, bool]) -> tuple[str, list[Message]] | None:
        """Take at most so many messages of the partition that is behind; None: wait for others.

        `unread` tells of each partition whether more messages are there than were added.
        """
        if not self._waiting or any(map(self.is_open, unread, unread.values())):
            return None
        place = min(self._waiting, key=lambda one: _seconds(self._waiting[one][0]))
        waiting, topic = self._waiting[place], _topic(place)
        heads = [_seconds(more[0]) for one, more in self._waiting.items() if _topic(one) != topic]
        stop = min(heads, default=math.inf) + _SLACK_SECONDS
        found = [waiting.popleft()]
        while waiting and len(found) < most and _seconds(waiting[0]) <= stop:
            found.append(waiting.popleft())
        self._bytes[place] -= sum(map(size_of, found))
        if not waiting:
            del self._waiting[place], self._bytes[place]
        return place, found

    def is_open(self, place: str, is_unread: bool) -> bool:
        """Tell whether a partition is waited for: nothing of it waits here, but more is there."""
        quiet = self._quiet.setdefault(place, 0.0)
        return is_unread and place not in self._waiting and quiet < _QUIET_SECONDS

    def next_offsets(self) -> dict[str, int]:
        """Return the offset after the last message that waits of each partition."""
        return {place: waiting[-1].offset + 1 for place, waiting in self._waiting.items()}

    def holds(self, place: str, share: float = 1.0) -> bool:
        """Tell whether of a partition this share of the most waits, of messages or of bytes."""
        n, n_bytes = len(self._waiting.get(place, ())), self._bytes.get(place, 0)
        return n >= max(1.0, share * _MOST_WAITING) or n_bytes >= max(1.0, share * _MOST_BYTES)

    def full(self) -> set[str]:
        """Return the partitions of which enough waits."""
        return {place for place in self._waiting if self.holds(place)}

    def drop(self, places: Collection[str]) -> None:
        """Drop what waits of partitions: it is read again, here or by another member."""
        for place in places:
            self._waiting.pop(place, None)
            self._bytes.pop(place, None)
            self._quiet.pop(place, None)


def _topic(place: str) -> str:
    return topic_and_number(place)[0]


def _seconds(message: Message) -> float:
    """Return the time of a message; without one it is read at once."""
    return -math.inf if message.seconds is None else message.seconds
