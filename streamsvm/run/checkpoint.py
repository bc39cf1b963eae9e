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
import os
import threading
import time
from collections.abc import Collection, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from river import compose

from connectors.errors import SourceError
from connectors.source import Source
from streamsvm._parameter_checks import check_whole
from streamsvm.errors import (
    CheckpointError,
    DamagedModelFileError,
    ModelFileError,
    ParameterError,
    StreamSVMError,
)
from streamsvm.learners.bases.learner import Learner
from streamsvm.model_files import codec, replacing
from streamsvm.model_files import container as model_file
from streamsvm.model_files.json_values import as_json, checked
from streamsvm.monitor import monitor_file
from streamsvm.monitor.rates import fill_matrix, pairs_of
from streamsvm.run.checkpoint_lock import CheckpointLock
from streamsvm.run.group_labels import GroupLabels, Peer

if TYPE_CHECKING:
    from streamsvm.run.runner import Run

_log = logging.getLogger(__name__)

# Parameters that a resumed run may change: they do not change the model.
_CHANGEABLE = ("n_jobs", "cache_mb")
LATE = "late."
_OF_REPORT = ("rows", "learnt", "seconds", "missing_texts", "compile_seconds", "wait_seconds")


class Place(NamedTuple):
    """The position of a run in its source."""

    epoch: int = 1
    first: int = 0  # rows learnt in this epoch
    offset: int = 0  # rows learnt of the batch that starts at `snapshot`
    snapshot: dict[str, Any] | None = None


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
        None: a source that is slow may stand for hours without one.
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
        if seconds is not None and not seconds > 0:
            raise ParameterError(f"seconds={seconds!r}: use a number above 0, or None")
        self.path = Path(path)
        self._next = next_of(self.path)
        self.every, self.seconds, self.peers = every, seconds, peers
        self._lock = CheckpointLock(self.path)
        # A Kafka client may ask for a checkpoint in its thread while this one ends the run.
        self._writing = threading.Lock()
        self._served: Source | None = None  # may ask for a checkpoint (Kafka)
        self._rows = 0
        self._moment = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since the last checkpoint was written, or the run went on from one."""
        return time.monotonic() - self._moment

    def begin(self, run: Run) -> Place:
        """Restore the state in the file into a new run, or write a first one; return its place.

        CheckpointError: the file is of another run, or another process uses it. ParameterError: the
        run has a part that cannot be kept in a file. ModelFileError: the file is damaged, foreign,
        or of a later release.
        """
        if run.score is None and not isinstance(model_file.steps_of(run.model)[-1], Learner):
            name = type(run.model).__name__
            raise ParameterError(f"{name}: checkpoints hold learners of streamsvm, and pipelines")
        model_file.check(run.model)
        if run.monitor is not None:
            monitor_file.check(run.monitor)
        place = Place()
        try:
            self._lock.take()
            replacing.sweep(self.path)
            replacing.sweep(self._next)
            if run.output is not None:
                # Only now: it ends the transactions of the process that used the file before.
                run.output.begin()
            self._settle_next(run)
            if self.path.exists():
                place = self._resume(run)
            else:
                # A run that cannot be written fails now, not after hours of work.
                self.write(run)
        except BaseException:
            self.close()
            raise
        self._rows, self._moment = run.taken, time.monotonic()
        if self.peers is not None:
            run.source.learnt_elsewhere = partial(self._learnt_elsewhere, run)
            if isinstance(run.late, GroupLabels):
                run.source.late_by_partition, run.source.on_gone = True, run.late.leave
        self._served = run.source
        run.source.before_revoke = lambda: self._serve(run)
        return place

    def after(self, run: Run) -> None:
        """Write a checkpoint if one is due: see `write`.

        Called after each chunk of rows, and of a topic also while no message comes.
        """
        if run.taken == self._rows:
            return
        waited = time.monotonic() - self._moment
        is_late = self.seconds is not None and waited >= self.seconds
        if is_late or run.taken - self._rows >= self.every:
            self.write(run)

    def write(self, run: Run) -> None:
        """Write a checkpoint of a run now.

        UnwritableModelFileError: the file cannot be written; the last checkpoint is still there.
        """
        with self._writing:
            self._write(run)

    def _serve(self, run: Run) -> None:
        """Write a checkpoint for the source that asks for one, unless the run has ended."""
        # Waiting could deadlock: the writing thread may be waiting for the thread that asks.
        if not self._writing.acquire(blocking=False):
            return
        try:
            if self._served is not None:
                self._write(run)
        finally:
            self._writing.release()

    def _learnt_elsewhere(self, run: Run, places: Collection[str]) -> dict[str, int]:
        """Return how far other members have read each partition, as `places` are assigned here.

        What they hold of these for labels that come late is taken over.
        """
        assert self.peers is not None
        peers = peers_of(self.peers, self.path, run.source)
        if isinstance(run.late, GroupLabels):
            run.late.take_over(places, run.source.snapshot()["offsets"], peers)
        offsets: dict[str, int] = {}
        for peer in peers:
            for place, offset in peer.offsets.items():
                offsets[place] = max(offset, offsets.get(place, 0))
        return offsets

    def _write(self, run: Run) -> None:
        about: dict[str, Any] = {"run": _state_of(run), "settings": settings_of(run)}
        arrays: dict[str, Any] = {}
        if run.monitor is not None:
            about["monitor"], arrays = monitor_file.to_file(run.monitor)
        if run.late is not None:
            about["late"], held = run.late.state()
            arrays = arrays | {LATE + name: array for name, array in held.items()}
        # Somebody may have deleted the lock: then it is taken anew, before anything is written.
        self._lock.take()
        start = time.perf_counter()
        content = model_file.encoded(run.model, about, arrays)
        has_committed = self._replace(content, run)
        self._lock.take()
        seconds = time.perf_counter() - start
        _log.info(
            "%s: checkpoint written after %d examples (%d bytes, %.3f s)",
            self.path, run.taken, len(content), seconds,
        )  # fmt: skip
        if run.place.snapshot is not None and not has_committed:
            run.source.settled(run.place.snapshot)
        self._rows, self._moment = run.taken, time.monotonic()

    def _replace(self, content: bytes, run: Run) -> bool:
        """Replace the file, and commit the predictions since the last one, both or neither.

        The new file is there, under another name, before they are committed, and renamed after: a
        process that is killed in between leaves it, and the broker knows whether it counts.
        Returns whether offsets are committed so, now or earlier.
        """
        output, snapshot = run.output, run.place.snapshot
        if output is not None:
            output.flush()
        if output is None or snapshot is None or not output.is_due(snapshot):
            replacing.write(self.path, content, "the checkpoint")
            return output is not None and output.exactly_once
        replacing.write(self._next, content, "the checkpoint")
        output.commit(snapshot, sha256(content).hexdigest())
        replacing.rename(self._next, self.path)
        return True

    def _settle_next(self, run: Run) -> None:
        """Rename or remove the file that a process left which was killed in `_replace`."""
        output = run.output
        if output is None or not output.exactly_once:
            check_no_next(self.path)
            return
        if not self._next.exists():
            return
        mark = sha256(self._next.read_bytes()).hexdigest()
        with as_damage(self._next):
            about = model_file.read(self._next, _functions_of(run))[1]
            snapshot = about["run"]["place"]["snapshot"]
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

    def _resume(self, run: Run) -> Place:
        model, about, arrays = model_file.read(self.path, _functions_of(run))
        if "run" not in about or "settings" not in about:
            raise CheckpointError(
                f"{self.path} is a model, not a checkpoint: use another file, or load the model"
            )
        with as_damage(self.path):
            check_run(self.path, run, model, about)
            place = Place(**about["run"]["place"])
        # Outside of the `with`: an error here is about the source, not about the file. Before the
        # model changes: a source that is not what it was is refused.
        if place.snapshot is not None:
            self._resume_source(run, place.snapshot)
        with as_damage(self.path):
            steps = model_file.steps_of(run.model), model_file.steps_of(model)
            for own, kept in zip(*steps, strict=True):
                adopt(own, kept)
            if run.monitor is not None:
                monitor_file.fill(run.monitor, about["monitor"], arrays)
            if run.late is not None:
                run.late.resume(about["late"], _late_of(arrays))
            _fill(run, about["run"])
        run.report.resumed_after = run.taken
        run.report.resumed = f"{self.path}: after {run.taken:,} examples"
        _log.info("%s: the run continues after %d examples", self.path, run.taken)
        return place

    def _resume_source(self, run: Run, snapshot: dict[str, Any]) -> None:
        try:
            run.source.resume(snapshot)
        except ValueError as error:
            raise CheckpointError(
                f"{self.path} is of another source, or this one has changed: {error} (with another "
                "checkpoint)"
            ) from error


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


def _functions_of(run: Run) -> list[Any]:
    """Return the functions that a run's model may call, which files only name."""
    steps = model_file.steps_of(run.model)
    return [step.func for step in steps if isinstance(step, compose.FuncTransformer)]


