"""The linear kernel: k(x, z) = scale * <x, z>."""

from __future__ import annotations

from typing import NamedTuple

from streamsvm._parameter_checks import check_positive
from streamsvm.kernels.registry import register


class _Parameters(NamedTuple):
    scale: float


class Linear(_Parameters):
    """Linear kernel, ``k(x, z) = scale * <x, z>``.

    Parameters
    ----------
    scale
        Positive factor; 1 (the plain dot product) by default. Scale s with C gives the same
        classifier as scale 1 with s * C.

    Raises
    ------
    ParameterError
        `scale` is out of range.

    Examples
    --------
    >>> from streamsvm import kernels
    >>> kernels.Linear()
    Linear(scale=1.0)

    """

    __slots__ = ()

    def __new__(cls, scale: float = 1.0) -> Linear:
        """Create the kernel after checking its parameters."""
        return super().__new__(cls, check_positive("scale", scale))


@register(Linear, of="dot")
def _linear(kernel, product):
    return kernel.scale * product
