"""Examples that a model forgets: by ids, and by messages of a topic that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Protocol, cast

import numpy as np

from connectors.batch import Batch
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.kernel.unlearning import Unlearned
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.monitor.watched import Model
from streamsvm.run.adapters import adapter_of
from streamsvm.support.kept import Kept


class Unlearning(Protocol):
    """A learner that can take examples back."""

    def learn_many(self, X: Any, y: Any, /, *, ids: Any) -> Any:
        """Learn the rows of a batch by their ids."""

    def keeps(self, ids: np.ndarray) -> np.ndarray:
        """Return of which ids something is kept, bool (n,)."""

    def unlearn(self, ids: Iterable[int]) -> Unlearned:
        """Take examples back."""


def learner_of(model: Model) -> Unlearning:
    """Return the learner in a model that can take examples back.

    ParameterError: it cannot; the message names those that can.
    """
    model = model.model if isinstance(model, TrackingMonitor) else model
    if (reason := adapter_of(model).refuses_ids) is not None:
        raise ParameterError(reason)
    learner = steps_of(model)[-1]
    if not hasattr(learner, "unlearn"):
        able = (known.cls.__name__ for known in registered_learners() if can_forget(known.cls))
        name = type(learner).__name__
        name += " without a kernel" if can_forget(type(learner)) else ""
        raise ParameterError(f"{name} cannot forget examples; learners that can: {', '.join(able)}")
    return cast(Unlearning, learner)


def can_forget(cls: type) -> bool:
    """Tell whether learners of a class can take examples back."""
    return hasattr(cls, "unlearn")


def unlearn(model: Model, ids: Iterable[int] | int) -> Unlearned:
    """Take examples back from the learner in a model, and from the sample of its monitor.

    Returns what the learner returns: ids `removed` and `not_kept`, and the `gap` now.
    """
    several = ids if isinstance(ids, Iterable) else [ids]
    return learner_of(model).unlearn(list(dict.fromkeys(several)))


class Requests(Kept):
    """What the messages of a topic ask to forget; events are learnt by the ids of their keys.

    Each request is done by itself, in the order of the stream, so that the model does not depend on
    how messages are divided into batches. `forget_waiting` drops the events with some keys that
    wait for labels, and returns how many there were; None: none wait.

    ParameterError: the model cannot forget, or learns nothing by ids.
    """

    kept = ("counts",)

    def __init__(
        self, model: Model, forget_waiting: Callable[[list[Any]], int] | None = None
    ) -> None:
        self._model, self._learner = model, learner_of(model)
        self._forget_waiting = forget_waiting or (lambda keys: 0)
        # Whether the learner takes ids with its parameters: it refuses those of no rows, too.
        self._learner.learn_many(np.zeros((0, 0)), [], ids=np.zeros(0, np.int64))
        self.counts = dict.fromkeys(("removed", "not_kept", "waiting", "replaced"), 0)
        """Examples taken back; requests of whose example nothing was kept; events that waited for
        labels; and examples in whose place others with the same key came."""

    def take(self, batch: Batch) -> None:
        """Forget the examples that a batch of requests names."""
        assert batch.ids is not None and batch.keys is not None
        for key, number in zip(batch.keys, batch.ids.tolist(), strict=True):
            n_waiting = self._forget_waiting([key])
            n = len(unlearn(self._model, [number]).removed)
            self.counts["waiting"] += n_waiting
            self.counts["removed"] += n
            self.counts["not_kept"] += not n_waiting and not n

    def parts(self, ids: np.ndarray) -> Iterator[slice]:
        """Yield the parts of a batch to learn; ids are int64 (n,).

        Before a row whose id is that of an example in the model, this example is taken back.
        """
        again = self._learner.keeps(ids)
        again[np.setdiff1d(np.arange(len(ids)), np.unique(ids, return_index=True)[1])] = True
        starts = np.union1d(np.flatnonzero(again), [0])
        for start, stop in pairwise([*starts.tolist(), len(ids)]):
            first = ids[start : start + 1]
            if again[start] and self._learner.keeps(first)[0]:
                self.counts["replaced"] += len(unlearn(self._model, first.tolist()).removed)
            yield slice(start, stop)
