"""Adapters: what runs and commands ask of a model that may be a wrapper of another one.

Only this module knows the types of wrappers. What a wrapper says of an event depends on the event
before it, whose label must be known to it: rows are taken as events, but for `ActiveLearner`. What
is held of an event whose label comes later is a `Given`: it counts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from streamsvm.errors import ParameterError
from streamsvm.labels.given import Given, GivenBoth
from streamsvm.learners.active import ActiveLearner
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.compare import Compare
from streamsvm.learners.conformal_sets import ConformalSets
from streamsvm.learners.selective import Selective
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.watched import Model
from streamsvm.run import parts
from streamsvm.selection.answering import Answer, GivenAnswer

RiverEvent = dict[Any, Any]
"""An event as models of River take it."""


class Prediction(NamedTuple):
    """The prediction for an event."""

    guess: Any  # the prediction, or what is held of it until the label comes
    is_wanted: bool = True  # whether the label is learnt, now or when it comes
    further: dict[str, Any] | None = None  # what else is said of the event, by name


class ModelAdapter:
    """What runs and commands ask of a model; here, of one without a wrapper."""

    attribute: str | None = None
    """The name of the wrapper's attribute that has the model inside; None: there is none."""

    in_turns = False
    """Whether a row can be predicted only after the labels that came before it were learnt."""

    are_events = False
    """Whether rows are taken as events, one by one, as those of River's classifiers always are."""

    once: str | None = None
    """Why a stream is not read again, and nothing forgotten; None: both can be."""

    refuses_ids: str | None = None
    """Why the model takes no examples back by their ids; None: its learner says that."""

    asks = has_sets = answers = False
    """Whether it asks for labels, predicts sets, and answers only where it is sure enough."""

    changes_by_predicting = False
    """Whether a prediction changes the model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    def inner(self) -> Model:
        """The model that predicts rows: that inside, the one in use of several."""
        return self.model if self.attribute is None else getattr(self.model, self.attribute)

    @property
    def record(self) -> dict[str, Any] | None:
        """How a comparison of two models ended; None: it goes on, or there is none."""
        return None

    @property
    def chosen(self) -> tuple[Model, bool]:
        """The model to go on with after a run, and whether it is the candidate of a comparison."""
        return self.model, False

    def answer_one(self, x: RiverEvent, served: Model) -> Answer:
        """Answer an event by the probabilities of a copy; what is counted is the model's own."""
        raise ParameterError(f"{type(self.model).__name__} gives no answers: use Selective")

    def check_run(self, epochs: int, forgets: bool) -> None:
        """Refuse, by a ParameterError, to read a stream so often, or to forget events."""
        if self.once is not None and (epochs > 1 or forgets):
            what = f"epochs={epochs!r}" if epochs > 1 else "tombstones"
            raise ParameterError(f"{what}: {self.once}")

    # Events

    def predict_one(self, x: RiverEvent, is_learnt: bool) -> Prediction:
        """Return what is said of an event, which `is_learnt` at once, or held for its label."""
        return Prediction(self._guess(self.inner, x, is_learnt))

    def learn_one(self, x: RiverEvent, w: float, y: Any, guess: Any, is_answer: bool) -> None:
        """Learn an event, for which `guess` was predicted; False: nobody gave the label."""
        parts.learn_event(self.inner, x, w, y)

    def answered(self, labels: Iterable[Any]) -> None:
        """Take note of labels that were learnt."""

    def give_up(self, n: int) -> None:
        """Take note that the labels of so many events that were predicted will not be learnt."""

    @staticmethod
    def _guess(model: Model, x: RiverEvent, is_learnt: bool) -> Any:
        """Return what a model predicts for an event."""
        last = steps_of(model)[-1]
        # River's MinMaxScaler makes NaN of the first event until it has learnt it.
        is_first = is_learnt and isinstance(last, Learner) and not last.classes
        if is_first and all(v == v for v in x.values()):
            return None
        return model.predict_one(x)

    # Figures, tables and copies

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return what reports have of the wrapper, by field."""
        return {}

    def column(self) -> tuple[str, Callable[[dict[Any, float]], Any]] | None:
        """Return the name of a column of tables, and its value by the probabilities of a row."""
        return None

    def serving_copy(self) -> Model:
        """Return a copy that predicts while the model goes on learning."""
        return copy.deepcopy(self.inner)


class WrapperAdapter(ModelAdapter):
    """Adapter of wrappers whose `learn_one` needs the event's earlier prediction."""

    attribute = "model"
    in_turns = are_events = True

    @property
    def _watched(self) -> Any:
        """The learner that may have a monitor."""
        return steps_of(self.inner)[-1]

    def learn_one(self, x: RiverEvent, w: float, y: Any, guess: Any, is_answer: bool) -> None:
        """Learn an event, with what was said of it if that is held."""
        if not isinstance(guess, Given):
            parts.learn_event(self.model, x, w, y)
            return
        with _scored(self._watched, guess.label):
            parts.learn_event(self.model, x, w, y, given=guess.labels)


