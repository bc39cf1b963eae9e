"""The two passes over all gradients: to update them, and to choose the partner of a pair.

All arrays are read up to the next multiple of 16. Unused slots have A = B = alpha = 0, so that they
are never chosen.

They go over 16 slots at a time in vector registers. A lane is one of the 16 elements of a register.
It keeps the best value of its slots so far, and the index of the group of 16 slots in which that
value first occurred. The loops are written in LLVM's intermediate language, because the compiler
keeps the lanes of plain loops in memory, which is half as fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from streamsvm._compile import JIT, compiled_inner
from streamsvm.support.tiles import loop, splat

LANES = 16
_TINY = 1e-12

_I64 = ir.IntType(64)
_DOUBLES, _SINGLES = ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.FloatType(), LANES)
_NUMBERS = ir.VectorType(_I64, LANES)


class _Pass:
    """A loop over groups of 16 slots, with values carried from each group to the next."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.builder = builder
        self.arrays = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else None
            for kind, value in zip(signature.args, args, strict=True)
        ]

    def run(self, n: Any, initial: list[Any], body: Any) -> list[Any]:
        """Emit a loop that calls body(group, carried) -> carried; return the final values."""
        most = self.builder.add(n, ir.Constant(_I64, LANES - 1))
        groups = self.builder.sdiv(most, ir.Constant(_I64, LANES))
        return loop(self.builder, ir.Constant(_I64, 0), groups, initial, body)

    def load(self, i: int, group: Any, vector: Any) -> Any:
        """Load the lanes of a group from the i-th argument."""
        return self.builder.load(self._at(i, group, vector), align=4)

    def store(self, value: Any, i: int, group: Any) -> None:
        """Store lanes into the i-th argument."""
        self.builder.store(value, self._at(i, group, value.type), align=4)

    def _at(self, i: int, group: Any, vector: Any) -> Any:
        start = self.builder.mul(group, ir.Constant(_I64, LANES))
        return self.builder.bitcast(self.builder.gep(self.arrays[i], [start]), vector.as_pointer())

    def better(self, mask: Any, group: Any, value: Any, best: Any, where: Any) -> tuple[Any, Any]:
        """Return best and where, with the lanes of the mask replaced by value and group."""
        groups = splat(self.builder, group, _NUMBERS)
        return self.builder.select(mask, value, best), self.builder.select(mask, groups, where)


def _emit_update(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    p = _Pass(context, builder, signature, args)
    step, n = args[6], args[7]
    fused = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_DOUBLES, [_DOUBLES] * 3), f"llvm.fmuladd.v{LANES}f64"
    )
    minus = splat(builder, builder.fneg(step), _DOUBLES)
    lowest = ir.Constant(_DOUBLES, [float("-inf")] * LANES)
    highest = ir.Constant(_DOUBLES, [float("inf")] * LANES)
    nowhere = ir.Constant(_NUMBERS, None)

    def body(group: Any, carried: list[Any]) -> list[Any]:
        high, high_at, low, low_at = carried
        alpha, lower, upper, g = (p.load(i, group, _DOUBLES) for i in range(4))
        row_i, row_j = (builder.fpext(p.load(i, group, _SINGLES), _DOUBLES) for i in (4, 5))
        g = builder.call(fused, [minus, builder.fsub(row_i, row_j), g])
        p.store(g, 3, group)
        rises = builder.and_(
            builder.fcmp_ordered("<", alpha, upper), builder.fcmp_ordered(">", g, high)
        )
        falls = builder.and_(
            builder.fcmp_ordered(">", alpha, lower), builder.fcmp_ordered("<", g, low)
        )
        return [*p.better(rises, group, g, high, high_at), *p.better(falls, group, g, low, low_at)]

    high, high_at, low, low_at = p.run(n, [lowest, nowhere, highest, nowhere], body)
    zero, one = ir.Constant(_I64, 0), ir.Constant(_I64, 1)
    for value, at in ((high, zero), (low, one)):
        p.store(value, 8, at)
    for value, at in ((high_at, zero), (low_at, one)):
        p.store(value, 9, at)
    return context.get_dummy_value()


