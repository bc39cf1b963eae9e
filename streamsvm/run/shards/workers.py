"""Who has the shards: this process, or actors of Ray."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from streamsvm._parameter_checks import check_size
from streamsvm.errors import ParameterError
from streamsvm.run.shards.exchange import Piece, Reading
from streamsvm.run.shards.shard import Shard
from streamsvm.support.writable import writable


class Answer(NamedTuple):
    """What a shard returned."""

    shard: int
    content: Any
    seconds: float  # of the processor


class Workers(Protocol):
    """What has the shards, and asks them."""

    n: int
    """How many of them work at the same time."""

    def open(self, reading: Reading, pieces: Sequence[list[Piece]]) -> None:
        """Take shards of these pieces, numbered from 0."""

    def ask(self, task: str, which: Sequence[int], *given: Any) -> Iterator[Answer]:
        """Call a method of some shards, and yield what they return, in the order of `which`."""

    def close(self) -> None:
        """Let the shards go."""


class LocalWorkers:
    """The shards are in this process, and are asked one after the other.

    For tests, and to find out what several workers would gain: the time of each is measured alone.

    Parameters
    ----------
    n
        For how many workers the report reckons; None: one for each shard.

    """

    def __init__(self, n: int | None = None) -> None:
        self._given = check_size("n", n)
        self.n = self._given or 1
        self._shards: list[Shard] = []

    def open(self, reading: Reading, pieces: Sequence[list[Piece]]) -> None:
        """Take shards of these pieces, numbered from 0."""
        self._shards = [Shard(reading, own) for own in pieces]
        self.n = self._given or len(self._shards)

    def ask(self, task: str, which: Sequence[int], *given: Any) -> Iterator[Answer]:
        """Call a method of some shards, and yield what they return."""
        for i in which:
            start = time.process_time()
            content = getattr(self._shards[i], task)(*given)
            yield Answer(i, content, time.process_time() - start)

    def close(self) -> None:
        """Let the shards go."""
        self._shards = []


class _Actor:
    """The shards of one actor; one that was restarted reads them again."""

    def __init__(self, reading: Reading, pieces: dict[int, list[Piece]]) -> None:
        self._shards = {i: Shard(reading, own) for i, own in pieces.items()}

    def ask(self, i: int, task: str, *given: Any) -> Answer:
        """Call a method of a shard."""
        start = time.process_time()
        content = getattr(self._shards[i], task)(*_own(given))
        return Answer(i, content, time.process_time() - start)

    def process(self) -> int:
        """Return the id of the process."""
        return os.getpid()


def _own(content: Any) -> Any:
    """Return what came through Ray's store, where arrays are read-only, with copies of them."""
    return writable({"": content})[""]


class RayWorkers:
    """Actors of Ray, on this machine or a cluster: shard i is with actor i modulo `n`.

    An actor that dies is started again by Ray, wherever there is room, reads its files again, and
    is asked again. The files must be at the same path on all machines.

    Parameters
    ----------
    n
        The number of actors, at least 1.
    options
        Options of the actors: ``num_cpus=2``, ``resources=...``. See ``ray.remote``.

    Raises
    ------
    ParameterError
        Ray is not installed.

    """

    def __init__(self, n: int, **options: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise ParameterError(
                "RayWorkers needs Ray: pip install 'streamsvm[ray]' (or 'ray>=2.40')"
            ) from error
        self._ray, self.n = ray, int(check_size("n", n) or 1)
        self._options = {"max_restarts": -1, "max_task_retries": -1, **options}
        self._actors: list[Any] = []

    def open(self, reading: Reading, pieces: Sequence[list[Piece]]) -> None:
        """Start the actors."""
        if not self._ray.is_initialized():
            self._ray.init()
        kind = self._ray.remote(**self._options)(_Actor)
        self.n = min(self.n, len(pieces))
        self._actors = [
            kind.remote(reading, {i: pieces[i] for i in range(a, len(pieces), self.n)})
            for a in range(self.n)
        ]

    def ask(self, task: str, which: Sequence[int], *given: Any) -> Iterator[Answer]:
        """Call a method of some shards, and yield what they return."""
        # Once into the store of objects of each machine, not with each call.
        shared = [self._ray.put(thing) for thing in given]
        coming = deque(self._actors[i % self.n].ask.remote(i, task, *shared) for i in which)
        while coming:
            yield _own(self._ray.get(coming.popleft()))

    def processes(self) -> list[int]:
        """Return the ids of the actors' processes.

        Returns
        -------
        One for each actor, in their order.

        """
        found: list[int] = self._ray.get([actor.process.remote() for actor in self._actors])
        return found

    def close(self) -> None:
        """End the actors."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []
