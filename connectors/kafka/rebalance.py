"""Checkpoints before partitions are given to another member of the group."""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any

from connectors.errors import SourceError
from connectors.kafka.client_errors import will_pass
from connectors.kafka.message_reader import MessageReader
from connectors.kafka.messages import AsyncPoller, Poller, RecordsPoller, place_of, shown

_log = logging.getLogger(__name__)
_log_of_source = logging.getLogger("connectors.kafka.kafka_source")

Commit = Callable[[Mapping[str, int], Collection[Any]], Awaitable[Any]]


class Handover:
    """Writes and commits a checkpoint when a client that runs in an event loop gives up partitions.

    kafka-python and aiokafka report a rebalance from their own event loop, while the source waits
    in a poll: no message is half learnt then. A commit that waits for this same loop would
    deadlock. So the offsets are noted while the checkpoint is written, and the commit is awaited
    afterwards.

    `save` is called with the partitions that are taken away, and writes a checkpoint, which calls
    `note` at its end; `commit` returns an awaitable; `refused` is called with the exception of a
    failed commit, and raises it if the reason is permanent; `assigned` with new partitions.
    """

    def __init__(
        self,
        save: Callable[[Collection[Any]], None],
        commit: Commit,
        refused: Callable[[Exception], None],
        assigned: Callable[[Collection[Any]], None],
    ) -> None:
        self._save, self._commit, self._refused = save, commit, refused
        self._assigned = assigned
        self._is_polling = False
        self._failure: Exception | None = None
        self._noted: dict[str, int] | None = None

    @contextlib.contextmanager
    def polling(self) -> Iterator[None]:
        """Return a context for a poll: partitions may be given up inside it.

        An exception of the checkpoint is raised at its end.
        """
        self._is_polling = True
        try:
            yield
        finally:
            self._is_polling = False
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def note(self, offsets: Mapping[str, int]) -> bool:
        """Keep offsets for the commit in `give_up`; False: the caller must commit them."""
        # Read once: another thread may set it to None at any moment.
        noted = self._noted
        if noted is not None:
            noted.update(offsets)
        return noted is not None

    def assigned(self, partitions: Collection[Any]) -> None:
        """Pass newly assigned partitions on; an exception is raised by `polling`."""
        try:
            self._assigned(partitions)
        except Exception as error:
            self._failure = self._failure or error

    async def give_up(self, partitions: Collection[Any]) -> None:
        """Write a checkpoint and commit it, for a client that awaits its listeners.

        Outside of a poll (when the consumer is being closed) this does nothing.
        """
        if not self._is_polling:
            return
        _log.info("partitions revoked: %s", ", ".join(sorted(map(str, partitions))))
        self._noted = {}
        try:
            self._save(partitions)
            offsets, self._noted = self._noted, None
            try:
                await self._commit(offsets, partitions)
            except Exception as error:
                self._refused(error)
        except Exception as error:
            # Raised by `polling`: a client only logs exceptions of its listeners.
            self._failure = self._failure or error
        finally:
            self._noted = None

    def give_up_here(self, partitions: Collection[Any]) -> None:
        """Write a checkpoint, which commits at its end, for a client that calls its listeners."""
        if not self._is_polling:
            return
        _log.info("partitions revoked")
        try:
            self._save(partitions)
        except Exception as error:
            self._failure = self._failure or error


def handover_of(
    poller: Poller,
    save: Callable[[Collection[Any]], None],
    refused: Callable[[Exception], None],
    assigned: Callable[[Collection[Any]], None],
) -> Handover | None:
    """Return the handover for a client; None for one without an event loop."""
    if isinstance(poller, RecordsPoller | AsyncPoller):
        return Handover(save, poller.committing, refused, assigned)
    return None


def listener_of(consumer: Any, handover: Handover) -> Any:
    """Return a listener of the client's own kind; None if the client is unknown."""
    # Each client demands listeners of its own class; its package is installed, as the consumer is
    # of it.
    packages = {kind.__module__.partition(".")[0] for kind in type(consumer).__mro__}
    if "aiokafka" in packages:
        from aiokafka.abc import ConsumerRebalanceListener

        return _awaited(ConsumerRebalanceListener, handover)
    if "kafka" in packages:
        import kafka

        # Before version 3, kafka-python had no event loop: `poll` calls the listeners.
        base = getattr(kafka, "AsyncConsumerRebalanceListener", None)
        return (
            _called(kafka.ConsumerRebalanceListener, handover)
            if base is None
            else _awaited(base, handover)
        )
    return None


