"""Second looks: rows of the reserve that violate optimality are learnt again, until none does."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.learners.bases import kernel_batches
from streamsvm.support import stores
from streamsvm.support.rows import Rows, SparseRows, shape, sparse, taken

_OF_LOOKS = ("n_looked", "look_sum", "look_squares", "look_most")


class SecondLooks:
    """The rows of a learner's reserve, with f(x) kept up to date while the learner finishes.

    Parameters
    ----------
    learner
        A binary `KernelLearner` with a reserve; the caller holds its lock in every call.

    """

    def __init__(self, learner: Any) -> None:
        self._learner = learner
        x, self.facts = learner._reserve.rows(learner._n_examples)
        self.x: Rows = sparse(x) if learner._sparse else x
        self.f: Any = None
        self._known: Any = None

    def learn_violating(self) -> bool:
        """Learn the rows that violate optimality again; return whether there were any."""
        learner = self._learner
        if learner._state is None or not len(self.facts):
            return False
        self._update()
        signs = self.facts["sign"]
        violating = np.flatnonzero(learner._violations(signs, self.f) > learner.tau)
        # A coefficient at its bound violates nothing.
        kept = np.isin(self.facts["number"][violating], self._known[2])
        violating = violating[~kept]
        if not violating.size:
            return False
        state, steps = learner._state, int(learner._state.info[0].n_steps)
        looked = [state.info[0][name] for name in _OF_LOOKS], state.look_draws.copy()
        self._learn(violating)
        state = learner._state
        # Looks are at the model after an example of the stream, of which there was none.
        for name, value in zip(_OF_LOOKS, looked[0], strict=True):
            state.info[0][name] = value
        state.look_draws[:] = looked[1]
        return int(state.info[0].n_steps) > steps

    def _learn(self, rows: np.ndarray) -> None:
        learner, facts = self._learner, self.facts[rows]
        x = taken(self.x, rows) if isinstance(self.x, SparseRows) else self.x[rows]
        box = learner.boxes_now(facts["sign"], facts["weight"])
        given = (x, facts["sign"].copy(), box, facts["weight"].copy(), facts["number"].copy())
        diagonal = learner._diagonal(x)
        kernel_batches.learn_part(learner, (*given, diagonal), learner._new_margins(len(rows)))

    def _update(self) -> None:
        """Compute f of all rows: from scratch, or from the coefficients that have changed."""
        learner, before = self._learner, self._known
        now = learner._expansion()
        self._known = now
        if before is None or learner.kernel_ is not self._kernel:
            self._kernel = learner.kernel_
            self.f = kernel_batches.margins_of(learner, self.x) - learner.bias
            return
        numbers = np.union1d(before[2], now[2])
        numbers = numbers[numbers != 0]
        changes = _at(numbers, now) - _at(numbers, before)
        changed = changes != 0.0
        if not changed.any():
            return
        self.f += self._expansion_of(numbers[changed], changes[changed], (now, before))

    def _expansion_of(self, numbers: np.ndarray, changes: np.ndarray, given: Any) -> np.ndarray:
        """Return sum_s changes_s k(x_s, x) for the rows x; the rows x_s are among those given."""
        learner, d = self._learner, len(self._learner._schema)
        left, values = numbers, np.zeros(len(self.facts))
        for rows, _, entered in given:
            of_these = np.flatnonzero(np.isin(entered, left))
            left = left[~np.isin(left, entered)]
            alpha = changes[np.searchsorted(numbers, entered[of_these])]
            state = learner._states.new_state(d, 0, len(of_these), learner._sparse)
            some = taken(rows, of_these) if isinstance(rows, SparseRows) else rows[of_these]
            state = state._replace(store=stores.filled(state.store, some))
            state.alpha[: len(alpha)] = alpha
            state.info[0].n = len(alpha)
            part = np.zeros(len(values))
            learner._write_margins(state, self.x, part)
            values += part
        return values


def _at(numbers: np.ndarray, expansion: Any) -> np.ndarray:
    """Return the coefficients of examples by their numbers, ascending; 0 of those not kept."""
    _, alpha, entered = expansion
    found = np.zeros(len(numbers))
    live = entered != 0
    found[np.searchsorted(numbers, entered[live])] = alpha[live]
    return found
