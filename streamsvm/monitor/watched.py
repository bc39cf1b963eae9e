"""What a monitor finds out about the learner that it watches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.gap import KeptGap
from streamsvm.support.rows import Rows


class WatchedLearner(Protocol):
    """What a monitor needs of any learner."""

    observer: Any
    """Who is told of each example learnt: the monitor sets it."""
    has_dual: bool
    """Whether it is a `DualLearner`; else a `PrimalLearner`."""

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
        """Return {label: probability} at a margin."""


class PrimalLearner(WatchedLearner, Protocol):
    """A learner without dual coefficients: its objective is followed."""

    def objective_of(self, x: Rows, signs: np.ndarray, weights: np.ndarray) -> float:
        """Return the primal objective, with the losses of some rows."""


class DualLearner(WatchedLearner, Protocol):
    """A learner with dual coefficients: its gap is followed."""

    window: int | None

    @property
    def dual(self) -> float:
        """The dual objective."""

    @property
    def covers(self) -> str:
        """What the problem is about: the "kept" examples, the whole "stream", or its "window"."""

    def at_bound(self) -> np.ndarray:
        """Return, for all coefficients that are not 0, whether they are at their bound."""

    def kept_gap(self) -> KeptGap:
        """Return the measured gap on the examples kept; there was an example."""

    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept; there was an example."""

    def boxes_now(self, signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the C_i that examples of these signs and weights would have now."""

    def margins_of(self, x: Rows) -> np.ndarray:
        """Return the margins of rows."""

    def losses_of(self, signs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each margin."""


def learner_of(model: Any) -> Any:
    """Return the learner at the end of a model.

    Raises
    ------
    ParameterError
        It is none of ours.

    """
    steps = getattr(model, "steps", None)
    learner = list(steps.values())[-1] if steps else model
    if not (hasattr(learner, "observer") and hasattr(learner, "has_dual")):
        raise ParameterError(
            f"{type(learner).__name__} is no learner of ours, so that there is no gap to follow; "
            "use LASVMClassifier or TrackingSVMClassifier, or a pipeline that ends in one"
        )
    return learner


def counts_of(learner: DualLearner) -> dict[str, Any]:
    """Return how many support vectors of which kind a learner has, and its dual objective."""
    bounded = learner.at_bound() if learner.n_examples else np.zeros(0, bool)
    n_bounded = int(np.count_nonzero(bounded))
    return {
        "n_support_vectors": len(bounded),
        "n_free": len(bounded) - n_bounded,
        "n_bounded": n_bounded,
        "dual": learner.dual,
    }


def work_of(learner: WatchedLearner) -> dict[str, Any]:
    """Return what a learner has computed and holds in memory."""
    counts = learner.counters
    hits = counts.get("cached_rows_hit", 0) + counts.get("cached_rows_extended", 0)
    looked = hits + counts.get("cached_rows_missed", 0)
    return {
        "kernel_values": counts.get("kernel_values"),
        "cache_hits": hits / looked if looked else None,
        "memory_bytes": learner.memory_usage,
    }
