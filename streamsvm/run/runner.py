"""The main loop: the events of a source are predicted, scored, learnt and reported."""

import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, cast

from connectors.batch import Batch
from connectors.output import Output
from connectors.source import Snapshot, Source, checked
from streamsvm._compiling import clock
from streamsvm._parameter_checks import check_size, check_whole
from streamsvm.errors import ParameterError
from streamsvm.labels.bag_labels import candidates_of
from streamsvm.labels.label_column import LabelColumn, Pairs
from streamsvm.learners.bases.learner import Learner
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.score import Score
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.monitor.watched import Finishing, Model, Reported
from streamsvm.run import parts
from streamsvm.run.adapters import adapter_of
from streamsvm.run.asking_feeder import AskingFeeder
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.batch_feeder import BatchFeeder
from streamsvm.run.checkpoint import Checkpoint, Contents, Part, Place
from streamsvm.run.feeder import Feeder
from streamsvm.run.late_labels import LateLabels, steps
from streamsvm.run.late_labels.group import GroupLabels
from streamsvm.run.late_labels.in_order import learn_in_order
from streamsvm.run.record_feeder import feeder_of
from streamsvm.run.report import Progress, RunReport, peak_memory
from streamsvm.run.requests import Requests
from streamsvm.run.sentence_feeder import are_sentences

_log = logging.getLogger(__name__)

# Fields of `Progress` that are attributes of the learner, if it has them, of the report, and those
# of the monitor's last record.
_OF_LEARNER = ("n_support_vectors", "delta", "dual")
_OF_MONITOR = ("gap", "gap_high", "averaged_gap", "certificate")
_OF_REPORT = ("rows", "seconds", "compile_seconds", "wait_seconds", "learnt")


