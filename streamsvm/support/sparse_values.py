"""Kernel values between fresh sparse rows and stored sparse rows.

Of 32 fresh rows with one stored row dot products are computed in vector registers. The fresh rows
are then stored densely by column: ``lanes[p, r]`` is the value of row r in the p-th of the columns
that any of the rows uses. ``lanes[0]`` is all zeros, for the columns that none uses. Each nonzero
value of the stored row is multiplied by 32 values at once, so that 32 products take the time of
one.

Sums are in double precision, where the product of two float32 is exact. So a value has the same
bits whether it is computed in a group or alone, and from either of its two rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from streamsvm._compile import JIT, chosen_by, compiled, compiled_inner
from streamsvm.kernels import product_of
from streamsvm.kernels.registry import value_of_vectors
from streamsvm.support.bits import WORD
from streamsvm.support.kernel_rows.kernel_values import apply_kernel, values_of_bits
from streamsvm.support.sparse_store import MOST_COLUMNS, set_bits
from streamsvm.support.tiles import PANEL, loop, splat

FEW = 4
"""With fewer fresh rows, one by one is faster than a group of 32 lanes."""


_FEWEST = 64
"""So many values, or fewer, are computed as fast without bits."""


@compiled_inner
def _norm(x, r):
    total = 0.0
    for t in range(x.start[r], x.start[r + 1]):
        total += np.float64(x.values[t]) * np.float64(x.values[t])
    return total


@compiled_inner
def _dot(kernel, product, norm_x, norm_s):
    return np.float32(product)


@compiled_inner
def _distance(kernel, product, norm_x, norm_s):
    # In double precision, so that no digits are lost for nearly equal rows of a large norm.
    return np.float32(max(0.0, norm_x + norm_s - 2.0 * product))


_argument: Any = chosen_by(0, {"dot": _dot, "distance": _distance}, product_of)


@compiled_inner
def _spread(flat, columns, values, first, stop):
    for t in range(first, stop):
        flat[columns[t]] = values[t]


@compiled_inner
def _clear(scratch, columns, first, stop):
    for t in range(first, stop):
        scratch[columns[t]] = 0


@compiled_inner
def _term(columns, values, flat, t):
    # Unsigned, as numba tests each signed index for being negative.
    column = np.uint64(np.uint32(columns[np.uint64(t)]))
    return np.float64(values[np.uint64(t)]) * np.float64(flat[column])


@compiled_inner
def _dots(start, length, columns, values, flat, first, stop, out):
    """Write the dot products of rows first .. stop-1 with a dense row, `flat`, to out, float64."""
    for s in range(first, stop):
        total = 0.0
        for t in range(start[s], start[s] + length[s]):
            total += _term(columns, values, flat, t)
        out[s - first] = total


@compiled_inner
def _one_row(kernel, store, x, r, first, stop, out):
    """Write out[r, s] for first <= s < stop."""
    flat, norm = store.flat[0], _norm(x, r)
    dots = np.empty(stop - first)
    _spread(flat, x.columns, x.values, x.start[r], x.start[r + 1])
    _dots(store.start, store.length, store.columns, store.values, flat, first, stop, dots)
    _clear(flat, x.columns, x.start[r], x.start[r + 1])
    for s in range(first, stop):
        out[r, s] = _argument(kernel, dots[s - first], norm, store.norm[s])
    apply_kernel(kernel, out[r, first:stop])


@compiled_inner
def _group_size(store, x, first, n_rows):
    """Return how many rows from `first` on, at most 32, have columns that fit into the lanes."""
    size = min(PANEL, n_rows - first)
    while size > 1 and x.start[first + size] - x.start[first] > MOST_COLUMNS:
        size -= 1
    return size


@compiled_inner
def _spread_group(store, x, first, size):
    n = 0
    for r in range(size):
        for t in range(x.start[first + r], x.start[first + r + 1]):
            column = x.columns[t]
            if store.place[column] == 0:
                n += 1
                store.place[column] = n
                for lane in range(PANEL):
                    store.lanes[n, lane] = np.float32(0.0)
            store.lanes[store.place[column], r] = x.values[t]


@compiled_inner
def _group(kernel, store, x, r, size, first, stop, out):
    """Write out[r + i, s] for i < size and first <= s < stop."""
    _spread_group(store, x, r, size)
    norms = np.empty(size)
    for i in range(size):
        norms[i] = _norm(x, r + i)
    start = first
    while start < stop:
        end = min(start + PANEL, stop)
        for s in range(start, end):
            begin = store.start[s]
            products(
                store.lanes, store.place, store.columns, store.values,
                begin, begin + store.length[s], store.products[s - start],
            )  # fmt: skip
        for i in range(size):
            for s in range(start, end):
                product = store.products[s - start, i]
                out[r + i, s] = _argument(kernel, product, norms[i], store.norm[s])
            apply_kernel(kernel, out[r + i, start:end])
        start = end
    _clear(store.place, x.columns, x.start[r], x.start[r + size])


@compiled_inner
def _by_bits(kernel, store, x, n_rows, first, stop, out):
    """Compute the values by bits, of whole panels, or tell that x has values other than 0 and 1."""
    depth = store.words.shape[1]
    own = np.zeros((n_rows, depth), np.uint64)
    for r in range(n_rows):
        if not set_bits(x, r, own[r]):
            return False
    first, end = first // PANEL, (stop + PANEL - 1) // PANEL
    values_of_bits(kernel, store.words, own, n_rows, depth * WORD, first, end, out)
    return True


@compiled_inner
def _by_products(kernel, store, x, n_rows, d, first, stop, out):
    if store.binary[0] and n_rows * (stop - first) > _FEWEST:
        if _by_bits(kernel, store, x, n_rows, first, stop, out):
            return
    r = 0
    while r < n_rows:
        size = _group_size(store, x, r, n_rows)
        if size < FEW:
            size = 1
            _one_row(kernel, store, x, r, first, stop, out)
        else:
            _group(kernel, store, x, r, size, first, stop, out)
        r += size


@compiled_inner
def _by_vectors(kernel, store, x, n_rows, d, first, stop, out):
    flat, other = store.flat[0], store.flat[1]
    for r in range(n_rows):
        _spread(flat, x.columns, x.values, x.start[r], x.start[r + 1])
        for s in range(first, stop):
            begin = store.start[s]
            end = begin + store.length[s]
            _spread(other, store.columns, store.values, begin, end)
            out[r, s] = value_of_vectors(kernel, flat[:d], other[:d])
            _clear(other, store.columns, begin, end)
        _clear(flat, x.columns, x.start[r], x.start[r + 1])


_chosen: Any = chosen_by(
    0, {"dot": _by_products, "distance": _by_products, "vectors": _by_vectors}, product_of
)


@compiled
def kernel_values(kernel, store, x, n_rows, d, first, stop, out):
    """Write out[r, s] = k(x_r, row s) for r < n_rows and first <= s < stop.

    If the rows are of 0 and 1, it writes whole panels, as `kernel_values.kernel_values` does. The
    store is a `SparseStore`, with scratch for all features of x; out is float32 (>= n_rows, its
    capacity).
    """
    _chosen(kernel, store, x, n_rows, d, first, min(stop, store.start.size), out)


def _emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Emit: for t in first .. stop-1: sum += values[t] * lanes[place[columns[t]]]."""
    lanes, place, columns, values, out = (
        context.make_array(signature.args[i])(context, builder, args[i]).data
        for i in (0, 1, 2, 3, 6)
    )
    first, stop = args[4], args[5]
    i64, singles = ir.IntType(64), ir.VectorType(ir.FloatType(), PANEL)
    doubles = ir.VectorType(ir.DoubleType(), PANEL)
    multiply_add = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(doubles, [doubles] * 3), f"llvm.fmuladd.v{PANEL}f64"
    )

    def body(t: Any, carried: list[Any]) -> list[Any]:
        column = builder.sext(builder.load(builder.gep(columns, [t])), i64)
        row = builder.sext(builder.load(builder.gep(place, [column])), i64)
        at = builder.gep(lanes, [builder.mul(row, ir.Constant(i64, PANEL))])
        many = builder.load(builder.bitcast(at, singles.as_pointer()), align=4)
        value = builder.fpext(builder.load(builder.gep(values, [t])), ir.DoubleType())
        factors = [splat(builder, value, doubles), builder.fpext(many, doubles)]
        return [builder.call(multiply_add, factors + carried)]

    (result,) = loop(builder, first, stop, [ir.Constant(doubles, None)], body)
    builder.store(result, builder.bitcast(out, doubles.as_pointer()), align=8)
    return context.get_dummy_value()


@intrinsic
def _products_compiled(typingctx, lanes, place, columns, values, first, stop, out):
    return types.void(lanes, place, columns, values, types.int64, types.int64, out), _emit


def _products_plain(lanes, place, columns, values, first, stop, out):
    out[:] = 0.0
    for t in range(first, stop):
        out[:] += np.float64(values[t]) * lanes[place[columns[t]]].astype(np.float64)


# Called as products(lanes, place, columns, values, first, stop, out): lanes float32 (n, 32), place
# int32 (features,), columns int32 and values float32 (pool,), out float64 (32,), all contiguous.
products: Any = _products_compiled if JIT else _products_plain
