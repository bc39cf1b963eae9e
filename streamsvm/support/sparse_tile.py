"""Dot products of 32 fresh sparse rows with one stored sparse row, in vector registers.

The fresh rows are stored densely by column: ``lanes[p, r]`` is the value of row r in the p-th of
the columns that any of the rows uses. ``lanes[0]`` is all zeros, for the columns that none uses.
Each nonzero value of the stored row is then multiplied by 32 values at once, so that 32 products
take the time of one.

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

from streamsvm._compile import JIT
from streamsvm.support.tiles import PANEL, loop, splat


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
