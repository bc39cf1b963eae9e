"""The stochastic batch perceptron as a River classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import MOST_STEPS, check_number, check_seed, check_size
from streamsvm.errors import ParameterError
from streamsvm.features.schema import LIMIT
from streamsvm.labels.class_labels import ClassWeight
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.learners.bases.kernel.parameters import KernelParameters
from streamsvm.learners.bases.registry import register_learner
from streamsvm.models.kernel.kernel_solver import KernelSolver, Sizes
from streamsvm.models.model import Kernel
from streamsvm.selection.strategies import Selection
from streamsvm.solvers.bounds import bounds_of
from streamsvm.solvers.sbp import finish as sbp_finish
from streamsvm.solvers.sbp import state as sbp_state
from streamsvm.solvers.sbp import step as sbp
from streamsvm.solvers.sbp import water
from streamsvm.solvers.sbp.state import MEAN, SBPState
from streamsvm.support.locked import guarded
from streamsvm.support.states import new_state

_AT_ONCE = 1000
"""Number of iterations between two reports of progress."""


class SBPSolver(KernelSolver):
    """The stochastic batch perceptron.

    Parameters
    ----------
    kernel, schedule, cache_mb
        As of `KernelSolver`.
    window
        How many of the last examples are kept at most; 0: any number.
    seed
        Of the draws; None: another one each time.

    """

    step, states = sbp, sbp_state
    no_certificate = (
        "no certificate: the iterations follow the primal problem, of a margin for a given "
        "slack, and keep no feasible dual; follow the loss on the sample"
    )

    def __init__(
        self,
        kernel: Kernel | None,
        schedule: sbp.Schedule,
        cache_mb: float,
        window: int,
        seed: int | None,
    ) -> None:
        super().__init__(kernel, schedule, cache_mb)
        self._window, self._seed = window, seed

    def new_state(self, sizes: Sizes) -> SBPState:
        """Return an empty state."""
        own = sizes.n_features, self.cache_bytes, self._seed, sizes.is_sparse
        return new_state(SBPState, *own, window=self._window)

    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the n slots in use, of the iterates that predict."""
        state, info = self.state, self.state.info[0]
        w = info.scale * state.alpha[:n]
        if self.schedule.numbers.averaged and info.sum_weight > 0.0:
            w = (info.sum_scale * state.alpha[:n] - state.late[:n]) / info.sum_weight
        return np.asarray(sbp.margin_scale(state) * w)

    @property
    def biases(self) -> list[float]:
        """The constant of the decision function."""
        if self.state is None:
            return []
        return [float(sbp.margin_scale(self.state) * water.bias_of(self.state.levels[MEAN]))]

    def sums(self) -> list[tuple[np.ndarray, float]]:
        """Return what the model and its mean say of the examples kept, and the square of |w|."""
        state = self.state
        f = (state.f, float(np.abs(state.alpha).sum()))
        late = (state.late_f, float(np.abs(state.late).sum()))
        return [f, late, (state.info[0]["square"], 1.0)]


