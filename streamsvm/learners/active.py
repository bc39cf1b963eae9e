"""Learning with labels that are asked for: a wrapper of any classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from river import active, base

from streamsvm._parameter_checks import check_whole
from streamsvm.errors import ParameterError
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.selection.asking import Asking
from streamsvm.selection.strategies import MOST_CANDIDATES

_FIRST = 10
"""So many labels are asked for at first, and more until there are two classes."""

_MOST_FIRST = 50
"""After so many there may be no other class, or answers come late: it is asked for as usual."""


class ActiveLearner(active.base.ActiveLearningClassifier):
    """Asks for the labels of a given share of the events, those that the model is least sure of.

    It wraps any River classifier or pipeline that predicts probabilities, and has the interface of
    River's ``active`` module: `predict_one` also tells whether to ask for the label, which is given
    to `learn_one` then, at once or later, in any order. Without an answer nothing is learnt.

    Parameters
    ----------
    classifier
        The classifier or pipeline that learns and predicts.
    budget
        The share of the events whose labels are asked for, above 0 and at most 1; .1 by default.
        The number asked for stays near this share of the events at all moments, but for the first
        ones: 10 are asked for as they come, and up to 50 until the answers are of two classes.
    strategy
        "quantile", the default: an event is asked for if the two most likely labels are nearer in
        probability than for most of the last 200 events. "uncertainty": if they are nearer than a
        randomised threshold, which falls with each question and rises else. "random": at random.
    candidates
        None, the default: it is decided at once whether to ask for an event. Or a number M, at
        least 1: the last M events wait, and of these the least certain one is asked for when the
        budget allows it, by `oracle`; `predict_one` then never tells to ask.
    oracle
        A function that returns the label of an event (a dict), or None for no answer. Then the
        labels are learnt within `predict_one`, which never tells to ask. None, the default: who
        calls `predict_one` asks.
    seed
        Seed of the draws of "uncertainty" and "random"; None: different ones each time.

    Attributes
    ----------
    n_seen, n_asked, n_answered
        How many events were predicted, how many labels asked for, and how many learnt.

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
        oracle: Callable[[dict[Any, Any]], Any] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(classifier, seed)
        self.budget, self.strategy = budget, strategy
        self.candidates, self.oracle = candidates, oracle
        if not hasattr(classifier, "predict_proba_one"):
            raise ParameterError(f"classifier={classifier!r}: use a classifier of River's kind")
        if oracle is not None and not callable(oracle):
            raise ParameterError(f"oracle={oracle!r}: use a function of an event, or None")
        if candidates is not None:
            check_whole("candidates", candidates, 1, MOST_CANDIDATES, ", or None")
            if oracle is None:
                raise ParameterError(
                    f"candidates={candidates}: an event that waited is asked for by the oracle: "
                    "give oracle="
                )
        self._asking = Asking(budget, strategy, seed)
        self._waiting: list[dict[Any, Any]] = []
        self.n_answered = 0
        self._labels: set[Any] = set()  # up to two that were learnt

    @property
    def n_seen(self) -> int:
        """How many events were predicted."""
        return self._asking.n_seen

    @property
    def n_asked(self) -> int:
        """How many labels were asked for."""
        return self._asking.n_asked

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {"classifier": SVMSGDClassifier(), "seed": 42}

    def predict_proba_one(  # type: ignore[override]
        self, x: dict[Any, Any], **kwargs: Any
    ) -> tuple[dict[Any, float], bool]:
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

    def predict_one(  # type: ignore[override]
        self, x: dict[Any, Any], **kwargs: Any
    ) -> tuple[Any, bool]:
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

    def learn_one(self, x: dict[Any, Any], y: base.typing.ClfTarget, **kwargs: Any) -> None:
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
        self.classifier.learn_one(x, y, **kwargs)
        self.n_answered += 1
        if len(self._labels) < 2:
            self._labels.add(y)

    def _ask_for_label(self, x: dict[Any, Any], y_pred: Any) -> bool:
        asking = self._asking
        n = asking.n_asked
        is_new = n < _FIRST or (len(self._labels) < 2 and n < _MOST_FIRST)
        if self.candidates is None or is_new:
            asks = asking.wants(_distance(y_pred), is_new)
            if asks and self.oracle is not None:
                self._answer(x)
                return False
            return asks
        self._waiting = [*self._waiting[1 - self.candidates :], dict(x)]
        if asking.is_due():
            distances = [_distance(self.classifier.predict_proba_one(one)) for one in self._waiting]
            self._answer(self._waiting.pop(distances.index(min(distances))))
        return False

    def _answer(self, x: dict[Any, Any]) -> None:
        """Ask the oracle, and learn what it says."""
        assert self.oracle is not None
        y = self.oracle(x)
        if y is not None:
            self.learn_one(x, y)


def _distance(p: Mapping[Any, float]) -> float:
    """Return how much more likely the best label is than the second best; 1 if there is one."""
    ordered = sorted(p.values(), reverse=True)
    return ordered[0] - ordered[1] if len(ordered) > 1 else 1.0
