"""The kernel perceptron as a River classifier."""

from __future__ import annotations

from collections.abc import Iterator

from streamsvm import kernels
from streamsvm._parameter_checks import check_number
from streamsvm.errors import ParameterError
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.kernel.perceptron_solver import PerceptronSolver
from streamsvm.models.model import Kernel
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.perceptron.step import PERCEPTRON


class KernelPerceptronClassifier(KernelLearner):
    """Online kernel perceptron: an example that is predicted wrongly becomes a support vector.

    It is the simplest kernel learner: the coefficient of a mistake is its weight, with the sign
    of its label, and stays so. The mean of all models predicts better than the last one, and
    costs no more. There is no bias and no cost parameter. On noisy data each mistake stays in the
    model: set `max_support_vectors` for streams without end.

    Features and labels are treated as in `LASVMClassifier`.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`. None, the default: an RBF whose gamma follows the data, as
        in `LASVMClassifier`. Features should have one scale (`streamsvm.StandardScaler`).
    margin
        At least 0: an example whose margin is at most this becomes a support vector, too. 0, the
        default: only mistakes do.
    averaged
        True: the mean of the models after each example predicts. False: the last model
        does, which swings with single examples. None, the default: True, but with "remove", whose
        vectors leave without a trace, for then the mean is of what is left only. With "merge" older
        models fade, as the mean would keep for ever what merging spoils: all so far count half each
        time when they are 4 times `max_support_vectors`, and at least 400.
    voted
        True: all models so far predict, each with a vote for each example after which it was the
        model; `decision_function_one` is the mean of the votes, -1 or +1 each. It takes the place
        of the mean (`averaged`), and all support vectors must stay (no `max_support_vectors`); an
        example that is learnt again is a support vector again. False, the default: no votes.
    class_weight
        None or a dict {label: factor of the weight} (1 for labels not named).
    max_support_vectors
        Keep at most this many support vectors, at least 2. None, the default: no limit; memory and
        time then grow with the stream.
    budget
        What makes room when there are `max_support_vectors`. "project": the vectors stay, and
        examples change their coefficients, by the projection on their span (Projectron); this
        takes memory for the square of the limit. "merge": two near vectors of one label are
        replaced by one vector between them. "remove": the vector leaves that has the largest
        margin without itself (Crammer et al.). None, the default, is "project", the most accurate
        in our measurements; where the stream moves to other places, take "merge".
    sparse, hashing, max_features, n_jobs, missing, selection
        As in `LASVMClassifier`.
    cache_mb
        Megabytes for cached kernel rows of support vectors, which only budgets need; 200 by
        default.
    seed
        Seed of the random draws of "merge"; None: different ones each time.

    Attributes
    ----------
    kernel_, n_support_vectors, classes, feature_names, memory_usage
        As in `LASVMClassifier`.

    References
    ----------
    Freund, Schapire, Large Margin Classification Using the Perceptron Algorithm, Machine Learning
    37 (1999); Bordes, thesis (2010), 2.1.3, Algorithm 2. Budgets: see
    `streamsvm.solvers.perceptron.budget` and the page of the system.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import KernelPerceptronClassifier
    >>> model = KernelPerceptronClassifier()
    >>> evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
    Accuracy: 8...%

    """

    solver: PerceptronSolver

    def __init__(
        self,
        kernel: Kernel | None = None,
        margin: float = 0.0,
        averaged: bool | None = None,
        voted: bool = False,
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
        if voted and (averaged is not None or max_support_vectors is not None):
            raise ParameterError(
                "voted=True: the votes of all models need all support vectors, and take the place "
                "of their mean; leave max_support_vectors and averaged out"
            )
        self.margin, self.voted = margin, voted
        solver = PerceptronSolver(
            kernel,
            cache_mb,
            rule=PERCEPTRON,
            margin=check_number("margin", margin, 0),
            averaged=averaged,
            max_support_vectors=max_support_vectors,
            budget=budget,
            seed=seed,
            policy_names=("project", "merge", "remove"),
            is_voted=bool(voted),
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
        yield {"kernel": kernels.Linear(), "averaged": False, "seed": 42}
        yield {"max_support_vectors": 20, "budget": "merge", "seed": 42}
        yield {"max_support_vectors": 20, "margin": 0.5, "seed": 42}
        yield {"max_support_vectors": 20, "budget": "remove", "averaged": False, "seed": 42}
        yield {"voted": True, "seed": 42}

    @property
    def description(self) -> str:
        """The parameters in use that matter most."""
        return f"{self.kernel_!r}, margin={self.margin:g}, {self.solver.predicts_by}"


register_learner(KernelPerceptronClassifier, "kernel_perceptron")
