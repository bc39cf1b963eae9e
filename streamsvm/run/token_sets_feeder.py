"""Batches of sentences into `ConformalSets`: each token gets its set."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.labels.given import Given, told
from streamsvm.learners.bases.sequence.read_sentence import each_of
from streamsvm.learners.conformal_sets import ConformalSets
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.sentence_feeder import SentenceFeeder, SentencePairs
from streamsvm.run.sets_feeder import check_reading


class TokenSetsFeeder(SentenceFeeder):
    """Predicts and learns sentences with `ConformalSets`. Parameters are those of the base."""

    def __init__(self, model: ConformalSets, bad: BadEvents) -> None:
        super().__init__(model.model, bad)
        self._sets = model

    def check_run(self, epochs: int, forgets: bool) -> None:
        """Refuse a run that reads the stream again."""
        check_reading(epochs, forgets)

    def feed(self, batch: Any, labels: Any, first: int | None = None) -> SentencePairs:
        """Predict each sentence and its sets, then learn it; labels are those of the batch."""
        events = list(batch.events())
        features, kept = self._usable(events, is_learnt=True)
        true, predicted = [events[i].y for i in kept], []
        for sentence, y in zip(each_of(features), true, strict=True):
            predicted.append(self.learner.predict_one(sentence))
            self._sets.learn_one(sentence, y)
        return SentencePairs(true, predicted)

    def predict(self, batch: Any) -> tuple[np.ndarray, list[Any]]:
        """Return the numbers of the sentences that can be used, and a `Given` of each."""
        features, kept = self._usable(list(batch.events()), is_learnt=False)
        labels, sets = self.learner.predict_many(features), self._sets.predict_set_many(features)
        return np.array(kept, np.int64), list(map(Given, labels, sets))

    def judged(self, batch: Any, predicted: list[Any]) -> SentencePairs:
        """Return true and predicted labels: see `SentenceFeeder`."""
        return super().judged(batch, told(predicted))