@contextlib.contextmanager
def as_damage(path: Path) -> Iterator[None]:
    """Turn errors from content of a wrong type into a `DamagedModelFileError`."""
    try:
        yield
    except StreamSVMError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedModelFileError(f"{path} does not hold together: {error}") from error


def check_run(path: Path, run: Any, model: Any, about: dict[str, Any]) -> None:
    """Refuse the state of another run, whose model is `model`, in a file."""
    names = [type(step).__name__ for step in model_file.steps_of(model)]
    own_names = [type(step).__name__ for step in model_file.steps_of(run.model)]
    if names[-1] != own_names[-1]:
        raise CheckpointError(
            f"{path} is of a run of {' | '.join(names)}, and this one is of "
            f"{' | '.join(own_names)}: run it with the same learner, or use another file"
        )
    own = settings_of(run)
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
    if (run.monitor is None) != ("monitor" not in about):
        differing.append("a monitor in one of them only")
    if differing:
        raise CheckpointError(
            f"{path} is of another run ({'; '.join(differing)}): run it with the same parameters, "
            "or use another file"
        )


def settings_of(run: Any) -> dict[str, str]:
    """Return, as texts by name, the settings that a resumed run must have, too."""
    settings = {"positive": repr(run.positive)} | getattr(run.feeder, "settings", {})
    settings |= {} if run.late is None else run.late.settings()
    whose = ""  # what comes after a learner is of a second model, beside it
    for step in model_file.steps_of(run.model):
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
    """Return a parameter; for C "auto" the number, if none is tried."""
    value = getattr(step, name)
    if name == "C" and isinstance(value, str):
        return step.C_ if step.kernel is not None or step.gamma == "scale" else value
    return value


