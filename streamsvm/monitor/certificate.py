"""Certificates: upper bounds of the mean duality gap over a stream.

**Looks.** After its steps a solver looks at randomly drawn examples: the part of the gap that one
has, divided by its C_i, is a number Z between 0 and B whose mean is the normalised gap, and B is
known before the draw (see `support.looks`). By inequality (2.4) of Fan, Grama and Liu (Electronic
Journal of Probability 20, 2015), for 0 <= eta B < 1 and psi(u) = -log(1 - u) - u, the product over
the looks of

    exp(eta (G - Z) - psi(eta B) Z^2 / B^2),    G = E[Z | all before]

is a supermartingale. So, by Ville's inequality, with probability 1 - delta at all moments at once

    mean G  <=  mean Z + (log(1 / (delta w_j)) + psi(eta_j B) / B^2 sum Z^2) / (eta_j S)

for all eta_j of a grid with weights w_j of sum at most 1. With the average of the iterates, the gap
of the averaged classifier is at most the mean gap of the iterates, as the gap is convex.

**The papers' form** (Usunier, Bordes, Bottou 2010, Theorems 2 and 3), for equal C_i, and K uniform
steps after each of T examples::

    E[ mean_t (P_t(w_t) - P_t*) / (C n_t) ]  <=  mu(E[gain] / (K T)),   mu(x) = sqrt(2 R2 x) + x / C

`gain` is what the uniform steps added to the dual: D_T - delta_T + rho_T, with D_T the dual now,
delta_T the part that PROCESS added, and rho_T the part that was lost when examples were removed.
The papers use the optimum D_T* instead of D_T; as D_T <= D_T*, this bound is sharper. The papers
also assume R2 = 1 (their kernels are at most 1).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from streamsvm.errors import ParameterError


class Certificate(NamedTuple):
    """A bound on the mean normalised gap over the stream so far, or why there is none."""

    value: float | None
    reason: str
    """What the bound is about; without a value, why there is none."""


class Looks(NamedTuple):
    """The sums of looks: see `support.looks`."""

    n: int = 0  # S: examples after which there were looks
    total: float = 0.0  # sum of Z
    squares: float = 0.0  # sum of Z^2
    most: float = 0.0  # largest B

    @classmethod
    def of(cls, info: Any) -> Self:
        """Return the sums in the record of a solver's state."""
        return cls(
            int(info.n_looked),
            float(info.look_sum),
            float(info.look_squares),
            float(info.look_most),
        )

    def since(self, earlier: Self) -> Self:
        """Return the sums of later looks; the largest B is that of all: the safe side."""
        return self._replace(
            n=self.n - earlier.n,
            total=self.total - earlier.total,
            squares=max(0.0, self.squares - earlier.squares),
        )

    def after(self, earlier: Self) -> Self:
        """Return these sums and those of earlier looks."""
        return self._replace(
            n=self.n + earlier.n,
            total=self.total + earlier.total,
            squares=self.squares + earlier.squares,
            most=max(self.most, earlier.most),
        )

    @property
    def mean(self) -> float | None:
        """An unbiased estimate of the mean gap; None before the first look."""
        return self.total / self.n if self.n else None

    def bound(self, confidence: float = 0.95) -> float | None:
        """Return a bound of the mean gap at all moments at once; None before the first look."""
        if not self.n or not self.most > 0.0:
            return self.mean
        first = math.ceil(-2.0 * math.log2(self.most)) - 1
        j = first - _GRID
        u = np.exp2(0.5 * j) * self.most
        j, u = j[u < 1.0], u[u < 1.0]  # rounding may make the first one 1
        weight = 3.0 / (math.pi * (np.abs(j) + 1)) ** 2
        spread = (-np.log1p(-u) - u) * (self.squares / self.most / self.most)
        chance = -np.log((1.0 - confidence) * weight)
        best = float(((chance + spread) * self.most / u).min())
        return (self.total + best) / self.n


_GRID = np.arange(80)


def steps_for(epsilon: float, C: float, r2: float) -> int:
    """Return the K that keeps the mean gap below epsilon in the worst case (Corollary 4).

    K = ceil(8 C R2 / epsilon^2), or 2 / epsilon if that is more (epsilon > 4 C R2). In practice the
    gap falls like 1 / K, so that this K is generous.

    Parameters
    ----------
    epsilon
        The mean gap asked for, above 0.
    C
        The bound of each coefficient, above 0.
    r2
        R2, a bound on the kernel values k(x, x), at least 0.

    Returns
    -------
    int
        K, the steps after each example.

    Raises
    ------
    ParameterError
        `epsilon` is not above 0, or infinite.

    """
    if not 0.0 < epsilon < math.inf:
        raise ParameterError(f"epsilon={epsilon!r}: use a number above 0")
    return math.ceil(max(8.0 * C * r2 / epsilon**2, 2.0 / epsilon))


def papers_bound(info: Any, *, blocks: bool = False) -> float | None:
    """Return the bound in the papers' form from the record of a state; `blocks`: of block steps.

    None before the first example, and for unequal C_i, for which it is not valid. Block steps over
    several classes have nu(x) = sqrt(2 rho2 x) + 2 x / C in the place of mu, where rho2 is 2 R2.
    """
    T = int(info.n_seen)
    if T == 0 or info.cost_least != info.cost_most:
        return None
    x, width = max(0.0, float(info.mean_gain)) / T, float(info.width) / T
    return math.sqrt(2.0 * width * x) + (2.0 if blocks else 1.0) * float(info.scaled_gain) / T
