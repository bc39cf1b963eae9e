"""Kernels: each is a NamedTuple of float parameters with one compiled function."""

from streamsvm.kernels.dot import Linear, Polynomial
from streamsvm.kernels.rbf import RBF
from streamsvm.kernels.registry import (
    check_kernel,
    evaluate,
    product_of,
    register,
    registered,
    value_of_product,
)

__all__ = [
    "RBF",
    "Linear",
    "Polynomial",
    "check_kernel",
    "evaluate",
    "product_of",
    "register",
    "registered",
    "value_of_product",
]
