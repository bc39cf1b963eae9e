"""Kernel values of candidates, which are kept while they wait.

When the model has changed only the values with slots that hold another vector are computed; a
choice among 50 candidates then costs some 50 sums over the support vectors, and no kernel values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsvm import kernels
from streamsvm.learners.bases.selecting import margins_of_arrivals as computed_of_arrivals
from streamsvm.learners.bases.selecting import margins_of_waiting as computed_of_waiting
from streamsvm.selection.candidates import Candidates
from streamsvm.support import states
from streamsvm.support.kernel_rows.fresh_block import fill_values
from streamsvm.support.rows import Rows, shape, sparse
from streamsvm.support.tiles import PANEL

if TYPE_CHECKING:
    from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner

_MOST_RUNS = 8
"""With more runs of changed slots all values from the first to the last are computed."""


class KeptValues:
    """What kernel values the candidates of a learner have: with which vectors in which slots.

    A slot holds another vector if its number is another one, or its weight, as a merged vector has
    the number of one of two and the weight of both. Slots of removed vectors have the number 0,
    and coefficient 0: their values do not matter.
    """

    def __init__(self) -> None:
        self._solver: Any = None
        self._kernel: Any = None
        self._state: Any = None
        self._counts: Any = None
        self._d = self.n = 0
        self._entered, self._weight = np.zeros(0, np.int64), np.zeros(0)
        self.bound: Any = None

    def bring_up_to_date(self, learner: KernelLearner, candidates: Candidates) -> Any:
        """Compute the values of all candidates that are missing; return the solver's state.

        `bound` is its kernel then, and `n` how many slots it uses.
        """
        d, solver = len(learner.schema), learner.solver
        state = solver.state_for(learner.sizes(d))
        is_same = solver is self._solver and solver.kernel is self._kernel
        # A new feature is 0 in all rows so far: only kernels of the vectors may depend on it.
        is_same &= d == self._d or kernels.product_of(type(solver.kernel)) != "vectors"
        if state is not self._state or not is_same:
            self._state, self.bound = state, solver.bound_kernel(state)
            self._counts = states.counts_of(state)
            self._solver, self._kernel, self._d = solver, solver.kernel, d
            _widen(candidates, states.capacity_of(state))
        n = self.n = self._counts["n"].item()
        entered, weight = state.store.entered[:n], state.store.weight[:n]
        m = min(n, self._entered.size) if is_same else 0
        differs = entered != 0
        differs[:m] &= (entered[:m] != self._entered[:m]) | (weight[:m] != self._weight[:m])
        slots = np.flatnonzero(differs)
        if slots.size:
            if len(candidates):
                x = learner.preparation.scaled(candidates.rows(d))
                x = sparse(x) if learner.is_sparse else x
                for first, stop in _runs(slots // PANEL):
                    stop = min(n, stop * PANEL)
                    fill_values(self.bound, state.store, x, first * PANEL, stop, candidates.values)
            self._entered, self._weight = entered.copy(), weight.copy()
        return state


def _widen(candidates: Candidates, capacity: int) -> None:
    """Make room for kernel values with so many slots."""
    if candidates.values.shape[1] != capacity:
        values = np.zeros((candidates.selection.candidates, capacity), np.float32)
        m = min(capacity, candidates.values.shape[1])
        values[:, :m] = candidates.values[:, :m]
        candidates.values = values


def kept_values(candidates: Candidates) -> KeptValues:
    """Return what the candidates have."""
    if not isinstance(candidates.scratch, KeptValues):
        candidates.scratch = KeptValues()
    return candidates.scratch


def _runs(panels: np.ndarray) -> list[tuple[int, int]]:
    """Return runs of numbers, which ascend, as (first, stop); one if there are too many."""
    if panels[-1] - panels[0] <= 1:
        return [(int(panels[0]), int(panels[-1]) + 1)]
    ends = np.flatnonzero(np.diff(panels) > 1)
    first, last = np.append(0, ends + 1), np.append(ends, len(panels) - 1)
    if len(first) > _MOST_RUNS:
        first, last = first[:1], last[-1:]
    runs = zip(panels[first].tolist(), (panels[last] + 1).tolist(), strict=True)
    return list(runs)


def _is_kept(learner: KernelLearner) -> bool:
    return learner.state is not None and hasattr(learner.state, "block")


def margins_of_arrivals(
    learner: KernelLearner, candidates: Candidates, x: Rows
) -> tuple[np.ndarray, np.ndarray]:
    """Return the margins of rows that come, and their kernel values with all slots."""
    if not _is_kept(learner):
        return computed_of_arrivals(learner, candidates, x)
    kept = kept_values(candidates)
    state = kept.bring_up_to_date(learner, candidates)
    scaled = learner.preparation.scaled(sparse(x) if learner.is_sparse else x)
    n = shape(x)[0]
    margins = learner.targets.zeros(n)
    values = np.zeros((n, states.capacity_of(state)), np.float32)
    fill_values(kept.bound, state.store, scaled, 0, kept.n, values)
    learner.solver.margins_by_values(state, scaled, margins, values)
    return margins, values


def margins_of_waiting(learner: KernelLearner, candidates: Candidates) -> np.ndarray:
    """Return the margins of all candidates, by the values that are kept.

    `margins_of_arrivals` was called since the learner changed.
    """
    if not _is_kept(learner):
        return computed_of_waiting(learner, candidates)
    x = candidates.rows(len(learner.schema))
    scaled = learner.preparation.scaled(sparse(x) if learner.is_sparse else x)
    margins = learner.targets.zeros(len(candidates))
    learner.solver.margins_by_values(learner.state, scaled, margins, candidates.values)
    return margins
