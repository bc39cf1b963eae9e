"""Kernel Pegasos as a River classifier."""

from __future__ import annotations

from collections.abc import Iterator

from streamsvm import kernels
from streamsvm._parameter_checks import check_number
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.kernel.perceptron_solver import PerceptronSolver
from streamsvm.models.model import Kernel
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.perceptron.step import PEGASOS


class KernelPegasosClassifier(KernelLearner):
    """Kernel Pegasos: stochastic subgradient descent for the SVM without bias, with kernels.

    It minimises ``l2 / 2 |w|^2`` plus the mean hinge loss: at example t the model shrinks by the
    factor 1 - 1 / t, and an example whose margin was below 1 enters with the coefficient 1 / (l2
    t). After T examples each of its support vectors has the coefficient 1 / (l2 T). There is no
    bias. The share of examples that become support vectors is that of margins below 1: set
    `max_support_vectors` for streams without end.

    Features and labels are treated as in `LASVMClassifier`.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`. None, the default: an RBF whose gamma follows the data, as
        in `LASVMClassifier`. Features should have one scale (`streamsvm.StandardScaler`).
    l2
        At least 1e-100: the regularisation, 1e-4 by default. It corresponds to C = 1 / (l2 n) of an
        SVM on n examples: the default to a C of 1 on 10,000.
    class_weight
        None or a dict {label: factor of the loss} (1 for labels not named).
    averaged
        Whether the mean of all models predicts, as in `KernelPerceptronClassifier`; here the model
        after t examples counts t times, until models fade ("merge").
    max_support_vectors, cache_mb, seed
        As in `KernelPerceptronClassifier`.
    budget
        What makes room when there are `max_support_vectors`: "project" (None, the default) or
        "merge", as in `KernelPerceptronClassifier`.
    sparse, hashing, max_features, n_jobs, missing, selection
        As in `LASVMClassifier`.

    Attributes
    ----------
    kernel_, n_support_vectors, classes, feature_names, memory_usage
        As in `LASVMClassifier`.

    References
    ----------
    Shalev-Shwartz, Singer, Srebro, Cotter, Pegasos: Primal Estimated Sub-Gradient Solver for SVM,
    Mathematical Programming 127 (2011); Wang, Crammer, Vucetic, Breaking the Curse of
    Kernelization, JMLR 13 (2012); Lacoste-Julien, Schmidt, Bach, A Simpler Approach to Obtaining
    an O(1/t) Rate, arXiv:1212.2002 (2012).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import KernelPegasosClassifier
    >>> model = KernelPegasosClassifier(l2=1e-3)
    >>> evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
    Accuracy: 8...%

    """

    solver: PerceptronSolver

    def __init__(
        self,
        kernel: Kernel | None = None,
        l2: float = 1e-4,
        averaged: bool | None = None,
        class_weight: ClassWeight | None = None,
        max_support_vectors: int | None = None,
        budget: str | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
        missing: str = "mean",
        selection: Selection | None = None,
    ) -> None:
        self.l2 = l2
        solver = PerceptronSolver(
            kernel,
            cache_mb,
            rule=PEGASOS,
            margin=1.0,
            l2=check_number("l2", l2, 1e-100),
            averaged=averaged,
            max_support_vectors=max_support_vectors,
            budget=budget,
            seed=seed,
        )
        super().__init__(
            solver,
            kernel,
            KernelParameters(sparse, hashing, max_features, missing, cache_mb, n_jobs, selection),
            class_weight=class_weight,
        )
        self.averaged, self.max_support_vectors = averaged, max_support_vectors
        self.budget, self.seed = budget, seed

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"kernel": kernels.Linear(), "l2": 0.01, "averaged": False, "seed": 42}
        yield {"max_support_vectors": 20, "seed": 42}
        yield {"max_support_vectors": 20, "budget": "merge", "seed": 42}

    @property
    def description(self) -> str:
        """The parameters in use that matter most."""
        return f"{self.kernel_!r}, l2={self.l2:g}, {self.solver.predicts_by}"


register_learner(KernelPegasosClassifier, "kernel_pegasos")
