"""Counts of predicted meanings: how many are among the candidates, and how many are right."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from streamsvm.structured.chunks import Shares
from streamsvm.structured.parser.meanings import Meaning


class MeaningScore(Shares):
    """Counts sentences, and the meanings predicted for them, as a stream goes on.

    Precision, recall and F1 are of the sentences whose right meaning is known.

    Examples
    --------
    >>> from streamsvm.structured import MeaningScore
    >>> score = MeaningScore()
    >>> kick, steal = ("kick", "pink4"), ("steal", "pink4")
    >>> score.update(4, [kick, steal], steal, kick)
    >>> score.update(3, [kick], kick, None)
    >>> score.among, score.precision, score.recall, score.f1
    (1.0, 0.0, 0.0, 0.0)

    """

    has_labels = False

    def __init__(self) -> None:
        super().__init__()
        self.n_sentences = self.n_words = self.n_said = self.n_with_bag = self.n_among = 0

    def update(
        self,
        n_words: int,
        candidates: Collection[Any],
        truth: Meaning | str | None,
        predicted: Meaning | None,
    ) -> None:
        """Count a sentence; `truth` None: the right meaning is not known."""
        is_said = predicted is not None
        self.n_sentences += 1
        self.n_words += n_words
        self.n_said += is_said
        if candidates:
            self.n_with_bag += is_said
            self.n_among += is_said and predicted in candidates
        if truth is not None:
            self.n_true += 1
            self.n_predicted += is_said
            self.n_right += is_said and predicted == truth

    @property
    def among(self) -> float:
        """The share of predicted meanings that are among the candidates, where there are any."""
        return self.n_among / self.n_with_bag if self.n_with_bag else 0.0

    @property
    def accuracy(self) -> float:
        """The share of right meanings, or where none is known of those among the candidates."""
        return self.recall if self.n_true else self.among

    def in_report(self) -> dict[str, Any]:
        """Return what the report of a run has of it."""
        return {"meanings": self.as_dict()}

    def as_dict(self) -> dict[str, float]:
        """Return counts and shares by name, without those of what no sentence had."""
        found: dict[str, float] = {
            "sentences": self.n_sentences,
            "words": self.n_words,
            "predicted": self.n_said,
        }
        if self.n_with_bag:
            found["among_candidates"] = self.among
        if self.n_true:
            found |= {"true": self.n_true, "right": self.n_right, "precision": self.precision}
            found |= {"recall": self.recall, "f1": self.f1}
        return found
