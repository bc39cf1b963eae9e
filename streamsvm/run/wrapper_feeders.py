"""Batches into wrappers of models, whose rows are predicted and learnt one after the other.

What a wrapper says of a row depends on the row before it, whose label must be known to it: rows are
taken as events. What is held of an event whose label comes later is a `Given`: it counts.
"""

from __future__ import annotations

from typing import Any

from streamsvm.errors import ParameterError
from streamsvm.labels.given import Given, GivenBoth
from streamsvm.labels.label_column import Pairs
from streamsvm.learners.active import ActiveLearner
from streamsvm.learners.compare import Compare
from streamsvm.learners.conformal_sets import ConformalSets
from streamsvm.learners.selective import Selective
from streamsvm.model_files.container import steps_of
from streamsvm.run import parts
from streamsvm.run.asking_feeder import AskingFeeder
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.feeder import Feeder, guess_of
from streamsvm.selection.answering import Answer, GivenAnswer


class SetsFeeder(Feeder):
    """Predicts and learns batches with `ConformalSets`, or another wrapper: see the module."""

    in_turns = are_events = True
    once = "ConformalSets read a stream once, and forget nothing"
    """Why a stream is not read again, and nothing forgotten."""

    def check_run(self, epochs: int, forgets: bool) -> None:
        """Refuse a run that reads the stream again, or forgets events."""
        check_reading(epochs, forgets, self.once)

    def give_up(self, n: int) -> None:
        """Take that so many sets will not be learnt: see `Feeder`."""
        if isinstance(self.model, ConformalSets):
            self.model.sets.give_up(n)

    def _predict_event(self, x: dict[Any, Any], is_learnt: bool) -> tuple[Any, bool]:
        """Return what is predicted for an event; its set, too, if its label comes later."""
        guess = guess_of(self.model, x, is_learnt)
        self.further = {"set": []}
        if guess is None and is_learnt:
            return None, True
        labels = self.model.predict_set_one(x)
        self.further = {"set": list(labels)}
        return guess if is_learnt else Given(guess, labels), True

    def _learn_event(self, x: dict[Any, Any], w: float, y: Any, guess: Any) -> None:
        """Learn an event, with what was said of it before; a monitor scores what was predicted."""
        if not isinstance(guess, Given):
            parts.learn_event(self.model, x, w, y)
            return
        observer = getattr(self._watched, "observer", None)
        if observer is not None:
            observer.expect([guess.label])
        try:
            if self._are_answers or not isinstance(self.model, ConformalSets):
                parts.learn_event(self.model, x, w, y, given=guess.labels)
            else:  # a label that nobody gave says nothing of the set
                parts.learn_event(self.model.model, x, w, y)
                self.give_up(1)
        except BaseException:
            if observer is not None:
                observer.expect([])
            raise

    @property
    def _watched(self) -> Any:
        """The learner that may have a monitor."""
        return self.learner


class AnswersFeeder(SetsFeeder):
    """Predicts and learns batches with `Selective`: each row is answered or not, then learnt.

    Scored are the most likely labels of all events. What is held of an event whose label comes
    later is its answer. With `audit`, labels of answered events are not waited for.
    """

    once = "Selective reads a stream once, and forgets nothing"

    def _predict_event(self, x: dict[Any, Any], is_learnt: bool) -> tuple[Any, bool]:
        """Return the most likely label of an event; if its label comes later, the answer."""
        is_new = self.learner is not None and not self.learner.classes
        answer = self.model.answer_one(x)
        self.further = {"answer": answer.label}
        if is_learnt:
            return None if is_new else answer.likely, True
        held = GivenAnswer(answer)
        return held, held.is_asked or not self.model.audit

    def _learn_event(self, x: dict[Any, Any], w: float, y: Any, guess: Any) -> None:
        """Learn an event, with the answer that was given to it."""
        if isinstance(guess, Given):
            guess.labels = Answer(*guess.labels)
        last = self.learner
        if last is not None and not parts.can_be_label(y, last.classes, last.most_classes):
            # Refused below, but what was said of it counts.
            self.model.refuse_one(x, y, guess.labels if isinstance(guess, Given) else None)
        super()._learn_event(x, w, y, guess)


class CompareFeeder(SetsFeeder):
    """Predicts and learns batches with `Compare`: each row is predicted by both models.

    Scored are the predictions of the model in use.
    """

    once = "models are compared on a stream read once, kept whole"

    def predict(self, batch: Any) -> Any:
        """Predict rows whose labels are not known yet: see `Feeder`."""
        self._follow()
        return super().predict(batch)

    def _predict_and_learn(self, *arguments: Any) -> Pairs:
        self._follow()
        found = super()._predict_and_learn(*arguments)
        self._follow()
        return found

    def _follow(self) -> None:
        """Take the parts of the model in use, which may be another one than before."""
        self.scaler, self.learner = parts.parts_of(self.model.model)

    def _predict_event(self, x: dict[Any, Any], is_learnt: bool) -> tuple[Any, bool]:
        """Return what both predict for an event, and that its label is learnt."""
        model = self.model
        if model.record is not None:
            guess = guess_of(model.model, x, is_learnt)
            return GivenBoth(guess, (guess, guess)), True
        both = guess_of(model.a, x, is_learnt), guess_of(model.b, x, is_learnt)
        return GivenBoth(both[0], both), True

    def _learn_event(self, x: dict[Any, Any], w: float, y: Any, guess: Any) -> None:
        """Learn an event, for which both had predicted something."""
        # That b can take it is looked at as for any model.
        parts.check_label(self.model.a, y)
        super()._learn_event(x, w, y, guess)

    @property
    def _watched(self) -> Any:
        """The learner of the candidate."""
        return steps_of(self.model.b)[-1]


def check_reading(epochs: int, forgets: bool, why: str = SetsFeeder.once) -> None:
    """Refuse to read a stream again, or to forget events, by ParameterError."""
    if epochs > 1 or forgets:
        what = f"epochs={epochs!r}" if epochs > 1 else "tombstones"
        raise ParameterError(f"{what}: {why}")


_FEEDERS: dict[type, Any] = {
    ActiveLearner: AskingFeeder,
    Compare: CompareFeeder,
    ConformalSets: SetsFeeder,
    Selective: AnswersFeeder,
}


def row_feeder_of(model: Any, bad: BadEvents, positive: str | None, target: str | None) -> Feeder:
    """Return the feeder of a wrapper, or that of all other models; arguments as of `Feeder`."""
    found: Feeder = _FEEDERS.get(type(model), Feeder)(model, bad, positive, target)
    return found


def figures_of(model: Any) -> dict[str, dict[str, Any]]:
    """Return what reports have of wrappers, by field: of sets, of answers, of two models."""
    if isinstance(model, ConformalSets):
        return {"coverage": model.sets.figures()}
    if isinstance(model, Selective):
        return {"answers": model.answering.figures() | model.answering.counts}
    if isinstance(model, Compare):
        return {"comparison": model.comparison.figures() | {"record": model.record}}
    return {}
