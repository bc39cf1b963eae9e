"""Kernels for compiled solvers: one type for all kernels, so that a solver is compiled only once.

A kernel by itself is a NamedTuple of its parameters, and its type decides which code is compiled
into what uses it. Bound to a kind of store it is an array of its parameters and the address of the
function that computes a block of its values. Learners bind their kernel when they call a solver;
no address gets into a model, a file or a pickle. Solvers take kernels that are not bound, too, and
are then compiled for them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numba.np.unsafe import ndarray

from streamsvm._compile import JIT, compiled, named
from streamsvm.kernels.registry import check_kernel
from streamsvm.support import dense_store, kernel_values, row_store, sparse_store, sparse_values
from streamsvm.support.code_addresses import address_of_code, caller_of
from streamsvm.support.rows import SparseRows


class DenseKernel(NamedTuple):
    """A kernel for rows in a `DenseStore`."""

    parameters: np.ndarray  # float64 (m,)
    address: int  # of the code for `_DENSE`


class SparseKernel(NamedTuple):
    """A kernel for rows in a `SparseStore`."""

    parameters: np.ndarray  # float64 (m,)
    address: int  # of the code for `_SPARSE`


SPARSE_ROWS = typeof(
    SparseRows(np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.float32), 1)
)
"""The compiler's type of fresh rows for a `SparseStore`; for other stores it is `DENSE_ROWS`."""

DENSE_ROWS = types.Array(types.float32, 2, "C")


def _signature(store: Any, rows: Any) -> Any:
    """Return that of values(parameters, store, x, n_rows, d, first, stop, out)."""
    parameters = types.Array(types.float64, 1, "C")
    return types.void(parameters, typeof(store), rows, *[types.int64] * 4, DENSE_ROWS)


_DENSE = _signature(dense_store.new_store(1, 1), DENSE_ROWS)
_SPARSE = _signature(sparse_store.new_store(1, 1), SPARSE_ROWS)

_call_dense = caller_of(lambda *args: _DENSE)
_call_sparse = caller_of(lambda *args: _SPARSE)


@compiled
def values_dense(kernel, store, x, n_rows, d, first, stop, out):
    """Compute the values of a `DenseKernel`: see `kernel_values.kernel_values`."""
    _call_dense(kernel.address, kernel.parameters, store, x, n_rows, d, first, stop, out)


@compiled
def values_sparse(kernel, store, x, n_rows, d, first, stop, out):
    """Compute the values of a `SparseKernel`: see `sparse_values.kernel_values`."""
    _call_sparse(kernel.address, kernel.parameters, store, x, n_rows, d, first, stop, out)


# Any: it is annotated as the compiler calls it.
_as_tuple: Any = ndarray.to_fixed_tuple


def _named(function: Any, kernel_type: type) -> Any:
    return compiled(
        named(function, f"{function.__name__} {kernel_type.__module__}.{kernel_type.__qualname__}")
    )


# Two functions, not one of the function to call: what a function closes over is part of its key in
# the cache, and a compiled function is another one in each process.
def _dense_function(kernel_type: Any) -> Any:
    """Return the function of `_DENSE` for kernels of one type."""
    n = len(kernel_type._fields)

    def dense(parameters, store, x, n_rows, d, first, stop, out):
        kernel = kernel_type(*_as_tuple(parameters, n))
        kernel_values.kernel_values(kernel, store, x, n_rows, d, first, stop, out)

    return _named(dense, kernel_type)


def _sparse_function(kernel_type: Any) -> Any:
    """Return the function of `_SPARSE` for kernels of one type."""
    n = len(kernel_type._fields)

    def sparse(parameters, store, x, n_rows, d, first, stop, out):
        kernel = kernel_type(*_as_tuple(parameters, n))
        sparse_values.kernel_values(kernel, store, x, n_rows, d, first, stop, out)

    return _named(sparse, kernel_type)


# The code lives as long as its function does: the addresses are kept together with them.
_addresses: dict[tuple[type, type], tuple[int, Any]] = {}


def _address(kernel_type: type, bound_type: type) -> int:
    key = bound_type, kernel_type
    if key not in _addresses:
        is_dense = bound_type is DenseKernel
        function = (_dense_function if is_dense else _sparse_function)(kernel_type)
        signature = _DENSE if is_dense else _SPARSE
        _addresses[key] = address_of_code(function, signature), function
    return _addresses[key][0]


def bound(kernel: Any, store: Any) -> Any:
    """Return the kernel as solvers take it, for rows in a store of this kind.

    Parameters
    ----------
    kernel
        A registered kernel, or one that is bound already.
    store
        Where the solver's rows are. In a `RowStore` the kernel is used as it is, as it is where
        nothing is compiled.

    Returns
    -------
    A `DenseKernel`, a `SparseKernel`, or the kernel itself.

    """
    if not JIT or isinstance(store, row_store.RowStore):
        return kernel
    bound_type = SparseKernel if isinstance(store, sparse_store.SparseStore) else DenseKernel
    check_kernel(kernel)
    return bound_type(np.array(kernel), _address(type(kernel), bound_type))
