"""Dot products and distances of a few rows with panels of 32 stored rows, in vector registers.

A panel stores 32 rows feature by feature (``panel[feature, lane]``). For each feature a vector of
32 values is combined with one value of each fresh row, and nothing is summed across lanes. So the
sum for each (row, lane) runs over the features in their order, by the same fused operations, for
any number of fresh rows. A kernel value is the same to the last bit whether it is computed alone or
in a block, and therefore ``learn_many`` equals ``learn_one``.

The loops are emitted as vector code, because from plain loops the compiler keeps the sums in
memory, which is five times slower. With four rows at a time they run at the speed of a tuned matrix
product, without its dependence on shapes and threads. A single row is combined with four panels at
a time: each addition depends on the previous one of the same sum, and four sums run in parallel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from streamsvm._compile import JIT

PANEL = 32
"""The number of stored rows in a panel."""

ROWS = 4
"""The number of fresh rows at a time: 4 x 32 sums fill the registers of AVX2."""

ACROSS = 4
"""The number of panels at a time for a single fresh row."""


def splat(builder: Any, scalar: Any, vector: Any) -> Any:
    """Return a vector of this type, of copies of a scalar."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, mask)


def loop(builder: Any, first: Any, stop: Any, initial: list[Any], body: Any) -> list[Any]:
    """Emit a loop over first .. stop-1, int64, with values carried on; return their last ones.

    ``body(index, carried)`` emits one pass, and returns what is carried to the next.
    """
    before, number = builder.block, ir.IntType(64)
    inside, end = builder.append_basic_block("loop"), builder.append_basic_block("done")
    builder.cbranch(builder.icmp_signed("<", first, stop), inside, end)
    builder.position_at_end(inside)
    index = builder.phi(number)
    carried = [builder.phi(value.type) for value in initial]
    following = body(index, carried)
    next_index = builder.add(index, ir.Constant(number, 1))
    builder.cbranch(builder.icmp_signed("<", next_index, stop), inside, end)
    builder.position_at_end(end)
    results = [builder.phi(value.type) for value in initial]
    index.add_incoming(first, before)
    index.add_incoming(next_index, inside)
    for phis in (carried, results):
        for phi, start, new in zip(phis, initial, following, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(new, inside)
    return results


def _emit(
    context: Any, builder: Any, signature: Any, args: Any, rows: int, across: int, squared: bool
) -> Any:
    """Emit: for k < d: sum[i, q] += x[i, k] * panel[q, k], or the squared difference."""
    panels_type, _, x_type, _, _, out_type = signature.args
    panels = context.make_array(panels_type)(context, builder, args[0])
    x = context.make_array(x_type)(context, builder, args[2])
    out = context.make_array(out_type)(context, builder, args[5])
    p, r, d = args[1], args[3], args[4]
    i64, vector = ir.IntType(64), ir.VectorType(ir.FloatType(), PANEL)
    number = lambda value: ir.Constant(i64, value)  # noqa: E731
    multiply_add = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fmuladd.v{PANEL}f32"
    )
    depth = cgutils.unpack_tuple(builder, panels.shape, 3)[1]
    x_width = cgutils.unpack_tuple(builder, x.shape, 2)[1]
    out_width = cgutils.unpack_tuple(builder, out.shape, 2)[1]
    size = builder.mul(depth, number(PANEL))
    tiles = [
        builder.gep(panels.data, [builder.mul(builder.add(p, number(q)), size)])
        for q in range(across)
    ]
    starts = [
        builder.gep(x.data, [builder.mul(builder.add(r, number(i)), x_width)]) for i in range(rows)
    ]

    def body(k: Any, sums: list[Any]) -> list[Any]:
        following = []
        values = [splat(builder, builder.load(builder.gep(start, [k])), vector) for start in starts]
        for q, tile in enumerate(tiles):
            lanes_at = builder.gep(tile, [builder.mul(k, number(PANEL))])
            lanes = builder.load(builder.bitcast(lanes_at, vector.as_pointer()), align=4)
            for i, value in enumerate(values):
                factor = builder.fsub(value, lanes) if squared else value
                factors = [factor, factor if squared else lanes, sums[q * rows + i]]
                following.append(builder.call(multiply_add, factors))
        return following

    zeros = [ir.Constant(vector, None)] * (rows * across)
    results = loop(builder, number(0), d, zeros, body)
    for index, result in enumerate(results):
        panel = builder.add(p, number(index // rows))
        at = builder.mul(builder.add(r, number(index % rows)), out_width)
        at = builder.gep(out.data, [builder.add(at, builder.mul(panel, number(PANEL)))])
        builder.store(result, builder.bitcast(at, vector.as_pointer()), align=4)
    return context.get_dummy_value()


def _compiled_tile(rows: int, across: int, squared: bool) -> Any:
    @intrinsic
    def tile(typingctx: Any, panels: Any, p: Any, x: Any, r: Any, d: Any, out: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _emit(context, builder, signature, args, rows, across, squared)

        return types.void(panels, types.int64, x, types.int64, types.int64, out), codegen

    return tile


def _plain_tile(rows: int, across: int, squared: bool) -> Any:
    def tile(panels: Any, p: int, x: Any, r: int, d: int, out: Any) -> None:
        total = np.zeros((rows, across * PANEL), np.float32)
        for k in range(d):
            value = x[r : r + rows, k, None]
            lanes = panels[p : p + across, k].reshape(1, -1)
            total += (value - lanes) ** 2 if squared else value * lanes
        out[r : r + rows, p * PANEL : (p + across) * PANEL] = total

    return tile


_tile = _compiled_tile if JIT else _plain_tile

# Each is called as tile(panels, p, x, r, d, out): panels float32 (n_panels, >= d, 32), x float32
# (n, >= d), out float32 (n, >= 32 n_panels). Rows r, r+1, ... of x are combined with panels p, p+1,
# ..., and the results written to out[r:, 32 p:]. The name gives the numbers of rows and panels.
dot_1_1 = _tile(1, 1, squared=False)
dot_1_4 = _tile(1, ACROSS, squared=False)
dot_4_1 = _tile(ROWS, 1, squared=False)
distance_1_1 = _tile(1, 1, squared=True)
distance_1_4 = _tile(1, ACROSS, squared=True)
distance_4_1 = _tile(ROWS, 1, squared=True)
