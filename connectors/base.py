"""The base of sources: what all share, whatever they read."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from connectors.errors import SnapshotError
from connectors.source import DEFAULT_BATCH_SIZE, Batch, Closing, Event, Snapshot


class BaseSource(Closing, ABC):
    """A source that says how it reads events and batches, and at which position."""

    batch_size = DEFAULT_BATCH_SIZE
    _name: str
    _kind: str  # the name of the class, in snapshots

    @property
    def name(self) -> str:
        """The name of the source in messages and on a screen."""
        return self._name

    def events(self) -> Iterator[Event]:
        """Return the unread events, one by one."""
        return self._events()

    def batches(self, size: int | None = None) -> Iterator[Batch]:
        """Return the unread events in batches.

        `size` is the largest number of rows a batch (of a topic: of messages a poll), at least 1
        (else ValueError); there are fewer at the ends of files and of shuffled blocks. None =
        `batch_size`.
        """
        rows = self.batch_size if size is None else size
        if rows < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        return self._batches(rows)

    def snapshot(self) -> Snapshot:
        """Return the position of the next unread event, and of what it is one, as JSON values."""
        return {"source": self._kind, **self._position()}

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a return value of `snapshot`, of this or an earlier process.

        SnapshotError: it is of another source, or of this one with other settings.
        """
        if snapshot.get("source") != self._kind:
            raise SnapshotError(f"not a snapshot of a {self._kind}: {dict(snapshot)!r:.200}")
        self._resume(snapshot)

    @abstractmethod
    def _events(self) -> Iterator[Event]:
        """Yield the unread events."""

    @abstractmethod
    def _batches(self, size: int) -> Iterator[Batch]:
        """Yield the unread events in batches of at most `size` rows."""

    @abstractmethod
    def _position(self) -> Snapshot:
        """Return the position of the next unread event, and the settings that it depends on."""

    @abstractmethod
    def _resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue at a position; raise a SnapshotError if it is none of this source."""
