"""Second looks of LaRank: at each row with its scores of all classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.learners.bases.kernel import kernel_batches
from streamsvm.learners.bases.kernel.second_looks import SecondLooks
from streamsvm.solvers.larank.state import new_state
from streamsvm.support import stores
from streamsvm.support.rows import Rows


class SecondLooksOfLaRank(SecondLooks):
    """The rows of a reserve, with their scores kept up to date while the learner finishes.

    `_f` has a column for each class, and so have the coefficients of an expansion.

    Parameters
    ----------
    learner
        A `LaRankModel`; the caller holds its lock here and in each call.

    """

    def __init__(self, learner: Any) -> None:
        super().__init__(learner)
        self._f = np.zeros((len(self._facts), self._n_classes))

    def _expansion(self) -> Any:
        now = super()._expansion()
        # The state has room for more classes.
        return now._replace(alpha=now.alpha[:, : self._n_classes])

    def _f_of_kept(self, slots: np.ndarray) -> np.ndarray:
        state = self._learner._state
        found: np.ndarray = -state.gradient[: self._n_classes, slots].T
        found[np.arange(len(slots)), state.y[slots]] += 1.0
        return found

    def _f_of(self, x: Rows) -> np.ndarray:
        return kernel_batches.margins_of(self._learner, x)

    def _state_of(self, rows: Rows, alpha: np.ndarray) -> Any:
        learner, (n, k) = self._learner, alpha.shape
        draws = learner._draws.copy()
        state = new_state(len(learner._schema), 0, draws, k, n, learner._sparse)
        state = state._replace(store=stores.filled(state.store, rows))
        for c in range(k):
            slots = np.flatnonzero(alpha[:, c])
            state.coefficient[c, : len(slots)] = alpha[slots, c]
            state.slot[c, : len(slots)] = slots
            state.n_vectors[c] = len(slots)
        state.info[0].n, state.info[0].n_classes = n, k
        return state
