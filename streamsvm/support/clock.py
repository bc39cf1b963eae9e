"""A clock for compiled code: the cycle counter of the processor."""

from __future__ import annotations

import time
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from streamsvm._compile import JIT


@intrinsic
def _cycles_compiled(typingctx: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [])
        counter = cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter")
        return builder.call(counter, [])

    return types.int64(), codegen


# cycles(): a count that increases with time, about once a nanosecond.
cycles: Any = _cycles_compiled if JIT else time.perf_counter_ns
