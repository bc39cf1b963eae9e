"""What is asked of a learner by runs, reports and monitors, and by the measures of its gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.monitor.learnt import TrainingObserver
from streamsvm.solvers.gap import KeptGap
from streamsvm.support.rows import Rows


class Model(Protocol):
    """A model as runs take it: a learner of this package, a wrapper, or any River classifier."""

    def learn_one(self, x: Any, y: Any, /) -> Any:
        """Learn an event."""

    def predict_one(self, x: Any, /) -> Any:
        """Return what is predicted for an event."""

    def predict_proba_one(self, x: Any, /) -> Any:
        """Return {label: probability} of an event."""


class Reported:
    """What runs, their reports and monitors ask of each learner, of rows and of sentences.

    By default it has none of it: None, 0 or empty.
    """

    takes = "rows"
    """What it learns, in the words of `RegisteredLearner.takes`."""

    has_dual = False
    """True: the learner is a `DualLearner`; False: a `PrimalLearner`, unless it is of sentences."""

    can_be_watched = True
    """Whether a monitor has something to measure."""

    observer: TrainingObserver | None = None
    """The monitor that is told of each example learnt."""

    chunk = 1000
    """Number of rows that a run learns before it checks the time and for Ctrl-C."""

    tau: float | None = None
    """At the optimum of the examples kept, `delta` is at most this."""

    n_jobs: int | None = None
    """How many threads compute kernel values; None: one."""

    window: int | None = None
    """The learner learns from so many of the last examples only; None: from all."""

    has_regret = False
    """Whether it has a `mean_loss` whose regret is bounded."""

    waiting: Any = None
    """The examples that wait to be chosen; None: all are learnt as they come."""

    @property
    def n_examples(self) -> int:
        """How many examples were learnt."""
        raise NotImplementedError

    @property
    def description(self) -> str:
        """The parameters in use that matter most, in a few words."""
        raise NotImplementedError

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        raise NotImplementedError

    @property
    def memory_parts(self) -> dict[str, int]:
        """Bytes of each part, if they are counted apart."""
        return {}

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example."""
        return {}

    @property
    def figures(self) -> dict[str, Any]:
        """What a monitor records of a learner of whole sentences: counts, and other numbers."""
        return {}

    @property
    def feature_names(self) -> list[Any]:
        """The features seen, if they have names."""
        return []

    @property
    def missing_values(self) -> dict[Any, int]:
        """How often features were missing."""
        return {}

    @property
    def n_support_vectors(self) -> int | None:
        """Number of examples with a nonzero coefficient."""

    @property
    def n_support_patterns(self) -> int | None:
        """Number of examples kept, if each may have several coefficients."""

    @property
    def cache_limit(self) -> int | None:
        """The bytes that cached kernel rows may take at most."""

    @property
    def delta(self) -> float | None:
        """By how much the conditions of optimality are violated, at most."""

    @property
    def chosen(self) -> str | None:
        """Scale, gamma and C in words, if it tries several."""

    @property
    def n_drifts(self) -> int | None:
        """How often a drift was noticed; None: the learner does not look for drifts."""

    @property
    def most_classes(self) -> int | None:
        """The largest number of classes that it takes; None: any, or it has none."""

    @property
    def dual(self) -> float | None:
        """The dual objective, of a `DualLearner`."""

    @property
    def last_drift(self) -> int | None:
        """The last example before the latest drift was noticed; 0: none was."""

    @property
    def drifts(self) -> str | None:
        """The drifts noticed so far, in words."""

    @property
    def mean_loss(self) -> float | None:
        """The mean loss of the examples, each before it was learnt, where its regret is bounded."""

    @property
    def regret_bound(self) -> float | None:
        """By how much that exceeds the mean loss of the best weights of the present norm."""

    @property
    def covers(self) -> str:
        """The examples that the gap is about: "kept" ones, the whole "stream", or its "window"."""
        return "stream"

    @property
    def looks(self) -> Looks:
        """The sums of looks so far, which estimate and bound the mean gap; none by default."""
        return Looks()

    @property
    def certificate(self) -> Certificate:
        """A bound on the mean gap, or why there is none."""
        return Certificate(None, "no certificate: none is known for this learner")

    @property
    def papers_certificate(self) -> Certificate | None:
        """The bound of the mean gap in the papers' form; None: it is not for this learner."""

    @property
    def kappa(self) -> float | None:
        """The share of steps that changed nothing."""


class Finishing(Protocol):
    """A learner that can go to the optimum of the examples kept."""

    def finish(self, *, progress: Callable[[float, int], None] | None) -> Any:
        """Go there; `progress` is told delta and the number of support vectors."""


class Probable(Protocol):
    """A learner with probabilities."""

    def probabilities_of(self, margin: Any) -> dict[Any, float]:
        """Return {label: calibrated probability} at a margin, or at a list of scores, of a row."""


class PrimalLearner(Protocol):
    """A learner without dual coefficients: the monitor follows its primal objective."""

    @property
    def feature_names(self) -> list[Any]:
        """The features seen."""

    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return regularisation plus the mean loss of n rows with their classes and weights."""


class DualLearner(Protocol):
    """A learner with dual coefficients: the monitor follows its duality gap."""

    window: int | None

    def at_bound(self) -> np.ndarray:
        """Return which coefficients are at a bound, bool (n,)."""

    @property
    def n_examples(self) -> int:
        """How many examples were learnt."""

    @property
    def feature_names(self) -> list[Any]:
        """The features seen."""

    @property
    def dual(self) -> float:
        """The dual objective."""

    @property
    def squared_norm(self) -> float:
        """|w|^2; only if vectors are merged."""

    def kept_gap(self) -> KeptGap:
        """Return the gap on the examples kept; call it after the first example."""

    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept, int64, after the first example."""

    def costs_now(self, classes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of these classes and weights would have now."""

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of n rows, float64: (n,), or (n, classes)."""

    def losses_of(self, classes: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each margin, of examples of these classes, given by number."""


def learner_of(model: object) -> Reported:
    """Return the learner at the end of a model: itself, or the last step of a River pipeline.

    Raises `ParameterError` for the classes of others, and for those that have no gap.
    """
    steps = getattr(model, "steps", None)
    learner = list(steps.values())[-1] if steps else model
    if isinstance(learner, Reported) and not learner.can_be_watched:
        raise ParameterError(
            f"{type(learner).__name__} keeps no examples, so that there is no gap to follow; use "
            "LaRankSequenceLabeler, or metrics of the labels that it predicts"
        )
    if not isinstance(learner, Reported):
        raise ParameterError(
            f"{type(learner).__name__} is no learner of streamsvm: there is no gap to follow; "
            "use LASVMClassifier or TrackingSVMClassifier, or a pipeline that ends in one"
        )
    return learner
