"""The base class of kernel learners without a dual problem, whose mean loss can be followed."""

from __future__ import annotations

import numpy as np

from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner
from streamsvm.support.rows import Rows, shape


class PrimalKernelLearner(KernelLearner):
    """A kernel learner whose coefficients are feasible for no dual problem."""

    has_dual = False

    _loss_margin = 1.0
    """Margins of at least this have no loss."""

    @property
    def _regularisation(self) -> float:
        """What the objective has beside the mean loss."""
        return 0.0

    def objective_of(self, x: Rows, signs: np.ndarray, weights: np.ndarray) -> float:
        """Return the regularisation, where there is one, plus the mean hinge loss over rows.

        Parameters
        ----------
        x
            n rows over the features seen.
        signs, weights
            float64 (n,): +1 or -1, and example weights, at least 0.

        Returns
        -------
        The objective.

        """
        margins = self._margins(x) if shape(x)[0] else np.zeros(0)
        losses = np.maximum(0.0, self._loss_margin - signs * margins)
        factors = self.boxes_now(signs, weights) / self.C_
        return self._regularisation + (float((factors * losses).mean()) if len(losses) else 0.0)
