"""Second looks: rows of the reserve that violate optimality are learnt again, until none does.

Each time f(x) is computed from the coefficients that have changed since the last time. Most rows
are far from violating anything: of these it is computed only when no other row violates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamsvm.learners.bases import kernel_batches
from streamsvm.support import stores
from streamsvm.support.rows import Rows, SparseRows, sparse, taken

_NEAR = 0.25
"""A row is near if its f(x) must change by at most this before it violates optimality."""

_OF_LOOKS = ("n_looked", "look_sum", "look_squares", "look_most")


class _Expansion(NamedTuple):
    """The expansion of f at some moment."""

    rows: Rows
    alpha: np.ndarray
    numbers: np.ndarray  # of the examples; 0 for a row that has left

    def at(self, numbers: np.ndarray) -> np.ndarray:
        """Return the coefficients of examples, given by numbers that ascend; 0 if not in it."""
        found, live = np.zeros(len(numbers)), self.numbers != 0
        found[np.searchsorted(numbers, self.numbers[live])] = self.alpha[live]
        return found


class SecondLooks:
    """The rows of a learner's reserve, with f(x) kept up to date while the learner finishes.

    Parameters
    ----------
    learner
        A binary `KernelLearner` with a reserve; the caller holds its lock here and in each call.

    """

    def __init__(self, learner: Any) -> None:
        self._learner = learner
        x, self._facts = learner._reserve.rows()
        self._x: Rows = sparse(x) if learner._sparse else x
        n = len(self._facts)
        self._f = np.zeros(n)
        self._is_near = np.zeros(n, np.bool_)
        # The expansion of which f is, for near rows and for others; None: f was not computed.
        self._near_at: _Expansion | None = None
        self._far_at: _Expansion | None = None

    def learn_violating(self) -> bool:
        """Learn the rows that violate optimality again.

        Returns
        -------
        Whether there were any, and learning them has changed the model.

        """
        if self._learner._state is None or not len(self._facts):
            return False
        now = self._expansion()
        if self._near_at is not None:
            self._add_changes(self._is_near, self._near_at, now)
            self._near_at = now
        violating = self._violating(self._is_near, now)
        if not violating.size:
            self._update_all(now)
            violating = self._violating(np.ones(len(self._f), np.bool_), now)
        return violating.size > 0 and self._learn(violating)

    def _expansion(self) -> _Expansion:
        rows, alpha, numbers = self._learner._expansion()
        return _Expansion(rows, alpha.copy(), numbers.copy())

    def _violating(self, among: np.ndarray, now: _Expansion) -> np.ndarray:
        """Return the indices of rows that are not kept and violate optimality."""
        rows = np.flatnonzero(among)
        wrong = self._learner._violations(self._facts["sign"][rows], self._f[rows])
        rows = rows[wrong > self._learner.tau]
        return rows[~np.isin(self._facts["number"][rows], now.numbers)]

    def _update_all(self, now: _Expansion) -> None:
        """Compute f of rows that are not near; then find out which are."""
        if self._far_at is None:
            self._compute(now)
        else:
            self._add_changes(~self._is_near, self._far_at, now)
        self._near_at = self._far_at = now
        wrong = self._learner._violations(self._facts["sign"], self._f)
        self._is_near = wrong > -_NEAR

    def _compute(self, now: _Expansion) -> None:
        """Compute f of all rows; of those kept it is known by their gradients."""
        learner, state = self._learner, self._learner._state
        slots = np.argsort(now.numbers, kind="stable")
        at = np.searchsorted(now.numbers[slots], self._facts["number"])
        slot = slots[np.minimum(at, len(slots) - 1)]
        is_kept = now.numbers[slot] == self._facts["number"]
        self._f[is_kept] = state.y[slot[is_kept]] - state.gradient[slot[is_kept]]
        others = np.flatnonzero(~is_kept)
        margins = kernel_batches.margins_of(learner, _some(self._x, others))
        self._f[others] = margins - learner.bias

    def _add_changes(self, among: np.ndarray, before: _Expansion, now: _Expansion) -> None:
        """Add to f of some rows what the expansion has changed by."""
        numbers = np.union1d(before.numbers, now.numbers)
        numbers = numbers[numbers != 0]
        changes = now.at(numbers) - before.at(numbers)
        numbers, changes = numbers[changes != 0.0], changes[changes != 0.0]
        indices = np.flatnonzero(among)
        if not len(numbers) or not len(indices):
            return
        x = _some(self._x, indices)
        for expansion in (now, before):
            of_these = np.flatnonzero(np.isin(expansion.numbers, numbers))
            alpha = changes[np.searchsorted(numbers, expansion.numbers[of_these])]
            self._f[indices] += self._sums(x, _some(expansion.rows, of_these), alpha)
            # What is left has gone from the expansion, and is in the one before.
            left = ~np.isin(numbers, expansion.numbers)
            numbers, changes = numbers[left], changes[left]

    def _sums(self, x: Rows, rows: Rows, alpha: np.ndarray) -> np.ndarray:
        """Return sum_s alpha_s k(row_s, x) of the rows x."""
        learner, n = self._learner, len(alpha)
        sums = np.zeros(len(x.start) - 1 if isinstance(x, SparseRows) else len(x))
        if n:
            state = learner._states.new_state(len(learner._schema), 0, n, learner._sparse)
            state = state._replace(store=stores.filled(state.store, rows))
            state.alpha[:n] = alpha
            state.info[0].n = n
            learner._write_margins(state, x, sums)
        return sums

    def _learn(self, violating: np.ndarray) -> bool:
        """Learn rows again; return whether that made a step."""
        learner, facts = self._learner, self._facts[violating]
        state, x = learner._state, _some(self._x, violating)
        steps = int(state.info[0].n_steps)
        looked = [state.info[0][name] for name in _OF_LOOKS]
        draws = state.look_draws.copy()
        signs, weights, numbers = (
            np.ascontiguousarray(facts[name]) for name in ("sign", "weight", "number")
        )
        box = learner.boxes_now(signs, weights)
        rows = (x, signs, box, weights, numbers, learner._diagonal(x))
        kernel_batches.learn_part(learner, rows, learner._new_margins(len(facts)))
        # Looks are at the model after an example of the stream, and none came.
        state = learner._state
        for name, value in zip(_OF_LOOKS, looked, strict=True):
            state.info[0][name] = value
        state.look_draws[:] = draws
        return int(state.info[0].n_steps) > steps


def _some(x: Rows, kept: np.ndarray) -> Rows:
    return taken(x, kept) if isinstance(x, SparseRows) else x[kept]
