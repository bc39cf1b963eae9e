"""Checkpoints: all of a run in one file, so that it goes on there whatever ends it.

The file is a model file (`streamsvm.load` reads the model from it) that also holds the monitor, the
scores, the counts of bad events and the position of the next unread row. It is written beside the
old one, brought to the disk, and put in its place in one step: whenever the process is killed,
there is one whole checkpoint. What was learnt after it was not kept, and is learnt again: each row
counts once in the model that results, which is the same, to the last bit, as if nothing had
happened.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from streamsvm.errors import (
    CheckpointError,
    DamagedModelFileError,
    ParameterError,
    StreamSVMError,
)
from streamsvm.learners.bases.learner import Learner
from streamsvm.model_files import codec
from streamsvm.model_files import container as model_file
from streamsvm.model_files.json_values import as_json, checked
from streamsvm.monitor import monitor_file

# What may differ between the processes that carry a run on: how, not what is learnt.
_FREE = ("n_jobs",)
_LATE = "late."


class Place(NamedTuple):
    """How far a run is in its source."""

    epoch: int = 1
    first: int = 0  # rows learnt in this epoch
    offset: int = 0  # rows learnt of the batch that `snapshot` precedes
    snapshot: dict[str, Any] | None = None


class Checkpoint:
    """Keeps the state of a run in a file.

    Parameters
    ----------
    path
        The file. If it is there when the run begins, the run goes on from it. A second file,
        ``path`` with ``.lock`` behind, tells other processes that it is in use.
    every
        Rows between two checkpoints, at least 1; 10,000 by default. They are written between
        chunks of rows, of at most 1,000.
    seconds
        Or: seconds between two checkpoints, above 0, instead of `every`.

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
    >>> for limit in (80, None):  # ends early; then goes on
    ...     run = Run(MemorySource(events), LASVMClassifier(), limit=limit,
    ...               checkpoint=Checkpoint(path))
    ...     print(run.execute().rows)
    80
    200

    """

    def __init__(self, path: str | Path, every: int = 10_000, seconds: float | None = None) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ParameterError(f"every={every!r}: use a whole number of at least 1")
        if seconds is not None and not seconds > 0:
            raise ParameterError(f"seconds={seconds!r}: use a number above 0, or None")
        self.path = Path(path)
        self.every, self.seconds = every, seconds
        self._lock: IO[bytes] | None = None
        # A rebalance may be served by a client's thread, while Ctrl-C ends the run in this one.
        self._writing = threading.Lock()
        self._served: Any = None  # a source that asks for a checkpoint by itself
        self._rows = 0
        self._moment = time.monotonic()

    def begin(self, run: Any) -> Place:
        """Bring a new `Run` to the state in the file, if there is one; return its place.

        Raises
        ------
        CheckpointError
            The file is of another run, or in use.
        ParameterError
            The run has a part that no file can hold.
        ModelFileError
            The file is damaged, foreign, or of a later release.

        """
        if run.learner is None:
            raise ParameterError(
                f"{type(run.model).__name__}: checkpoints hold learners of streamsvm, and "
                "pipelines of StandardScaler and one"
            )
        if run.monitor is not None:
            monitor_file.check(run.monitor)
        self._take_lock()
        place = Place()
        try:
            if self.path.exists():
                place = self._resume(run)
            else:
                # What cannot be written is said before hours of work.
                self.write(run)
        except BaseException:
            self.close()
            raise
        self._rows, self._moment = run.taken, time.monotonic()
        if hasattr(run.source, "before_revoke"):
            self._served = run.source
            run.source.before_revoke = lambda: self._serve(run)
        return place

    def after(self, run: Any) -> None:
        """Write if it is time; a chunk of rows was just learnt."""
        if run.taken == self._rows:
            return
        if self.seconds is not None:
            is_due = time.monotonic() - self._moment >= self.seconds
        else:
            is_due = run.taken - self._rows >= self.every
        if is_due:
            self.write(run)

    def write(self, run: Any) -> None:
        """Write the state of the run.

        Raises
        ------
        UnwritableModelFileError
            The disk refuses; the last checkpoint is still there.

        """
        with self._writing:
            self._write(run)

    def _serve(self, run: Any) -> None:
        """Write because the source asks for it, unless the run has ended by now."""
        # Not to wait here: whoever is writing now may wait for the thread that asks.
        if not self._writing.acquire(blocking=False):
            return
        try:
            if self._served is not None:
                self._write(run)
        finally:
            self._writing.release()

    def _write(self, run: Any) -> None:
        about: dict[str, Any] = {"run": _state_of(run), "settings": _settings_of(run)}
        arrays: dict[str, Any] = {}
        if run.monitor is not None:
            about["monitor"], arrays = monitor_file.to_file(run.monitor)
        if run.late is not None:
            about["late"], held = run.late.state()
            arrays = arrays | {_LATE + name: array for name, array in held.items()}
        content = model_file.encoded(run.model, about, arrays)
        model_file.write(self.path, content, "the checkpoint")
        if run.place.snapshot is not None and hasattr(run.source, "settled"):
            run.source.settled(run.place.snapshot)
        self._rows, self._moment = run.taken, time.monotonic()

    def close(self) -> None:
        """Let other processes have the file; nothing is written from now on."""
        with self._writing:
            if self._served is not None:
                self._served.before_revoke = lambda: None
                self._served = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _take_lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows: two processes on one file are not noticed
            return
        path = self.path.with_name(self.path.name + ".lock")
        try:
            lock = path.open("ab")
        except OSError as error:
            raise CheckpointError(f"cannot use {self.path}: {error.strerror}: {path}") from error
        try:
            # The system lets it go when the process ends, however it ends.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise CheckpointError(
                f"{self.path} is in use by another process: end that one, or use another file"
            ) from error
        self._lock = lock

    def _resume(self, run: Any) -> Place:
        model, about, arrays = model_file.read(self.path)
        if "run" not in about or "settings" not in about:
            raise CheckpointError(
                f"{self.path} is a model, not a checkpoint: use another file, or load the model"
            )
        with _as_damage(self.path):
            self._check(run, model, about)
            for own, kept in zip(
                model_file.steps_of(run.model), model_file.steps_of(model), strict=True
            ):
                _adopt(own, kept)
            if run.monitor is not None:
                monitor_file.fill(run.monitor, about["monitor"], arrays)
            if run.late is not None:
                held = {n.removeprefix(_LATE): a for n, a in arrays.items() if n.startswith(_LATE)}
                run.late.resume(about["late"], held)
            place = Place(**about["run"]["place"])
        # Not within: what a source says of a position is about the source.
        if place.snapshot is not None:
            run.source.resume(place.snapshot)
        with _as_damage(self.path):
            _fill(run, about["run"])
        return place

    def _check(self, run: Any, model: Any, about: dict[str, Any]) -> None:
        """Refuse the state of another run."""
        own = _settings_of(run)
        kept = _renamed(checked(about["settings"], dict, "the settings"), own)
        differing = [
            f"{name} {kept.get(name)} there, {own.get(name)} here"
            for name in kept | own
            if kept.get(name) != own.get(name)
        ]
        if (run.monitor is None) != ("monitor" not in about):
            differing.append("a monitor in one of them only")
        steps = [type(step) for step in model_file.steps_of(model)]
        if not differing and steps == [type(step) for step in model_file.steps_of(run.model)]:
            return
        raise CheckpointError(
            f"{self.path} is of another run ({'; '.join(differing) or 'another model'}): run it "
            "with the same parameters, or use another file"
        )


@contextlib.contextmanager
def _as_damage(path: Path) -> Iterator[None]:
    """Say that the file is damaged where what it holds is of another type than it should be."""
    try:
        yield
    except StreamSVMError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedModelFileError(f"{path} does not hold together: {error}") from error


def _renamed(kept: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    """Return settings by their names of today; parameters that are newer are as they are here."""
    classes = codec.registered()
    for name in [name for name in kept if name in classes]:
        how = classes[name]
        kept = {how.renamed.get(key, key): value for key, value in kept.items()}
        newer = inspect.signature(how.cls).parameters.keys() & own.keys()
        kept = {key: own[key] for key in newer} | kept
    return kept


def _settings_of(run: Any) -> dict[str, str]:
    """Return what must be the same when a run goes on, as texts by name."""
    settings = {"positive": repr(run.positive)}
    if run.late is not None:
        settings |= run.late.settings()
    for step in model_file.steps_of(run.model):
        settings[type(step).__name__] = "used"
        how = codec.registered()[type(step).__name__]
        for name in inspect.signature(how.cls).parameters:
            if name not in _FREE and name not in how.renamed:
                settings[name] = repr(getattr(step, name))
    return settings


def _adopt(own: Any, kept: Any) -> None:
    """Give an object the content of another one, and let it keep who watches it."""
    watched = getattr(own, "observer", None)
    own.__dict__.update(kept.__dict__)
    if isinstance(own, Learner):
        own.observer = watched


def _state_of(run: Any) -> dict[str, Any]:
    report, bad = run.report, run.bad
    return {
        "place": run.place._asdict(),
        "rows": report.rows,
        "taken": run.taken,
        "learnt": report.learnt,
        "seconds": report.seconds,
        "compile_seconds": report.compile_seconds,
        "history": report.history.state(),
        "pairs": [[_plain(y), _plain(p), n] for y, p, n in monitor_file.pairs_of(run.confusion)],
        "seen": [[_plain(y), n] for y, n in run.seen.items()],
        "bad": bad.settle(),
    }


def _plain(label: Any) -> Any:
    return as_json(label, "the label")


def _fill(run: Any, state: dict[str, Any]) -> None:
    report, bad = run.report, run.bad
    report.rows, report.learnt, report.seconds = state["rows"], state["learnt"], state["seconds"]
    report.compile_seconds = state.get("compile_seconds", 0.0)
    # Releases before late labels had no such count: all that came were rows.
    run.taken = bad.n_events = state.get("taken", state["rows"])
    report.history.resume(state["history"])
    monitor_file.fill_matrix(run.confusion, state["pairs"])
    run.seen.update({y: n for y, n in state["seen"]})
    bad.resume(state["bad"])
