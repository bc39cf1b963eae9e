"""What the margins of a model mean: one that tells two classes apart, or a score for each class."""

from __future__ import annotations

import numpy as np


def sides_of(numbers: np.ndarray) -> np.ndarray:
    """Return -1 for each number 0 of two classes, and +1 for each 1: float64 (n,)."""
    return np.where(numbers > 0.0, 1.0, -1.0)


class Outputs:
    """One margin for each row, float64 (n,): above 0 for class 1, else for class 0."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    @property
    def has_one_margin(self) -> bool:
        """Whether a row has one margin, and no score for each class."""
        return True

    def zeros(self, n: int) -> np.ndarray:
        """Return the margins of n rows, all 0."""
        return np.zeros(n) if self.has_one_margin else np.zeros((n, self.n_classes))

    def scores_of(self, margins: np.ndarray) -> np.ndarray:
        """Return margins, or scores, without what else a solver has written."""
        return margins

    @property
    def combined(self) -> tuple[int, int]:
        """Which columns of margins are combined with those of other models: the first, how many."""
        return 0, 1 if self.has_one_margin else self.n_classes

    def are_wrong(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return whether margins predict other classes than these, bool (n,)."""
        if margins.ndim == 1:
            return np.asarray((margins > 0.0) != (numbers > 0.0))
        if not margins.shape[1]:
            return np.ones(len(numbers), bool)
        return np.asarray(margins[:, : self.n_classes].argmax(axis=1) != numbers)

    def losses(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the hinge loss of each margin, or 1 - own score + best other one of each row."""
        return np.maximum(0.0, 1.0 - self.correctness(numbers, margins))

    def correctness(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return y f(x) of each margin, or own score - best other one; below 0 it is wrong.

        Without another class it is infinite.
        """
        if margins.ndim == 1:
            return sides_of(numbers) * margins
        rows, own = np.arange(len(numbers)), numbers.astype(np.int64)
        others = margins[:, : self.n_classes].copy()
        others[rows, own] = -np.inf
        return margins[rows, own] - others.max(axis=1, initial=-np.inf)

    def distances(self, margins: np.ndarray) -> np.ndarray:
        """Return how far rows are from the border: |f(x)|, or the best score - the second best."""
        if margins.ndim == 1:
            return np.abs(margins)
        best = margins[:, : self.n_classes].argmax(axis=1)
        return self.correctness(best.astype(np.float64), margins)


class Scores(Outputs):
    """A score for each class, float64 (n, classes): the one with the highest is predicted."""

    @property
    def has_one_margin(self) -> bool:
        """False."""
        return False


class GrowingOutputs(Outputs):
    """One margin while there are up to two classes, then a score for each."""

    @property
    def has_one_margin(self) -> bool:
        """Whether there are up to two classes."""
        return self.n_classes <= 2


class ProblemOutputs(GrowingOutputs):
    """One margin while there are up to two classes, then what binary problems say together.

    Of several classes a row has their scores, then the logarithms of their probabilities, which the
    solver computes from the margins of its binary problems, and calibrates; and last the least
    margin of its own class, if it was learnt, else of the best one.
    """

    def zeros(self, n: int) -> np.ndarray:
        """Return the margins of n rows, all 0."""
        return np.zeros(n) if self.has_one_margin else np.zeros((n, 2 * self.n_classes + 1))

    def scores_of(self, margins: np.ndarray) -> np.ndarray:
        """Return margins, or scores, without probabilities."""
        return margins if self.has_one_margin else margins[:, : self.n_classes]

    @property
    def combined(self) -> tuple[int, int]:
        """Of several classes the logarithms of probabilities: they say more than votes."""
        return (0, 1) if self.has_one_margin else (self.n_classes, self.n_classes)

    def distances(self, margins: np.ndarray) -> np.ndarray:
        """Return |f(x)| of rows; of several classes what the solver wrote of rows not learnt."""
        return np.abs(margins) if margins.ndim == 1 else margins[:, -1]


class BagOutputs(Scores):
    """A score for each class, learnt from bags of classes, too.

    The number of a bag is below 0: -1 - that of its best candidate, by the scores from before.
    """

    def are_wrong(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return whether another class than that, or the best candidate, is predicted."""
        return super().are_wrong(classes_of(numbers), margins)

    def losses(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the mean pairwise loss of rows; a bag counts by its best candidate."""
        k, rows = self.n_classes, np.arange(len(numbers))
        own = margins[rows, classes_of(numbers).astype(np.int64)]
        pairs = np.maximum(0.0, 1.0 - own[:, None] + margins[:, :k])
        # The pair of the label with itself has the loss 1.
        return (pairs.sum(axis=1) - 1.0) / max(1, k - 1)

    def correctness(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the score of the class, or best candidate, less the largest other one."""
        return super().correctness(classes_of(numbers), margins)


def classes_of(numbers: np.ndarray) -> np.ndarray:
    """Return the number of the class, or of the best candidate, of each row."""
    return np.where(numbers < 0.0, -1.0 - numbers, numbers)
