"""Batches of sentences into learners of whole sentences: parsers, and labellers of concepts."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any

from connectors import Reject
from connectors.batch import Batch, shown
from connectors.sentences import SentenceBatch
from streamsvm.errors import FeatureError, LabelError, ParameterError
from streamsvm.labels.label_column import LabelColumn
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.watched import Model
from streamsvm.run.adapters import adapter_of
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.batch_feeder import BatchFeeder, Predicted
from streamsvm.run.sentence_feeder import (
    ScoredSentences,
    SentenceFeeder,
    TokenSetsFeeder,
    predicted_of,
    token_pairs,
)
from streamsvm.structured import (
    ChunkScore,
    ConceptLabeler,
    MeaningScore,
    OSPASParser,
    judged,
    read_candidates,
    read_meaning,
    read_meant,
    universe_of,
    words_in,
    words_of,
)


class RecordFeeder(BatchFeeder):
    """Predicts and learns sentences one by one; `bad` takes those that cannot be used.

    Subclasses say what an example is, and what its prediction is compared with.
    """

    learner: OSPASParser | ConceptLabeler

    def __init__(self, model: Model, bad: BadEvents) -> None:
        super().__init__(bad)
        *before, self.learner = steps_of(model)
        if before:
            first, last = type(before[0]).__name__, type(self.learner).__name__
            raise ParameterError(f"{first}: nothing stands before {last}, which reads words")

    @property
    def settings(self) -> dict[str, str]:
        """What a resumed run must have, too."""
        return {"truth": repr(self.truth)}

    def labels_of(self, batch: Batch) -> LabelColumn:
        """Return no labels: nothing is said about them before their sentence is read."""
        return LabelColumn.of([])

    def feed(self, batch: Batch, labels: Any, first: int | None = None) -> ScoredSentences:
        """Predict each sentence, then learn it; return what predictions are compared with."""
        rows = []
        for event in _events(batch):
            if event.y is None:
                self._refuse(event, "missing label", "the target is missing")
                continue
            try:
                truth, x, y = self.truth_of(event), self.x_of(event), self.y_of(event)
                rows.append(self.row_of(event, truth, self.learner.predict_then_learn_one(x, y)))
            except _REFUSED as error:
                self._refuse(event, "unusable sentence", str(error))
        return self.pairs_of(rows)

    def predict(self, batch: Batch) -> Predicted:
        """Predict each sentence that can be used."""
        kept, found = [], []
        for i, event in enumerate(_events(batch)):
            try:
                found.append(self.learner.predict_one(self.x_of(event)))
                kept.append(i)
            except _REFUSED as error:
                self._refuse(event, "unusable sentence", str(error))
        return predicted_of(kept, found)

    def judged(self, batch: Batch, predicted: list[Any]) -> ScoredSentences:
        """Return what predictions are compared with; None is one of a sentence without any."""
        rows = []
        for event, guess in zip(_events(batch), predicted, strict=True):
            try:
                rows.append(self.row_of(event, self.truth_of(event), guess))
            except _REFUSED as error:
                # Without a prediction, the sentence was refused before.
                if guess is not None:
                    self._refuse(event, "unusable label", str(error))
        return self.pairs_of(rows)

    def _refuse(self, event: Any, kind: str, reason: str) -> None:
        reject: Any = Reject(event.position, kind, reason, shown((event.x, event.y)))
        self.bad.take(reject, kind, reason)

    def _kept(self, event: Any) -> Any:
        """Return the true label that an event has beside its own, or None."""
        return getattr(event, "kept", {}).get(self.truth)

    @abstractmethod
    def x_of(self, event: Any) -> Any:
        """Return the example of an event."""

    @abstractmethod
    def y_of(self, event: Any) -> Any:
        """Return the label that is learnt."""

    @abstractmethod
    def truth_of(self, event: Any) -> Any:
        """Return the true label; None: it is not known."""

    @abstractmethod
    def row_of(self, event: Any, truth: Any, guess: Any) -> Any:
        """Return what is counted of a sentence; `guess` None: it has no prediction."""

    @abstractmethod
    def pairs_of(self, rows: list[Any]) -> ScoredSentences:
        """Return the pairs of what `row_of` returned."""


class MeaningFeeder(RecordFeeder):
    """Sentences, with candidate meanings, into an `OSPASParser`.

    A label that is no list is the right meaning.
    """

    new_score = MeaningScore

    def x_of(self, event: Any) -> Any:
        """Return the sentence."""
        return event.x

    def y_of(self, event: Any) -> Any:
        """Return the candidates."""
        return [event.y] if isinstance(event.y, str) else event.y

    def truth_of(self, event: Any) -> Any:
        """Return the right meaning, or None."""
        truth = self._kept(event)
        truth = event.y if truth is None and isinstance(event.y, str) else truth
        return None if truth is None else read_meaning(truth)

    def row_of(self, event: Any, truth: Any, guess: Any) -> Any:
        """Return the arguments of `MeaningScore.update`."""
        bag = () if event.y is None else read_candidates(self.y_of(event))
        return len(words_of(event.x)), bag, truth, None if guess is None else guess.meaning

    def pairs_of(self, rows: list[Any]) -> ScoredSentences:
        """Return the rows as pairs."""
        return ScoredSentences(rows)


class ConceptFeeder(RecordFeeder):
    """Sentences in a universe, and the concepts of their words, into a `ConceptLabeler`.

    An example is a pair of both, or the words alone. A label is a list of concepts, one a word; or
    a bag: {concept: how often}, or any list if there is a column of the truth.
    """

    new_score = ChunkScore

    def x_of(self, event: Any) -> Any:
        """Return the words and the universe."""
        universe = event.x[1] if isinstance(event.x, tuple) else {}
        return self._words_of(event), universe_of(universe)

    def _words_of(self, event: Any) -> list[str]:
        words = event.x[0] if isinstance(event.x, tuple) else event.x
        return words_in(words.split() if isinstance(words, str) else words)

    def y_of(self, event: Any) -> Any:
        """Return the concepts of the words, or a bag of them."""
        y = event.y
        try:
            if isinstance(y, list) and y and all(isinstance(pair, tuple) for pair in y):
                y = dict(y)  # a map of Arrow
            if isinstance(y, dict):
                return {concept: n for concept, n in y.items() if n is not None}
            return y if self.truth is None else Counter(y)
        except TypeError as error:
            raise LabelError(f"the target is no list of concepts ({error})") from error

    def truth_of(self, event: Any) -> Any:
        """Return the concepts of the words, or None."""
        truth = self._kept(event)
        if truth is None:
            return None
        meant = read_meant(truth, len(self._words_of(event)))
        # A checkpoint counts them.
        meant.new_concepts({})
        return meant.concepts

    def row_of(self, event: Any, truth: Any, guess: Any) -> Any:
        """Return the true concepts and those predicted; of a bag, see `judged`."""
        n = len(self._words_of(event))
        guess = [None] * n if guess is None else guess
        if truth is None and event.y is not None:
            truth = judged(read_meant(self.y_of(event), n), guess)
        return truth, guess

    def pairs_of(self, rows: list[Any]) -> ScoredSentences:
        """Return the rows that have true concepts as pairs."""
        known = [row for row in rows if row[0] is not None]
        return token_pairs([true for true, _ in known], [guess for _, guess in known])


_REFUSED = (FeatureError, LabelError)


def _events(batch: Batch) -> Iterator[Any]:
    """Return the events of a batch; refuse those whose values became features."""
    if not isinstance(batch, SentenceBatch):
        raise ParameterError(
            "this source makes features of its columns, and the learner reads words: use "
            "connectors.RecordSource, which gives them as they are"
        )
    return batch.events()


def feeder_of(model: Model, bad: BadEvents) -> SentenceFeeder | RecordFeeder:
    """Return the feeder of a model that learns sentences, see `are_sentences`."""
    if adapter_of(model).has_sets:
        return TokenSetsFeeder(model, bad)
    kinds: dict[Any, Any] = {OSPASParser: MeaningFeeder, ConceptLabeler: ConceptFeeder}
    return kinds.get(type(steps_of(model)[-1]), SentenceFeeder)(model, bad)
