"""Checkpoints: the whole state of a run in one file, from which a later process continues.

The file is a model file (`streamsvm.load` reads the model from it) that also holds the monitor, the
scores, the counts of bad events and the position of the next unread row. It is written to a
temporary file, synchronised to the disk, and renamed: whenever the process is killed, there is one
complete checkpoint. Rows that were learnt after that checkpoint are learnt again from it: each row
counts once in the final model, which is the same, to the last bit, as that of an uninterrupted run.
"""

from __future__ import annotations

import contextlib
import glob
import inspect
import logging
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from river import compose

from connectors.errors import SourceError
from connectors.output import Output
from connectors.source import Snapshot, Source
from streamsvm._parameter_checks import check_positive, check_whole
from streamsvm.errors import (
    CheckpointError,
    DamagedModelFileError,
    ModelFileError,
    StreamSVMError,
)
from streamsvm.model_files import codec, replacing
from streamsvm.model_files import container as model_file
from streamsvm.model_files.json_values import checked
from streamsvm.monitor.watched import Model
from streamsvm.run.checkpoint_lock import CheckpointLock
from streamsvm.support.kept import Kept

_log = logging.getLogger(__name__)

FORMAT = 3
"""The format of checkpoints that this release reads and writes."""

# Parameters that a resumed run may change: they do not change the model.
_CHANGEABLE = ("n_jobs", "cache_mb")

_WRONG_CONTENT = (LookupError, TypeError, ValueError, AttributeError)
"""What content of a wrong type raises where it is used."""

Values = dict[str, Any]
"""JSON values by name."""

Arrays = Mapping[str, np.ndarray]
"""Arrays by name."""


class Part(Protocol):
    """A part of a run whose state is kept in checkpoints."""

    def state(self) -> tuple[Values, dict[str, np.ndarray]]:
        """Return the state as JSON values, and arrays by name."""

    def restore(self, values: Values, arrays: Arrays) -> None:
        """Continue from what `state` returned; the part is as it was made."""


@dataclass
class Place(Kept):
    """The position of a run in its source: a part of the run."""

    kept = ("epoch", "first", "offset", "snapshot", "taken")

    epoch: int = 1
    first: int = 0  # rows learnt in this epoch
    offset: int = 0  # rows learnt of the batch that starts at `snapshot`
    snapshot: Snapshot | None = None
    taken: int = 0  # events, and labels that came apart from events; good or bad


class Contents(NamedTuple):
    """What a checkpoint keeps of a run, and whom it tells of that.

    `parts` are by name, the `place` among them; `settings` are texts by name, of which a resumed
    run must have the same. The model has settings of its own.
    """

    model: Model
    parts: dict[str, Part]
    place: Place
    settings: dict[str, str]
    source: Source
    output: Output | None = None


class Peer(NamedTuple):
    """What the checkpoint of another member of the group holds."""

    name: str
    offsets: dict[str, int]
    late: Values | None
    arrays: dict[str, np.ndarray]


