"""What is made safe before partitions go to another member of the group."""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any

from connectors.messages import AsyncPoller, Poller, RecordsPoller

Commit = Callable[[Mapping[str, int], Collection[Any]], Awaitable[Any]]


class Handover:
    """Makes safe what was learnt when a client that runs in a loop gives partitions up.

    kafka-python and aiokafka tell of a rebalance from a loop of their own, while somebody waits in
    a poll: nothing is half learnt then. A commit would wait for that same loop, so that offsets are
    noted here instead, and awaited when all else is done.

    Parameters
    ----------
    save
        Writes a checkpoint, which ends in `note`.
    commit
        Returns what to await until the broker knows the offsets of some places, in the partitions
        that are assigned or were until now.
    refused
        Told what the broker answered, if it does not take a commit; raises if that lasts.
    assigned
        Told of partitions that came.

    """

    def __init__(
        self,
        save: Callable[[], None],
        commit: Commit,
        refused: Callable[[Exception], None],
        assigned: Callable[[Collection[Any]], None],
    ) -> None:
        self._save, self._commit, self._refused = save, commit, refused
        self.assigned = assigned
        self._is_polling = False
        self._failure: Exception | None = None
        self._noted: dict[str, int] | None = None

    @contextlib.contextmanager
    def polling(self) -> Iterator[None]:
        """Let partitions be given up meanwhile; what failed then is raised at the end."""
        self._is_polling = True
        try:
            yield
        finally:
            self._is_polling = False
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def note(self, offsets: Mapping[str, int]) -> bool:
        """Take offsets to commit; False when nothing is being given up."""
        # Another thread may end the giving up at any moment.
        noted = self._noted
        if noted is not None:
            noted.update(offsets)
        return noted is not None

    async def give_up(self, partitions: Collection[Any]) -> None:
        """Write a checkpoint and commit it. When the consumer is being closed, that is done."""
        if not self._is_polling:
            return
        self._noted = {}
        try:
            self._save()
            offsets, self._noted = self._noted, None
            try:
                await self._commit(offsets, partitions)
            except Exception as error:
                self._refused(error)
        except Exception as error:
            # The clients would only log it.
            self._failure = self._failure or error
        finally:
            self._noted = None

    def give_up_here(self) -> None:
        """Write a checkpoint, whose end commits it, for a client that calls from within a poll."""
        if not self._is_polling:
            return
        try:
            self._save()
        except Exception as error:
            self._failure = self._failure or error


def handover_of(
    poller: Poller,
    save: Callable[[], None],
    refused: Callable[[Exception], None],
    assigned: Callable[[Collection[Any]], None],
) -> Handover | None:
    """Return what makes things safe inside the loop of a client, None for clients without one."""
    if isinstance(poller, RecordsPoller | AsyncPoller):
        return Handover(save, poller.committing, refused, assigned)
    return None


def listener_of(consumer: Any, handover: Handover) -> Any:
    """Return a listener of the client's own kind; None if the client is unknown."""
    # Whoever has a consumer has its package, and each demands listeners of its own class.
    packages = {kind.__module__.partition(".")[0] for kind in type(consumer).__mro__}
    if "aiokafka" in packages:
        from aiokafka.abc import ConsumerRebalanceListener

        return _awaited(ConsumerRebalanceListener, handover)
    if "kafka" in packages:
        import kafka

        # Before kafka-python 3 there was no loop: listeners are called from within `poll`.
        base = getattr(kafka, "AsyncConsumerRebalanceListener", None)
        return (
            _called(kafka.ConsumerRebalanceListener, handover)
            if base is None
            else _awaited(base, handover)
        )
    return None


def _awaited(base: Any, handover: Handover) -> Any:
    class Listener(base):  # type: ignore[misc]
        """Tells of partitions that come and go."""

        async def on_partitions_revoked(self, revoked: Any) -> None:
            """Make safe what was learnt of them; others read on from there."""
            if revoked:
                await handover.give_up(revoked)

        async def on_partitions_assigned(self, assigned: Any) -> None:
            """Note them: reading begins at what was committed, and knows what comes again."""
            handover.assigned(assigned)

        async def on_partitions_lost(self, lost: Any) -> None:
            """Do nothing: they are another's already, and nothing can be committed."""

    return Listener()


def _called(base: Any, handover: Handover) -> Any:
    class Listener(base):  # type: ignore[misc]
        """Tells of partitions that come and go."""

        def on_partitions_revoked(self, revoked: Any) -> None:
            """Make safe what was learnt of them; others read on from there."""
            if revoked:
                handover.give_up_here()

        def on_partitions_assigned(self, assigned: Any) -> None:
            """Note them: reading begins at what was committed, and knows what comes again."""
            handover.assigned(assigned)

    return Listener()
