"""The interface of a source: events or batches, and the position of the next unread one.

One convention holds in the whole package: **an item counts as read when the iterator yields it**. A
snapshot is the position of the next *unread* item: a snapshot taken while event k is processed
names event k + 1. To save it together with a model, save after learning event k, not before.

Iterators of events and of batches share one position, so that the two can be mixed.
"""

# ruff: noqa: B027 (methods of `Source` that do nothing are defaults, not forgotten ones)

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from connectors.batch import Batch, Event
from connectors.errors import SnapshotError
from connectors.text_looks import TextLooks

Snapshot: TypeAlias = dict[str, Any]
"""A position as JSON values: strings, integers, None, lists and dicts of them."""

DEFAULT_BATCH_SIZE = 4096
"""Rows a batch: large enough to hide Arrow's cost a call, small enough to stay in the cache."""


class Source(ABC):
    """Anything that gives events with positions, one by one or in batches: the base of all sources.

    After an iterator is exhausted, ``events()`` and ``batches()`` yield nothing more until `rewind`
    or `resume` is called. What has a default here is not asked of each source. A source is a
    context manager, which calls `close` at its end.
    """

    batch_size: int = DEFAULT_BATCH_SIZE
    """The largest number of rows a batch, unless `batches` is told another one."""

    keep: Sequence[str] = ()
    """The columns that batches have as they are, under `kept`."""

    target_field: str | None = None
    """The name of the label, where an event may lack it: of messages, say."""

    has_answers: bool = False
    """Whether labels come apart from events, in batches that `are_answers`."""

    forgets: bool = False
    """Whether there are batches that ask to forget earlier events: `are_tombstones`."""

    cuts_anew: bool = False
    """Whether the same events come in other batches when they are read again (messages do)."""

    number_texts: TextLooks | None = None
    """What is found about texts as they are read; None: nothing is looked for."""

    # What whoever reads the source may set; a source without a group, or a broker, asks for none.

    on_long_wait: Callable[[str], None] | None = None
    """Is told why nothing comes for some seconds."""

    before_revoke: Callable[[], None] | None = None
    """Is called before other members of a group get what was read here."""

    learnt_elsewhere: Callable[[Collection[str]], dict[str, int]] | None = None
    """Is given the partitions that are assigned, and returns how far other members have read."""

    on_gone: Callable[[Collection[str]], None] | None = None
    """Is told of partitions that other members have now."""

    late_by_partition: bool = False
    """Whether `learnt_elsewhere` takes over what others hold for labels that come late."""

    ends_at: float | None = None
    """The `time.monotonic` by which a run that is told to end is to have closed the source."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the source in messages and on a screen."""

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """The number of all rows, for a progress bar; None if it is not cheap to know."""

    @abstractmethod
    def events(self) -> Iterator[Event]:
        """Return the unread events, one by one."""

    @abstractmethod
    def batches(self, size: int | None = None) -> Iterator[Batch]:
        """Return the unread events in batches of at most `size` rows; None: as the source likes."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Return the position of the next unread item, ready for ``json.dumps``."""

    @abstractmethod
    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a return value of `snapshot`, of this or an earlier process."""

    @abstractmethod
    def rewind(self) -> None:
        """Go back to the start, for another epoch."""

    def close(self) -> None:
        """Release files and connections; reading again reopens files where reading stopped."""

    def settled(self, snapshot: Mapping[str, Any]) -> None:
        """Take note that all up to a snapshot is learnt, and kept in a checkpoint on the disk."""

    def confirm(self) -> None:
        """Wait a few seconds at most until the other side knows what is settled."""

    def check_ids(self, snapshot: Mapping[str, Any]) -> None:
        """Refuse, by a SnapshotError, a snapshot of other data of the same name."""

    def upcoming_timestamps(self, limit: int) -> npt.NDArray[np.float64] | None:
        """Return the timestamps of at most `limit` next rows, leaving them unread.

        They are in seconds, at least one unless the source is at its end; NaN = missing. None: the
        source has no timestamp column.
        """
        return None

    @property
    def wait_seconds(self) -> float:
        """The time spent waiting for events that were not there yet."""
        return 0.0

    @property
    def empty_columns(self) -> Sequence[str]:
        """The feature columns without a value in what was read so far."""
        return ()

    @property
    def counts(self) -> dict[str, int]:
        """Counts for the report of a run, by name."""
        return {}

    @property
    def lag(self) -> int | None:
        """How many events are there that were not read yet; None: that is not known."""
        return None

    @property
    def lags(self) -> dict[str, int]:
        """The same of each partition, where it is known."""
        return {}

    def __enter__(self) -> Self:
        """Return the source."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the source."""
        self.close()


class SourceAround(Source):
    """A source that reads another one in its own way: all that it does not define is that one's."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.batch_size = source.batch_size
        self.keep, self.target_field = source.keep, source.target_field
        self.has_answers, self.forgets = source.has_answers, source.forgets
        self.cuts_anew, self.number_texts = source.cuts_anew, source.number_texts

    @property
    def name(self) -> str:
        """The source's name."""
        return self.source.name

    @property
    def n_rows(self) -> int | None:
        """The source's number of rows."""
        return self.source.n_rows

    def events(self) -> Iterator[Event]:
        """Return the source's unread events."""
        return self.source.events()

    def batches(self, size: int | None = None) -> Iterator[Batch]:
        """Return the source's unread events in batches."""
        return self.source.batches(size)

    def snapshot(self) -> Snapshot:
        """Return the source's position: the next event that was not yielded."""
        return self.source.snapshot()

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue the source from a return value of `snapshot`."""
        self.source.resume(snapshot)

    def rewind(self) -> None:
        """Go back to the start of the source."""
        self.source.rewind()

    def close(self) -> None:
        """Close the source."""
        self.source.close()

    def settled(self, snapshot: Mapping[str, Any]) -> None:
        """Tell the source that all up to a snapshot is learnt."""
        self.source.settled(snapshot)

    def confirm(self) -> None:
        """Wait until the other side of the source knows what is settled."""
        self.source.confirm()

    def check_ids(self, snapshot: Mapping[str, Any]) -> None:
        """Refuse a snapshot of other data of the source's name."""
        self.source.check_ids(snapshot)

    def upcoming_timestamps(self, limit: int) -> npt.NDArray[np.float64] | None:
        """Return the timestamps of the source's next rows."""
        return self.source.upcoming_timestamps(limit)

    @property
    def wait_seconds(self) -> float:
        """The time that the source has waited."""
        return self.source.wait_seconds

    @property
    def empty_columns(self) -> Sequence[str]:
        """The source's columns without a value."""
        return self.source.empty_columns

    @property
    def counts(self) -> dict[str, int]:
        """The source's counts."""
        return self.source.counts

    @property
    def lag(self) -> int | None:
        """The source's lag."""
        return self.source.lag

    @property
    def lags(self) -> dict[str, int]:
        """The source's lags."""
        return self.source.lags


class BaseSource(Source):
    """A source that says how it reads events and batches, and at which position."""

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
            kind = snapshot.get("source")
            of_what = f"is of {kind:.60}" if isinstance(kind, str) else "names no kind of source"
            raise SnapshotError(f"not a snapshot of a {self._kind}: it {of_what}")
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
