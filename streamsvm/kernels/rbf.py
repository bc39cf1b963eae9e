"""The Gaussian kernel: k(x, z) = exp(-gamma |x - z|^2).

exp(x) for x <= 0 is computed in single precision, without branches, so that loops over it
vectorise: range reduction x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor polynomial of degree 6
for exp(r) (relative remainder below 2e-7), and 2**n made from its exponent bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from streamsvm._compile import JIT, compiled
from streamsvm._parameter_checks import check_positive
from streamsvm.errors import ParameterError
from streamsvm.kernels.registry import register


class _Parameters(NamedTuple):
    gamma: float


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


class RBF(_Parameters):
    """Gaussian (radial basis function) kernel, ``k(x, z) = exp(-gamma |x - z|^2)``.

    Distances are sums of squared differences, not ``|x|^2 + |z|^2 - 2 <x, z>``, which would lose
    digits for rows far from the origin. Values are accurate to about 3e-7.

    Parameters
    ----------
    gamma
        From 1e-35 to 1e35: 1 / (2 sigma^2). It has no default because it depends on the scale of
        the features; learners with ``kernel=None`` choose it from the data.

    Raises
    ------
    ParameterError
        `gamma` is out of range.

    Examples
    --------
    >>> from streamsvm import kernels
    >>> kernels.RBF(gamma=0.5)
    RBF(gamma=0.5)

    """

    __slots__ = ()

    def __new__(cls, gamma: float) -> RBF:
        """Create the kernel after checking its parameters."""
        # In single precision others are 0 or infinite.
        if not 1e-35 <= check_positive("gamma", gamma) <= 1e35:
            raise ParameterError(f"gamma={gamma!r}: use a number from 1e-35 to 1e35")
        return super().__new__(cls, float(gamma))

    def in_double(self, distances: np.ndarray) -> np.ndarray:
        """Return the values for squared distances, float64 (n,), in double precision."""
        return np.exp(-self.gamma * distances)


@register(RBF, of="distance")
def _rbf(kernel, product):
    return exp_float32(-np.float32(kernel.gamma) * product)
