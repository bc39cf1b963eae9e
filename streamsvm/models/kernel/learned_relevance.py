"""How much each feature weighs in the distance of rows, learnt from labelled rows.

A kernel of plain distances counts each feature alike, so that a few that matter are lost among
those that do not. Here, of the kernels

    k_w(x, z) = exp(-sum_j w_j d(x_j, z_j)),   w_j > 0,   d(u, v) = (u - v)^2 or |u - v|,

one is looked for by which an SVM predicts well what it has not learnt. Least squares stand for the
SVM, as their solution has a closed form: with K the kernel matrix of rows a, and targets Y of -1
and 1, a column a class, the coefficients are A = (K + 1 + I)^-1 Y, and the scores of other rows b
are F = (k_w(b, a) + 1) A; the 1 in place of a bias. Two halves of the rows predict each other, with
the logistic loss L(m) = log(1 + exp(-2 m)) of the margins m = Y F, of which the gradient is

    dL / d log w_j = -w_j sum_{b, a} M_ba d(x_bj, x_aj),   M = k_w(b, a) * (Y L'(m)) A^T.

Each step multiplies w_j by exp(-.7 g_j), g being that gradient, halved with the one before, and
divided by its largest component: one step size for all, as each feature's own would follow noise.
A last quarter of the rows, which no step has seen, says after which step the weights were best: it
is predicted by the mean of both halves.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence

import numpy as np
from scipy import linalg
from threadpoolctl import ThreadpoolController

from streamsvm._compile import compiled

STEPS, RATE = 14, 0.7
PATIENCE = 4
"""After so many steps that have not lowered the loss no more are made."""
MOST_CLASSES = 16
"""Of more classes the most frequent ones have a score of their own."""

_NEGLIGIBLE = 1e-4
"""Weights are at least this share of the largest one."""
_ROUNDED = 4.0
"""Weights are powers of 2 ** (1 / 4): the last digits of sums, which depend on the machine, do not
decide what a model learns."""
_LARGEST = 100.0
_LONG = 6.0
"""Values count as at most so far from the mean."""
_OF_MULTIPLICATION = 0.06
"""The work of a multiplication in products of matrices, in about nanoseconds."""

_libraries = functools.cache(ThreadpoolController)
"""Finds the libraries of linear algebra, once: several threads take longer for small matrices."""


class Squared:
    """Squared differences of rows, in the scale in which features weigh alike."""

    def __init__(self, x: np.ndarray) -> None:
        centred = np.clip(x - x.mean(axis=0, dtype=np.float64), -_LONG, _LONG)
        self.x = centred.astype(np.float32)
        self._total = max(1e-30, float(self.x.var(axis=0, dtype=np.float64).sum()))

    def first(self, start: np.ndarray) -> np.ndarray:
        """Return the weights to begin with, given how they relate."""
        found: np.ndarray = start / (self._total * start.max())
        return found

    @staticmethod
    def kernel(a: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return k_w of rows a and b, float32 (len(a), len(b))."""
        roots = np.sqrt(w).astype(np.float32)
        a, b = a * roots, b * roots
        squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)
        distances = np.maximum(squares - 2.0 * (a @ b.T), 0.0)
        found: np.ndarray = np.exp(-distances)
        return found

    @staticmethod
    def summed(m: np.ndarray, b: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return sum_{b, a} M_ba d(x_bj, x_aj) of each feature."""
        # sum M (b - a)^2 = sum M b^2 + sum M a^2 - 2 sum M a b
        found: np.ndarray = (
            m.sum(axis=1) @ (b * b) + m.sum(axis=0) @ (a * a) - 2.0 * (b * (m @ a)).sum(axis=0)
        )
        return found

    @staticmethod
    def result(w: np.ndarray) -> np.ndarray:
        """Return weights, the largest of which is 1."""
        return np.maximum(_rounded(w / w.max()), _NEGLIGIBLE)


class Absolute:
    """Absolute differences of rows whose values are ranks, from 0 to 1."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = np.ascontiguousarray(x, np.float32)

    def first(self, start: np.ndarray) -> np.ndarray:
        """Return the weights to begin with: as they are."""
        return start

    @staticmethod
    def kernel(a: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return k_w of rows a and b, float32 (len(a), len(b))."""
        found = np.zeros((len(a), len(b)), np.float32)
        _add_differences(a, np.ascontiguousarray(b.T), w.astype(np.float32), found)
        return np.exp(-found, out=found)

    @staticmethod
    def summed(m: np.ndarray, b: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return sum_{b, a} M_ba d(x_bj, x_aj) of each feature."""
        found = np.zeros((a.shape[1], len(a)), np.float32)
        _add_products(np.ascontiguousarray(m, np.float32), b, np.ascontiguousarray(a.T), found)
        return found.sum(axis=1, dtype=np.float64)

    @staticmethod
    def result(w: np.ndarray) -> np.ndarray:
        """Return the weights as they are."""
        return _rounded(w)


@compiled
def _add_differences(a, b, w, out):
    """Add sum_j w_j |a_ij - b_jk| to out[i, k]: a (n, d), b (d, m), w (d,), float32."""
    for i in range(a.shape[0]):
        row = out[i]
        for j in range(w.size):
            weight, value, others = w[j], a[i, j], b[j]
            for k in range(row.size):
                row[k] += weight * abs(value - others[k])


@compiled
def _add_products(m, b, a, out):
    """Add sum_i m_ik |b_ij - a_jk| to out[j, k]: m (n, n_a), b (n, d), a (d, n_a), float32."""
    for i in range(m.shape[0]):
        factors = m[i]
        for j in range(b.shape[1]):
            value, others, row = b[i, j], a[j], out[j]
            for k in range(row.size):
                row[k] += factors[k] * abs(value - others[k])


def learn(
    rows: Squared | Absolute,
    classes: np.ndarray,
    starts: Sequence[np.ndarray],
    steps: int = STEPS,
) -> Generator[float, None, np.ndarray]:
    """Learn the weights of features, float64 (d,).

    Parameters
    ----------
    rows
        n rows of d features, n at least 16, with their distance.
    classes
        int (n,).
    starts
        Weights to begin with, float64 (d,): what is best of them all is returned.
    steps
        How many steps are made from each at most.

    Yields
    ------
    The work of each step, in about nanoseconds.

    """
    y, d = _targets(classes), rows.x.shape[1]
    n = len(y)
    last = n - n // 4
    parts = np.arange(0, last, 2), np.arange(1, last, 2), np.arange(last, n)
    half = len(parts[0])
    work = _OF_MULTIPLICATION * half**2 * (2.0 * half + 10.0 * d + 6.0 * y.shape[1] + 40.0)
    least, best = np.inf, rows.first(starts[0])
    for start in starts:
        w, slow = rows.first(start), np.zeros(d)
        lowest, at = np.inf, 0
        for step in range(steps + 1):
            with _libraries().limit(limits=1, user_api="blas"):
                loss, gradient = _loss_and_gradient(rows, y, w, parts)
            if loss < least:
                least, best = loss, w
            if loss < lowest:
                lowest, at = loss, step
            slow = 0.5 * (slow + gradient)
            largest = float(np.abs(slow).max())
            yield work
            if not largest > 0.0 or step - at >= PATIENCE:
                break
            w = w * np.exp(-RATE * slow / largest)
            w = np.clip(w, _NEGLIGIBLE * w.max(), _LARGEST)
    return rows.result(best)


def _targets(classes: np.ndarray) -> np.ndarray:
    """Return 1 in the column of the class of each row, else -1; a column for two classes."""
    known, counts = np.unique(classes, return_counts=True)
    if len(known) == 2:
        known = known[1:]
    else:
        known = known[np.argsort(-counts, kind="stable")[:MOST_CLASSES]]
    return np.where(classes[:, None] == known, 1.0, -1.0).astype(np.float32)


def _fitted(k: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the coefficients of rows, by their kernel matrix, float32 (n, classes)."""
    matrix = k + np.float32(1.0)
    matrix[np.diag_indices(len(k))] += np.float32(1.0)
    factor = linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
    found: np.ndarray = linalg.cho_solve(factor, y, check_finite=False)
    return found


def _loss_and_gradient(
    rows: Squared | Absolute,
    y: np.ndarray,
    w: np.ndarray,
    parts: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[float, np.ndarray]:
    """Return the mean loss of the third part of the rows, predicted by the mean of both others.

    And the gradient, by log w, of the losses of these two, each predicted by the other.
    """
    x, found, last = rows.x, np.zeros(len(w)), parts[2]
    scores = np.zeros((len(last), y.shape[1]), np.float32)
    between = rows.kernel(x[parts[1]], x[parts[0]], w)
    for one, other, k in ((*parts[:2], between), (parts[1], parts[0], between.T)):
        a, b = x[one], x[other]
        coefficients = _fitted(rows.kernel(a, a, w), y[one])
        scores += 0.5 * (rows.kernel(x[last], a, w) + 1.0) @ coefficients
        margins = y[other] * ((k + 1.0) @ coefficients)
        slopes = -2.0 * y[other] / (1.0 + np.exp(np.clip(2.0 * margins, -30.0, 30.0)))
        found -= w * rows.summed(k * (slopes @ coefficients.T), b, a)
    return float(np.logaddexp(0.0, -2.0 * y[last] * scores).mean()), found


def _rounded(w: np.ndarray) -> np.ndarray:
    found: np.ndarray = 2.0 ** (np.round(_ROUNDED * np.log2(w)) / _ROUNDED)
    return found
