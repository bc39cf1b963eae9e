"""A state of a solver of two classes, and rows to give it."""

import numpy as np

from streamsvm.support import states
from streamsvm.support.kernel_rows.bound_kernels import bound
from streamsvm.support.kernel_rows.kernel_diagonal import diagonal_of
from streamsvm.support.rows import cut, sparse


class RowStream:
    """It learns rows of a problem by their numbers, growing as a learner does.

    `step` is the solver's module; the state is made by who inherits.
    """

    step = None

    def __init__(self, x, y, cost, kernel, schedule, is_sparse=False):
        self.y, self.cost, self.kernel, self.schedule = y, cost, kernel, schedule
        self.dense, self.x = x, sparse(x) if is_sparse else x
        # With the same bits as the values of cached rows, which `kernels.evaluate` may lack.
        self.diagonal = diagonal_of(kernel, x)

    @property
    def solver_kernel(self):
        return bound(self.kernel, self.state.store)

    def learn(self, first, stop):
        margins, done, numbers = np.zeros(stop - first), 0, np.arange(1, len(self.y) + 1)
        while first + done < stop:
            part = slice(first + done, stop)
            done += self.step.learn_rows(
                self.state, self.solver_kernel, cut(self.x, part.start, stop), self.y[part],
                self.cost[part], self.cost[part], numbers[part], self.diagonal[part],
                self.schedule, margins[done:],
            )  # fmt: skip
            if first + done < stop:
                d = self.dense.shape[1]
                self.state = states.grown(self.state, 2 * self.state.alpha.size, d, 10**6)
        return margins

    @property
    def members(self):
        active = self.state.active
        return active.members[: active.counts[0].n_members]
