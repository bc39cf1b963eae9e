"""Kernel values in double precision: of one row with all kept ones.

In single precision the margin set's matrix would not be positive definite where vectors are close.
The sums of a value are made in one order, whatever the number of rows is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm._compile import compiled
from streamsvm.kernels.registry import product_of, value_of_product, value_of_vectors


@compiled
def _products(columns, n, x, is_distance, out):
    """Write dot products, or squared distances, of x, float64 (d,), and n rows to `out`.

    `columns`, float64 (features, slots), are the rows by their features.
    """
    out[:n] = 0.0
    for k in range(x.size):
        column, value = columns[k], x[k]
        if is_distance:
            for i in range(n):
                difference = value - column[i]
                out[i] += difference * difference
        elif value != 0.0:
            for i in range(n):
                out[i] += value * column[i]


@compiled
def _values_of_products(kernel, products):
    for i in range(products.size):
        products[i] = value_of_product(kernel, products[i])


@compiled
def _values_of_vectors(kernel, columns, n, x, out):
    row = np.empty(x.size)
    for i in range(n):
        for k in range(x.size):
            row[k] = columns[k, i]
        out[i] = value_of_vectors(kernel, x, row)


def write_row(kernel: Any, columns: np.ndarray, n: int, x: np.ndarray, out: np.ndarray) -> None:
    """Write the kernel values of x, float64 (d,), with the first n of the kept rows to `out`.

    A kernel type may have a method ``in_double(products)``, where the registered function computes
    in single precision.
    """
    product = product_of(type(kernel))
    if product == "vectors":
        _values_of_vectors(kernel, columns, n, x, out)
        return
    _products(columns, n, x, product == "distance", out)
    if hasattr(kernel, "in_double"):
        out[:n] = kernel.in_double(out[:n])
    else:
        _values_of_products(kernel, out[:n])
