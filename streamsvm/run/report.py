"""The progress of a run, and its final report."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from streamsvm.labels.class_labels import plain
from streamsvm.learners.bases.learner import Learner
from streamsvm.models.kernel import threads
from streamsvm.monitor.history import History
from streamsvm.monitor.score import Score
from streamsvm.monitor.watched import Reported
from streamsvm.support.kept import Kept


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None: the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    # macOS counts bytes, others kilobytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def largest(counts: Mapping[str, int], n: int) -> str:
    """Return the names of the n largest counts, as in ``a (12), b (3), ...``."""
    most = sorted(counts, key=lambda name: -counts[name])
    shown = ", ".join(f"{name} ({counts[name]:,})" for name in most[:n])
    return f"{shown}, ..." if most[n:] else shown


def _rate(rows: int, seconds: float) -> float:
    return rows / seconds if seconds > 0.0 else 0.0


@dataclass
class Progress:
    """The state of a run at one moment, for a screen; a record of its history holds the figures."""

    phase: str  # "learning", "finishing" or "end"
    epoch: int  # from 1
    rows: int  # read so far, in all epochs
    seconds: float
    accuracy: float
    balanced_accuracy: float | None  # None: there are no classes
    n_support_vectors: int | None  # None: the learner has none
    delta: float | None
    dual: float | None
    n_bad: int
    gap: float | None = None  # this and the next three: from the monitor's last record
    gap_high: float | None = None
    averaged_gap: float | None = None
    certificate: float | None = None
    compile_seconds: float = 0.0  # the part of `seconds` in which code was compiled
    wait_seconds: float = 0.0  # the part of `seconds` in which a stream had no events
    learnt: int | None = None  # of the rows, those that `accuracy` is of
    n_right: int | None = None  # of `n_scored` predictions; None: of sentences
    n_scored: int | None = None
    in_bags: bool = False  # right is what is in the bag

    @property
    def rows_per_second(self) -> float:
        """Rows a second since the start, without the time of compiling and of waiting."""
        return _rate(self.rows, self.seconds - self.compile_seconds - self.wait_seconds)

    def record(self) -> dict[str, Any]:
        """Return the figures for a history: the speed has the name that the monitor gives it."""
        found = {name: value for name, value in vars(self).items() if name != "in_bags"}
        return found | {"examples_per_second": self.rows_per_second}


@dataclass
class RunReport(Kept):
    """The final report of a run: counts, scores, times and memory."""

    # All others are filled in at the end.
    kept = ("rows", "learnt", "seconds", "missing_texts", "compile_seconds", "wait_seconds")

    rows: int = 0
    learnt: int = 0  # whose labels came; of them a selection, or `asked`, may have left some out
    scored: int = 0  # that `accuracy` is of: in the first epoch, with a prediction before the label
    taken: int = 0  # rows, and labels that came apart from them; `bad` are among these
    bad: dict[str, int] = field(default_factory=dict)
    dead_letters: str | None = None  # the file of those that could not be used, if there is one
    resumed: str | None = None  # the checkpoint that the run went on from, and where
    resumed_after: int | None = None  # how many examples an earlier process had taken
    late: dict[str, int] = field(default_factory=dict)  # `LateLabels.counts`
    forgotten: dict[str, int] = field(default_factory=dict)  # counts of requests to forget
    asked: dict[str, int] = field(default_factory=dict)  # counts of an `ActiveLearner`
    coverage: dict[str, float | None] = field(default_factory=dict)  # of `ConformalSets`
    comparison: dict[str, Any] = field(default_factory=dict)  # of `Compare`, with its `record`
    answers: dict[str, float | None] = field(default_factory=dict)  # of `Selective`
    scores_answers: bool = False  # the accuracy is of events that it asked for only
    missing: dict[str, int] = field(default_factory=dict)  # `missing_values`, and those of texts
    missing_of: int = 0  # examples in which the learner counted them: those not chosen, too
    missing_texts: dict[str, int] = field(default_factory=dict)  # of each text column of the run
    empty_columns: list[str] = field(default_factory=list)  # without a value in any row
    model_examples: int = 0  # that the model has learnt, in earlier runs as well
    clipped: dict[str, int] = field(default_factory=dict)  # the scaler's `n_clipped`
    source: dict[str, int] = field(default_factory=dict)  # counts of the source, if it has any
    number_texts: list[str] = field(default_factory=list)  # features whose texts are numbers
    text_findings: list[str] = field(default_factory=list)  # on texts that are no categories
    epochs: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0  # the part of `seconds` in which code was compiled
    wait_seconds: float = 0.0  # the part of `seconds` in which a stream had no events
    finish_seconds: float = 0.0
    finished: bool = False
    interrupted: bool = False
    error: str | None = None  # that ended the run early
    accuracy: float = 0.0
    balanced_accuracy: float | None = 0.0  # None: there are no classes
    # Intervals at all moments at once, with 95 %; None: nothing was scored, or it were sentences.
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    balanced_accuracy_low: float | None = None
    balanced_accuracy_high: float | None = None
    recall_intervals: dict[str, list[float]] = field(default_factory=dict)  # [low, high], by label
    of_late: dict[str, Any] = field(default_factory=dict)  # see `_set_intervals`
    labels: dict[str, int] = field(default_factory=dict)
    in_bags: bool = False  # right is what is in the bag: then there are no figures by label
    recall: dict[str, float] = field(default_factory=dict)  # share predicted correctly, by label
    confusion: list[list[Any]] = field(default_factory=list)  # [label, predicted, number], ...
    tokens: int | None = None  # of sentences, as are the next two; None: there are none
    sentence_accuracy: float | None = None  # share of sentences whose labels were all right
    sentence_accuracy_low: float | None = None
    sentence_accuracy_high: float | None = None
    chunk_f1: float | None = None  # None: no label begins a chunk
    meanings: dict[str, float] = field(default_factory=dict)  # `MeaningScore.as_dict`
    n_support_vectors: int | None = None
    delta: float | None = None
    tau: float | None = None  # at the optimum of the examples kept, delta is at most this
    dual: float | None = None
    chosen: str | None = None  # scale, gamma and C, if the learner has tried several
    selection: str | None = None  # how many examples were chosen to be learnt, and how
    drifts: str | None = None  # those that the learner has noticed, if it looks for them
    memory_bytes: int = 0
    memory_parts: dict[str, int] = field(default_factory=dict)  # of the model, in bytes
    cache_limit: int | None = None  # the bytes that cached kernel rows may take at most
    n_threads: int = 1  # that computed kernel values
    peak_bytes: int | None = None  # of the whole process; None: the system does not tell
    counters: dict[str, int] = field(default_factory=dict)
    monitor: dict[str, Any] = field(default_factory=dict)  # last record, certificate's reason
    history: History = field(default_factory=History, repr=False)

    def __post_init__(self) -> None:
        """Begin without a schema: the last one that `count_texts` saw, and its text columns."""
        self._texts: tuple[Any, list[tuple[int, str]]] = (None, [])

    @property
    def own_seconds(self) -> float:
        """Seconds without those of compiling, and of waiting for events."""
        return self.seconds - self.compile_seconds - self.wait_seconds

    @property
    def rows_per_second(self) -> float:
        """Rows a second, without the time of compiling and of waiting."""
        return _rate(self.rows, self.own_seconds)

    def count_texts(self, features: Any) -> None:
        """Count in which rows a text column has no text, from the row of its first one on.

        The metadata of one-hot columns of `features`, those of a batch, name the text column.
        """
        schema, texts = self._texts
        if schema is None or not features.schema.equals(schema, check_metadata=True):
            # Once for a schema: there may be thousands of columns, and batches of one row.
            named = (
                (i, (one.metadata or {}).get(b"one_hot")) for i, one in enumerate(features.schema)
            )
            texts = [(i, name.decode()) for i, name in named if name is not None]
            self._texts = features.schema, texts
        has_text: dict[str, Any] = {}
        for place, name in texts:
            has_text[name] = has_text.get(name, 0.0) + features.column(place).to_numpy(False)
        for name in dict.fromkeys([*self.missing_texts, *has_text]):
            rows = has_text.get(name, np.zeros(features.num_rows)) > 0.0
            if name not in self.missing_texts:
                if not rows.any():
                    continue
                self.missing_texts[name], rows = 0, rows[rows.argmax() :]
            self.missing_texts[name] += int(np.count_nonzero(~rows))

    def _set_confusion(self, score: Score) -> None:
        """Set `labels`, `confusion` and `recall`, where labels are known."""
        self.labels = {}
        seen = score.seen
        if score.in_bags:
            return
        recall, pairs = score.recall(), sorted(score.pairs.items(), key=repr)
        self.labels = {str(plain(y)): n for y, n in sorted(seen.items(), key=repr)}
        self.recall = {str(plain(y)): recall[y] for y in seen if y in recall}
        self.confusion = [[str(plain(y)), str(plain(p)), n] for (y, p), n in pairs]

    def _set_intervals(self, score: Score) -> None:
        """Set the intervals by the counts of predictions.

        `of_late` has the number `n` of predictions of late, their `accuracy`, the `intervals`
        of all figures by name, and which have `changed`: -1 if one is surely lower than since the
        start, 1 if it is higher.
        """
        if not score.totals:
            return
        accuracy, balanced, of_label = score.bounds()
        recall = {str(plain(label)): bounds for label, bounds in of_label.items()}
        self.accuracy_low, self.accuracy_high = accuracy[:2]
        n, right = score.recent
        named = {"accuracy": accuracy}
        if balanced is not None:
            self.balanced_accuracy_low, self.balanced_accuracy_high = balanced[:2]
            named["balanced accuracy"] = balanced
        self.recall_intervals = {label: list(bounds[:2]) for label, bounds in recall.items()}
        named |= {f"recall of {label}": bounds for label, bounds in recall.items()}
        self.of_late = {
            "n": n,
            "accuracy": right / n if n else None,
            "intervals": {name: list(bounds[2:]) for name, bounds in named.items()},
            "changed": {name: bounds.change for name, bounds in named.items() if bounds.change},
        }

    def take_from(self, learner: Reported) -> None:
        """Fill in what a learner says about itself; what it does not have is None, 0 or empty."""
        for name in ("n_support_vectors", "chosen", "drifts", "delta", "tau"):
            setattr(self, name, getattr(learner, name))
        # Some have it only with a kernel.
        self.dual = getattr(learner, "dual", None)
        candidates = learner.waiting
        self.selection = None if candidates is None else candidates.in_words
        self.memory_bytes, self.memory_parts = learner.memory_usage, learner.memory_parts
        self.cache_limit = learner.cache_limit
        self.n_threads = threads.n_used(learner.n_jobs)
        self.counters = learner.counters
        self.missing = {str(x): n for x, n in learner.missing_values.items()}
        self.missing |= {name: n for name, n in self.missing_texts.items() if n}
        self.model_examples = learner.n_examples
        self.missing_of = self.model_examples if candidates is None else candidates.n_seen
        if isinstance(learner, Learner) and learner.is_sparse:
            # Of sparse rows nothing is counted: only of those before.
            self.missing_of = learner.schema.missing.n_examples

    def take_score(self, score: Score) -> None:
        """Fill in what was counted of predictions."""
        self.scored = score.n
        vars(self).update(score.accuracies())
        self._set_confusion(score)
        self._set_intervals(score)
        if score.of_sentences is not None:
            vars(self).update(score.of_sentences.in_report())

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values: the fields by name, without the history, and speed."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "history"}
        return found | {"examples_per_second": self.rows_per_second}
