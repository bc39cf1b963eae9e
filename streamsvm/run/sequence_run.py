"""A run of sentences: each is predicted, scored and learnt; its state can be kept in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from connectors import Reject
from connectors.rejects import shown
from streamsvm._compiling import working_time
from streamsvm.errors import CheckpointError, FeatureError, LabelError, ParameterError
from streamsvm.learners.bases.sequence.sequence_batches import read_labels
from streamsvm.model_files import replacing
from streamsvm.model_files.container import encoded, read, steps_of
from streamsvm.monitor import monitor_file
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import adopt, as_damage, check_run, settings_of
from streamsvm.run.checkpoint_lock import CheckpointLock
from streamsvm.structured.chunks import ChunkScore
from streamsvm.structured.sentences import Sentences, joined

_BATCH = 256
_COUNTS = tuple(vars(ChunkScore()))
_REFUSED = (FeatureError, LabelError, ParameterError)
"""What reading a sentence that cannot be used raises; learning what was read raises none."""


class SequenceRun:
    """Learns the sentences of a source, from where a checkpoint ended.

    Parameters
    ----------
    source
        A `ConllSource`, a `SentenceSource` or a `KafkaSentenceSource`.
    model
        A pipeline of `Chain` and a learner of label sequences, or a `TrackingMonitor` of one.
    learn
        Whether sentences are learnt; otherwise they are only predicted.
    limit
        End when so many sentences are read, at least 1; those of a message are not divided. None:
        read all.
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
        How long the run took, without compiling, and with the part before the checkpoint.
    resumed_after
        How many sentences an earlier process had taken; None: there is no checkpoint of one.
    interrupted
        Whether Ctrl-C or `should_stop` ended the run.

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
        self._read: list[Any] = []  # sentences that were read, and are to be taken next
        self._written = 0  # how many were taken at the last checkpoint
        self.resumed_after: int | None = None
        self._started = 0.0
        self._refused: ParameterError | None = None

    def execute(self) -> ChunkScore:
        """Run, and return the score.

        Raises
        ------
        BadEventError
            A sentence cannot be used, and `bad_events` raises.
        CheckpointError
            The file is of another run, or another process uses it.
        LabelError
            Sentences were to be learnt, and there were none, or none could be.

        """
        lock = None if self.checkpoint is None else CheckpointLock(self.checkpoint)
        try:
            if lock is not None and self.checkpoint is not None:
                lock.take()
                if self.checkpoint.exists():
                    self._resume(self.checkpoint)
            self._started = working_time() - self.seconds
            if hasattr(self.source, "before_revoke"):
                self.source.before_revoke = lambda: self._hand_over(lock)
            try:
                self._take_all(lock)
                # After an interruption the last checkpoint stays: a part may be half learnt.
                self._write(lock)
            except KeyboardInterrupt:
                self.interrupted = True
            self.seconds = working_time() - self._started
        finally:
            if hasattr(self.source, "before_revoke"):
                self.source.before_revoke = lambda: None
            self.bad.close()
            if lock is not None:
                lock.release()
        if self.learn and not (self.score.n_sentences or self.interrupted):
            if not self.taken:
                raise LabelError("there are no sentences to learn from")
            raise LabelError(
                f"none of {self.taken:,} sentences could be learnt: {self.bad.summary}"
            )
        return self.score

    def _take_all(self, lock: CheckpointLock | None) -> None:
        """Take the sentences in parts, and write checkpoints between them."""
        for found in self._reads():
            self._read += found
            # A part ends where a checkpoint is due, and when no message came.
            until_due = self.every - (self.taken - self._written)
            if not found or len(self._read) >= min(_BATCH, until_due):
                self._take()
                if self.taken - self._written >= self.every:
                    self._write(lock)
            if self.should_stop():
                self.interrupted = True
                break
        self._take()
        if self._refused is not None and not self.score.n_sentences:
            raise self._refused

    def _reads(self) -> Iterator[list[Any]]:
        """Yield the sentences between which a run may end: one, or those of a message."""
        if hasattr(self.source, "parts"):
            reads = self.source.parts()
        else:
            reads = ([event] for event in self.source.events())
        while self.limit is None or self.taken + len(self._read) < self.limit:
            read = next(reads, None)
            if read is None:
                return
            yield read

    def _take(self) -> None:
        """Predict and learn the sentences that were read; what cannot be used is a dead letter."""
        part, self._read = self._read, []
        if not part:
            return
        self.taken += len(part)
        self.bad.n_events = self.taken
        features, letters = self._usable(part)
        for letter in letters:
            if letter is not None:
                self.bad.take(letter, letter.kind, letter.reason)
        kept = [event for event, letter in zip(part, letters, strict=True) if letter is None]
        predicted = iter(self._feed(features, kept))
        for letter in letters:
            self.on_labels(None if letter is not None else next(predicted))

    def _usable(self, part: list[Any]) -> tuple[Sentences, list[Any]]:
        """Return the features of the sentences that can be used, and for the others a `Reject`."""
        letters = [event if isinstance(event, Reject) else None for event in part]
        seen: list[Any] = steps_of(self.model)[1].classes
        try:
            return self._features([e for e in part if not isinstance(e, Reject)], [*seen]), letters
        except _REFUSED:
            # Nothing was learnt yet: each is read alone, to find those that cannot be used.
            found = [self._features_or_letter(event, seen) for event in part]
        letters = [one if isinstance(one, Reject) else None for one in found]
        return joined([one for one in found if not isinstance(one, Reject)]), letters

    def _features_or_letter(self, event: Any, seen: list[Any]) -> Any:
        if isinstance(event, Reject):
            return event
        try:
            return self._features([event], seen)
        except _REFUSED as error:
            if isinstance(error, ParameterError):
                # If no sentence fits the templates, it is they that are wrong.
                self._refused = self._refused or error
            return Reject(
                event.position, "unusable sentence", str(error), shown((event.x, event.y))
            )

    def _features(self, events: list[Any], seen: list[Any]) -> Sentences:
        """Return the features of sentences, if they and their labels can be used.

        `seen` are the labels seen before; new ones are appended.
        """
        chain, learner = steps_of(self.model)
        features: Sentences = chain.transform_many([event.x for event in events])
        if self.learn:
            labels = [event.y for event in events]
            seen[:] = read_labels(labels, features, seen, learner.max_classes)[2]
        return features

    def _feed(self, features: Sentences, events: list[Any]) -> list[list[Any]]:
        """Predict and learn sentences; return what was predicted."""
        _, learner = steps_of(self.model)
        predicted: list[list[Any]]
        if not self.learn:
            predicted = learner.predict_many(features)
            self.score.n_sentences += len(predicted)
            self.score.n_tokens += sum(map(len, predicted))
            return predicted
        true = [event.y for event in events]
        predicted = learner.predict_then_learn_many(features, true)
        for own, labels in zip(true, predicted, strict=True):
            self.score.update(own, labels)
        return predicted

    # The checkpoint

    def _hand_over(self, lock: CheckpointLock | None) -> None:
        """Learn what was read: partitions go to another process, which begins where this ends."""
        self._take()
        self._write(lock)

    def _write(self, lock: CheckpointLock | None) -> None:
        """Write the state, if it is kept."""
        if lock is None or self.checkpoint is None:
            return
        self.seconds, snapshot = working_time() - self._started, self.source.snapshot()
        state = {
            "snapshot": snapshot,
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
        self._written = self.taken
        if hasattr(self.source, "settled"):
            self.source.settled(snapshot)

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
            self._written = self.resumed_after = self.taken
            for name in _COUNTS:
                setattr(self.score, name, int(state["score"][name]))
            self.bad.resume(state["bad"])
            if self.monitor is not None:
                monitor_file.fill(self.monitor, about["monitor"], arrays)
