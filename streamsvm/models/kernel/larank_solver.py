"""LaRank as the solver of a model."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from streamsvm.model_files.json_values import Content
from streamsvm.models.kernel import loaded
from streamsvm.models.kernel.kernel_solver import KernelSolver, KernelState, ReservingSolver, Sizes
from streamsvm.models.kernel.reserve import Reserve
from streamsvm.models.kernel.revisits import RevisitsOfLaRank
from streamsvm.models.model import Kernel
from streamsvm.models.outputs import Scores
from streamsvm.solvers.gap import KeptGap
from streamsvm.solvers.larank import bounds as larank_bounds
from streamsvm.solvers.larank import finish as larank_finish
from streamsvm.solvers.larank import state as larank_state
from streamsvm.solvers.larank import step as larank
from streamsvm.solvers.larank.finish import larank_gap
from streamsvm.solvers.larank.state import LaRankState
from streamsvm.support import states
from streamsvm.support.declaration import Field, NamedArrays, Range
from streamsvm.support.dense_store import DenseStore
from streamsvm.support.draws import new_draws
from streamsvm.support.rows import Rows

_ANY = 2**62


class LaRankSolver(ReservingSolver):
    """LaRank: a coefficient for each pair of a support pattern and a class.

    `kept_rows` is an empty reserve. The seed None draws otherwise each time; `max_classes` None is
    any number.
    """

    step, states = larank, larank_state
    revisits = RevisitsOfLaRank
    more_counts: ClassVar[dict[str, str]] = {
        "argmax_new": "n_new",
        "argmax_old": "n_old",
        "optimize_steps": "n_optimize",
    }

    def __init__(
        self,
        kernel: Kernel | None,
        schedule: larank.Schedule,
        cache_mb: float,
        kept_rows: Reserve,
        seed: int | None,
        max_classes: int | None,
    ) -> None:
        super().__init__(kernel, schedule, cache_mb, kept_rows)
        self._max_classes, self.seed = max_classes, seed
        self.draws = new_draws(seed)

    def fresh(self, kernel: Kernel, cache_bytes: int) -> KernelSolver:
        """Return a solver with these settings that has learnt nothing."""
        return super().fresh(kernel, cache_bytes).changed(draws=new_draws(self.seed))

    def may_be_read(self, state: KernelState) -> bool:
        """Tell whether another thread may read stored rows while `learn` gets `is_read`.

        Sparse rows that are removed become empty at once.
        """
        return isinstance(state.store, DenseStore)

    def new_state(self, sizes: Sizes) -> LaRankState:
        """Return an empty state."""
        room = max(4, min(2 * sizes.n_classes, self._max_classes or _ANY))
        own = sizes.n_features, self.cache_bytes, self.seed, sizes.is_sparse, self.draws
        return states.new_state(LaRankState, *own, classes=room)

    def state_for(self, sizes: Sizes) -> LaRankState:
        """Return the state, created or grown to hold so many features and classes."""
        state: LaRankState = super().state_for(sizes)
        if sizes.n_classes > state.n_vectors.size:
            capacity, d = state.cost.size, states.n_columns(state)
            room = max(sizes.n_classes, min(2 * sizes.n_classes, self._max_classes or _ANY))
            state = self.state = states.grown(state, capacity, d, self.cache_bytes, room)
        state.info[0].n_classes = sizes.n_classes
        return state

    def coefficients(self, n: int) -> np.ndarray:
        """Return the coefficients of the n slots in use, float64 (n, classes)."""
        return larank_state.coefficients(self.state)

    def remove(self, slots: np.ndarray, n_features: int) -> None:
        """Remove the examples in some slots, and all their coefficients."""
        kernel = self.bound_kernel(self.state)
        for s in slots.tolist():
            larank_bounds.remove(self.state, kernel, s, n_features)
        larank_state.squeeze(self.state)

    def improve_some(self, n_features: int, allowed: float) -> tuple[bool, float, int]:
        """See `ReservingSolver`: a sweep over the examples kept."""
        state = self.state
        before = int(state.info[0].n_steps)
        kernel, schedule = self.bound_kernel(state), self.schedule
        worst = float(larank_finish.finish_some(state, kernel, schedule, n_features))
        is_enough = allowed > 0.0 and self.kept_gap(n_features).total <= allowed
        n_steps = int(state.info[0].n_steps) - before
        return worst <= schedule.tau or is_enough, worst, n_steps

    # The reserve, files

    def as_file(self) -> Content:
        """Return reserve and draws."""
        content, arrays = super().as_file()
        return content, arrays | {"draws": self.draws}

    def read_draws(self, arrays: NamedArrays) -> tuple[str, ...]:
        """Set the draws, which are those of the state, too."""
        self.draws = arrays.take("draws", Field((1,), np.uint64, range=Range(1)), {})
        return ("draws",)

    def least_margin(self, number: float, margins: np.ndarray) -> float:
        """Return the score of the class of an event, less the largest other one."""
        # Faster than with arrays.
        scores = margins[0].tolist()
        own = float(scores.pop(int(number)))
        # Without another class: of those that will come the score is 0.
        return own - max(scores, default=0.0)

    def least_margins(self, numbers: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return the same of rows."""
        # Without another class: of those that will come the score is 0.
        found = Scores(margins.shape[1]).correctness(numbers, margins)
        return found if margins.shape[1] > 1 else margins[:, 0]

    def violations(self, numbers: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return by how much the margin of each row is below 1."""
        return 1.0 - self.least_margins(numbers, f)

    # Inspection

    @property
    def n_support_vectors(self) -> int:
        """Number of nonzero coefficients, over all classes."""
        return 0 if self.state is None else int(self.state.n_vectors.sum())

    @property
    def n_vectors(self) -> int:
        """Number of examples kept: with coefficients, or one of at most 16 whose margin is 1."""
        return 0 if self.state is None else int(self.state.info[0].n_alive)

    def squared_norm(self, n_features: int) -> float:
        """Return the square of |w|, over all classes."""
        own = np.maximum(larank_state.coefficients(self.state), 0.0).sum()
        return max(0.0, 2.0 * (float(own) - self.dual))

    def kept_gap(self, n_features: int) -> KeptGap:
        """Return the gap on the examples kept, not normalised."""
        return larank_gap(self.state)

    def at_bound(self) -> np.ndarray:
        """Return whether each nonzero coefficient is at its upper bound C_i."""
        return larank_state.bounded(self.state)

    def mend_gradients(self, x: Rows, rows: Rows, at: np.ndarray, coefficients: np.ndarray) -> bool:
        """Tell whether the gradients of the rows in the slots `at` are right."""
        state, k = self.state, int(self.state.info[0].n_classes)
        f = np.zeros((len(at), k))
        self.write_margins(state, rows, f)
        wanted = (np.arange(k) == state.y[at, None]) - f
        return loaded.is_close(wanted, state.gradient[:k, at].T, coefficients, state.diagonal)
