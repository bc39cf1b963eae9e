"""A linear ranking of labels over a vocabulary that grows: weights, and their sums for the mean."""

from __future__ import annotations

import numpy as np

from streamsvm.solvers.ospas.algorithm_24 import learn_rows, row_scores
from streamsvm.structured import vocabulary
from streamsvm.structured.sentences import Sentences
from streamsvm.support.rows import SparseRows


class Ranking:
    """Weights of features and labels, float64; with `is_averaged` it predicts by their mean."""

    def __init__(self, is_averaged: bool) -> None:
        self.vocabulary = vocabulary.new_vocabulary()
        self.is_averaged = is_averaged
        self.weights = np.zeros((64, 8))
        self.late = np.zeros((64, 8) if is_averaged else (1, 1))
        self.sums = np.zeros(4)  # steps, losses, gains of the dual; the largest |x|^2

    @property
    def n_features(self) -> int:
        """The number of features seen."""
        return vocabulary.size(self.vocabulary)

    def grow(self, n_features: int, n_labels: int) -> None:
        """Make room for so many features and labels; no score changes."""
        rows, columns = self.weights.shape
        if n_features <= rows and n_labels <= columns:
            return
        shape = (
            rows if n_features <= rows else max(n_features, 2 * rows),
            columns if n_labels <= columns else max(n_labels, 2 * columns),
        )
        larger = {"weights": _enlarged(self.weights, shape)}
        if self.is_averaged:
            larger["late"] = _enlarged(self.late, shape)
        # In one step, so that they match after an interruption.
        self.__dict__.update(larger)

    def arrays(self, rows: SparseRows, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and late, with room for these rows and labels, as compiled code trusts."""
        # Learning may have been interrupted before there was room for the last of them.
        self.grow(rows.d, n_labels)
        return self.weights, self.late

    def learn(self, rows: SparseRows, bags: np.ndarray, now: float, C: float) -> None:
        """Learn rows, each with its bag, bool (rows, labels), for the example of number `now`."""
        n = bags.shape[1]
        weights, late = self.arrays(rows, n)
        learn_rows(weights, late, now, rows, bags, n, C, self.sums)

    def learnt_rows(self, tokens: Sentences, most: int) -> SparseRows:
        """Enter the features of tokens, at most `most` in all; return the tokens as rows."""
        self.vocabulary, rows = vocabulary.learnt_rows(self.vocabulary, tokens, most)
        return rows

    def known_rows(self, tokens: Sentences) -> SparseRows:
        """Return tokens as rows of the features that are known."""
        return vocabulary.known_rows(self.vocabulary, tokens, self.n_features)

    def scores(self, rows: SparseRows, n_labels: int, n_examples: int | None) -> np.ndarray:
        """Return the scores of labels, float64 (rows, labels).

        By the weights of now if `n_examples` is None, else by those that predict after so many.
        """
        weights, late = self.arrays(rows, n_labels)
        out = np.empty((rows.start.size - 1, n_labels))
        is_mean = self.is_averaged and n_examples is not None
        share = 1.0 / ((n_examples or 0) + 1) if is_mean else 0.0
        row_scores(weights, late, share, rows, n_labels, out)
        return out

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(part.nbytes for part in (self.weights, self.late, *self.vocabulary))


def _enlarged(old: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    new = np.zeros(shape)
    new[: old.shape[0], : old.shape[1]] = old
    return new


def tokens_of(keys: np.ndarray) -> Sentences:
    """Return tokens with as many features each, uint64 (tokens, features), as one sentence."""
    n, width = keys.shape
    return Sentences(
        np.array([0, n]),
        np.arange(0, n * width + 1, width) if width else np.zeros(n + 1, np.int64),
        keys.ravel(),
        np.ones(keys.size, np.float32),
    )
