"""How many predictions were right, and intervals of accuracy and recall that hold at all moments.

An interval is of the mean, over the predictions so far, of the probability that each had of being
right given all that was counted before it: see `streamsvm.confidence.sequence`. All that is needed
are counts, at the moment and at the starts of the last blocks.

"Of late" begins with the last block of 1,000 predictions but one. Block k, from 0, has an interval
that fails with probability .05 / ((k + 1) (k + 2)); together all fail with .05. Those of the
recall of K classes fail with a K-th part, from when all K have come.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from streamsvm.confidence.sequence import share_interval

NO_CANDIDATE = "(not in the bag)"
"""What a prediction that is not in a bag of candidates is compared with: the label is not known.

Where it is, there are no figures by label: none of those that were missed is known.
"""

BLOCK = 1000
"""So many predictions are in a block."""

LEVEL = 0.95

MOST_CLASSES = 50
"""Of more classes a record has no intervals of recall: they would take longer than learning."""


def recent_error(block: Any) -> Any:
    """Return with which probability an interval of late fails that begins with a block, from 0."""
    return (1.0 - LEVEL) / ((block + 1) * (block + 2))


class Bounds(NamedTuple):
    """The interval of a share since the start, and that of late."""

    low: float
    high: float
    recent_low: float
    recent_high: float

    @property
    def change(self) -> int:
        """-1: of late the share is lower than since the start, 1: higher, 0: it may be the same."""
        return int(self.recent_low > self.high) - int(self.recent_high < self.low)


class _Start(NamedTuple):
    """The counts at the start of a block."""

    n: int
    right: int
    n_of: dict[Any, int]  # by label
    right_of: dict[Any, int]


class SentenceScore(Protocol):
    """What counts predictions of whole sentences."""

    has_labels: bool

    @property
    def accuracy(self) -> float:
        """The share that was right."""

    def in_report(self) -> dict[str, Any]:
        """Return the fields of a report that it fills in."""


class Score:
    """Counts predictions, each with the label that was learnt after it: all, by label, and of late.

    `pairs` has the number of predictions by (label, prediction), and `seen` how often each label
    came to `add`. `of_sentences` counts those of whole sentences. Without `has_intervals`, none are
    shown: tokens of a sentence are predicted together, not one after the other.
    """

    # A run and its monitor count apart. The run's predictions are those of a wrapper, also of rows
    # that it does not ask for, of the first epoch, compared with the true labels if there are any;
    # the monitor's those of its learner in all epochs, compared with what was learnt, also without
    # a run, and from when the monitor was attached.

    def __init__(
        self, has_intervals: bool = True, of_sentences: SentenceScore | None = None
    ) -> None:
        self.has_intervals, self.of_sentences = has_intervals, of_sentences
        self.recall_bounds: dict[Any, Bounds] = {}  # as of the last `figures`
        self.seen: Counter[Any] = Counter()
        self.n = self.right = 0
        self.pairs: Counter[tuple[Any, Any]] = Counter()
        self.n_of: Counter[Any] = Counter()
        self.right_of: Counter[Any] = Counter()
        self._starts = [_Start(0, 0, {}, {})]

    @property
    def _room(self) -> int:
        """How many predictions to count, at most, before the next block starts."""
        return BLOCK - self.n % BLOCK

    def add(self, pairs: Any, is_scored: bool = True) -> None:
        """Count the labels of `labels.label_column.Pairs` and, if it `is_scored`, the predictions.

        Rows may have none: before the first label nothing is predicted.
        """
        of_sentences = self.of_sentences
        parts = [pairs] if of_sentences is not None else pairs.scored_parts(self._room, BLOCK)
        for part in parts:
            counts = part.counts()
            for y, _, n in counts:
                self.seen[y] += n
            if is_scored:
                self._add(found for found in counts if found[1] is not None)
        if is_scored and of_sentences is not None:
            pairs.add_to(of_sentences)

    def count(self, pairs: list[tuple[Any, Any]]) -> Counter[tuple[Any, Any]]:
        """Count (label, prediction) of rows; return how often each came."""
        found: Counter[tuple[Any, Any]] = Counter()
        start = 0
        while start < len(pairs):
            stop = start + self._room
            part, start = Counter(pairs[start:stop]), stop
            self._add((y, p, n) for (y, p), n in part.items())
            found.update(part)
        return found

    def _add(self, counts: Iterable[tuple[Any, Any, int]]) -> None:
        """Count predictions, as (label, prediction, how often); of rows at most `_room`."""
        before = self.n
        self._count(counts)
        if self.n > before and self.n % BLOCK == 0:
            self._starts = [self._starts[-1], self._start()]

    def _count(self, counts: Iterable[tuple[Any, Any, int]]) -> None:
        for label, predicted, n in counts:
            right = n if label == predicted else 0
            self.n += n
            self.right += right
            self.pairs[label, predicted] += n
            self.n_of[label] += n
            self.right_of[label] += right

    def _start(self) -> _Start:
        return _Start(self.n, self.right, dict(self.n_of), dict(self.right_of))

    @property
    def totals(self) -> dict[str, int]:
        """`n_right` of `n_scored` predictions; empty before the first one, and of tokens."""
        return {"n_right": self.right, "n_scored": self.n} if self.n and self.has_intervals else {}

    @property
    def accuracy(self) -> float | None:
        """The share that was right; None before the first prediction."""
        return self.right / self.n if self.n else None

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean over the labels; None if there are none."""
        shares = self.recall().values()
        # An exact sum: labels may have another order after a checkpoint.
        return math.fsum(shares) / len(shares) if shares else None

    @property
    def in_bags(self) -> bool:
        """Whether a prediction is right if it is among the candidates: labels are not known."""
        return NO_CANDIDATE in self.n_of

    @property
    def recent(self) -> tuple[int, int]:
        """How many predictions there were of late, and how many of them were right."""
        return self.n - self._starts[0].n, self.right - self._starts[0].right

    def recall(self) -> dict[Any, float]:
        """Return the share of the predictions of each label that were right."""
        return {label: self.right_of[label] / self.n_of[label] for label in self._labels()}

    def _labels(self) -> list[Any]:
        """Return the labels that came; none if some are not known."""
        return [] if self.in_bags else list(self.n_of)

    def bounds(self, most: int | None = None) -> tuple[Bounds, Bounds | None, dict[Any, Bounds]]:
        """Return the intervals of accuracy, balanced accuracy and of the recall of each label.

        The last two are left out if there are no labels, or more than `most`.
        """
        labels = self._labels()
        if most is not None and len(labels) > most:
            labels = []
        start, k = self._starts[0], max(1, len(labels))
        n = np.array([self.n, *(self.n_of[y] for y in labels)])
        right = np.array([self.right, *(self.right_of[y] for y in labels)])
        n_before = np.array([start.n, *(start.n_of.get(y, 0) for y in labels)])
        right_before = np.array([start.right, *(start.right_of.get(y, 0) for y in labels)])
        shares = np.array([1.0, *[1.0 / k] * len(labels)])
        errors = np.stack([shares * (1.0 - LEVEL), shares * recent_error(start.n // BLOCK)])
        low, high = share_interval(
            np.stack([right, right - right_before]), np.stack([n, n - n_before]), 1.0 - errors
        )
        found = [Bounds(*row) for row in np.stack([low, high], axis=1).reshape(4, -1).T.tolist()]
        if not labels:
            return found[0], None, {}
        # A label that did not come of late may have any recall, from 0 to 1: another mean, of the
        # labels that came, would differ where nothing changed.
        columns = np.array(found[1:]).T.tolist()
        # Exact sums: labels may have another order after a checkpoint.
        balanced = Bounds(*(math.fsum(column) / len(column) for column in columns))
        return found[0], balanced, dict(zip(labels, found[1:], strict=True))

    def accuracies(self) -> dict[str, Any]:
        """Return the accuracy, and the mean over the classes, which meanings lack."""
        score = self.of_sentences
        if score is not None and not score.has_labels:
            return {"accuracy": score.accuracy, "balanced_accuracy": None}
        balanced = None if self.in_bags else self.balanced_accuracy or 0.0
        found = {"accuracy": self.accuracy or 0.0, "balanced_accuracy": balanced}
        return found | {"in_bags": self.in_bags}

    def figures(self) -> dict[str, float | None]:
        """Return the values of a record, by name; those of recall, by label, are `recall_bounds`.

        None before the first prediction. ``accuracy_recent`` is of the predictions of late, as its
        interval is.
        """
        n, right = self.recent
        values: dict[str, float | None] = {
            "accuracy": self.accuracy,
            "accuracy_recent": right / n if n else None,
            "balanced_accuracy": self.balanced_accuracy,
        }
        if not self.has_intervals:
            return values
        accuracy, balanced, self.recall_bounds = self.bounds(MOST_CLASSES)
        for name, bounds in (("accuracy", accuracy), ("balanced_accuracy", balanced)):
            is_known = bounds is not None and self.n > 0
            for end in Bounds._fields:
                values[f"{name}_{end}"] = getattr(bounds, end) if is_known else None
        return values | {"accuracy_change": accuracy.change if self.n else None}

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all counts by name, for `restore`; there are no arrays."""
        starts = [
            [s.n, s.right, [[y, n, s.right_of.get(y, 0)] for y, n in s.n_of.items()]]
            for s in self._starts
        ]
        return {
            "pairs": [[y, p, n] for (y, p), n in self.pairs.items()],
            "block_starts": starts,
            "seen": [[y, n] for y, n in self.seen.items()],
            "of_sentences": None if self.of_sentences is None else vars(self.of_sentences),
        }, {}

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        self._count(values["pairs"])
        self._starts = [
            _Start(n, right, {y: k for y, k, _ in of}, {y: k for y, _, k in of})
            for n, right, of in values["block_starts"]
        ]
        self.seen.update({y: n for y, n in values["seen"]})
        if self.of_sentences is not None:
            vars(self.of_sentences).update(values["of_sentences"])


def band(column: Callable[[str], np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the interval of a column of records, if they have it, or the counts for it.

    `column` returns the values of all records by name, NaN where there is none.
    """
    low, high = column(f"{name}_low"), column(f"{name}_high")
    if name == "accuracy" and np.isnan(low).all():
        n = column("n_scored")
        low, high = share_interval(np.nan_to_num(column("n_right")), np.nan_to_num(n))
        low[np.isnan(n)] = np.nan
    return (low, high) if (high > low).any() else None