def _emit_gain(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    p = _Pass(context, builder, signature, args)
    g_fixed, k_fixed, sign, n = args[5], args[6], args[7], args[8]
    fixed, signs = splat(builder, g_fixed, _DOUBLES), splat(builder, sign, _DOUBLES)
    own = splat(builder, k_fixed, _SINGLES)
    tiny = ir.Constant(_SINGLES, [_TINY] * LANES)
    two = ir.Constant(_SINGLES, [2.0] * LANES)
    zero_doubles, zero = ir.Constant(_DOUBLES, None), ir.Constant(_SINGLES, None)

    def body(group: Any, carried: list[Any]) -> list[Any]:
        best, where = carried
        alpha, bound, g = (p.load(i, group, _DOUBLES) for i in range(3))
        row, diagonal = p.load(3, group, _SINGLES), p.load(4, group, _SINGLES)
        gap = builder.fptrunc(builder.fmul(signs, builder.fsub(fixed, g)), _SINGLES)
        eta = builder.fsub(builder.fadd(own, diagonal), builder.fmul(two, row))
        eta = builder.select(builder.fcmp_ordered(">", eta, tiny), eta, tiny)
        gain = builder.fdiv(builder.fmul(gap, gap), eta)
        room = builder.fmul(signs, builder.fsub(alpha, bound))
        possible = builder.and_(
            builder.fcmp_ordered(">", gap, zero), builder.fcmp_ordered(">", room, zero_doubles)
        )
        mask = builder.and_(possible, builder.fcmp_ordered(">", gain, best))
        return list(p.better(mask, group, gain, best, where))

    best, where = p.run(n, [zero, ir.Constant(_NUMBERS, None)], body)
    p.store(builder.fpext(best, _DOUBLES), 9, ir.Constant(_I64, 0))
    p.store(where, 10, ir.Constant(_I64, 0))
    return context.get_dummy_value()


@intrinsic
def _update_compiled(typingctx, alpha, lower, upper, g, row_i, row_j, step, n, values, groups):
    signature = types.void(
        alpha, lower, upper, g, row_i, row_j, types.float64, types.int64, values, groups
    )
    return signature, _emit_update


@intrinsic
def _gain_compiled(
    typingctx, alpha, bound, g, row, diagonal, g_fixed, k_fixed, sign, n, values, groups
):
    signature = types.void(
        alpha, bound, g, row, diagonal, types.float64, types.float32, types.float64, types.int64,
        values, groups,
    )  # fmt: skip
    return signature, _emit_gain


def _first_best(values: Any, best: Any, where: Any) -> None:
    """Write, for each lane, the largest of values (groups, lanes) and its first group."""
    if len(values):
        where[:] = np.argmax(values, axis=0)
        best[:] = values.max(axis=0)


# Slots from n to the next multiple of 16 hold what the memory held before; their box is empty, so
# that no result depends on them, but arithmetic on them may overflow.
@np.errstate(over="ignore", invalid="ignore")
def _update_plain(alpha, lower, upper, g, row_i, row_j, step, n, values, groups):
    m = (n + LANES - 1) // LANES * LANES
    values[0], values[1], groups[:] = -np.inf, np.inf, 0
    g[:m] -= step * (row_i[:m].astype(float) - row_j[:m].astype(float))
    up = np.where(alpha[:m] < upper[:m], g[:m], -np.inf).reshape(-1, LANES)
    down = np.where(alpha[:m] > lower[:m], -g[:m], -np.inf).reshape(-1, LANES)
    _first_best(up, values[0], groups[0])
    _first_best(down, values[1], groups[1])
    if m:
        values[1] *= -1.0


@np.errstate(over="ignore", invalid="ignore")
def _gain_plain(alpha, bound, g, row, diagonal, g_fixed, k_fixed, sign, n, values, groups):
    m = (n + LANES - 1) // LANES * LANES
    values[0], groups[0] = 0.0, 0
    gap = (sign * (g_fixed - g[:m])).astype(np.float32)
    eta = np.maximum(k_fixed + diagonal[:m] - np.float32(2.0) * row[:m], np.float32(_TINY))
    possible = (gap > 0.0) & (sign * (alpha[:m] - bound[:m]) > 0.0)
    gain = np.where(possible, gap * gap / eta, np.float32(0.0))
    _first_best(gain.reshape(-1, LANES), values[0], groups[0])


# update_lanes(alpha, lower, upper, g, row_i, row_j, step, n, values, groups) makes the update of
# `update_gradient` for n slots, rounded up to a multiple of 16. For each lane it writes the largest
# gradient with alpha < upper and the smallest with alpha > lower into values, float64 (2, 16), and
# the groups in which they first occurred into groups, int64 (2, 16). Rows are float32, the other
# arrays float64.
update_lanes: Any = _update_compiled if JIT else _update_plain

# gain_lanes(alpha, bound, g, row, diagonal, g_fixed, k_fixed, sign, n, values, groups) writes for
# each lane the largest gain (see `best_partner`; 0: none) into values[0], and the group in which it
# first occurred into groups[0].
gain_lanes: Any = _gain_compiled if JIT else _gain_plain


@compiled_inner
def _slot_of(values, groups, sign):
    """Return the slot of the largest sign * value, given the values and groups of 16 lanes."""
    lane = 0
    for other in range(1, LANES):
        if sign * values[other] > sign * values[lane]:
            lane = other
    return groups[lane] * LANES + lane


@compiled_inner
def update_gradient(state, row_i, row_j, step, n):  # type: ignore
    """Set g_s -= step (k(x_i, x_s) - k(x_j, x_s)) for s < n, and find i, j, g_max and g_min.

    Rows are finite, float32 (>= n rounded up to 16,); alpha is up to date.
    """
    info, values, groups = state.info[0], state.lanes, state.groups
    update_lanes(
        state.alpha, state.lower, state.upper, state.gradient, row_i, row_j, step, n, values, groups
    )
    info.i = _slot_of(values[0], groups[0], 1.0)
    info.j = _slot_of(values[1], groups[1], -1.0)
    info.g_max, info.g_min = values[0, info.i % LANES], values[1, info.j % LANES]
    if info.g_max == -np.inf:
        info.i = -1
    if info.g_min == np.inf:
        info.j = -1


@compiled_inner
def best_partner(state, row, g_fixed, k_fixed, rising, n):
    """Return the slot whose unclipped pair step with a fixed example gains most, or -1.

    The gain is (g_i - g_j)^2 / (k_ii + k_jj - 2 k_ij), the second-order choice of Fan, Chen and Lin
    (2005). Of the fixed example, whose coefficient rises (it is i) or falls (it is j), `row`,
    float32 (>= n rounded up to 16,), is the kernel row, g_fixed the gradient, float64, and k_fixed
    k(x, x), float32.
    """
    sign = 1.0 if rising else -1.0
    bound = state.lower if rising else state.upper
    values, groups = state.lanes, state.groups
    gain_lanes(
        state.alpha, bound, state.gradient, row, state.diagonal, g_fixed, k_fixed, sign, n,
        values, groups,
    )  # fmt: skip
    slot = _slot_of(values[0], groups[0], 1.0)
    return slot if values[0, slot % LANES] > 0.0 else np.int64(-1)
