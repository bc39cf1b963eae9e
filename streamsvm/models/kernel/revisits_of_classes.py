"""Second looks of LASVM for several classes: at each row in each binary problem of its class.

As in `revisits`, with f(x) for each problem that learns the row. A row becomes a member of those
problems in which it violates optimality.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm.models.kernel.kernel_batches import share_rows
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.revisits import NEARER, Revisits, narrowing
from streamsvm.solvers.lasvm_pairs.problems import NONE, REST, members_of
from streamsvm.solvers.lasvm_pairs.state import BLOCK, PairsState
from streamsvm.support import stores
from streamsvm.support.kernel_rows.fresh_block import fill_block
from streamsvm.support.rows import Rows, taken
from streamsvm.support.states import new_state


class _Expansions(NamedTuple):
    """The expansions of all problems at some moment, and their members."""

    rows: Rows
    numbers: np.ndarray  # of the examples in all slots; 0 for a row that has left
    member: np.ndarray  # the number of the example of each member
    problem: np.ndarray  # its problem
    alpha: np.ndarray  # its coefficient


class RevisitsOfClasses(Revisits):
    """The rows of a reserve, with f(x) of each problem kept up to date while the model finishes.

    `_f` has a column for each problem of the row's class: one against one that of the problem with
    class number ``column``, one against the rest that of the problem of this class.
    """

    comes_first = False
    """Rows would be added to many problems, of few of which they stay members."""

    def __init__(self, model: KernelModel, most: int | None = None) -> None:
        super().__init__(model, most)
        of = model.solver.state_for(model.sizes(model.n_features)).problems
        self._class_of = self._facts["class"].astype(np.int64)
        k = self._n_classes
        # The problem of each class and column, NONE on the diagonal of one against one.
        self._problem = of.problem_of[:k, :k].astype(np.int64)
        if of.segments["negative"][0] == REST:
            self._problem = np.tile(np.diag(self._problem), (k, 1))
        self._positive = of.segments["positive"].copy()
        self._negative = of.segments["negative"].copy()
        self._f = np.zeros((len(self._facts), k))
        self._in_order = np.argsort(self._facts["number"])

    def expansion(self) -> _Expansions:
        """Return the expansion now, as copies."""
        state, model = self._model.state, self._model
        of, n = state.problems, int(state.info[0].n)
        at, owner = members_of(of), np.repeat(np.arange(len(of.table)), of.table["n"])
        is_live = of.lower[at] != of.upper[at]
        at, owner = at[is_live], owner[is_live]
        rows = stores.rows_of(state.store, n, model.n_features)
        return _Expansions(
            rows, state.store.entered[:n].copy(), of.entered[at], owner, of.alpha[at]
        )

    def _violating(self, among: np.ndarray, now: _Expansions, allowed: float) -> np.ndarray:
        rows = np.flatnonzero(among)
        return rows[self._wrong(rows, now) > self._model.solver.schedule.tau]

    def _wrong(self, rows: np.ndarray, now: _Expansions) -> np.ndarray:
        """Return the worst violation of each row, in problems that it is no member of."""
        worst: np.ndarray = self._wrong_in(rows, now).max(axis=1, initial=-np.inf)
        return worst

    def _wrong_in(self, rows: np.ndarray, now: _Expansions) -> np.ndarray:
        """Return the violation of each row in each problem; -inf where it is a member."""
        table = self._model.state.problems.table
        is_started = (table["i"] >= 0) & (table["j"] >= 0)
        low = np.where(is_started, table["g_min"], 0.0)
        high = np.where(is_started, table["g_max"], 0.0)
        problem, is_positive, g, is_outside = self._gradients(rows, now)
        wrong = np.where(is_positive, g - low[problem], high[problem] - g)
        return np.where(is_outside & is_started[problem], wrong, -np.inf)

    def _gradients(self, rows: np.ndarray, now: _Expansions) -> tuple[np.ndarray, ...]:
        """Return the problems of rows, whether they are positive there, gradients, and if outside.

        All have a column for each problem of a row, which is outside if it is no member of it.
        """
        problem = self._problem[self._class_of[rows]]
        is_positive = self._positive[problem] == self._class_of[rows][:, None]
        g = np.where(is_positive, 1.0, -1.0) - self._f[rows]
        return problem, is_positive, g, (problem != NONE) & ~self._is_member(now)[rows]

    def _losses(self, now: _Expansions) -> tuple[np.ndarray, np.ndarray]:
        """Return losses and C_i of rows in the problems that they are no members of."""
        problem, is_positive, g, is_outside = self._gradients(np.arange(len(self._f)), now)
        b = np.array(self._model.solver.biases)[problem]
        losses = np.maximum(0.0, np.where(is_positive, g - b, b - g))
        costs = self._model.costs_now(self._facts["class"], self._facts["weight"])
        return losses[is_outside], np.broadcast_to(costs[:, None], losses.shape)[is_outside]

    def _keep_bounding(self, now: _Expansions) -> bool:
        """Make rows members of the problems whose interval of the bias they narrow."""
        problem, is_positive, g, is_outside = self._gradients(np.arange(len(self._f)), now)
        table, tau = self._model.state.problems.table, self._model.solver.schedule.tau
        entries = np.flatnonzero(is_outside)
        of_entries = [of.ravel()[entries] for of in (g, is_positive, problem)]
        found = entries[narrowing(of_entries[0], of_entries[1], of_entries[2], table, tau)]
        wanted = np.full(problem.shape, NONE)
        wanted.ravel()[found] = problem.ravel()[found]
        rows = np.unique(found // max(1, self._n_classes))
        return found.size > 0 and self._add_rows(rows, (self._f[rows], wanted[rows]))

    def _is_member(self, now: _Expansions) -> np.ndarray:
        """Return which rows are members of the problem of each column."""
        numbers = self._facts["number"][self._in_order]
        at = np.minimum(np.searchsorted(numbers, now.member), len(numbers) - 1)
        is_here = numbers[at] == now.member
        row, problem = self._in_order[at[is_here]], now.problem[is_here]
        positive, negative = self._positive[problem], self._negative[problem]
        is_other = (negative != REST) & (positive == self._class_of[row])
        found = np.zeros(self._f.shape, np.bool_)
        found[row, np.where(is_other, negative, positive)] = True
        return found

    def _learn(self, violating: np.ndarray, now: _Expansions) -> bool:
        """Make rows members of the problems in which they, at least nearly, violate optimality."""
        rows = np.union1d(np.flatnonzero(self._is_near), violating)
        wrong = self._wrong_in(rows, now)
        is_wanted = wrong > -NEARER
        chosen = is_wanted.any(axis=1)
        rows, is_wanted = rows[chosen], is_wanted[chosen]
        wanted = np.where(is_wanted, self._problem[self._class_of[rows]], NONE)
        return self._add_rows(rows, (self._f[rows], wanted))

    def _compute(self, now: _Expansions) -> None:
        nothing = now._replace(member=now.member[:0], problem=now.problem[:0], alpha=now.alpha[:0])
        self._f[:] = 0.0
        self._add_changes(np.ones(len(self._f), np.bool_), nothing, now)

    def _add_changes(self, among: np.ndarray, before: _Expansions, now: _Expansions) -> None:
        member, problem, change = _changes(before, now)
        for c in range(self._n_classes):
            rows = np.flatnonzero(among & (self._class_of == c))
            column = np.full(len(self._positive), NONE)
            own = self._problem[c] != NONE
            column[self._problem[c][own]] = np.flatnonzero(own)
            mine = column[problem] != NONE
            if not rows.size or not mine.any():
                continue
            numbers, at = np.unique(member[mine], return_inverse=True)
            changes = np.zeros((len(numbers), self._n_classes))
            changes[at, column[problem[mine]]] = change[mine]
            for expansions in (now, before):
                slots = np.flatnonzero(np.isin(expansions.numbers, numbers))
                # The order of slots depends on how the stream was cut into batches.
                slots = slots[np.argsort(expansions.numbers[slots])]
                those = changes[np.searchsorted(numbers, expansions.numbers[slots])]
                self._add(rows, taken(expansions.rows, slots), those)
                left = ~np.isin(numbers, expansions.numbers)
                numbers, changes = numbers[left], changes[left]

    def _add(self, indices: np.ndarray, vectors: Rows, changes: np.ndarray) -> None:
        """Add sum_s changes[s] k(vector_s, x) to f of rows, given by indices."""
        model, m, d = self._model, len(changes), self._model.n_features
        if not m:
            return
        state = new_state(PairsState, d, sparse=model.is_sparse, slots=m, classes=0)
        state = state._replace(store=stores.filled(state.store, vectors))
        kernel = model.bound_kernel(state)

        def add(state: PairsState, start: int, stop: int) -> None:
            for first in range(start, stop, BLOCK):
                some = indices[first : min(first + BLOCK, stop)]
                fill_block(state, kernel, taken(self._x, some), 0, m)
                self._f[some] += state.block[: len(some), :m] @ changes

        share_rows(model.n_threads, state, len(indices), d, add)


def _changes(before: _Expansions, now: _Expansions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return example numbers, problems and changes of the coefficients that have changed."""
    member = np.concatenate([now.member, before.member])
    problem = np.concatenate([now.problem, before.problem])
    numbers, at = np.unique(member, return_inverse=True)
    n_problems = int(problem.max(initial=0)) + 1
    keys, which = np.unique(at * n_problems + problem, return_inverse=True)
    change = np.bincount(which, np.concatenate([now.alpha, -before.alpha]), len(keys))
    keys, change = keys[change != 0.0], change[change != 0.0]
    return numbers[keys // n_problems], keys % n_problems, change
