"""The tracking monitor: how far a model is from the batch optimum, while it learns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.monitor import gap
from streamsvm.monitor.history import History
from streamsvm.monitor.rates import Rates, Scores
from streamsvm.monitor.sample import NEVER, PassedBy
from streamsvm.monitor.watched import counts_of, learner_of, work_of

_PASSED_BY = 100
_FOR_OBJECTIVE = 500
_MOST_PENDING = 1000
_LENT = (
    "learn_one",
    "learn_many",
    "predict_one",
    "predict_many",
    "predict_proba_one",
    "predict_proba_many",
)


class TrackingMonitor:
    """Follows a learner: certificate, measured gap, accuracy and speed, moment by moment.

    It attaches itself to the learner, so that examples are counted however they come: through the
    monitor, the model, the pipeline it is in, or a run.

    Parameters
    ----------
    model
        A learner of ours, or a River pipeline that ends in one. Of linear learners by stochastic
        gradients, which have no dual, the primal objective is followed, on a sample of the stream.
    every
        Examples between two records, at least 1; 1000 by default, at which the monitor costs two to
        four microseconds an event, and 1-3 % of a replay. A batch is recorded at its end.
    metrics
        River metrics, one or several, updated with predictions from before each label was learnt.
    sample
        How many examples that were left out are looked at in each measurement of the gap; 12 by
        default. Their kernel values are the monitor's main cost.
    most
        Most records in the history; 2000 by default. Beyond, every second one is dropped, and the
        report says so.
    seed
        Of the draws of the sample.

    Attributes
    ----------
    history
        The records: ``to_arrow()``, ``write_parquet(path)``, ``write_json_lines(path)``.

    Raises
    ------
    ParameterError
        The model is none of ours, or a parameter is out of range.

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
        model: Any,
        every: int = 1000,
        metrics: Any = None,
        sample: int = 12,
        most: int = 2000,
        seed: int = 0,
    ) -> None:
        for name, value, least in (("every", every, 1), ("sample", sample, 1), ("most", most, 2)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ParameterError(f"{name}={value!r}: use a whole number of at least {least}")
        self.model = model
        self.learner = learner_of(model)
        self.every, self.sample = every, sample
        self.history = History(most)
        self._rates = Rates()
        self._scores = Scores(metrics)
        # Which must be known before the calibration learns each example.
        self.asks_probabilities = self._scores.wants_probabilities
        self._has_dual = self.learner.has_dual
        size = max(_PASSED_BY if self._has_dual else _FOR_OBJECTIVE, sample)
        self._passed_by = PassedBy(size, getattr(self.learner, "window", None), seed)
        # Whether the problem is about examples that the model does not keep.
        self._leaves_out = not self._has_dual or self.learner.covers != "kept"
        if not self._leaves_out:
            self._passed_by.next = NEVER
        self._n = 0
        self._measured_at = 0
        self._gap_sum = 0.0
        self._due = every
        self._wake = 0
        # Flat lists: thousands of small objects would wake the garbage collector.
        self._labels: list[Any] = []
        self._predicted: list[Any] = []
        self._expected: list[Any] = []
        self._probabilities: list[dict[Any, float]] = []
        self._noted: list[Any] = []  # label, prediction and seconds, in turns
        self._seconds: list[float] = []  # of each event, or of one example of each batch
        self._batch_seconds = 0.0  # of the other examples of batches
        self._last: dict[str, Any] = {}
        self._is_thorough = False
        self._attach()

    # Learning through the monitor

    def _attach(self) -> None:
        """Watch the learner; lend the model's methods themselves, which cost nothing more."""
        self.learner.observer = self
        for name in _LENT:
            if hasattr(self.model, name):
                setattr(self, name, getattr(self.model, name))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Stand for the methods that `_attach` lends."""

    # Watching

    def learnt(
        self,
        x: np.ndarray,
        signs: np.ndarray,
        labels: list[Any],
        predicted: list[Any],
        margins: np.ndarray,
        weights: np.ndarray,
        numbers: np.ndarray,
        seconds: float,
    ) -> None:
        """Take note of examples that the learner has just learnt (it calls this)."""
        # On every event: only what cannot wait.
        self._take_noted()
        n = self._n + len(labels)
        self._n = n
        if self._expected:
            predicted = self._expected[: len(labels)]
            del self._expected[: len(labels)]
        self._labels += labels
        self._predicted += predicted
        self._seconds.append(seconds)
        if n >= self._wake or len(labels) > 1:
            self._attend(x, signs, margins, weights, numbers)

    def note(self, label: Any, predicted: Any, seconds: float) -> bool:
        """Take note of one example like `learnt`, if that is all; False: nothing was done."""
        if self._n + 1 >= self._wake or self._expected:
            return False
        # All at once: an interruption must not leave a label without a prediction.
        self._noted += (label, predicted, seconds)
        self._n += 1
        return True

    def _take_noted(self) -> None:
        """Put what was noted behind what is pending."""
        noted = self._noted
        labels, predicted, seconds = noted[0::3], noted[1::3], noted[2::3]
        self._noted = []
        self._labels += labels
        self._predicted += predicted
        self._seconds += seconds

    def _attend(
        self,
        x: np.ndarray,
        signs: np.ndarray,
        margins: np.ndarray,
        weights: np.ndarray,
        numbers: np.ndarray,
    ) -> None:
        """Do what is due with the examples that were just learnt."""
        n_new = len(signs)
        if n_new > 1:
            self._batch_seconds += self._seconds[-1]
            self._seconds[-1] /= n_new
            self._batch_seconds -= self._seconds[-1]
        if self._scores.wants_probabilities:
            self._probabilities += map(self.learner.probabilities_of, margins.tolist())
        self._passed_by.seen = self._n - n_new
        self._passed_by.offer(x, signs, weights, numbers)
        if self._n >= self._due:
            self._due = (self._n // self.every + 1) * self.every
            self.measure()
        elif len(self._labels) >= _MOST_PENDING:
            self._score()
        # When the hot path must stop next: at each event, for probabilities.
        self._wake = min(self._due, self._passed_by.next + 1, self._n + _MOST_PENDING)
        if self._scores.wants_probabilities:
            self._wake = 0

    def expect(self, predicted: list[Any]) -> None:
        """Score the next examples by these predictions, made when their labels were unknown.

        None, made before any label, counts as False, as in ``predict_one``.
        """
        self._expected = [False if guess is None else guess for guess in predicted]

    def turn_signs(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Take note that signs so far are others from now on (the learner calls this)."""
        self._passed_by.turn_signs(change)

    def _score(self) -> None:
        """Count and score what was learnt since the last time."""
        self._take_noted()
        if self._labels:
            total = sum(self._seconds) + self._batch_seconds
            self._rates.add(len(self._labels), total, self._seconds)
            self._scores.add(self._labels, self._predicted, self._probabilities)
            self._labels, self._predicted, self._probabilities, self._seconds = [], [], [], []
            self._batch_seconds = 0.0

    def measure(self) -> dict[str, Any]:
        """Measure now, add a record to the history, and return it."""
        self.history.add(self._measured(self.sample))
        return dict(self._last)

    def _measured(self, n_sampled: int) -> dict[str, Any]:
        """Measure, with so many of the examples that were left out, and return the record."""
        self._score()
        self._is_thorough = n_sampled > self.sample or not self._leaves_out
        record: dict[str, Any] = {"n_examples": self._n}
        if self._has_dual:
            record |= counts_of(self.learner)
            record |= self._gaps(n_sampled)
        else:
            record["objective"] = self._objective()
        certificate = self.learner.certificate
        record["certificate"] = certificate.value
        papers = getattr(self.learner, "papers_certificate", None)
        record["certificate_papers"] = papers() if papers is not None else None
        record["kappa"] = self.learner.kappa
        record["delta"] = getattr(self.learner, "delta", None)
        record |= self._scores.get()
        record |= self._rates.get()
        record |= work_of(self.learner)
        self._last = record
        return record

    def get(self) -> dict[str, Any]:
        """Return the current values by name; None where a value is absent.

        A measurement is made if examples came since the last one, and of the gap with a larger
        sample than those of the history; it is not added there. Keys: n_examples,
        n_support_vectors, n_free, n_bounded, dual, gap, gap_kept, gap_discarded, gap_low, gap_high,
        averaged_gap (of linear learners by gradients, in the place of all these, objective),
        certificate, certificate_papers, kappa, delta, accuracy, a key a metric,
        examples_per_second, latency_p50 and latency_p99 (seconds an example), kernel_values,
        cache_hits (a share), memory_bytes.
        """
        if not (self._is_thorough and self._last["n_examples"] == self._n):
            self._measured(max(self.sample + 1, 2 * self._passed_by.size))
        return dict(self._last)

    def last(self) -> dict[str, Any]:
        """Return the last record without measuring: safe while another thread learns."""
        return dict(self._last)

    def _gaps(self, n_sampled: int) -> dict[str, Any]:
        """Return the measured gap and its parts, over the sum of the C_i that they are about."""
        names = ("gap", "gap_kept", "gap_discarded", "gap_low", "gap_high", "averaged_gap")
        if not self.learner.n_examples:
            return dict.fromkeys(names)
        kept = self.learner.kept_gap()
        left_out = self._left_out(kept.shift, n_sampled)
        box = kept.box + left_out.box
        if not box > 0.0:
            return dict.fromkeys(names)
        total = (kept.total + left_out.total) / box
        since = self._n - self._measured_at
        self._gap_sum += since * total
        self._measured_at = self._n
        return {
            "gap": total,
            "gap_kept": kept.total / box,
            "gap_discarded": left_out.total / box,
            "gap_low": (kept.total + left_out.low) / box,
            "gap_high": (kept.total + left_out.high) / box,
            "averaged_gap": self._gap_sum / self._n,
        }

    def _objective(self) -> float | None:
        """Return the primal objective, with the losses of a uniform sample of all examples."""
        every = np.zeros(0, np.int64)
        d = len(self.learner.feature_names)
        x, signs, weights = self._passed_by.draw(self._passed_by.size, d, every)
        return self.learner.objective_of(x, signs, weights) if len(signs) else None

    def _left_out(self, shift: float, n_sampled: int) -> gap.Discarded:
        """Estimate the losses of examples that the model is about, but does not keep."""
        learner = self.learner
        if not self._leaves_out:
            return gap.NONE_DISCARDED
        window = learner.window
        n_about = learner.n_examples if window is None else min(window, learner.n_examples)
        if window is not None:
            self._passed_by.forget_old()
        kept = np.sort(learner.kept_numbers())
        x, signs, weights = self._passed_by.draw(n_sampled, len(learner.feature_names), kept)
        if not len(signs):
            return gap.NONE_DISCARDED
        boxes = learner.boxes_now(signs, weights)
        margins = learner.margins_of(x) + shift
        losses = boxes * learner.losses_of(signs, margins)
        return gap.discarded(losses, boxes, max(0, n_about - len(kept)))

    # Showing

    @property
    def certificate_reason(self) -> str:
        """What the certificate covers, or why there is none."""
        reason: str = self.learner.certificate.reason
        return reason

    def report(self) -> str:
        """Return a readable table of the current values, with what each means."""
        from streamsvm.monitor.report import text

        return text(self)

    def panel(self) -> Any:
        """Return the table as a Rich renderable."""
        from streamsvm.monitor.report import panel

        return panel(self, self.get())

    def live(self) -> Any:
        """Return a context in which the table is shown and kept up to date (a Rich Live)."""
        from streamsvm.monitor.report import live

        return live(self)

    def plot(self, folder: str | Path) -> list[Path]:
        """Write PNG plots of the history into a folder, and return their paths.

        Raises
        ------
        ImportError
            matplotlib is not installed; the message has the pip line.

        """
        from streamsvm.monitor.plots import write

        return write(self, Path(folder))

    def serve(self, port: int, host: str = "127.0.0.1") -> Any:
        """Serve the last record as Prometheus gauges on http://host:port/metrics.

        Returns
        -------
        An object with ``close()``.

        Raises
        ------
        ImportError
            prometheus-client is not installed; the message has the pip line.

        """
        from streamsvm.monitor.prometheus import serve

        return serve(self, port, host)

    # Copies

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _LENT}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        # Older ones have neither.
        self._noted, self.asks_probabilities = [], contents["_scores"].wants_probabilities
        self.__dict__.update(contents)
        self._attach()
