"""A run of sentences: each is predicted, scored and learnt; its state can be kept in a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from connectors import Reject
from streamsvm.errors import CheckpointError, FeatureError, LabelError
from streamsvm.model_files import replacing
from streamsvm.model_files.container import encoded, read, steps_of
from streamsvm.monitor import monitor_file
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import adopt, as_damage, check_run, settings_of
from streamsvm.run.checkpoint_lock import CheckpointLock
from streamsvm.structured.chunks import ChunkScore

_BATCH, _MOST_SHOWN = 256, 2000
_COUNTS = tuple(vars(ChunkScore()))


class SequenceRun:
    """Learns the sentences of a source, from where a checkpoint ended.

    Parameters
    ----------
    source
        A `ConllSource`, or a `SentenceSource`.
    model
        A pipeline of `Chain` and a learner of label sequences, or a `TrackingMonitor` of one.
    learn
        Whether sentences are learnt; otherwise they are only predicted.
    limit
        The most sentences to read, at least 1; None: all.
    bad_events
        The policy for sentences that cannot be used; `BadEvents("raise")` by default.
    checkpoint
        The file that keeps the state; if it exists, the run goes on from it. None: there is none.
    every
        Sentences between two checkpoints, at least 1.
    on_labels
        Called with the labels predicted for each sentence; None for one that cannot be used.
    should_stop
        Called after every 256 sentences, or fewer; if it returns True, the run ends there, with a
        checkpoint.

    Attributes
    ----------
    score
        Counts of what was predicted right, before it was learnt.
    seconds
        How long the run took, with the part before the checkpoint.
    interrupted
        Whether `should_stop` or Ctrl-C ended the run.

    """

    # What `settings_of` asks a run for.
    positive = None
    late = None

    def __init__(
        self,
        source: Any,
        model: Any,
        *,
        learn: bool = True,
        limit: int | None = None,
        bad_events: BadEvents | None = None,
        checkpoint: str | Path | None = None,
        every: int = 10_000,
        on_labels: Callable[[list[Any] | None], None] = lambda labels: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.monitor = model if isinstance(model, TrackingMonitor) else None
        self.source, self.model = source, model if self.monitor is None else self.monitor.model
        self.learn, self.limit, self.every, self.on_labels = learn, limit, every, on_labels
        self.should_stop = should_stop
        self.bad = bad_events or BadEvents()
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        if self.checkpoint is not None:
            self.bad.name_after(self.checkpoint)
        self.score, self.taken, self.seconds, self.interrupted = ChunkScore(), 0, 0.0, False

    def execute(self) -> ChunkScore:
        """Run, and return the score.

        Raises
        ------
        BadEventError
            A sentence cannot be used, and `bad_events` raises.
        CheckpointError
            The file is of another run, or another process uses it.
        LabelError
            Sentences were to be learnt, and none could be.

        """
        lock = None if self.checkpoint is None else CheckpointLock(self.checkpoint)
        try:
            if lock is not None and self.checkpoint is not None:
                lock.take()
                if self.checkpoint.exists():
                    self._resume(self.checkpoint)
            started = time.perf_counter() - self.seconds
            is_whole = True
            try:
                for written in self._parts():
                    self.seconds = time.perf_counter() - started
                    if written % self.every == 0:
                        self._write(lock)
                    if self.should_stop():
                        self.interrupted = True
                        break
            except KeyboardInterrupt:
                self.interrupted, is_whole = True, False
            self.seconds = time.perf_counter() - started
            # After an exception the last checkpoint stays: a part may be half learnt.
            if is_whole:
                self._write(lock)
        finally:
            self.bad.close()
            if lock is not None:
                lock.release()
        if self.learn and self.bad.total and not (self.score.n_sentences or self.interrupted):
            raise LabelError(
                f"none of {self.taken:,} sentences could be learnt: {self.bad.summary}"
            )
        return self.score

    def _parts(self) -> Iterator[int]:
        """Take the sentences in parts; yield after each how many were taken."""
        events = self.source.events()
        while True:
            # Parts end where checkpoints are due, so that these do not depend on interruptions.
            size = min(_BATCH, self.every - self.taken % self.every)
            if self.limit is not None:
                size = min(size, self.limit - self.taken)
            part = list(islice(events, size))
            if not part:
                return
            self.taken += len(part)
            self.bad.n_events = self.taken
            self._take(part)
            yield self.taken

    def _take(self, part: list[Any]) -> None:
        """Predict and learn some sentences; if one cannot be used, one by one."""
        good = [event for event in part if not isinstance(event, Reject)]
        try:
            if len(good) == len(part):
                self._feed(part)
                return
        except (FeatureError, LabelError):
            # What cannot be learnt changes nothing.
            pass
        for event in part:
            if isinstance(event, Reject):
                rejected: Any = event
                self.bad.take(rejected, event.kind, event.reason)
                self.on_labels(None)
                continue
            try:
                self._feed([event])
            except (FeatureError, LabelError) as error:
                shown = repr((event.x, event.y))[:_MOST_SHOWN]
                letter: Any = Reject(event.position, "unusable sentence", str(error), shown)
                self.bad.take(letter, letter.kind, letter.reason)
                self.on_labels(None)

    def _feed(self, events: list[Any]) -> None:
        chain, learner = steps_of(self.model)
        features = chain.transform_many([event.x for event in events])
        if not self.learn:
            for labels in learner.predict_many(features):
                self.score.n_sentences += 1
                self.score.n_tokens += len(labels)
                self.on_labels(labels)
            return
        true = [event.y for event in events]
        for own, labels in zip(true, learner.predict_then_learn_many(features, true), strict=True):
            self.score.update(own, labels)
            self.on_labels(labels)

    # The checkpoint

    def _write(self, lock: CheckpointLock | None) -> None:
        """Write the state, if it is kept."""
        if lock is None or self.checkpoint is None:
            return
        state = {
            "snapshot": self.source.snapshot(),
            "taken": self.taken,
            "seconds": self.seconds,
            "score": {name: getattr(self.score, name) for name in _COUNTS},
            "bad": self.bad.settle(),
        }
        about: dict[str, Any] = {"sentences": state, "settings": settings_of(self)}
        arrays: dict[str, Any] = {}
        if self.monitor is not None:
            about["monitor"], arrays = monitor_file.to_file(self.monitor)
        lock.take()
        replacing.write(self.checkpoint, encoded(self.model, about, arrays), "the checkpoint")
        lock.take()

    def _resume(self, path: Path) -> None:
        model, about, arrays = read(path)
        if "sentences" not in about or "settings" not in about:
            raise CheckpointError(
                f"{path} is no checkpoint of a run of sentences: use another file, or load the "
                "model"
            )
        with as_damage(path):
            check_run(path, self, model, about)
        try:
            self.source.resume(about["sentences"]["snapshot"])
        except ValueError as error:
            raise CheckpointError(f"{path} is of another source: {error}") from error
        with as_damage(path):
            for step, saved in zip(steps_of(self.model), steps_of(model), strict=True):
                adopt(step, saved)
            state = about["sentences"]
            self.taken, self.seconds = int(state["taken"]), float(state["seconds"])
            for name in _COUNTS:
                setattr(self.score, name, int(state["score"][name]))
            self.bad.resume(state["bad"])
            if self.monitor is not None:
                monitor_file.fill(self.monitor, about["monitor"], arrays)
