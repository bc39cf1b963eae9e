"""A look at kernels of the user's own: an SVM needs a positive definite one.

A kernel such as a sigmoid may have "distances" below 0, k(x, x) + k(z, z) - 2 k(x, z). Its dual has
no maximum inside the bounds, and what a solver finds is of little use: 45 % of Bananas were right.
"""

from __future__ import annotations

import contextlib

import numpy as np

from streamsvm import kernels
from streamsvm.kernels.registry import value_of_vectors
from streamsvm.models.model import Kernel
from streamsvm.support.rows import Rows, dense, shape, taken

_ROWS = 24
_MOST_FEATURES = 4096
_LAST = 4096
"""No look after so many examples."""

_CLEAR = -1e-6
"""An eigenvalue below this share of the largest one is not rounding."""


def is_due(kernel: Kernel, n: int) -> bool:
    """Tell whether to look at a kernel, None or one of the user's, after n examples."""
    is_own = kernel is not None and not type(kernel).__module__.startswith("streamsvm.kernels.")
    return is_own and n <= _LAST


def fault_of(kernel: Kernel, rows: Rows, entered: np.ndarray) -> str | None:
    """Return in words that a kernel is not positive definite, by its values for some rows kept.

    None if it seems to be. Rows that are kept have numbers in `entered`.
    """
    kept = np.flatnonzero(entered)[-_ROWS:]
    if len(kept) < 2 or shape(rows)[1] > _MOST_FEATURES:
        return None
    x = dense(taken(rows, kept))
    values = np.zeros(0)
    with contextlib.suppress(ArithmeticError, ValueError):
        values = np.linalg.eigvalsh(_matrix_of(kernel, x.astype(np.float64)))
    if not len(values) or not values[0] < _CLEAR * abs(values[-1]):
        return None
    return (
        f"{kernel!r} is not positive definite: the matrix of its values for {len(kept)} rows "
        f"has the eigenvalue {values[0]:.3g} (the largest is {values[-1]:.3g}). What an SVM "
        "learns with it may be of no use; use another kernel, or other parameters"
    )


def _matrix_of(kernel: Kernel, x: np.ndarray) -> np.ndarray:
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
