"""The tracking monitor: it measures how far a model is from the batch optimum as it learns."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from streamsvm._parameter_checks import check_number, check_whole
from streamsvm.errors import ParameterError
from streamsvm.monitor.figures import ABOUT, NOT_OF_ALL, meaning_of, shown, shown_of
from streamsvm.monitor.history import History
from streamsvm.monitor.learnt import Learnt
from streamsvm.monitor.mean_gap import SeenGap
from streamsvm.monitor.rates import Metrics, Rates
from streamsvm.monitor.record import record_of
from streamsvm.monitor.sample import NEVER, ReservoirSample
from streamsvm.monitor.score import Bounds, Score
from streamsvm.monitor.watched import Model, Probable, learner_of
from streamsvm.support.declaration import NamedArrays
from streamsvm.support.interruptions import Changes

_SAMPLE_FOR_GAP = 100
_SAMPLE_FOR_OBJECTIVE = 500
_BUFFER_LENGTH = 1000
_FORWARDED = (
    "learn_one",
    "learn_many",
    "predict_one",
    "predict_many",
    "predict_proba_one",
    "predict_proba_many",
    "predict_set_one",
    "predict_set_many",
    "answer_one",
)
_ONLY_KEPT = (
    "no certificate of all examples: {} leaves some out; monitor.get() has kept_certificate, of "
    "the examples kept at each moment"
)
_SUMS = ("_n", "n_before", "_due", "_wake", "_is_thorough")


class TrackingMonitor:
    """Measures a learner as it learns: certificate, duality gap, accuracy and speed.

    The monitor attaches itself to the learner, so that every learnt example is counted: through the
    monitor itself, the model, its pipeline, or a run. A linear learner by stochastic gradients has
    no dual: the monitor follows its primal objective, on a sample of the stream.

    Parameters
    ----------
    model
        A learner of this package, or a River pipeline that ends in one.
    every
        Examples between two records, at least 1; 1000 by default, at which the monitor costs two to
        four microseconds an event, and 1-3 % of a replay. A batch is recorded at its end.
    metrics
        None, a River metric, or a list of them; updated with predictions made before each label was
        learnt.
    sample
        How many examples that the model left out are used in each measurement of the gap, at least
        1; 50 by default. Their kernel values are the monitor's main cost.
    most
        The largest number of records in the history, at least 2; 2000 by default. When there are
        more, every second one is dropped, and the report says so.
    seed
        The seed of the sample's draws.
    confidence
        The probability with which the certificates hold, at all moments at once; between 0 and 1,
        .95 by default.
    horizon
        How many examples the recent certificate is about, at least: it is about one to two times
        as many. 10,000 by default.

    Attributes
    ----------
    history
        The records: ``to_arrow()``, ``write_parquet(path)``, ``write_json_lines(path)``.

    Raises
    ------
    ParameterError
        The model is of another package, or a parameter is out of range.

    Examples
    --------
    >>> from river import datasets, metrics
    >>> from streamsvm import TrackingMonitor, TrackingSVMClassifier
    >>> monitor = TrackingMonitor(TrackingSVMClassifier(seed=1), every=500, metrics=metrics.F1())
    >>> for x, y in datasets.Bananas().take(2000):
    ...     monitor.learn_one(x, y)
    >>> values = monitor.get()
    >>> values["averaged_gap"] <= values["certificate"]
    True
    >>> len(monitor.history)
    4

    """

    def __init__(
        self,
        model: Model,
        every: int = 1000,
        metrics: Any = None,
        sample: int = 50,
        most: int = 2000,
        seed: int = 0,
        confidence: float = 0.95,
        horizon: int = 10_000,
    ) -> None:
        every = check_whole("every", every, 1)
        sample = check_whole("sample", sample, 1)
        horizon = check_whole("horizon", horizon, 1)
        most = check_whole("most", most, 2)
        if not 0.0 < check_number("confidence", confidence, 0.0) < 1.0:
            raise ParameterError(f"confidence={confidence!r}: use a number between 0 and 1")
        self.model = model
        self.learner = learner_of(model)
        self.every, self.sample = every, sample
        self.history = History(most)
        self.rates = Rates()
        self.metrics = Metrics(metrics, self.learner)
        self.score = Score(self.learner.takes == "rows")
        # Public for the learner: probabilities must be computed before its calibration learns.
        self.asks_probabilities = self.metrics.wants_probabilities
        has_dual = self.learner.has_dual
        size = max(_SAMPLE_FOR_GAP if has_dual else _SAMPLE_FOR_OBJECTIVE, sample)
        is_of_rows = self.learner.takes != "records"
        # A window of whole sentences is one of words.
        window = self.learner.window if is_of_rows else None
        self.passed_by = ReservoirSample(size, window, seed)
        # Of examples kept, of several models, and of sentences nothing is estimated from a sample.
        is_exact = has_dual and self.learner.covers == "kept"
        if is_exact or self.learner.n_drifts is not None or not is_of_rows:
            self.passed_by.next = NEVER
        self._n = 0
        self.n_before = self.learner.n_examples
        self.confidence, self.horizon = confidence, horizon
        self.seen = SeenGap(self.learner.looks, horizon, confidence)
        self._due = every
        self._wake = 0
        # Flat lists: thousands of small tuples would trigger the garbage collector.
        self._labels: list[Any] = []
        self._predicted: list[Any] = []
        self._expected: list[Any] = []
        self._probabilities: list[dict[Any, float]] = []
        self._noted: list[Any] = []  # label, prediction, seconds, label, prediction, ...
        self._seconds: list[float] = []  # of each event, or of one example of each batch
        self._batch_seconds = 0.0  # of the other examples of batches
        self._last: dict[str, Any] = {}
        self._is_thorough = False
        self._attach()
        if self.n_before:
            # So that `last` has values of a model that was loaded, and may only predict.
            self._measured(self.sample)

    phase = "learning"
    """What a run does with it, in words, for a page."""

    # Learning through the monitor

    def _attach(self) -> None:
        """Observe the learner; take over the model's methods as attributes, which adds no call."""
        self.learner.observer = self
        for name in _FORWARDED:
            if hasattr(self.model, name):
                setattr(self, name, getattr(self.model, name))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Declare the methods that `_attach` takes over from the model."""

    # Calls of the learner

    def learnt(self, learnt: Learnt) -> None:
        """Record n examples that were just learnt; the learner calls this."""
        # This is called at each event: all else is left to `_process`.
        self._take_noted()
        labels, predicted = learnt.labels, learnt.predicted
        n = self._n + len(labels)
        self._n = n
        if self._expected:
            predicted = self._expected[: len(labels)]
            del self._expected[: len(labels)]
        self._labels += labels
        self._predicted += predicted
        self._seconds.append(learnt.seconds)
        if n >= self._wake or len(labels) > 1:
            self._process(learnt)

    def note(self, label: Any, predicted: Any, seconds: float) -> bool:
        """Record one learnt example cheaply, if nothing is due at it. The learner calls this.

        False: nothing was recorded, and the learner must call `learnt` instead.
        """
        if self._n + 1 >= self._wake or self._expected:
            return False
        # One statement: an interruption cannot leave a label without its prediction.
        self._noted += (label, predicted, seconds)
        self._n += 1
        return True

    def _take_noted(self) -> None:
        """Move the examples of `note` to the end of the buffers."""
        noted = self._noted
        labels, predicted, seconds = noted[0::3], noted[1::3], noted[2::3]
        self._noted = []
        self._labels += labels
        self._predicted += predicted
        self._seconds += seconds

    def _process(self, learnt: Learnt) -> None:
        """Sample the examples just learnt, and measure or score if that is due."""
        n_new = len(learnt.classes)
        if n_new > 1:
            self._batch_seconds += self._seconds[-1]
            self._seconds[-1] /= n_new
            self._batch_seconds -= self._seconds[-1]
        if self.metrics.wants_probabilities:
            learner = cast(Probable, self.learner)
            self._probabilities += map(learner.probabilities_of, learnt.margins.tolist())
        self.passed_by.seen = self._n - n_new
        self.passed_by.offer(learnt.x, learnt.classes, learnt.weights, learnt.numbers)
        if self._n >= self.seen.due:
            self.seen.advance(self.learner.looks, self._n)
        if self._n >= self._due:
            self._due = (self._n // self.every + 1) * self.every
            self.measure()
        elif len(self._labels) >= _BUFFER_LENGTH:
            self._score()
        # `note` refuses from this example on; always, if a metric uses probabilities.
        self._wake = min(
            self._due, self.seen.due, self.passed_by.next + 1, self._n + _BUFFER_LENGTH
        )
        if self.metrics.wants_probabilities:
            self._wake = 0

    def expect(self, predicted: list[Any]) -> None:
        """Score the next examples by earlier predictions, made when they came without a label.

        One for each of the next examples to be learnt; None before the first label.
        """
        self._expected = list(predicted)

    def without(self, numbers: np.ndarray, columns: np.ndarray | None) -> Changes:
        """Return what changes as the learner takes examples back, and keeps these columns."""
        return self.__dict__, {"passed_by": self.passed_by.without(numbers, columns)}

    def _score(self) -> None:
        """Count and score the buffered examples, and empty the buffers."""
        self._take_noted()
        if self._labels:
            total = sum(self._seconds) + self._batch_seconds
            self.rates.add(len(self._labels), total, self._seconds)
            # As in River's `evaluate.progressive_val_score`, an example without a prediction is not
            # scored: None, predicted before the first label, is no label that a metric counts.
            has_one = [one is not None for one in self._predicted]
            pairs = list(compress(zip(self._labels, self._predicted, strict=True), has_one))
            probabilities = list(compress(self._probabilities, has_one))
            self.metrics.update(pairs, self.score.count(pairs), probabilities)
            self._labels, self._predicted, self._probabilities, self._seconds = [], [], [], []
            self._batch_seconds = 0.0

    def measure(self) -> dict[str, Any]:
        """Measure now, and add a record to the history.

        Returns
        -------
        dict[str, Any]
            The record, with the names of `get`.

        """
        with self._held():
            self.history.add(self._measured(self.sample))
            return dict(self._last)

    def _measured(self, n_sampled: int) -> dict[str, Any]:
        """Measure the gap with up to `n_sampled` examples left out, and return the record."""
        self._score()
        self._is_thorough = n_sampled > self.sample or self.passed_by.next == NEVER
        self._last = record_of(self, self._n, n_sampled)
        return self._last

    def _is_current(self) -> bool:
        """Tell whether the last record is of the present model; `finish` changes it, too."""
        dual = self.learner.dual if self.learner.has_dual else None
        same: bool = self._last["n_examples"] == self._n and self._last.get("dual") == dual
        return same

    def get(self) -> dict[str, Any]:
        """Return the current values by name.

        If the model has changed since the last record, a new one is measured, with a larger sample
        for the gap than the records of the history have; it is not added to the history.

        Returns
        -------
        dict[str, Any]
            Some of `streamsvm.monitor.figures.FIGURES`, which has their meanings, and one key a
            metric. None: there is no such value. Learners without a dual have objective in the
            place of the gap, or n_drifts and last_drift if they have several models; learners whose
            vectors are merged have both; learners of whole sentences have their `figures` there,
            and no intervals.

        """
        with self._held():
            if not (self._is_thorough and self._is_current()):
                self._measured(max(self.sample + 1, 2 * self.passed_by.size))
            return self._last | self.rates.get()

    def conclude(self) -> dict[str, Any]:
        """Return what `get` returns, and make it the last record of the history.

        Returns
        -------
        dict[str, Any]
            The values, with the names of `get`.

        """
        with self._held():
            values = self.get()
            self.history.conclude(values, "n_examples")
        return values

    def last(self) -> dict[str, Any]:
        """Return the last record without measuring: safe while another thread learns.

        Returns
        -------
        dict[str, Any]
            The record, with the names of `get`; empty before the first one, which is made after
            `every` examples, or at once around a model that has learnt.

        """
        return dict(self._last)

    def follow(self, of_run: Callable[[], tuple[int, float]] | None) -> None:
        """Take the speed from a run that begins; None: it has ended. The run calls this.

        `of_run` returns its number of examples, and its seconds without compiling and waiting.
        """
        self.phase = "the run has ended" if of_run is None else "learning"
        self._score()
        self.rates.follow(of_run)

    def sampled(self) -> ReservoirSample | None:
        """Return the sample of examples left out; None: the problem is of the examples kept."""
        # A learner of two classes that meets a third one has other problems.
        return self.passed_by if self.learner.covers in ("stream", "window") else None

    def wanted(self) -> int:
        """Return how many examples to learn, at least 1, before the monitor is told of them."""
        return max(1, self.seen.due - self._n)

    # Tables, plots and metrics; what they need of other packages is imported by those who call them

    def report(self) -> str:
        """Return the current values as a readable table, with the meaning of each.

        Returns
        -------
        str
            The table, 120 columns wide.

        """
        from rich.console import Console

        out = StringIO()
        console = Console(file=out, width=120)
        console.print(self.panel())
        n, kept_every = len(self.history), self.history.kept_every
        thinned = "" if kept_every == 1 else " (thinned: older records were dropped)"
        every = f"{self.every * kept_every:,} examples{thinned}"
        console.print(f"history: {n:,} records, about one every {every}")
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"

    def panel(self) -> Any:
        """Return the current values as a table for Rich.

        Returns
        -------
        rich.table.Table
            A renderable.

        """
        return self._table(self.get())

    def live(self) -> Any:
        """Return a context in which the table of the last record is shown and kept up to date.

        Returns
        -------
        rich.live.Live
            The context.

        """
        from rich.live import Live

        def renderable() -> Any:
            return self._table(self.last())

        return Live(get_renderable=renderable, refresh_per_second=4, transient=True)

    def _table(self, values: Mapping[str, Any]) -> Any:
        from rich.markup import escape
        from rich.table import Table

        title = f"Tracking {type(self.learner).__name__}"
        table = Table(title=title, title_justify="left", box=None)
        table.add_column("", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
        table.add_column("meaning", overflow="fold")
        for name, value, meaning in self.explained(values):
            table.add_row(name, value, escape(meaning))
        return table

    def explained(self, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yield name, value in words and meaning of what is shown of a record."""
        for name, value in shown_of(values, self.covers).items():
            meaning = meaning_of(name)
            if name == "certificate":
                reason = self.certificate_reason
                chance = f"with {self.confidence:.0%} probability"
                meaning = reason if value is None else f"{meaning} {chance}: {reason}"
            if name == "gap":
                meaning = (
                    f"{meaning}, of {ABOUT[self.covers]}"
                    if value is not None
                    else NOT_OF_ALL.get(self.covers, "not measured yet")
                )
            yield name, shown(value), meaning

    def plot(self, folder: str | Path) -> list[Path]:
        """Write PNG plots of the history.

        Parameters
        ----------
        folder
            Where to; it is made if it does not exist.

        Returns
        -------
        list[Path]
            The paths of the files.

        Raises
        ------
        ImportError
            matplotlib is not installed; the message has the pip line.

        """
        from streamsvm.monitor.plots import write
        from streamsvm.monitor.series import charts

        return write(charts(self, self.history.records, (), self.history.most), Path(folder))

    def serve(
        self, port: int, host: str = "127.0.0.1", figures: Callable[[], Mapping[str, Any]] = dict
    ) -> Any:
        """Serve the last record as Prometheus gauges on http://host:port/metrics.

        Parameters
        ----------
        port
            The port; 0 takes a free one.
        host
            The address to listen on; by default only this machine reaches it. There is no password.
        figures
            Called at each request: counts of a run beside the record, by the names of
            `streamsvm.monitor.figures.OF_RUN`.

        Returns
        -------
        Server
            An object with ``close()`` and ``port``.

        Raises
        ------
        ImportError
            prometheus-client is not installed; the message has the pip line.

        """
        from streamsvm.monitor.prometheus import serve

        return serve(self, port, host, figures)

    @property
    def certificate_reason(self) -> str:
        """What the certificate is about, or why there is no certificate."""
        found = self.learner.certificate
        reason: str = found.reason
        if found.value is not None and self.covers != "kept":
            reason = _ONLY_KEPT.format(type(self.learner).__name__)
        if self.n_before:
            reason += f", since the monitor was attached, after {self.n_before:,} examples"
        return reason

    @property
    def covers(self) -> str:
        """What the gap is about: as of the learner, or "since" the monitor was attached."""
        covers: str = self.learner.covers
        # Of examples before it, the monitor knows only those that the learner keeps.
        return "since" if self.n_before and covers == "stream" else covers

    @property
    def about(self) -> dict[str, Any]:
        """What the figures are about: `certificate_reason`, `covers` and `confidence` by name.

        If the learner chooses its examples also `selection`, in words.
        """
        found = {
            "certificate_reason": self.certificate_reason,
            "covers": self.covers,
            "confidence": self.confidence,
        }
        waiting = self.learner.waiting
        return found if waiting is None else found | {"selection": waiting.in_words}

    @property
    def confusion(self) -> dict[tuple[Any, Any], int]:
        """The numbers of examples by label and predicted label: {(label, predicted): number}."""
        self._score()
        return dict(self.score.pairs)

    @property
    def recall(self) -> dict[Any, float]:
        """The share of the examples of each label that were predicted correctly."""
        self._score()
        return self.score.recall()

    @property
    def recall_bounds(self) -> dict[Any, Bounds]:
        """Their intervals by label: `low`, `high`, `recent_low`, `recent_high` and `change`.

        They hold for all labels, and at all moments at once, from when all labels have come.
        """
        self._score()
        return self.score.bounds()[2]

    # Copies

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all but the model as JSON values, and arrays by name, for checkpoints.

        ParameterError: one of the metrics keeps more than a confusion matrix.
        """
        self.metrics.check_can_be_kept()
        with self._held():
            self._score()
            sums = {name: getattr(self, name) for name in _SUMS}
            values = {"sums": sums, "seen": self.seen.state(), "last": self._last}
        values |= {"parameters": self._parameters(), "history": self.history.state()[0]}
        values["sample"], of_sample = self.passed_by.state()
        values["rates"], of_rates = self.rates.state()
        values |= {"score": self.score.state()[0], "metrics": self.metrics.state()}
        return values, of_sample | of_rates

    def restore(self, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue, before any example, from what `state` of another monitor returned.

        ParameterError: its parameters were others. ValueError, KeyError, TypeError: it is something
        else.
        """
        for name, value in self._parameters().items():
            if (kept := values["parameters"][name]) != value:
                raise ParameterError(
                    f"the checkpoint's monitor has {name}={kept!r}, this one {value!r}"
                )
        for name in _SUMS:
            setattr(self, name, values["sums"][name])
        self.seen.restore(values["seen"])
        self._last = values["last"]
        left = NamedArrays(arrays)
        self.history.restore(values["history"], {})
        self.passed_by.restore(values["sample"], left)
        self.rates.restore(values["rates"], left)
        self.score.restore(values["score"], {})
        self.metrics.restore(values["metrics"])

    def _parameters(self) -> dict[str, Any]:
        """Return what another monitor must have to continue from the state of this one."""
        return {
            "every": self.every,
            "sampled": self.passed_by.size,
            "most": self.history.most,
            "confidence": self.confidence,
            "horizon": self.horizon,
            "metrics": [type(metric).__name__ for metric in self.metrics.metrics],
        }

    def __copy__(self) -> TrackingMonitor:
        # As with learners, a shallow copy learns on its own: a learner reports to one monitor only.
        return copy.deepcopy(self)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the locks of the model, so that nothing is learnt meanwhile."""
        with contextlib.ExitStack() as held:
            for one in (self.model, self.learner):  # a wrapper's lock first
                held.enter_context(getattr(one, "lock", contextlib.nullcontext()))
            yield

    def _contents(self) -> dict[str, Any]:
        # A copy is in no run. Its learner is found in its model: wrappers pickle copies of theirs.
        left_out = {*_FORWARDED, "phase", "learner"}
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __deepcopy__(self, known: dict[int, Any]) -> TrackingMonitor:
        with self._held():
            contents = copy.deepcopy(self._contents(), known)
        copied = type(self).__new__(type(self))
        copied.__setstate__(contents)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        # At once, as for a wrapper of a model.
        with self._held():
            return copy.deepcopy(self._contents())

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__.update(contents)
        self.learner = learner_of(self.model)
        self._attach()
