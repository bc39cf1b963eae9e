"""What all learners of exact solutions share: their examples, taken back, changed and looked at."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.errors import ParameterError
from streamsvm.features import forgetting
from streamsvm.features.names import Name
from streamsvm.labels.label_column import Label
from streamsvm.learners.bases.kernel.remains import Remains, checked_ids
from streamsvm.learners.bases.kernel.unlearning import Unlearned
from streamsvm.learners.bases.row_learner import RowLearner
from streamsvm.models.exact.exact_rows import ExactRows
from streamsvm.models.model import Kernel
from streamsvm.monitor.certificate import Certificate
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.incremental import whole
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.solvers.incremental.state import MARGIN
from streamsvm.support.interruptions import change_together
from streamsvm.support.locked import guarded, locked
from streamsvm.support.rows import are_used, entries_of, taken


class ExactLearner(RowLearner):
    """A learner whose solution is exact.

    Attributes
    ----------
    model
        The examples and the solution, as rows of numbers.

    """

    has_dual = True
    covers = "kept"
    averages = "means that stand for missing values, and gamma if it follows the data"
    """What is computed from all examples that came, in words."""

    kernel: Kernel | None
    window: int | None
    model: ExactRows

    @property
    def problem(self) -> ExactProblem:
        """The examples and the solution."""
        return self.model.problem

    @guarded
    def set_kernel(self, kernel: Kernel) -> None:
        """Change the kernel, or its gamma; the solution is the exact one with it.

        Parameters
        ----------
        kernel
            A kernel of `streamsvm.kernels`. It does not follow the data.

        Raises
        ------
        ParameterError
            It is no kernel, or too large for a row that is kept; nothing has changed.

        """
        kernels.check_kernel(kernel)
        of_model = {"problem": self.model.with_kernel(kernel), "follows_rule": False}
        change_together([(self.model.__dict__, of_model), (self.__dict__, {"kernel": kernel})])

    @property
    def last_number(self) -> int:
        """The number to count on from; no id that came is above it, so that none comes again."""
        return max(self.n_examples, self.problem.highest)

    # Taking examples back

    @guarded
    def unlearn(self, ids: Iterable[int] | int) -> Unlearned:
        """Take examples back: see `unlearn_one`, and `LASVMClassifier.unlearn`.

        Parameters
        ----------
        ids
            Their numbers or ids, or one; those that are not kept are no error.

        Returns
        -------
        Unlearned
            The ids removed, those not kept, and the duality gap.

        """
        wanted = checked_ids(ids)
        self.problem.settle()
        kept = self.keeps(wanted)
        if kept.any():
            self._remove(wanted[kept])
        return Unlearned(wanted[kept].tolist(), wanted[~kept].tolist(), self.duality_gap())

    @guarded
    def audit(self, ids: Iterable[int] | int) -> dict[int, Remains]:
        """Tell what the model has of examples: see `LASVMClassifier.audit`.

        Parameters
        ----------
        ids
            Their numbers or ids, or one.

        Returns
        -------
        dict[int, Remains]
            By id.

        """
        wanted = checked_ids(ids)
        self.problem.settle()
        beta = dict(zip(self.numbers.tolist(), self.problem.state.beta.tolist(), strict=False))
        words = [self.averages] if self.n_examples else []
        waiting = [] if self.waiting is None else wanted[self.waiting.knows(wanted)].tolist()
        found = {}
        for number in wanted.tolist():
            own = [beta[number]] if beta.get(number) else []
            names = self.schema.names
            features = [names[c] for c in self._dropped(np.array([number]))]
            found[number] = Remains(own, number in beta, False, number in waiting, features, words)
        return found

    def keeps(self, ids: np.ndarray) -> np.ndarray:
        """Return of which ids, int64 (n,), `unlearn` would remove something; bool (n,)."""
        with self.lock:
            found = np.isin(ids, self.numbers)
            return found if self.waiting is None else found | self.waiting.knows(ids)

    def unlearn_one(self, id: int) -> None:
        """Take an example back: the solution is that of the others, as if it had never come.

        What follows all examples (the scale before the model, gamma, class weights, calibration)
        keeps what it was told of it.

        Parameters
        ----------
        id
            Its number, counted from 1, or the id that it was learnt with.

        Raises
        ------
        ParameterError
            No example with this id is kept; nothing has changed.

        """
        self.unlearn_many([id])

    @guarded
    def unlearn_many(self, ids: Iterable[int]) -> None:
        """Take examples back: see `unlearn_one`.

        Parameters
        ----------
        ids
            Their numbers or ids.

        Raises
        ------
        ParameterError
            An id is not kept; nothing has changed.

        """
        wanted = checked_ids(ids)
        # An interrupted change is finished first: it may move slots.
        self.problem.settle()
        self.check_kept(wanted)
        if wanted.size:
            self._remove(wanted)

    def _remove(self, wanted: np.ndarray) -> None:
        """Take back what is kept of these ids, int64 (n,): kept and waiting examples, and names."""
        problem, waiting = self.problem, self.waiting
        slots = np.flatnonzero(np.isin(self.numbers, wanted))
        names = self._dropped(wanted)
        waits = waiting is not None and bool(waiting.knows(wanted).any())
        if slots.size == 1 and not names.size and not waits:
            problem.remove(int(slots[0]))
            return
        # On copies: what interrupts it takes none of them back.
        changed: dict[str, object] = {}
        of_model: dict[str, object] = {}
        columns = None
        if slots.size or names.size:
            of_model["problem"] = problem = copy.deepcopy(problem)
            if slots.size:
                whole.remove_many(problem, slots.tolist())
        if names.size:
            columns = np.setdiff1d(np.arange(len(self.schema)), names)
            nothing = np.zeros((0, len(self.schema)), np.float32)
            problem.take_columns(columns[columns < len(problem.columns)])
            changed["schema"] = forgetting.without(self.schema, nothing, columns)
            of_model["moments"] = entries_of(self.model.moments, columns).copy()
            of_model["n_features"] = len(columns)
            changed["event_path"] = None
        if waiting is not None and (waits or columns is not None):
            changed["waiting"] = waiting.without(wanted, columns)
        change_together([(self.__dict__, changed), (self.model.__dict__, of_model)])

    def _dropped(self, wanted: np.ndarray) -> np.ndarray:
        """Return the columns, int64, in which rows with these ids have values, and no others."""
        problem, d = self.problem, len(self.schema)
        if self.schema.is_range:
            return np.zeros(0, np.int64)
        rows, gone = problem.columns[:, : problem.n], np.isin(self.numbers, wanted)
        is_used, is_left = np.zeros(d, bool), np.zeros(d, bool)
        is_used[: len(rows)] = rows[:, gone].any(axis=1)
        if self.waiting is not None:
            x, leaves = self.waiting.rows(d), np.isin(self.waiting.facts["id"], wanted)
            is_used |= are_used(taken(x, np.flatnonzero(leaves)), d)
            is_left = are_used(taken(x, np.flatnonzero(~leaves)), d)
        found = np.flatnonzero(is_used & ~is_left)
        of_kept = found[found < len(rows)]
        is_left[of_kept] = np.count_nonzero(rows[of_kept][:, ~gone], axis=1) > 0
        return np.flatnonzero(is_used & ~is_left)

    def check_kept(self, wanted: np.ndarray) -> None:
        """Raise ParameterError if no example has one of these ids, int64 (n,)."""
        unknown = wanted[~np.isin(wanted, self.numbers)]
        if unknown.size:
            first = ", ".join(map(repr, unknown[:5].tolist()))
            raise ParameterError(
                f"ids {first}{', ...' if unknown.size > 5 else ''}: no such example is kept; ids "
                "are those given to learn_many, or count the examples from 1"
            )

    def _y_of_kept(self) -> Iterable[tuple[Label, ...]]:
        """Return for each example kept what a function for `forget` is given beside the row."""
        return ((y,) for y in self.problem.facts["y"][: self.problem.n].tolist())

    def forget(self, where: Callable[..., object]) -> int:
        """Take all examples back for which a function says so.

        Parameters
        ----------
        where
            where(x, y) of the features by name, as the learner gets them (standardised behind a
            scaler), and the label or number; where(x) if there is none.

        Returns
        -------
        int
            How many they were.

        """
        # `where` may predict.
        with self.lock:
            found = [number for x, y, number in self._kept() if where(x, *y)]
            self.unlearn_many(found)
        return len(found)

    @guarded
    def _kept(self) -> list[tuple[dict[Name, float], tuple[Label, ...], int]]:
        """Return features by name, what comes with them, and the number of each example kept."""
        self.problem.settle()
        names, numbers = self.schema.names, self.numbers.tolist()
        events = [dict(zip(names, x, strict=True)) for x in self.problem.rows(len(names)).tolist()]
        return list(zip(events, self._y_of_kept(), numbers, strict=True))

    # Looking inside

    @property
    def numbers(self) -> np.ndarray:
        """The numbers, or ids, of the examples kept, int64 (n_kept,): a view."""
        return self.model.numbers

    @property
    def kernel_(self) -> Any:
        """The kernel in use: with the gamma that follows the data."""
        return self.problem.kernel

    @property
    def n_kept(self) -> int:
        """How many examples the solution is of."""
        return self.problem.n

    @property
    def n_support_vectors(self) -> int:
        """Number of examples with a nonzero coefficient."""
        with self.lock:
            return int(np.count_nonzero(self.problem.state.beta[: self.problem.n]))

    @property
    def bias(self) -> float:
        """The constant b of the decision function."""
        return self.problem.bias

    @property
    def dual(self) -> float:
        """The value of the dual objective."""
        with self.lock:
            return self.problem.dual

    @property
    def delta(self) -> float:
        """By how much the conditions of optimality are violated, at most."""
        with self.lock:
            return self.problem.violation(self.problem.state.h[: self.problem.n])

    @property
    def kappa(self) -> float:
        """The share of steps that changed no gradient; 0 before the first step."""
        info = self.problem.state.info[0]
        return float(info.n_null) / max(1, int(info.n_steps) + int(info.n_null))

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the first example: steps of paths, and those that changed no gradient."""
        info = self.problem.state.info[0]
        found = {"steps": int(info.n_steps), "null_steps": int(info.n_null), "kept": self.n_kept}
        return found | self._ignored()

    @property
    def certificate(self) -> Certificate:
        """None is needed: the solution is the optimum of the examples kept."""
        return Certificate(None, "none is needed: this is the optimum of the examples kept")

    @locked
    def kept_gap(self) -> KeptGap:
        """Return the measured duality gap on the examples kept, not normalised."""
        problem, n = self.problem, self.problem.n
        state = problem.state
        total = float((problem.losses() - state.beta[:n] * state.h[:n]).sum())
        return KeptGap(max(0.0, total), float((state.high[:n] - state.low[:n]).sum()))

    def duality_gap(self) -> float:
        """Return the measured duality gap on the examples kept, divided by the sum of their C_i.

        Returns
        -------
        float
            The normalised gap; 0 before the first example.

        """
        return self.kept_gap().normalised

    @locked
    def kept_numbers(self) -> np.ndarray:
        """Return the numbers of the examples kept.

        Returns
        -------
        int64 (n_kept,): counted from 1, or the ids given.

        """
        return self.numbers.copy()

    @locked
    def at_bound(self) -> np.ndarray:
        """Return whether each support vector is at its upper bound C_i.

        Returns
        -------
        bool, one value for each nonzero coefficient.

        """
        state, n = self.problem.state, self.problem.n
        return np.asarray(state.kind[:n][state.beta[:n] != 0.0] != MARGIN)