class SetsAdapter(WrapperAdapter):
    """`ConformalSets`: each row gets its set before it is learnt."""

    model: ConformalSets
    has_sets = True
    once = "ConformalSets read a stream once, and forget nothing"

    def predict_one(self, x: RiverEvent, is_learnt: bool) -> Prediction:
        """Return the prediction, with the set if the label comes later."""
        guess = self._guess(self.model, x, is_learnt)
        if guess is None and is_learnt:
            return Prediction(None, further={"set": []})
        labels = self.model.predict_set_one(x)
        held = guess if is_learnt else Given(guess, labels)
        return Prediction(held, further={"set": list(labels)})

    def learn_one(self, x: RiverEvent, w: float, y: Any, guess: Any, is_answer: bool) -> None:
        """Learn an event, whose set counts unless nobody gave the label."""
        if is_answer or not isinstance(guess, Given):
            super().learn_one(x, w, y, guess, is_answer)
            return
        with _scored(self._watched, guess.label):
            parts.learn_event(self.inner, x, w, y)
            self.give_up(1)

    def give_up(self, n: int) -> None:
        """Take note that so many sets will not be learnt."""
        self.model.sets.give_up(n)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return how often sets had the label."""
        return {"coverage": self.model.sets.figures()}

    def column(self) -> tuple[str, Callable[[dict[Any, float]], Any]] | None:
        """Return the sets of rows whose labels come later, or never."""
        sets = self.model.sets.at_rest()
        return "set", lambda p: list(sets.of(p))

    def serving_copy(self) -> Model:
        """Return a copy without what makes up for misses: that is for the next event learnt."""
        found = copy.deepcopy(self.model)
        found.sets = found.sets.at_rest()
        return found


class AnswersAdapter(WrapperAdapter):
    """`Selective`: each row is answered or not, then learnt.

    Scored are the most likely labels of all events. What is held of an event whose label comes
    later is its answer. With `audit`, labels of answered events are not waited for.
    """

    model: Selective
    answers = changes_by_predicting = True
    once = "Selective reads a stream once, and forgets nothing"

    def predict_one(self, x: RiverEvent, is_learnt: bool) -> Prediction:
        """Return the most likely label of an event; if its label comes later, the answer."""
        last = self._watched
        is_new = isinstance(last, Learner) and not last.classes
        answer = self.model.answer_one(x)
        further = {"answer": answer.label}
        if is_learnt:
            return Prediction(None if is_new else answer.likely, further=further)
        held = GivenAnswer(answer)
        return Prediction(held, held.is_asked or not self.model.audit, further)

    def learn_one(self, x: RiverEvent, w: float, y: Any, guess: Any, is_answer: bool) -> None:
        """Learn an event, with the answer that was given to it."""
        given = Answer(*guess.labels) if isinstance(guess, Given) else None
        if given is not None:
            guess.labels = given
        last = self._watched
        is_limited = isinstance(last, Learner)
        if is_limited and not parts.can_be_label(y, last.classes, last.most_classes):
            # Refused below, but what was said of it counts.
            self.model.refuse_one(x, y, given)
        super().learn_one(x, w, y, guess, is_answer)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return how many answers there were, and how many were wrong."""
        return {"answers": self.model.answering.figures() | self.model.answering.counts}

    def column(self) -> tuple[str, Callable[[dict[Any, float]], Any]] | None:
        """Return the answers to rows, which are not counted."""
        return "answer", lambda p: self.model.answering.answer(p).label

    def serving_copy(self) -> Model:
        """Return a copy, whose probabilities are answered by the model's own thresholds."""
        return copy.deepcopy(self.model)

    def answer_one(self, x: RiverEvent, served: Model) -> Answer:
        """Answer an event by the probabilities of a copy."""
        return self.model.answering.next(served.predict_proba_one(x))