class SBPClassifier(KernelLearner):
    """Kernel SVM by the stochastic batch perceptron, in batch or on a stream.

    Of all w with |w| <= 1 it looks for the one with the largest margin that all examples reach once
    a mean slack of `nu` is given to those that need it most. The examples are kept, with what the
    model says of each; an iteration adds one of those that need slack, drawn at random, to w. The
    mean of all iterates predicts. Some iterations follow each example; `finish` makes many.

    Set `window` or `reservoir` for streams without end: else all examples are kept, and an example
    takes longer the more there are.

    Features and labels are treated as in `LASVMClassifier`.

    Parameters
    ----------
    kernel
        A kernel of `streamsvm.kernels`. None, the default: an RBF whose gamma follows the data, as
        in `LASVMClassifier`. Features should have one scale (`streamsvm.StandardScaler`).
    nu
        The mean slack of an example, at least 0, where |w| is 1; .1 by default. It takes the place
        of C: larger for noisier data. An SVM of the norm |w| and the mean hinge loss L is the
        solution for nu = L / |w|.
    bias
        True, the default: with a bias, which is not regularised. False: without.
    iterations
        Made after each example, at least 0; 1 by default. 0: examples are only kept, for
        `finish`.
    averaged
        True, the default: the mean of the iterates predicts. False: the last iterate.
    window
        Keep only the last `window` examples, at least 1; None, the default, keeps all.
    reservoir
        Keep a uniform sample of this many examples, at least 1; None, the default, keeps all.
    class_weight
        None or a dict {label: factor of the slack that an example takes} (1 for labels not named).
    sparse, hashing, max_features, cache_mb, n_jobs, missing, selection
        As in `LASVMClassifier`.
    seed
        Seed of the random draws; None: different ones each time.

    Attributes
    ----------
    level
        The margin of |w| = 1 that the examples kept reach with the slack.
    bias_
        The constant of the decision function.
    kernel_, n_support_vectors, classes, feature_names, memory_usage
        As in `LASVMClassifier`.

    References
    ----------
    Cotter, Shalev-Shwartz, Srebro, The Kernelized Stochastic Batch Perceptron, ICML (2012).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import SBPClassifier
    >>> model = SBPClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Bananas().take(2500), model, metrics.Accuracy())
    Accuracy: 8...%

    """

    solver: SBPSolver

    def __init__(
        self,
        kernel: Kernel | None = None,
        nu: float = 0.1,
        bias: bool = True,
        iterations: int = 1,
        averaged: bool = True,
        window: int | None = None,
        reservoir: int | None = None,
        class_weight: ClassWeight | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
        missing: str = "mean",
        selection: Selection | None = None,
    ) -> None:
        self.nu, self.bias, self.iterations, self.averaged = nu, bias, iterations, averaged
        self.window = check_size("window", window)
        self.reservoir = check_size("reservoir", reservoir)
        self.seed = check_seed(seed)
        solver = SBPSolver(kernel, self._new_schedule(), cache_mb, self.window or 0, self.seed)
        super().__init__(
            solver,
            kernel,
            KernelParameters(sparse, hashing, max_features, missing, cache_mb, n_jobs, selection),
            class_weight=class_weight,
        )
        if self.window or self.reservoir:
            self.refuses_ids = (
                "a window or a sample holds examples of the stream, whatever they are; leave one "
                "out"
            )

    def _new_schedule(self) -> sbp.Schedule:
        if self.window is not None and self.reservoir is not None:
            raise ParameterError("window and reservoir: give one of them only")
        steps = check_number("iterations", self.iterations, 0, MOST_STEPS)
        kept = self.window or self.reservoir
        numbers = sbp.Numbers(
            steps=steps,
            nu=check_number("nu", self.nu, 0),
            bias=float(bool(self.bias)),
            averaged=float(bool(self.averaged)),
            horizon=steps * kept if kept else 2.0**62,
        )
        return sbp.Schedule(numbers, bounds_of(self.window, None, reservoir=self.reservoir))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"kernel": kernels.Linear(), "bias": False, "nu": 0.1, "iterations": 3, "seed": 42}
        yield {"window": 60, "seed": 42}
        yield {"reservoir": 50, "averaged": False, "iterations": 2, "seed": 42}

    def finish(
        self, progress: Callable[[float, int], None] | None = None, iterations: int | None = None
    ) -> None:
        """Make iterations on the examples kept; the learner can go on learning afterwards.

        The kernel rows of several iterations are computed together, which is faster than after
        single examples. With ``iterations=0`` in the constructor, this is the paper's algorithm.

        Parameters
        ----------
        progress
            Called every 1,000 iterations with (level, number of support vectors). An exception in
            it, or Ctrl-C, leaves a model that can be used.
        iterations
            How many; None: as many as there are examples kept.

        """
        left = self.n_kept if iterations is None else check_size("iterations", iterations) or 0
        while self.state is not None and left > 0:
            # Other threads can predict between two calls.
            self._finish_some(min(left, _AT_ONCE))
            left -= _AT_ONCE
            if progress is not None:
                progress(self.level, self.n_support_vectors)

    @guarded
    def _finish_some(self, n: int) -> None:
        solver = self.solver
        kernel, numbers = solver.bound_kernel(solver.state), solver.schedule.numbers
        sbp_finish.finish_some(solver.state, kernel, numbers, self.model.n_features, n)

    # Inspection

    @property
    def description(self) -> str:
        """The parameters in use that matter most."""
        return f"{self.kernel_!r}, nu={self.nu:g}, bias={bool(self.bias)}{self._weights_in_words}"

    @property
    def n_kept(self) -> int:
        """Number of examples kept."""
        return 0 if self.state is None else int(self.state.active.counts[0].n_members)

    @property
    def level(self) -> float:
        """The margin that |w| = 1 reaches with the slack; 0 before the first iteration."""
        return 0.0 if self.state is None else float(water.level_of(self.state.levels[MEAN]))

    def _facts(self) -> dict[str, object]:
        return super()._facts() | {"bias": self.bias_}

    @property
    def bias_(self) -> float:
        """The constant of the decision function."""
        return self._bias


register_learner(SBPClassifier, "sbp", variants=({}, {"window": 100}))
