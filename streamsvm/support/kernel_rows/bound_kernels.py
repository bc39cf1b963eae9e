"""Bound kernels: all kernels as one type, so that a solver is compiled once for all of them.

A kernel is a NamedTuple of its parameters, and compiled code that uses it is specialised for its
type. A bound kernel is an array of these parameters and the address of the compiled function that
computes a block of kernel values for one kind of store. Learners bind their kernel when they call a
solver, so no address gets into a model, a file or a pickle. Solvers also take kernels that are not
bound; they are then compiled for the kernel's type.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numba.np.unsafe import ndarray

from streamsvm._compile import JIT, borrowed, compiled, compiled_inner, named
from streamsvm.kernels.registry import check_kernel, explained_errors
from streamsvm.support import dense_store, sparse_store, sparse_values
from streamsvm.support.kernel_rows import kernel_values
from streamsvm.support.kernel_rows.code_addresses import address_of_code, caller_of
from streamsvm.support.rows import SparseRows


class DenseKernel(NamedTuple):
    """A kernel that is bound to rows in a `DenseStore`."""

    parameters: np.ndarray  # float64 (m,)
    address: int  # of a function with the signature `_DENSE`


class SparseKernel(NamedTuple):
    """A kernel that is bound to rows in a `SparseStore`."""

    parameters: np.ndarray  # float64 (m,)
    address: int  # of a function with the signature `_SPARSE`


SPARSE_ROWS = typeof(
    SparseRows(np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.float32), 1)
)
"""Numba's type of fresh rows for a `SparseStore`."""

DENSE_ROWS = types.Array(types.float32, 2, "C")
"""Numba's type of fresh rows for other stores."""


def _signature(store: Any, rows: Any) -> Any:
    """Return the signature of values(parameters, store, x, n_rows, d, first, stop, out)."""
    parameters = types.Array(types.float64, 1, "C")
    return types.void(parameters, typeof(store), rows, *[types.int64] * 4, DENSE_ROWS)


_DENSE = _signature(dense_store.new_store(1, 1), DENSE_ROWS)
_SPARSE = _signature(sparse_store.new_store(1, 1), SPARSE_ROWS)

_call_dense = caller_of(lambda *args: _DENSE)
_call_sparse = caller_of(lambda *args: _SPARSE)


@compiled_inner
def values_dense(kernel, store, x, n_rows, d, first, stop, out):
    """Compute the values of a `DenseKernel`: see `kernel_values.kernel_values`."""
    _call_dense(kernel.address, kernel.parameters, store, x, n_rows, d, first, stop, out)


@compiled_inner
def values_sparse(kernel, store, x, n_rows, d, first, stop, out):
    """Compute the values of a `SparseKernel`: see `sparse_values.kernel_values`."""
    _call_sparse(kernel.address, kernel.parameters, store, x, n_rows, d, first, stop, out)


# Any, as its annotations are those of a function that numba calls, not the user.
_as_tuple: Any = ndarray.to_fixed_tuple


def _named(function: Any, kernel_type: type) -> Any:
    return compiled(
        named(function, f"{function.__name__} {kernel_type.__module__}.{kernel_type.__qualname__}")
    )


# Two functions rather than one with a parameter for the function to call: what a closure refers to
# is part of its key in numba's cache, and a compiled function has another key in each process.
def _dense_function(kernel_type: Any) -> Any:
    """Return a compiled function with the signature `_DENSE` for kernels of one type."""
    n = len(kernel_type._fields)

    def dense(parameters, store, x, n_rows, d, first, stop, out):
        kernel = kernel_type(*_as_tuple(parameters, n))
        # Counting references takes longer than the values with a panel of narrow rows.
        store, x, out = borrowed(store), borrowed(x), borrowed(out)
        kernel_values.kernel_values(kernel, store, x, n_rows, d, first, stop, out)

    return _named(dense, kernel_type)


def _sparse_function(kernel_type: Any) -> Any:
    """Return a compiled function with the signature `_SPARSE` for kernels of one type."""
    n = len(kernel_type._fields)

    def sparse(parameters, store, x, n_rows, d, first, stop, out):
        kernel = kernel_type(*_as_tuple(parameters, n))
        store, x, out = borrowed(store), borrowed(x), borrowed(out)
        sparse_values.kernel_values(kernel, store, x, n_rows, d, first, stop, out)

    return _named(sparse, kernel_type)


# Each address with its function, which keeps the machine code in memory.
_addresses: dict[tuple[type, type], tuple[int, Any]] = {}


def _address(kernel_type: type, bound_type: type) -> int:
    key = bound_type, kernel_type
    if key not in _addresses:
        is_dense = bound_type is DenseKernel
        function = (_dense_function if is_dense else _sparse_function)(kernel_type)
        signature = _DENSE if is_dense else _SPARSE
        with explained_errors(kernel_type):
            _addresses[key] = address_of_code(function, signature), function
    return _addresses[key][0]


def bound(kernel: Any, store: Any) -> Any:
    """Bind a registered kernel to the kind of store that a solver keeps its rows in.

    A `RowStore` takes the kernel itself, as all do without the compiler.
    """
    if not JIT or isinstance(store, dense_store.RowStore):
        return kernel
    is_sparse = isinstance(store, sparse_store.SparseStore)
    return _bound(kernel, SparseKernel if is_sparse else DenseKernel)


@lru_cache(maxsize=256, typed=True)
def _bound(kernel: Any, bound_type: Any) -> Any:
    # Once for a kernel: batches of one row, and choices among candidates, ask for it each time.
    check_kernel(kernel)
    return bound_type(np.array(kernel), _address(type(kernel), bound_type))
