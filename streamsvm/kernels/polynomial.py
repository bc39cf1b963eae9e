"""The polynomial kernel: k(x, z) = (gamma <x, z> + coef0) ** degree."""

from __future__ import annotations

from typing import NamedTuple

from streamsvm.errors import ParameterError
from streamsvm.kernels.registry import register


class _Parameters(NamedTuple):
    degree: float
    gamma: float
    coef0: float


class Polynomial(_Parameters):
    """Polynomial kernel, k(x, z) = (gamma <x, z> + coef0) ** degree.

    Parameters
    ----------
    degree
        Whole number of at least 1; 3 by default, as everywhere.
    gamma
        Positive factor of the dot product; 1 by default.
    coef0
        Constant of at least 0 (below it the kernel is not positive semi-definite); 1 by default,
        so that all degrees up to `degree` take part.

    Examples
    --------
    >>> from streamsvm import kernels
    >>> kernels.Polynomial(degree=2, gamma=0.5)
    Polynomial(degree=2.0, gamma=0.5, coef0=1.0)

    """

    __slots__ = ()

    def __new__(cls, degree: float = 3, gamma: float = 1.0, coef0: float = 1.0) -> Polynomial:
        """Check and make the kernel."""
        if not 1 <= degree <= 100 or degree != int(degree):
            raise ParameterError(f"degree={degree!r}: use a whole number from 1 to 100")
        if not 0.0 < gamma < float("inf"):
            raise ParameterError(f"gamma={gamma!r}: use a positive number")
        if not 0.0 <= coef0 < float("inf"):
            raise ParameterError(f"coef0={coef0!r}: use a number of at least 0")
        return super().__new__(cls, float(degree), float(gamma), float(coef0))


@register(Polynomial, of="dot")
def _polynomial(kernel, product):
    base = kernel.gamma * product + kernel.coef0
    value = base
    for _ in range(int(kernel.degree) - 1):
        value *= base
    return value
