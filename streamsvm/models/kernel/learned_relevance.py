"""How much each feature weighs in the distance of rows, learnt from labelled rows.

A kernel of plain distances counts each feature alike, so that a few that matter are lost among
those that do not. Here, of the kernels

    k_w(x, z) = exp(-sum_j w_j (x_j - z_j)^2),   w_j > 0,

one is looked for by which an SVM predicts well what it has not learnt. Least squares stand for the
SVM, as their solution has a closed form: with K the kernel matrix of rows a, and targets Y of -1
and 1, a column a class, the coefficients are A = (K + 1 + I)^-1 Y, and the scores of other rows b
are F = (k_w(b, a) + 1) A; the 1 in place of a bias. Two halves of the rows predict each other, with
the logistic loss L(m) = log(1 + exp(-2 m)) of the margins m = Y F, of which the gradient is

    dL / d log w_j = -w_j sum_{b, a} M_ba (x_bj - x_aj)^2,   M = k_w(b, a) * (Y L'(m)) A^T.

Each step multiplies w_j by exp(-.7 g_j), g being that gradient, halved with the one before, and
divided by its largest component: one step size for all, as each feature's own would follow noise.
A last quarter of the rows, which no step has seen, says after which step the weights were best: it
is predicted by the mean of both halves.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence

import numpy as np
from threadpoolctl import ThreadpoolController

STEPS, RATE = 14, 0.7
MOST_CLASSES = 16
"""Of more classes the most frequent ones have a score of their own."""

_NEGLIGIBLE = 1e-4
"""Weights are at least this share of the largest one."""
_ROUNDED = 4.0
"""Weights are powers of 2 ** (1 / 4): the last digits of sums, which depend on the machine, do not
decide what a model learns."""
_LONG = 6.0
"""Values count as at most so far from the mean."""
_OF_MULTIPLICATION = 0.06
"""The work of a multiplication in products of matrices, in about nanoseconds."""

_libraries = functools.cache(ThreadpoolController)
"""Finds the libraries of linear algebra, once: several threads take longer for small matrices."""


def learn(
    x: np.ndarray, classes: np.ndarray, starts: Sequence[np.ndarray], steps: int = STEPS
) -> Generator[float, None, np.ndarray]:
    """Learn the weights of features, float64 (d,), the largest of which is 1.

    Parameters
    ----------
    x
        Rows, float32 (n, d), n at least 16, in the scale in which features weigh alike.
    classes
        int (n,).
    starts
        Weights to begin with, float64 (d,): what is best of them all is returned.
    steps
        How many steps are made from each.

    Yields
    ------
    The work of each step, in about nanoseconds.

    """
    centred = np.clip(x - x.mean(axis=0, dtype=np.float64), -_LONG, _LONG).astype(np.float32)
    total = max(1e-30, float(centred.var(axis=0, dtype=np.float64).sum()))
    y = _targets(classes)
    n = len(y)
    last = n - n // 4
    parts = np.arange(0, last, 2), np.arange(1, last, 2), np.arange(last, n)
    half = len(parts[0])
    work = _OF_MULTIPLICATION * half**2 * (2.0 * half + 10.0 * x.shape[1] + 6.0 * y.shape[1] + 40.0)
    least, best = np.inf, starts[0]
    for start in starts:
        w, slow = start / (total * start.max()), np.zeros(x.shape[1])
        for _ in range(steps + 1):
            with _libraries().limit(limits=1, user_api="blas"):
                loss, gradient = _loss_and_gradient(centred, y, w, parts)
            if loss < least:
                least, best = loss, w
            slow = 0.5 * (slow + gradient)
            largest = float(np.abs(slow).max())
            yield work
            if not largest > 0.0:
                break
            w = w * np.exp(-RATE * slow / largest)
            w = np.clip(w, _NEGLIGIBLE * w.max(), None)
    return _rounded(best)


def _targets(classes: np.ndarray) -> np.ndarray:
    """Return 1 in the column of the class of each row, else -1; a column for two classes."""
    known, counts = np.unique(classes, return_counts=True)
    if len(known) == 2:
        known = known[1:]
    else:
        known = known[np.argsort(-counts, kind="stable")[:MOST_CLASSES]]
    return np.where(classes[:, None] == known, 1.0, -1.0).astype(np.float32)


def _kernel(a: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return k_w of rows a and b, float32 (len(a), len(b))."""
    roots = np.sqrt(w).astype(np.float32)
    a, b = a * roots, b * roots
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)
    distances = np.maximum(squares - 2.0 * (a @ b.T), 0.0)
    found: np.ndarray = np.exp(-distances)
    return found


def _fitted(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the coefficients of rows, float32 (n, classes)."""
    matrix = _kernel(x, x, w) + 1.0
    matrix[np.diag_indices(len(x))] += 1.0
    found: np.ndarray = np.linalg.solve(matrix, y)
    return found


def _loss_and_gradient(
    x: np.ndarray, y: np.ndarray, w: np.ndarray, parts: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[float, np.ndarray]:
    """Return the mean loss of the third part of the rows, predicted by the mean of both others.

    And the gradient, by log w, of the losses of these two, each predicted by the other.
    """
    found, last = np.zeros(len(w)), parts[2]
    scores = np.zeros((len(last), y.shape[1]), np.float32)
    for one, other in ((parts[0], parts[1]), (parts[1], parts[0])):
        a, b = x[one], x[other]
        coefficients, k = _fitted(a, y[one], w), _kernel(b, a, w)
        scores += 0.5 * (_kernel(x[last], a, w) + 1.0) @ coefficients
        margins = y[other] * ((k + 1.0) @ coefficients)
        slopes = -2.0 * y[other] / (1.0 + np.exp(np.clip(2.0 * margins, -30.0, 30.0)))
        m = k * (slopes @ coefficients.T)
        # sum M (b - a)^2 = sum M b^2 + sum M a^2 - 2 sum M a b
        squares = m.sum(axis=1) @ (b * b) + m.sum(axis=0) @ (a * a)
        found -= w * (squares - 2.0 * (b * (m @ a)).sum(axis=0))
    return float(np.logaddexp(0.0, -2.0 * y[last] * scores).mean()), found


def _rounded(w: np.ndarray) -> np.ndarray:
    powers = np.round(_ROUNDED * np.log2(w / w.max()))
    found: np.ndarray = np.maximum(2.0 ** (powers / _ROUNDED), _NEGLIGIBLE)
    return found
