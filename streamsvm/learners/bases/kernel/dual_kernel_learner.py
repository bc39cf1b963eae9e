"""The base class of kernel learners that solve a dual problem, whose gap can be measured."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.errors import ParameterError
from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.monitor.certificate import Looks
from streamsvm.solvers.gap import KeptGap

_log = logging.getLogger(__name__)

FINISHING_STEPS, FINISHING_STEPS_EACH = 10_000_000, 100
"""`finish` ends after so many steps, or so many for each example kept, whichever is more."""

_LEAST_STEPS = 100
"""A call counts as so many steps at least: it looks at all examples, even if it makes fewer."""

_LOOK_EVERY = 20_000
"""Number of steps after which the error is compared with that of rounding."""

_ROUNDING = 2.0**-46
"""Error of a gradient by rounding, in the largest value that f can have: some 64 last digits."""


class DualKernelLearner(KernelLearner):
    """A kernel learner whose coefficients are feasible for the dual of an SVM: 0 <= a_i <= C_i."""

    window: int | None

    @property
    @abc.abstractmethod
    def covers(self) -> str:
        """What the gap is about: "kept" examples, the "stream", its "window", or "merged" ones."""

    @abc.abstractmethod
    def kept_gap(self) -> KeptGap:
        """Return the measured duality gap on the examples kept; an example has been learnt."""

    def gap_beside(self, signs: np.ndarray, margins: np.ndarray, boxes: np.ndarray) -> KeptGap:
        """Return the gap on the examples kept, at the bias that is best for others, too.

        Parameters
        ----------
        signs, margins, boxes
            float64 (n,), of examples that are not kept: -1 and +1 (or classes), `margins_of`, and
            C_i times the number of examples that each stands for.

        Returns
        -------
        The gap, not normalised; without a bias, `kept_gap`.

        """
        return self.kept_gap()

    @abc.abstractmethod
    def at_bound(self) -> np.ndarray:
        """Return whether each nonzero coefficient is at its upper bound C_i."""

    def _improve(
        self,
        some: Callable[[], tuple[bool, float, int]],
        progress: Callable[[float, int], None] | None,
    ) -> bool:
        """Improve the examples kept up to their optimum: the loop of `finish`.

        Between two calls of `some` other threads can predict, and Ctrl-C can interrupt.

        Parameters
        ----------
        some
            A function that makes some steps. It returns whether it is done, the largest error
            left, and the number of steps; 0 if none changes a coefficient in double precision.
        progress
            Called between with (error, number of support vectors); or None.

        Returns
        -------
        Whether it was done; if not, the log says so.

        """
        made = 0
        while self._state is not None:
            with self._lock:
                is_done, error, steps = some()
                most = max(FINISHING_STEPS, FINISHING_STEPS_EACH * len(self.kept_numbers()))
            if is_done:
                return True
            before, made = made, made + max(steps, _LEAST_STEPS)
            is_rounding = steps == 0 or (
                made // _LOOK_EVERY > before // _LOOK_EVERY and error <= self._rounding()
            )
            if is_rounding or made >= most:
                _log.warning(
                    "finish ended before the optimum, with an error of %.3g: %s; larger tau, "
                    "smaller C and weights, or scaled features help",
                    error,
                    "what is left is rounding" if is_rounding else f"{made:,} steps were made",
                )
                return False
            if progress is not None:
                progress(error, self.n_support_vectors)
        return True

    def _rounding(self) -> float:
        """Return the error that rounding alone leaves in gradients: steps on it never end."""
        with self._lock:
            coefficients = self._expansion()[1]
            largest = self._state.diagonal[: len(coefficients)].max(initial=0.0)
            return _ROUNDING * float(largest) * float(np.abs(coefficients).sum())

    def _check_ids(self, ids: Any) -> None:
        if ids is not None and self.window is not None:
            raise ParameterError(
                "ids: a window holds the last examples, whatever they are; leave one out"
            )

    @property
    def looks(self) -> Looks:
        """The sums of looks so far, which estimate and bound the mean gap, if there are any."""
        return Looks() if self._state is None else Looks.of(self._state.info[0])

    @property
    def dual(self) -> float:
        """The value of the dual objective."""
        return 0.0 if self._state is None else float(self._state.info[0].dual)

    @property
    def squared_norm(self) -> float:
        """The square of |w|."""
        positive = 0.0 if self._state is None else float(np.abs(self._state.alpha).sum())
        return max(0.0, 2.0 * (positive - self.dual))

    def duality_gap(self) -> float:
        """Return the measured duality gap on the examples kept, divided by the sum of their C_i.

        The gap bounds how far primal and dual are from their common optimum.

        Returns
        -------
        The normalised gap; 0 before the first example.

        """
        if self._state is None:
            return 0.0
        gap = self.kept_gap()
        return gap.total / gap.box if gap.box > 0.0 else 0.0

    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept.

        Returns
        -------
        int64 (n_kept,): counted from 1, or the ids given. The learner has learnt an example.

        """
        entered = self._state.store.entered[: int(self._state.info[0].n)]
        return np.asarray(entered[entered != 0])
