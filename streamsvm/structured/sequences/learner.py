"""The base class of learners of label sequences: sentences, learnt and predicted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from streamsvm._compiling import working_time
from streamsvm._parameter_checks import check_class_weight, check_size, weights_of
from streamsvm.errors import ParameterError
from streamsvm.labels.class_labels import ClassLabels, ClassWeight, factor_in
from streamsvm.labels.label_column import MISSING
from streamsvm.learners.bases import words
from streamsvm.learners.bases.token_labels import LabelsTokens
from streamsvm.model_files import container
from streamsvm.monitor.certificate import Certificate
from streamsvm.monitor.learnt import Learnt
from streamsvm.structured import vocabulary
from streamsvm.structured.batches import (
    columns_like,
    label_lists,
    sentences_in,
)
from streamsvm.structured.chain import Chain
from streamsvm.structured.learner import StructuredLearner
from streamsvm.structured.sentences import Sentences, each_of, read_sentences
from streamsvm.structured.sequences.inference import Batch, KernelGreedy, SequenceSolver
from streamsvm.structured.sequences.targets import SequenceTargets
from streamsvm.support.locked import guarded
from streamsvm.support.rows import SparseRows

LIMIT = 2**23
"""The most features that are learnt by default."""

_PART = 512
"""Number of sentences learnt between two looks for Ctrl-C."""


class SequenceLearner(LabelsTokens, StructuredLearner):
    """A River estimator for sentences; a subclass adds the constructor's signature.

    `cost` is C, or the size of the perceptron's steps; other parameters are as in
    `LaRankSequenceLabeler`.
    """

    takes = "sentences"
    can_be_watched = False
    described = ("inference", "C", "kernel", "window", "max_support_patterns")

    def __init__(
        self,
        solver: SequenceSolver,
        cost: float,
        inference: str,
        order: int | None,
        class_weight: Any,
        max_features: int,
        max_classes: int | None,
    ) -> None:
        super().__init__()
        if check_size("max_features", max_features) is None:
            raise ParameterError("max_features=None: use a whole number of at least 1")
        self.inference, self.order = inference, order
        self.max_features = int(max_features)
        self.max_classes = check_size("max_classes", max_classes, 2)
        self.targets = SequenceTargets(ClassLabels(most=self.max_classes))
        self.solver, self.cost = solver, float(cost)
        self.class_weight = class_weight
        self.vocabulary = vocabulary.new_vocabulary()
        self.n_features = 0

    @property
    def class_weight(self) -> Any:
        """What C is multiplied by; changed, it holds for the sentences that follow."""
        return self._class_weight

    @class_weight.setter
    @guarded
    def class_weight(self, class_weight: ClassWeight | None) -> None:
        check_class_weight(class_weight)
        self._class_weight = class_weight
        self._weigh(self.targets.labels.seen)

    def _weigh(self, seen: list[Any]) -> None:
        for code, label in enumerate(seen):
            self.solver.model.cost[code] = factor_in(self._class_weight, label)

    @property
    def most_features(self) -> int:
        """The most features that it learns."""
        return min(self.max_features, self.solver.most_features)

    # Learning

    def learn_one(self, x: Any, y: Iterable[Any], w: float = 1.0) -> None:
        """Learn one sentence.

        Parameters
        ----------
        x
            A sentence: a sequence of tokens. A token is a dict of features by name, a list of
            strings, each of which is a feature, or a string, its only feature. Of a dict, a string
            makes the feature ``name=value``, a number or boolean the feature ``name`` with that
            value. A NumPy array (tokens, features) has columns named 0, 1, ... Or what `Chain`
            returns.
        y
            A label for each token: any hashables.
        w
            Weight of the sentence, at least 0: it multiplies C. At 0 only its labels are recorded.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            The sentence cannot be used; the model has not changed.
        ModelBusyError
            The caller is inside another call of this model: see `Learner.learn_one`.

        """
        self._learn(read_sentences([x]), [y], w)

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn sentences in order: the same model as by `learn_one`, but faster.

        Parameters
        ----------
        X
            Sentences as in `learn_one`: a list, or an Arrow column of lists, a sentence a row. Or
            what `Chain` returns.
        y
            A list of labels for each sentence; or an Arrow column of lists.
        w
            One weight for all, or one a sentence.

        Raises
        ------
        FeatureError, LabelError, ParameterError
            A sentence cannot be used; the model has not changed.
        ModelBusyError
            As for `learn_one`.

        """
        self._learn(sentences_in(X), label_lists(y), w)

    def predict_then_learn_many(self, X: Any, y: Any, w: Any = 1.0) -> list[list[Any]]:
        """Learn like `learn_many`; return the labels predicted for each sentence before it.

        Parameters
        ----------
        X, y, w
            As in `learn_many`.

        Returns
        -------
        A list of labels for each sentence, as from `predict_one`.

        """
        predicted: list[list[Any]] = []
        self._learn(sentences_in(X), label_lists(y), w, predicted)
        return predicted

    @guarded
    def _learn(
        self, sentences: Sentences, y: Sequence[Any], w: Any, predicted: list[Any] | None = None
    ) -> None:
        weights = weights_of(w, sentences.n)
        before = self.targets.n_classes, self.n_features
        labels, known, targets = self.targets.read(y, sentences)
        x = self._entered(sentences, targets)
        batch = Batch(x, sentences.first, labels, known, weights * self.cost)
        self._learn_batch(batch, *before, predicted)

    def _entered(self, sentences: Sentences, targets: SequenceTargets) -> SparseRows:
        """Enter new features and labels; return the rows of the tokens."""
        known, most = self.n_features, self.most_features
        try:
            self.vocabulary, x = vocabulary.learnt_rows(self.vocabulary, sentences, most)
            self.grow(x.d, targets.labels.seen)
        except BaseException:
            self.vocabulary = vocabulary.shortened(self.vocabulary, known)
            raise
        # Last: whatever interrupts, labels and features that count have their weights.
        self.targets, self.n_features = targets, x.d
        return x

    def grow(self, d: int, seen: list[Any]) -> None:
        """Make room for so many features, and for these labels; no prediction changes."""
        self.solver.grow(d, len(seen), self.most_features)
        if self._class_weight:
            self._weigh(seen)

    def _learn_batch(
        self, batch: Batch, n_seen: int, d_seen: int, predicted: list[Any] | None
    ) -> None:
        """Learn a batch in parts; with `predicted` or a monitor, sentences are predicted before.

        `n_seen` and `d_seen` are the numbers of labels and features before the batch.
        """
        is_predicted = predicted is not None or self.observer is not None
        n, size = batch.known.size, 1 if is_predicted else _PART
        for i in range(0, n, size):
            stop = min(i + size, n)
            part = batch._replace(
                first=batch.first[i : stop + 1], known=batch.known[i:stop], cost=batch.cost[i:stop]
            )
            if not is_predicted:
                self.solver.learn(part)
                continue
            x = part.rows()
            guessed = self._guessed(x, n_seen, d_seen)
            n_seen, d_seen = int(part.known[0]), max(d_seen, 1 + int(x.columns.max(initial=-1)))
            began = working_time()
            self.solver.learn(part)
            if predicted is not None:
                predicted.append(guessed)
            if self.observer is not None and guessed:
                seconds = working_time() - began
                self.observer.learnt(self._learnt(x, part, guessed, seconds))

    def _guessed(self, x: SparseRows, n: int, d: int) -> list[Any]:
        """Return the labels of a sentence, predicted with the first n labels and d features."""
        if n == 0:
            return [None] * (x.start.size - 1)
        if d < x.d:
            x = x._replace(values=np.where(x.columns < d, x.values, np.float32(0.0)))
        codes = self.solver.predict(x, np.array([0, x.start.size - 1]), n, np.zeros((0, 1)))
        return self.targets.labels_of(codes)

    def _learnt(self, x: SparseRows, part: Batch, guessed: list[Any], seconds: float) -> Learnt:
        """Return the tokens of a sentence that took so long to learn, for a monitor."""
        codes, n = part.labels[part.first[0] : part.first[1]], len(guessed)
        labels = self.targets.labels_of(codes)
        numbers = np.arange(self.n_tokens - n, self.n_tokens) + 1
        none = np.zeros(n)
        classes = codes.astype(float)
        return Learnt(x, classes, labels, guessed, none, none + 1.0, numbers, seconds)

    # Predicting

    def predict_one(self, x: Any) -> list[Any]:
        """Return the label predicted for each token.

        Parameters
        ----------
        x
            A sentence as in `learn_one`; features that were never learnt count as 0.

        Returns
        -------
        A label for each token; None before the first label was learnt.

        Raises
        ------
        FeatureError
            The sentence cannot be used.

        """
        return self._predict(read_sentences([x]))[0]

    def predict_many(self, X: Any) -> Any:
        """Return the labels predicted for sentences.

        Parameters
        ----------
        X
            Sentences as in `learn_many`.

        Returns
        -------
        A list of labels for each sentence; for Arrow, an Arrow column of lists, or a `LabelError`
        if Arrow has no type for the labels together.

        """
        return columns_like(X, self._predict(sentences_in(X)))

    @guarded
    def _predict(self, sentences: Sentences) -> list[list[Any]]:
        codes, _ = self._codes_of(sentences, False)
        flat = self.targets.labels_of(codes)
        ends = sentences.first.tolist()
        return [flat[ends[i] : ends[i + 1]] for i in range(sentences.n)]

    def _codes_of(self, sentences: Sentences, with_margins: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the labels of all tokens, -1 for none; and margins if wanted."""
        n, n_tokens = self.targets.n_classes, sentences.n_tokens
        margins = np.zeros((n_tokens if with_margins else 0, n))
        if n == 0:
            return np.full(n_tokens, MISSING, np.int32), margins
        x = vocabulary.known_rows(self.vocabulary, sentences, self.n_features)
        return self.solver.predict(x, sentences.first, n, margins), margins

    @guarded
    def decision_function_one(self, x: Any) -> list[dict[Any, float]]:
        """Return the score of each label at each token.

        Parameters
        ----------
        x
            A sentence as in `learn_one`.

        Returns
        -------
        {label: score} for each token: the label with the highest score is predicted. With greedy
        inference it is the score after the labels predicted before; with exact inference that of
        the best sequence that has the label there.

        """
        _, margins = self._codes_of(read_sentences([x]), True)
        seen = self.targets.labels.seen
        return [dict(zip(seen, row, strict=True)) for row in margins.tolist()]

    def summary(self) -> str:
        """Return what the learner has learnt as a table to print.

        Returns
        -------
        Lines of name and value.

        """
        with self.lock:
            return words.table(self, self._facts())

    def _facts(self) -> dict[str, object]:
        """Return what `words.table` wants to know."""
        return {"features": self.n_features, "tokens learnt": self.n_tokens}

    def rehearse(self) -> None:
        """Learn and predict made-up sentences, so that all that is needed is compiled."""
        words = [[f"w{(3 * i + t) % 5}" for t in range(4)] for i in range(60)]
        # Labels have nothing to do with words: so `finish` has something to do.
        random = np.random.default_rng(0)
        labels = random.choice(["a", "b"], (60, 4)).tolist()
        X: Any = Chain().transform_many(words)
        if isinstance(self.solver, KernelGreedy):
            # There are many patterns then, so that the cache of kernel rows grows, too.
            X = [random.normal(size=(len(sentence), 2)) for sentence in words]
        self.learn_many(X, labels)
        self.predict_many(X)
        self.decision_function_one(X[0] if isinstance(X, list) else words[0])
        self._rehearse_more(X, labels)
        # Reading a file fills the patterns by compiled code, too.
        self._save_and_load()

    def _rehearse_more(self, X: Any, labels: Any) -> None:
        """Use what only some of these learners have."""

    # What `ConformalSets` asks for

    def check_steps(self, model: Any) -> None:
        """Raise ParameterError if something else than a `Chain` stands before the learner."""
        before = container.steps_of(model)[:-1]
        if len(before) > 1 or (before and not isinstance(before[0], Chain)):
            raise ParameterError(
                f"{' | '.join(type(step).__name__ for step in before)}: before a learner of label "
                "sequences use streamsvm.Chain, or nothing"
            )

    def read_sentence(self, model: Any, x: Any) -> Sentences:
        """Return the features of one sentence; FeatureError: it cannot be used."""
        first = container.steps_of(model)[0]
        if isinstance(first, Chain) and not isinstance(x, Sentences):
            features: Sentences = first.transform_one(x)
            return features
        return read_sentences([x])

    def read_batch(self, model: Any, X: Any) -> Iterator[Sentences]:
        """Yield the features of each sentence of a batch."""
        first = container.steps_of(model)[0]
        is_read = isinstance(X, Sentences) or not isinstance(first, Chain)
        return each_of(sentences_in(X) if is_read else first.transform_many(X))

    def read_labels(self, y: Any) -> Sequence[Any]:
        """Return the labels of a batch, an entry for each sentence."""
        return label_lists(y)

    # What was learnt

    @property
    def description(self) -> str:
        """The parameters in use that matter most, in a few words."""
        return f"{super().description}, order={self.order_}"

    @property
    def order_(self) -> int:
        """The order in use."""
        return self.solver.schedule.order

    @property
    def classes(self) -> list[Any]:
        """The labels seen, in the order of first appearance."""
        return list(self.targets.labels.seen)

    @property
    def n_examples(self) -> int:
        """Number of sentences learnt."""
        return int(self.solver.model.info[0].n_sentences)

    @property
    def n_tokens(self) -> int:
        """Number of tokens learnt."""
        return int(self.solver.model.info[0].n_tokens)

    @property
    def kappa(self) -> float:
        """The share of steps that changed nothing; 0 before the first."""
        info = self.solver.model.info[0]
        return 1.0 - int(info.n_moved) / max(1, int(info.n_steps)) if info.n_steps else 0.0

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first sentence."""
        info = self.solver.model.info[0]
        ignored = int(self.vocabulary.counts[1])
        found = {name: int(info[name]) for name in ("n_steps", "n_moved", "n_forgotten")}
        return found | ({"features_ignored": ignored} if ignored else {})

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean gap; without examples kept there is none."""
        return Certificate(None, "no examples are kept")

    @property
    def cache_limit(self) -> int | None:
        """The bytes that cached kernel rows may take at most."""
        return self.solver.cache_bytes

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        with self.lock:
            return _bytes_of((self.solver.model, self.solver.patterns, self.vocabulary))


def _bytes_of(part: Any) -> int:
    """Return the bytes of all arrays in nested tuples."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    return sum(map(_bytes_of, part)) if isinstance(part, tuple) else 0
