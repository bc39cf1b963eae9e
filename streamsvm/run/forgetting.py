"""Examples that are asked to be forgotten: by a model, and by model files and checkpoints."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from connectors.batch import Batch
from connectors.kafka.record_ids import id_of_key
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.learners.compare import Compare
from streamsvm.model_files import container, replacing
from streamsvm.monitor import monitor_file
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.run.checkpoint import LATE, as_damage, check_no_next
from streamsvm.run.checkpoint_lock import CheckpointLock
from streamsvm.run.group_labels import GroupLabels
from streamsvm.run.late_labels import LateLabels


def learner_of(model: Any) -> Any:
    """Return the learner in a model that can take examples back.

    ParameterError: it cannot; the message names those that can.
    """
    model = model.model if isinstance(model, TrackingMonitor) else model
    if isinstance(model, Compare):
        raise ParameterError(
            "Compare: an example has a number of its own in each of the two models: call "
            "unlearn(...) of the learners in model.a and in model.b"
        )
    learner = container.steps_of(model)[-1]
    if not hasattr(learner, "unlearn"):
        able = (known.cls.__name__ for known in registered_learners() if can_forget(known.cls))
        name = type(learner).__name__
        name += " without a kernel" if can_forget(type(learner)) else ""
        raise ParameterError(f"{name} cannot forget examples; learners that can: {', '.join(able)}")
    return learner


def can_forget(cls: type) -> bool:
    """Tell whether learners of a class can take examples back."""
    return hasattr(cls, "unlearn")


def unlearn(model: Any, ids: Iterable[int]) -> Any:
    """Take examples back from the learner in a model, and from the sample of its monitor.

    Returns what the learner returns: ids `removed` and `not_kept`, and the `gap` now.
    """
    return learner_of(model).unlearn(list(dict.fromkeys(ids)))


class Requests:
    """What the messages of a topic ask to forget; events are learnt by the ids of their keys.

    Each request is done by itself, in the order of the stream, so that the model does not depend on
    how messages are divided into batches. `late` is the buffer of events that wait for labels.

    ParameterError: the model cannot forget, or learns nothing by ids.
    """

    def __init__(self, model: Any, late: LateLabels | GroupLabels | None = None) -> None:
        self._model, self._late, self._learner = model, late, learner_of(model)
        if late is not None and late.delay is not None:
            raise ParameterError("tombstones: not with a delay, where events wait without keys")
        # Whether the learner takes ids with its parameters: it refuses those of no rows, too.
        self._learner.learn_many(np.zeros((0, 0)), [], ids=np.zeros(0, np.int64))
        self.counts = dict.fromkeys(("removed", "not_kept", "waiting", "replaced"), 0)
        """Examples taken back; requests of whose example nothing was kept; events that waited for
        labels; and examples in whose place others with the same key came."""

    def take(self, batch: Batch) -> None:
        """Forget the examples that a batch of requests names."""
        assert batch.ids is not None and batch.keys is not None
        for key, number in zip(batch.keys, batch.ids.tolist(), strict=True):
            n_waiting = 0 if self._late is None else self._late.forget([key])
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


class InFile(NamedTuple):
    """What was forgotten in a file."""

    of_model: Any  # what the learner's `unlearn` returned
    n_waiting: int  # events that waited for their labels
    is_checkpoint: bool


def forget_in_file(path: Path, ids: Collection[int], output: Path | None = None) -> InFile:
    """Take examples back in a model file or checkpoint, and write it to `output`, or in its place.

    CheckpointError: another process uses the checkpoint. The file is unchanged on any failure.
    """
    model, about, arrays = container.read(path)
    is_checkpoint = "run" in about
    with contextlib.ExitStack() as stack:
        if is_checkpoint and output is None:
            lock = CheckpointLock(path)
            stack.callback(lock.release)
            lock.take()
            check_no_next(path)
            # Again: a run may have ended, or gone on, since it was read.
            model, about, arrays = container.read(path)
        learner_of(model)
        monitor, n_waiting = None, 0
        with as_damage(path):
            if "monitor" in about:
                # A feature that nothing has any more leaves its sample with the model's rows.
                monitor = monitor_file.with_sample(model, about["monitor"], arrays)
            if "late" in about:
                n_waiting = _forget_waiting(about, arrays, ids)
        found = unlearn(model, ids)
        if monitor is not None:
            monitor_file.keep_sample(monitor, about["monitor"], arrays)
        what = "the checkpoint" if is_checkpoint else "the model"
        replacing.write(output or path, container.encoded(model, about, arrays), what)
    return InFile(found, n_waiting, is_checkpoint)


def _forget_waiting(about: dict[str, Any], arrays: dict[str, Any], ids: Collection[int]) -> int:
    """Remove events from those in a checkpoint that wait for labels; return how many."""
    late: Any = LateLabels(most=int(about["settings"]["late most"]))
    if "partitions" in about["late"]:
        late = GroupLabels(late)
    names = [name for name in arrays if name.startswith(LATE)]
    late.resume(about["late"], {name.removeprefix(LATE): arrays.pop(name) for name in names})
    wanted = set(ids)
    n = late.forget([key for key in late.keys if id_of_key(key) in wanted])
    about["late"], held = late.state()
    arrays |= {LATE + name: array for name, array in held.items()}
    return n