class Run:
    """One run of a source through a model.

    Parameters
    ----------
    source
        The source of events, see `connectors`.
    model
        A learner of this package, a pipeline of `StandardScaler` and one, or of `Chain` and a
        learner of label sequences, a parser or labeller of concepts (with `RecordSource`), an
        `ActiveLearner`, `ConformalSets`, `Selective` or `TrackingMonitor` of one, or one of River.
    epochs
        How many times the source is read, at least 1. Only the first reading is scored: in it,
        every prediction is made before the label is learnt.
    limit
        Rows to read in each epoch, at least 1; None: all. Sources whose batches differ each time
        they are read (Kafka) end at the end of a batch.
    positive
        A label, as text: it is learnt as True, all others as False.
    bad_events
        The policy for events that cannot be used; `BadEvents("raise")` by default.
    late
        The buffer for events whose labels come later; None: each event has its label.
    finish
        Call the learner's `finish` at the end.
    on_progress
        Called with a `Progress` after each chunk of rows, and while finishing.
    should_stop
        Called after each chunk; if it returns True, the run ends early, with its report.
    checkpoint
        The file that holds the state of the run, from which a later process continues; None: the
        state is not kept.
    max_classes
        The largest number of classes; a target that has more is refused as soon as it shows. None:
        1,000, and fewer if their values look like quantities (regression).
    will_save
        The model is to be saved in the end: labels that a model file cannot hold (dates, say) are
        refused at once, as with `checkpoint`.
    truth
        A column that the source keeps (`keep`, `kept`): the accuracy is that of predictions
        compared with it, where it has a value. None: compared with the label; of a bag, any
        candidate is right. With a `ConceptLabeler`, the labels are bags then.
    output
        What takes predictions, such as a `ScoredTopic`: of each event that is learnt, before that,
        and of each whose label comes later, when it comes. None: there is none.

    Raises
    ------
    ParameterError
        A parameter is out of range, or the model or the source cannot do what is asked for.

    Examples
    --------
    >>> from connectors import MemorySource
    >>> from streamsvm import LASVMClassifier
    >>> from streamsvm.run.runner import Run
    >>> events = [({"a": float(i % 7)}, i % 7 > 3) for i in range(200)]
    >>> report = Run(MemorySource(events), LASVMClassifier()).execute()
    >>> report.rows, report.accuracy > 0.9
    (200, True)

    """

    def __init__(
        self,
        source: Source,
        model: Model | TrackingMonitor,
        *,
        epochs: int = 1,
        limit: int | None = None,
        positive: str | None = None,
        bad_events: BadEvents | None = None,
        late: LateLabels | None = None,
        finish: bool = False,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        should_stop: Callable[[], bool] = lambda: False,
        checkpoint: Checkpoint | None = None,
        will_save: bool = False,
        max_classes: int | None = None,
        truth: str | None = None,
        output: Output | None = None,
    ) -> None:
        for name, part, kind in (
            ("bad_events", bad_events, BadEvents),
            ("late", late, LateLabels),
            ("checkpoint", checkpoint, Checkpoint),
        ):
            if not isinstance(part, kind | None):
                raise ParameterError(f"{name}={part!r}: use a {kind.__name__}, or None")
        _check_reading(checked(source), epochs, limit, late)
        self.monitor = model if isinstance(model, TrackingMonitor) else None
        self.source, self.model = source, model if self.monitor is None else self.monitor.model
        self.adapter = adapter_of(self.model)
        self.epochs, self.limit, self.positive = epochs, limit, positive
        self.bad = bad_events or BadEvents()
        if checkpoint is not None:
            self.bad.name_after(checkpoint.path)
        self.adapter.check_run(epochs, source.forgets)
        self._of_rows: Feeder | None = None
        self.feeder = self._new_feeder(late)
        of_sentences = self.feeder.new_score()
        self.score = Score(of_sentences is None, of_sentences)
        self.output = self.feeder.output = output
        if output is not None:
            self._check_output(output, late, checkpoint)
        if truth is not None:
            self.feeder.truth = parts.checked_truth(source, truth)
        # A monitor makes its records at the ends of chunks.
        chunk = (self.learner or Reported).chunk
        self._chunk = chunk if self.monitor is None else min(chunk, self.monitor.every)
        if finish and not hasattr(self.learner, "finish"):
            raise ParameterError(
                f"finish={finish}: {type(self.learner or self.model).__name__} cannot; that is for "
                "LASVM, averaged tracking and LaRank"
            )
        self._group: GroupLabels | None = None
        in_group = checkpoint is not None and checkpoint.peers is not None
        if in_group and source.has_answers and late is not None and late.delay is None:
            self._group = GroupLabels(late)
        self.late = self._group or late
        self.finish, self.max_classes = finish, max_classes
        forget = None if self.late is None else self.late.forget
        self.requests = Requests(self.model, forget) if source.forgets else None
        self.feeder.requests = self.requests
        self.on_progress, self.should_stop = on_progress, should_stop
        self.report, self.place = RunReport(), Place()
        self.checkpoint, self._will_save = checkpoint, will_save or checkpoint is not None
        self._is_between = False  # whether all rows read so far are learnt
        self._is_broken = False  # whether it ended within a batch
        self._start = self._compile_start = self._wait_start = 0.0

    def _new_feeder(self, late: LateLabels | None) -> BatchFeeder:
        """Return what puts batches into the model."""
        if are_sentences(self.model):
            if self.positive is not None or late is not None:
                raise ParameterError("positive= and late= are not for learners of sentences")
            return feeder_of(self.model, self.bad)
        kind = AskingFeeder if self.adapter.asks else Feeder
        self._of_rows = kind(self.model, self.bad, self.positive, self.source.target_field)
        return self._of_rows

    def _check_output(
        self, output: Output, late: LateLabels | None, checkpoint: Checkpoint | None
    ) -> None:
        if self.score.of_sentences is not None or (late is not None and late.delay is not None):
            raise ParameterError("output=: not for learners of sentences, nor for simulated delays")
        if not isinstance(output, Output):
            raise ParameterError(
                f"output={output!r}: use a connectors.Output, such as connectors.ScoredTopic"
            )
        if output.exactly_once and (checkpoint is None or checkpoint.seconds is None):
            raise ParameterError(
                "output=: exactly_once needs a checkpoint with seconds=, shorter than "
                "transaction.timeout.ms of the producer"
            )

    @property
    def learner(self) -> Reported | None:
        """The learner in use."""
        return self.feeder.learner

    @property
    def taken(self) -> int:
        """How many events, and labels that came apart from events, were taken, good or bad."""
        return self.place.taken

    @property
    def contents(self) -> Contents:
        """What a checkpoint keeps of this run."""
        found: dict[str, Part | None] = {
            "place": self.place,
            "report": self.report,
            "history": self.report.history,
            "score": self.score,
            "monitor": self.monitor,
            "late": self.late,
            "requests": self.requests,
            # The last one: dead letters that will be written again are removed.
            "bad": self.bad,
        }
        kept = {name: part for name, part in found.items() if part is not None}
        settings = {"positive": repr(self.positive)} | self.feeder.settings
        settings |= {} if self.late is None else self.late.settings()
        return Contents(self.model, kept, self.place, settings, self.source, self.output)

    def execute(self) -> RunReport:
        """Run, and return the report.

        Returns
        -------
        RunReport
            The report; the same object as `report`.

        Raises
        ------
        BadEventError
            An event cannot be used, and `bad_events` raises.
        RuntimeError
            The run was executed before, and ended within a batch, by an error or Ctrl-C.
        LabelError
            The target has more than two classes in its first rows and the learner takes two, fewer
            than two in all of them, or more than `max_classes`.

        """
        report = self.report
        if self._is_broken:
            raise RuntimeError(
                "this run ended while it took a batch, of which a part may be learnt: make a new "
                "Run, with a new source; with a checkpoint it goes on from there"
            )
        self._begin()
        failure: BaseException | None = None
        try:
            self._read_all()
        except BaseException as error:
            failure, self._is_broken = error, not self._is_between
            if isinstance(error, Exception) and self._is_between and self.checkpoint is not None:
                # The source failed: what was learnt is kept, if that can be written.
                try:
                    self.checkpoint.write()
                except Exception as second:
                    _log.warning("the checkpoint before it cannot be written: %s", second)
        if (failure := self._end(failure)) is not None:
            raise failure
        if not report.interrupted:
            self._check_learnt()
            if self.finish:
                self._finish()
                self._complete()
        return report

    def _begin(self) -> None:
        """Go on from the checkpoint, if there is one, and start the clocks."""
        report = self.report
        if self.checkpoint is not None:
            if self.score.of_sentences is None and not isinstance(
                steps_of(self.model)[-1], Learner
            ):
                name = type(self.model).__name__
                raise ParameterError(
                    f"{name}: checkpoints hold learners of streamsvm, and pipelines"
                )
            if self.checkpoint.begin(self.contents):
                self.feeder.follow()
                report.resumed_after = self.taken
                report.resumed = f"{self.checkpoint.path}: after {self.taken:,} examples"
            if self.checkpoint.peers is not None:
                self.source.learnt_elsewhere = self._learnt_elsewhere
            if self._group is not None:
                self.source.late_by_partition, self.source.on_gone = True, self._group.leave
        elif self.output is not None:
            self.output.begin()
        self._start = time.perf_counter() - report.seconds
        self._compile_start = clock.seconds - report.compile_seconds
        self._wait_start = self.source.wait_seconds - report.wait_seconds
        if self.monitor is not None:
            self.monitor.follow(self._pace)

    def _learnt_elsewhere(self, places: Collection[str]) -> dict[str, int]:
        """Return how far other members have read each partition, as `places` are assigned here.

        What they hold of these for labels that come late is taken over.
        """
        assert self.checkpoint is not None
        peers = self.checkpoint.read_peers()
        if self._group is not None:
            self._group.take_over(places, self.source.offsets_in(self.source.snapshot()), peers)
        offsets: dict[str, int] = {}
        for peer in peers:
            for place, offset in peer.offsets.items():
                offsets[place] = max(offset, offsets.get(place, 0))
        return offsets

    def _end(self, failure: BaseException | None) -> BaseException | None:
        """Close all that the run has opened; return the first failure, the one given included."""
        closing = [] if self.checkpoint is None else [self.checkpoint.close]
        closing += [self._update_times]
        closing += [] if self.monitor is None else [partial(self.monitor.follow, None)]
        closing += [self._complete, self.bad.close]
        closing += [] if self.output is None else [self.output.close]
        closing += [] if self.late is None or failure is None else [self.late.flush]
        for close in closing:
            try:
                close()
            except Exception as error:
                # The first error is the one that is shown.
                if failure is not None:
                    _log.debug("and at the end of the run: %s", error, exc_info=error)
                failure = failure or error
        return failure

    def _check_learnt(self) -> None:
        """Refuse a stream that ended without anything to learn, or with one class only."""
        report, of_sentences = self.report, self.score.of_sentences
        if of_sentences is not None and not of_sentences.has_labels:
            parts.check_learnt(report.rows, report.learnt, self.bad)
        elif self._group is not None and not report.learnt:
            pass  # the labels may come to another member
        elif report.rows or not self.source.cuts_anew:
            # A member of a group may have had no message.
            parts.check_classes(report.rows, self.score.seen, self.bad, self.positive)

    def _read_all(self) -> None:
        """Learn the unread rows of all epochs, and keep the state at their end."""
        report = self.report
        for epoch in range(self.place.epoch, self.epochs + 1):
            if epoch > self.place.epoch:
                self.source.rewind()
                self._go_on_from(epoch, 0, 0, None)
            report.epochs = epoch
            self._read(epoch)
            if report.interrupted:
                break
        if self.checkpoint is not None:
            self.checkpoint.write()
        if self.late is not None and self._of_rows is not None:
            self.late.flush()
            if not report.interrupted:
                self._score(carry_out(self.late.end(), self._of_rows), 1)

    def _read(self, epoch: int) -> None:
        """Learn the unread rows of an epoch."""
        report = self.report
        for batch, first in self._chunks():
            with self.bad.in_order(batch):
                for reject in batch.rejects:
                    report.rows += 1
                    self._count(1)
                    self.bad.take(reject, reject.kind, reject.reason)
                if len(batch):
                    self._learn(batch, first, epoch)
            if len(batch) or batch.rejects:
                self._update_times()
                self._report_progress("learning", epoch)
            if self.checkpoint is not None:
                self.checkpoint.after()
            if report.interrupted or self.should_stop():
                report.interrupted = True
                break

    def _chunks(self) -> Iterator[tuple[Batch, int]]:
        """Yield parts of at most a chunk, with the number of their first row in the epoch."""
        first, offset = self.place.first, self.place.offset
        batches = self.source.batches()
        # A source whose batches differ when it is read again can be resumed at their ends only.
        whole = self.source.cuts_anew
        while self.limit is None or first < self.limit:
            before = None if self.checkpoint is None else self.source.snapshot()
            try:
                self._is_between = True
                batch = next(batches, None)
                self._is_between = False
            except KeyboardInterrupt:
                # The source was waiting for rows: no row is half learnt.
                self.report.interrupted = True
                return
            if batch is None:
                return
            if whole and self.limit is not None and self.checkpoint is None:
                # What is left out will be read again: nothing is committed.
                batch = batch.slice(0, self.limit - first)
            if whole or (batch.rejects and not len(batch)):
                start, first = first, first + len(batch) + len(batch.rejects)
                after = None if self.checkpoint is None else self.source.snapshot()
                self._go_on_from(self.place.epoch, first, 0, after)
                yield batch, start
                continue
            while offset < len(batch):
                # Parts have the same ends as if no earlier process had stopped between them.
                size = min(self._chunk - offset % self._chunk, len(batch) - offset)
                if self.limit is not None:
                    size = min(size, self.limit - first)
                if size == 0:
                    return
                part, start = batch.slice(offset, size), first
                offset += size
                first += size
                # The next unread row once this part is learnt.
                self._go_on_from(self.place.epoch, first, offset, before)
                yield part, start
            offset -= len(batch)

    def _go_on_from(self, epoch: int, first: int, offset: int, snapshot: Snapshot | None) -> None:
        """Take a place, in one step: another thread may write it into a checkpoint."""
        vars(self.place).update(epoch=epoch, first=first, offset=offset, snapshot=snapshot)

    def _learn(self, batch: Batch, first: int, epoch: int) -> None:
        """Predict, score and learn the rows of a chunk, or take what is about earlier rows."""
        if self.requests is not None and batch.are_tombstones:
            self._count(len(batch))
            self.requests.take(batch)
            return
        labels = self.feeder.labels_of(batch)
        if self.score.of_sentences is None:
            self._check(candidates_of(labels))
        if self.report.learnt == 0 and self._will_save:
            parts.check_can_be_saved(candidates_of(labels))
        self._count(len(batch))
        if not batch.are_answers:
            self.report.rows += len(batch)
            if self.score.of_sentences is None:
                self.report.count_texts(batch.features)
        if self.output is not None:
            self.output.n_learnt = self.report.learnt
        if self.late is not None and self._of_rows is not None:
            predicted = carry_out(self.late.take(batch, labels), self._of_rows)
        else:
            predicted = self.feeder.feed(batch, labels, first if self.epochs > 1 else None)
        self._score(predicted, epoch)

    def _check(self, labels: LabelColumn) -> None:
        """Refuse a target that is none of a classifier, or has too many classes."""
        # Once a learner of two classes has them, any other label is a bad event.
        if self.report.learnt == 0 or self.learner is None or self.learner.most_classes != 2:
            parts.check_is_classification(labels, self.score.seen, self.max_classes)
        if self.report.learnt == 0:
            parts.check_target(labels, self.learner, self.source.cuts_anew)

    def _count(self, n: int) -> None:
        self.place.taken += n
        self.bad.n_events = self.place.taken

    def _score(self, predicted: Pairs, epoch: int) -> None:
        """Count learnt rows, and score the predictions made before they were learnt."""
        self.score.add(predicted, epoch == 1)
        self.report.learnt += len(predicted)

    def figures(self) -> dict[str, Any]:
        """Return counts of what was taken, and the speed; from any thread.

        Returns
        -------
        dict[str, Any]
            By the names of `streamsvm.monitor.figures.OF_RUN`.

        """
        bad, source = dict(self.bad.counts), self.source
        found = {"events": self.taken, "bad_events": sum(bad.values()), "bad_events_by_kind": bad}
        found["forgotten"] = None if self.requests is None else dict(self.requests.counts)
        found["lag"], found["lag_by_partition"] = source.lag, source.lags or None
        found["failed_commits"] = source.counts.get("failed_commits")
        found["offsets_left_out"] = source.counts.get("jumped")
        if self.checkpoint is not None:
            found["checkpoint_age_seconds"] = self.checkpoint.age
        if self.late is not None:
            found |= self.late.figures
        if latest := self.report.history.latest:
            # As the screen says it: the report counts the rows of a chunk before they are learnt.
            found["examples_per_second"] = latest[-1]["examples_per_second"]
        return found

    def details(self, values: bool) -> dict[str, Any]:
        """Return the figures, and what else the live page shows; from any thread.

        Parameters
        ----------
        values
            With the reason of the most bad events, which may have values of events.

        Returns
        -------
        dict[str, Any]
            The figures; ``pairs``: counts of predictions by (label, prediction).

        """
        # Copied at once, while the run counts on.
        found = self.figures() | {"pairs": dict(self.score.pairs)}
        return found | ({"most_frequent": self.bad.most_frequent} if values else {})

    def _update_times(self) -> None:
        self.report.seconds = time.perf_counter() - self._start
        self.report.compile_seconds = clock.seconds - self._compile_start
        self.report.wait_seconds = self.source.wait_seconds - self._wait_start

    def _pace(self) -> tuple[int, float]:
        """Return how many rows were read, and the seconds for them: see `rows_per_second`."""
        self._update_times()
        return self.report.rows, self.report.own_seconds

    def _finish(self) -> None:
        start, compile_start = time.perf_counter(), clock.seconds

        def progress(delta: float, n_support_vectors: int) -> None:
            self._report_progress("finishing", self.report.epochs)
            if self.should_stop():
                raise KeyboardInterrupt

        try:
            self._say_phase("finishing")
            cast(Finishing, self.learner).finish(progress=progress)
            self.report.finished = True
        except KeyboardInterrupt:
            self.report.interrupted = True
        finally:
            self._say_phase("the run has ended")
        compiling = clock.seconds - compile_start
        self.report.finish_seconds = time.perf_counter() - start - compiling

    def _say_phase(self, phase: str) -> None:
        if self.monitor is not None:
            self.monitor.phase = phase

    def _report_progress(self, phase: str, epoch: int) -> None:
        now = self._progress(phase, epoch)
        if phase == "learning":
            self.report.history.add(now.record())
        self.on_progress(now)

    def _progress(self, phase: str, epoch: int) -> Progress:
        last = {} if self.monitor is None else self.monitor.last()
        found: dict[str, Any] = {
            name: getattr(source, name, None)
            for source, names in ((self.learner, _OF_LEARNER), (self.report, _OF_REPORT))
            for name in names
        } | self.score.totals
        found |= {name: last.get(name) for name in _OF_MONITOR}
        found |= self.score.accuracies()
        return Progress(phase=phase, epoch=epoch, n_bad=self.bad.total, **found)

    def _complete(self) -> None:
        """Fill in the report."""
        report, learner = self.report, self.learner
        report.peak_bytes = peak_memory()
        report.bad, report.taken = dict(self.bad.counts), self.taken
        report.source = dict(self.source.counts)
        if report.resumed is None:  # earlier processes may have read values
            report.empty_columns = list(self.source.empty_columns)
        if (looks := self.source.number_texts) is not None:
            report.number_texts, report.text_findings = looks.names, looks.findings
        report.dead_letters = None if self.bad.file is None else str(self.bad.file)
        report.late = {} if self.late is None else self.late.counts
        report.forgotten = {} if self.requests is None else dict(self.requests.counts)
        report.scores_answers = (
            self.adapter.asks and self.late is not None and self.late.delay is None
        )
        vars(report).update(self.adapter.figures())
        if (scaler := self.feeder.scaler) is not None:
            report.clipped = {str(name): n for name, n in scaler.n_clipped.items()}
        report.take_score(self.score)
        if learner is not None:
            report.take_from(learner)
        if self.monitor is not None:
            # The last record of both histories, and of the metrics, is what the report shows.
            report.monitor = self.monitor.conclude() | self.monitor.about
        if len(report.history):
            report.history.conclude(self._progress("end", report.epochs).record(), "rows")


