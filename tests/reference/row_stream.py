"""A state of a solver of two classes, and rows to give it."""

from functools import cached_property

import numpy as np

from streamsvm.support import states, stores
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.kernel_rows.kernel_diagonal import diagonal_of
from streamsvm.support.rows import dense, shape, sparse, taken
from tests.kernels.test_values import values


class RowStream:
    """It learns rows of a problem by their indices, growing as a learner does.

    The number of a row is one more than its index. `step` is the module of the solver, `kind` the
    type of its state.
    """

    step = None
    kind = None

    def __init__(
        self, x, y, cost, kernel, schedule, is_sparse=False, cache_bytes=10**6, seed=5, **sizes
    ):
        self.y, self.cost = y, np.broadcast_to(np.asarray(cost, float), (len(y),)).copy()
        self.kernel, self.schedule, self.cache_bytes = kernel, schedule, cache_bytes
        self.dense, self.x = x, sparse(x) if is_sparse else x
        # With the same bits as the values of cached rows, which `kernels.evaluate` may lack.
        self.diagonal = diagonal_of(kernel, x)
        self.state = states.new_state(self.kind, x.shape[1], cache_bytes, seed, is_sparse, **sizes)
        self.margins = np.full(len(y), np.nan)

    @property
    def solver_kernel(self):
        return bound(self.kernel, self.state.store)

    @cached_property
    def gram(self):
        return values(self.kernel, self.dense, self.dense).astype(float)

    @property
    def weight(self):
        return self.cost

    def learn_rows(self, rows):
        """Learn rows; return their margins from before."""
        margins, done = np.full(len(rows), np.nan), 0
        while done < len(rows):
            part = rows[done:]
            done += self.step.learn_rows(
                self.state, self.solver_kernel, taken(self.x, part), self.y[part], self.cost[part],
                self.weight[part], part + 1, self.diagonal[part], self.schedule, margins[done:],
            )  # fmt: skip
            if done < len(rows):
                self.grow(2 * self.state.alpha.size)
        self.margins[rows] = margins
        return margins

    def learn(self, first, stop):
        return self.learn_rows(np.arange(first, stop))

    def grow(self, capacity):
        self.state = states.grown(self.state, capacity, shape(self.x)[1], self.cache_bytes)

    @property
    def info(self):
        return self.state.info[0]

    @property
    def members(self):
        active = self.state.active
        return active.members[: active.counts[0].n_members]

    def rows_of_slots(self, n):
        """Return the rows in the first slots, float32 (n, features)."""
        return dense(stores.rows_of(self.state.store, n, self.dense.shape[1]))

    def kernel_of(self, slots):
        """Return the kernel values of the rows in these slots."""
        if not len(slots):
            return np.zeros((0, 0))
        rows = self.rows_of_slots(int(max(slots)) + 1)[slots]
        return values(self.kernel, rows, rows).astype(float)