def adopt(own: Any, kept: Any) -> None:
    """Replace the attributes of `own` by those of `kept`, except its observer."""
    observer = getattr(own, "observer", None)
    own.__dict__.update(kept.__dict__)
    if hasattr(own, "observer"):
        own.observer = observer


def _state_of(run: Run) -> dict[str, Any]:
    report, bad = run.report, run.bad
    return {
        "place": run.place._asdict(),
        "taken": run.taken,
        **{name: getattr(report, name) for name in _OF_REPORT},
        "history": report.history.state(),
        "pairs": [[_plain(y), _plain(p), n] for y, p, n in pairs_of(run.confusion)],
        "block_starts": run.hits.state(_plain),
        "seen": [[_plain(y), n] for y, n in run.seen.items()],
        "bad": bad.settle(),
        "chunks": None if run.score is None else vars(run.score),
        "forgotten": None if run.requests is None else run.requests.counts,
    }


def _plain(label: Any) -> Any:
    return as_json(label, "the label")


def _fill(run: Run, state: dict[str, Any]) -> None:
    report, bad = run.report, run.bad
    for name in _OF_REPORT:
        setattr(report, name, state[name])
    run.taken = bad.n_events = state["taken"]
    report.history.resume(state["history"])
    fill_matrix(run.confusion, state["pairs"])
    if run.score is None:
        run.hits.resume(state["pairs"], state["block_starts"])
    run.seen.update({y: n for y, n in state["seen"]})
    if run.score is not None:
        vars(run.score).update(state["chunks"])
    if run.requests is not None:
        run.requests.counts.update(state["forgotten"])
    bad.resume(state["bad"])


def peers_of(pattern: str, own: Path, source: Source | None = None) -> list[Peer]:
    """Return what the checkpoints of all other members say of partitions.

    A checkpoint and the offsets in it are written in one step, the broker is told afterwards. If a
    member dies between the two, only its checkpoint tells what it has learnt.

    `pattern` is one of paths such as ``checkpoints/*.ckpt``; `own` is the checkpoint of this run,
    which is left out; `source` refuses those of other topics.
    """
    found = []
    for name in sorted(glob.glob(pattern)):
        if os.path.abspath(name) == os.path.abspath(own):
            continue
        try:
            _, about, arrays = model_file.read(Path(name))
            snapshot = about["run"]["place"]["snapshot"] or {}
            if source is not None:
                source.check_ids(snapshot)
            offsets = {place: int(offset) for place, offset in snapshot.get("offsets", {}).items()}
            found.append(Peer(name, offsets, about.get("late"), _late_of(arrays)))
        except (
            ModelFileError,
            OSError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ) as error:
            raise CheckpointError(
                f"{name}, one of peers={pattern!r}, does not tell what its member has learnt "
                f"({error}): name checkpoints of the group's members only, or remove it"
            ) from error
    return found


def _late_of(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of held events."""
    return {n.removeprefix(LATE): array for n, array in arrays.items() if n.startswith(LATE)}
