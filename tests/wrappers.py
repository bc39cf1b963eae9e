"""Every wrapper around a model, for tests that ask the same of each."""

from collections.abc import Callable
from typing import Any, NamedTuple

from streamsvm import ActiveLearner, Compare, ConformalSets, Selective, SVMSGDClassifier


class Wrapper(NamedTuple):
    """A kind of wrapper: how one is made around a model, and how many labels it has counted."""

    cls: type
    around: Callable[..., Any]
    n_counted: Callable[[Any], int]


WRAPPERS = {
    "sets": Wrapper(ConformalSets, ConformalSets, lambda w: w.sets.n),
    "selective": Wrapper(
        Selective, lambda model: Selective(model, seed=1), lambda w: w.answering.n_labelled
    ),
    "compare": Wrapper(
        Compare, lambda model: Compare(model, SVMSGDClassifier(seed=2)), lambda w: w.comparison.n
    ),
    "active": Wrapper(
        ActiveLearner, lambda model: ActiveLearner(model, seed=1), lambda w: w.n_answered
    ),
}
