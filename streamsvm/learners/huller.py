"""The Huller as a River classifier."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import MOST_STEPS, check_number, check_seed
from streamsvm.features.schema import LIMIT
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.kernel.kernel_solver import KernelSolver, Sizes
from streamsvm.models.model import Kernel
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.huller import step as huller
from streamsvm.solvers.huller.step import HullerState
from streamsvm.support.states import new_state


class HullerSolver(KernelSolver):
    """The Huller: the nearest points of the convex hulls of two classes."""

    step = states = huller
    no_certificate = (
        "no certificate: of a hard margin, examples within it have no finite loss, so that "
        "there is no gap to bound; follow the loss on the sample"
    )

    def __init__(
        self, kernel: Kernel | None, cache_mb: float, reprocess: int, seed: int | None
    ) -> None:
        schedule = huller.Schedule(check_number("reprocess", reprocess, 0, MOST_STEPS))
        super().__init__(kernel, schedule, cache_mb)
        self._seed = check_seed(seed)

    def new_state(self, sizes: Sizes) -> HullerState:
        """Return an empty state."""
        own = sizes.n_features, self.cache_bytes, self._seed, sizes.is_sparse
        return new_state(HullerState, *own, window=0)

    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the n slots in use."""
        return np.asarray(huller.scale_of(self.state) * self.state.alpha[:n])

    @property
    def biases(self) -> list[float]:
        """The constant of the decision function."""
        return [] if self.state is None else [float(huller.margin_of(self.state, 0.0, 0.0))]

    def sums(self) -> list[tuple[np.ndarray, float]]:
        """Return the inner products of the two points."""
        return [(self.state.info[0][name], 1.0) for name in ("pp", "pn", "nn")]


class HullerClassifier(KernelLearner):
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
    sparse, hashing, max_features, cache_mb, n_jobs, missing, selection
        As in `LASVMClassifier`.
    seed
        Seed of the random draws of support vectors; None: different ones each time.

    Attributes
    ----------
    distance
        The distance of the two points: the width of the margin, once it is the optimum.
    bias
        The constant of the decision function.
    kernel_, n_support_vectors, classes, feature_names, memory_usage
        As in `LASVMClassifier`.

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

    solver: HullerSolver

    def __init__(
        self,
        kernel: Kernel | None = None,
        reprocess: int = 1,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
        missing: str = "mean",
        selection: Selection | None = None,
    ) -> None:
        super().__init__(
            HullerSolver(kernel, cache_mb, reprocess, seed),
            kernel,
            KernelParameters(sparse, hashing, max_features, missing, cache_mb, n_jobs, selection),
        )
        self.reprocess, self.seed = reprocess, seed

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"kernel": kernels.Linear(), "reprocess": 3, "seed": 42}

    @property
    def description(self) -> str:
        """The parameters in use that matter most: kernel, REPROCESS steps."""
        return f"{self.kernel_!r}, reprocess={self.reprocess}"

    @property
    def distance(self) -> float:
        """The distance of the two points; 0 before there are examples of both classes."""
        if self.state is None or self.targets.n_classes < 2:
            return 0.0
        return math.sqrt(max(0.0, float(huller.squared_distance(self.state))))

    def _facts(self) -> dict[str, object]:
        return super()._facts() | {"bias": self.bias}

    @property
    def bias(self) -> float:
        """The constant b of the decision function."""
        return self._bias


register_learner(HullerClassifier, "huller")
