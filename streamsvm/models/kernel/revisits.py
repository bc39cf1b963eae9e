"""Second looks: rows of the reserve that violate optimality are learnt again, until none does.

Each time f(x) is computed from the coefficients that have changed since the last time. Most rows
are far from violating anything: of these it is computed only when no other row violates.

Where the rows kept leave the bias an interval, those of the reserve that narrow it are kept, too:
else its middle could be far from what is best for them, although none violates optimality.

LASVM for several classes looks at each row in each binary problem of its class. A row becomes a
member of those problems in which it violates optimality.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsvm.models.kernel import kernel_batches
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.kernel_solver import KernelState, reserving
from streamsvm.models.outputs import sides_of
from streamsvm.solvers.larank.state import LaRankState
from streamsvm.solvers.lasvm.state import LASVMState
from streamsvm.solvers.lasvm_pairs import state as pairs_state
from streamsvm.solvers.lasvm_pairs.problems import NONE, REST, members_of
from streamsvm.support import stores
from streamsvm.support.kernel_rows.fresh_block import fill_block
from streamsvm.support.rows import Rows, SparseRows, shape, sparse, taken
from streamsvm.support.states import new_state

_NEAR = 0.25
"""A row is near if its f(x) must change by at most this before it violates optimality."""

NEARER = 0.1
"""With rows that violate optimality, those are kept, too, whose f(x) must change by less.

