"""The rates (gain divided by cost) of LaRank's operations for its adaptive schedule."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from streamsvm._compile import JIT, compiled_within

_LEAST = 0.05
"""mu of Algorithm 22: the smallest ratio of a rate to the largest one. An operation with a lower
rate would hardly ever be drawn again."""

_SMALLEST = 1e-6

_SECONDS = (2e-8, 1e-9, 1.5e-11, 4e-10)
"""Assumed seconds for an operation, a kernel value, each feature in it, and a gradient updated."""


@compiled_within
def begin(state, clock, began):
    """Begin an operation at this time of the clock: reset its gain and its cost."""
    if clock > 0.0:
        state.info[0].began = began
    state.info[0].gained = 0.0
    state.info[0].work = _SECONDS[0]


@compiled_within
def assumed_cycles(n_features, n_values):
    """Return the assumed clock cycles of kernel values that were computed before."""
    _, value, feature, _ = _SECONDS
    return np.int64(1e9 * n_values * (value + n_features * feature))


@compiled_within
def charge(state, n_features, n_values, n_updates):
    """Add the cost of kernel values and gradient updates to the cost of the operation."""
    operation, value, feature, update = _SECONDS
    state.info[0].work += operation + n_values * (value + n_features * feature) + n_updates * update


@compiled_within
def rate(state, clock, before):
    """Return the updated rate of the operation that has just ended (Algorithm 22, line 16)."""
    info = state.info[0]
    if clock > 0.0:
        info.work = 1e-9 * max(1, cycles() - info.began)
    best = max(info.rate_new, info.rate_old, info.rate_optimize)
    return max(0.05 * info.gained / info.work + 0.95 * before, _LEAST * best, _SMALLEST)


@intrinsic
def _cycles_compiled(typingctx: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [])
        counter = cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter")
        return builder.call(counter, [])

    return types.int64(), codegen


# cycles(): the cycle counter of the processor, which increases about once a nanosecond.
cycles: Any = _cycles_compiled if JIT else time.perf_counter_ns
