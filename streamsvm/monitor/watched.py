"""The interface of a learner that a monitor can watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.monitor.certificate import Certificate, Looks
from streamsvm.solvers.gap import KeptGap
from streamsvm.support.rows import Rows


class WatchedLearner(Protocol):
    """The part of the interface that all learners have."""

    observer: Any
    """The object that the learner reports each learnt example to; a monitor sets itself here."""
    has_dual: bool
    """True: the learner is a `DualLearner`; False: a `PrimalLearner`."""

    @property
    def n_examples(self) -> int:
        """How many examples were learnt."""

    @property
    def feature_names(self) -> list[Any]:
        """The features seen."""

    @property
    def certificate(self) -> Certificate:
        """The bound on the mean gap, or why there is none."""

    @property
    def papers_certificate(self) -> Certificate | None:
        """The bound in the papers' form; None: the learner has none."""

    @property
    def looks(self) -> Looks:
        """The sums of looks so far."""

    @property
    def kappa(self) -> float:
        """The share of steps that changed nothing."""

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example."""

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays."""

    def probabilities_of(self, margin: Any) -> Mapping[Any, float]:
        """Return {label: calibrated probability} of a margin; of several classes, one a class."""


class PrimalLearner(WatchedLearner, Protocol):
    """A learner without dual coefficients: the monitor follows its primal objective."""

    def objective_of(self, x: Rows, classes: np.ndarray, weights: np.ndarray) -> float:
        """Return regularisation plus the mean loss of n rows with their classes and weights."""


class DualLearner(WatchedLearner, Protocol):
    """A learner with dual coefficients: the monitor follows its duality gap."""

    window: int | None

    @property
    def dual(self) -> float:
        """The dual objective."""

    @property
    def covers(self) -> str:
        """The examples that the gap is about: "kept" ones, the whole "stream", or its "window"."""

    @property
    def squared_norm(self) -> float:
        """|w|^2; only if vectors are merged."""

    def at_bound(self) -> np.ndarray:
        """Return which coefficients that are not 0 are at their bound: bool."""

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


def learner_of(model: Any) -> Any:
    """Return the learner at the end of a model: itself, or the last step of a River pipeline.

    Raises `ParameterError` for the classes of others, and for those that have no gap.
    """
    steps = getattr(model, "steps", None)
    learner = list(steps.values())[-1] if steps else model
    if hasattr(learner, "observer") and not hasattr(learner, "has_dual"):
        raise ParameterError(
            f"{type(learner).__name__} keeps no examples, so that there is no gap to follow; use "
            "LaRankSequenceLabeler, or metrics of the labels that it predicts"
        )
    if not hasattr(learner, "observer"):
        raise ParameterError(
            f"{type(learner).__name__} is no learner of streamsvm: there is no gap to follow; "
            "use LASVMClassifier or TrackingSVMClassifier, or a pipeline that ends in one"
        )
    return learner
