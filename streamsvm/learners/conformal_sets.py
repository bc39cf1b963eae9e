"""Sets of labels with a coverage that holds on any stream: a wrapper of any model."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from river import base

from streamsvm._parameter_checks import weights_of
from streamsvm.errors import ParameterError
from streamsvm.features.frames import Batch
from streamsvm.labels.counted_sets import Sets
from streamsvm.labels.label_column import Label, Labels
from streamsvm.labels.labelled_rows import Weights
from streamsvm.labels.prediction_sets import Intervals, LabelSets
from streamsvm.labels.token_sets import Margins, TokenSets
from streamsvm.learners.active import ActiveLearner
from streamsvm.learners.ambiguous import AmbiguousSVMClassifier
from streamsvm.learners.bases.token_labels import Features, LabelsTokens
from streamsvm.learners.bases.wrapper import ModelWrapper, events_of, learn_events
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.model_files import codec
from streamsvm.model_files.container import register_wrapper, steps_of
from streamsvm.support.locked import guarded


def has_probabilities(learner: Any) -> bool:
    """Return whether a classifier predicts them: some of River's have the method, but raise."""
    found = getattr(type(learner), "predict_proba_one", None)
    return found is not None and found is not base.Classifier.predict_proba_one


class ConformalSets(ModelWrapper, base.Estimator):
    """Predicts a set of labels that has the true one in a given share of the events.

    That share holds over the long run whatever the stream does: drift, sorted rows, another unit.
    With a = 1 - coverage, among the first T events, at any moment, fewer than a T + 5 labels that
    were met before are missed, and more than a T - 9 (see `streamsvm.confidence.conformal` for the
    proof); with labels that come up to d events late, up to d (1 + 4 a) more. Of more than 50
    labels it is 17 and 33, instead of 5 and 9.
    Where the model is good, sets are small; nothing is promised for a single event.

    It wraps any River classifier or pipeline that predicts probabilities, or any regressor, whose
    sets are intervals. Of a learner of label sequences, alone or after a `Chain`, each token has a
    set: of the labels that are far enough ahead of the best other one, or little enough behind it,
    by the scores of `decision_function_one`. Each event is predicted before it is learnt: by
    `predict_set_one`, if that was called last with the same event, so that the set that was given
    is the one that counts; else by `learn_one` itself. Learn in one thread, and predict by a
    `Serving` in others; copies and files that others make of it are of one moment.

    Parameters
    ----------
    model
        The classifier, regressor, learner of label sequences, or pipeline, that learns.
    coverage
        The share of events whose label is in the set, between 0 and .9995; .9 by default.
    by_class
        Whether it holds for the events of each label apart, so that a rare one is covered, too.
        Sets are then larger. The bounds are for each label.
    score
        "least_ambiguous", the default: labels of a probability above a threshold, which makes sets
        the smallest in the mean. "adaptive": the most likely labels until their probabilities sum
        up to a threshold, so that sets are larger where the model is less sure; not for sequences.
    may_be_empty
        True, the default: a set is empty where no label is likely enough, as on some events of a
        model that is more often right than asked for. False: the most likely label is then in it,
        and the coverage may be above the share asked for.

    Attributes
    ----------
    sets
        The sets: their counts (`n`, `n_missed`, ...), `figures()` and `coverage_by_class()`.

    Raises
    ------
    ParameterError
        A parameter is out of range, or the model has no probabilities.

    References
    ----------
    Gibbs, Candes, Adaptive Conformal Inference Under Distribution Shift, NeurIPS (2021); Sadinle,
    Lei, Wasserman, Least Ambiguous Set-Valued Classifiers, JASA 114 (2019).

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import AdaptiveSVMClassifier, ConformalSets
    >>> model = ConformalSets(AdaptiveSVMClassifier(), coverage=0.95)
    >>> hits = 0
    >>> for x, y in datasets.Phishing():
    ...     hits += y in model.predict_set_one(x)
    ...     model.learn_one(x, y)
    >>> print(f"{hits / 1250:.0%}, {model.sets.figures()['set_single']:.0%} of one label")
    95%, 8...% of one label

    """

    has_sets = True

    def __init__(
        self,
        model: base.Estimator,
        coverage: float = 0.9,
        by_class: bool = False,
        score: str = "least_ambiguous",
        may_be_empty: bool = True,
    ) -> None:
        super().__init__()
        self.model = model
        self.coverage, self.by_class = coverage, by_class
        self.score, self.may_be_empty = score, may_be_empty
        last = steps_of(model)[-1]
        predicts_numbers = isinstance(last, base.Regressor)
        if has_tokens := isinstance(last, LabelsTokens):
            last.check_steps(model)
        has_sets = predicts_numbers or has_tokens or has_probabilities(last)
        is_other = isinstance(model, (type, ActiveLearner, ConformalSets))
        if is_other or isinstance(last, AmbiguousSVMClassifier) or not has_sets:
            raise ParameterError(
                f"model={model!r:.80}: use a regressor, a learner of label sequences, or a "
                "classifier with probabilities"
            )
        self.sets: Sets
        if predicts_numbers:
            if by_class or score != "least_ambiguous" or not may_be_empty:
                raise ParameterError("by_class, score, may_be_empty: not for intervals of numbers")
            self.sets = Intervals(coverage)
        else:
            kind = TokenSets if has_tokens else LabelSets
            self.sets = kind(coverage, by_class, score, may_be_empty)
        self._predicts_numbers, self._has_tokens = predicts_numbers, has_tokens
        self._is_plain = not (predicts_numbers or has_tokens)
        # The event that was predicted last, a copy of it, what was predicted, and the set.
        self._last: tuple[Any, Any, Any, tuple[Label, ...]] | None = None
        # The same of a sentence: its features, the margins, and the sets.
        self._last_sentence: tuple[Features, Margins, tuple[Label, ...]] | None = None

    @property
    def figures(self) -> dict[str, float | None]:
        """What a monitor records of it."""
        return dict(self.sets.figures())

    @property
    def _labeler(self) -> LabelsTokens:
        """The learner of label sequences."""
        found: LabelsTokens = steps_of(self.model)[-1]
        return found

    @property
    def steps(self) -> dict[object, object]:
        """What model files hold: the `sets`, and the steps of the model."""
        return {"sets": self.sets, **dict(enumerate(steps_of(self.model)))}

    @classmethod
    def of_steps(cls, sets: Sets, model: base.Estimator) -> ConformalSets:
        """Return the wrapper whose `steps` are these."""
        found = cls(model, sets.coverage)
        if isinstance(sets, LabelSets):
            found = cls(model, sets.coverage, sets.by_class, sets.score, sets.may_be_empty)
        if type(found.sets) is not type(sets):
            raise ValueError("sets of labels are not for numbers, nor intervals for labels")
        found.sets = sets
        return found

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"model": SVMSGDClassifier()}

    @guarded
    def predict_set_one(self, x: Any) -> tuple[Label, ...]:
        """Return the set of an event; it counts if the event is the next one that is learnt.

        It is taken to wait for its label, until `learn_one` is given it. Steps are smaller while
        many wait; sets that nobody learns later are those of `predict_set_many`.

        Parameters
        ----------
        x
            Features by name; or a sentence, as the learner of label sequences takes it.

        Returns
        -------
        The labels, the most likely one first; of a sentence such a set for each token. Empty: a
        miss is due, or none is likely enough. All labels: nothing can be ruled out, as at the
        start, after misses, or of a strange event. From a regressor the lower and upper end:
        infinite ones where nothing can be ruled out, or the prediction is no finite number; both
        are the prediction where an empty set would be.

        """
        sets = self.sets
        n = sets.n_waiting = sets.n_waiting + 1
        if n > 1:
            sets.wait()
        if self._is_plain:  # without a call more
            predicted = self.model.predict_proba_one(x)
            found = sets.of(predicted)
        elif self._has_tokens:
            features = self._labeler.read_sentence(self.model, x)
            margins, found = self._predicted_tokens(features)
            self._last_sentence = features, margins, found
            return found
        else:
            predicted, found = self._predicted(x)
        # A copy: the caller may fill the same dict with the next event.
        self._last = x, (x.copy() if type(x) is dict else copy.copy(x)), predicted, found
        return found

    def _predicted(self, x: Any) -> tuple[Any, tuple[Label, ...]]:
        """Return what the model predicts for an event, and its set."""
        if self._predicts_numbers:
            predicted: Any = float(self.model.predict_one(x))
        else:
            predicted = self.model.predict_proba_one(x)
        return predicted, self.sets.of(predicted)

    def _predicted_tokens(self, features: Features) -> tuple[Margins, tuple[Label, ...]]:
        """Return the margins of a sentence that was read, and its sets."""
        predicted = Margins.of(self._labeler.decision_function_one(features))
        return predicted, self.sets.of(predicted)

    @guarded
    def learn_one(
        self, x: Any, y: Any, given: Collection[Label] | None = None, **kwargs: object
    ) -> None:
        """Count whether the set of an event has its label, and learn the event.

        Parameters
        ----------
        x
            Features by name, or a sentence.
        y
            The label, or number; of a sentence a label for each token.
        given
            The set that was predicted for the event, if its label comes after further events, no
            string; None: the last one of the same event, or what would be predicted now. Of a
            sentence a set for each token.
        **kwargs
            Passed on to the model: a weight ``w``, for example.

        """
        last = self._last
        if last is not None and given is None and last[0] is x and last[1] == x:
            predicted, found = last[2], last[3]
        elif self._has_tokens:
            features = self._labeler.read_sentence(self.model, x)
            self._learn_tokens(features, y, given, kwargs)
            return
        else:
            if isinstance(given, str):
                raise ParameterError(f"given={given!r}: a string is no set; use a tuple of labels")
            predicted, found = self._predicted(x)
        self._last = None
        if kwargs:
            self.model.learn_one(x, y, **kwargs)
        else:
            self.model.learn_one(x, y)
        # After it: an event that the model refuses is not counted.
        sets = self.sets
        if given is not None:
            sets.came_late()
        elif sets.n_waiting:
            # Labels come at once: what waits may do so for ever.
            sets.n_waiting >>= 1
        sets.learn(y, predicted, found if given is None else given)

    def _learn_tokens(
        self, features: Features, y: Iterable[Label], given: Any, kwargs: dict[str, Any]
    ) -> None:
        """Count the sets of a sentence that was read, and learn it."""
        last, self._last_sentence = self._last_sentence, None
        if last is not None and given is None and all(map(np.array_equal, last[0], features)):
            _, predicted, found = last
        else:
            predicted, found = self._predicted_tokens(features)
        if given is not None and (isinstance(given, str) or len(given) != len(found)):
            raise ParameterError(f"given: {len(given)} sets, for {len(found)} tokens")
        y = list(y) if isinstance(y, Iterator) else y
        self._labeler.learn_one(features, y, **kwargs)
        self.sets.learn(y, predicted, found if given is None else given)

    # Batches

    def predict_set_many(self, X: Batch) -> list[tuple[Label, ...]]:
        """Return the sets of the rows of a batch whose labels come later, or never.

        Their thresholds are the quantile of the last scores at the coverage itself, without what
        makes up for misses: that is meant for the next event. So the bound is not for these sets,
        unless rows are like those before: let a model learn each event, or ask `predict_set_one`.

        Parameters
        ----------
        X
            NumPy array (n, d), SciPy sparse matrix, Arrow RecordBatch or Table, pandas or polars
            frame. Of a learner of label sequences what its `learn_many` takes.

        Returns
        -------
        n sets, or sets of the tokens of n sentences. Give them to `learn_many` for them to count.

        """
        with self.lock:
            sets = self.sets.at_rest()
        if self._has_tokens:
            labeler = self._labeler
            read = labeler.read_batch(self.model, X)
            return [sets.of(Margins.of(labeler.decision_function_one(one))) for one in read]
        model = self.model
        predict = model.predict_one if self._predicts_numbers else model.predict_proba_one
        return [sets.of(predict(x)) for x in events_of(self.model, X)]

    def learn_many(
        self,
        X: Batch,
        y: Labels,
        w: Weights | None = None,
        given: Sequence[Collection[Label]] | None = None,
        **kwargs: object,
    ) -> None:
        """Learn the rows of a batch in order: the same as by `learn_one`, one by one.

        Parameters
        ----------
        X
            As in `predict_set_many`.
        y
            n labels, or numbers; of sentences a list of labels for each.
        w
            None, or n weights, which the model must take.
        given
            The n sets that `predict_set_many` returned; None: what counts are sets that are made
            one by one, each after the row before was learnt.
        **kwargs
            Passed on to `learn_one`.

        """
        # No other thread learns between two rows.
        with self.lock:
            if self._has_tokens:
                self._learn_sentences(X, y, w, given, kwargs)
                return
            rows = list(events_of(self.model, X))
            if given is not None:
                self._come_late(len(rows), given)
            learn_events(self, iter(rows), y, w, given, **kwargs)

    @guarded
    def _learn_sentences(
        self,
        X: Batch,
        y: Labels,
        w: Weights | None,
        given: Sequence[Collection[Label]] | None,
        kwargs: dict[str, object],
    ) -> None:
        sentences = list(self._labeler.read_batch(self.model, X))
        labels = self._labeler.read_labels(y)
        weights = weights_of(1.0 if w is None else w, len(sentences)).tolist()
        own = [None] * len(sentences) if given is None else given
        for one, of, weight, sets in zip(sentences, labels, weights, own, strict=True):
            self._learn_tokens(one, of, sets, {"w": weight, **kwargs})

    @guarded
    def _come_late(self, n: int, given: Sequence[Collection[Label]]) -> None:
        """Count n events to be learnt whose sets were given before."""
        if len(given) != n:
            raise ParameterError(f"given: {len(given)} sets, for {n} rows")
        self.sets.n_waiting += n
        self.sets.wait()


for _kind in (LabelSets, TokenSets, Intervals):
    codec.register(_kind, write=_kind.as_json, read=Sets.from_json, settings=Sets.parameters)
    register_wrapper(_kind, ConformalSets.of_steps)
