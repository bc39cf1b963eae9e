"""Checkpoints before partitions are given to another member of the group."""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any

from connectors.kafka.messages import AsyncPoller, Poller, RecordsPoller

_log = logging.getLogger(__name__)

Commit = Callable[[Mapping[str, int], Collection[Any]], Awaitable[Any]]


class Handover:
    """Writes and commits a checkpoint when a client that runs in an event loop gives up partitions.

    kafka-python and aiokafka report a rebalance from their own event loop, while the source waits
    in a poll: no message is half learnt then. A commit that waits for this same loop would
    deadlock. So the offsets are noted while the checkpoint is written, and the commit is awaited
    afterwards.

    Parameters
    ----------
    save
        Called with the partitions that are taken away; writes a checkpoint, which calls `note` at
        its end.
    commit
        Returns an awaitable that commits offsets, for partitions that are assigned or were until
        now.
    refused
        Called with the exception of a failed commit; raises if the reason is permanent.
    assigned
        Called with newly assigned partitions.

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

        Returns
        -------
        AbstractContextManager[None]
            The context.

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
        """Keep offsets for the commit at the end of `give_up`.

        Parameters
        ----------
        offsets
            The next offset to read, by place.

        Returns
        -------
        bool
            False: no partitions are being given up; the caller must commit.

        """
        # Read once: another thread may set it to None at any moment.
        noted = self._noted
        if noted is not None:
            noted.update(offsets)
        return noted is not None

    def assigned(self, partitions: Collection[Any]) -> None:
        """Pass newly assigned partitions on; an exception is raised by `polling`.

        Parameters
        ----------
        partitions
            The partitions.

        """
        try:
            self._assigned(partitions)
        except Exception as error:
            self._failure = self._failure or error

    async def give_up(self, partitions: Collection[Any]) -> None:
        """Write a checkpoint and commit it, for a client that awaits its listeners.

        Outside of a poll (when the consumer is being closed) this does nothing.

        Parameters
        ----------
        partitions
            The partitions that are taken away.

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
        """Write a checkpoint, which commits at its end, for a client that calls its listeners.

        Parameters
        ----------
        partitions
            The partitions that are taken away.

        """
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
    """Return the handover for a client, None for clients without an event loop.

    Parameters
    ----------
    poller
        The adapter of the client.
    save, refused, assigned
        As in `Handover`.

    Returns
    -------
    Handover | None
        The handover.

    """
    if isinstance(poller, RecordsPoller | AsyncPoller):
        return Handover(save, poller.committing, refused, assigned)
    return None


def listener_of(consumer: Any, handover: Handover) -> Any:
    """Return a listener of the client's own kind; None if the client is unknown.

    Parameters
    ----------
    consumer
        The client's consumer.
    handover
        Called by the listener.

    Returns
    -------
    ConsumerRebalanceListener | None
        The listener, to be passed to ``subscribe``.

    """
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
