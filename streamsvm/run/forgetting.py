"""Examples that are forgotten in a model file, or in a checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from connectors.kafka.record_ids import id_of_key
from streamsvm.learners.bases.kernel.unlearning import Unlearned
from streamsvm.model_files import container, replacing
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.monitor.watched import Model
from streamsvm.run import checkpoint
from streamsvm.run.checkpoint import Values, arrays_of, named_for
from streamsvm.run.checkpoint_lock import CheckpointLock
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.late_labels.group import GroupLabels
from streamsvm.run.requests import learner_of, unlearn
from streamsvm.support.declaration import NamedArrays


class InFile(NamedTuple):
    """What was forgotten in a file."""

    of_model: Unlearned  # what the learner's `unlearn` returned
    n_waiting: int  # events that waited for their labels
    is_checkpoint: bool


def forget_in_file(path: Path, ids: Collection[int], output: Path | None = None) -> InFile:
    """Take examples back in a model file or checkpoint, and write it to `output`, or in its place.

    CheckpointError: another process uses the checkpoint. The file is unchanged on any failure.
    """
    model, about, arrays = container.read(path)
    is_checkpoint = checkpoint.is_checkpoint(about)
    with contextlib.ExitStack() as stack:
        if is_checkpoint:
            checkpoint.check_format(path, about)
        if is_checkpoint and output is None:
            lock = CheckpointLock(path)
            stack.callback(lock.release)
            lock.take()
            checkpoint.check_no_next(path)
            # Again: a run may have ended, or gone on, since it was read.
            model, about, arrays = checkpoint.read_checkpoint(path)
        learner_of(model)
        monitor, n_waiting, states = None, 0, about.get("states", {})
        with checkpoint.as_damage(path):
            if "monitor" in states:
                monitor = _with_sample(model, states["monitor"], arrays)
            if "late" in states:
                n_waiting = _forget_waiting(about["settings"], states, arrays, ids)
        found = unlearn(model, ids)
        if monitor is not None:
            states["monitor"]["sample"], sample = monitor.passed_by.state()
            arrays |= named_for("monitor", sample)
        what = "the checkpoint" if is_checkpoint else "the model"
        replacing.write(output or path, container.encoded(model, about, arrays), what)
    return InFile(found, n_waiting, is_checkpoint)


def _with_sample(model: Model, values: Values, arrays: dict[str, np.ndarray]) -> TrackingMonitor:
    """Return a monitor of a model with the sample in a checkpoint, whose arrays are removed.

    A feature that nothing has any more leaves the sample together with the model's rows.
    """
    monitor = TrackingMonitor(model, sample=values["parameters"]["sampled"])
    monitor.passed_by.restore(values["sample"], NamedArrays(arrays_of("monitor", arrays)))
    for name in named_for("monitor", monitor.passed_by.state()[1]):
        arrays.pop(name, None)
    return monitor


def _forget_waiting(
    settings: Values, states: Values, arrays: dict[str, np.ndarray], ids: Collection[int]
) -> int:
    """Remove events from those in a checkpoint that wait for labels; return how many."""
    in_file = LateLabels(most=int(settings["late most"]))
    late = GroupLabels(in_file) if "partitions" in states["late"] else in_file
    own = arrays_of("late", arrays)
    late.restore(states["late"], own)
    for name in named_for("late", own):
        del arrays[name]
    wanted = set(ids)
    n = late.forget([key for key in late.keys if id_of_key(key) in wanted])
    states["late"], held = late.state()
    arrays |= named_for("late", held)
    return n
