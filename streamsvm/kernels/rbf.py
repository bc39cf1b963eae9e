"""The Gaussian kernel: k(x, z) = exp(-gamma |x - z|^2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsvm._parameter_checks import check_positive
from streamsvm.errors import ParameterError
from streamsvm.kernels.exponential import exp_float32
from streamsvm.kernels.registry import register


class _Parameters(NamedTuple):
    gamma: float


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
