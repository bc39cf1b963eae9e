"""The stochastic batch perceptron as a River classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm._parameter_checks import MOST_STEPS, check_number, check_seed, check_size
from streamsvm.errors import ParameterError
from streamsvm.features.schema import LIMIT
from streamsvm.learners.bases.kernel.primal_kernel_learner import PrimalKernelLearner
from streamsvm.learners.bases.registry import register_learner
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.bounds import UNBOUNDED, Reservoir, Unbounded, Window
from streamsvm.solvers.sbp import events as events  # registers the solver
from streamsvm.solvers.sbp import finish as sbp_finish
from streamsvm.solvers.sbp import state as sbp_state
from streamsvm.solvers.sbp import step as sbp
from streamsvm.solvers.sbp import water
from streamsvm.solvers.sbp.state import MEAN, SBPState
from streamsvm.support import states
from streamsvm.support.rows import Rows

_AT_ONCE = 1000
"""Number of iterations between two reports of progress."""


class SBPClassifier(PrimalKernelLearner):
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
    sparse, hashing, max_features, n_jobs, missing
        As in `LASVMClassifier`.
    cache_mb
        Megabytes for cached kernel rows; 200 by default. Less is slower, never less exact.
    seed
        Seed of the random draws; None: different ones each time.

    Attributes
    ----------
    kernel_
        The kernel in use.
    n_support_vectors
        Number of nonzero coefficients.
    level
        The margin of |w| = 1 that the examples kept reach with the slack.
    bias_
        The constant of the decision function.
    classes
        The labels seen, in the order of first appearance.
    feature_names, memory_usage
        The features seen, in the order of first appearance; bytes of all arrays.

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

    _states = sbp_state
    _solver = sbp
    _state: SBPState | None

    def __init__(
        self,
        kernel: Any = None,
        nu: float = 0.1,
        bias: bool = True,
        iterations: int = 1,
        averaged: bool = True,
        window: int | None = None,
        reservoir: int | None = None,
        class_weight: dict[Any, float] | None = None,
        sparse: bool | None = None,
        hashing: int | None = None,
        max_features: int = LIMIT,
        cache_mb: float = 200.0,
        n_jobs: int | None = None,
        seed: int | None = None,
        missing: str = "mean",
    ) -> None:
        super().__init__(
            kernel,
            1.0,
            class_weight,
            sparse,
            hashing,
            max_features,
            cache_mb,
            n_jobs,
            missing=missing,
        )
        self.nu = nu
        self.bias = bias
        self.iterations = iterations
        self.averaged = averaged
        self.window = check_size("window", window)
        self.reservoir = check_size("reservoir", reservoir)
        self.seed = check_seed(seed)
        self._schedule = self._new_schedule()

    def _new_schedule(self) -> sbp.Schedule:
        bounds: Unbounded | Window | Reservoir = UNBOUNDED
        if self.window is not None and self.reservoir is not None:
            raise ParameterError("window and reservoir: give one of them only")
        if self.window is not None:
            bounds = Window(float(self.window))
        elif self.reservoir is not None:
            bounds = Reservoir(float(self.reservoir))
        steps = check_number("iterations", self.iterations, 0, MOST_STEPS)
        kept = self.window or self.reservoir
        numbers = sbp.Numbers(
            steps=steps,
            nu=check_number("nu", self.nu, 0),
            bias=float(bool(self.bias)),
            averaged=float(bool(self.averaged)),
            horizon=steps * kept if kept else 2.0**62,
        )
        return sbp.Schedule(numbers, bounds)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the settings that River's checks run with."""
        yield {"seed": 42}
        yield {"kernel": kernels.Linear(), "bias": False, "nu": 0.1, "iterations": 3, "seed": 42}
        yield {"window": 60, "seed": 42}
        yield {"reservoir": 50, "averaged": False, "iterations": 2, "seed": 42}

    # The solver

    def _new_state(self, n_features: int) -> SBPState:
        sizes = n_features, self._cache_bytes, self.seed, self._sparse
        return states.new_seeded(SBPState, *sizes, window=self.window or 0)

    def _write_margins(self, state: Any, x: Rows, out: np.ndarray) -> None:
        sbp.margins_of(state, self._bound_kernel(state), self._schedule, x, out)

    def _coefficients(self, n: int) -> np.ndarray:
        state: Any = self._state
        info = state.info[0]
        w = info.scale * state.alpha[:n]
        if self.averaged and info.sum_weight > 0.0:
            w = (info.sum_scale * state.alpha[:n] - state.late[:n]) / info.sum_weight
        return np.asarray(sbp.margin_scale(state) * w)

    def _check_ids(self, ids: Any) -> None:
        if ids is not None and (self.window or self.reservoir):
            raise ParameterError(
                "ids: a window or a sample holds examples of the stream, whatever they are; leave "
                "one out"
            )

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
        while self._state is not None and left > 0:
            # Other threads can predict between two calls.
            with self._lock:
                sbp_finish.finish_some(
                    self._state,
                    self._bound_kernel(self._state),
                    self._schedule.numbers,
                    len(self._schema),
                    min(left, _AT_ONCE),
                )
            left -= _AT_ONCE
            if progress is not None:
                progress(self.level, self.n_support_vectors)

    # Inspection

    @property
    def description(self) -> str:
        """The parameters in use that matter most."""
        weights = "" if self.class_weight is None else f", class_weight={self.class_weight!r}"
        return f"{self.kernel_!r}, nu={self.nu:g}, bias={bool(self.bias)}{weights}"

    @property
    def n_kept(self) -> int:
        """Number of examples kept."""
        return 0 if self._state is None else int(self._state.active.counts[0].n_members)

    @property
    def level(self) -> float:
        """The margin that |w| = 1 reaches with the slack; 0 before the first iteration."""
        return 0.0 if self._state is None else float(water.level_of(self._state.levels[MEAN]))

    @property
    def bias_(self) -> float:
        """The constant of the decision function."""
        if self._state is None:
            return 0.0
        return float(sbp.margin_scale(self._state) * water.bias_of(self._state.levels[MEAN]))

    @property
    def certificate(self) -> Certificate:
        """No bound, and the reason: the problem has no dual that the learner follows."""
        return Certificate(
            None,
            "no certificate: the iterations follow the primal problem, of a margin for a given "
            "slack, and keep no feasible dual; follow the loss on the sample",
        )


register_learner(SBPClassifier, "sbp", variants=({}, {"window": 100}))
