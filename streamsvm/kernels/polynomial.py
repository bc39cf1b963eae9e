"""The polynomial kernel: k(x, z) = (gamma <x, z> + coef0) ** degree."""

from __future__ import annotations

from typing import NamedTuple

from streamsvm._parameter_checks import check_number, check_positive
from streamsvm.errors import ParameterError
from streamsvm.kernels.registry import register


class _Parameters(NamedTuple):
    degree: float
    gamma: float
    coef0: float


class Polynomial(_Parameters):
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
