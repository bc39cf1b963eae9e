"""Kernel values of candidates, which are kept while they wait.

When the model has changed only the values with slots that hold another vector are computed; a
choice among 50 candidates then costs some 50 sums over the support vectors, and no kernel values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm import kernels
from streamsvm.models.kernel.kernel_solver import KernelSolver, Sizes
from streamsvm.models.model import Kernel
from streamsvm.selection.candidates import Candidates
from streamsvm.support import states
from streamsvm.support.kernel_rows.fresh_block import fill_values
from streamsvm.support.rows import Rows, sparse
from streamsvm.support.tiles import PANEL

_MOST_RUNS = 8
"""With more runs of changed slots all values from the first to the last are computed."""


class KeptValues:
    """What kernel values the candidates of a model have: with which vectors in which slots.

    A slot holds another vector if its number is another one, or its weight, as a merged vector has
    the number of one of two and the weight of both. Slots of removed vectors have the number 0,
    and coefficient 0: their values do not matter.
    """

    def __init__(self) -> None:
        self._solver: KernelSolver | None = None
        self._kernel: Kernel | None = None
        self._state: Any = None
        self._counts: Any = None
        self._d = self.n = 0
        self._entered, self._weight = np.zeros(0, np.int64), np.zeros(0)
        self.bound: Any = None

    def bring_up_to_date(
        self,
        solver: KernelSolver,
        sizes: Sizes,
        candidates: Candidates,
        scaled: Callable[[Rows], Rows],
    ) -> Any:
        """Compute the values of all candidates that are missing; return the solver's state.

        `scaled` returns rows as the solver has them. `bound` is its kernel then, and `n` how many
        slots it uses.
        """
        d = sizes.n_known
        state = solver.state_for(sizes)
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
                x = scaled(candidates.rows(d))
                x = sparse(x) if sizes.is_sparse else x
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
