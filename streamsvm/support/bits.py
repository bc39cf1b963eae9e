"""Rows of 0 and 1 as 64-bit words: how they are packed, and counts of the bits that two rows share.

Bit k % 64 of word k // 64 is feature k. Words of stored rows are in panels of 32 rows, as their
values are: see `tiles`. The dot product of two such rows is the number of features that both have,
their squared distance the number of those that one has. As long as they are below 2**24, these are
the very numbers that sums of float32 products give, at 64 features an operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from streamsvm._compile import JIT, compiled, compiled_inner
from streamsvm.support.tiles import PANEL, ROWS, loop, splat

WORD = 64
"""The number of features in a word."""


@compiled
def n_words(n_features):
    """Return the number of words for so many features."""
    return (n_features + WORD - 1) // WORD


@intrinsic
def _word_compiled(typingctx: Any, x: Any, first: Any, stop: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        i32, i64 = ir.IntType(32), ir.IntType(64)
        values, flags = ir.VectorType(ir.FloatType(), WORD), ir.VectorType(ir.IntType(1), WORD)
        at = builder.bitcast(builder.gep(view.data, [args[1]]), values.as_pointer())
        left = splat(
            builder,
            builder.trunc(builder.sub(args[2], args[1]), i32),
            ir.VectorType(i32, WORD),
        )
        numbers = ir.Constant(ir.VectorType(i32, WORD), list(range(WORD)))
        # What is beyond `stop` is not read, but is 0.
        load = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(values, [at.type, i32, flags, values]),
            f"llvm.masked.load.v{WORD}f32.p0",
        )
        inside = builder.icmp_signed("<", numbers, left)
        found = builder.call(load, [at, i32(4), inside, ir.Constant(values, None)])
        one = builder.fcmp_ordered("==", found, ir.Constant(values, [1.0] * WORD))
        zero = builder.fcmp_ordered("==", found, ir.Constant(values, None))
        word = builder.bitcast(one, i64)
        others = builder.not_(builder.bitcast(builder.or_(one, zero), i64))
        return context.make_tuple(builder, signature.return_type, [word, others])

    if x != types.Array(types.float32, 1, "C"):
        return None
    return types.UniTuple(types.uint64, 2)(x, types.int64, types.int64), codegen


def _word_plain(x: Any, first: int, stop: int) -> tuple[np.uint64, np.uint64]:
    part = np.zeros(WORD, np.float32)
    used = x[first : min(stop, first + WORD)]
    part[: used.size] = used
    words = np.packbits([part == 1, (part != 0) & (part != 1)], axis=1, bitorder="little")
    word, others = words.view(np.uint64)[:, 0]
    return word, others


# word(x, first, stop): the values first .. first + 63 of x, float32 (>= stop,), that are before
# `stop`, as a word of those that are 1 and a word of those that are neither 0 nor 1.
word: Any = _word_compiled if JIT else _word_plain


@compiled_inner
def pack(x, d, out):
    """Write the first d values of a row, float32, as words; tell whether all are 0 or 1.

    `out` is uint64 (>= n_words(d),). It is complete only if all are.
    """
    for first in range(0, d, WORD):
        out[first // WORD], others = word(x, first, d)
        if others != 0:
            return False
    return True


def _emit(context: Any, builder: Any, signature: Any, args: Any, rows: int, differ: bool) -> Any:
    """Emit: for each word: count[i] += number of bits of x[i] AND panel, or x[i] XOR panel."""
    words_type, _, x_type, _, _, out_type = signature.args
    words = context.make_array(words_type)(context, builder, args[0])
    x = context.make_array(x_type)(context, builder, args[2])
    out = context.make_array(out_type)(context, builder, args[5])
    p, r, d = args[1], args[3], args[4]
    i64, vector = ir.IntType(64), ir.VectorType(ir.IntType(64), PANEL)
    number = lambda value: ir.Constant(i64, value)  # noqa: E731
    population = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector]), f"llvm.ctpop.v{PANEL}i64"
    )
    depth = cgutils.unpack_tuple(builder, words.shape, 3)[1]
    x_width = cgutils.unpack_tuple(builder, x.shape, 2)[1]
    out_width = cgutils.unpack_tuple(builder, out.shape, 2)[1]
    tile = builder.gep(words.data, [builder.mul(p, builder.mul(depth, number(PANEL)))])
    starts = [
        builder.gep(x.data, [builder.mul(builder.add(r, number(i)), x_width)]) for i in range(rows)
    ]
    n = builder.sdiv(builder.add(d, number(WORD - 1)), number(WORD))
    last = builder.sub(n, number(1))
    # Of the last word, features before d only: stored rows may have more.
    unused = builder.and_(builder.neg(d), number(WORD - 1))
    before_d = builder.lshr(number(-1), unused)

    def body(k: Any, counts: list[Any]) -> list[Any]:
        at = builder.gep(tile, [builder.mul(k, number(PANEL))])
        lanes = builder.load(builder.bitcast(at, vector.as_pointer()), align=8)
        used = builder.select(builder.icmp_signed("==", k, last), before_d, number(-1))
        used, following = splat(builder, used, vector), []
        for start, count in zip(starts, counts, strict=True):
            own = splat(builder, builder.load(builder.gep(start, [k])), vector)
            # Beyond d the fresh row has no bits.
            bits = (
                builder.and_(builder.xor(own, lanes), used) if differ else builder.and_(own, lanes)
            )
            following.append(builder.add(count, builder.call(population, [bits])))
        return following

    counts = loop(builder, number(0), n, [ir.Constant(vector, None)] * rows, body)
    small, values = (ir.VectorType(kind, PANEL) for kind in (ir.IntType(32), ir.FloatType()))
    for i, count in enumerate(counts):
        at = builder.add(
            builder.mul(builder.add(r, number(i)), out_width), builder.mul(p, number(PANEL))
        )
        at = builder.bitcast(builder.gep(out.data, [at]), values.as_pointer())
        builder.store(builder.sitofp(builder.trunc(count, small), values), at, align=4)
    return context.get_dummy_value()


def _compiled_counts(rows: int, differ: bool) -> Any:
    @intrinsic
    def counts(typingctx: Any, words: Any, p: Any, x: Any, r: Any, d: Any, out: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _emit(context, builder, signature, args, rows, differ)

        return types.void(words, types.int64, x, types.int64, types.int64, out), codegen

    return counts


def _plain_counts(rows: int, differ: bool) -> Any:
    def counts(words: Any, p: int, x: Any, r: int, d: int, out: Any) -> None:
        total = np.zeros((rows, PANEL), np.float32)
        for k in range(n_words(d)):
            own, lanes = x[r : r + rows, k, None], words[p, k]
            used = np.uint64((1 << min(WORD, d - k * WORD)) - 1)
            total += np.bitwise_count((own ^ lanes if differ else own & lanes) & used)
        out[r : r + rows, p * PANEL : (p + 1) * PANEL] = total

    return counts


_counts = _compiled_counts if JIT else _plain_counts

# Each is called as counts(words, p, x, r, d, out): words uint64 (n_panels, >= n_words(d), 32), x
# uint64 (n, >= n_words(d)) without bits beyond d, and out float32 (n, >= 32 n_panels). Rows r, r+1,
# ... of x are combined with panel p, and the results written to out[r:, 32 p:]. The name gives the
# number of rows.
dot_1 = _counts(1, differ=False)
dot_4 = _counts(ROWS, differ=False)
distance_1 = _counts(1, differ=True)
distance_4 = _counts(ROWS, differ=True)
