"""Answers only where few of them are wrong: a wrapper of any classifier."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from typing import Any

from river import base

from streamsvm.errors import LabelError, ParameterError
from streamsvm.features.frames import Batch
from streamsvm.labels.class_labels import Probabilities
from streamsvm.labels.label_column import Label
from streamsvm.learners.active import ActiveLearner
from streamsvm.learners.ambiguous import AmbiguousSVMClassifier
from streamsvm.learners.bases.wrapper import ModelWrapper, RiverEvent, events_of
from streamsvm.learners.compare import Compare
from streamsvm.learners.conformal_sets import ConformalSets, has_probabilities
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.model_files import codec
from streamsvm.model_files.container import register_wrapper, steps_of
from streamsvm.selection.answering import Answer, Answering
from streamsvm.selection.waiting import MOST, Waiting
from streamsvm.support.locked import guarded

_log = logging.getLogger(__name__)


class Selective(ModelWrapper, base.Classifier):
    """Answers an event only if it can hold the error of its answers; else it returns None.

    Of N answers whose labels came, at most error N + 2 (1 + R) + D are wrong at any moment of any
    stream, where R, how often answers were held back and given again, is at most
    log2(1 + error T) after T events, and D is how many other answers waited for their labels at a
    time, 0 if labels come at once. Below error N they are where the future is like some of the
    past; that needs evidence first: about 13 / error events without a mistake, more with some. What
    is promised, what is assumed, and the proof are in `streamsvm.confidence.selective`.

    It wraps any River classifier or pipeline that predicts probabilities. An event without an
    answer goes to a person, a queue or a topic, and comes back with its label to `learn_one`, at
    once or later. What counts is what `predict_one` said of an event with the same features: the
    last 10,000 answers wait for their labels (not in files); give back what `answer_one` returned
    if more do, or if features change meanwhile. An event that was not predicted is answered by
    `learn_one` itself. Learn in one thread, and predict by a `Serving` in others; copies and files
    that others make of it are of one moment.

    Parameters
    ----------
    model
        The classifier or pipeline that learns and predicts.
    error
        The share of the answers that may be wrong, from .0001 to .5; .02 by default.
    level
        The probability with which the evidence for a threshold holds, between 0 and 1; .95 by
        default.
    audit
        0, the default: the labels of answered events come, too, or a random part of them. If labels
        come for events without an answer only, or if those that come for answers are not a fair
        part (complaints), give the share of all events that are not answered but looked at, drawn
        at random: evidence and errors are then of these only, and the bound above is for those of
        them that would have been answered.
    seed
        Seed of the draws of `audit`; None: different ones each time.

    Attributes
    ----------
    answering
        What decides, with its `counts` and `figures()`.

    Raises
    ------
    ParameterError
        A parameter is out of range, or the model has no probabilities.

    References
    ----------
    Waudby-Smith, Ramdas, Estimating Means of Bounded Random Variables by Betting, JRSS B 86 (2024);
    El-Yaniv, Wiener, On the Foundations of Noise-free Selective Classification, JMLR 11 (2010).

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import AdaptiveSVMClassifier, Selective
    >>> model = Selective(AdaptiveSVMClassifier(), error=0.05)
    >>> answers = wrong = 0
    >>> for x, y in datasets.Bananas():
    ...     label = model.predict_one(x)
    ...     if label is not None:
    ...         answers, wrong = answers + 1, wrong + (label != y)
    ...     model.learn_one(x, y)
    >>> print(f"over 40 % answered: {answers > 0.4 * 5300}, and right: {wrong / answers < 0.05}")
    over 40 % answered: True, and right: True

    """

    def __init__(
        self,
        model: base.Classifier,
        error: float = 0.02,
        level: float = 0.95,
        audit: float = 0.0,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.error, self.level, self.audit, self.seed = error, level, audit, seed
        is_other = isinstance(model, (type, ActiveLearner, ConformalSets, Compare, Selective))
        last = steps_of(model)[-1]
        is_other = is_other or isinstance(last, AmbiguousSVMClassifier)
        if is_other or not has_probabilities(last):
            raise ParameterError(f"model={model!r:.80}: use a classifier with probabilities")
        self.answering = Answering(error, level, audit, seed)
        # The event that was answered last, a copy of it, the answer, and whether it is to be kept.
        self._last: tuple[RiverEvent, RiverEvent, Answer, bool] | None = None
        self._waiting = Waiting()
        self._has_warned = False

    @property
    def figures(self) -> dict[str, float | None]:
        """What a monitor records of it."""
        return dict(self.answering.figures())

    @property
    def steps(self) -> dict[object, object]:
        """What model files hold: the `answering`, and the steps of the model."""
        return {"answering": self.answering, **dict(enumerate(steps_of(self.model)))}

    @classmethod
    def of_steps(cls, answering: Answering, model: base.Classifier) -> Selective:
        """Return the wrapper whose `steps` are these."""
        found = cls(model, answering.error, answering.level, answering.audit, answering.seed)
        found.answering = answering
        return found

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"model": SVMSGDClassifier(), "seed": 42}

    def answer_one(self, x: RiverEvent, **kwargs: object) -> Answer:
        """Return the answer to an event, with all that is to be kept until its label comes.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Passed on to `predict_proba_one` of the model.

        Returns
        -------
        Its `label`, None: there is no answer, and `why`; the most `likely` label. Give it back to
        `learn_one` if other events come before the label.

        """
        return self._answer(x, kwargs, False)

    @guarded
    def _answer(self, x: RiverEvent, kwargs: dict[str, object], is_kept: bool) -> Answer:
        """Return the answer to an event, which waits for its label here if it `is_kept`."""
        last = self._last
        if last is not None and last[3]:
            self._waiting.add(last[1], last[2])
            self._last = None
        found = self.answering.next(self.model.predict_proba_one(x, **kwargs))
        # A copy: the caller may fill the same dict with the next event.
        self._last = x, (x.copy() if type(x) is dict else copy.copy(x)), found, is_kept
        return found

    def predict_one(self, x: RiverEvent, **kwargs: object) -> Any:
        """Return the answer to an event; it counts.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Passed on to `predict_proba_one` of the model.

        Returns
        -------
        A label; None: there is no answer.

        """
        return self._answer(x, kwargs, True).label

    @guarded
    def learn_one(
        self, x: RiverEvent, y: Label, given: Answer | None = None, **kwargs: object
    ) -> None:
        """Count whether the answer to an event was right, and learn the event.

        Parameters
        ----------
        x
            Features by name.
        y
            The label.
        given
            What `answer_one` returned for the event, if its label comes after further events; None:
            what was said last if that was of this event, what `predict_one` said of an equal event
            before, or what would be answered now.
        **kwargs
            Passed on to the model: a weight ``w``, for example.

        Raises
        ------
        LabelError
            The model takes no such label. If it had an answer, that was wrong, and counts.

        """
        known = self._given(x) if given is None else given
        p: Any = self.model.predict_proba_one(x) if known is None else None
        try:
            self.model.learn_one(x, y, **kwargs)
        except LabelError:
            self._refuse(x, y, known)
            raise
        # After it: an event that the model refuses otherwise is not counted.
        if known is None:
            known = self._late(p) if self._waiting.n_dropped else self.answering.next(p)
        self.answering.learn(y, known)

    @guarded
    def refuse_one(self, x: RiverEvent, y: Label, given: Answer | None = None) -> None:
        """Count an event whose label the model does not take: an answer to it was wrong.

        `learn_one` does it itself where it raises LabelError.

        Parameters
        ----------
        x
            Features by name.
        y
            The label; None and NaN are none, and do not count.
        given
            As in `learn_one`; None: what was said of the event, if that is known.

        """
        self._refuse(x, y, given)

    def _refuse(self, x: RiverEvent, y: Label, given: Answer | None) -> None:
        known = self._given(x) if given is None else given
        if known is not None and y is not None and y == y:
            self.answering.learn(y, known)

    def _given(self, x: RiverEvent) -> Answer | None:
        """Return what was said of an event, and keep it no longer; None: that is not known."""
        last, self._last = self._last, None
        if last is not None:
            if last[0] is x and last[1] == x:
                return last[2]
            if last[3]:
                self._waiting.add(last[1], last[2])
        return self._waiting.take(x) if self._waiting.n else None

    def _late(self, p: Probabilities) -> Answer:
        """Return what would be said of an event now; what was said is perhaps forgotten."""
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "the label of an event came for which no answer is known, and more than %d answers "
                "wait: errors of answers may not be counted; give learn_one what answer_one "
                "returned", MOST,
            )  # fmt: skip
        return self.answering.answer(p)

    # Batches

    def predict_many(self, X: Batch, **kwargs: object) -> list[Label | None]:
        """Return the answers to the rows of a batch; they are not counted, nor drawn for audit.

        Parameters
        ----------
        X
            NumPy array (n, d), SciPy sparse matrix, Arrow RecordBatch or Table, pandas or polars
            frame.
        **kwargs
            Passed on to `predict_proba_one`.

        Returns
        -------
        n labels; None: there is no answer.

        """
        answer, p = self.answering.answer, self.model.predict_proba_one
        return [answer(p(x, **kwargs)).label for x in events_of(self.model, X)]


codec.register(
    Answering, write=Answering.as_json, read=Answering.from_json, settings=Answering.parameters
)
register_wrapper(Answering, Selective.of_steps)
