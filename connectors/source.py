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
from connectors.errors import SnapshotError, SourceError
from connectors.text_looks import TextLooks

Snapshot: TypeAlias = dict[str, Any]
"""A position as JSON values: strings, integers, None, lists and dicts of them."""

DEFAULT_BATCH_SIZE = 4096
"""Rows a batch: large enough to hide Arrow's cost a call, small enough to stay in the cache."""


def topic_and_number(place: str) -> tuple[str, int]:
    """Return the topic and the number of a partition, ``topic[number]``."""
    topic, _, number = place.removesuffix("]").rpartition("[")
    return topic, int(number)


class Source(ABC):
    """Anything that gives events with positions, one by one or in batches: the base of all sources.

    After an iterator is exhausted, ``events()`` and ``batches()`` yield nothing more until `rewind`
    or `resume` is called. Only `batches` has no default; checkpoints need `snapshot` and `resume`,
    epochs need `rewind`. A source is a context manager, which calls `close` at its end.

    Attributes
    ----------
    batch_size
        The largest number of rows a batch, unless `batches` is told another one.
    keep
        The columns that batches have as they are, under `kept`.
    target_field
        The name of the label, where an event may lack it: of messages, say.
    has_answers, forgets
        Whether there are batches of labels of earlier events, which come apart from them
        (`are_answers`), and batches that ask to forget earlier events (`are_tombstones`).
    cuts_anew
        Whether the same events come in other batches when they are read again (messages do).
    number_texts
        What is found about texts as they are read; None: nothing is looked for.
    on_long_wait, before_revoke, on_gone
        Set by whoever reads a topic: called with why nothing comes for some seconds; before other
        members of the group get what was read here; with the partitions that they have now.
    learnt_elsewhere, late_by_partition
        Set, too: called with the partitions that are assigned, it returns how far other members
        have read them, and takes over what they hold for labels that come late, if the second is
        True.
    ends_at
        The `time.monotonic` by which a run that is told to end is to have closed the source.

    """

    batch_size: int = DEFAULT_BATCH_SIZE
    keep: Sequence[str] = ()
    target_field: str | None = None
    has_answers: bool = False
    forgets: bool = False
    cuts_anew: bool = False
    number_texts: TextLooks | None = None
    on_long_wait: Callable[[str], None] | None = None
    before_revoke: Callable[[], None] | None = None
    learnt_elsewhere: Callable[[Collection[str]], dict[str, int]] | None = None
    on_gone: Callable[[Collection[str]], None] | None = None
    late_by_partition: bool = False
    ends_at: float | None = None

    @property
    def name(self) -> str:
        """The name of the source in messages and on a screen."""
        return type(self).__name__

    @property
    def n_rows(self) -> int | None:
        """The number of all rows, for a progress bar; None if it is not cheap to know."""
        return None

    @abstractmethod
    def batches(self, size: int | None = None) -> Iterator[Batch]:
        """Return the unread events in batches of at most `size` rows; None: as the source likes."""

    def events(self) -> Iterator[Event]:
        """Return the unread events, one by one."""
        for batch in self.batches(1):
            if not batch.are_tombstones:
                yield from batch.events()

    def snapshot(self) -> Snapshot:
        """Return the position of the next unread item, ready for ``json.dumps``."""
        raise SourceError(f"{self.name} has no snapshot(): no checkpoint can be kept of it")

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a return value of `snapshot`, of this or an earlier process."""
        raise SourceError(f"{self.name} has no resume(): it cannot be gone on with")

    def rewind(self) -> None:
        """Go back to the start, for another epoch."""
        raise SourceError(f"{self.name} has no rewind(): it can be read once")

    def close(self) -> None:
        """Release files and connections; reading again reopens files where reading stopped."""

    def settled(self, snapshot: Mapping[str, Any]) -> None:
        """Take note that all up to a snapshot is learnt, and kept in a checkpoint on the disk."""

    def confirm(self) -> None:
        """Wait a few seconds at most until the other side knows what is settled."""

    def offsets_in(self, snapshot: Mapping[str, Any]) -> dict[str, int]:
        """Return the offset of the next event of each partition in a snapshot; {}: it has none."""
        return {}

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


class _Inner:
    """An attribute of a `SourceAround` that is that of the source which it reads."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, around: Any, owner: type) -> Any:
        return self if around is None else getattr(around.source, self._name)

    def __set__(self, around: Any, value: Any) -> None:
        setattr(around.source, self._name, value)


class SourceAround(Source):
    """A source that reads another one in its own way: all that it does not define is that one's."""

    def __init__(self, source: Source) -> None:
        self.source = checked(source)

    def batches(self, size: int | None = None) -> Iterator[Batch]:
        """Return the source's unread events in batches."""
        return self.source.batches(size)


for _name in vars(Source).keys() - vars(SourceAround).keys():
    if not _name.startswith("_"):
        setattr(SourceAround, _name, _Inner(_name))


def checked(source: Source) -> Source:
    """Return a source; SourceError: it is none."""
    if not isinstance(source, Source):
        raise SourceError(
            f"{type(source).__name__} is no source: derive it from connectors.Source, which asks "
            "for batches() only; events (x, y) in memory are a MemorySource"
        )
    return source


class BaseSource(Source):
    """A source that says how it reads batches, and at which position."""

    _name: str
    _kind: str  # the name of the class, in snapshots

    @property
    def name(self) -> str:
        """The name of the source in messages and on a screen."""
        return self._name

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
    def _batches(self, size: int) -> Iterator[Batch]:
        """Yield the unread events in batches of at most `size` rows."""

    @abstractmethod
    def _position(self) -> Snapshot:
        """Return the position of the next unread event, and the settings that it depends on."""

    @abstractmethod
    def _resume(self, snapshot: Mapping[str, Any]) -> None:
        """Continue at a position; raise a SnapshotError if it is none of this source."""
