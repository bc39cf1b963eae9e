"""Batches of sentences into a learner of label sequences: the counterpart of `Feeder`."""

from itertools import chain
from typing import Any, cast

import numpy as np

from connectors import Reject
from connectors.batch import Batch, shown
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.labels.given import Given, labels_of_predictions
from streamsvm.labels.label_column import LabelColumn, Pairs
from streamsvm.learners.conformal_sets import ConformalSets
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.watched import Model
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.batch_feeder import BatchFeeder, Predicted
from streamsvm.structured import (
    Chain,
    ChunkScore,
    Sentences,
    SequenceLearner,
    SequenceTargets,
    StructuredLearner,
    each_of,
    joined,
    read_sentences,
)

_REFUSED = (FeatureError, LabelError, ParameterError)
"""What reading a sentence that cannot be used raises; learning what was read raises none."""


class ScoredSentences(Pairs):
    """What is counted of sentences: the arguments of a score's `update`, for each of them.

    `columns` are the labels of all tokens, and the predictions, if tokens have any.
    """

    def __init__(self, sentences: list[Any], *columns: tuple[LabelColumn, LabelColumn]) -> None:
        super().__init__(*columns)
        self.sentences = sentences

    def __len__(self) -> int:
        return len(self.sentences)

    def add_to(self, score: Any) -> None:
        """Count the sentences in a `SentenceScore`."""
        for one in self.sentences:
            score.update(*one)


def token_pairs(true: list[list[Any]], predicted: list[list[Any]]) -> ScoredSentences:
    """Return the pairs of all tokens of sentences."""
    labels, guesses = (LabelColumn.of(chain.from_iterable(lists)) for lists in (true, predicted))
    return ScoredSentences(list(zip(true, predicted, strict=True)), (labels, guesses))


def predicted_of(kept: list[int], labels: list[Any]) -> Predicted:
    """Return what is predicted for the sentences of a batch that were kept, by number."""
    return Predicted(np.array(kept, np.int64), labels, np.ones(len(kept), bool))


class SentenceFeeder(BatchFeeder):
    """Predicts and learns batches of sentences; `bad` takes those that cannot be used.

    The model is a learner of label sequences, or a pipeline of `Chain` and one; with another
    transformer before the learner, a ParameterError.
    """

    learner: SequenceLearner
    new_score = ChunkScore

    def __init__(self, model: Model, bad: BadEvents) -> None:
        super().__init__(bad)
        *before, self.learner = steps_of(model)
        self._chain: Chain | None = before[0] if before else None
        self.learner.check_steps(model)

    def labels_of(self, batch: Batch) -> LabelColumn:
        """Return the labels of all tokens of a first batch, which a run looks at.

        There are none of later ones, or if one is no label: `feed` finds the sentence it is of.
        """
        try:
            return LabelColumn.of([] if self.learner.classes else chain.from_iterable(batch.labels))
        except (LabelError, TypeError):
            return LabelColumn.of([])

    def feed(self, batch: Batch, labels: Any, first: int | None = None) -> ScoredSentences:
        """Predict each sentence, then learn it; labels are those of the batch."""
        events = list(batch.events())
        features, kept = self._usable(events, is_learnt=True)
        true = [events[i].y for i in kept]
        return token_pairs(true, self.learner.predict_then_learn_many(features, true))

    def predict(self, batch: Batch) -> Predicted:
        """Predict the labels of each sentence that can be used."""
        features, kept = self._usable(list(batch.events()), is_learnt=False)
        return predicted_of(kept, self.learner.predict_many(features))

    def judged(self, batch: Batch, predicted: list[Any]) -> ScoredSentences:
        """Return true and predicted labels; of a sentence whose prediction is None, all wrong."""
        true = batch.labels
        pairs = zip(true, predicted, strict=True)
        return token_pairs(true, [[None] * len(y) if p is None else p for y, p in pairs])

    def _usable(self, events: list[Any], is_learnt: bool) -> tuple[Sentences, list[int]]:
        """Return the features of the sentences that can be used, and their numbers."""
        targets = self.learner.targets
        try:
            return self._features(events, targets, is_learnt)[0], list(range(len(events)))
        except _REFUSED:
            # Nothing was learnt yet: each is read alone, to find those that cannot be used.
            found, kept = [], []
        for i, event in enumerate(events):
            try:
                features, targets = self._features([event], targets, is_learnt)
                found.append(features)
                kept.append(i)
            except _REFUSED as error:
                text = shown((event.x, event.y))
                reject: Any = Reject(event.position, "unusable sentence", str(error), text)
                self.bad.take(reject, reject.kind, reject.reason)
        return joined(found), kept

    def _features(
        self, events: list[Any], targets: SequenceTargets, is_learnt: bool
    ) -> tuple[Sentences, SequenceTargets]:
        """Return the features of sentences, if they and their labels can be used.

        Returned, too: targets that have the labels of these, and of those before.
        """
        tokens = [event.x for event in events]
        read = read_sentences if self._chain is None else self._chain.transform_many
        features: Sentences = read(tokens)
        if is_learnt:
            targets = targets.read([event.y for event in events], features)[2]
        return features, targets


class TokenSetsFeeder(SentenceFeeder):
    """Predicts and learns sentences with `ConformalSets`: each token gets its set."""

    def __init__(self, model: Model, bad: BadEvents) -> None:
        self._sets = cast(ConformalSets, model)
        super().__init__(self._sets.model, bad)

    def feed(self, batch: Batch, labels: Any, first: int | None = None) -> ScoredSentences:
        """Predict each sentence and its sets, then learn it; labels are those of the batch."""
        events = list(batch.events())
        features, kept = self._usable(events, is_learnt=True)
        true, predicted = [events[i].y for i in kept], []
        for sentence, y in zip(each_of(features), true, strict=True):
            predicted.append(self.learner.predict_one(sentence))
            self._sets.learn_one(sentence, y)
        return token_pairs(true, predicted)

    def predict(self, batch: Batch) -> Predicted:
        """Predict a `Given` for each sentence that can be used."""
        features, kept = self._usable(list(batch.events()), is_learnt=False)
        labels, sets = self.learner.predict_many(features), self._sets.predict_set_many(features)
        return predicted_of(kept, list(map(Given, labels, sets)))

    def judged(self, batch: Batch, predicted: list[Any]) -> ScoredSentences:
        """Return true and predicted labels: see `SentenceFeeder`."""
        return super().judged(batch, labels_of_predictions(predicted))


def are_sentences(model: object) -> bool:
    """Tell whether a model learns sentences: `feeder_of` has the feeder, `Feeder` is for others."""
    return isinstance(steps_of(model)[-1], StructuredLearner)