def carry_out(wanted: steps.Steps, feeder: Feeder) -> Pairs:
    """Do what late labels ask for; return (label, prediction) of each event that was learnt."""
    pairs = Pairs()
    for step in wanted:
        match step:
            case steps.Feed():
                pairs += feeder.feed(*step)
            case steps.Predict(batch, hold):
                hold(*feeder.predict(batch))
            case steps.Learn():
                pairs += feeder.learn(*step)
            case steps.LearnInOrder():
                pairs += learn_in_order(feeder, step)
            case steps.SetAside():
                feeder.set_aside(*step)
            case steps.GiveUp(n):
                feeder.adapter.give_up(n)
    return pairs


def _check_reading(source: Source, epochs: int, limit: int | None, late: LateLabels | None) -> None:
    """Refuse to read a source so often, so far, or without what its labels need."""
    check_whole("epochs", epochs, 1)
    check_size("limit", limit, 1, sys.maxsize)
    if late is not None and epochs > 1:
        raise ParameterError(f"epochs={epochs!r}: with late labels a stream is read once")
    if late is None and source.has_answers:
        raise ParameterError("the source gives labels apart from events: give late= (held)")
    if source.forgets and late is not None and late.delay is not None:
        raise ParameterError("tombstones: not with a delay, where events wait without keys")
