"""Checkpoints before partitions are given to another member of the group."""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

_log = logging.getLogger(__name__)


class Handover:
    """Writes a checkpoint when a client gives up partitions in a poll, as a listener of its own.

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
        """Keep offsets for a commit that is awaited; False: the caller must commit them."""
        # Read once: another thread may set it to None at any moment.
        noted = self._noted
        if noted is not None:
            noted.update(offsets)
        return noted is not None

    def on_partitions_assigned(self, assigned: Collection[Any]) -> Any:
        """Pass newly assigned partitions on; reading starts at the committed offsets."""
        with self._failing_later():
            self._assigned(assigned)

    def on_partitions_revoked(self, revoked: Collection[Any]) -> Any:
        """Write a checkpoint, which commits at its end; another member continues from it.

        Outside of a poll (when the consumer is being closed) this does nothing.
        """
        if revoked and self._is_polling:
            _log.info("partitions revoked")
            with self._failing_later():
                self._save(revoked)

    @contextlib.contextmanager
    def _failing_later(self) -> Iterator[None]:
        """Keep an exception for `polling`: a client only logs those of its listeners."""
        try:
            yield
        except Exception as error:
            self._failure = self._failure or error


class AwaitedHandover(Handover):
    """The same for clients that await their listeners."""

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        """Pass newly assigned partitions on, as `Handover`."""
        super().on_partitions_assigned(assigned)

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        """Write a checkpoint and commit it, as `Handover`."""
        if not revoked or not self._is_polling:
            return
        _log.info("partitions revoked: %s", ", ".join(sorted(map(str, revoked))))
        offsets: dict[str, int] = {}
        self._noted = offsets
        with self._failing_later():
            try:
                self._save(revoked)
            finally:
                self._noted = None
            try:
                await self._commit(offsets, revoked)
            except Exception as error:
                self._refused(error)

    async def on_partitions_lost(self, lost: Collection[Any]) -> None:
        """Do nothing: another member has them already, and nothing can be committed."""


def handover_of(consumer: Any, *calls: Any) -> Handover:
    """Return a handover that is a listener of a consumer's own kind, if that is known."""
    # Each client demands listeners of its own class; its package is installed, as the consumer is
    # of it.
    packages = {kind.__module__.partition(".")[0] for kind in type(consumer).__mro__}
    if "aiokafka" in packages:
        from aiokafka.abc import ConsumerRebalanceListener

        kinds: Any = (AwaitedHandover, ConsumerRebalanceListener)
    elif "kafka" in packages:
        import kafka

        # Before version 3, kafka-python had no event loop: `poll` calls the listeners.
        kinds = (Handover, kafka.ConsumerRebalanceListener)
        if hasattr(kafka, "AsyncConsumerRebalanceListener"):
            kinds = (AwaitedHandover, kafka.AsyncConsumerRebalanceListener)
    else:
        return Handover(*calls)
    listener: Handover = type("Listener", kinds, {})(*calls)
    return listener
