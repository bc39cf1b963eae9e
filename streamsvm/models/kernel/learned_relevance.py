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
A last quarter of the rows, which no step has seen, says after which step the weights were best.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

STEPS, RATE = 14, 0.7
MOST_CLASSES = 16
"""Of more classes the most frequent ones have a score of their own."""

_NEGLIGIBLE = 1e-3
"""Weights are at least this share of the largest one."""
_ROUNDED = 4.0
"""Weights are powers of 2 ** (1 / 4): the last digits of sums, which depend on the machine, do not
decide what a model learns."""
_LONG = 6.0
"""Values count as at most so far from the mean."""
_OF_MULTIPLICATION = 0.15
"""The work of a multiplication in products of matrices, in about nanoseconds."""


class _Weighed(NamedTuple):
    """How rows that no step has seen are predicted with some weights."""

    loss: float
    w: np.ndarray


def learn(
    x: np.ndarray, classes: np.ndarray, starts: list[np.ndarray]
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

    Yields
    ------
    The work of each step, in about nanoseconds.

    """
    centred = np.clip(x - x.mean(axis=0, dtype=np.float64), -_LONG, _LONG).astype(np.float32)
    total = max(1e-30, float(centred.var(axis=0, dtype=np.float64).sum()))
    y = _targets(classes)
    n = len(y)
    seen = np.arange(n) < n - n // 4
    halves = [np.flatnonzero(seen)[first::2] for first in (0, 1)]
    work = _OF_MULTIPLICATION * (n**3 / 6.0 + n * n * (4.0 * x.shape[1] + 2.0 * y.shape[1]))
    best: _Weighed | None = None
    for start in starts:
        w, slow = start / (total * start.max()), np.zeros(x.shape[1])
        for step in range(STEPS + 1):
            found = _Weighed(_loss(centred, y, w, seen), w)
            if best is None or found.loss < best.loss:
                best = found
            if step < STEPS:
                slow = 0.5 * (slow + _gradient(centred, y, w, halves))
                largest = float(np.abs(slow).max())
                if not largest > 0.0:
                    break
                w = w * np.exp(-RATE * slow / largest)
                w = np.clip(w, _NEGLIGIBLE * w.max(), None)
            yield work
    assert best is not None
    return _rounded(best.w)


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


def _loss(x: np.ndarray, y: np.ndarray, w: np.ndarray, seen: np.ndarray) -> float:
    """Return the mean loss of the rows that are not seen, predicted by those that are."""
    coefficients = _fitted(x[seen], y[seen], w)
    margins = y[~seen] * ((_kernel(x[~seen], x[seen], w) + 1.0) @ coefficients)
    return float(np.logaddexp(0.0, -2.0 * margins).mean())


def _gradient(x: np.ndarray, y: np.ndarray, w: np.ndarray, halves: list[np.ndarray]) -> np.ndarray:
    """Return the gradient of the losses of two halves, each predicted by the other, by log w."""
    found = np.zeros(len(w))
    for one, other in (halves, halves[::-1]):
        a, b = x[one], x[other]
        coefficients, k = _fitted(a, y[one], w), _kernel(b, a, w)
        margins = y[other] * ((k + 1.0) @ coefficients)
        slopes = -2.0 * y[other] / (1.0 + np.exp(np.clip(2.0 * margins, -30.0, 30.0)))
        m = k * (slopes @ coefficients.T)
        # sum M (b - a)^2 = sum M b^2 + sum M a^2 - 2 sum M a b
        squares = m.sum(axis=1) @ (b * b) + m.sum(axis=0) @ (a * a)
        found -= w * (squares - 2.0 * (b * (m @ a)).sum(axis=0))
    return found


def _rounded(w: np.ndarray) -> np.ndarray:
    powers = np.round(_ROUNDED * np.log2(w / w.max()))
    found: np.ndarray = np.maximum(2.0 ** (powers / _ROUNDED), _NEGLIGIBLE)
    return found