class Checkpoint:
    """The file that holds the state of a run.

    Parameters
    ----------
    path
        The file. If it exists when the run begins, the run continues from it. A second file,
        ``path`` with ``.lock`` appended, and the checkpoint itself are locked while the run goes
        on, so that no other process uses them.
    every
        Rows after which a checkpoint is written, at least 1; 10,000 by default. They end a chunk of
        rows.
    seconds
        Seconds after which one is written if there are new rows, above 0, whichever comes first;
        None (or infinity): a source that is slow may stand for hours without one.
    peers
        The checkpoints of the other members of a consumer group, as a pattern of paths that all
        members can read (``"group/*.ckpt"``; this one may be among them). A partition then starts
        where the furthest of them is, even if a member died before it could commit. They must be of
        one group, and of one topic. None: a partition starts where the group has committed.

    Raises
    ------
    ParameterError
        `every` or `seconds` is out of range.

    Examples
    --------
    >>> import os, tempfile
    >>> from connectors import MemorySource
    >>> from streamsvm import LASVMClassifier
    >>> from streamsvm.run.checkpoint import Checkpoint
    >>> from streamsvm.run.runner import Run
    >>> events = [({"a": float(i % 7)}, i % 7 > 3) for i in range(200)]
    >>> path = os.path.join(tempfile.mkdtemp(), "run.ckpt")
    >>> for limit in (80, None):  # a run that ends early; another one that continues it
    ...     run = Run(MemorySource(events), LASVMClassifier(), limit=limit,
    ...               checkpoint=Checkpoint(path))
    ...     print(run.execute().rows)
    80
    200

    """

    def __init__(
        self,
        path: str | Path,
        every: int = 10_000,
        seconds: float | None = None,
        peers: str | None = None,
    ) -> None:
        every = check_whole("every", every, 1)
        if seconds is not None:
            seconds = None if seconds == math.inf else check_positive("seconds", seconds)
        self.path = Path(path)
        self._next = next_of(self.path)
        self.every, self.seconds, self.peers = every, seconds, peers
        self._lock = CheckpointLock(self.path)
        # A Kafka client may ask for a checkpoint in its thread while this one ends the run.
        self._writing = threading.Lock()
        self._served: Source | None = None  # may ask for a checkpoint (Kafka)
        self._contents: Contents
        self._taken = 0  # examples in the last checkpoint
        self._moment = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since the last checkpoint was written, or the run went on from one."""
        return time.monotonic() - self._moment

    def begin(self, contents: Contents) -> bool:
        """Restore the state in the file into a run that begins, or write a first one.

        Returns whether there was a file. CheckpointError: it is of another run, or another process
        uses it. ParameterError: a part of the run cannot be kept in a file. ModelFileError: the
        file is damaged, foreign, or of a later release.
        """
        self._contents = contents
        model_file.check(contents.model)
        try:
            self._lock.take()
            replacing.sweep(self.path)
            replacing.sweep(self._next)
            if contents.output is not None:
                # Only now: it ends the transactions of the process that used the file before.
                contents.output.begin()
            self._settle_next()
            is_resumed = self.path.exists()
            if is_resumed:
                self._resume()
            else:
                # A run that cannot be written fails now, not after hours of work.
                self.write()
        except BaseException:
            self.close()
            raise
        self._note_written()
        self._served, contents.source.before_revoke = contents.source, self._serve
        return is_resumed

    def _note_written(self) -> None:
        self._taken, self._moment = self._contents.place.taken, time.monotonic()

    def after(self) -> None:
        """Write a checkpoint if one is due: see `write`.

        Called after each chunk of rows, and of a topic also while no message comes.
        """
        n_new = self._contents.place.taken - self._taken
        is_late = self.seconds is not None and self.age >= self.seconds
        if n_new and (is_late or n_new >= self.every):
            self.write()

    def write(self) -> None:
        """Write a checkpoint of the run now.

        UnwritableModelFileError: the file cannot be written; the last checkpoint is still there.
        """
        with self._writing:
            self._write()

    def _serve(self) -> None:
        """Write a checkpoint for the source that asks for one, unless the run has ended."""
        # Waiting could deadlock: the writing thread may be waiting for the thread that asks.
        if not self._writing.acquire(blocking=False):
            return
        try:
            if self._served is not None:
                self._write()
        finally:
            self._writing.release()

    def _write(self) -> None:
        model, parts, place = self._contents[:3]
        states: Values = {}
        arrays: dict[str, np.ndarray] = {}
        for name, part in parts.items():
            states[name], own = part.state()
            arrays |= named_for(name, own)
        settings = self._contents.settings | settings_of(model)
        about = {"checkpoint": FORMAT, "settings": settings, "states": states}
        # Somebody may have deleted the lock: then it is taken anew, before anything is written.
        self._lock.take()
        start = time.perf_counter()
        content = model_file.encoded(model, about, arrays)
        has_committed = self._replace(content)
        self._lock.take()
        seconds = time.perf_counter() - start
        _log.info(
            "%s: checkpoint written after %d examples (%d bytes, %.3f s)",
            self.path, place.taken, len(content), seconds,
        )  # fmt: skip
        if place.snapshot is not None and not has_committed:
            self._contents.source.settled(place.snapshot)
        self._note_written()

    def _replace(self, content: bytes) -> bool:
        """Replace the file, and commit the predictions since the last one, both or neither.

        The new file is there, under another name, before they are committed, and renamed after: a
        process that is killed in between leaves it, and the broker knows whether it counts.
        Returns whether offsets are committed so, now or earlier.
        """
        output, snapshot = self._contents.output, self._contents.place.snapshot
        if output is not None:
            output.flush()
        if output is None or snapshot is None or not output.is_due(snapshot):
            replacing.write(self.path, content, "the checkpoint")
            return output is not None and output.exactly_once
        replacing.write(self._next, content, "the checkpoint")
        output.commit(snapshot, sha256(content).hexdigest())
        replacing.rename(self._next, self.path)
        return True

    def _settle_next(self) -> None:
        """Rename or remove the file that a process left which was killed in `_replace`."""
        output = self._contents.output
        if output is None or not output.exactly_once:
            check_no_next(self.path)
            return
        if not self._next.exists():
            return
        mark = sha256(self._next.read_bytes()).hexdigest()
        _, about, _ = self._read(self._next)
        with as_damage(self._next):
            snapshot = about["states"]["place"]["snapshot"]
        try:
            was_committed = output.was_committed(snapshot, mark)
        except SourceError as error:
            raise CheckpointError(
                f"{error}: rename {self._next} to {self.path.name} if the output has them, else "
                "remove it"
            ) from error
        if was_committed:
            replacing.rename(self._next, self.path)
        else:
            self._next.unlink()

    def close(self) -> None:
        """Release the lock on the file; no checkpoint is written after this.

        SourceError: the broker refuses the offsets of the last one.
        """
        with self._writing:
            served, self._served = self._served, None
            if served is not None:
                served.before_revoke = None
        self._lock.release()
        if served is not None:
            served.confirm()

    def _read(self, path: Path) -> tuple[Any, Values, dict[str, np.ndarray]]:
        """Return the model in a checkpoint, what is said of the run, and arrays."""
        steps = model_file.steps_of(self._contents.model)
        # Files only name the functions that a model may call.
        known = [step.func for step in steps if isinstance(step, compose.FuncTransformer)]
        return read_checkpoint(path, known)

    def _resume(self) -> None:
        own, parts, place = self._contents[:3]
        model, about, arrays = self._read(self.path)
        with as_damage(self.path):
            self._check_same_run(model, about)
            states = about["states"]
            place.restore(states["place"], {})
        # Outside of the `with`: an error here is about the source, not about the file. Before the
        # model changes: a source that is not what it was is refused.
        if place.snapshot is not None:
            self._resume_source(place.snapshot)
        with as_damage(self.path):
            steps = model_file.steps_of(own), model_file.steps_of(model)
            for step, kept in zip(*steps, strict=True):
                adopt(step, kept)
            for name, part in parts.items():
                part.restore(states[name], arrays_of(name, arrays))
        _log.info("%s: the run continues after %d examples", self.path, place.taken)

    def _resume_source(self, snapshot: Snapshot) -> None:
        try:
            self._contents.source.resume(snapshot)
        except ValueError as error:
            raise CheckpointError(
                f"{self.path} is of another source, or this one has changed: {error} (with another "
                "checkpoint)"
            ) from error

    def _check_same_run(self, model: Model, about: Values) -> None:
        """Refuse a file of another run, whose model is `model`."""
        names, own_names = (
            [type(step).__name__ for step in model_file.steps_of(one)]
            for one in (model, self._contents.model)
        )
        if names[-1] != own_names[-1]:
            raise CheckpointError(
                f"{self.path} is of a run of {' | '.join(names)}, and this one is of "
                f"{' | '.join(own_names)}: run it with the same learner, or use another file"
            )
        own = self._contents.settings | settings_of(self._contents.model)
        kept = checked(about["settings"], dict, "the settings")
        differing = [
            f"{name} {kept.get(name)} there, {own.get(name)} here"
            for name in kept | own
            # What one of them lacks are the parameters of a step that it lacks.
            if kept.get(name) != own.get(name)
            and (names == own_names or (name in kept and name in own))
        ]
        if names != own_names:
            differing.append(f"{' | '.join(names)} there, {' | '.join(own_names)} here")
        only_one = sorted(about["states"].keys() ^ self._contents.parts.keys())
        differing += [f"a part {name!r} in one of them only" for name in only_one]
        if differing:
            raise CheckpointError(
                f"{self.path} is of another run ({'; '.join(differing)}): run it with the same "
                "parameters, or use another file"
            )

    def read_peers(self) -> list[Peer]:
        """Return what the checkpoints of all other members of the group say of partitions.

        A checkpoint and the offsets in it are written in one step, the broker is told afterwards.
        If a member dies between the two, only its checkpoint tells what it has learnt. There are
        none without `peers`.
        """
        found = []
        for name in [] if self.peers is None else sorted(glob.glob(self.peers)):
            if os.path.abspath(name) == os.path.abspath(self.path):
                continue
            try:
                _, about, arrays = read_checkpoint(Path(name))
                states = about["states"]
                snapshot = states["place"]["snapshot"] or {}
                self._contents.source.check_ids(snapshot)
                offsets = self._contents.source.offsets_in(snapshot)
                found.append(Peer(name, offsets, states.get("late"), arrays_of("late", arrays)))
            except (CheckpointError, ModelFileError, OSError, *_WRONG_CONTENT) as error:
                raise CheckpointError(
                    f"{name}, one of peers={self.peers!r}, does not tell what its member has "
                    f"learnt ({error}): name checkpoints of the group's members only, or remove it"
                ) from error
        return found


def is_checkpoint(about: Values) -> bool:
    """Tell whether a file that `model_file.read` read is a checkpoint; its `about` are given."""
    return "settings" in about


def check_format(path: Path, about: Values) -> None:
    """Refuse a file that is no checkpoint, or one of another format, by a CheckpointError."""
    if not is_checkpoint(about):
        raise CheckpointError(
            f"{path} is a model, not a checkpoint: use another file, or load the model"
        )
    if (number := about.get("checkpoint", 1)) != FORMAT:
        raise CheckpointError(
            f"{path} is a checkpoint of format {number!r:.20}, and this release reads format "
            f"{FORMAT} only: start anew, with another file; streamsvm.load reads the model in it"
        )


def read_checkpoint(
    path: Path, functions: list[Any] | None = None
) -> tuple[Any, Values, dict[str, np.ndarray]]:
    """Return the model in a checkpoint, what is said of the run, and arrays; or CheckpointError.

    `functions` are those that the model may call, which files only name.
    """
    model, about, arrays = model_file.read(path, functions or [])
    check_format(path, about)
    return model, about, arrays


def named_for(part: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """Return the arrays of a part by the names that they have in a file."""
    return {f"{part}.{name}": array for name, array in arrays.items()}


def arrays_of(part: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """Return the arrays of a part, of those of a file."""
    start = f"{part}."
    return {n.removeprefix(start): array for n, array in arrays.items() if n.startswith(start)}


def next_of(path: Path) -> Path:
    """Return the file that is to take the place of a checkpoint, with predictions exactly once."""
    return path.with_name(f"{path.name}.next")


def check_no_next(path: Path) -> None:
    """Refuse a checkpoint of which only the broker knows whether the next one counts."""
    if next_of(path).exists():
        raise CheckpointError(
            f"{next_of(path)} was left by a run that produced its predictions exactly once: go on "
            "with the same output, or remove it"
        )


@contextlib.contextmanager
def as_damage(path: Path) -> Iterator[None]:
    """Turn errors from content of a wrong type into a `DamagedModelFileError`."""
    try:
        yield
    except StreamSVMError:
        raise
    except _WRONG_CONTENT as error:
        raise DamagedModelFileError(f"{path} does not hold together: {error}") from error


def settings_of(model: Model) -> dict[str, str]:
    """Return, as texts by name, the settings of a model that a resumed run must have, too."""
    settings: dict[str, str] = {}
    whose = ""  # what comes after a learner is of a second model, beside it
    for step in model_file.steps_of(model):
        file_name = codec.file_name(type(step))
        settings[whose + file_name] = "used"
        how = codec.registered()[file_name]
        if how.write is not None:
            settings[file_name] = how.settings(step)
            continue
        for name in inspect.signature(how.cls).parameters:
            if name not in _CHANGEABLE:
                settings[whose + name] = repr(_setting(step, name))
        whose = "candidate's " if hasattr(step, "predict_one") else whose
    return settings


def _setting(step: Any, name: str) -> Any:
    """Return a parameter; for C "auto" the number, unless some are tried on the stream."""
    value = getattr(step, name)
    if name == "C" and isinstance(value, str):
        is_tried = getattr(step, "kernel", None) is None and getattr(step, "gamma", None) != "scale"
        return value if is_tried else step.C_
    return value


def adopt(own: object, kept: object) -> None:
    """Replace the attributes of `own` by those of `kept`, except its observer."""
    vars(own).update({name: value for name, value in vars(kept).items() if name != "observer"})
