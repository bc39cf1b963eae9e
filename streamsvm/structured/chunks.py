"""Chunks in sequences of labels, counted as CoNLL's evaluation does: precision, recall and F1.

A label is ``O``, or a letter and a type, as ``B-TYPE``: B begins a chunk, I is inside, E ends it,
and S is a chunk of a single token (``[`` and ``]``, too). An I or E that continues no chunk of its
type begins one; a chunk ends at its E, and before the next chunk or O. L and U, of the scheme
BILOU, are as E and S. A predicted chunk is right if a true one has the same type, first and last
token.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from streamsvm.confidence.sequence import share_interval

_SINGLE = ("S", "U", "[", "]")
_LAST = ("E", "L", *_SINGLE)
_INSIDE = ("I", "E", "L")


def chunks_of(labels: Sequence[Any]) -> set[tuple[str, int, int]]:
    """Return the chunks of a sentence: (type, first token, token after the last).

    A label that is no string, or has another letter, is O.
    """
    found: set[tuple[str, int, int]] = set()
    kind: str | None = None
    begin = 0
    for t, label in enumerate(labels):
        prefix, _, given = label.partition("-") if isinstance(label, str) else ("O", "", "")
        continues = prefix in _INSIDE and kind == given
        if kind is not None and not continues:
            found.add((kind, begin, t))
            kind = None
        if not continues and prefix in ("B", *_INSIDE, *_SINGLE):
            kind, begin = given, t
        if kind is not None and prefix in _LAST:
            found.add((kind, begin, t + 1))
            kind = None
    if kind is not None:
        found.add((kind, begin, len(labels)))
    return found


class Shares:
    """Precision, recall and F1 by counts: of things that are, that are predicted, and of both."""

    has_labels = True
    """Whether tokens have labels, of which a run counts the classes."""

    def __init__(self) -> None:
        self.n_true = self.n_predicted = self.n_right = 0

    @property
    def precision(self) -> float:
        """The share of predicted ones that are right; 0 without any."""
        return self.n_right / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of true ones that are predicted; 0 without any."""
        return self.n_right / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.n_true + self.n_predicted
        return 2.0 * self.n_right / both if both else 0.0


class ChunkScore(Shares):
    """Counts tokens, chunks and sentences that are predicted right, as a stream goes on.

    Examples
    --------
    >>> from streamsvm.structured.chunks import ChunkScore
    >>> score = ChunkScore()
    >>> score.update(["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "I-NP", "O", "O"])
    >>> score.precision, score.recall, round(score.f1, 3), score.accuracy
    (1.0, 0.5, 0.667, 0.75)

    """

    def __init__(self) -> None:
        super().__init__()
        self.n_tokens = self.n_right_tokens = self.n_sentences = self.n_right_sentences = 0

    def update(self, y_true: Iterable[Any], y_pred: Iterable[Any]) -> None:
        """Count one sentence; ValueError: there are not as many predicted labels as true ones."""
        true, predicted = list(y_true), list(y_pred)
        if len(true) != len(predicted):
            raise ValueError(f"{len(true)} true labels, {len(predicted)} predicted ones")
        right = sum(a == b for a, b in zip(true, predicted, strict=True))
        self.n_tokens += len(true)
        self.n_right_tokens += right
        self.n_sentences += 1
        self.n_right_sentences += right == len(true)
        chunks, guessed = chunks_of(true), chunks_of(predicted)
        self.n_true += len(chunks)
        self.n_predicted += len(guessed)
        self.n_right += len(chunks & guessed)

    def in_report(self) -> dict[str, Any]:
        """Return what the report of a run has of it."""
        # Tokens of a sentence are predicted together: they are no looks one after the other.
        low, high = share_interval(self.n_right_sentences, self.n_sentences)
        found = {"tokens": self.n_tokens, "chunk_f1": self.f1 if self.n_true else None}
        found |= {"sentence_accuracy": self.sentence_accuracy}
        return found | {"sentence_accuracy_low": low, "sentence_accuracy_high": high}

    @property
    def accuracy(self) -> float:
        """The share of tokens whose label is right; 0 without any."""
        return self.n_right_tokens / self.n_tokens if self.n_tokens else 0.0

    @property
    def sentence_accuracy(self) -> float:
        """The share of sentences whose labels are all right; 0 without any."""
        return self.n_right_sentences / self.n_sentences if self.n_sentences else 0.0
