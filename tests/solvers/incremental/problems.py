"""An exact problem beside the examples that it should have, and what must hold of it."""

import numpy as np

from streamsvm import kernels
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.solvers.incremental.kernel_row import write_row

LARGE, TINY = 10**8, 0
"""Bytes of a cache that holds all rows, and of one that holds few."""

KERNELS = [
    kernels.Linear(),
    kernels.RBF(gamma=0.5),
    kernels.RBF(gamma=0.01),
    kernels.RBF(gamma=20.0),
    kernels.Polynomial(degree=2),
]


def gram_of(kernel, x):
    columns, out = np.ascontiguousarray(x.T), np.empty((len(x), len(x)))
    for i, row in enumerate(x):
        write_row(kernel, columns, len(x), row.copy(), out[i])
    return out


def rows_of(draws, kind, n, d):
    """Return rows, float64 (n, d), of some kind, and labels, of which some are noise."""
    grid = draws.integers(0, 3, (n, d)).astype(float)
    x = {
        "normal": lambda: draws.normal(size=(n, d)),
        "grid": lambda: grid,
        "near": lambda: grid + 1e-7 * draws.normal(size=(n, d)),
        "line": lambda: np.outer(draws.normal(size=n), np.arange(1.0, d + 1.0)),
        "point": lambda: np.ones((n, d)),
        "zero": lambda: np.zeros((n, d)),
    }[kind]()
    return x, np.where(x[:, 0] * x[:, -1] + draws.normal(size=n) > 0.5, 1.0, -1.0)


class Examples:
    """Examples by their numbers, of which a problem has some."""

    def __init__(self, kernel, x, y, C, cache_bytes=LARGE):
        self.kernel, self.x, self.y = kernel, x, y
        self.C = np.full(len(y), float(C))
        self.gram = gram_of(kernel, x)
        self.problem = ExactProblem(kernel, cache_bytes)
        self.terms = 1.0

    @property
    def here(self):
        """The numbers of the examples of the problem, by slot."""
        return self.problem.facts["number"][: self.problem.n].copy()

    @property
    def beta(self):
        """The coefficients of all examples."""
        beta = np.zeros(len(self.y))
        beta[self.here] = self.problem.state.beta[: self.problem.n]
        return beta

    def bounds(self, which):
        q = self.y[which] * self.C[which]
        return np.minimum(0.0, q), np.maximum(0.0, q)

    def slot(self, number):
        return int(np.flatnonzero(self.here == number)[0])

    def add(self, *which):
        for i in which:
            low, high = self.bounds(i)
            self.problem.add(self.x[i], self.y[i], low, high, i)

    def remove(self, *which):
        for i in which:
            self.problem.remove(self.slot(i))

    def set_costs(self, which, C):
        self.C[which] = C
        low, high = self.bounds(which)
        self.problem.set_bounds(np.array([self.slot(i) for i in which]), low, high)

    def violation(self):
        """By how much fresh gradients violate optimality, after checks of what is exact."""
        problem, here = self.problem, self.here
        state, n = problem.state, problem.n
        beta, low, high = state.beta[:n], state.low[:n], state.high[:n]
        np.testing.assert_array_equal((low, high), self.bounds(here))
        assert ((beta >= low) & (beta <= high)).all()
        gram = self.gram[np.ix_(here, here)]
        # Gradients keep the rounding errors of the largest terms that they had.
        self.terms = max(self.terms, (np.abs(gram) @ np.abs(beta)).max(initial=0.0))
        h = self.y[here] - gram @ beta - problem.bias
        np.testing.assert_allclose(state.h[:n], h, rtol=0, atol=1e-12 * self.terms)
        assert abs(beta.sum()) <= 1e-12 * (1.0 + self.C.max())
        up, down = h[beta < high].max(initial=0.0), -h[beta > low].min(initial=0.0)
        return max(up, down)

    def check(self, atol=1e-8):
        """The solution is optimal: gradients, and dual and primal objective, say so."""
        assert self.violation() <= atol
        here, state, n = self.here, self.problem.state, self.problem.n
        beta, gram = state.beta[:n], self.gram[np.ix_(here, here)]
        norm = beta @ gram @ beta
        h = self.y[here] - gram @ beta - self.problem.bias
        dual = self.y[here] @ beta - norm / 2
        primal = norm / 2 + np.maximum(state.high[:n] * h, state.low[:n] * h).sum()
        assert abs(primal - dual) <= atol * max(1.0, dual, norm)
        assert abs(self.problem.dual - dual) <= 1e-10 * max(1.0, dual, norm)
