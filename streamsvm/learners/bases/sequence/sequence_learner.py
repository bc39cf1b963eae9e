"""The base class of learners of label sequences: sentences, learnt and predicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from river import base

from streamsvm._compiling import working_time
from streamsvm._parameter_checks import check_class_weight, check_size, weights_of
from streamsvm.errors import ParameterError
from streamsvm.labels.class_labels import ClassLabels
from streamsvm.labels.label_column import MISSING
from streamsvm.labels.sequence_targets import SequenceTargets
from streamsvm.learners.bases import words
from streamsvm.learners.bases.sequence.sequence_batches import (
    columns_like,
    label_lists,
    sentences_in,
)
from streamsvm.model_files import container
from streamsvm.monitor.certificate import Certificate
from streamsvm.monitor.learnt import Learnt
from streamsvm.solvers.sequences.inference import Batch, SequenceSolver
from streamsvm.structured import vocabulary
from streamsvm.structured.sentences import Sentences, read_sentences
from streamsvm.support.locked import Locked, guarded
from streamsvm.support.rows import SparseRows

LIMIT = 2**23
"""The most features that are learnt by default."""

_PART = 512
"""Number of sentences learnt between two looks for Ctrl-C."""


class SequenceLearner(Locked, container.Saved, base.Estimator):
    """A River estimator for sentences; a subclass adds the constructor's signature.

    Parameters
    ----------
    solver
        What it learns with.
    cost
        C, or the size of the perceptron's steps.
    others
        As in `LaRankSequenceLabeler`.

    Attributes
    ----------
    targets, vocabulary, n_known_features
        The labels; the features, and how many of them the solver has room for.

    """

    takes = "sentences"
    chunk = 512
    """Number of sentences that a run learns before it checks the time and for Ctrl-C."""

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
        # The monitor that is told of each sentence learnt.
        self.observer: Any = None
        if class_weight == "balanced":
            raise ParameterError("class_weight='balanced': use a dict {label: factor}")
        check_class_weight(class_weight)
        if check_size("max_features", max_features) is None:
            raise ParameterError("max_features=None: use a whole number of at least 1")
        self.inference, self.order, self.class_weight = inference, order, class_weight
        self.max_features = int(max_features)
        self.max_classes = check_size("max_classes", max_classes, 2)
        self.targets = SequenceTargets(ClassLabels(most=self.max_classes))
        self.solver, self.cost = solver, float(cost)
        self.vocabulary = vocabulary.new_vocabulary()
        self.n_known_features = 0

    def __repr__(self) -> str:
        return words.short(self)

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
        before = self.targets.n_classes, self.n_known_features
        labels, known, targets = self.targets.read(y, sentences)
        x = self._entered(sentences, targets)
        batch = Batch(x, sentences.first, labels, known, weights * self.cost)
        self._learn_batch(batch, *before, predicted)

    def _entered(self, sentences: Sentences, targets: SequenceTargets) -> SparseRows:
        """Enter new features and labels; return the rows of the tokens."""
        known, most = self.n_known_features, self.most_features
        try:
            self.vocabulary, x = vocabulary.learnt_rows(self.vocabulary, sentences, most)
            self.grow(x.d, targets.labels.seen)
        except BaseException:
            self.vocabulary = vocabulary.shortened(self.vocabulary, known)
            raise
        # Last: whatever interrupts, labels and features that count have their weights.
        self.targets, self.n_known_features = targets, x.d
        return x

    def grow(self, d: int, seen: list[Any]) -> None:
        """Make room for so many features, and for these labels; no prediction changes."""
        self.solver.grow(d, len(seen), self.most_features)
        if self.class_weight:
            for code, label in enumerate(seen):
                self.solver.model.cost[code] = float(self.class_weight.get(label, 1.0))

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
                self._tell(x, part, guessed, working_time() - began)

    def _guessed(self, x: SparseRows, n: int, d: int) -> list[Any]:
        """Return the labels of a sentence, predicted with the first n labels and d features."""
        if n == 0:
            return [None] * (x.start.size - 1)
        if d < x.d:
            x = x._replace(values=np.where(x.columns < d, x.values, np.float32(0.0)))
        codes = self.solver.predict(x, np.array([0, x.start.size - 1]), n, np.zeros((0, 1)))
        return self.targets.labels_of(codes)

    def _tell(self, x: SparseRows, part: Batch, guessed: list[Any], seconds: float) -> None:
        """Tell the observer of the tokens of a sentence that took so long to learn."""
        codes, n = part.labels[part.first[0] : part.first[1]], len(guessed)
        labels = self.targets.labels_of(codes)
        numbers = np.arange(self.n_tokens - n, self.n_tokens) + 1
        none = np.zeros(n)
        facts = (codes.astype(float), labels, guessed, none, none + 1.0, numbers, seconds)
        self.observer.learnt(Learnt(x, *facts))

    def _contents(self) -> dict[str, Any]:
        # A copy is its own: a monitor observes one learner.
        return super()._contents() | {"observer": None}

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
        x = vocabulary.known_rows(self.vocabulary, sentences, self.n_known_features)
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
            return words.table(self)

    # What was learnt

    @property
    def description(self) -> str:
        """The parameters in use that matter most, in a few words."""
        named = ("inference", "C", "kernel", "window", "max_support_patterns")
        given = {name: getattr(self, name, None) for name in named}
        said = [f"{name}={value}" for name, value in given.items() if value is not None]
        return ", ".join([*said, f"order={self.order_}"])

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
    def n_features(self) -> int:
        """Number of features seen."""
        return self.n_known_features

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
    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        with self.lock:
            return _bytes_of((self.solver.model, self.solver.patterns, self.vocabulary))


def _bytes_of(part: Any) -> int:
    """Return the bytes of all arrays in nested tuples."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    return sum(map(_bytes_of, part)) if isinstance(part, tuple) else 0
