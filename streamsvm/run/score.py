"""The score of a run: what was predicted before each label, and how often each label was learnt."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from river import metrics

from streamsvm.labels.label_column import Pairs
from streamsvm.model_files.json_values import as_json
from streamsvm.monitor.hits import NO_CANDIDATE, Hits
from streamsvm.monitor.rates import fill_matrix, pairs_of


class SentenceScore(Protocol):
    """What counts predictions of whole sentences."""

    has_labels: bool

    @property
    def accuracy(self) -> float:
        """The share that was right."""

    def in_report(self) -> dict[str, Any]:
        """Return the fields of a report that it fills in."""


class Score:
    """Counts predictions, each with the label that was learnt after it.

    `of_sentences` counts those of whole sentences, None: predictions are of rows. `confusion` is
    River's matrix of labels and predictions, `hits` has what intervals need, and `seen` how often
    each label was learnt.
    """

    def __init__(self, of_sentences: SentenceScore | None = None) -> None:
        self.of_sentences, self.hits = of_sentences, Hits()
        self.confusion = metrics.ConfusionMatrix()
        self._accuracy = metrics.Accuracy(cm=self.confusion)
        self._balanced = metrics.BalancedAccuracy(cm=self.confusion)
        self.seen: Counter[Any] = Counter()

    def add(self, pairs: Pairs, is_scored: bool = True) -> None:
        """Count labels that were learnt and, if it `is_scored`, what was predicted before."""
        for y, p, count in pairs.counts():
            if is_scored and p is not None:
                self.confusion.update(y, p, count)
            self.seen[y] += count
        if is_scored:
            pairs.add_to(self.hits if self.of_sentences is None else self.of_sentences)

    @property
    def n_scored(self) -> int:
        """How many predictions were counted."""
        return int(sum(self.confusion.sum_row.values()))

    @property
    def in_bags(self) -> bool:
        """Whether a prediction is right if it is among the candidates: labels are not known."""
        return NO_CANDIDATE in self.confusion.sum_row

    def accuracies(self) -> dict[str, Any]:
        """Return the accuracy, and the mean over the classes, which meanings lack."""
        score = self.of_sentences
        if score is not None and not score.has_labels:
            return {"accuracy": score.accuracy, "balanced_accuracy": None}
        balanced = None if self.in_bags else self._balanced.get()
        found = {"accuracy": self._accuracy.get(), "balanced_accuracy": balanced}
        return found | {"in_bags": self.in_bags}

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the counts as JSON values, for `restore`; there are no arrays."""
        values: dict[str, Any] = {
            "pairs": [[_plain(y), _plain(p), n] for y, p, n in pairs_of(self.confusion)],
            "block_starts": self.hits.state(_plain),
            "seen": [[_plain(y), n] for y, n in self.seen.items()],
            "of_sentences": None if self.of_sentences is None else vars(self.of_sentences),
        }
        return values, {}

    def restore(self, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        fill_matrix(self.confusion, values["pairs"])
        self.seen.update({y: n for y, n in values["seen"]})
        if self.of_sentences is None:
            self.hits.resume(values["pairs"], values["block_starts"])
        else:
            vars(self.of_sentences).update(values["of_sentences"])


def _plain(label: Any) -> Any:
    return as_json(label, "the label")
