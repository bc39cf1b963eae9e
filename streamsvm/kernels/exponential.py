"""exp(x) for x <= 0 in single precision, without branches, so that loops over it vectorise.

Range reduction x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor polynomial of degree 6 for exp(r)
(relative remainder below 2e-7), and 2**n made from its exponent bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from streamsvm._compile import JIT, compiled

_LOG2E = np.float32(1.4426950408889634)
# ln 2 in two parts; the first has so few bits that n times it is exact.
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
# Below this exp(x) is under the smallest normal float32; 0 is returned.
_LOWEST = np.float32(-87.0)
# Adding and subtracting 1.5 * 2**23 rounds a float32 to the nearest integer.
_ROUND = np.float32(12582912.0)


@intrinsic
def _power_of_two_compiled(typingctx: Any, n: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        biased = builder.add(args[0], ir.Constant(i32, 127))
        return builder.bitcast(builder.shl(biased, ir.Constant(i32, 23)), ir.FloatType())

    return types.float32(types.int32), codegen


def _power_of_two_plain(n: np.int32) -> np.float32:
    return np.float32(2.0 ** int(n))


_power_of_two: Any = _power_of_two_compiled if JIT else _power_of_two_plain


@compiled
def exp_float32(x):
    """Return exp(x) as float32, for x <= 0 (float32 or float64); 0 below -87."""
    low = x < _LOWEST
    t = _LOWEST if low else np.float32(x)
    n = (t * _LOG2E + _ROUND) - _ROUND
    r = (t - n * _LN2_HIGH) - n * _LN2_LOW
    p = np.float32(1.0 / 720.0)
    p = p * r + np.float32(1.0 / 120.0)
    p = p * r + np.float32(1.0 / 24.0)
    p = p * r + np.float32(1.0 / 6.0)
    p = p * r + np.float32(0.5)
    p = p * r + np.float32(1.0)
    p = p * r + np.float32(1.0)
    return np.float32(0.0) if low else p * _power_of_two(np.int32(n))