With two classes it is doubled each time: where f changes much between looks (large C), they become
fewer.
"""


_OF_LOOKS = ("n_looked", "look_sum", "look_squares", "look_most")


class _Expansion(NamedTuple):
    """The expansion of f at some moment."""

    rows: Rows
    alpha: np.ndarray  # of LaRank there is a column for each class
    numbers: np.ndarray  # of the examples; 0 for a row that has left

    def at(self, numbers: np.ndarray) -> np.ndarray:
        """Return the coefficients of examples, given by numbers that ascend; 0 if not in it."""
        found, live = np.zeros((len(numbers), *self.alpha.shape[1:])), self.numbers != 0
        found[np.searchsorted(numbers, self.numbers[live])] = self.alpha[live]
        return found


def narrowing(
    g: np.ndarray, is_positive: np.ndarray, problem: np.ndarray, table: np.ndarray, tau: float
) -> np.ndarray:
    """Return the indices of rows, with gradient g, that narrow the interval of b of a problem.

    `problem` is the index of each one in `table`, which has their extremes. No row violates
    optimality beside those kept. Of rows that violate it beside each other all are returned, else
    the one of each class that narrows an interval most, if it does so by more than tau.
    """
    is_started = (table["i"] >= 0) & (table["j"] >= 0)
    high, low, counts = table["g_max"].copy(), table["g_min"].copy(), is_started[problem]
    positive, negative = counts & is_positive, counts & ~is_positive
    np.maximum.at(high, problem[positive], g[positive])
    np.minimum.at(low, problem[negative], g[negative])
    violates = np.where(is_positive, g - low[problem], high[problem] - g) > tau
    violates &= counts & (high - low > tau)[problem]
    narrows = positive & (high > table["g_max"] + tau)[problem] & (g == high[problem])
    narrows |= negative & (low < table["g_min"] - tau)[problem] & (g == low[problem])
    best = np.flatnonzero(narrows)
    # Of equal ones the first.
    _, first = np.unique(2 * problem[best] + is_positive[best], return_index=True)
    return np.union1d(np.flatnonzero(violates), best[first])


def _found_in(
    expansions: tuple[_Expansion | _Expansions, ...],
    numbers: np.ndarray,
    changes: np.ndarray,
    in_order: bool = False,
) -> Iterator[tuple[Rows, np.ndarray]]:
    """Yield rows of examples, given by numbers that ascend, and their changes.

    Those of the first expansion, then of those that have gone from it, and are in the second.
    """
    for expansion in expansions:
        slots = np.flatnonzero(np.isin(expansion.numbers, numbers))
        if in_order:
            # The order of slots depends on how the stream was cut into batches.
            slots = slots[np.argsort(expansion.numbers[slots])]
        own = changes[np.searchsorted(numbers, expansion.numbers[slots])]
        yield taken(expansion.rows, slots), own
        left = ~np.isin(numbers, expansion.numbers)
        numbers, changes = numbers[left], changes[left]


class Revisits:
    """The rows of a model's reserve, with f(x) kept up to date while it finishes.

    The model has two classes; the caller holds its lock here and in each call. Of more rows than
    `most` so many are drawn, for `losses`.
    """

    comes_first = True
    """Whether to look before `finish` makes a step: most rows that are missing are so already."""

    def __init__(self, model: KernelModel, most: int | None = None) -> None:
        self._model, self._n_classes = model, model.n_classes
        x, self._facts = reserving(model.solver).kept_rows.rows()
        # How many rows each of these stands for.
        self._times = 1.0
        if most is not None and len(self._facts) > most:
            drawn = np.sort(np.random.default_rng(0).choice(len(self._facts), most, replace=False))
            self._times = len(self._facts) / most
            x, self._facts = taken(x, drawn), self._facts[drawn]
        self._x: Rows = sparse(x) if model.is_sparse else x
        n = len(self._facts)
        self._f = np.zeros(n)
        self._is_near = np.zeros(n, np.bool_)
        # The expansion of which f is, for near rows and for others; None: f was not computed.
        self._near_at: Any = None
        self._far_at: Any = None
        self._nearer = NEARER

    def learn_violating(self, allowed: float = 0.0) -> bool:
        """Learn the rows that violate optimality again; return whether that has changed the model.

        If there are none, those that bound the bias are kept. None is learnt if the rows that are
        not kept add no more than `allowed` to the duality gap.
        """
        model = self._model
        if model.state is None or not len(self._facts):
            return False
        if model.n_classes != self._n_classes:
            # Another thread has learnt a class meanwhile: the margins here are those from before.
            return False
        now = self.expansion()
        if self._near_at is not None:
            self._add_changes(self._is_near, self._near_at, now)
            self._near_at = now
        violating = self._violating(self._is_near, now, allowed)
        if not violating.size:
            self._update_all(now)
            violating = self._violating(np.ones(len(self._f), np.bool_), now, allowed)
        return self._learn(violating, now) if violating.size else self._keep_bounding(now)

    def losses(self) -> tuple[float, float]:
        """Return the summed losses and C_i of the rows that are not kept."""
        if self._model.state is None or not len(self._facts):
            return 0.0, 0.0
        now = self.expansion()
        self._update_all(now)
        losses, costs = self._losses(now)
        return self._times * float(costs @ losses), self._times * float(costs.sum())

    def _losses(self, now: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the losses and C_i of the rows that are not kept."""
        rows, model = self._outside(now), self._model
        classes = self._facts["class"][rows]
        margins = self._f[rows] + (model.solver.biases or [0.0])[0]
        losses = model.outputs.losses(classes, margins)
        return losses, model.costs_now(classes, self._facts["weight"][rows])

    def _outside(self, now: Any) -> np.ndarray:
        """Return the indices of rows that are not kept."""
        return np.flatnonzero(~np.isin(self._facts["number"], now.numbers))

    def _keep_bounding(self, now: Any) -> bool:
        """Keep rows that narrow the interval of the bias; return whether there are any."""
        rows = self._outside(now)
        sides, info = sides_of(self._facts["class"][rows]), self._model.state.info
        found = narrowing(
            sides - self._f[rows], sides > 0.0, np.zeros(len(rows), np.int64), info,
            self._model.solver.schedule.tau,
        )  # fmt: skip
        return found.size > 0 and self._add_rows(rows[found], (self._f[rows[found]],))

    def expansion(self) -> Any:
        """Return the expansion now, as copies."""
        rows, alpha, numbers = self._model.expansion()
        return _Expansion(rows, alpha.copy(), numbers.copy())

    def _violating(self, among: np.ndarray, now: Any, allowed: float) -> np.ndarray:
        """Return the indices of rows that are not kept and violate optimality.

        None if they add at most `allowed` to the duality gap.
        """
        rows = np.flatnonzero(among)
        wrong = self._wrong(rows, now)
        is_violating = wrong > self._model.solver.schedule.tau
        is_violating[is_violating] = ~np.isin(
            self._facts["number"][rows[is_violating]], now.numbers
        )
        rows, wrong = rows[is_violating], wrong[is_violating]
        if allowed > 0.0:
            classes, weights = self._facts["class"][rows], self._facts["weight"][rows]
            if self._model.costs_now(classes, weights) @ wrong <= allowed:
                return rows[:0]
        return rows

    def _wrong(self, rows: np.ndarray, now: Any) -> np.ndarray:
        """Return by how much rows, given by indices, would violate optimality."""
        return reserving(self._model.solver).violations(self._facts["class"][rows], self._f[rows])

    def _update_all(self, now: Any) -> None:
        """Compute f of rows that are not near; then find out which are."""
        if self._far_at is None:
            self._compute(now)
        else:
            self._add_changes(~self._is_near, self._far_at, now)
        self._near_at = self._far_at = now
        self._is_near = self._wrong(np.arange(len(self._facts)), now) > -_NEAR

    def _compute(self, now: Any) -> None:
        """Compute f of all rows; of those kept it is known by their gradients."""
        slots = np.argsort(now.numbers, kind="stable")
        # The last one stands for all that are not found: no example has the number 0.
        kept = np.append(now.numbers[slots], 0)
        at = np.searchsorted(kept[:-1], self._facts["number"])
        is_kept = kept[at] == self._facts["number"]
        self._f[is_kept] = self._f_of_kept(slots[at[is_kept]])
        others = np.flatnonzero(~is_kept)
        self._f[others] = self._f_of(taken(self._x, others))

    def _f_of_kept(self, slots: np.ndarray) -> np.ndarray:
        state = self._model.state
        return state.y[slots] - state.gradient[slots]

    def _f_of(self, x: Rows) -> np.ndarray:
        return self._model.margins_of_scaled(x) - reserving(self._model.solver).biases[0]

    def _add_changes(self, among: np.ndarray, before: Any, now: Any) -> None:
        """Add to f of some rows what the expansion has changed by."""
        numbers = np.union1d(before.numbers, now.numbers)
        numbers = numbers[numbers != 0]
        changes = now.at(numbers) - before.at(numbers)
        # `any` over no axis is that of each number.
        changed = changes.any(axis=tuple(range(1, changes.ndim)))
        numbers, changes = numbers[changed], changes[changed]
        indices = np.flatnonzero(among)
        if not len(numbers) or not len(indices):
            return
        x = taken(self._x, indices)
        for rows, alpha in _found_in((now, before), numbers, changes):
            self._f[indices] += self._sums(x, rows, alpha)

    def _sums(self, x: Rows, rows: Rows, alpha: np.ndarray) -> np.ndarray:
        """Return sum_s alpha_s k(row_s, x) of the rows x."""
        n = len(x.start) - 1 if isinstance(x, SparseRows) else len(x)
        sums = np.zeros((n, *alpha.shape[1:]))
        if len(alpha):
            solver, state = self._model.solver, self._state_of(rows, alpha)
            kernel_batches.write_margins(solver, self._model.n_threads, state, x, sums)
        return sums

    def _state_of(self, rows: Rows, alpha: np.ndarray) -> KernelState:
        """Return a state of these rows with these coefficients."""
        model, n = self._model, len(alpha)
        state = new_state(LASVMState, model.n_features, sparse=model.is_sparse, slots=n)
        state = state._replace(store=stores.filled(state.store, rows))
        state.alpha[:n] = alpha
        state.info[0].n = n
        return state

    def _arguments(self, indices: np.ndarray) -> tuple[Rows, ...]:
        """Return rows as a solver takes them."""
        model, facts, x = self._model, self._facts[indices], taken(self._x, indices)
        classes, weights, numbers = (
            np.ascontiguousarray(facts[name]) for name in ("class", "weight", "number")
        )
        cost = model.costs_now(classes, weights)
        return x, classes, cost, weights, numbers, model.diagonal_of(x)

    def _learn(self, violating: np.ndarray, now: Any) -> bool:
        """Make these rows, and others that nearly violate optimality, examples that are kept."""
        rows = np.flatnonzero(self._is_near)
        rows = rows[self._wrong(rows, now) > -self._nearer]
        self._nearer *= 2.0
        rows = np.union1d(rows[~np.isin(self._facts["number"][rows], now.numbers)], violating)
        return self._add_rows(rows, (self._f[rows],))

    def _add_rows(self, rows: np.ndarray, more: tuple[np.ndarray, ...]) -> bool:
        """Make rows, given by indices, examples that are kept; tell whether some could be.

        `more` is what the solver wants besides. None can be of rows whose class has the weight 0.
        """
        solver, arguments = reserving(self._model.solver), self._arguments(rows)
        solver.state_for(self._model.sizes(shape(arguments[0])[1]))
        before = solver.n_members
        solver.add_rows((*arguments, *more))
        return solver.n_members > before


