"""Checkpoints before partitions are given to another member of the group."""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

_log = logging.getLogger(__name__)


class Handover:
    """Writes and commits a checkpoint when a client that runs in an event loop gives up partitions.

    kafka-python and aiokafka report a rebalance from their own event loop, while the source waits
    in a poll: no message is half learnt then. A commit that waits for this same loop would
    deadlock. So the offsets are noted while the checkpoint is written, and the commit is awaited
    afterwards.

    `save` is called with the partitions that are taken away, and writes a checkpoint, which calls
    `note` at its end; `commit` is `Poller.committing`; `refused` is called with the exception of a
    failed commit, and raises it if the reason is permanent; `assigned` with new partitions.
    """

    def __init__(
        self,
        save: Callable[[Collection[Any]], None],
        commit: Any,
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
        with self._failing_later():
            self._assigned(partitions)

    async def give_up(self, partitions: Collection[Any]) -> None:
        """Write a checkpoint and commit it, for a client that awaits its listeners.

        Outside of a poll (when the consumer is being closed) this does nothing.
        """
        if not self._is_polling:
            return
        _log.info("partitions revoked: %s", ", ".join(sorted(map(str, partitions))))
        offsets: dict[str, int] = {}
        self._noted = offsets
        with self._failing_later():
            try:
                self._save(partitions)
            finally:
                self._noted = None
            try:
                await self._commit(offsets, partitions)
            except Exception as error:
                self._refused(error)

    def give_up_here(self, partitions: Collection[Any]) -> None:
        """Write a checkpoint, which commits at its end, for a client that calls its listeners."""
        if not self._is_polling:
            return
        _log.info("partitions revoked")
        with self._failing_later():
            self._save(partitions)

    @contextlib.contextmanager
    def _failing_later(self) -> Iterator[None]:
        """Keep an exception for `polling`: a client only logs those of its listeners."""
        try:
            yield
        except Exception as error:
            self._failure = self._failure or error


def listener_of(consumer: Any, handover: Handover) -> Any:
    """Return a listener of the client's own kind; None if the client is unknown."""
    # Each client demands listeners of its own class; its package is installed, as the consumer is
    # of it.
    packages = {kind.__module__.partition(".")[0] for kind in type(consumer).__mro__}
    if "aiokafka" in packages:
        from aiokafka.abc import ConsumerRebalanceListener

        bases: Any = (_Awaited, ConsumerRebalanceListener)
    elif "kafka" in packages:
        import kafka

        # Before version 3, kafka-python had no event loop: `poll` calls the listeners.
        base = getattr(kafka, "AsyncConsumerRebalanceListener", None)
        bases = (_Called, kafka.ConsumerRebalanceListener) if base is None else (_Awaited, base)
    else:
        return None
    return type("Listener", bases, {})(handover)


class _Called:
    """Passes rebalances on to the handover."""

    def __init__(self, handover: Handover) -> None:
        self._handover = handover

    def on_partitions_revoked(self, revoked: Any) -> Any:
        """Write and commit a checkpoint; another member continues from it."""
        if revoked:
            self._handover.give_up_here(revoked)

    def on_partitions_assigned(self, assigned: Any) -> Any:
        """Pass them on; reading starts at the committed offsets."""
        self._handover.assigned(assigned)


class _Awaited(_Called):
    """The same for clients that await their listeners."""

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Write and commit a checkpoint; another member continues from it."""
        if revoked:
            await self._handover.give_up(revoked)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Pass them on; reading starts at the committed offsets."""
        self._handover.assigned(assigned)

    async def on_partitions_lost(self, lost: Any) -> None:
        """Do nothing: another member has them already, and nothing can be committed."""
