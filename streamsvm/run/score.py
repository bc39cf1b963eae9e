"""The score of a run: what was predicted before each label, and how often each label was learnt."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from streamsvm.labels.label_column import Pairs
from streamsvm.model_files.json_values import as_json
from streamsvm.monitor.hits import Hits


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

    `of_sentences` counts those of whole sentences, None: predictions are of rows. `hits` counts
    labels and predictions, of sentences those of tokens, and `seen` has how often each label was
    learnt.
    """

    def __init__(self, of_sentences: SentenceScore | None = None) -> None:
        self.of_sentences, self.hits = of_sentences, Hits(of_sentences is None)
        self.seen: Counter[Any] = Counter()

    def add(self, pairs: Pairs, is_scored: bool = True) -> None:
        """Count labels that were learnt and, if it `is_scored`, what was predicted before."""
        counts = pairs.counts()
        for y, _, count in counts:
            self.seen[y] += count
        if is_scored:
            pairs.add_to(self.hits if self.of_sentences is None else self.of_sentences)
        if is_scored and self.of_sentences is not None:
            self.hits.add(found for found in counts if found[1] is not None)

    def accuracies(self) -> dict[str, Any]:
        """Return the accuracy, and the mean over the classes, which meanings lack."""
        score = self.of_sentences
        if score is not None and not score.has_labels:
            return {"accuracy": score.accuracy, "balanced_accuracy": None}
        hits = self.hits
        balanced = None if hits.in_bags else hits.balanced_accuracy or 0.0
        found = {"accuracy": hits.accuracy or 0.0, "balanced_accuracy": balanced}
        return found | {"in_bags": hits.in_bags}

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the counts as JSON values, for `restore`; there are no arrays."""
        values = self.hits.state(_plain) | {
            "seen": [[_plain(y), n] for y, n in self.seen.items()],
            "of_sentences": None if self.of_sentences is None else vars(self.of_sentences),
        }
        return values, {}

    def restore(self, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from what `state` returned."""
        self.hits.resume(values)
        self.seen.update({y: n for y, n in values["seen"]})
        if self.of_sentences is not None:
            vars(self.of_sentences).update(values["of_sentences"])


def _plain(label: Any) -> Any:
    return as_json(label, "the label")