class RevisitsOfLaRank(Revisits):
    """The same with the scores of a LaRank.

    `_f` has a column for each class, and so have the coefficients of an expansion.
    """

    def __init__(self, model: KernelModel, most: int | None = None) -> None:
        super().__init__(model, most)
        self._f = np.zeros((len(self._facts), self._n_classes))

    def expansion(self) -> Any:
        """Return the expansion now, as copies."""
        now = super().expansion()
        # The state has room for more classes.
        return now._replace(alpha=now.alpha[:, : self._n_classes])

    def _f_of_kept(self, slots: np.ndarray) -> np.ndarray:
        state = self._model.state
        found: np.ndarray = -state.gradient[: self._n_classes, slots].T
        found[np.arange(len(slots)), state.y[slots]] += 1.0
        return found

    def _f_of(self, x: Rows) -> np.ndarray:
        return self._model.margins_of_scaled(x)

    def _keep_bounding(self, now: Any) -> bool:
        # There is no bias.
        return False

    def _state_of(self, rows: Rows, alpha: np.ndarray) -> KernelState:
        model, (n, k) = self._model, alpha.shape
        draws = self._model.state.draws.copy()
        d, is_sparse = model.n_features, model.is_sparse
        state = new_state(LaRankState, d, sparse=is_sparse, draws=draws, slots=n, classes=k)
        state = state._replace(store=stores.filled(state.store, rows))
        for c in range(k):
            slots = np.flatnonzero(alpha[:, c])
            state.coefficient[c, : len(slots)] = alpha[slots, c]
            state.slot[c, : len(slots)] = slots
            state.n_vectors[c] = len(slots)
        state.info[0].n, state.info[0].n_classes = n, k
        return state

    def _learn(self, violating: np.ndarray, now: Any) -> bool:
        """Learn rows again; return whether that made a step."""
        model = self._model
        state, steps = model.state, model.solver.counters["steps"]
        looked = [state.info[0][name] for name in _OF_LOOKS]
        draws = state.look_draws.copy()
        rows = self._arguments(violating)
        margins, sizes = model.outputs.zeros(len(violating)), model.sizes(shape(rows[0])[1])
        kernel_batches.learn_part(model.solver, model.n_threads, sizes, rows, margins, [])
        # Looks are at the model after an example of the stream, and none came.
        state = model.state
        for name, value in zip(_OF_LOOKS, looked, strict=True):
            state.info[0][name] = value
        state.look_draws[:] = draws
        return bool(model.solver.counters["steps"] > steps)


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
        return self._wrong_in(rows, now).max(axis=1, initial=-np.inf)

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
            for vectors, those in _found_in((now, before), numbers, changes, True):
                self._add(rows, vectors, those)

    def _add(self, indices: np.ndarray, vectors: Rows, changes: np.ndarray) -> None:
        """Add sum_s changes[s] k(vector_s, x) to f of rows, given by indices."""
        model, m, d = self._model, len(changes), self._model.n_features
        if not m:
            return
        state = new_state(pairs_state.PairsState, d, sparse=model.is_sparse, slots=m, classes=0)
        state = state._replace(store=stores.filled(state.store, vectors))
        kernel = model.bound_kernel(state)

        def add(state: pairs_state.PairsState, start: int, stop: int) -> None:
            for first in range(start, stop, pairs_state.BLOCK):
                some = indices[first : min(first + pairs_state.BLOCK, stop)]
                fill_block(state, kernel, taken(self._x, some), 0, m)
                self._f[some] += state.block[: len(some), :m] @ changes

        kernel_batches.share_rows(model.n_threads, state, len(indices), d, add)


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
