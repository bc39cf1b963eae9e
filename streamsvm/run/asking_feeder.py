"""Batches into an `ActiveLearner`: rows are predicted, and those that it asks for are learnt.

The model changes only with an answer, so that rows up to the next question are predicted together;
predictions and questions are those of one row after the other. Two things differ from a loop over
`predict_one` and `learn_one`: a scaler before the learner learns all rows, as in other runs, where
that of a River pipeline learns those asked for; and where labels repeat, `AdaptiveSVMClassifier`
predicts a single event right after an answer by the last label, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from connectors.batch import Batch
from streamsvm.features.matrices import take
from streamsvm.labels.label_column import LabelColumn, Pairs
from streamsvm.learners.active import ActiveLearner
from streamsvm.run import parts
from streamsvm.run.feeder import Feeder

_MOST_AHEAD = 64
"""So many rows are predicted together at most: after a question those behind it are again."""


class AskingFeeder(Feeder):
    """Predicts batches with an `ActiveLearner`, and learns the rows whose labels it asks for.

    The labels are there (simulated: only those asked for are learnt), or come later as answers.
    Parameters are those of `Feeder`.
    """

    model: ActiveLearner

    def _awaited(self, margins: np.ndarray) -> np.ndarray:
        """Return which rows with these margins are asked for, bool."""
        return np.array([self._wants(margin) for margin in margins], bool)

    def _wants(self, margin: Any) -> bool:
        """Tell whether to ask for a row with this margin."""
        # Before the first label nothing is predicted, and as much asked for.
        known = self.learner.targets.labels.seen
        return self.model.asking.wants(self.learner.probabilities_of(margin) if known else {})

    def _feed_checked(
        self, batch: Batch, matrix: Any, labels: LabelColumn, kept: np.ndarray, first: int | None
    ) -> Pairs:
        """Predict checked rows, which have labels, and learn those asked for; return all pairs."""
        pairs, at, n_ahead = Pairs(), 0, 1
        while at < len(kept):
            rows = np.arange(at, min(at + n_ahead, len(kept)))
            refused: dict[int, Any] = {}
            margins, taken = parts.margins_of_taken(
                self.learner, take(matrix, rows), kept[rows], refused.__setitem__
            )
            asks, n = False, 0
            while n < len(taken) and not asks:
                asks = self._wants(margins[n])
                n += 1
            if n:
                predicted = self.learner.targets.labels_of(margins[:n])
                n_sure = n - 1 if asks else n
                sure, guesses = taken[:n_sure], predicted[:n_sure]
                of_sure = self._probabilities(margins[:n_sure])
                self.say(batch, sure, guesses, of_sure, are_learnt=True)
                pairs += Pairs((self.judged(batch, sure, labels.take(sure), guesses), guesses))
                if asks:
                    pairs += self._answer(batch, matrix, labels, kept, int(taken[n - 1]))
            at = int(np.searchsorted(kept, taken[n - 1])) + 1 if asks else int(rows[-1]) + 1
            for i, error in refused.items():
                # Those behind a question are looked at again.
                if i <= kept[at - 1]:
                    self._refuse(batch, i, error)
            n_ahead = 1 if asks and n == 1 else min(_MOST_AHEAD, 2 * n_ahead)
        return pairs

    def _answer(
        self, batch: Batch, matrix: Any, labels: LabelColumn, kept: np.ndarray, i: int
    ) -> Pairs:
        """Learn row i of the batch, whose label was asked for."""
        place, one = np.searchsorted(kept, [i]), np.array([i])
        pairs = self.learn_checked(batch, take(matrix, place), labels.take(one), one, None)
        self.adapter.answered(y for y, _ in pairs)
        return pairs
