"""A look at kernels of the user's own: an SVM needs a positive definite one.

A kernel such as a sigmoid may have "distances" below 0, k(x, x) + k(z, z) - 2 k(x, z). Its dual has
no maximum inside the bounds, and what a solver finds is of little use: 45 % of Bananas were right.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsvm import kernels
from streamsvm.kernels.registry import value_of_vectors
from streamsvm.support.rows import dense, shape, taken

if TYPE_CHECKING:
    from streamsvm.learners.bases.kernel.kernel_learner import KernelLearner

_ROWS = 24
_MOST_FEATURES = 4096
_LAST = 4096
"""No look after so many examples."""

_CLEAR = -1e-6
"""An eigenvalue below this share of the largest one is not rounding."""


def look(learner: KernelLearner, n: int) -> None:
    """Count, and warn of once, a kernel of the user's that is not positive definite.

    It looks at kernel values of some rows kept, after n examples. The caller holds the learner's
    lock.
    """
    kernel = learner.kernel_
    is_ours = type(kernel).__module__.startswith("streamsvm.kernels.")
    if is_ours or learner.state is None or n > _LAST:
        return
    rows, _, entered = learner.expansion()
    kept = np.flatnonzero(entered)[-_ROWS:]
    if len(kept) < 2 or shape(rows)[1] > _MOST_FEATURES:
        return
    x = dense(taken(rows, kept))
    values = np.zeros(0)
    with contextlib.suppress(ArithmeticError, ValueError):
        values = np.linalg.eigvalsh(_matrix_of(kernel, x.astype(np.float64)))
    if not len(values) or not values[0] < _CLEAR * abs(values[-1]):
        return
    learner.n_indefinite += 1
    if learner.n_indefinite == 1:
        warnings.warn(
            f"{kernel!r} is not positive definite: the matrix of its values for {len(kept)} rows "
            f"has the eigenvalue {values[0]:.3g} (the largest is {values[-1]:.3g}). What an SVM "
            "learns with it may be of no use; use another kernel, or other parameters",
            stacklevel=2,
        )


def _matrix_of(kernel: Any, x: np.ndarray) -> np.ndarray:
    """Return the kernel values of each pair of rows, float64 (n, n)."""
    of, n = kernels.product_of(type(kernel)), len(x)
    products = x @ x.T
    if of == "distance":
        squares = np.diag(products)
        products = np.maximum(0.0, squares[:, None] + squares - 2.0 * products)
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            if of == "vectors":
                found[i, j] = value_of_vectors(kernel, x[i], x[j])
            else:
                found[i, j] = kernels.value_of_product(kernel, float(products[i, j]))
    return np.tril(found) + np.tril(found, -1).T
