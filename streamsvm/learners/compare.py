"""Two models side by side on one stream, and which of them is better: a wrapper of both."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator
from typing import Any

from river import base

from streamsvm._parameter_checks import LARGEST_ID, check_whole
from streamsvm.confidence.comparison import NAMES, Comparison
from streamsvm.errors import LabelError, ParameterError
from streamsvm.features.frames import Batch
from streamsvm.labels.class_labels import too_many_classes
from streamsvm.labels.label_column import Label
from streamsvm.learners.active import ActiveLearner
from streamsvm.learners.bases import comparison_file
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.wrapper import ModelWrapper, RiverEvent
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.model_files import codec
from streamsvm.model_files.container import register_wrapper, steps_of
from streamsvm.model_files.json_values import Json
from streamsvm.support.locked import guarded

_log = logging.getLogger(__name__)

_ACTIONS = (None, "promote", "stop")
_OWN = "a function"


class Compare(ModelWrapper, base.Estimator):
    """Runs two models side by side, and says at each moment which is better, or not known yet.

    Both predict each event before either learns it. "b is better" after n events means that in the
    mean of these n events b's expected loss, given what came before each, is below that of a. It is
    said when a bet against the opposite (the null hypothesis: b's is not below) made a bettor
    2 / (1 - level) times as rich, 40 times by default. That he ever becomes so rich at an n at
    which the null hypothesis is true has probability (1 - level) / 2 at most; the same for a. So
    you may look after each event, and stop or act when you like. Nothing is assumed of the stream:
    models learn, events depend on each other, and what is better may change. Nothing is said of
    later events either.

    It predicts what `a` predicts, until `b` takes over. Then `b` alone predicts and learns, and
    `a` stays as it was at that moment. Learn in one thread, and predict by a `Serving` in others;
    copies and files that others make of it are of one moment.

    Parameters
    ----------
    a
        The model in use: any River classifier, regressor or pipeline.
    b
        The candidate, another object.
    level
        The probability that all decisions hold, of both models and of all moments; .95 by default.
    learns
        Which of both learn: ("a", "b") by default; ("b",): a saved model is used as it is.
    on_decision
        None, the default: both go on. "promote": b takes over as soon as it is better; if a is
        better, the comparison goes on. "stop": the first that is better goes on alone. Or a
        function: it is given the figures of the moment at which a model is known to be better for
        the first time, and returns one of these three; if it raises, it is called again after the
        next event. Files hold no function: set it anew.
    loss
        None, the default: 1 for a wrong prediction, 0 for a right one (of a bag: one of its
        labels). Or a function of the label and a prediction that returns a number from 0 to
        `largest_loss`: costs of errors, or a distance of numbers that is cut off
        (``lambda y, p: min(abs(y - p), 10)``). Where a model predicts nothing yet, it loses most.
    largest_loss
        The largest value of `loss`, 1 by default. The evidence is weak if losses are mostly far
        below it.
    warm_up
        So many first events are not compared, 0 by default: while a new candidate learns what the
        model in use knows already.

    Attributes
    ----------
    comparison
        Counts, losses, `figures()`, `decision`, `interval()` and `in_words()`.
    model
        The model that predicts: `a`, or `b` after it took over.
    record
        How the comparison ended: the figures at that moment (events, counts, e-value, interval),
        which model is `in_use`, and `why`. None: it goes on.

    Raises
    ------
    ParameterError
        A parameter is out of range, or a regressor has no `loss`.

    References
    ----------
    Waudby-Smith, Ramdas, Estimating Means of Bounded Random Variables by Betting, JRSS B 86 (2024);
    Choe, Ramdas, Comparing Sequential Forecasters, Operations Research 72 (2024).

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import Compare, LASVMClassifier, SVMSGDClassifier
    >>> model = Compare(SVMSGDClassifier(), LASVMClassifier(), on_decision="promote")
    >>> for x, y in datasets.Bananas():
    ...     predicted = model.predict_one(x)
    ...     model.learn_one(x, y)
    >>> model.record["decision"], model.record["n"] < 500, model.model is model.b
    ('b', True, True)

    """

    def __init__(
        self,
        a: base.Estimator,
        b: base.Estimator,
        level: float = 0.95,
        learns: Collection[str] = NAMES,
        on_decision: str | Callable[[dict[str, object]], str | None] | None = None,
        loss: Callable[[Any, Any], float] | None = None,
        largest_loss: float = 1.0,
        warm_up: int = 0,
    ) -> None:
        super().__init__()
        self.a, self.b = a, b
        self.level, self.learns, self.on_decision = level, learns, on_decision
        self.loss, self.largest_loss, self.warm_up = loss, largest_loss, warm_up
        self._check()
        # Those learners that may refuse a label as one class too many.
        last = [steps_of(model)[-1] for name, model in (("a", a), ("b", b)) if name in learns]
        learners = [one for one in last if isinstance(one, Learner)]
        self._limited = [(one, n) for one in learners if (n := one.most_classes) is not None]
        self._undecided: str | None = None
        action = _OWN if callable(on_decision) else on_decision
        kept = {"learns": sorted(learns), "on_decision": action}
        most = None if loss is None else float(largest_loss)
        self.comparison = Comparison(level, most, self.warm_up, kept)

    def _check(self) -> None:
        """Refuse parameters that are out of range."""
        for name, model in (("a", self.a), ("b", self.b)):
            is_other = isinstance(model, (type, ActiveLearner, Compare))
            if is_other or not hasattr(model, "predict_one"):
                what = "use a River classifier or regressor, not an ActiveLearner"
                raise ParameterError(f"{name}={model!r:.80}: {what}")
            if isinstance(steps_of(model)[-1], base.Regressor) and self.loss is None:
                raise ParameterError("loss=None: numbers need one, such as a distance cut off")
        if self.a is self.b:
            raise ParameterError("a and b are one object: copy it")
        level, largest, warm_up = self.level, self.largest_loss, self.warm_up
        if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
            raise ParameterError(f"level={level!r}: use a number between 0 and 1, such as 0.95")
        if isinstance(self.learns, str) or not set(self.learns) <= set(NAMES):
            raise ParameterError(f'learns={self.learns!r}: use ("a", "b"), or one, or none of both')
        if not (callable(self.on_decision) or self.on_decision in _ACTIONS):
            raise ParameterError(
                f'on_decision={self.on_decision!r}: use None, "promote", "stop" or a function'
            )
        if not (self.loss is None or callable(self.loss)):
            raise ParameterError(f"loss={self.loss!r}: use a function of label and prediction")
        if not (isinstance(largest, (int, float)) and 0 < largest < math.inf):
            raise ParameterError(f"largest_loss={largest!r}: use a finite number above 0")
        self.warm_up = check_whole("warm_up", warm_up, 0, LARGEST_ID)

    @property
    def figures(self) -> dict[str, float | None]:
        """What a monitor records of it."""
        return dict(self.comparison.numbers())

    @property
    def model(self) -> Any:
        """The model that predicts."""
        # The record is set in one step: another thread sees one model or the other.
        record = self.comparison.outcome
        return self.a if record is None or record["in_use"] == "a" else self.b

    @property
    def record(self) -> Json | None:
        """How the comparison ended; None: it goes on."""
        return self.comparison.outcome

    @property
    def _names_rows(self) -> Any:
        """The same model at all times: names of columns do not change when `b` takes over."""
        return self.a

    @property
    def steps(self) -> dict[object, object]:
        """What model files hold: the `comparison`, and the steps of both models."""
        steps = [*steps_of(self.a), *steps_of(self.b)]
        return {"comparison": self.comparison, **dict(enumerate(steps))}

    @classmethod
    def of_steps(cls, comparison: Comparison, a: base.Estimator, b: base.Estimator) -> Compare:
        """Return the model whose `steps` are these; a function of its own is to be set anew."""
        kept, largest = comparison.kept, comparison.largest_loss
        loss = None if largest is None else comparison_file.loss_is_missing
        action = kept.get("on_decision")
        if action == _OWN:
            action = comparison_file.decision_is_missing
        learns, level = tuple(kept.get("learns", ())), comparison.level
        found = cls(a, b, level, learns, action, loss, largest or 1.0, comparison.warm_up)
        found.comparison = comparison
        return found

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"a": SVMSGDClassifier(), "b": SVMSGDClassifier(l2=1e-3)}

    # Events

    def predict_both_one(self, x: RiverEvent) -> tuple[Label, Label]:
        """Return what a and what b predict for an event.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        Two labels, or numbers; None before the first label.

        """
        return self.a.predict_one(x), self.b.predict_one(x)  # type: ignore[attr-defined]

    @guarded
    def learn_one(
        self, x: RiverEvent, y: Label, given: tuple[Label, Label] | None = None, **kwargs: object
    ) -> None:
        """Compare what both models predict for an event, and let them learn it.

        Parameters
        ----------
        x
            Features by name.
        y
            The label, or number.
        given
            What `predict_both_one` returned for the event, if its label comes after further events;
            None: what both predict now.
        **kwargs
            Passed on to the models: a weight ``w``, for example, which does not count in the
            comparison.

        Raises
        ------
        LabelError
            One of the models cannot take the label; neither has learnt.

        """
        comparison = self.comparison
        if comparison.outcome is not None:
            if comparison.outcome["in_use"] in self.learns:
                self.model.learn_one(x, y, **kwargs)
            return
        guess_a, guess_b = self.predict_both_one(x) if given is None else given
        losses = self._loss_of(y, guess_a), self._loss_of(y, guess_b)
        if self.on_decision is comparison_file.decision_is_missing:
            comparison_file.decision_is_missing({})
        for one, most in self._limited:
            classes = one.classes
            if len(classes) >= most and y not in classes and not isinstance(y, (set, frozenset)):
                raise LabelError(too_many_classes(y, most))
        if "a" in self.learns:
            self.a.learn_one(x, y, **kwargs)  # type: ignore[attr-defined]
        if "b" in self.learns:
            self.b.learn_one(x, y, **kwargs)  # type: ignore[attr-defined]
        # After it: an event that a model refuses is not counted.
        known = comparison.add(*losses) or self._undecided
        if known is not None:
            self._undecided = known
            self._decide(known)
            self._undecided = None

    def _loss_of(self, y: Label, predicted: Label) -> float:
        """Return the loss of a prediction."""
        if self.loss is None:
            is_right = predicted == y or (isinstance(y, (set, frozenset)) and predicted in y)
            return 0.0 if is_right else 1.0
        if predicted is None:
            return float(self.largest_loss)
        value = float(self.loss(y, predicted))
        if not 0.0 <= value <= self.largest_loss:
            raise ParameterError(
                f"loss={self.loss!r:.60}: {value:g} for {predicted!r:.40} and {y!r:.40}, which is "
                f"not from 0 to largest_loss={self.largest_loss:g}"
            )
        return value

    def _decide(self, known: str) -> None:
        """Do what is to be done when a model is known to be better for the first time."""
        action = self.on_decision
        if callable(action):
            action = action(self.comparison.figures() | {"decision": known})
            if action not in _ACTIONS:
                raise ParameterError(
                    f'on_decision returned {action!r}: use None, "promote", "stop"'
                )
        _log.info("%s", self.comparison.in_words())
        if action == "stop" or (action == "promote" and known == "b"):
            self._end(known, f"{known} is better")

    @guarded
    def end(self, in_use: str = "b", why: str = "by hand") -> Json:
        """End the comparison: one model goes on alone, at once, and the other stays as it is.

        Parameters
        ----------
        in_use
            "b", the default, or "a".
        why
            What the record says is the reason.

        Returns
        -------
        The `record`.

        Raises
        ------
        ParameterError
            There is no model of this name, or the comparison has ended before.

        """
        return self._end(in_use, why)

    def _end(self, in_use: str, why: str) -> Json:
        if self.comparison.outcome is not None:
            raise ParameterError("the comparison has ended: record says when and why")
        if in_use not in NAMES:
            raise ParameterError(f'in_use={in_use!r}: use "a" or "b"')
        record = self.comparison.figures() | {"in_use": in_use, "why": str(why)}
        self.comparison.outcome = record
        _log.info("%s goes on alone after %d events: %s", in_use, record["n_seen"], why)
        return record

    # Batches

    def predict_many(self, X: Batch, **kwargs: object) -> Any:
        """Return what the model in use predicts for the rows of a batch.

        Parameters
        ----------
        X
            What the model takes.
        **kwargs
            Passed on to the model.

        Returns
        -------
        What its own `predict_many` returns.

        """
        return self.model.predict_many(X, **kwargs)


codec.register(
    Comparison,
    write=Comparison.as_json,
    read=comparison_file.comparison_of,
    settings=Comparison.settings,
)
register_wrapper(Comparison, Compare.of_steps, is_around_several=True)
