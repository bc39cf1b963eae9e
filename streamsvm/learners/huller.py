"""The Huller as a River classifier."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import MOST_STEPS, check_number, check_seed
from streamsvm.features.schema import LIMIT
from streamsvm.learners.bases.kernel.primal_kernel_learner import PrimalKernelLearner
from streamsvm.learners.bases.registry import register_learner
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.huller import events as events  # registers the solver
from streamsvm.solvers.huller import state as huller_state
from streamsvm.solvers.huller import step as huller
from streamsvm.solvers.huller.state import HullerState
from streamsvm.support import states
from streamsvm.support.rows import Rows


class HullerClassifier(PrimalKernelLearner):
    """Online hard-margin SVM with kernels and a bias, for data without noise.

    It follows the two nearest points of the convex hulls of the classes; the border lies in the
    middle between them. Each example is tried once as a support vector (PROCESS); then the
    coefficients of random support vectors are improved, and those that become 0 are removed
    (REPROCESS). On separable data further epochs converge to the hard-margin SVM: it has no cost
    parameter. On noisy data the hulls meet, every example on the wrong side counts like any other,
    and the errors are many: take `LASVMClassifier`.

    Features and labels are treated as in `LASVMClassifier`. An example weight of 0 leaves the
    example out; other weights have no effect, as a hard margin knows none.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`. None, the default: an RBF whose gamma follows the data, as
        in `LASVMClassifier`. Features should have one scale (`streamsvm.StandardScaler`).
    reprocess
        How many REPROCESS steps follow each example, at least 0; 1 by default, as in the paper.
    sparse, hashing, max_features, cache_mb, n_jobs, missing
        As in `LASVMClassifier`.
    seed
        Seed of the random draws of support vectors; None: different ones each time.

    Attributes
    ----------
    kernel_
        The kernel in use.
    n_support_vectors
        Number of nonzero coefficients.
    distance
        The distance of the two points: the width of the margin, once it is the optimum.
    bias
        The constant of the decision function.
    classes
        The labels seen, in the order of first appearance.
    feature_names, memory_usage
        The features seen, in the order of first appearance; bytes of all arrays.

    References
    ----------
    Bordes, Bottou, The Huller: A Simple and Efficient Online SVM, ECML (2005); Bordes, thesis
    (2010), 4.1, Algorithms 9 and 10.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import HullerClassifier, StandardScaler
    >>> model = StandardScaler() | HullerClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 8...%

    """

    _states = huller_state
    _solver = huller

    def __init__(
        self,
        kernel: Any = None,
        reprocess: int = 1,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
        missing: str = "mean",
    ) -> None:
        super().__init__(
            kernel, 1.0, None, sparse, hashing, max_features, cache_mb, n_jobs, missing=missing
        )
        self.reprocess = reprocess
        self.seed = check_seed(seed)
        self._schedule = huller.Schedule(check_number("reprocess", reprocess, 0, MOST_STEPS))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"kernel": kernels.Linear(), "reprocess": 3, "seed": 42}

    # The solver

    def _new_state(self, n_features: int) -> HullerState:
        sizes = n_features, self._cache_bytes, self.seed, self._sparse
        return states.new_seeded(HullerState, *sizes, window=0)

    def _write_margins(self, state: Any, x: Rows, out: np.ndarray) -> None:
        huller.margins_of(state, self._bound_kernel(state), x, out)

    def _coefficients(self, n: int) -> np.ndarray:
        state: Any = self._state
        return np.asarray(huller_state.scale_of(state) * state.alpha[:n])

    # Inspection

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel, REPROCESS steps."""
        return f"{self.kernel_!r}, reprocess={self.reprocess}"

    @property
    def distance(self) -> float:
        """The distance of the two points; 0 before there are examples of both classes."""
        if self._state is None or len(self._labels.seen) < 2:
            return 0.0
        return math.sqrt(max(0.0, float(huller_state.squared_distance(self._state))))

    @property
    def bias(self) -> float:
        """The constant b of the decision function."""
        return 0.0 if self._state is None else float(huller_state.margin_of(self._state, 0.0, 0.0))

    @property
    def certificate(self) -> Certificate:
        """No bound, and the reason: a hard margin has no finite loss."""
        return Certificate(
            None,
            "no certificate: of a hard margin, examples within it have no finite loss, so that "
            "there is no gap to bound; follow the loss on the sample",
        )


register_learner(HullerClassifier, "huller")
