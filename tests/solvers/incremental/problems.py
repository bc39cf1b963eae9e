"""An exact problem beside the examples that it should have, and what must hold of it."""

import numpy as np

from streamsvm import kernels
from streamsvm.solvers.incremental import whole
from streamsvm.solvers.incremental.exact import ExactProblem
from streamsvm.solvers.incremental.kept import write_row

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
    def atol(self):
        """How far from optimal it may be."""
        return 1e-8 * max(1.0, self.C.max() / 10)

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
        self.problem.set_costs(np.array([self.slot(i) for i in which]), self.C[which])

    def set_all_costs(self, factor):
        self.C *= factor
        whole.set_costs(self.problem, self.C[self.here])

    def set_kernel(self, kernel):
        own = [self.problem.own_value(s, kernel) for s in range(self.problem.n)]
        whole.set_kernel(self.problem, kernel, np.array(own))

    def remove_together(self, which):
        whole.remove_many(self.problem, [self.slot(i) for i in which])

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
        assert abs(beta.sum()) <= 1e-11 * (1.0 + self.C.max())
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


class Values(Examples):
    """Examples of regression: y are numbers, and errors up to epsilon cost nothing."""

    def __init__(self, kernel, x, y, C, epsilon, cache_bytes=LARGE):
        super().__init__(kernel, x, y, C, cache_bytes)
        self.epsilon, self.problem = epsilon, ExactProblem(kernel, cache_bytes, 2.0 * epsilon)

    @property
    def atol(self):
        return 1e-8 * max(1.0, self.C[0])

    def add(self, *which):
        for i in which:
            self.problem.add(self.x[i], self.y[i] - self.epsilon, 0.0, self.C[i], i)

    def check(self, atol=1e-8):
        problem, here, epsilon = self.problem, self.here, self.epsilon
        beta, C = problem.state.beta[: problem.n], self.C[here]
        f = self.gram[np.ix_(here, here)] @ beta + problem.bias
        rest = self.y[here] - f
        assert abs(beta.sum()) <= 1e-11 * (1.0 + C.max(initial=0.0))
        assert (rest - epsilon)[beta < C].max(initial=0.0) <= atol
        assert (epsilon - rest)[beta > 0.0].max(initial=0.0) <= atol
        assert (-epsilon - rest)[beta > -C].max(initial=0.0) <= atol
        assert (rest + epsilon)[beta < 0.0].max(initial=0.0) <= atol
        norm, losses = beta @ (f - problem.bias), np.maximum(0.0, np.abs(rest) - epsilon)
        dual = self.y[here] @ beta - epsilon * np.abs(beta).sum() - norm / 2
        assert abs(problem.dual - dual) <= 1e-9 * max(1.0, abs(dual), norm)
        assert abs(norm / 2 + C @ losses - dual) <= 10 * atol * max(1.0, C.sum(initial=0.0))
        np.testing.assert_allclose(problem.losses(), C * losses, atol=atol * C.max(initial=1.0))


class Normal(Examples):
    """Examples of one class, of which a share nu may be outside."""

    def __init__(self, kernel, x, weights, nu, cache_bytes=LARGE):
        super().__init__(kernel, x, np.zeros(len(x)), 1.0, cache_bytes)
        self.C, self.nu, self.problem.share = weights.copy(), nu, nu

    @property
    def atol(self):
        return 1e-8 * max(1.0, np.abs(self.gram).max())

    def add(self, *which):
        for i in which:
            self.problem.add(self.x[i], 0.0, 0.0, self.C[i], i, self.C[i])

    def check(self, atol=1e-8):
        problem, here = self.problem, self.here
        beta, C = problem.state.beta[: problem.n], self.C[here]
        h = -self.gram[np.ix_(here, here)] @ beta - problem.bias
        assert abs(beta.sum() - self.nu * C.sum()) <= 1e-11 * (1.0 + C.sum())
        assert ((beta >= 0.0) & (beta <= C)).all()
        assert h[beta < C].max(initial=0.0) <= atol and -h[beta > 0.0].min(initial=0.0) <= atol


def changed(examples, draws, n_changes, of_all=False):
    """Change the examples at random; yield after each change.

    Beside single examples and the kernel, the costs of some change; or, with `of_all`, many leave
    together, and the costs of all change, where the kind has such.
    """
    n = len(examples.y)
    add, costs = (0.6, 0.95) if of_all else (0.55, 0.97)
    for _ in range(n_changes):
        here, u = examples.here, draws.random()
        out = np.setdiff1d(np.arange(n), here)
        if len(out) and (u < add or not len(here)):
            examples.add(int(draws.choice(out)))
        elif u < 0.85 or len(here) < 2:
            examples.remove(int(draws.choice(here)))
        elif of_all and u < 0.9:
            examples.remove_together(draws.permutation(here)[: len(here) // 3])
        elif of_all and u < costs and not isinstance(examples, Normal):
            examples.set_all_costs(float(draws.choice([0.1, 1.0, 20.0, 300.0])) / examples.C[0])
        elif not of_all and u < costs:
            some = draws.choice(here, min(len(here), 5), replace=False)
            examples.set_costs(some, examples.C[some] * draws.choice([0.1, 0.5, 2.0, 10.0]))
        else:
            examples.set_kernel(examples.kernel)
        yield
