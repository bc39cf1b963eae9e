"""Who has the shards: this process, or actors of Ray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamsvm._parameter_checks import LARGEST_SIZE, check_positive, check_whole
from streamsvm.errors import ParameterError, WorkerError
from streamsvm.run.shards.reading import Piece, Reading
from streamsvm.run.shards.shard import Shard
from streamsvm.support.writable import writable

_RESTARTS = 5
"""How often Ray starts an actor again in a training, unless `max_restarts` says otherwise."""


class LocalWorkers:
    """The shards are in this process, and are asked one after the other.

    Workers elsewhere are a subclass.
    """

    def __init__(self) -> None:
        self._shards: list[Shard] = []

    def open(self, reading: Reading, pieces: Sequence[Piece]) -> None:
        """Take shards of these pieces, numbered from 0."""
        self._shards = [Shard(reading, piece) for piece in pieces]

    def ask(self, task: str, which: Sequence[int], *given: Any) -> Iterator[Any]:
        """Call a method of some shards, and yield what they return, in the order of `which`."""
        for i in which:
            yield getattr(self._shards[i], task)(*given)

    def close(self) -> None:
        """Let the shards go."""
        self._shards = []


def _own(content: Any) -> Any:
    """Return what came through Ray's store, where arrays are read-only, with copies of them."""
    return writable({"": content})[""]


class _Actor:
    """The shards of one actor."""

    def __init__(self) -> None:
        self._shards: dict[int, Shard] = {}

    def ask(self, i: int, task: str, plan: list[Any], *given: Any) -> Any:
        """Call a method of a shard; `plan` is a reference to what all shards are."""
        if i not in self._shards:  # not yet, or not any more: the actor was started again
            import ray

            reading, pieces = ray.get(plan[0])
            self._shards[i] = Shard(reading, pieces[i])
        return getattr(self._shards[i], task)(*_own(given))


class RayWorkers(LocalWorkers):
    """Actors of Ray, on this machine or a cluster: shard i is with actor i modulo `n`.

    They are started for each training, and ended with it. An actor that dies is started again by
    Ray, wherever there is room, reads its files again, and is asked again, up to five times. The
    files must be at the same path on all machines. A kernel of your own must be in a module that
    the actors can import, which registers it: not in a notebook, or the script itself.

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
        super().__init__()
        try:
            import ray
        except ImportError as error:
            raise ParameterError(
                "RayWorkers needs Ray: pip install 'streamsvm[ray]' (or 'ray>=2.40')"
            ) from error
        self._ray, self._n = ray, check_whole("n", n, 1, LARGEST_SIZE)
        self._patience = check_positive("patience", patience)
        self._options = {"max_restarts": _RESTARTS, "max_task_retries": -1, **options}
        try:
            self._kind = ray.remote(**self._options)(_Actor)
        except (ValueError, TypeError) as error:
            raise ParameterError(f"Ray refuses the options of the actors: {error}") from error
        self._actors: list[Any] = []
        self._pieces: Sequence[Piece] = ()
        self._plan: Any = None

    def open(self, reading: Reading, pieces: Sequence[Piece]) -> None:
        """Start the actors."""
        if not self._ray.is_initialized():
            self._ray.init()
        self._pieces, n = pieces, min(self._n, len(pieces))
        self._plan = self._ray.put((reading, pieces))
        self._actors = [self._kind.remote() for _ in range(n)]
        coming = [actor.__ray_ready__.remote() for actor in self._actors]
        while coming:
            started, coming = self._ray.wait(coming, timeout=self._patience)
            if not started:
                raise WorkerError(
                    f"for {self._patience:g} s no further actor has started; missing: "
                    f"{len(coming)} of {n}; each has the options {self._options}, and the cluster "
                    f"has {self._ray.cluster_resources()}"
                )

    def ask(self, task: str, which: Sequence[int], *given: Any) -> Iterator[Any]:
        """Call a method of some shards, and yield what they return."""
        # Once into the store of objects of each machine, not with each call.
        given = ([self._plan], *(self._ray.put(thing) for thing in given))
        n = len(self._actors)
        coming = [self._actors[i % n].ask.remote(i, task, *given) for i in which]
        for i, answer in zip(which, coming, strict=True):
            try:
                yield _own(self._ray.get(answer))
            except self._ray.exceptions.RayTaskError as error:
                # The error itself: that of Ray begins with the traceback in the actor.
                raise error.cause from None
            except self._ray.exceptions.RayActorError as error:
                names = [file.name for piece in self._pieces[i % n :: n] for file in piece.files]
                files = [*dict.fromkeys(names)]
                more = f" and {len(files) - 3} more" if len(files) > 3 else ""
                raise WorkerError(
                    f"actor {i % n} of {n} has died again and again, and is not started any more "
                    f"(max_restarts={self._options['max_restarts']}): is there memory enough for "
                    f"its files ({', '.join(files[:3])}{more})? Ray says: {error}"
                ) from None

    def close(self) -> None:
        """End the actors."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []
