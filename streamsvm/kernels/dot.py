"""Kernels of the dot product: the linear and the polynomial one."""

from __future__ import annotations

from typing import NamedTuple

from streamsvm._parameter_checks import check_number, check_positive
from streamsvm.errors import ParameterError
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


class _PolynomialParameters(NamedTuple):
    degree: float
    gamma: float
    coef0: float


class Polynomial(_PolynomialParameters):
    """Polynomial kernel, ``k(x, z) = (gamma <x, z> + coef0) ** degree``.

    Parameters
    ----------
    degree
        Whole number from 1 to 100; 3 by default.
    gamma
        Positive factor of the dot product; 1 by default.
    coef0
        Constant of at least 0 (with a negative one the kernel is not positive semi-definite); 1 by
        default, so that monomials of all degrees up to `degree` contribute.

    Raises
    ------
    ParameterError
        A parameter is out of range.

    Examples
    --------
    >>> from streamsvm import kernels
    >>> kernels.Polynomial(degree=2, gamma=0.5)
    Polynomial(degree=2.0, gamma=0.5, coef0=1.0)

    """

    __slots__ = ()

    def __new__(cls, degree: float = 3, gamma: float = 1.0, coef0: float = 1.0) -> Polynomial:
        """Create the kernel after checking its parameters."""
        if not check_number("degree", degree, 1) <= 100 or degree != int(degree):
            raise ParameterError(f"degree={degree!r}: use a whole number from 1 to 100")
        return super().__new__(
            cls, float(degree), check_positive("gamma", gamma), check_number("coef0", coef0, 0)
        )


@register(Polynomial, of="dot")
def _polynomial(kernel, product):
    base = kernel.gamma * product + kernel.coef0
    value = base
    for _ in range(int(kernel.degree) - 1):
        value *= base
    return value
