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

from streamsvm.labels.label_column import Pairs
from streamsvm.learners.active import ActiveLearner
from streamsvm.run.feeder import Feeder
from streamsvm.run.rows import Rows

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
        known = self.row_learner.targets.labels.seen
        return self.model.asking.wants(self.row_learner.probabilities_of(margin) if known else {})

    def _feed_checked(self, rows: Rows) -> Pairs:
        """Predict checked rows, which have labels, and learn those asked for; return all pairs."""
        pairs, at, n_ahead = Pairs(), 0, 1
        while at < len(rows):
            ahead = rows.take(np.arange(at, min(at + n_ahead, len(rows))))
            refused: dict[int, Any] = {}
            margins, taken = ahead.margins(self.row_learner, refused.__setitem__)
            asks, n = False, 0
            while n < len(taken) and not asks:
                asks = self._wants(margins[n])
                n += 1
            places = np.searchsorted(rows.numbers, taken[:n])
            if n:
                n_sure = n - 1 if asks else n
                pairs += self._pass_by(rows.take(places[:n_sure]), margins[:n_sure])
                if asks:
                    pairs += self._answer(rows.take(places[n_sure:]))
            at = int(places[-1]) + 1 if asks else at + len(ahead)
            for i, error in refused.items():
                # Those behind a question are looked at again.
                if i <= rows.numbers[at - 1]:
                    self._refuse(rows.batch, i, error)
            n_ahead = 1 if asks and n == 1 else min(_MOST_AHEAD, 2 * n_ahead)
        return pairs

    def _pass_by(self, rows: Rows, margins: np.ndarray) -> Pairs:
        """Take rows with these margins that are not asked for."""
        assert rows.labels is not None
        guesses = self.row_learner.targets.labels_of(margins)
        self.say(rows.batch, rows.numbers, guesses, self._further(margins), are_learnt=True)
        return Pairs((self.compared(rows.batch, rows.numbers, rows.labels, guesses), guesses))

    def _answer(self, rows: Rows) -> Pairs:
        """Learn the one row whose label was asked for."""
        pairs = self.learn_checked(rows)
        self.adapter.answered(y for y, _ in pairs)
        return pairs
