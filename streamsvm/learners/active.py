"""Learning with labels that are asked for: a wrapper of any classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from river import active, base

from streamsvm.errors import ParameterError
from streamsvm.labels.class_labels import Probabilities
from streamsvm.labels.label_column import Label
from streamsvm.learners.bases.wrapper import LockedWrapper, ModelWrapper, RiverEvent
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.model_files import codec
from streamsvm.model_files.container import register_wrapper, steps_of
from streamsvm.selection.asking import STRATEGIES, Asking, probability_margin
from streamsvm.support.locked import guarded


class ActiveLearner(LockedWrapper, active.base.ActiveLearningClassifier):
    """Asks for the labels of a given share of the events, those that the model is least sure of.

    It wraps any River classifier or pipeline that predicts probabilities, and has the interface of
    River's ``active`` module: `predict_one` also tells whether to ask for the label, which is given
    to `learn_one` then, at once or later, in any order. Without an answer nothing is learnt. Files
    (``streamsvm.save``) hold all but the `oracle`, if they can hold the classifier.

    Parameters
    ----------
    classifier
        The classifier or pipeline that learns and predicts.
    budget
        The share of the events whose labels are asked for, above 0 and at most 1; .1 by default.
        At no moment are more than 21 too many asked for, but for the first ones: 10 are asked for
        as they come, and up to 50 until the answers are of two classes. Fewer may be: up to 47 too
        few were seen with "quantile", which makes up for them. "uncertainty" ends some 20 above.
    strategy
        "quantile", the default: an event is asked for if its margin, the probability of the most
        likely label less that of the second, is among the smallest ones (the share `budget`) of the
        last 200. "uncertainty": if the margin is below a randomised threshold, which falls with
        each question and rises otherwise. "random": at random. Not with `candidates`.
    candidates
        None, the default: it is decided at once whether to ask for an event. Or a number M, at
        least 1: the last M events wait, and of these the least certain one is asked for when the
        budget allows it, by `oracle`; `predict_one` then never tells to ask.
    oracle
        A function that returns the label of an event (a dict), or None for no answer. Then the
        labels are learnt within `predict_one`, which never tells to ask, and during which the
        function must not use this model. None, the default: who
        calls `predict_one` asks.
    seed
        Seed of the draws of "uncertainty" and "random"; None: different ones each time.

    Attributes
    ----------
    n_seen, n_asked, n_answered
        How many events were predicted, how many labels asked for, and how many learnt.
    asking
        What decides whether to ask, with these counts.

    Raises
    ------
    ParameterError
        A parameter is out of range, or `candidates` are given without an `oracle`.

    References
    ----------
    Kottke, Krempl, Spiliopoulou, Probabilistic Active Learning in Datastreams, IDA (2015);
    Zliobaite, Bifet, Pfahringer, Holmes, Active Learning with Drifting Streaming Data, IEEE TNNLS
    25 (2014); Bordes, thesis (2010), 4.3.

    Examples
    --------
    >>> from river import datasets, metrics
    >>> from streamsvm import ActiveLearner, AdaptiveSVMClassifier
    >>> model = ActiveLearner(AdaptiveSVMClassifier(), budget=0.1)
    >>> metric = metrics.Accuracy()
    >>> for x, y in datasets.Phishing():
    ...     predicted, ask = model.predict_one(x)
    ...     metric.update(y, predicted)
    ...     if ask:
    ...         model.learn_one(x, y)
    >>> print(metric, model.n_asked)
    Accuracy: 8...% 12...

    """

    def __init__(
        self,
        classifier: base.Classifier,
        budget: float = 0.1,
        strategy: str = "quantile",
        candidates: int | None = None,
        oracle: Callable[[RiverEvent], base.typing.ClfTarget | None] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        active.base.ActiveLearningClassifier.__init__(self, classifier, seed)
        self.budget, self.strategy = budget, strategy
        self.candidates, self.oracle = candidates, oracle
        is_other = isinstance(classifier, (ActiveLearner, type)) or (
            isinstance(classifier, ModelWrapper) and classifier.has_sets
        )
        if is_other or not hasattr(classifier, "predict_proba_one"):
            raise ParameterError(f"classifier={classifier!r}: use a classifier of River's kind")
        if oracle is not None and not callable(oracle):
            raise ParameterError(f"oracle={oracle!r}: use a function of an event, or None")
        self.asking = Asking(budget, strategy, candidates, seed)
        if candidates is not None and oracle is None:
            raise ParameterError(f"candidates={candidates}: {_NEEDS_ORACLE}: give oracle=")
        if candidates is not None and strategy != STRATEGIES[0]:
            raise ParameterError(
                f"strategy={strategy!r}: with candidates= the least certain one of those that wait "
                "is asked for; give one of both"
            )

    @property
    def n_seen(self) -> int:
        """How many events were predicted."""
        return self.asking.n_seen

    @property
    def n_asked(self) -> int:
        """How many labels were asked for."""
        return self.asking.n_asked

    @property
    def n_answered(self) -> int:
        """How many labels were learnt."""
        return self.asking.n_answered

    @property
    def steps(self) -> dict[object, object]:
        """What model files hold: the `asking`, and the steps of the classifier."""
        return {"asking": self.asking, **dict(enumerate(steps_of(self.classifier)))}

    @classmethod
    def of_steps(cls, asking: Asking, classifier: base.Classifier) -> ActiveLearner:
        """Return the model whose `steps` are these."""
        model = cls(classifier, asking.budget, asking.strategy, seed=asking.seed)
        model.asking, model.candidates = asking, asking.candidates
        return model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"classifier": SVMSGDClassifier(), "seed": 42}

    @guarded
    def predict_proba_one(  # type: ignore[override]
        self, x: RiverEvent, **kwargs: object
    ) -> tuple[Probabilities, bool]:
        """Return the probability of each label, and whether to ask for the label.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Passed on to the classifier.

        Returns
        -------
        {label: probability}, and whether to ask: never if there is an `oracle`.

        """
        p = self.classifier.predict_proba_one(x, **kwargs)
        return p, self._ask_for_label(x, p)

    @guarded
    def predict_one(  # type: ignore[override]
        self, x: RiverEvent, **kwargs: object
    ) -> tuple[Label | None, bool]:
        """Return the label predicted for an event, and whether to ask for its label.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Passed on to the classifier.

        Returns
        -------
        One of the labels learnt, None before the first one; and whether to ask: never if there is
        an `oracle`.

        """
        predicted = self.classifier.predict_one(x, **kwargs)
        return predicted, self._ask_for_label(x, self.classifier.predict_proba_one(x, **kwargs))

    @guarded
    def learn_one(self, x: RiverEvent, y: base.typing.ClfTarget, **kwargs: object) -> None:
        """Learn an event whose label was asked for.

        Parameters
        ----------
        x
            Features by name.
        y
            The label.
        **kwargs
            Passed on to the classifier: a weight ``w``, for example.

        """
        self._learn(x, y, **kwargs)

    def _learn(self, x: RiverEvent, y: base.typing.ClfTarget, **kwargs: object) -> None:
        self.classifier.learn_one(x, y, **kwargs)
        self.asking.answered(y)

    def _ask_for_label(self, x: RiverEvent, y_pred: Probabilities) -> bool:
        asking = self.asking
        if self.candidates is None or asking.is_new:
            asks = asking.wants(y_pred)
            if asks and self.oracle is not None:
                self._answer(x)
                return False
            return asks
        asking.hold(x)
        if asking.is_due():
            p = [self.classifier.predict_proba_one(one) for one in asking.waiting]
            distances = [probability_margin(one) for one in p]
            self._answer(asking.waiting.pop(distances.index(min(distances))))
        return False

    def _answer(self, x: RiverEvent) -> None:
        """Ask the oracle, and learn what it says."""
        if self.oracle is None:
            raise ParameterError(f"{_NEEDS_ORACLE}, which files do not hold: set model.oracle")
        y = self.oracle(x)
        if y is not None:
            self._learn(x, y)


_NEEDS_ORACLE = "an event that waited is asked for by the oracle"

codec.register(Asking, write=Asking.as_json, read=Asking.from_json)
register_wrapper(Asking, ActiveLearner.of_steps)
