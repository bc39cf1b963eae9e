"""Who has the shards: this process, or actors of Ray."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from streamsvm._parameter_checks import LARGEST_SIZE, check_positive, check_size, check_whole
from streamsvm.errors import ParameterError, WorkerError
from streamsvm.run.shards.exchange import Piece, Reading
from streamsvm.run.shards.shard import Shard
from streamsvm.support.writable import writable

_RESTARTS = 5
"""How often Ray starts an actor again in a training, unless `max_restarts` says otherwise."""

_RESOURCES = "num_cpus", "num_gpus", "memory", "resources"


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
    """The shards of one actor."""

    def __init__(self) -> None:
        self._shards: dict[int, Shard] = {}

    def forget(self) -> None:
        """Let the shards of the last training go."""
        self._shards = {}

    def ask(self, i: int, task: str, plan: list[Any], *given: Any) -> Answer:
        """Call a method of a shard; `plan` is a reference to what all shards are."""
        start = time.process_time()
        if i not in self._shards:  # not yet, or not any more: the actor was started again
            import ray

            reading, pieces = ray.get(plan[0])
            self._shards[i] = Shard(reading, pieces[i])
        content = getattr(self._shards[i], task)(*_own(given))
        return Answer(i, content, time.process_time() - start)

    def process(self) -> int:
        """Return the id of the process."""
        return os.getpid()


def _shown(resources: dict[str, float]) -> dict[str, float]:
    """Return the resources of a cluster without the names of its machines."""
    return {name: amount for name, amount in sorted(resources.items()) if "node:" not in name}


def _own(content: Any) -> Any:
    """Return what came through Ray's store, where arrays are read-only, with copies of them."""
    return writable({"": content})[""]


class RayWorkers:
    """Actors of Ray, on this machine or a cluster: shard i is with actor i modulo `n`.

    An actor that dies is started again by Ray, wherever there is room, reads its files again, and
    is asked again, up to five times. The files must be at the same path on all machines. A kernel
    of your own must be in a module that the actors can import, which registers it: not in a
    notebook, or the script itself.

    Actors are started for each training, which takes seconds; those of ``with RayWorkers(16) as
    workers:`` for the first one, and ended at the end of the block.

    Parameters
    ----------
    n
        The number of actors, at least 1; there are no more than shards.
    patience
        Positive: a training ends if for so many seconds no further actor starts.
    options
        Options of the actors: ``num_cpus=2``, ``resources=...``, ``max_restarts=20``. See
        ``ray.remote``.

    Raises
    ------
    ParameterError
        Ray is not installed, or has no such option.
    WorkerError
        In a training: an actor cannot be placed, or dies again and again.

    """

    def __init__(self, n: int, patience: float = 60.0, **options: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise ParameterError(
                "RayWorkers needs Ray: pip install 'streamsvm[ray]' (or 'ray>=2.40')"
            ) from error
        self._ray, self._given = ray, check_whole("n", n, 1, LARGEST_SIZE)
        self.n, self._patience = self._given, check_positive("patience", patience)
        self._options = {"max_restarts": _RESTARTS, "max_task_retries": -1, **options}
        try:
            self._kind = ray.remote(**self._options)(_Actor)
        except (ValueError, TypeError) as error:
            raise ParameterError(f"Ray refuses the options of the actors: {error}") from error
        self._actors: list[Any] = []
        self._pieces: Sequence[list[Piece]] = ()
        self._plan: Any = None
        # What was asked and not yet answered, in order: (number of shard or actor, reference).
        self._coming: deque[tuple[int, Any]] = deque()
        self._are_kept = False

    def __enter__(self) -> RayWorkers:
        """Keep actors from one training to the next."""
        self._are_kept = True
        return self

    def __exit__(self, *raised: object) -> None:
        """End the actors."""
        self._are_kept = False
        self.close()

    def open(self, reading: Reading, pieces: Sequence[list[Piece]]) -> None:
        """Start the actors that are not there."""
        if not self._ray.is_initialized():
            self._ray.init()
        self.n, self._pieces = min(self._given, len(pieces)), pieces
        self._plan = self._ray.put((reading, pieces))
        self._actors += [self._kind.remote() for _ in range(self.n - len(self._actors))]
        coming = [actor.forget.remote() for actor in self._actors]
        self._coming = deque(enumerate(coming))
        while coming:
            started, coming = self._ray.wait(coming, timeout=self._patience)
            if not started:
                wanted = {name: v for name, v in self._options.items() if name in _RESOURCES}
                raise WorkerError(
                    f"for {self._patience:g} s no further actor has started; missing: "
                    f"{len(coming)} of {len(self._actors)}; each wants "
                    f"{wanted or 'a worker process'}; the cluster has "
                    f"{_shown(self._ray.cluster_resources())}, and free are "
                    f"{_shown(self._ray.available_resources())}"
                )
        self._coming.clear()

    def ask(self, task: str, which: Sequence[int], *given: Any) -> Iterator[Answer]:
        """Call a method of some shards, and yield what they return."""
        # Once into the store of objects of each machine, not with each call.
        given = ([self._plan], *(self._ray.put(thing) for thing in given))
        self._coming = coming = deque(
            (i, self._actors[i % self.n].ask.remote(i, task, *given)) for i in which
        )
        while coming:
            answer = self._answer(*coming[0])
            coming.popleft()
            yield answer

    def _answer(self, i: int, coming: Any) -> Answer:
        """Return what a shard has answered, or raise what it has raised."""
        try:
            answer: Answer = _own(self._ray.get(coming))
        except self._ray.exceptions.RayTaskError as error:
            # The error itself: that of Ray begins with the traceback in the actor.
            raise error.cause from None
        except self._ray.exceptions.RayActorError as error:
            own = range(i % self.n, len(self._pieces), self.n)
            files = list(
                dict.fromkeys(piece.file for shard in own for piece in self._pieces[shard])
            )
            more = f" and {len(files) - 3} more" if len(files) > 3 else ""
            raise WorkerError(
                f"actor {i % self.n} of {self.n} has died again and again, and is not started any "
                f"more (max_restarts={self._options['max_restarts']}): is there memory enough for "
                f"its files ({', '.join(files[:3])}{more})? Ray says: {error}"
            ) from None
        return answer

    def processes(self) -> list[int]:
        """Return the ids of the actors' processes.

        Returns
        -------
        One for each actor, in their order.

        """
        found: list[int] = self._ray.get([actor.process.remote() for actor in self._actors])
        return found

    def close(self) -> None:
        """End the actors, unless they are kept and have nothing to do."""
        if self._are_kept and self._actors and not self._coming:
            forgetting = [actor.forget.remote() for actor in self._actors]
            self._ray.wait(forgetting, num_returns=len(forgetting), timeout=self._patience)
            return
        # Else Ray would say of each that it would be tried again.
        for _, asked in self._coming:
            self._ray.cancel(asked)
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors, self._coming = [], deque()
