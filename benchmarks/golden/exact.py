"""The exact SVM beside LIBSVM, whose solution is corrected in double precision.

LIBSVM keeps kernel values in single precision: however small `tol` is, its solution violates the
conditions of optimality by about 1e-6 C. From there the equations of the examples on its margin
are solved in double precision, and examples come to the margin or leave it, until all is optimal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.svm import SVC

from benchmarks.golden.problems import Problem
from streamsvm import IncrementalSVMClassifier

PROBLEMS = {"banana": 1000, "adult": 2000, "usps": 1000}
"""Rows of each problem."""

COSTS = (0.1, 1.0, 100.0, 1000.0)
OPTIMAL = 1e-12
"""The violation of optimality, as a share of C, at which corrections end."""

MOST_CHANGES = 500


class Solution(NamedTuple):
    """Coefficients and bias of an SVM, and what they are worth in double precision."""

    beta: np.ndarray
    b: float
    dual: float
    violation: float


class Difference(NamedTuple):
    """How far the exact SVM is from LIBSVM's solution, corrected, and as it is.

    Duals differ by a share of themselves, decisions by the most that they do on test rows.
    """

    violation: float  # of optimality by the exact SVM
    dual: float
    decision: float
    svc_violation: float
    svc_dual: float
    svc_decision: float


class Exact:
    """The first rows of a problem, and LIBSVM's solution for some of them."""

    def __init__(self, problem: Problem, n: int, C: float) -> None:
        self.x, self.y = problem.x[:n], problem.y[:n]
        self.kernel, self.C, self.x_test = problem.kernel, C, problem.x_test[:500]
        self.gram = self.values(self.x)

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return the kernel values of rows with all examples."""
        a, b = rows.astype(float), self.x.astype(float)
        squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T
        return np.exp(-self.kernel.gamma * np.maximum(squares, 0.0))

    def model(self) -> IncrementalSVMClassifier:
        """Return a new exact SVM."""
        return IncrementalSVMClassifier(self.kernel, C=self.C)

    def solution(self, beta: np.ndarray, b: float, y: np.ndarray) -> Solution:
        """Return coefficients of the first examples with what they are worth; y is 1 or -1."""
        f = self.gram[: len(y), : len(y)] @ beta
        h, low, high = y - f - b, np.minimum(0.0, y * self.C), np.maximum(0.0, y * self.C)
        up, down = h[beta < high].max(initial=0.0), -h[beta > low].min(initial=0.0)
        return Solution(beta, b, float(beta @ y - 0.5 * beta @ f), float(max(up, down)))

    def libsvm(self, y: np.ndarray) -> Solution:
        """Return LIBSVM's solution of the first examples."""
        n = len(y)
        svc = SVC(C=self.C, gamma=self.kernel.gamma, tol=1e-9, cache_size=500)
        svc.fit(self.x[:n].astype(float), y)
        beta = np.zeros(n)
        beta[svc.support_] = svc.dual_coef_[0]
        return self.solution(beta, float(svc.intercept_[0]), y)

    def corrected(self, found: Solution, y: np.ndarray) -> Solution:
        """Return the optimum near another solution, by changes of its margin set.

        Of several optima, as duplicates have them, it is the one to which the least changes.
        """
        gram, beta, b = self.gram[: len(y), : len(y)], found.beta.copy(), found.b
        on = (beta != 0.0) & (np.abs(beta) < self.C)
        for _ in range(MOST_CHANGES):
            members = np.flatnonzero(on)
            equations = np.pad(gram[np.ix_(members, members)], (1, 0), constant_values=1.0)
            equations[0, 0] = 0.0
            rest = np.append(-beta.sum(), (y - gram @ beta - b)[members])
            move = np.linalg.lstsq(equations, rest, rcond=1e-13)[0]
            step = move[1:] * y[members]
            alpha = beta[members] * y[members]
            room = np.where(step > 0.0, self.C - alpha, alpha) / np.maximum(np.abs(step), 1e-300)
            share = min(1.0, room.min(initial=1.0))
            b += share * move[0]
            beta[members] = y[members] * np.clip(alpha + share * step, 0.0, self.C)
            if share < 1.0:
                first = members[room.argmin()]
                beta[first] = y[first] * self.C if step[room.argmin()] > 0.0 else 0.0
                on[first] = False
                continue
            h = y * (y - gram @ beta - b)
            wrong = np.where(on, 0.0, np.where(beta == 0.0, h, -h))
            if wrong.max() <= OPTIMAL * self.C:
                break
            on[wrong.argmax()] = True
        return self.solution(beta, b, y)

    def compare(self, model: IncrementalSVMClassifier) -> Difference:
        """Compare a model of the first examples with LIBSVM."""
        n = model.n_kept
        y = np.where(self.y[:n] == model.labels[1], 1.0, -1.0)
        svc = self.libsvm(y)
        best = self.corrected(svc, y)
        values, f = self.values(self.x_test)[:, :n], model.decision_function_many(self.x_test)
        far = [values @ one.beta + one.b - f for one in (best, svc)]
        if not ((best.beta != 0.0) & (np.abs(best.beta) < self.C)).any():
            # Without an example on the margin the bias is not unique.
            far = [one - one.mean() for one in far]
        duals = [abs(model.dual / one.dual - 1.0) for one in (best, svc)]
        decisions = [np.abs(one).max() for one in far]
        return Difference(
            model.delta, duals[0], decisions[0], svc.violation, duals[1], decisions[1]
        )
