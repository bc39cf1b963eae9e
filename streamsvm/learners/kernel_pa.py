"""Passive-aggressive learning with kernels as a River classifier."""

from __future__ import annotations

from collections.abc import Iterator

from streamsvm import kernels
from streamsvm._parameter_checks import check_cost
from streamsvm.errors import ParameterError
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.kernel.perceptron_solver import PerceptronSolver
from streamsvm.models.model import Kernel
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.perceptron.step import PA, PA_I, PA_II

RULES = {"PA": PA, "PA-I": PA_I, "PA-II": PA_II}
"""The rules of updates by name."""


class KernelPAClassifier(KernelLearner):
    """Online passive-aggressive learning with kernels: each example gets its margin, at once.

    An example with a margin of 1 changes nothing. Any other becomes a support vector, with the
    least coefficient that gives it the margin 1 ("PA"), at most C ("PA-I"), or somewhat less
    ("PA-II"). There is no bias. Most examples of noisy data become support vectors: set
    `max_support_vectors` for streams without end.

    Features and labels are treated as in `LASVMClassifier`.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`. None, the default: an RBF whose gamma follows the data, as
        in `LASVMClassifier`. Features should have one scale (`streamsvm.StandardScaler`).
    mode
        "PA", "PA-I", the default, or "PA-II". "PA" fits each example however wrong its label may
        be: for data without noise. It knows no weights, but that of 0: give none.
    C
        Positive: how far one example may change the model, in "PA-I" the largest coefficient; 1 by
        default.
    class_weight
        None or a dict {label: factor of C} (1 for labels not named).
    averaged, max_support_vectors, cache_mb, seed
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
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online Passive-Aggressive Algorithms, JMLR 7
    (2006); Bordes, thesis (2010), 2.1.3, Algorithm 3.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import KernelPAClassifier
    >>> model = KernelPAClassifier()
    >>> evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
    Accuracy: 8...%

    """

    solver: PerceptronSolver

    def __init__(
        self,
        kernel: Kernel | None = None,
        mode: str = "PA-I",
        C: float = 1.0,
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
        if mode not in RULES:
            raise ParameterError(f"mode={mode!r}: use one of {', '.join(map(repr, RULES))}")
        self.mode = mode
        check_cost(C)
        solver = PerceptronSolver(
            kernel,
            cache_mb,
            rule=RULES[mode],
            margin=1.0,
            averaged=averaged,
            max_support_vectors=max_support_vectors,
            budget=budget,
            seed=seed,
        )
        super().__init__(
            solver,
            kernel,
            KernelParameters(sparse, hashing, max_features, missing, cache_mb, n_jobs, selection),
            C=C,
            class_weight=class_weight,
        )
        self.averaged, self.max_support_vectors = averaged, max_support_vectors
        self.budget, self.seed = budget, seed

    def _weigh(self, class_weight: ClassWeight | str | None) -> None:
        if self.mode == "PA" and class_weight is not None:
            raise ParameterError("class_weight: mode='PA' knows no weights; use 'PA-I' or 'PA-II'")
        super()._weigh(class_weight)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"mode": "PA", "kernel": kernels.Linear(), "averaged": False, "seed": 42}
        yield {"mode": "PA-II", "max_support_vectors": 20, "seed": 42}
        yield {"max_support_vectors": 20, "budget": "merge", "seed": 42}
        yield {"max_support_vectors": 20, "budget": "project", "averaged": False, "seed": 42}

    @property
    def description(self) -> str:
        """The parameters in use that matter most."""
        return f"{self.kernel_!r}, {self.mode}, C={self.C:g}, {self.solver.predicts_by}"


register_learner(KernelPAClassifier, "kernel_pa")