def _awaited(base: Any, handover: Handover) -> Any:
    class Listener(base):  # type: ignore[misc]
        """Passes rebalances on to the handover."""

        async def on_partitions_revoked(self, revoked: Any) -> None:
            """Write and commit a checkpoint; another member continues from it."""
            if revoked:
                await handover.give_up(revoked)

        async def on_partitions_assigned(self, assigned: Any) -> None:
            """Pass them on; reading starts at the committed offsets."""
            handover.assigned(assigned)

        async def on_partitions_lost(self, lost: Any) -> None:
            """Do nothing: another member has them already, and nothing can be committed."""

    return Listener()


def _called(base: Any, handover: Handover) -> Any:
    class Listener(base):  # type: ignore[misc]
        """Passes rebalances on to the handover."""

        def on_partitions_revoked(self, revoked: Any) -> None:
            """Write and commit a checkpoint; another member continues from it."""
            if revoked:
                handover.give_up_here(revoked)

        def on_partitions_assigned(self, assigned: Any) -> None:
            """Pass them on; reading starts at the committed offsets."""
            handover.assigned(assigned)

    return Listener()


class Rebalanced:
    """The part of a `KafkaSource` that answers when partitions come and go."""

    consumer: Any
    _name: str
    failed_commits: int
    before_revoke: Callable[[], None]
    learnt_elsewhere: Callable[[], dict[str, int]]
    _handover: Any
    _reader: MessageReader
    _offsets: dict[str, int]
    _expected: dict[str, int]
    _read: set[str]

    def _subscribe(self, topics: list[str]) -> None:
        if self._handover is not None:
            listener = listener_of(self.consumer, self._handover)
            self.consumer.subscribe(topics, **({} if listener is None else {"listener": listener}))
        else:
            calls = {"on_assign": self._assigned, "on_revoke": self._revoked, "on_lost": self._lost}
            self.consumer.subscribe(topics, **calls)

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        """Start at the highest offset of checkpoint, broker and other members' checkpoints."""
        elsewhere = self.learnt_elsewhere()
        for known in consumer.committed(partitions, 30.0):
            place = place_of(known)
            self._read.add(place)
            start = max(self._offsets.get(place, -1), known.offset, elsewhere.get(place, -1))
            if start >= 0:
                self._offsets[place] = self._expected[place] = start
        for partition in partitions:
            partition.offset = self._offsets.get(place_of(partition), partition.offset)
        _log_of_source.info(
            "%s: partitions assigned: %s", self._name, shown(partitions, self._offsets)
        )
        consumer.assign(partitions)

    def _give_up(self, partitions: Collection[Any]) -> None:
        """Write a checkpoint before another member of the group gets partitions."""
        self._drop_held(partitions)
        self.before_revoke()

    def _drop_held(self, partitions: Collection[Any]) -> None:
        """Drop what is held of partitions: it is read again, here or by another member."""
        for place, first in self._reader.first.drop(map(place_of, partitions)).items():
            self._offsets.setdefault(place, first)

    def _forget_read(self, partitions: Collection[Any]) -> None:
        """Commit nothing of newly assigned partitions until a message of theirs is learnt."""
        _log_of_source.info(
            "%s: partitions assigned: %s", self._name, shown(partitions, self._offsets)
        )
        self._read.difference_update(map(place_of, partitions))
        elsewhere = self.learnt_elsewhere()
        for place in map(place_of, partitions):
            self._expected.pop(place, None)
            # Messages from the committed offset up to this one are passed over.
            if elsewhere.get(place, 0) > self._offsets.get(place, 0):
                self._offsets[place] = elsewhere[place]

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        """Write a checkpoint before another member of the group gets the partitions."""
        _log_of_source.info(
            "%s: partitions revoked: %s", self._name, shown(partitions, self._offsets)
        )
        self._give_up(partitions)
        consumer.unassign()

    def _lost(self, consumer: Any, partitions: list[Any]) -> None:
        """Unassign partitions that another member has; their offsets are kept, not committed."""
        _log_of_source.warning(
            "%s: partitions lost: %s", self._name, shown(partitions, self._offsets)
        )
        self._drop_held(partitions)
        consumer.unassign()

    def _refused(self, error: Exception) -> None:
        if not will_pass(error):
            raise SourceError(f"`{self._name}`: offsets cannot be committed: {error}") from error
        _log_of_source.warning("%s: a commit failed for now: %s", self._name, error)
        self.failed_commits += 1