class ComparisonAdapter(WrapperAdapter):
    """`Compare`: each row is predicted by both models; scored is the one in use."""

    model: Compare
    changes_by_predicting = True
    once = "models are compared on a stream read once, kept whole"
    refuses_ids = (
        "Compare: an example has a number of its own in each of the two models: call "
        "unlearn(...) of the learners in model.a and in model.b"
    )

    @property
    def record(self) -> dict[str, Any] | None:
        """How the comparison ended."""
        return self.model.record

    @property
    def chosen(self) -> tuple[Model, bool]:
        """The model in use."""
        return self.inner, self.model.model is self.model.b

    @property
    def _watched(self) -> Any:
        """The learner of the candidate."""
        return steps_of(self.model.b)[-1]

    def predict_one(self, x: RiverEvent, is_learnt: bool) -> Prediction:
        """Return what both predict for an event."""
        model = self.model
        if model.record is not None:
            guess = self._guess(model.model, x, is_learnt)
            return Prediction(GivenBoth(guess, (guess, guess)))
        of_a, of_b = (self._guess(cast(Model, one), x, is_learnt) for one in (model.a, model.b))
        return Prediction(GivenBoth(of_a, (of_a, of_b)))

    def learn_one(self, x: RiverEvent, w: float, y: Any, guess: Any, is_answer: bool) -> None:
        """Learn an event, for which both had predicted something."""
        # That b can take it is looked at as for any model.
        parts.check_label(cast(Model, self.model.a), y)
        super().learn_one(x, w, y, guess, is_answer)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return which model is better."""
        return {"comparison": self.model.comparison.figures() | {"record": self.model.record}}


class AskingAdapter(ModelAdapter):
    """`ActiveLearner`: the rows are learnt whose labels it asks for."""

    model: ActiveLearner
    attribute = "classifier"
    in_turns = asks = changes_by_predicting = True

    def check_run(self, epochs: int, forgets: bool) -> None:
        """Refuse a run that reads the stream again, or of a model with other sources of labels."""
        model = self.model
        if model.candidates is not None or model.oracle is not None:
            raise ParameterError(
                f"candidates={model.candidates}, oracle={model.oracle!r}: in a run the labels are "
                "those of the source, and it is asked at once; leave both out"
            )
        if epochs > 1:
            raise ParameterError(f"epochs={epochs!r}: an ActiveLearner reads a stream once")

    def predict_one(self, x: RiverEvent, is_learnt: bool) -> Prediction:
        """Return what is predicted for an event, and whether to ask for its label."""
        return Prediction(*self.model.predict_one(x))

    def answered(self, labels: Iterable[Any]) -> None:
        """Count answers."""
        for y in labels:
            self.model.asking.answered(y)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return how many labels were asked for."""
        return {"asked": self.model.asking.counts}


@contextmanager
def _scored(learner: Model, label: Any) -> Iterator[None]:
    """Let the monitor of a learner score, for the next event, what was predicted earlier."""
    observer = learner.observer if isinstance(learner, Learner) else None
    if observer is None:
        yield
        return
    observer.expect([label])
    try:
        yield
    except BaseException:
        observer.expect([])
        raise


_ADAPTERS: dict[type, type[ModelAdapter]] = {
    ActiveLearner: AskingAdapter,
    Compare: ComparisonAdapter,
    ConformalSets: SetsAdapter,
    Selective: AnswersAdapter,
}


def adapter_of(model: Model) -> ModelAdapter:
    """Return the adapter of a wrapper, or that of all other models.

    ParameterError: it is no model, but a class, for example.
    """
    if isinstance(model, type) or not hasattr(model, "learn_one"):
        raise ParameterError(
            f"model={' '.join(repr(model).split()):.80}: use a learner, a pipeline that ends in "
            "one, or a River classifier; an object, not a class"
        )
    found = (_ADAPTERS[cls] for cls in type(model).__mro__ if cls in _ADAPTERS)
    return next(found, ModelAdapter)(model)


def unwrapped(model: Model) -> Model:
    """Return the model that a wrapper is around, or has in use; any other model as it is."""
    return adapter_of(model).inner
