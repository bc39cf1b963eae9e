"""The interface of a learner that a monitor can watch, and figures read through it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.monitor.certificate import Certificate
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
    def kappa(self) -> float:
        """The share of steps that changed nothing."""

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example."""

    @property
    def memory_usage(self) -> int:
        """Bytes of all arrays."""

    def probabilities_of(self, margin: Any) -> Mapping[Any, float]:
        """Return calibrated probabilities.

        Parameters
        ----------
        margin
            A margin; of several classes, one a class.

        Returns
        -------
        Mapping[Any, float]
            {label: probability}.

        """


class PrimalLearner(WatchedLearner, Protocol):
    """A learner without dual coefficients: the monitor follows its primal objective."""

    def objective_of(self, x: Rows, signs: np.ndarray, weights: np.ndarray) -> float:
        """Return the primal objective, with the mean loss of the rows given.

        Parameters
        ----------
        x
            n rows.
        signs, weights
            float64 (n,): labels as -1 and +1, and weights.

        Returns
        -------
        float
            Regularisation plus mean loss.

        """


class DualLearner(WatchedLearner, Protocol):
    """A learner with dual coefficients: the monitor follows its duality gap."""

    window: int | None
    has_looks: bool
    """Whether its `certificate` is of looks: see `streamsvm.support.looks`."""

    @property
    def dual(self) -> float:
        """The dual objective."""

    @property
    def covers(self) -> str:
        """The examples that the gap is about: "kept" ones, the whole "stream", or its "window"."""

    def at_bound(self) -> np.ndarray:
        """Return which coefficients are at their bound.

        Returns
        -------
        np.ndarray
            bool, one entry for each coefficient that is not 0.

        """

    def kept_gap(self) -> KeptGap:
        """Return the measured gap on the examples kept; call it after the first example.

        Returns
        -------
        KeptGap
            The gap and the sum of the C_i.

        """

    def gap_beside(self, signs: np.ndarray, margins: np.ndarray, boxes: np.ndarray) -> KeptGap:
        """Return the gap on the examples kept, at the bias that is best for others, too.

        Parameters
        ----------
        signs, margins, boxes
            float64 (n,), of examples that are not kept: labels as the learner codes them, the
            return value of `margins_of`, and C_i times how many examples each stands for.

        Returns
        -------
        KeptGap
            The gap, not normalised.

        """

    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept; call it after the first example.

        Returns
        -------
        np.ndarray
            int64, in any order.

        """

    def boxes_now(self, signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples would have if they came now.

        Parameters
        ----------
        signs, weights
            float64 (n,): labels as -1 and +1, and weights.

        Returns
        -------
        np.ndarray
            float64 (n,).

        """

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of rows.

        Parameters
        ----------
        x
            n rows.

        Returns
        -------
        np.ndarray
            float64 (n,), or (n, classes).

        """

    def losses_of(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each margin.

        Parameters
        ----------
        signs
            float64 (n,): labels as the learner codes them.
        margins
            The return value of `margins_of`.

        Returns
        -------
        np.ndarray
            float64 (n,).

        """


def learner_of(model: Any) -> Any:
    """Return the learner at the end of a model.

    Parameters
    ----------
    model
        A learner of this package, or a River pipeline that ends in one.

    Returns
    -------
    WatchedLearner
        The learner.

    Raises
    ------
    ParameterError
        The model ends in another class.

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
            f"{type(learner).__name__} is no learner of ours, so that there is no gap to follow; "
            "use LASVMClassifier or TrackingSVMClassifier, or a pipeline that ends in one"
        )
    return learner


def counts_of(learner: DualLearner) -> dict[str, Any]:
    """Return the numbers of support vectors of two kinds, and the dual objective.

    Parameters
    ----------
    learner
        The learner.

    Returns
    -------
    dict[str, Any]
        Values of n_free, n_bounded and dual.

    """
    bounded = learner.at_bound() if learner.n_examples else np.zeros(0, bool)
    n_bounded = int(np.count_nonzero(bounded))
    return {
        "n_free": len(bounded) - n_bounded,
        "n_bounded": n_bounded,
        "dual": learner.dual,
    }


def work_of(learner: WatchedLearner) -> dict[str, Any]:
    """Return how much a learner has computed, and how much memory it holds.

    Parameters
    ----------
    learner
        The learner.

    Returns
    -------
    dict[str, Any]
        Values of kernel_values, cache_hits (a share) and memory_bytes.

    """
    counts = learner.counters
    hits = counts.get("cached_rows_hit", 0) + counts.get("cached_rows_extended", 0)
    looked = hits + counts.get("cached_rows_missed", 0)
    return {
        "kernel_values": counts.get("kernel_values"),
        "cache_hits": hits / looked if looked else None,
        "memory_bytes": learner.memory_usage,
    }
